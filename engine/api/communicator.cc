#include "engine/api/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <new>

#include "engine/api/agenda.h"
#include "engine/api/call_parameters.h"
#include "engine/api/choose.h"
#include "engine/api/communicator_state.h"
#include "engine/api/progress_thread.h"
#include "engine/api/rank_threads.h"
#include "engine/compile/compile.h"
#include "engine/network/wire.h"
#include "numa/cpu_budget.h"
#include "numa/pages.h"

namespace rankine {
namespace {

// Ops are made one by one, so the vectors have room to spare: give it back, then count.
std::size_t trim(Plan& plan) {
  std::size_t bytes = 0;
  for (RankPlan& rank : plan.rank) {
    rank.ops.shrink_to_fit();
    rank.operands.shrink_to_fit();
    rank.traffic.shrink_to_fit();
    bytes += sizeof(RankPlan) + rank.ops.capacity() * sizeof(Op) +
             rank.operands.capacity() * sizeof(Operand) + rank.traffic.capacity() * sizeof(Traffic);
  }
  return bytes;
}

// Those that are asked for, else the machine's, else the defaults.
Costs costs_for(const CommunicatorOptions& options) {
  if (options.costs) return *options.costs;
  return options.tuned ? machine_costs() : Costs();
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

}  // namespace

MailboxShape mailbox_shape(int ranks) {
  const auto slots_for = [](std::size_t payload) {
    return static_cast<std::uint32_t>(stride_for(payload));
  };
  if (ranks <= 2) return {kSlots, slots_for(2048)};
  if (ranks <= 4) return {kSlots, slots_for(1024)};
  if (ranks <= 8) return {kSlots, slots_for(512)};
  if (ranks <= 16) return {kSlots, slots_for(256)};
  if (ranks <= 32) return {kSlots, slots_for(64)};
  return {kSlots / 2, slots_for(kSmallPayload)};
}

namespace {

// A rank that spins on a hardware thread of its own takes turns with nobody.
WaitPolicy wait_policy_for(bool crowded, const Costs& costs) {
  WaitPolicy policy;
  policy.mode = crowded ? WaitPolicy::Mode::yield : WaitPolicy::Mode::spin;
  policy.probes = static_cast<std::uint32_t>(crowded ? costs.crowded_probes : costs.probes);
  policy.yields = static_cast<std::uint32_t>(costs.yields);
  policy.spin_ns = static_cast<std::int64_t>(costs.spin);
  return policy;
}

}  // namespace

WaitPolicy choose_wait_policy(int ranks, const Costs& costs) {
  return wait_policy_for(ranks > cpu_budget().cpus, costs);
}

std::string to_string(const WaitPolicy& policy) {
  const std::string probes = std::to_string(policy.probes) + " probes";
  switch (policy.mode) {
    case WaitPolicy::Mode::spin:
      return probes + ", spin " + std::to_string(policy.spin_ns / 1000) + " us, park";
    case WaitPolicy::Mode::yield:
      return probes + ", " + std::to_string(policy.yields) + " yields, park";
    case WaitPolicy::Mode::park:
      return probes + ", park";
  }
  return probes;
}

Status CommunicatorShared::provide_mailboxes(const Plan& plan) {
  for (Rank from = 0; from < plan.ranks; ++from) {
    for (const Traffic& traffic : plan.rank[static_cast<std::size_t>(from)].traffic) {
      if (traffic.sent == 0) continue;
      const auto to = static_cast<std::size_t>(traffic.peer);
      Mailbox& mailbox = mailboxes[static_cast<std::size_t>(from * ranks) + to];
      if (mailbox.slots != nullptr) continue;
      auto* slots =
          static_cast<std::byte*>(arenas[to].allocate(std::size_t{mail.slots} * mail.stride));
      // Credit is read by the sender, and written by the reader: on a line of its own and, as slots
      // are, with the rank that waits for it.
      void* credit = arenas[static_cast<std::size_t>(from)].allocate(sizeof(Counter));
      if (slots == nullptr || credit == nullptr) {
        return {Code::out_of_memory, "mailboxes of rank " + std::to_string(to) + ": " +
                                         std::to_string(std::size_t{mail.slots} * mail.stride) +
                                         " bytes"};
      }
      mailbox = {slots, mail.stride, new (credit) Counter, mail.slots};
      mailbox.credit->value.store(first_count, std::memory_order_relaxed);
      for (std::uint32_t i = 0; i < mail.slots; ++i) {
        (new (slots + std::size_t{i} * mail.stride) PostHeader)
            ->flag.store(first_count, std::memory_order_relaxed);
      }
    }
  }
  return {};
}

Status CommunicatorShared::provide_boards(const Plan& plan) {
  if (plan.transport != Transport::board) return {};
  const std::uint32_t stride = board_stride(board_bytes(ranks, costs));
  for (std::size_t r = 0; r < boards.size(); ++r) {
    if (boards[r].halves != nullptr) continue;
    auto* halves = static_cast<std::byte*>(arenas[r].allocate(2 * std::size_t{stride}));
    if (halves == nullptr) {
      return {Code::out_of_memory, "board of rank " + std::to_string(r) + ": " +
                                       std::to_string(2 * std::size_t{stride}) + " bytes"};
    }
    boards[r] = {halves, stride};
    for (const std::uint32_t number : {0U, 1U}) {
      (new (&boards[r].half(number)) PostHeader)
          ->flag.store(first_count, std::memory_order_relaxed);
    }
  }
  return {};
}

Status CommunicatorShared::may_go_on_planning(Waiter& waiter) const {
  if (crossbar.aborted()) return crossbar.reason();
  const std::int64_t now = now_ns();
  if (now < waiter.deadline(now)) return {};
  return make_error(Code::timeout, [&] {
    return "no answer within " + std::to_string(waiter.patience_ns() / 1'000'000) + " ms: rank " +
           std::to_string(waiter.rank) + " was still planning its call";
  });
}

// The call's schedule on our network: of M bytes, or where users give counts, of theirs.
Result<std::shared_ptr<const TimedSchedule>> CommunicatorShared::time(const CompileRequest& request,
                                                                      const Compiled& compiled,
                                                                      std::size_t m,
                                                                      Waiter& waiter) const {
  const bool equal =
      std::all_of(request.counts.begin(), request.counts.end(),
                  [&](std::size_t count) { return count == request.counts.front(); });
  std::vector<std::uint64_t> blocks;
  for (const BlockHome& block : compiled.layout.blocks) blocks.push_back(block.bytes);
  const auto pricing = equal ? clock->price(compiled.goal, m) : clock->price(blocks);
  if (!pricing.ok()) return pricing.status();
  return TimedSchedule::make(clock->schedule(*request.algorithm, request.params), compiled.goal,
                             clock->fabric(), *pricing, [&] { return may_go_on_planning(waiter); });
}

namespace {

// What a level of order asks of a plan.
struct OrderNeeds {
  std::optional<Order> order;
  bool rounds = false;             // else every plan keeps it
  std::optional<Bracket> bracket;  // none: any
  bool fixed = false;              // the choice follows from the call alone
};

Result<OrderNeeds> needs_of(const Call& call, std::optional<Order> order) {
  OrderNeeds needs;
  needs.order = order;
  needs.rounds =
      reduces(call.collective) && (call.user_op != nullptr || rounds(call.type, call.op));
  if (order == Order::group_invariant && reduces(call.collective) && call.op == ReduceOp::avg) {
    return invalid_argument(
        "order is group_invariant, operation is avg, which divides by the number of ranks; ask "
        "for a sum, and divide it");
  }
  if (!order || !needs.rounds) return needs;
  needs.fixed = *order == Order::repeatable;
  if (*order == Order::by_rank || *order == Order::size_invariant) needs.bracket = Bracket::flat;
  if (*order == Order::group_invariant) needs.bracket = Bracket::canonical;
  return needs;
}

// The levels that a plan has: what it promises beyond this call (repeatable, size_invariant) it
// does where it was asked to.
OrderSet orders_of(const OrderNeeds& needs, const Algorithm& line, const Brackets& brackets,
                   ReduceOp op) {
  OrderSet out;
  const bool exact = !needs.rounds;
  const bool bracketed = brackets.flat || brackets.canonical;
  out.add(Order::coherent, exact || bracketed || line.other_bits.empty());
  out.add(Order::repeatable, exact || needs.fixed || needs.bracket);
  out.add(Order::by_rank, exact || brackets.flat);
  out.add(Order::size_invariant, exact || needs.bracket);
  out.add(Order::group_invariant, (exact || brackets.canonical) && op != ReduceOp::avg);
  return out;
}

// By the first of these that can: the chosen one brings contributions together in another order, or
// in other brackets.
Result<Compiled> compile_another(CompileRequest& request, std::span<const Candidate> tried) {
  const Collective collective = request.algorithm->collective;
  for (const Candidate& one : tried) {
    request.algorithm = one.algorithm;
    request.params = one.params;
    if (one.algorithm->refusal(one.algorithm->only_taken(one.params))) continue;
    auto compiled = compile(request);
    if (compiled.ok() || compiled.status().code() != Code::invalid_argument) return compiled;
  }
  const std::string none = "no algorithm of " + std::string(name_of(collective)) + " among " +
                           std::to_string(request.params.ranks) + " ranks ";
  if (!request.commutative) {
    return invalid_argument("operation is not commutative" +
                            (request.bracket ? ", " + std::string(request.bracket_for) : "") +
                            "; " + none + "brings their contributions together in their order" +
                            (request.bracket ? " so" : ""));
  }
  return invalid_argument(std::string(request.bracket_for) + "; " + none +
                          "that can run here adds up their contributions in " +
                          std::string(in_words(*request.bracket)));
}

}  // namespace

Result<std::vector<Candidate>> CommunicatorShared::others_to_try(const Call& call,
                                                                 const CompileRequest& chosen,
                                                                 std::size_t m, const Costs& by,
                                                                 const std::vector<int>& fitting,
                                                                 Waiter& waiter) const {
  Params asked = params_of(call.options, ranks);
  asked.root = chosen.params.root;
  if (clock != nullptr) {
    return clock->candidates(call.collective, asked, m, [&] { return may_go_on_planning(waiter); });
  }
  std::vector<Candidate> out;
  const Bracket bracket = chosen.bracket.value_or(Bracket::flat);
  for (const Algorithm* line :
       lines_to_try(bracket, call.collective, ranks, m, chosen.buffers, by)) {
    Params params = line->only_taken(asked);
    if (asked.segments == 0) params.segments = choose_segments(*line, ranks, m, by);
    params.root = asked.root;
    take_levels(*line, fitting, params);
    Candidate& one = out.emplace_back();
    one.algorithm = line;
    one.params = std::move(params);
  }
  return out;
}

Result<PreparedPtr> CommunicatorShared::make(const PlanKey& key, Waiter& waiter) {
  const Call& call = key.call();
  const CallOptions& options = call.options;
  Status status = check_call(call, ranks);
  if (!status.ok()) return status;
  CompileRequest request;
  request.counts = natural_counts(call, ranks);
  std::size_t elements = 0;
  for (const std::size_t n : request.counts) elements += n;
  // M of all_to_all is one rank's send buffer.
  const std::size_t senders =
      call.collective == Collective::all_to_all ? static_cast<std::size_t>(ranks) : 1;
  const std::size_t m = elements / senders * element_bytes(call);
  const Algorithm* asked = forced.algorithm[static_cast<std::size_t>(call.collective)];
  if (!options.algorithm.empty()) {
    asked = find_algorithm(call.collective, options.algorithm);
    if (asked == nullptr) {
      return invalid_argument("algorithm is '" + std::string(options.algorithm) + "'; " +
                              std::string(name_of(call.collective)) + " has " +
                              algorithm_names(call.collective));
    }
  }
  const auto needs = needs_of(call, options.order ? options.order : order);
  if (!needs.ok()) return needs.status();
  // Repeatable calls forget what was measured here.
  const Costs chosen_by = needs->fixed ? Costs() : costs;
  const std::vector<int> fitting_levels = needs->fixed ? std::vector<int>() : levels;
  request.bracket = needs->bracket;
  const std::string bracket_for =
      needs->order ? "order is " + std::string(name_of(*needs->order)) : "";
  request.bracket_for = bracket_for;
  request.buffers = key.in_place() ? Buffers::in_place : Buffers::apart;
  Params& params = request.params;
  params = params_of(options, ranks);
  params.root = key.root();
  params.peer = key.peer();
  if (clock != nullptr) {
    if (asked != nullptr && options.algorithm.empty()) params = asked->only_taken(params);
    const auto cheapest = clock->cheapest(call.collective, asked, params, m,
                                          [&] { return may_go_on_planning(waiter); });
    if (!cheapest.ok()) return cheapest.status();
    request.algorithm = cheapest->algorithm;
    params = cheapest->params;
  } else {
    request.algorithm = asked != nullptr ? asked
                                         : choose(call.collective, ranks, m, request.buffers,
                                                  needs->fixed ? nullptr : tuning, chosen_by)
                                               .algorithm;
    if (options.algorithm.empty()) params = request.algorithm->only_taken(params);
    if (options.segments == 0) {
      params.segments = choose_segments(*request.algorithm, ranks, m, chosen_by);
    }
  }
  params.root = key.root();  // also of those that take none: it is 0 then
  params.peer = key.peer();
  take_levels(*request.algorithm, fitting_levels, params);
  request.type = call.type;
  request.op = call.op;
  request.element_bytes = element_bytes(call);
  request.row_elements = key.row_elements();
  request.commutative = call.user_op == nullptr || call.user_op->commutative;
  request.transport = forced.transport;
  if (options.transport) request.transport = *options.transport;
  request.slot_payload = payload_of(mail.stride);
  request.board_bytes = board_bytes(ranks, costs);
  request.costs = costs;
  request.mailbox_capacity = static_cast<int>(mail.slots / 2);
  request.limits = {.bytes = most_plan_bytes,
                    .interrupted = [&] { return may_go_on_planning(waiter); }};
  auto compiled = compile(request);
  if ((!request.commutative || request.bracket) && asked == nullptr && !compiled.ok() &&
      compiled.status().code() == Code::invalid_argument) {
    const auto others = others_to_try(call, request, m, chosen_by, fitting_levels, waiter);
    if (!others.ok()) return others.status();
    compiled = compile_another(request, *others);
  }
  if (!compiled.ok()) return compiled.status();
  const OrderSet orders = orders_of(*needs, *request.algorithm, compiled->brackets, call.op);
  if (needs->order && !orders.has(Order::coherent)) {
    return invalid_argument(bracket_for + ", algorithm is " + std::string(request.algorithm->name) +
                            ": " + std::string(request.algorithm->other_bits));
  }
  auto prepared = std::make_unique<Prepared>(key);
  prepared->plan = std::move(compiled->plan);
  prepared->algorithm = request.algorithm->name.data();
  prepared->parameters = request.algorithm->text_of(params);
  prepared->orders = orders;
  if (clock != nullptr) {
    auto timed = time(request, *compiled, m, waiter);
    if (!timed.ok()) return timed.status();
    prepared->timed = std::move(*timed);
  }
  prepared->rules = buffer_rules(compiled->layout, compiled->goal);
  for (std::size_t r = 0; r < prepared->rules.size(); ++r) {
    prepared->plan.rank[r].input_bytes = prepared->rules[r].input_bytes;
    prepared->plan.rank[r].output_bytes = prepared->rules[r].output_bytes;
  }
  prepared->plan.all_meet = call.counts.empty() && all_hear_from_all(call.collective);
  std::uint64_t hash = 0;
  const auto mix = [&hash](auto n) { hash = mixed(hash, static_cast<std::uint64_t>(n)); };
  for (const std::size_t n : request.counts) mix(n);
  if (needs->order) mix(1 + static_cast<int>(*needs->order));
  if (request.row_elements > 0) mix(request.row_elements * request.element_bytes);
  for (const Parameter& row : parameters()) {
    if (row.name == "root") continue;  // the fingerprint has it
    if (row.number != nullptr) {
      mix(params.*row.number);
    } else {
      mix((params.*row.list).size());
      for (const int n : params.*row.list) mix(n);
    }
  }
  const auto line = static_cast<int>(request.algorithm - catalogue().data());
  prepared->fingerprint = make_fingerprint(
      call.collective, call.type, reduces(call.collective) ? call.op : ReduceOp::sum,
      key.in_place(), prepared->plan.transport, key.root(), line, hash);
  prepared->bytes = sizeof(Prepared) + prepared->key.bytes() +
                    prepared->rules.capacity() * sizeof(BufferRule) + trim(prepared->plan) +
                    (prepared->timed != nullptr ? prepared->timed->bytes() : 0);
  plan_bytes.fetch_add(prepared->bytes, std::memory_order_relaxed);  // pairs with nothing: a count
  return PreparedPtr(prepared.release(), [&count = plan_bytes](const Prepared* plan) {
    count.fetch_sub(plan->bytes, std::memory_order_relaxed);  // likewise
    delete plan;
  });
}

Status CommunicatorShared::lock_for_call(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  lock = std::unique_lock(mutex, std::try_to_lock);
  std::int64_t nap_ns = 10'000;
  while (!lock.owns_lock()) {
    const std::int64_t now = now_ns();
    if (now >= waiter.deadline(now)) {
      crossbar.abort(make_error(Code::timeout, [&] {
        return "no answer within " + std::to_string(waiter.patience_ns() / 1'000'000) +
               " ms: another rank is still planning its call";
      }));
    }
    if (crossbar.aborted()) return crossbar.reason();
    sleep_ns(nap_ns);
    nap_ns = std::min<std::int64_t>(2 * nap_ns, 1'000'000);
    static_cast<void>(lock.try_lock());
  }
  return {};
}

Result<PreparedPtr> CommunicatorShared::prepare(const PlanKey& key, Waiter& waiter) {
  const std::uint64_t hash = key.hash();
  if (PreparedPtr found = plans.find(key, hash, waiter.rank)) return found;
  // One rank compiles, the others that want the same wait for it here.
  std::unique_lock<std::mutex> lock;
  if (Status locked = lock_for_call(lock, waiter); !locked.ok()) return locked;
  if (PreparedPtr found = plans.find(key, hash, waiter.rank)) return found;
  if (refused != nullptr && refused->key.view() == key) return refused->why;
  auto made = make(key, waiter);
  if (!made.ok()) {
    if (goes_on(made.status().code())) refused.reset(new Refused{OwnedKey(key), made.status()});
    return made;
  }
  if (clock != nullptr) clock->clock().provide(*(*made)->timed);
  Status status = provide_mailboxes((*made)->plan);
  if (status.ok()) status = provide_boards((*made)->plan);
  if (!status.ok()) return status;
  plans.insert(*made);
  return made;
}

CommunicatorShared::~CommunicatorShared() {
  crossbar.depend_no_more();
  // The process may end next. No promise is kept waiting any more, but a disk may stand still.
  constexpr std::chrono::seconds kPatience{2};
  record_file.wait(kPatience);
  // A program that does not know of its network cannot tell how well its clock was kept.
  if (!network_is_environments || clock == nullptr) return;
  try {
    if (const std::string kept = clock->how_well_kept(); !kept.empty()) {
      std::fprintf(stderr, "rankine: %s\n", kept.c_str());
    }
  } catch (const std::bad_alloc&) {  // it is a remark, and nobody is here to be told
  }
}

Result<std::unique_ptr<Communicator>> Communicator::create(const CommunicatorOptions& options) try {
  if (Status status = check_communicator(options); !status.ok()) return status;
  const auto environment = read_environment();
  if (!environment.ok()) return environment.status();
  const Costs costs = costs_for(options);
  WaitPolicy policy = choose_wait_policy(options.ranks, costs);
  Crowd crowd;
  if (environment->wait) policy.mode = *environment->wait;
  if (options.wait) policy = *options.wait;
  if (!environment->wait && !options.wait) {
    crowd = {&RankThreads::count(), cpu_budget().cpus, wait_policy_for(true, costs)};
  }
  const auto& network = options.network != nullptr ? options.network : environment->network;
  std::unique_ptr<CallClock> clock;
  if (network != nullptr) {
    auto made = CallClock::make(*network, options.ranks, policy);
    if (!made.ok()) return made.status();
    clock = std::move(*made);
  }
  auto shared = make_shared_at_home<CommunicatorShared>(options, costs, policy, crowd, *environment,
                                                        std::move(clock));
  if (options.progress_core && shared->clock == nullptr) {
    auto progress = ProgressThread::start(*options.progress_core, shared->crossbar);
    if (!progress.ok()) return progress.status();
    shared->progress = std::move(*progress);
  }
  return std::unique_ptr<Communicator>(new Communicator(std::move(shared)));
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [&] {
    return "a communicator of " + std::to_string(options.ranks) + " ranks";
  });
}

Communicator::Communicator(std::shared_ptr<CommunicatorShared> shared)
    : shared_(std::move(shared)) {}
Communicator::~Communicator() = default;

int Communicator::ranks() const { return shared_->ranks; }

Result<std::unique_ptr<Member>> Communicator::join(Rank rank) try {
  if (shared_->forked()) return forked_status();
  if (rank < 0 || rank >= shared_->ranks) {
    return invalid_argument("rank is " + std::to_string(rank) + "; allowed are 0 to " +
                            std::to_string(shared_->ranks - 1));
  }
  const std::lock_guard lock(shared_->mutex);
  if (shared_->joined[static_cast<std::size_t>(rank)]) {
    return invalid_argument("rank is " + std::to_string(rank) +
                            ", which has joined before; a rank joins once");
  }
  std::unique_ptr<Member> member(new Member(shared_, rank, shared_->new_agenda()));
  shared_->joined[static_cast<std::size_t>(rank)] = true;
  return member;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory,
                    [&] { return "the member of rank " + std::to_string(rank); });
}

