// plans.h turns calls into plans: PlanKey and OwnedKey identify a plan, PlanTable and RankPlans
// keep plans, PlanMaker makes them, and CallClock prices them on a modelled network (network.h).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "engine/api/call.h"
#include "engine/api/check.h"
#include "engine/api/environment.h"
#include "engine/api/network.h"
#include "engine/api/processes/ranks.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/costs.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/compile/compile.h"
#include "engine/network/network_clock.h"
#include "engine/network/predict.h"
#include "engine/network/prices.h"
#include "engine/run/fingerprint.h"
#include "engine/run/plan.h"
#include "engine/run/policy.h"

namespace rankine {

// The words of a clock that ranks in different processes share, in memory that outlives the clock.
// Empty for threads.
struct SharedClock {
  std::byte* channels = nullptr;                   // as in NetworkClock
  std::atomic<std::int64_t>* origin_ns = nullptr;  // as in RankClocks, if no seats are given
};

// CallClock puts the calls of one communicator on a modelled network.
class CallClock {
 public:
  // Errors: those of wired_for(), and seats that are too few; the texts name the network's member.
  // With an automatic dilation, a wall clock takes a few milliseconds to find it.
  static Result<std::unique_ptr<CallClock>> make(const CallNetwork& network, int ranks,
                                                 const WaitPolicy& policy,
                                                 const SharedClock& shared = {});

  // The cost of a call's messages: of M bytes, or of blocks with these sizes.
  Result<Pricing> price(const CollectiveSpec& goal, std::uint64_t m) const {
    return Pricing::make(fabric_, goal, m, false);
  }
  Result<Pricing> price(std::span<const std::uint64_t> blocks) const {
    return Pricing::of_blocks(fabric_, blocks);
  }
  // All algorithms that can run, the cheapest first; without those that are never chosen.
  Result<std::vector<Candidate>> candidates(Collective collective, const Params& params,
                                            std::uint64_t m,
                                            const std::function<Status()>& may_go_on) const;
  // The algorithm of a call: `asked`, or the cheapest one here if `asked` is nullptr. The network
  // fills the parameters that `params` leaves open.
  Result<Candidate> cheapest(Collective collective, const Algorithm* asked, const Params& params,
                             std::uint64_t m, const std::function<Status()>& may_go_on) const;

  const Fabric& fabric() const { return fabric_; }
  // The schedule of an algorithm on this network.
  Schedule schedule(const Algorithm& algorithm, const Params& params) const {
    Schedule made = algorithm.make(params);
    return lower_ ? lower(std::move(made), fabric_.abilities()) : made;
  }
  NetworkClock& clock() { return clock_; }
  double seconds(Ticks ticks) const {
    return nearest_double(ticks, clock_.options().ticks_per_second);
  }
  // The network of these ranks, in this order, at the same seats.
  CallNetwork among(const std::vector<Rank>& ranks) const;
  NetworkReport report() const;
  // For a wall clock: a sentence on its lateness; otherwise empty.
  std::string timing_report() const;

 private:
  CallClock(Fabric fabric, bool lower, const NetworkClockOptions& options,
            std::shared_ptr<RankClocks> seats, const std::vector<int>& places, std::byte* channels);

  const Fabric fabric_;
  const bool lower_;
  NetworkClock clock_;
};

// PlanKey identifies a plan: it covers every field of a call on which the plan depends. It is a
// view of a call and must not outlive it. Every call makes one, so it is fast: the numbers are
// packed side by side, and rare fields (names, lists, aggregation, radix) are read only if the call
// sets them. Arguments that a collective does not take make no difference.
class PlanKey {
 public:
  [[gnu::always_inline]] explicit PlanKey(const Call& call) noexcept : call_(&call) {
    const CallOptions& options = call.options;
    const bool knows_in_place =
        call.collective == Collective::all_reduce || call.collective == Collective::all_to_all;
    const bool in_place = knows_in_place && call.in == call.out && call.in != nullptr;
    const bool shared = options.shared_payloads && call.collective != Collective::barrier;
    numbers_[0] = call.count;
    numbers_[1] = numbers_[2] = 0;
    numbers_[3] = static_cast<std::uint64_t>(call.collective) |
                  static_cast<std::uint64_t>(call.type) << 8 |
                  static_cast<std::uint64_t>(call.op) << 16 | std::uint64_t{in_place} << kInPlace |
                  std::uint64_t{shared} << kShared;
    const bool said = options.transport.has_value() | options.order.has_value() |
                      (options.epilogue != nullptr) | (call.user_op != nullptr);
    if ((lists(call) | options.algorithm.size() | pair(call.root, call.peer) |
         pair(options.segments, options.group) | std::uint64_t{said}) != 0) {
      add_rare_fields();
    }
  }

