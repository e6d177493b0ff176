#include "engine/api/c/group.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/api/c/last_error.h"
#include "engine/api/request.h"
#include "engine/run/machine.h"

namespace rankine {
namespace {

struct Group {
  int depth = 0;
  std::vector<CollectedCall> calls{};
  std::optional<Refusal> refused{};  // the first
};
thread_local Group group;

// Beside the request the words that a barrier, an all-reduce of one word under "or", has as
// buffers.
struct Started {
  Request request;
  std::string name;
  std::uint32_t barrier_in = 0, barrier_out = 0;
};

Status named(const std::string& name, const Status& status) {
  return {status.code(), name + ": " + status.text()};
}

// Whoever plays one rank only sleeps as the communicator says. For several ranks at once it stays
// awake: each of them may be what another one waits for.
Status wait_for_all(std::vector<Started>& all, bool of_one_rank) {
  Status first;
  std::vector<bool> over(all.size());
  for (std::size_t left = all.size(); left > 0;) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (over[i]) continue;
      if (!of_one_rank) {
        const auto tested = all[i].request.test();
        if (tested.ok() && !*tested) continue;
      }
      const Status status = all[i].request.wait();
      if (!status.ok() && first.ok()) first = named(all[i].name, status);
      over[i] = true;
      --left;
    }
    if (left > 0) yield_cpu();
  }
  return first;
}

// Collectives are made ready first and started later, messages are started at once.
Result<Request> make_ready(Member& member, const CollectedCall& one, const Call& call) {
  switch (one.kind) {
    case CollectedCall::Kind::send:
      return member.start_send(call.in, call.count, call.type, call.peer, call.options);
    case CollectedCall::Kind::recv:
      return member.start_recv(call.out, call.count, call.type, call.peer, call.options);
    case CollectedCall::Kind::collective:
      break;
  }
  return member.prepare(call);
}

// Calls in the order in which they were collected. Collectives are looked at before any call
// begins, so that one which is refused keeps the rest from waiting for it; calls.cc has looked at
// messages.
Status run_group(const std::vector<CollectedCall>& calls) {
  std::map<rkComm_t, Borrowed> handles;
  for (const CollectedCall& one : calls) {
    handles.try_emplace(one.comm, one.comm, Borrowed::As::caller);
  }
  std::vector<Started> all(calls.size());
  const auto ready = [&](std::size_t i) -> Status {
    const Borrowed& handle = handles.find(calls[i].comm)->second;
    Call call = calls[i].call;
    call.counts = calls[i].counts;
    if (handle->call_options != nullptr) call.options = handle->call_options->options;
    if (call.collective == Collective::barrier) {
      call.in = &all[i].barrier_in;
      call.out = &all[i].barrier_out;
      call.count = 1;
      call.type = DataType::u32;
      call.op = ReduceOp::bor;
    }
    all[i].name =
        std::string(calls[i].function) + " of rank " + std::to_string(handle->member->rank());
    auto request = make_ready(*handle->member, calls[i], call);
    if (!request.ok()) return named(all[i].name, request.status());
    all[i].request = std::move(*request);
    return {};
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != CollectedCall::Kind::collective) continue;
    if (Status status = ready(i); !status.ok()) return status;
  }
  Status refused;
  std::size_t started = 0;
  for (; started < calls.size() && refused.ok(); started += refused.ok() ? 1 : 0) {
    refused = calls[started].kind == CollectedCall::Kind::collective ? all[started].request.start()
                                                                     : ready(started);
  }
  all.resize(started);
  Status ended = wait_for_all(all, handles.size() == 1);
  return refused.ok() ? ended : refused;
}

}  // namespace

bool in_group() noexcept { return group.depth > 0; }

void collect(CollectedCall call) { group.calls.push_back(std::move(call)); }

void refuse_group(rkResult_t result) noexcept {
  if (group.refused) return;
  try {
    group.refused = Refusal{result, rkGetLastError(RK_COMM_NULL)};
  } catch (const std::exception&) {
    group.refused = Refusal{result, {}};
  }
}

}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkGroupStart() noexcept {
  ++group.depth;
  return rkSuccess;
}

rkResult_t rkGroupEnd() noexcept {
  return guarded("rkGroupEnd", [&]() -> Status {
    if (group.depth == 0)
      throw Refusal{rkInvalidUsage, "there is no group that rkGroupStart began"};
    if (--group.depth > 0) return {};
    std::vector<CollectedCall> calls = std::exchange(group.calls, {});
    if (const auto refused = std::exchange(group.refused, {})) throw *refused;
    return run_group(calls);
  });
}

}  // extern "C"