std::shared_ptr<Agenda> CommunicatorShared::new_agenda() const {
  auto agenda = std::make_shared<Agenda>(progress.get());
  if (progress != nullptr) progress->serve(agenda);
  return agenda;
}

template <class Act>
void CommunicatorShared::at_all_ends_of(Rank rank, const Act& act) {
  act(crossbar, rank);
  const std::lock_guard lock(mutex);
  for (const auto& [ends, pair] : pairs) {
    if (ends.first == rank) act(pair->crossbar, 0);
    if (ends.second == rank) act(pair->crossbar, 1);
  }
}

void CommunicatorShared::leave(Rank rank) {
  at_all_ends_of(rank, [](Crossbar& where, Rank r) { where.leave(r); });
}

void CommunicatorShared::come_back(Rank rank) {
  at_all_ends_of(rank, [](Crossbar& where, Rank r) { where.come_back(r); });
}

void CommunicatorShared::end_with(Status reason) {
  // After an abort nothing goes on, so no call may say that it does.
  const bool is_end = !goes_on(reason.code()) && static_cast<int>(reason.code()) < kCodes;
  if (!is_end) reason = Status(Code::aborted, reason.text());
  if (!forked()) crossbar.abort(std::move(reason));
}

void Communicator::abort(std::string_view why) { abort(Status(Code::aborted, std::string(why))); }
void Communicator::abort(Status reason) { shared_->end_with(std::move(reason)); }
void Communicator::abort() noexcept { shared_->crossbar.abort_now(); }

