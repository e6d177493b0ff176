// How a call over MPI is made: checked and planned as every call, then its messages.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/mpi/member_state.h"
#include "engine/api/mpi/mpi_error.h"
#include "engine/api/plan_maker.h"
#include "engine/base/deadline.h"
#include "engine/base/splitmix.h"
#include "engine/run/machine.h"

namespace rankine::mpi {
namespace {

// Messages from memory of the caller's, and as many under way as a round has.
constexpr std::size_t kNothingInSlots = 0;
constexpr int kMostUnderWay = 1 << 30;

// A wait first looks as often as the policy says, then gives its core to others between two looks,
// and after so long sleeps between them: no message of MPI's wakes a process.
constexpr std::int64_t kYieldNs = 2'000'000, kNapNs = 50'000;
// Clocks, and whether another rank has ended the communicator, are looked at so often.
constexpr std::int64_t kLookNs = 1'000'000;

// By how much the input lies behind the output, where they may be one memory.
std::optional<std::ptrdiff_t> in_place_offset(const Prepared& prepared, Rank rank) {
  const PlanKey& key = prepared.key.view();
  const Collective collective = key.call().collective;
  const BufferRule& rule = prepared.rules[static_cast<std::size_t>(rank)];
  const bool knows = collective == Collective::all_reduce || collective == Collective::all_to_all;
  if (knows ? !key.in_place() : !rule.may_be_in_place) return {};
  return rule.in_place_offset;
}

}  // namespace

void Member::State::begin_waiting(const CallOptions& of) noexcept {
  patience_ns_ = saturated_ns(of.timeout.count() > 0 ? of.timeout : options.timeout);
  deadline_ns_ = 0;
}

bool Member::State::time_has_passed() noexcept {
  const std::int64_t now = now_ns();
  if (deadline_ns_ == 0) deadline_ns_ = deadline_after(now, patience_ns_);
  return now >= deadline_ns_;
}

Result<Ready*> Member::State::find(const Call& call) {
  const PlanKey key(call);
  const std::uint64_t hash = key.hash();
  const auto [first, last] = plans_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (at->second->prepared->key.view() == key) return at->second.get();
  }
  if (call.options.transport.value_or(Transport::mailbox) != Transport::mailbox) {
    return invalid_argument("transport is " + std::string(name_of(*call.options.transport)) +
                            "; over MPI all is messages: allowed is mailbox, or none");
  }
  auto made = make(key);
  if (!made.ok()) return made.status();
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.emplace(hash, std::move(*made))->second.get();
}

Result<std::unique_ptr<Ready>> Member::State::make(const PlanKey& key) {
  const std::function<Status()> may_go_on = [this]() -> Status {
    if (!time_has_passed()) return {};
    return make_error(Code::timeout, [&] {
      return "no answer within " + std::to_string(patience_ns_ / 1'000'000) + " ms: rank " +
             std::to_string(rank) + " was still planning its call";
    });
  };
  const PlanMaker maker{.ranks = ranks,
                        .costs = costs,
                        .forced = forced,
                        .slot_payload = kNothingInSlots,
                        .mailbox_capacity = kMostUnderWay,
                        .most_plan_bytes = options.plan_bytes,
                        .levels = levels,
                        .tuning = nullptr,
                        .order = options.order,
                        .network = network.get(),
                        .timed = false,
                        .processes = nullptr,
                        .may_go_on = may_go_on};
  auto prepared = maker.make(key);
  if (!prepared.ok()) return prepared.status();
  auto ready = std::make_unique<Ready>();
  std::vector<RankPlan>& plans = (*prepared)->plan.rank;
  const auto self = static_cast<std::size_t>(rank);
  ready->messages = message_plan(plans[self], in_place_offset(**prepared, rank));
  plans.clear();
  ready->prepared = std::move(*prepared);
  const auto operands = static_cast<std::size_t>(ready->prepared->plan.most_operands);
  if (operands_.size() < operands) operands_.resize(operands);
  return ready;
}

Status Member::State::end_with(Status reason) noexcept {
  if (goes_on(reason.code())) return reason;
  if (ended.ok()) {
    ended = reason;
    alarm.raise(reason);
  }
  return ended;
}

Status Member::State::run_displaced(const Call& given) {
  const auto plain = displaced_.plain(given, rank, ranks);
  if (!plain.ok()) return plain.status();
  displaced_.bring_together();
  Status status = call(*plain);
  if (status.ok()) displaced_.hand_out();
  return status;
}

// The same call with products in the place of its input (Call::factor).
Result<Call> Member::State::multiplied(const Call& call) {
  if (Status status = check_factor(call); !status.ok()) return status;
  Call plain = call;
  plain.factor = nullptr;
  // They lie in the output of an all-reduce, which is then in place on all ranks alike.
  const bool in_output = call.collective == Collective::all_reduce;
  if (in_output) plain.in = call.out;
  const auto found = find(plain);
  if (!found.ok()) return found.status();
  const BufferRule& rule = (*found)->prepared->rules[static_cast<std::size_t>(rank)];
  if (!buffers_fit(rule, call.in, call.out)) return misfit(rule, call.in, call.out);
  if (!in_output) {
    if (products_.size() < rule.input_bytes) products_.resize(rule.input_bytes);
    plain.in = products_.data();
  }
  find_scale(call.type, best_isa())(const_cast<void*>(plain.in), call.in,
                                    rule.input_bytes / size_of(call.type), call.factor);
  return plain;
}

