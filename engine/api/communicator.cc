#include "engine/api/communicator.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/choose.h"
#include "engine/api/environment.h"
#include "engine/exec/compile.h"
#include "engine/exec/fingerprint.h"
#include "engine/exec/interpret.h"
#include "numa/cpu_budget.h"

namespace rankine {
namespace {

// What distinguishes one plan from another.
struct Key {
  std::size_t count = 0;
  const Algorithm* algorithm = nullptr;  // nullptr: the engine chooses
  Rank root = 0, peer = 0;
  int segments = 0, group = 0;
  Collective collective = Collective::all_reduce;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::int8_t transport = -1;  // -1: the engine chooses
  bool in_place = false;       // where it makes a difference to the plan

  auto tie() const {
    return std::tie(count, algorithm, root, peer, segments, group, collective, type, op, transport,
                    in_place);
  }
  bool operator==(const Key& other) const { return tie() == other.tie(); }
  bool operator<(const Key& other) const { return tie() < other.tie(); }
  std::size_t hash() const {
    std::uint64_t h = count * 0x9e3779b97f4a7c15u;
    h ^= reinterpret_cast<std::uintptr_t>(algorithm) >> 4;
    h ^= static_cast<std::uint64_t>(collective) << 7 ^ static_cast<std::uint64_t>(type) << 13 ^
         static_cast<std::uint64_t>(op) << 17 ^ static_cast<std::uint64_t>(root) << 23 ^
         static_cast<std::uint64_t>(in_place) << 31;
    return static_cast<std::size_t>(h * 0xd6e8feb86659fd93u >> 32);
  }
};

// A plan and what a call needs to know beside it. Shared by all ranks, immutable.
struct Prepared {
  Plan plan;
  Fingerprint fingerprint;
  const char* algorithm = "";
  std::vector<BufferRule> rules;  // per rank
  std::size_t bytes = 0;          // of memory that this takes
};
using PreparedPtr = std::shared_ptr<const Prepared>;

constexpr std::size_t kLocalPlans = 64;     // a rank's direct-mapped cache
constexpr std::size_t kSharedPlans = 1024;  // of a communicator

// Larger slots for few ranks: N * (N - 1) mailboxes must stay within a few MiB.
std::uint32_t slot_stride(int ranks) {
  if (ranks <= 4) return 1088;
  if (ranks <= 16) return 320;
  return 128;
}

std::size_t bytes_of(const Plan& plan) {
  std::size_t bytes = sizeof(Prepared);
  for (const RankPlan& rank : plan.rank) {
    bytes += sizeof(RankPlan) + rank.ops.size() * sizeof(Op) +
             rank.operands.size() * sizeof(Operand) + rank.traffic.size() * sizeof(Traffic);
  }
  return bytes;
}

}  // namespace

WaitPolicy choose_wait_policy(int ranks) {
  WaitPolicy policy;
  if (ranks > cpu_budget().cores) {
    policy.mode = WaitPolicy::Mode::yield;
    policy.probes = 4;
  }
  return policy;
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

struct Communicator::Shared {
  Shared(const CommunicatorOptions& options, WaitPolicy policy, const Environment& environment)
      : ranks(options.ranks),
        forced(environment),
        first_count(options.first_count),
        stride(slot_stride(options.ranks)),
        crossbar(options.ranks, policy,
                 std::chrono::duration_cast<std::chrono::nanoseconds>(options.timeout).count()),
        joined(static_cast<std::size_t>(options.ranks), false),
        mailboxes(static_cast<std::size_t>(options.ranks) *
                  static_cast<std::size_t>(options.ranks)) {
    for (Rank r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      arena_options.push_back(options.arenas.empty() ? ArenaOptions{} : options.arenas[i]);
      ArenaOptions mail = arena_options.back();
      mail.chunk_bytes = 64 * 1024;
      mail.huge_pages = false;
      arenas.emplace_back(mail);
      crossbar.progress(r).value.store(first_count, std::memory_order_relaxed);
      crossbar.entry(r).call.store(first_count, std::memory_order_relaxed);
    }
  }

  Result<PreparedPtr> prepare(const Key& key, const Call& call);
  Result<PreparedPtr> make(const Key& key, const Call& call) const;
  Status provide_mailboxes(const Plan& plan);

  const int ranks;
  const Environment forced;  // for calls that leave the choice to us
  const std::uint32_t first_count;
  const std::uint32_t stride;
  Crossbar crossbar;
  std::vector<ArenaOptions> arena_options;

  mutable std::mutex mutex;  // guards what follows
  std::vector<bool> joined;
  std::vector<Arena> arenas;       // mailboxes live with their readers
  std::vector<Mailbox> mailboxes;  // [from * ranks + to]; made when a plan first needs one
  std::map<std::pair<Key, std::vector<std::size_t>>, PreparedPtr> plans;
  std::size_t plan_bytes = 0;
  std::vector<std::size_t> scratch_bytes = std::vector<std::size_t>(joined.size(), 0);
};

Status Communicator::Shared::provide_mailboxes(const Plan& plan) {
  for (Rank from = 0; from < plan.ranks; ++from) {
    for (const Traffic& traffic : plan.rank[static_cast<std::size_t>(from)].traffic) {
      if (traffic.sent == 0) continue;
      const auto to = static_cast<std::size_t>(traffic.peer);
      Mailbox& mailbox = mailboxes[static_cast<std::size_t>(from * ranks) + to];
      if (mailbox.slots != nullptr) continue;
      auto* slots = static_cast<std::byte*>(arenas[to].allocate(std::size_t{kSlots} * stride));
      // Credit is read by the sender, and written by the reader: on a line of its own.
      void* credit = arenas[to].allocate(sizeof(Counter));
      if (slots == nullptr || credit == nullptr) {
        return {Code::out_of_memory, "mailboxes of rank " + std::to_string(to) + ": " +
                                         std::to_string(std::size_t{kSlots} * stride) + " bytes"};
      }
      mailbox = {slots, stride, new (credit) Counter};
      mailbox.credit->value.store(first_count, std::memory_order_relaxed);
      for (std::uint32_t i = 0; i < kSlots; ++i) {
        (new (slots + std::size_t{i} * stride) SlotHeader)
            ->flag.store(first_count, std::memory_order_relaxed);
      }
    }
  }
  return {};
}

Result<PreparedPtr> Communicator::Shared::make(const Key& key, const Call& call) const {
  Status status = check_call(call, ranks);
  if (!status.ok()) return status;
  CompileRequest request;
  request.counts = natural_counts(call, ranks);
  std::size_t elements = 0;
  for (const std::size_t n : request.counts) elements += n;
  // M of all_to_all is one rank's send buffer.
  const std::size_t senders =
      call.collective == Collective::all_to_all ? static_cast<std::size_t>(ranks) : 1;
  const std::size_t m = elements / senders * size_of(call.type);
  const Algorithm* asked = key.algorithm != nullptr
                               ? key.algorithm
                               : forced.algorithm[static_cast<std::size_t>(call.collective)];
  request.algorithm = asked != nullptr ? asked : &choose_algorithm(call.collective, ranks, m);
  request.params.ranks = ranks;
  request.params.root = call.root;
  request.params.peer = call.peer;
  request.params.group = key.group;
  request.params.segments =
      key.segments > 0 ? key.segments : choose_segments(*request.algorithm, ranks, m);
  request.type = call.type;
  request.op = call.op;
  request.buffers = key.in_place ? Buffers::in_place : Buffers::apart;
  request.transport = forced.transport;
  if (key.transport >= 0) request.transport = static_cast<Transport>(key.transport);
  request.slot_payload = stride - sizeof(SlotHeader);
  auto compiled = compile(request);
  if (!compiled.ok()) return compiled.status();

  auto prepared = std::make_shared<Prepared>();
  prepared->plan = std::move(compiled->plan);
  prepared->algorithm = request.algorithm->name.data();
  for (Rank r = 0; r < ranks; ++r) {
    prepared->rules.push_back(buffer_rule(compiled->layout, compiled->goal, r));
  }
  std::uint64_t hash = static_cast<std::uint64_t>(request.params.segments) * 31 +
                       static_cast<std::uint64_t>(request.params.group) * 1031 +
                       static_cast<std::uint64_t>(key.peer);
  for (const std::size_t n : request.counts) hash = (hash ^ n) * 0x100000001b3u;
  const auto line = static_cast<int>(request.algorithm - catalogue().data());
  prepared->fingerprint = make_fingerprint(
      call.collective, call.type, reduces(call.collective) ? call.op : ReduceOp::sum, key.in_place,
      prepared->plan.transport == Transport::mailbox, key.root, line, hash);
  prepared->bytes = bytes_of(prepared->plan);
  return PreparedPtr(std::move(prepared));
}

Result<PreparedPtr> Communicator::Shared::prepare(const Key& key, const Call& call) {
  // One rank compiles, the others that want the same wait for it here.
  const std::lock_guard lock(mutex);
  const std::pair where(key, std::vector<std::size_t>(call.counts.begin(), call.counts.end()));
  if (const auto found = plans.find(where); found != plans.end()) return found->second;
  auto made = make(key, call);
  if (!made.ok()) return made;
  Status status = provide_mailboxes((*made)->plan);
  if (!status.ok()) return status;
  if (plans.size() >= kSharedPlans) {
    plans.clear();  // ranks keep what they use
    plan_bytes = 0;
  }
  plans.emplace(where, *made);
  plan_bytes += (*made)->bytes;
  return made;
}

// --- Member
// ---------------------------------------------------------------------------------------

struct Member::State {
  struct Local {
    Key key;
    PreparedPtr prepared;
    bool has_counts = false;  // which the key does not hold: only kept alive, never found here
  };

  Communicator* communicator;
  Communicator::Shared* shared;
  RankState run;
  std::array<Local, kLocalPlans> local;
  std::unique_ptr<Arena> scratch;
  std::size_t scratch_bytes = 0;
  const Algorithm* last_named = nullptr;  // the algorithm last asked for by name
  std::uint32_t barrier_in = 0, barrier_out = 0;

  Result<const Prepared*> find(const Call& call);
  Status adopt(const Prepared& prepared);
  Result<const Algorithm*> algorithm_of(const Call& call);
};

Member::Member(Communicator& communicator, Rank rank) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.communicator = &communicator;
  s.shared = communicator.shared_.get();
  const auto n = static_cast<std::size_t>(s.shared->ranks);
  s.run.waiter = {.crossbar = &s.shared->crossbar, .rank = rank, .call = s.shared->first_count};
  s.run.progress_base = s.shared->first_count;
  s.run.outbox.resize(n);
  s.run.inbox.resize(n);
  s.run.memory.resize(n * 4);
  for (std::size_t q = 0; q < n; ++q) {
    s.run.outbox[q].base = s.run.outbox[q].credit_seen = s.shared->first_count;
    s.run.inbox[q].base = s.shared->first_count;
  }
}

Member::~Member() {
  state_->communicator->leave(state_->run.waiter.rank);
  const std::lock_guard lock(state_->shared->mutex);
  state_->shared->scratch_bytes[static_cast<std::size_t>(state_->run.waiter.rank)] = 0;
}

Rank Member::rank() const { return state_->run.waiter.rank; }
int Member::ranks() const { return state_->shared->ranks; }

Status Member::size_mismatch(std::string_view what, std::size_t got, std::size_t allowed) const {
  return invalid_argument(std::string(what) + " has " + std::to_string(got) +
                          " elements; the other argument and " + std::to_string(ranks()) +
                          " ranks ask for " + std::to_string(allowed));
}

Status Member::check_sizes(const Call& call, std::size_t in, std::size_t out) const {
  Status status = check_call(call, ranks());
  if (!status.ok()) return status;
  const Goal goal{call.collective, ranks(), natural_blocks(call.collective, ranks()), call.root,
                  call.peer};
  const Layout layout = make_layout(goal, natural_counts(call, ranks()), 1, Borders::plain);
  const BufferRule rule = buffer_rule(layout, goal, rank());
  if (rule.input_bytes > in) return size_mismatch("in", in, rule.input_bytes);
  if (rule.output_bytes > out) return size_mismatch("out", out, rule.output_bytes);
  return {};
}

Status Member::barrier(const CallOptions& options) {
  // A barrier is an all-reduce of one word under "or", which may hear from a rank twice.
  return call({.collective = Collective::barrier,
               .in = &state_->barrier_in,
               .out = &state_->barrier_out,
               .count = 1,
               .type = DataType::u32,
               .op = ReduceOp::bor,
               .options = options});
}

Result<const Algorithm*> Member::State::algorithm_of(const Call& call) {
  const std::string_view name = call.options.algorithm;
  if (name.empty()) return static_cast<const Algorithm*>(nullptr);
  if (last_named != nullptr && last_named->collective == call.collective &&
      last_named->name == name) {
    return last_named;
  }
  const Algorithm* found = find_algorithm(call.collective, name);
  if (found == nullptr) {
    Status status = check_call(call, shared->ranks);  // a collective that is none has no name
    if (!status.ok()) return status;
    return invalid_argument("algorithm is '" + std::string(name) + "'; " +
                            std::string(name_of(call.collective)) + " has " +
                            algorithm_names(call.collective));
  }
  last_named = found;
  return found;
}

// Our ends of the mailboxes, room for operands, and scratch. Only when a plan is first met.
Status Member::State::adopt(const Prepared& prepared) {
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const auto n = static_cast<std::size_t>(shared->ranks);
  const RankPlan& plan = prepared.plan.rank[self];
  const auto operands = static_cast<std::size_t>(prepared.plan.most_operands);
  if (run.operands.size() < operands) run.operands.resize(operands);
  const std::lock_guard lock(shared->mutex);
  for (const Traffic& traffic : plan.traffic) {
    run.outbox[traffic.peer].mailbox = shared->mailboxes[self * n + traffic.peer];
    run.inbox[traffic.peer].mailbox = shared->mailboxes[traffic.peer * n + self];
  }
  if (plan.scratch_bytes > scratch_bytes) {
    // Between calls nobody reads our scratch, so it may move.
    const std::size_t bytes = std::max(plan.scratch_bytes, 2 * scratch_bytes);
    ArenaOptions options = shared->arena_options[self];
    options.chunk_bytes = 4096;
    auto larger = std::make_unique<Arena>(options);
    void* memory = larger->allocate(bytes);
    if (memory == nullptr) {
      return {Code::out_of_memory,
              "scratch of rank " + std::to_string(self) + ": " + std::to_string(bytes) + " bytes"};
    }
    scratch = std::move(larger);
    scratch_bytes = bytes;
    run.memory_of(self, Memory::scratch) = static_cast<std::byte*>(memory);
    shared->scratch_bytes[self] = bytes;
  }
  return {};
}

Result<const Prepared*> Member::State::find(const Call& call) {
  auto algorithm = algorithm_of(call);
  if (!algorithm.ok()) return algorithm.status();
  Key key{.count = call.count,
          .algorithm = *algorithm,
          .root = has_root(call.collective) ? call.root : 0,
          .peer = call.collective == Collective::send_recv ? call.peer : 0,
          .segments = call.options.segments,
          .group = call.options.group,
          .collective = call.collective,
          .type = call.type,
          .op = call.op,
          .in_place = call.in == call.out && call.in != nullptr &&
                      (call.collective == Collective::all_reduce ||
                       call.collective == Collective::all_to_all)};
  if (call.options.transport) key.transport = static_cast<std::int8_t>(*call.options.transport);
  Local& slot = local[key.hash() % kLocalPlans];
  if (slot.prepared != nullptr && slot.key == key && call.counts.empty() && !slot.has_counts)
      [[likely]] {
    return slot.prepared.get();
  }
  auto prepared = shared->prepare(key, call);
  if (!prepared.ok()) return prepared.status();
  Status status = adopt(**prepared);
  if (!status.ok()) {
    communicator->abort(status);
    return status;
  }
  const Prepared* found = prepared->get();
  slot = {key, std::move(*prepared), !call.counts.empty()};
  return found;
}

template <class Run>
Status Member::run(const Call& call, Run interpreted) {
  State& s = *state_;
  Crossbar& crossbar = s.shared->crossbar;
  const auto self = static_cast<std::size_t>(s.run.waiter.rank);
  auto found = s.find(call);
  if (!found.ok()) return found.status();
  const Prepared& prepared = **found;
  Status status = check_buffers(prepared.rules[self], call.in, call.out);
  if (!status.ok()) return status;

  RankState& run = s.run;
  ++run.waiter.call;
  run.waiter.deadline_ns = 0;
  run.waiter.fingerprint =
      with_call(prepared.fingerprint, static_cast<std::uint32_t>(run.waiter.call)).bits;
  CallRecord& record = crossbar.record(run.waiter.rank);
  record.fingerprint.store(run.waiter.fingerprint, std::memory_order_relaxed);
  record.count.store(call.count, std::memory_order_relaxed);
  record.algorithm.store(prepared.algorithm, std::memory_order_relaxed);
  record.number.store(run.waiter.call, std::memory_order_release);  // pairs with disagrees()

  run.memory_of(self, Memory::input) = static_cast<std::byte*>(const_cast<void*>(call.in));
  run.memory_of(self, Memory::output) = static_cast<std::byte*>(call.out);
  if (!crossbar.begin(run.waiter.rank)) [[unlikely]]
    return crossbar.reason();
  const bool done = interpreted(prepared.plan, run);
  crossbar.end(run.waiter.rank);
  if (!done) [[unlikely]] {
    crossbar.wait_until_quiet(run.waiter.rank);
    return crossbar.reason();
  }
  return {};
}

Status Member::call(const Call& call) {
  return run(call, [](const Plan& plan, RankState& state) { return interpret(plan, state); });
}

Status Member::call(const Call& call, RoundObserver& observer) {
  return run(call,
             [&](const Plan& plan, RankState& state) { return interpret(plan, state, observer); });
}

Result<std::string> Member::plan_of(const Call& call) {
  auto found = state_->find(call);
  if (!found.ok()) return found.status();
  return std::string((*found)->algorithm) + ", " + std::string(name_of((*found)->plan.transport)) +
         " transport";
}

// --- Communicator
// ---------------------------------------------------------------------------------

Communicator::Communicator(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
Communicator::~Communicator() = default;

Result<std::unique_ptr<Communicator>> Communicator::create(const CommunicatorOptions& options) {
  if (options.ranks < 1 || options.ranks > kMaxRanks) {
    return invalid_argument("ranks is " + std::to_string(options.ranks) + "; allowed are 1 to " +
                            std::to_string(kMaxRanks));
  }
  if (options.timeout.count() <= 0) {
    return invalid_argument("timeout is " + std::to_string(options.timeout.count()) +
                            " ms; it must be positive");
  }
  if (!options.arenas.empty() && options.arenas.size() != static_cast<std::size_t>(options.ranks)) {
    return invalid_argument("arenas has " + std::to_string(options.arenas.size()) +
                            " entries; allowed are none or " + std::to_string(options.ranks));
  }
  const auto environment = read_environment();
  if (!environment.ok()) return environment.status();
  try {
    WaitPolicy policy = choose_wait_policy(options.ranks);
    if (environment->wait) policy.mode = *environment->wait;
    if (options.wait) policy = *options.wait;
    return std::unique_ptr<Communicator>(
        new Communicator(std::make_unique<Shared>(options, policy, *environment)));
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory,
                  "a communicator of " + std::to_string(options.ranks) + " ranks");
  }
}

int Communicator::ranks() const { return shared_->ranks; }

Result<std::unique_ptr<Member>> Communicator::join(Rank rank) {
  if (rank < 0 || rank >= shared_->ranks) {
    return invalid_argument("rank is " + std::to_string(rank) + "; allowed are 0 to " +
                            std::to_string(shared_->ranks - 1));
  }
  const std::lock_guard lock(shared_->mutex);
  if (shared_->joined[static_cast<std::size_t>(rank)]) {
    return invalid_argument("rank is " + std::to_string(rank) +
                            ", which has joined before; a rank joins once");
  }
  shared_->joined[static_cast<std::size_t>(rank)] = true;
  return std::unique_ptr<Member>(new Member(*this, rank));
}

void Communicator::abort(std::string_view why) { abort(Status(Code::aborted, std::string(why))); }
void Communicator::abort(Status reason) { shared_->crossbar.abort(std::move(reason)); }

Status Communicator::health() const {
  return shared_->crossbar.aborted() ? shared_->crossbar.reason() : Status();
}

std::size_t Communicator::memory_bytes() const {
  const std::lock_guard lock(shared_->mutex);
  std::size_t bytes = shared_->plan_bytes;
  for (const Arena& arena : shared_->arenas) bytes += arena.bytes_reserved();
  for (const std::size_t scratch : shared_->scratch_bytes) bytes += scratch;
  return bytes;
}

std::size_t Communicator::cached_plans() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->plans.size();
}

const WaitPolicy& Communicator::wait_policy() const { return shared_->crossbar.policy(); }
const Arena& Communicator::arena(Rank rank) const {
  return shared_->arenas[static_cast<std::size_t>(rank)];
}

void Communicator::leave(Rank rank) { shared_->crossbar.leave(rank); }
void Communicator::come_back() {
  for (Rank r = 0; r < shared_->ranks; ++r) shared_->crossbar.come_back(r);
}

}  // namespace rankine
