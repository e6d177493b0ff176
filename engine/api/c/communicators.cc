// The C functions that make, describe and end communicators, and the functions of memory, flight
// records and modelled time.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/c/group.h"
#include "engine/api/c/handles.h"
#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"
#include "engine/api/c/settings.h"
#include "engine/api/c/unique_id.h"
#include "engine/api/call.h"
#include "engine/api/split.h"
#include "engine/run/wait.h"

namespace rankine {
namespace {

Status init_all(rkComm_t* comms, int ranks, Settings settings) {
  if (settings.placement.empty() && settings.nodes.empty()) settings.placement = "compact";
  auto communicator = make_communicator(settings, ranks);
  if (!communicator.ok()) return communicator.status();
  std::vector<std::unique_ptr<Member>> members;
  for (Rank r = 0; r < ranks; ++r) {
    auto member = (*communicator)->join_for_another_thread(r);
    if (!member.ok()) return member.status();
    members.push_back(std::move(*member));
  }
  std::vector<rkComm_t> made;
  made.reserve(members.size());
  try {
    for (auto& member : members) made.push_back(add_rank(std::move(member), false, *communicator));
  } catch (const std::bad_alloc&) {
    for (rkComm_t comm : made) BorrowedRank(comm, BorrowedRank::As::caller).doom();
    throw;
  }
  std::copy(made.begin(), made.end(), comms);
  return {};
}

rkResult_t init_rank(const char* function, rkComm_t* comm, int ranks, const rkUniqueId& id,
                     int rank, const rkConfig_t* config) noexcept {
  const rkResult_t result = guarded(function, [&]() -> Status {
    if (comm == nullptr) return is_null("comm");
    const auto settings = read_settings(config, ranks);
    if (!settings.ok()) return settings.status();
    if (in_group() && is_of_processes(id)) {
      collect({function, comm, ranks, id, rank, *settings});
      *comm = RK_COMM_NULL;
      return {};
    }
    auto met = meet(id, ranks, rank, *settings);
    if (!met.ok()) return met.status();
    *comm = add_rank(std::move(met->member), is_of_processes(id), std::move(met->communicator));
    return {};
  });
  if (result != rkSuccess && in_group()) refuse_group(result);
  return result;
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkGetVersion(int* version) noexcept {
  return guarded("rkGetVersion", [&]() -> Status {
    if (version == nullptr) return is_null("version");
    *version = RK_VERSION_CODE;
    return {};
  });
}

rkResult_t rkGetUniqueId(rkUniqueId* id) noexcept {
  return guarded("rkGetUniqueId", [&]() -> Status {
    if (id == nullptr) return is_null("id");
    *id = make_unique_id();
    return {};
  });
}

rkResult_t rkGetUniqueIdOfProcesses(rkUniqueId* id) noexcept {
  return guarded("rkGetUniqueIdOfProcesses", [&]() -> Status {
    if (id == nullptr) return is_null("id");
    const auto made = make_process_id();
    if (made.ok()) *id = *made;
    return made.status();
  });
}

rkResult_t rkGetUniqueIdByName(rkUniqueId* id, const char* name) noexcept {
  return guarded("rkGetUniqueIdByName", [&]() -> Status {
    if (id == nullptr) return is_null("id");
    if (name == nullptr) return is_null("name");
    const auto made = make_process_id(name);
    if (made.ok()) *id = *made;
    return made.status();
  });
}

rkResult_t rkCommInitRank(rkComm_t* comm, int ranks, rkUniqueId id, int rank) noexcept {
  return init_rank("rkCommInitRank", comm, ranks, id, rank, nullptr);
}

rkResult_t rkCommInitRankConfig(rkComm_t* comm, int ranks, rkUniqueId id, int rank,
                                const rkConfig_t* config) noexcept {
  return init_rank("rkCommInitRankConfig", comm, ranks, id, rank, config);
}

rkResult_t rkCommInitAll(rkComm_t* comms, int ranks, const int* nodes) noexcept {
  return guarded("rkCommInitAll", [&]() -> Status {
    if (comms == nullptr) return is_null("comms");
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    config.nodes = nodes;
    const auto settings = read_settings(&config, ranks);
    return settings.ok() ? init_all(comms, ranks, *settings) : settings.status();
  });
}

rkResult_t rkCommInitAllConfig(rkComm_t* comms, int ranks, const rkConfig_t* config) noexcept {
  return guarded("rkCommInitAllConfig", [&]() -> Status {
    if (comms == nullptr) return is_null("comms");
    const auto settings = read_settings(config, ranks);
    return settings.ok() ? init_all(comms, ranks, *settings) : settings.status();
  });
}

rkResult_t rkCommSplit(rkComm_t comm, int color, int key, rkComm_t* part) noexcept {
  const rkResult_t result = guarded("rkCommSplit", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (part == nullptr) return is_null("part");
    handle->check_not_finalized();
    if (in_group()) {
      collect("rkCommSplit", comm).split = {color, key, part};
      *part = RK_COMM_NULL;
      return {};
    }
    // As for any handle, any thread may use the part.
    auto member = handle->member->split(color, key, {.own_thread = true});
    if (!member.ok()) return member.status();
    *part =
        *member == nullptr ? RK_COMM_NULL : add_rank(std::move(*member), handle->among_processes);
    return {};
  });
  if (result != rkSuccess && in_group()) refuse_group(result);
  return result;
}

rkResult_t rkCommShrink(rkComm_t comm, rkComm_t* part) noexcept {
  return guarded("rkCommShrink", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (part == nullptr) return is_null("part");
    handle->check_not_finalized();
    if (in_group()) throw Refusal{rkInvalidUsage, "a group is open; call it outside of groups"};
    auto member = handle->member->shrink({.own_thread = true});
    if (!member.ok()) return member.status();
    *part = add_rank(std::move(*member), handle->among_processes);
    return {};
  });
}

rkResult_t rkCommAgree(rkComm_t comm, unsigned int value, unsigned int* all) noexcept {
  return guarded("rkCommAgree", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (all == nullptr) return is_null("all");
    handle->check_not_finalized();
    if (in_group()) throw Refusal{rkInvalidUsage, "a group is open; call it outside of groups"};
    const auto agreed = handle->member->agree(value);
    if (agreed.ok()) *all = *agreed;
    return agreed.status();
  });
}

