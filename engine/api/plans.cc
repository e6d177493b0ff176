#include "engine/api/plans.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/communicator_state.h"
#include "engine/api/tuning/choose.h"
#include "engine/base/status.h"
#include "engine/compile/compile.h"
#include "engine/compile/passes.h"
#include "engine/network/predict.h"
#include "engine/run/wait.h"

namespace rankine {

PlanTable::~PlanTable() {
  forget_all();
  delete_retired();
}

CachedPlanPtr PlanTable::find(const PlanKey& key, std::uint64_t hash, Rank rank) const noexcept {
  std::atomic<bool>& reading = reading_[static_cast<std::size_t>(rank)].now;
  // Sequentially consistent, like the load of the head: pairs with forget_all() and free_retired().
  // If this rank finds a node, the node was not yet retired when free_retired() could have seen the
  // rank not reading.
  reading.store(true, std::memory_order_seq_cst);
  CachedPlanPtr found;
  for (const Node* node = heads_[hash % kHeads].load(std::memory_order_seq_cst); node != nullptr;
       node = node->next) {
    if (node->cached->key.hash() == hash && node->cached->key.view() == key) {
      found = node->cached;
      break;
    }
  }
  reading.store(false, std::memory_order_release);  // pairs with free_retired()'s load
  return found;
}

void PlanTable::insert(CachedPlanPtr cached) {
  free_retired();
  if (plans_ >= kMostPlans || bytes_ + cached->bytes > kMostBytes) forget_all();
  std::atomic<Node*>& head = heads_[cached->key.hash() % kHeads];
  const std::size_t bytes = cached->bytes;
  // Relaxed: only the lock's holder changes heads. Release: pairs with find()'s load.
  Node* const next = head.load(std::memory_order_relaxed);
  head.store(new Node{std::move(cached), next}, std::memory_order_release);
  plans_ += 1;
  bytes_ += bytes;
}

void PlanTable::forget_all() noexcept {
  for (std::atomic<Node*>& head : heads_) {
    // Sequentially consistent: pairs with find().
    for (Node* node = head.exchange(nullptr, std::memory_order_seq_cst); node != nullptr;
         node = node->next) {
      node->next_retired = retired_;
      retired_ = node;
    }
  }
  plans_ = bytes_ = 0;
}

void PlanTable::free_retired() noexcept {
  if (retired_ == nullptr) return;
  // A rank that reads now may have found a retired node; a rank that begins to read later finds
  // none. A rank that is stopped while it reads keeps the nodes until it continues.
  const bool none_reads = std::none_of(reading_.begin(), reading_.end(), [](const Reading& one) {
    return one.now.load(std::memory_order_seq_cst);  // pairs with find()
  });
  if (none_reads) delete_retired();
}

void PlanTable::delete_retired() noexcept {
  while (retired_ != nullptr) delete std::exchange(retired_, retired_->next_retired);
}

RankPlans::Slot* RankPlans::free_slot(std::uint64_t hash) noexcept {
  Slot* set = &slots_[(hash & (slots_.size() / kWays - 1)) * kWays];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].cached == nullptr) return &set[i];
  }
  return nullptr;
}

RankPlans::Slot* RankPlans::look_up(const PlanKey& key) noexcept {
  const std::uint64_t hash = key.hash();
  Slot* set = &slots_[(hash & (slots_.size() / kWays - 1)) * kWays];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].hash == hash && set[i].cached != nullptr && set[i].cached->key.view() == key) {
      return latest_ = &set[i];
    }
  }
  return nullptr;
}

RankPlans::Slot& RankPlans::insert(CachedPlanPtr cached) {
  const std::uint64_t hash = cached->key.hash();
  latest_ = nullptr;  // slots may move
  Slot* slot = free_slot(hash);
  while (slot == nullptr && slots_.size() < kMostSets * kWays) {
    RankPlans larger;
    larger.slots_ = std::vector<Slot>(2 * slots_.size());
    // The plans of one old set share one of two new sets, so every plan finds room.
    for (Slot& old : slots_) {
      if (old.cached != nullptr) *larger.free_slot(old.hash) = std::move(old);
    }
    slots_ = std::move(larger.slots_);
    slot = free_slot(hash);
  }
  if (slot == nullptr) {
    slot = &slots_[(hash & (slots_.size() / kWays - 1)) * kWays + next_victim_++ % kWays];
  }
  const CachedPlan* plan = cached.get();
  *slot = {hash, CachedPlanPtr(plan, [all = std::move(cached)](const CachedPlan*) {})};
  return *slot;
}