  const Call& call() const noexcept { return *call_; }
  // A call with an epilogue has neither root nor peer.
  Rank root() const noexcept { return has(kRows) ? 0 : static_cast<Rank>(numbers_[1] >> 32); }
  Rank peer() const noexcept {
    return has(kRows) ? 0 : static_cast<Rank>(numbers_[1] & 0xffffffff);
  }
  std::size_t row_elements() const noexcept { return has(kRows) ? numbers_[1] : 0; }
  // True if in place makes a difference to the plan and the call is in place.
  bool in_place() const noexcept { return has(kInPlace); }

  bool shared_payloads() const noexcept { return has(kShared); }

  [[gnu::always_inline]] bool operator==(const PlanKey& other) const noexcept {
    return ((numbers_[0] ^ other.numbers_[0]) | (numbers_[1] ^ other.numbers_[1]) |
            (numbers_[2] ^ other.numbers_[2]) | (numbers_[3] ^ other.numbers_[3])) == 0 &&
           (!has(kNamed) || call_->options.algorithm == other.call_->options.algorithm) &&
           (!has(kLists) || same_lists(other));
  }
  [[gnu::always_inline]] std::uint64_t hash() const noexcept {
    std::uint64_t h = numbers_[0] * kSplitMixStep ^ numbers_[1] * 0xbf58476d1ce4e5b9u ^
                      numbers_[2] * 0x94d049bb133111ebu ^ numbers_[3] * 0xd6e8feb86659fd93u;
    if (has(kNamed)) h ^= hash_of(call_->options.algorithm);
    if (has(kLists)) h = with_lists(h);
    return h ^ h >> 32;
  }

 private:
  static constexpr int kOrder = 36, kInPlace = 40, kNamed = 41, kLists = 42, kCommutative = 43,
                       kElement = 44, kRows = 57, kShared = 58;

  // Not 0 if the call has lists, or numbers that are compared with them.
  static std::uint64_t lists(const Call& call) noexcept {
    const CallOptions& options = call.options;
    return call.counts.size() | options.dims.size() | options.skips.size() | options.levels.size() |
           static_cast<std::uint32_t>(options.aggregation | options.radix);
  }
  [[gnu::noinline]] void add_rare_fields() noexcept {
    const Call& call = *call_;
    const CallOptions& options = call.options;
    const std::uint64_t transport =
        options.transport ? 1 + static_cast<std::uint64_t>(*options.transport) : 0;
    // Four bits; an invalid order must not look like a valid one.
    const std::uint64_t order =
        options.order ? std::min<std::uint64_t>(15, 1 + static_cast<std::uint64_t>(*options.order))
                      : 0;
    // A named algorithm may take a root in collectives that have none.
    const bool takes_root = has_root(call.collective) || !options.algorithm.empty();
    numbers_[1] = options.epilogue != nullptr
                      ? options.epilogue->row_elements
                      : pair(takes_root ? call.root : 0,
                             call.collective == Collective::send_recv ? call.peer : 0);
    numbers_[2] = pair(options.segments, options.group);
    numbers_[3] |= transport << 24 | order << kOrder |
                   std::uint64_t{!options.algorithm.empty()} << kNamed |
                   std::uint64_t{lists(call) != 0} << kLists |
                   std::uint64_t{options.epilogue != nullptr} << kRows;
    if (call.user_op != nullptr) {
      numbers_[3] |= std::uint64_t{call.user_op->commutative} << kCommutative |
                     static_cast<std::uint64_t>(call.user_op->element_bytes) << kElement;
    }
  }

  bool has(int flag) const noexcept { return (numbers_[3] >> flag & 1) != 0; }
  static std::uint64_t pair(int a, int b) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }
  // Hashes the length and three letters: most names differ in these, and the comparison finds the
  // rest.
  static std::uint64_t hash_of(std::string_view name) noexcept {
    const auto letter = [name](std::size_t i) {
      return static_cast<std::uint64_t>(static_cast<unsigned char>(name[i]));
    };
    const std::size_t n = name.size();
    return (n << 24 | letter(0) << 16 | letter(n / 2) << 8 | letter(n - 1)) * kSplitMixStep;
  }
  template <class T>
  static bool same(std::span<const T> a, std::span<const T> b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }
  bool same_lists(const PlanKey& other) const noexcept {
    const CallOptions &a = call_->options, &b = other.call_->options;
    return same(call_->counts, other.call_->counts) && same(a.dims, b.dims) &&
           same(a.skips, b.skips) && same(a.levels, b.levels) && a.aggregation == b.aggregation &&
           a.radix == b.radix;
  }
  std::uint64_t with_lists(std::uint64_t h) const noexcept {
    const auto list = [&h](const auto& numbers) {
      h = mixed(h, numbers.size());
      for (const auto n : numbers) h = mixed(h, static_cast<std::uint64_t>(n));
    };
    const CallOptions& options = call_->options;
    list(call_->counts);
    list(options.dims);
    list(options.skips);
    list(options.levels);
    return mixed(h, pair(options.aggregation, options.radix));
  }

