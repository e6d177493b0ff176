#include "engine/api/c/group.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/api/c/last_error.h"
#include "engine/api/request.h"

namespace rankine {
namespace {

struct Group {
  int depth = 0;
  std::vector<CollectedCall> calls{};
  std::optional<Refusal> refused{};  // the first
};
thread_local Group group;

Status named(const std::string& name, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), name + ": " + status.text()};
}

// Calls in the order in which they were collected. All are made ready before any begins, so that
// one which is refused keeps no other from being answered.
Status run_group(const std::vector<CollectedCall>& calls) {
  if (calls.empty()) return {};
  std::map<rkComm_t, Borrowed> handles;
  for (const CollectedCall& one : calls) {
    handles.try_emplace(one.comm, one.comm, Borrowed::As::caller);
  }
  std::vector<Request> all;
  std::vector<std::string> names;
  for (const CollectedCall& one : calls) {
    const Borrowed& handle = handles.find(one.comm)->second;
    Member& member = *handle->member;
    names.push_back(std::string(one.function) + " of rank " + std::to_string(member.rank()));
    CallOptions options;
    if (handle->call_options != nullptr) options = handle->call_options->options;
    Call call = one.call;
    call.counts = one.counts;
    const Displacements displacements{one.in_displacements, one.out_displacements};
    if (call.displacements != nullptr) call.displacements = &displacements;
    options.tag ^= call.options.tag;  // of what the rank has created
    call.options = options;
    auto request = one.message                              ? member.prepare(*one.message, options)
                   : call.collective == Collective::barrier ? member.prepared().barrier(options)
                                                            : member.prepare(call);
    if (!request.ok()) return named(names.back(), request.status());
    all.push_back(std::move(*request));
  }
  Status refused;
  std::size_t started = 0;
  for (; started < all.size() && refused.ok(); ++started) {
    refused = named(names[started], all[started].start());
  }
  std::size_t failed = 0;
  const Status ended =
      wait_all(std::span(all).first(refused.ok() ? started : started - 1), &failed);
  return refused.ok() ? named(names[failed], ended) : refused;
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