void RankPlans::clear() {
  latest_ = nullptr;
  slots_ = std::vector<Slot>(kLeastSets * kWays);
  next_victim_ = 0;
}

// PlanMaker: chooses, compiles, and on a modelled network times the plan of a call.

namespace {

// Ops are appended one by one, so the vectors have spare room. Release it, then count the bytes.
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

}  // namespace

Status CommunicatorShared::may_go_on_planning(Waiter& waiter) const {
  if (rank_control.aborted()) return rank_control.reason();
  if (is_interrupted()) {
    return make_error(Code::aborted, [&] {
      return interrupted(rank_control.name(waiter.rank) + " was still planning its call");
    });
  }
  const std::int64_t now = now_ns();
  if (now < waiter.deadline(now)) return {};
  return make_error(Code::timeout, [&] {
    return no_answer_within(waiter.call_timeout_ns(),
                            rank_control.name(waiter.rank) + " was still planning its call");
  });
}

// The call's schedule on the communicator's network: for M bytes, or for the counts of the call.
Result<std::shared_ptr<const TimedSchedule>> PlanMaker::time(const CompileRequest& request,
                                                             const Compiled& compiled,
                                                             std::size_t m) const {
  const bool equal =
      std::all_of(request.counts.begin(), request.counts.end(),
                  [&](std::size_t count) { return count == request.counts.front(); });
  std::vector<std::uint64_t> blocks;
  const Layout& moved = compiled.in_f32 ? *compiled.in_f32 : compiled.layout;
  for (const BlockHome& block : moved.blocks) blocks.push_back(block.bytes);
  m = m / compiled.layout.element_bytes * moved.element_bytes;
  const auto pricing = equal ? network->price(compiled.goal, m) : network->price(blocks);
  if (!pricing.ok()) return pricing.status();
  return TimedSchedule::make(network->schedule(*request.algorithm, request.params), compiled.goal,
                             network->fabric(), *pricing, may_go_on);
}