rkResult_t rkCommGrow(rkComm_t comm, int ranks, rkUniqueId id, const rkConfig_t* config,
                      rkComm_t* larger) noexcept {
  return guarded("rkCommGrow", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (larger == nullptr) return is_null("larger");
    handle->check_not_finalized();
    if (in_group()) throw Refusal{rkInvalidUsage, "a group is open; call it outside of groups"};
    if (!is_of_processes(id)) {
      return invalid_argument(
          "id is invalid, or for threads; allowed are ids of processes: threads "
          "make a communicator of more ranks under a new id");
    }
    const auto settings = read_settings(config, ranks);
    if (!settings.ok()) return settings.status();
    return with_options(*settings, ranks, [&](CommunicatorOptions& options) -> Status {
      const std::string name = name_of_processes(id);
      options.name = name;
      auto member = handle->member->grow(options);
      if (member.ok()) *larger = add_rank(std::move(*member), true);
      return member.status();
    });
  });
}

rkResult_t rkCommRevoke(rkComm_t comm) noexcept {
  return guarded("rkCommRevoke", [&]() -> Status {
    BorrowedRank(comm, BorrowedRank::As::reader)->member->revoke();
    return {};
  });
}

rkResult_t rkCommFinalize(rkComm_t comm) noexcept {
  return guarded("rkCommFinalize", [&]() -> Status {
    BorrowedRank handle(comm, BorrowedRank::As::caller);
    handle->finalized = true;
    handle.set(RankTable::Slot::kFinalized, true);
    handle->member->leave();  // or after its requests have been waited for (CallGroup::come_back)
    return {};
  });
}

rkResult_t rkCommDestroy(rkComm_t comm) noexcept {
  return guarded("rkCommDestroy", [&]() -> Status {
    if (comm == RK_COMM_NULL || forget_inherited<RankHandle>(comm)) return {};
    BorrowedRank(comm, BorrowedRank::As::caller).doom();
    BorrowedRank::await_end(comm);  // another thread may be reading it
    return {};
  });
}

rkResult_t rkCommAbort(rkComm_t comm) noexcept {
  return guarded("rkCommAbort", [&]() -> Status {
    if (comm == RK_COMM_NULL || forget_inherited<RankHandle>(comm)) return {};
    {
      BorrowedRank handle(comm, BorrowedRank::As::reader);
      handle->communicator->abort("rkCommAbort was called for rank " +
                                  std::to_string(handle->member->rank()));
      handle.doom();
    }
    BorrowedRank::await_end(comm);  // does not wait for a call in progress
    return {};
  });
}

rkResult_t rkCommAbortFromSignal(rkComm_t comm) noexcept {
  const int saved = errno;
  const rkResult_t result = HandleTable<RankHandle>::look_from_signal(
      comm, [](RankHandle& handle) { handle.communicator->abort(); });
  errno = saved;
  return result;
}

rkResult_t rkCommSetCallSite(rkComm_t comm, const char* site) noexcept {
  return guarded("rkCommSetCallSite", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    return handle->member->set_call_site(site == nullptr ? "" : site);
  });
}