  const Call* call_;
  // Count; root and peer, or elements of a row; segments and group; kinds and flags.
  std::uint64_t numbers_[4];
};

// OwnedKey is a key that owns its call, names and lists.
class OwnedKey {
 public:
  explicit OwnedKey(const PlanKey& key)
      : algorithm_(key.call().options.algorithm),
        counts_(key.call().counts.begin(), key.call().counts.end()),
        lists_(params_of(key.call().options, 0)),
        hash_(key.hash()),
        call_(key.call()),
        view_(key) {
    call_.counts = counts_;
    call_.options.algorithm = algorithm_;
    set_parameters(lists_, call_.options);
    view_ = PlanKey(call_);
    // These need not live as long as the key; the view has copied their sizes.
    call_.user_op = nullptr;
    call_.options.epilogue = nullptr;
  }
  OwnedKey(const OwnedKey&) = delete;
  OwnedKey& operator=(const OwnedKey&) = delete;

  const PlanKey& view() const noexcept { return view_; }
  std::uint64_t hash() const noexcept { return hash_; }
  std::size_t bytes() const noexcept {  // beyond its own size
    std::size_t bytes = algorithm_.capacity() + counts_.capacity() * sizeof(std::size_t);
    for (const CallParameter& option : kCallParameters) {
      if (option.list != nullptr) bytes += (call_.options.*option.list).size_bytes();
    }
    return bytes;
  }

 private:
  const std::string algorithm_;
  const std::vector<std::size_t> counts_;
  const Params lists_;
  const std::uint64_t hash_;
  Call call_;
  PlanKey view_;
};

// Each rank keeps the plans that it uses in a RankPlans. A look-up there compares with the rank's
// last call first; otherwise it costs a hash, a few loads and a comparison. If the rank does not
// hold a plan, it looks in the PlanTable that all ranks share, without a lock. Only the planning of
// a new call takes a lock. Each rank counts its references to a plan separately, so that ranks do
// not compete for the cache line of one counter.

class TimedSchedule;
struct WireOptions;

// CachedPlan is a plan with the data that a call needs beside it. All ranks share it; immutable.
struct CachedPlan {
  explicit CachedPlan(const PlanKey& of) : key(of) {}

  const OwnedKey key;
  Plan plan;
  Fingerprint fingerprint;
  // One rank: the call only copies these bytes from its input to its output. 0: the plan runs.
  std::size_t copied_bytes = 0;
  bool lends = false;           // the ranks are processes and use each other's buffers in place
  bool takes_payloads = false;  // the buffers must be shared payloads
  const char* algorithm = "";
  std::string parameters;         // the algorithm's parameters, for people; may be empty
  OrderSet orders;                // kept by the call
  std::vector<BufferRule> rules;  // per rank
  std::shared_ptr<const TimedSchedule> timed;  // on the communicator's network; or nullptr
  std::size_t bytes = 0;                       // memory of this object

  // Moves the data of a call that only copies. False: the plan must run.
  bool copy(const void* in, void* out) const noexcept {
    if (copied_bytes == 0) return false;
    copy_bytes(out, in, copied_bytes, plan.costs);
    return true;
  }
};
using CachedPlanPtr = std::shared_ptr<const CachedPlan>;

// PlanTable holds the plans that all ranks share. Every rank may call find() at any time. The other
// members need the communicator's lock.
class PlanTable {
 public:
  // Above these limits the table forgets all plans; ranks keep the plans that they hold.
  static constexpr std::size_t kMostPlans = 2048;
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  explicit PlanTable(int ranks) : reading_(static_cast<std::size_t>(ranks)) {}
  ~PlanTable();
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  // Returns the plan of that key, or nullptr. `rank` is the calling rank. Neither locks nor
  // allocates.
  CachedPlanPtr find(const PlanKey& key, std::uint64_t hash, Rank rank) const noexcept;
  // May throw std::bad_alloc; then it has inserted nothing.
  void insert(CachedPlanPtr cached);
  std::size_t plans() const { return plans_; }
  std::size_t table_bytes() const { return reading_.capacity() * sizeof(Reading) + sizeof(heads_); }