namespace {

// The demands of a level of order on a plan.
struct OrderNeeds {
  std::optional<Order> order;
  bool rounds = false;             // false: every plan keeps the order
  std::optional<Bracket> bracket;  // none: any bracket
  bool fixed = false;              // the choice may depend only on the call
  bool once = false;               // sums are computed in f32 and rounded once
  bool may_be_tp = true;           // the call fits tp_invariant, if its additions are a binary tree
};

Result<OrderNeeds> needs_of(const Call& call, std::optional<Order> order, int ranks) {
  OrderNeeds needs;
  needs.order = order;
  needs.rounds =
      reduces(call.collective) && (call.user_op != nullptr || rounds(call.type, call.op));
  const bool is_tree = order == Order::group_invariant || order == Order::tp_invariant;
  if (is_tree && reduces(call.collective) && call.op == ReduceOp::avg) {
    return invalid_argument("order is " + std::string(name_of(*order)) +
                            ", operation is avg, which divides by the number of ranks; ask for a "
                            "sum, and divide it");
  }
  const bool is_narrow =
      reduces(call.collective) && call.user_op == nullptr && adds_up_in_f32(call.type, call.op);
  needs.once = is_narrow && !is_tree;
  const bool divides = ranks <= kTpLeaves && kTpLeaves % ranks == 0;
  needs.may_be_tp = divides && !is_narrow;
  if (!order || !needs.rounds) return needs;
  if (order == Order::tp_invariant && !divides) {
    return invalid_argument("order is tp_invariant, ranks are " + std::to_string(ranks) +
                            "; allowed are 1, 2, 4 and 8: split the ranks into such groups, or ask "
                            "for group_invariant");
  }
  if (order == Order::tp_invariant && is_narrow) {
    return invalid_argument("order is tp_invariant, type is " + std::string(name_of(call.type)) +
                            "; allowed are f32 and f64, because partial sums must not be rounded: "
                            "pass them as f32, and round the result, for example by an epilogue");
  }
  needs.fixed = *order == Order::repeatable;
  if (*order == Order::by_rank || *order == Order::size_invariant) needs.bracket = Bracket::flat;
  if (is_tree) needs.bracket = Bracket::canonical;
  return needs;
}

// The levels that a plan keeps. repeatable, size_invariant and tp_invariant promise more than one
// call can show, so a plan has them only if the call asked for brackets.
OrderSet orders_of(const OrderNeeds& needs, const Algorithm& entry, const Brackets& brackets,
                   ReduceOp op) {
  OrderSet out;
  const bool exact = !needs.rounds;
  const bool bracketed = brackets.flat || brackets.canonical;
  out.add(Order::coherent, exact || bracketed || entry.other_bits.empty());
  out.add(Order::repeatable, exact || needs.fixed || needs.bracket);
  out.add(Order::by_rank, exact || brackets.flat);
  out.add(Order::size_invariant, exact || needs.bracket);
  const bool is_tree = (exact || brackets.canonical) && op != ReduceOp::avg;
  out.add(Order::group_invariant, is_tree);
  out.add(Order::tp_invariant, is_tree && (exact || (needs.bracket && needs.may_be_tp)));
  return out;
}

// Compiles with the first of these algorithms that can. The chosen algorithm combines contributions
// in another order or in other brackets.
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
                            "; " + none + "keeps the order of their contributions" +
                            (request.bracket ? " in these brackets" : ""));
  }
  return invalid_argument(std::string(request.bracket_for) + "; " + none +
                          "that can run here adds up their contributions in " +
                          std::string(in_words(*request.bracket)));
}

// Ranks reach private buffers in place by system calls.
bool reads_or_stores(Form form) { return form == Form::reads || form == Form::stores; }

// Processes try single copies from this part of Costs::private_min_bytes on.
constexpr std::size_t kTriedEarlier = 16;

bool are_private(const CompileRequest& request) { return request.staged || request.reaches; }

bool is_refused(const Result<Compiled>& compiled) {
  return !compiled.ok() && compiled.status().code() == Code::invalid_argument;
}

}  // namespace

Result<std::vector<Candidate>> PlanMaker::further_candidates(
    const Call& call, const CompileRequest& chosen, std::size_t m, const Costs& by,
    const std::vector<int>& fitting) const {
  Params asked = params_of(call.options, ranks);
  asked.root = chosen.params.root;
  if (network != nullptr) return network->candidates(call.collective, asked, m, may_go_on);
  std::vector<Candidate> out;
  const Bracket bracket = chosen.bracket.value_or(Bracket::flat);
  for (const Algorithm* entry :
       lines_to_try(bracket, call.collective, ranks, m, chosen.buffers, by)) {
    Params params = entry->only_taken(asked);
    if (asked.segments == 0) params.segments = choose_segments(*entry, ranks, m, by);
    params.root = asked.root;
    take_levels(*entry, fitting, params);
    Candidate& one = out.emplace_back();
    one.algorithm = entry;
    one.params = std::move(params);
  }
  return out;
}