rkResult_t rkCommFail(rkComm_t comm, const char* why) noexcept {
  return guarded("rkCommFail", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (why == nullptr) return is_null("why");
    handle->communicator->abort(Status(
        Code::remote_error, "rank " + std::to_string(handle->member->rank()) + " failed: " + why));
    return {};
  });
}

rkResult_t rkSetInterruptCheck(int (*check)(void)) noexcept {
  set_interrupt_check(check);
  return rkSuccess;
}

rkResult_t rkCommPinThread(rkComm_t comm) noexcept {
  return guarded("rkCommPinThread", [&]() -> Status {
    static_cast<void>(BorrowedRank(comm, BorrowedRank::As::caller)->member->pin_thread());
    return {};
  });
}

rkResult_t rkCommCpu(rkComm_t comm, int* cpu) noexcept {
  return guarded("rkCommCpu", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (cpu == nullptr) return is_null("cpu");
    *cpu = handle->member->cpu();
    return {};
  });
}

rkResult_t rkCommPortsInUse(rkComm_t comm, int* mostSent, int* mostReceived) noexcept {
  return guarded("rkCommPortsInUse", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (mostSent == nullptr) return is_null("mostSent");
    if (mostReceived == nullptr) return is_null("mostReceived");
    const PortsInUse used = handle->member->ports_in_use();
    *mostSent = used.most_sent;
    *mostReceived = used.most_received;
    return {};
  });
}

rkResult_t rkCommCount(rkComm_t comm, int* ranks) noexcept {
  return guarded("rkCommCount", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (ranks == nullptr) return is_null("ranks");
    *ranks = handle->member->ranks();
    return {};
  });
}

rkResult_t rkCommUserRank(rkComm_t comm, int* rank) noexcept {
  return guarded("rkCommUserRank", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (rank == nullptr) return is_null("rank");
    *rank = handle->member->rank();
    return {};
  });
}

rkResult_t rkCommGetOrder(rkComm_t comm, const char** order) noexcept {
  return guarded("rkCommGetOrder", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (order == nullptr) return is_null("order");
    const auto asked = handle->communicator->order();
    *order = asked ? name_of(*asked).data() : "";
    return {};
  });
}

rkResult_t rkCommGetAsyncError(rkComm_t comm, rkResult_t* result) noexcept {
  return guarded("rkCommGetAsyncError", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (result == nullptr) return is_null("result");
    const Status health = handle->communicator->health();
    *result = health.ok() ? rkSuccess : tell("rkCommGetAsyncError", health);
    return {};
  });
}

}  // extern "C"

// The C functions of memory, flight records and modelled time.

using namespace rankine;

extern "C" {

rkResult_t rkMemAlloc(rkComm_t comm, void** memory, size_t bytes) noexcept {
  return guarded("rkMemAlloc", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (memory == nullptr) return is_null("memory");
    auto made = handle->member->allocate<std::byte>(bytes);
    if (!made.ok()) {
      return {made.status().code(),
              "bytes is " + std::to_string(bytes) + ": " + made.status().text()};
    }
    void* const base = made->span().data();
    handle->memory.emplace(base, std::move(*made));
    *memory = base;
    return {};
  });
}

rkResult_t rkMemFree(rkComm_t comm, void* memory) noexcept {
  return guarded("rkMemFree", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (memory == nullptr || handle->memory.erase(memory) == 1) return {};
    return invalid_argument(
        "memory is no block of this rank, or was freed; allowed are blocks of rkMemAlloc");
  });
}

rkResult_t rkCommFlightRecord(rkComm_t comm, char* text, size_t size, size_t* needed) noexcept {
  return guarded("rkCommFlightRecord", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (text == nullptr && size > 0) {
      return invalid_argument("text is NULL, size is " + std::to_string(size) +
                              "; allowed without a text is 0");
    }
    const std::string record = handle->communicator->flight_record();
    if (size > 0) {
      const std::size_t n = std::min(record.size(), size - 1);
      std::memcpy(text, record.data(), n);
      text[n] = 0;
    }
    if (needed != nullptr) *needed = record.size() + 1;
    return {};
  });
}

rkResult_t rkCommModelTime(rkComm_t comm, double* seconds) noexcept {
  return guarded("rkCommModelTime", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (seconds == nullptr) return is_null("seconds");
    *seconds = handle->member->model_time();
    return {};
  });
}

rkResult_t rkCommCompute(rkComm_t comm, double seconds) noexcept {
  return guarded("rkCommCompute", [&]() -> Status {
    return BorrowedRank(comm, BorrowedRank::As::caller)->member->compute(seconds);
  });
}

}  // extern "C"