Status CommunicatorShared::health() const {
  if (forked()) return forked_status();
  return crossbar.aborted() ? crossbar.reason() : Status();
}

Status Communicator::health() const { return shared_->health(); }

FlightRecord CommunicatorShared::flight_record() {
  FlightRecord out;
  for (Rank r = 0; r < ranks; ++r) {
    const std::uint64_t number =
        crossbar.record(r).number.load(std::memory_order_acquire);  // pairs with announce()
    FlightRecord::OfRank rank{crossbar.state_of(r).text,
                              recorder.last_calls(r, number == 0 ? 0 : number - first_count),
                              crossbar.slow_waits(r).last()};
    for (SlowWait& wait : rank.waits) wait.call -= first_count;
    out.ranks.push_back(std::move(rank));
  }
  out.health = health();
  return out;
}

std::string Communicator::flight_record() const {
  std::string text;
  write_json(shared_->flight_record(), [&](std::string_view piece) { text += piece; });
  return text;
}

void CommunicatorShared::leave_flight_record() noexcept {
  // Peers that are stopped may have taken 0.7 of the second (Crossbar::kQuietNs).
  constexpr std::chrono::milliseconds kPatience{150};
  record_file.leave([this] { return flight_record(); });
  record_file.wait(kPatience);
}

RankMemory Communicator::memory_of(Rank rank) const {
  // In a forked child the lock may be held for ever.
  if (rank < 0 || rank >= shared_->ranks || shared_->forked()) return {};
  const auto i = static_cast<std::size_t>(rank);
  const std::lock_guard lock(shared_->mutex);
  const Arena& arena = shared_->arenas[i];
  const ScratchNote& scratch = shared_->scratch[i];
  RankMemory out;
  out.lines = {sizeof(RankLines), {shared_->lines.range(rank)}};
  out.mailboxes = {whole_pages(arena.bytes_used()), arena.chunks()};
  for (Rank from = 0; from < shared_->ranks; ++from) {
    const auto pair = static_cast<std::size_t>(from * shared_->ranks) + i;
    if (shared_->mailboxes[pair].slots != nullptr) ++out.senders;
  }
  out.scratch.bytes = scratch.range.bytes;
  if (scratch.range.bytes > 0) out.scratch.ranges = {scratch.range};
  for (const Enforcement& one : {shared_->lines.binding(rank), arena.binding(), scratch.binding}) {
    out.binding.add(one);
  }
  out.huge_pages = scratch.huge_pages;
  for (const Enforcement& one : {shared_->lines.locking(), arena.locking(), scratch.locking}) {
    out.locking.add(one);
  }
  if (const auto payloads = shared_->payloads[i].lock()) payloads->add_to(out);
  return out;
}