// For a call that names no algorithm: compiles the fastest algorithm that adds in f32 and rounds
// once.
Result<Compiled> PlanMaker::compile_once(const Call& call, CompileRequest& request, std::size_t m,
                                         const Costs& by, const std::vector<int>& fitting) const {
  const Rank root = request.params.root;
  const auto take = [&request, root](const Candidate& one) {
    request.algorithm = one.algorithm;
    request.params = one.params;
    request.params.root = root;
  };
  // The compiled plan shows if an algorithm is one fold and moves no more bytes than its type has.
  const auto compile_one_fold = [&request] {
    request.bracket = Bracket::flat;
    auto compiled = compile(request);
    request.bracket.reset();
    return compiled;
  };
  auto compiled = compile_one_fold();
  if (!is_refused(compiled)) return compiled;
  Candidate chosen;
  chosen.algorithm = request.algorithm;
  chosen.params = request.params;
  if (network != nullptr) {
    Params asked = params_of(call.options, ranks);
    asked.root = root;
    const auto others = network->candidates(call.collective, asked, m, may_go_on);
    if (!others.ok()) return others.status();
    const auto wide = network->candidates(call.collective, asked,
                                          m / element_bytes(call) * sizeof(float), may_go_on);
    if (!wide.ok()) return wide.status();
    if (!wide->empty()) chosen = wide->front();
    for (const Candidate& one : *others) {
      if (one.expected() > chosen.expected()) break;
      take(one);
      compiled = compile_one_fold();
      if (!is_refused(compiled)) return compiled;
    }
  } else if (one_fold_is_faster(call.collective, ranks, m, element_bytes(call), by)) {
    request.bracket = Bracket::flat;
    const auto others = further_candidates(call, request, m, by, fitting);
    request.bracket.reset();
    if (!others.ok()) return others.status();
    for (const Candidate& one : *others) {
      if (one.algorithm->refusal(one.algorithm->only_taken(one.params))) continue;
      take(one);
      compiled = compile_one_fold();
      if (!is_refused(compiled)) return compiled;
    }
  }
  take(chosen);
  return compile(request);
}

CompileRequest PlanMaker::request_for(Form form, const CompileRequest& first, std::size_t m) const {
  CompileRequest other = first;
  other.algorithm = &algorithm_of(form, *first.algorithm, first.buffers);
  other.params = other.algorithm->only_taken(first.params);
  other.transport = form == Form::posts ? Transport::board : Transport::direct;
  other.staged = form == Form::stages;
  other.reaches = are_private(first) && reads_or_stores(form);
  if (other.reaches) {
    other.costs = private_costs(costs);
  } else if (other.staged || are_private(first)) {
    other.costs = staged_costs(costs);
  }
  other.pushes = other.stores = stores_results(form);
  other.costs.split_copies_min_bytes = other.stores ? kCacheLine : m + 1;
  other.costs.stream_min_total_bytes =
      form == Form::streams ? 0 : std::numeric_limits<std::size_t>::max();
  if (form == Form::stores && !other.reaches &&
      first.algorithm->collective != Collective::broadcast)
    other.costs.claim_copy_min_bytes = other.costs.plain_push_max_bytes = m + 1;
  // The sum by rank; other sums have other bits.
  other.bracket = Bracket::flat;
  return other;
}

Status PlanMaker::add_forms(const CompileRequest& request, std::size_t m, bool reaches,
                            Compiled& compiled) const {
  const Collective collective = request.algorithm->collective;
  const auto trials = trial_class_of(collective, ranks, m, request.buffers, request.costs);
  // An exchange of few bytes takes less time than a choice.
  if (!trials || (m <= kMostJoined && is_exchange(compiled.plan)) || network != nullptr ||
      wire != nullptr || compiled.in_f32) {
    return {};
  }
  const bool is_private = are_private(request);
  if (is_private && m < static_cast<std::size_t>(ranks) * costs.stage_stream_min_bytes) return {};
  const Form first = form_of(compiled.plan);
  std::vector<FormPlan> plans;
  for (std::size_t i = 0; i < kForms; ++i) {
    const auto form = static_cast<Form>(i);
    if (form == first) continue;
    if (is_private &&
        (reads_or_stores(form) ? !reaches : form == Form::claims || form == Form::streams))
      continue;
    // Data too large for the boards are posted in scratch, through the caches.
    const bool in_scratch = is_private && form == Form::posts;
    CompileRequest other = request_for(in_scratch ? Form::stages : form, request, m);
    // Among more ranks, each would read all data of all.
    if (in_scratch && ranks == 2)
      other.algorithm = &algorithm_of(Form::posts, *request.algorithm, request.buffers);
    auto second = compile(other);
    if (!second.ok() && !is_refused(second)) return second.status();
    if (!second.ok() || compiled.brackets.flat != second->brackets.flat) continue;
    // A broadcast's first form claims one half; its root claims all if it stores all.
    const bool claims = collective == Collective::broadcast || is_private;
    const Form made = form_of(second->plan);
    if (made == form || in_scratch || (claims && form == Form::stores && made == Form::claims))
      plans.push_back({form, std::move(second->plan)});
  }
  if (plans.empty()) return {};
  plans.insert(plans.begin(), {first, std::move(compiled.plan)});
  compiled.plan = with_forms(std::move(plans), *trials, m);
  return {};
}