 private:
  struct Node {
    const CachedPlanPtr cached;
    Node* const next;
    Node* next_retired = nullptr;
  };
  // True while that rank searches, and so may hold the address of a node.
  struct alignas(kCacheLine) Reading {
    std::atomic<bool> now{false};
  };
  static constexpr std::size_t kHeads = 1024;

  void forget_all() noexcept;
  void free_retired() noexcept;
  void delete_retired() noexcept;

  std::array<std::atomic<Node*>, kHeads> heads_{};
  mutable std::vector<Reading> reading_;
  std::size_t plans_ = 0, bytes_ = 0;
  Node* retired_ = nullptr;  // no longer in the table; a rank may still read them
};

// RankPlans holds the plans of one rank: a four-way associative table that doubles whenever a set
// is full, up to a limit. Only that rank's thread uses it.
class RankPlans {
 public:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kLeastSets = 16, kMostSets = 512;

  RankPlans() : slots_(kLeastSets * kWays) {}

  struct Slot {
    std::uint64_t hash = 0;
    CachedPlanPtr cached;  // a reference counted by this rank
    bool called = false;   // false: only asked about
  };

  [[gnu::always_inline]] Slot* find(const PlanKey& key) noexcept {
    if (latest_ != nullptr && latest_->cached->key.view() == key) return latest_;
    return look_up(key);
  }
  // Requires that the table does not hold the plan. May throw std::bad_alloc; then the table is
  // unchanged.
  Slot& insert(CachedPlanPtr cached);
  void clear();
  std::size_t table_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  Slot* free_slot(std::uint64_t hash) noexcept;
  Slot* look_up(const PlanKey& key) noexcept;

  std::vector<Slot> slots_;
  Slot* latest_ = nullptr;  // last found
  std::size_t next_victim_ = 0;
};

// PlanMaker makes the plan of a call: it chooses the algorithm and parameters that the call leaves
// open, compiles the schedule, and times it on a modelled network. It serves ranks that share an
// address space, processes, and ranks on several nodes (mpi/member.h). It refers to members of its
// communicator and must not outlive it.
struct PlanMaker {
  int ranks;
  const Costs& costs;
  const Environment& forced;    // for calls that leave the choice to the engine
  std::size_t slot_payload;     // as in CompileRequest
  int mailbox_capacity;         // as in CompileRequest
  int ports = 0;                // as in CompileRequest
  std::size_t most_plan_bytes;  // limit for making one plan
  const std::vector<int>& levels;
  // Beside the catalogue.
  std::span<const GivenAlgorithm> algorithms;
  const TuningTable* tuning = nullptr;
  std::optional<Order> order{};        // for calls that ask for none
  const CallClock* network = nullptr;  // the network that chooses; or nullptr
  bool timed = false;                  // plans need a schedule for that network's clocks
  // the ranks' shared memory if they are processes; nullptr: threads
  const ProcessRanks* processes = nullptr;
  const WireOptions* wire = nullptr;  // ranks on several nodes; nullptr: one node
  // Asked repeatedly during planning; an error stops it.
  const std::function<Status()>& may_go_on;

  // Errors: those of check_call() and compile(), an unknown algorithm or order, and the errors of
  // may_go_on().
  Result<std::unique_ptr<CachedPlan>> make(const PlanKey& key) const;

 private:
  Result<std::shared_ptr<const TimedSchedule>> time(const CompileRequest& request,
                                                    const Compiled& compiled, std::size_t m) const;
  Result<Compiled> compile_once(const Call& call, CompileRequest& request, std::size_t m,
                                const Costs& by, const std::vector<int>& fitting) const;
  CompileRequest request_for(Form form, const CompileRequest& first, std::size_t m) const;
  // Adds forms to the plan of a call that the engine has chosen, if others may be faster.
  // `reaches`: processes may reach each other's private buffers.
  Status add_forms(const CompileRequest& request, std::size_t m, bool reaches,
                   Compiled& compiled) const;
  // The alternatives to the chosen algorithm, the best first.
  Result<std::vector<Candidate>> further_candidates(const Call& call, const CompileRequest& chosen,
                                                    std::size_t m, const Costs& by,
                                                    const std::vector<int>& fitting) const;
};

}  // namespace rankine