SharedMemory Communicator::shared_memory() const {
  if (shared_->forked()) return {};
  const std::lock_guard lock(shared_->mutex);
  return {.plans = shared_->plan_bytes.load(std::memory_order_relaxed),
          .flight_record = shared_->recorder.bytes() +
                           static_cast<std::size_t>(shared_->ranks) * sizeof(SlowWaits),
          .tables = shared_->member_bytes.load(std::memory_order_relaxed) +
                    shared_->mailboxes.capacity() * sizeof(Mailbox) +
                    shared_->boards.capacity() * sizeof(Board) + shared_->plans.table_bytes() +
                    (shared_->clock != nullptr ? shared_->clock->clock().bytes() : 0)};
}

std::size_t Communicator::memory_bytes() const {
  const SharedMemory all = shared_memory();
  std::size_t bytes = all.plans + all.flight_record + all.tables;
  for (Rank r = 0; r < shared_->ranks; ++r) {
    const RankMemory mine = memory_of(r);
    bytes += mine.lines.bytes + mine.mailboxes.bytes + mine.scratch.bytes + mine.payloads.bytes;
  }
  return bytes;
}

std::size_t Communicator::cached_plans() const {
  if (shared_->forked()) return 0;
  const std::lock_guard lock(shared_->mutex);
  return shared_->plans.plans();
}

const WaitPolicy& Communicator::wait_policy() const { return shared_->crossbar.policy(); }
std::optional<Order> Communicator::order() const { return shared_->order; }

NetworkReport Communicator::network_report() const {
  return shared_->clock != nullptr && !shared_->forked() ? shared_->clock->report()
                                                         : NetworkReport();
}

void Communicator::restart_model_time() {
  if (shared_->clock != nullptr && !shared_->forked()) shared_->clock->clock().restart();
}

}  // namespace rankine