// Part of the hash that ranks compare.
constexpr std::uint64_t kLends = 0x6c656e6473;

// True if the plan of a single rank copies all of its input to the same place of its output, or has
// them in one place, and does nothing else.
bool only_copies(const Plan& plan, const BufferRule& rule, bool in_place) {
  const RankPlan& only = plan.rank.front();
  if (plan.ranks != 1 || rule.input_bytes != rule.output_bytes) return false;
  if (only.ops.size() == 1) return in_place;
  if (only.ops.size() != 2 || only.operands.size() != 1) return false;
  const Op& op = only.ops.front();
  const Operand& from = only.operands.front();
  return op.code == OpCode::fold && (op.flags & ~(kDivides | kOnlyIfMoved)) == 0 &&
         op.memory == Memory::output && op.offset == 0 && op.bytes == rule.output_bytes &&
         from.memory == Memory::input && from.offset == 0;
}

Result<std::unique_ptr<CachedPlan>> PlanMaker::make(const PlanKey& key) const {
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
    asked = find_algorithm(call.collective, options.algorithm, algorithms);
    if (asked == nullptr) {
      return invalid_argument("algorithm is '" + std::string(options.algorithm) + "'; " +
                              std::string(name_of(call.collective)) + " has " +
                              algorithm_names(call.collective));
    }
  }
  const auto needs = needs_of(call, options.order ? options.order : order, ranks);
  if (!needs.ok()) return needs.status();
  const bool lends = processes != nullptr && processes->have_payloads() && key.shared_payloads();
  request.transport = forced.transport;
  if (options.transport) request.transport = *options.transport;
  const std::size_t part =
      call.collective == Collective::broadcast ? m : m / static_cast<std::size_t>(ranks);
  // In place, an all-to-all copies its inputs first, so staging costs no copy more.
  const bool reaches = processes != nullptr && processes->private_access().enforced() && !lends &&
                       network == nullptr && wire == nullptr && ports == 0 &&
                       call.user_op == nullptr &&
                       request.transport.value_or(Transport::direct) == Transport::direct &&
                       !(call.collective == Collective::all_to_all && key.in_place());
  const bool has_transport = request.transport.has_value();
  request.reaches = reaches && part >= costs.private_min_bytes;
  request.staged = processes != nullptr && !lends && !request.reaches;
  // Pairs that exchange messages are many, and their scratch is small.
  if (processes != nullptr && processes->have_payloads())
    request.ahead_max_bytes = ahead_max_bytes(ranks);
  // Repeatable calls ignore this machine's measurements. Tuning tables were measured on vectors
  // that are read in place, so staged calls ignore the table.
  Costs chosen_by = needs->fixed ? Costs() : costs;
  const TuningTable* const table =
      needs->fixed || request.staged || request.reaches ? nullptr : tuning;
  const std::vector<int> fitting_levels = needs->fixed ? std::vector<int>() : levels;
  request.bracket = needs->bracket;
  const std::string bracket_for =
      needs->order ? "order is " + std::string(name_of(*needs->order)) : "";
  request.bracket_for = bracket_for;
  request.buffers = key.in_place() ? Buffers::in_place : Buffers::apart;
  request.costs = costs;
  if (request.staged) {
    chosen_by = staged_costs(chosen_by);
    request.costs = staged_costs(costs);
  } else if (request.reaches) {
    request.costs = private_costs(costs);
    request.transport = Transport::direct;
  }
  Params& params = request.params;
  params = params_of(options, ranks);
  params.root = asked == nullptr || asked->takes("root") ? key.root() : 0;
  params.peer = key.peer();
  if (network != nullptr) {
    if (asked != nullptr && options.algorithm.empty()) params = asked->only_taken(params);
    const auto cheapest = network->cheapest(call.collective, asked, params, m, may_go_on);
    if (!cheapest.ok()) return cheapest.status();
    request.algorithm = cheapest->algorithm;
    params = cheapest->params;
  } else {
    request.algorithm =
        asked != nullptr
            ? asked
            : choose(call.collective, ranks, m, request.buffers, table, chosen_by).algorithm;
    if (options.algorithm.empty()) params = request.algorithm->only_taken(params);
    if (options.segments == 0) {
      params.segments = choose_segments(*request.algorithm, ranks, m, chosen_by);
    }
  }
  params.root = request.algorithm->takes("root") ? key.root() : 0;
  params.peer = key.peer();
  take_levels(*request.algorithm, fitting_levels, params);
  request.type = call.type;
  request.op = call.op;
  request.element_bytes = element_bytes(call);
  request.row_elements = key.row_elements();
  request.commutative = call.user_op == nullptr || call.user_op->commutative;
  if (ports > 0) {
    const Transport wanted = request.transport.value_or(Transport::mailbox);
    if (wanted != Transport::mailbox) {
      return invalid_argument("transport is " + std::string(name_of(wanted)) + ", ports is " +
                              std::to_string(ports) +
                              "; only the mailbox transport has ports: leave out one of the two");
    }
    request.transport = wanted;
    request.ports = ports;
  }
  request.slot_payload = slot_payload;
  request.board_bytes = board_bytes(ranks, costs);
  // Choosing the storing side only affects speed, and takes a third of the planning time.
  request.pushes = network == nullptr && !request.reaches;
  request.mailbox_capacity = mailbox_capacity;
  if (wire != nullptr) request.nodes = wire->node;
  request.limits = {.bytes = most_plan_bytes, .interrupted = may_go_on};
  request.rounds_once = needs->once && !request.bracket;
  auto compiled = asked == nullptr && request.rounds_once
                      ? compile_once(call, request, m, chosen_by, fitting_levels)
                      : compile(request);
  if ((!request.commutative || request.bracket) && asked == nullptr && !compiled.ok() &&
      compiled.status().code() == Code::invalid_argument) {
    const auto others = further_candidates(call, request, m, chosen_by, fitting_levels);
    if (!others.ok()) return others.status();
    compiled = compile_another(request, *others);
  }
  if (!compiled.ok()) return compiled.status();
  if (asked == nullptr && !has_transport) {
    const bool tries = reaches && part >= costs.private_min_bytes / kTriedEarlier;
    if (Status added = add_forms(request, m, tries, *compiled); !added.ok()) return added;
  }
  const OrderSet orders = orders_of(*needs, *request.algorithm, compiled->brackets, call.op);
  if (needs->order && !orders.has(Order::coherent)) {
    return invalid_argument(bracket_for + ", algorithm is " + std::string(request.algorithm->name) +
                            ": " + std::string(request.algorithm->other_bits));
  }
  auto cached = std::make_unique<CachedPlan>(key);
  cached->plan = std::move(compiled->plan);
  const auto line = request.algorithm->make.given() != nullptr
                        ? catalogue().size()
                        : static_cast<std::size_t>(request.algorithm - catalogue().data());
  cached->algorithm =
      processes != nullptr ? processes->name_of_line(line) : request.algorithm->name.data();
  cached->parameters = request.algorithm->text_of(params);
  if (compiled->in_f32) {
    cached->parameters += cached->parameters.empty() ? "in f32" : ", in f32";
  }
  cached->orders = orders;
  if (timed) {
    auto on_network = time(request, *compiled, m);
    if (!on_network.ok()) return on_network.status();
    cached->timed = std::move(*on_network);
  }
  cached->rules = buffer_rules(compiled->layout, compiled->goal);
  if (only_copies(cached->plan, cached->rules.front(), key.in_place())) {
    cached->copied_bytes = cached->rules.front().output_bytes;
  }
  cached->lends = lends || cached->plan.reaches;
  cached->takes_payloads = lends;
  if (request.reaches) {
    cached->parameters += cached->parameters.empty() ? "single copy" : ", single copy";
  }
  // Private addresses of different processes say nothing about shared buffers.
  const bool compares = !request.staged && !request.reaches;
  for (std::size_t r = 0; compares && r < cached->rules.size(); ++r) {
    cached->plan.rank[r].input_bytes = cached->rules[r].input_bytes;
    cached->plan.rank[r].output_bytes = cached->rules[r].output_bytes;
  }
  // Far ranks' ops would take most of the memory.
  for (Rank r = 0; wire != nullptr && r < ranks; ++r) {
    if (std::ranges::find(wire->here, r) == wire->here.end()) {
      cached->plan.rank[static_cast<std::size_t>(r)] = {};
    }
  }
  cached->plan.exchanges = is_exchange(cached->plan);
  cached->plan.all_meet = call.counts.empty() && all_hear_from_all(call.collective);
  std::uint64_t hash = 0;
  const auto mix = [&hash](auto n) { hash = mixed(hash, static_cast<std::uint64_t>(n)); };
  for (const std::size_t n : request.counts) mix(n);
  if (lends) mix(kLends);
  if (needs->order) mix(1 + static_cast<int>(*needs->order));
  if (request.row_elements > 0) mix(request.row_elements * request.element_bytes);
  for (const Parameter& row : parameters()) {
    if (row.name == "root") continue;  // it is part of the fingerprint
    if (row.number != nullptr) {
      mix(params.*row.number);
    } else {
      mix((params.*row.list).size());
      for (const int n : params.*row.list) mix(n);
    }
  }
  cached->fingerprint = make_fingerprint(
      call.collective, call.type, reduces(call.collective) ? call.op : ReduceOp::sum,
      key.in_place(), cached->plan.transport, key.root(), static_cast<int>(line), hash);
  cached->bytes = sizeof(CachedPlan) + cached->key.bytes() +
                  cached->rules.capacity() * sizeof(BufferRule) + trim(cached->plan) +
                  (cached->timed != nullptr ? cached->timed->bytes() : 0);
  return cached;
}

