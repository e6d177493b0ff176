// Makes one call over MPI: check and plan, as for every Member, then exchange the messages.
#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/mpi/member_state.h"
#include "engine/api/plans.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"

namespace rankine::mpi {
namespace {

// MessagePlan needs mailbox plans with empty slots and as many messages in flight as a round has.
constexpr std::size_t kNothingInSlots = 0;
constexpr int kMostUnderWay = 1 << 30;

// The offset in bytes of the input behind the output if both may be one memory.
std::optional<std::ptrdiff_t> in_place_offset(const CachedPlan& prepared, Rank rank) {
  const PlanKey& key = prepared.key.view();
  const Collective collective = key.call().collective;
  const BufferRule& rule = prepared.rules[static_cast<std::size_t>(rank)];
  const bool knows = collective == Collective::all_reduce || collective == Collective::all_to_all;
  if (knows ? !key.in_place() : !rule.may_be_in_place) return {};
  return rule.in_place_offset;
}

}  // namespace

void Member::State::begin_waiting(const CallOptions& of) noexcept {
  timeout_ns_ = saturated_ns(of.timeout.count() > 0 ? of.timeout : options.timeout);
  deadline_ns_ = 0;
}

std::string Member::State::no_answer() const {
  return no_answer_within(timeout_ns_, "rank " + std::to_string(rank));
}

std::string Member::State::ways_in_words() const {
  const auto by_wire = std::count(ways.begin(), ways.end(), Way::wire);
  const auto through_memory = static_cast<std::ptrdiff_t>(ways.size()) - by_wire - 1;
  return by_wire == 0 && through_memory > 0 ? "memory"
         : through_memory == 0              ? "MPI"
                                            : "memory and MPI";
}

bool Member::State::time_has_passed() noexcept {
  const std::int64_t now = now_ns();
  if (deadline_ns_ == 0) deadline_ns_ = deadline_after(now, timeout_ns_);
  return now >= deadline_ns_;
}

Result<Ready*> Member::State::find(const Call& call) {
  const PlanKey key(call);
  const std::uint64_t hash = key.hash();
  const auto [first, last] = plans_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (at->second->key.view() == key) return at->second.get();
  }
  if (call.options.transport.value_or(Transport::mailbox) != Transport::mailbox) {
    return invalid_argument("transport is " + std::string(name_of(*call.options.transport)) +
                            "; allowed over MPI are mailbox and none");
  }
  auto made = make(key);
  if (!made.ok()) return made.status();
  return plans_.emplace(hash, std::move(*made))->second.get();
}