Status Member::State::call(const Call& call) {
  if (ended.ok()) ended = alarm.heard();
  if (!ended.ok()) return ended;
  if (call.displacements != nullptr) return run_displaced(call);
  if (call.user_op != nullptr) {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (call.options.epilogue != nullptr) {
    if (Status status = check_epilogue(call); !status.ok()) return status;
  }
  if (!timeout_fits(call.options)) return misfit(call.options);
  begin_waiting(call.options);
  if (call.factor != nullptr) {
    const auto plain = multiplied(call);
    return plain.ok() ? this->call(*plain) : end_with(plain.status());
  }
  const auto found = find(call);
  if (!found.ok()) return end_with(found.status());
  Ready& ready = **found;
  const BufferRule& rule = ready.prepared->rules[static_cast<std::size_t>(rank)];
  if (!buffers_fit(rule, call.in, call.out)) return misfit(rule, call.in, call.out);
  Status status = run(ready, call);
  if (!status.ok() && ready.bound != nullptr) ready.bound->cancel();
  return status.ok() ? status : end_with(std::move(status));
}

// Requests are made anew where buffers are others than in the call before.
Status Member::State::bind(Ready& ready, const Call& call) {
  if (scratch_.size() < ready.messages.scratch_bytes) {
    scratch_ = {};
    scratch_.resize(ready.messages.scratch_bytes);
  }
  const Addresses memory{static_cast<std::byte*>(const_cast<void*>(call.in)),
                         static_cast<std::byte*>(call.out), scratch_.data()};
  if (ready.bound != nullptr && ready.bound->memory() == memory) return {};
  ready.bound = nullptr;
  // Calls that differ shall not take each other's messages.
  const std::uint64_t print = with_tag(ready.prepared->fingerprint, call.options.tag).bits;
  const auto base = static_cast<int>(splitmix(print) % static_cast<std::uint64_t>(tag_bases));
  auto bound = BoundRequests::make(ready.messages, memory, comm, base * BoundRequests::kTags,
                                   options.most_message_bytes);
  if (!bound.ok()) return bound.status();
  ready.bound = std::move(*bound);
  return {};
}

Status Member::State::run(Ready& ready, const Call& call) {
  if (Status status = bind(ready, call); !status.ok()) return status;
  const CallWork work{ready.bound->memory(), call.user_op, call.options.epilogue};
  for (const MessageStep& next : ready.messages.steps) {
    if (Status status = step(ready, next, work); !status.ok()) return status;
  }
  return {};
}

Status Member::State::step(Ready& ready, const MessageStep& step, const CallWork& work) {
  if (step.kind == MessageStep::Kind::wait) return wait(ready, step.index);
  if (step.kind == MessageStep::Kind::start) {
    const Parcel& parcel = ready.messages.parcels[static_cast<std::size_t>(step.index)];
    if (parcel.sends) {
      ++sent.messages;
      sent.bytes += parcel.bytes;
    }
    return ready.bound->start(step.index);
  }
  std::string why;
  if (do_work(ready.messages, ready.prepared->plan, step.index, work, operands_, why)) return {};
  const Op& op = ready.messages.work[static_cast<std::size_t>(step.index)].op;
  return make_error(Code::remote_error, [&] {
    return std::string("the ") + (op.code == OpCode::finish ? "epilogue" : "operation") +
           " of rank " + std::to_string(rank) + " threw: " + why;
  });
}

Status Member::State::wait(Ready& ready, int parcel) {
  bool done = false;
  for (std::uint32_t probe = 0; probe < policy.probes + 1; ++probe) {
    Status status = ready.bound->test(parcel, done);
    if (done || !status.ok()) return status;
  }
  const std::int64_t began = now_ns();
  std::int64_t looked = began;
  const std::int64_t awake = policy.mode == WaitPolicy::Mode::spin ? policy.spin_ns : 0;
  for (;;) {
    const std::int64_t now = now_ns();
    if (now - looked > kLookNs) {
      looked = now;
      if (Status heard = alarm.heard(); !heard.ok()) {
        ended = std::move(heard);
        return ended;
      }
      if (time_has_passed()) return late(ready, parcel);
    }
    if (now - began > awake + kYieldNs) {
      sleep_ns(kNapNs);
    } else if (now - began > awake) {
      sched_yield();
    }
    Status status = ready.bound->test(parcel, done);
    if (done || !status.ok()) return status;
  }
}

// A message that was not received is one of another call, or of a later one.
Status Member::State::late(const Ready& ready, int parcel) const {
  const Parcel& of = ready.messages.parcels[static_cast<std::size_t>(parcel)];
  int other = 0;
  MPI_Iprobe(of.peer, MPI_ANY_TAG, comm, &other, MPI_STATUS_IGNORE);
  return make_error(other != 0 ? Code::mismatch : Code::timeout, [&] {
    const std::string peer = std::to_string(of.peer);
    std::string text = "no answer within " + std::to_string(patience_ns_ / 1'000'000) +
                       " ms: rank " + std::to_string(rank) +
                       (of.sends ? " waits until rank " + peer + " takes what it sends"
                                 : " waits for rank " + peer) +
                       " in round " + std::to_string(of.round - 1) + " of " +
                       describe(ready.prepared->fingerprint) + " by " + ready.prepared->algorithm;
    if (other != 0) text += "; rank " + peer + " has sent a message of another call";
    return text;
  });
}

}  // namespace rankine::mpi