Result<CachedPlanPtr> CommunicatorShared::make(const PlanKey& key, Waiter& waiter) {
  const std::function<Status()> may_go_on = [&] { return may_go_on_planning(waiter); };
  const PlanMaker maker{.ranks = ranks,
                        .costs = costs,
                        .forced = forced,
                        .slot_payload = payload_of(mail.stride),
                        .mailbox_capacity = static_cast<int>(mail.slots / 2),
                        .ports = ports,
                        .most_plan_bytes = most_plan_bytes,
                        .levels = levels,
                        .algorithms = algorithms,
                        .tuning = tuning,
                        .order = order,
                        .network = wire != nullptr ? wire->network.get() : clock.get(),
                        .timed = clock != nullptr,
                        .processes = processes.get(),
                        .wire = wire.get(),
                        .may_go_on = may_go_on};
  auto made = maker.make(key);
  if (!made.ok()) return made.status();
  std::unique_ptr<CachedPlan> cached = std::move(*made);
  plan_bytes.fetch_add(cached->bytes, std::memory_order_relaxed);  // pairs with nothing: a count
  return CachedPlanPtr(cached.release(), [&count = plan_bytes](const CachedPlan* plan) {
    count.fetch_sub(plan->bytes, std::memory_order_relaxed);  // pairs with nothing: a count
    delete plan;
  });
}

Result<CachedPlanPtr> CommunicatorShared::prepare(const PlanKey& key, Waiter& waiter) {
  const std::uint64_t hash = key.hash();
  if (CachedPlanPtr found = plans.find(key, hash, waiter.rank)) return found;
  // One rank compiles; other ranks that need this plan wait here for the lock.
  std::unique_lock<std::mutex> lock;
  if (Status locked = lock_for_call(lock, waiter); !locked.ok()) return locked;
  if (CachedPlanPtr found = plans.find(key, hash, waiter.rank)) return found;
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

}  // namespace rankine