Result<std::unique_ptr<Ready>> Member::State::make(const PlanKey& asked) {
  // If a call names an algorithm but no groups, the nodes become its groups.
  Call call = asked.call();
  const Algorithm* line = call.options.algorithm.empty()
                              ? forced.algorithm[static_cast<std::size_t>(call.collective)]
                              : find_algorithm(call.collective, call.options.algorithm);
  if (line != nullptr) {
    if (Status status = process->homes().take_nodes(*line, call.options); !status.ok()) {
      return status;
    }
  }
  const PlanKey key(call);
  const std::function<Status()> may_go_on = [this]() -> Status {
    if (!time_has_passed()) return {};
    return make_error(Code::timeout, [&] { return no_answer() + " was still planning its call"; });
  };
  const PlanMaker maker{.ranks = process->homes().ranks(),
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
  auto ready = std::make_unique<Ready>(asked);
  std::vector<RankPlan>& plans = (*prepared)->plan.rank;
  const auto self = static_cast<std::size_t>(rank);
  ready->messages = message_plan(plans[self], in_place_offset(**prepared, rank), ways);
  plans.clear();
  ready->prepared = std::move(*prepared);
  const auto operands = static_cast<std::size_t>(ready->prepared->plan.most_operands);
  if (operands_.size() < operands) operands_.resize(operands);
  lay_out_pieces(*ready);
  return ready;
}

Status Member::State::end_with(Status reason) noexcept {
  return goes_on(reason.code()) ? reason : process->end(thread, reason);
}

Status Member::State::run_displaced(const Call& given) {
  const auto plain = displaced_.plain(given, rank, process->homes().ranks());
  if (!plain.ok()) return plain.status();
  displaced_.pack_blocks();
  Status status = call(*plain);
  if (status.ok()) displaced_.unpack_blocks();
  return status;
}

// Returns the call with products as its input instead of in (Call::factor).
Result<Call> Member::State::multiplied(const Call& call) {
  if (Status status = check_factor(call); !status.ok()) return status;
  Call plain = call;
  plain.factor = nullptr;
  // An all-reduce stores the products in its output, so it is in place on all ranks alike.
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

Status Member::State::whole_call(const Call& given) {
  Status status = call(given);
  process->end_call(thread);
  if (process->leads(thread)) {
    if (status.ok()) status = wait_for_others();
    process->serve();
  }
  return status;
}

Status Member::State::call(const Call& call) {
  if (Status over = process->heard(thread); !over.ok()) return over;
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
  if (plans_.size() >= kMostPlans) {
    Status status = on_carrier([this] {
      plans_.clear();
      return Status();
    });
    if (!status.ok()) return end_with(std::move(status));
  }
  const auto found = find(call);
  if (!found.ok()) return end_with(found.status());
  Ready& ready = **found;
  const BufferRule& rule = ready.prepared->rules[static_cast<std::size_t>(rank)];
  if (!buffers_fit(rule, call.in, call.out)) return misfit(rule, call.in, call.out);
  Status status = run(ready, call);
  if (status.ok()) return status;
  cancel_wire(ready);
  return end_with(std::move(status));
}

Result<Addresses> Member::State::memory_of(const Ready& ready, const Call& call) {
  std::byte* scratch = nullptr;
  const std::size_t bytes = ready.lists + ready.addresses.size() * sizeof(std::byte*);
  if (NodeMemory* const memory = process->memory(); memory != nullptr) {
    const auto part = memory->part(mail_self_, bytes);
    if (!part.ok()) return part.status();
    scratch = *part;
  } else {
    if (scratch_.size() < bytes) {
      scratch_ = {};
      scratch_.resize(bytes);
    }
    scratch = scratch_.data();
  }
  return Addresses{static_cast<std::byte*>(const_cast<void*>(call.in)),
                   static_cast<std::byte*>(call.out), scratch};
}

Status Member::State::run(Ready& ready, const Call& call) {
  const auto memory = memory_of(ready, call);
  if (!memory.ok()) return memory.status();
  // Different calls must not receive each other's messages.
  const std::uint64_t print =
      splitmix(with_tag(ready.prepared->fingerprint, call.options.tag).bits);
  mark_ = static_cast<std::uint32_t>(print);
  under_way_ = 0;
  const auto base = static_cast<int>(print % static_cast<std::uint64_t>(tag_bases));
  Status bound =
      bind_requests(ready, *memory, base * BoundRequests::tags_of_call(process->homes()));
  if (!bound.ok()) return bound;
  const CallWork work{*memory, call.user_op, call.options.epilogue, ready.pieces.data()};
  for (const MessageStep& next : ready.messages.steps) {
    if (Status status = step(ready, next, work); !status.ok()) return status;
  }
  return {};
}

Status Member::State::step(Ready& ready, const MessageStep& step, const CallWork& work) {
  switch (step.kind) {
    case MessageStep::Kind::start:
      return start(ready, step.index, work);
    case MessageStep::Kind::wait:
      return wait(ready, step.index, work);
    case MessageStep::Kind::done:
      mail_->used(on_mail(ready.messages.parcels[static_cast<std::size_t>(step.index)].peer));
      return {};
    case MessageStep::Kind::work:
      break;
  }
  std::string why;
  const bool good = do_work(ready.messages, ready.prepared->plan, step.index, work, operands_, why);
  let_go_on();
  if (good) return {};
  const Op& op = ready.messages.work[static_cast<std::size_t>(step.index)].op;
  return make_error(Code::remote_error, [&] {
    return std::string("the ") + (op.code == OpCode::finish ? "epilogue" : "operation") +
           " of rank " + std::to_string(rank) + " threw: " + why;
  });
}

Status Member::State::start(Ready& ready, int parcel, const CallWork& work) {
  const Parcel& of = ready.messages.parcels[static_cast<std::size_t>(parcel)];
  const bool by_wire = of.way == Way::wire;
  if (of.sends) {
    ++(by_wire ? sent.messages : sent.messages_within);
    (by_wire ? sent.bytes : sent.bytes_within) += of.bytes;
  }
  return by_wire ? start_wire(ready, parcel) : post_pieces(ready, parcel, work);
}

Status Member::State::wait(Ready& ready, int parcel, const CallWork& work) {
  const Parcel& of = ready.messages.parcels[static_cast<std::size_t>(parcel)];
  const auto is_late = [&] { return late(ready, parcel); };
  if (of.way == Way::wire) {
    --under_way_;
    return wait_until([&](bool& done) { return test_wire(ready, parcel, done); }, is_late);
  }
  Status status = wait_until([&](bool& done) { return test_memory(ready, parcel, done); }, is_late);
  if (status.ok() && !of.sends) store_pieces(ready.messages, ready.prepared->plan, parcel, work);
  return status;
}

// If the message is missing but another one from that rank is there, the ranks' calls differ:
// mismatch.
Status Member::State::late(const Ready& ready, int parcel) const {
  const Parcel& of = ready.messages.parcels[static_cast<std::size_t>(parcel)];
  int other = 0;
  // With several threads per process the other message may belong to another rank.
  if (of.way == Way::wire && process->homes().most_threads() == 1) {
    MPI_Iprobe(of.peer, MPI_ANY_TAG, process->comm(), &other, MPI_STATUS_IGNORE);
  }
  return make_error(other != 0 ? Code::mismatch : Code::timeout, [&] {
    const std::string peer = std::to_string(of.peer);
    std::string text = no_answer() +
                       (of.sends ? " waits until rank " + peer + " receives its message"
                                 : " waits for rank " + peer) +
                       " in round " + std::to_string(of.round - 1) + " of " +
                       describe(ready.prepared->fingerprint) + " by " + ready.prepared->algorithm;
    if (other != 0) text += "; rank " + peer + " has sent a message of another call";
    return text;
  });
}

void Member::State::let_go_on() noexcept {
  if (process->leads(thread)) process->serve();
  // Any query makes MPI progress all pending communication.
  if (under_way_ > 0 && calls_mpi()) static_cast<void>(process->heard(thread));
}

Status Member::State::wait_for_others() {
  const std::uint32_t calls = process->calls_ended(thread);
  Status status = wait_until(
      [&](bool& done) {
        done = process->others_have_ended(calls);
        return Status();
      },
      [&] {
        return make_error(Code::timeout, [&] {
          return no_answer() +
                 " calls MPI for other ranks of its process, which have not ended "
                 "their calls";
        });
      });
  return end_with(std::move(status));
}

}  // namespace rankine::mpi
