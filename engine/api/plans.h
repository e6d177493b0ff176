// What puts the calls of one communicator on a modelled network (network.h).
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

// What ranks that are processes share of a clock, in memory that outlives it; none of threads.
struct SharedClock {
  std::byte* channels = nullptr;                   // as NetworkClock has it
  std::atomic<std::int64_t>* origin_ns = nullptr;  // as NetworkSeats, where none are given
};

class CallClock {
 public:
  // Errors: those of wired_for() and of seats that are too few, which name the network's member.
  // A wall clock that is asked to find its dilation takes a few milliseconds for that.
  static Result<std::unique_ptr<CallClock>> make(const CallNetwork& network, int ranks,
                                                 const WaitPolicy& policy,
                                                 const SharedClock& shared = {});

  // What a call's messages cost: of M bytes, or of blocks of so many.
  Result<Pricing> price(const Goal& goal, std::uint64_t m) const {
    return Pricing::make(fabric_, goal, m, false);
  }
  Result<Pricing> price(std::span<const std::uint64_t> blocks) const {
    return Pricing::of_blocks(fabric_, blocks);
  }
  // All that can run, the cheapest one first; without those that are never chosen.
  Result<std::vector<Candidate>> candidates(Collective collective, const Params& params,
                                            std::uint64_t m,
                                            const std::function<Status()>& may_go_on) const;
  // What a call gets: the algorithm that it asks for, or where that is nullptr the cheapest one
  // here; with what `params` leave open as the network wants it.
  Result<Candidate> cheapest(Collective collective, const Algorithm* asked, const Params& params,
                             std::uint64_t m, const std::function<Status()>& may_go_on) const;

  const Fabric& fabric() const { return fabric_; }
  // What an algorithm's schedule is here.
  Schedule schedule(const Algorithm& algorithm, const Params& params) const {
    Schedule made = algorithm.make(params);
    return lower_ ? lower(std::move(made), fabric_.abilities()) : made;
  }
  NetworkClock& clock() { return clock_; }
  double seconds(Ticks ticks) const {
    return nearest_double(ticks, clock_.options().ticks_per_second);
  }
  // The network of some of the ranks, in that order, at the same seats.
  CallNetwork among(const std::vector<Rank>& ranks) const;
  NetworkReport report() const;
  // Of a wall clock, as a sentence; else nothing.
  std::string how_well_kept() const;

 private:
  CallClock(Fabric fabric, bool lower, const NetworkClockOptions& options,
            std::shared_ptr<NetworkSeats> seats, const std::vector<int>& places,
            std::byte* channels);

  const Fabric fabric_;
  const bool lower_;
  NetworkClock clock_;
};

// What distinguishes one plan from another: every field of a call on which its plan depends.

// A view of a call, which it must not outlive. Made for every call: the numbers lie packed side by
// side, and names, lists, an aggregation and a radix, which few calls have, are looked at only
// where there are some. Arguments that a collective does not take make no difference.
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
      add_what_few_calls_have();
    }
  }

  const Call& call() const noexcept { return *call_; }
  // What has rows to finish has neither root nor peer.
  Rank root() const noexcept { return has(kRows) ? 0 : static_cast<Rank>(numbers_[1] >> 32); }
  Rank peer() const noexcept {
    return has(kRows) ? 0 : static_cast<Rank>(numbers_[1] & 0xffffffff);
  }
  std::size_t row_elements() const noexcept { return has(kRows) ? numbers_[1] : 0; }
  // Where it makes a difference to the plan.
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

  // Whether there are lists, or numbers that go with them.
  static std::uint64_t lists(const Call& call) noexcept {
    const CallOptions& options = call.options;
    return call.counts.size() | options.dims.size() | options.skips.size() | options.levels.size() |
           static_cast<std::uint32_t>(options.aggregation | options.radix);
  }
  [[gnu::noinline]] void add_what_few_calls_have() noexcept {
    const Call& call = *call_;
    const CallOptions& options = call.options;
    const std::uint64_t transport =
        options.transport ? 1 + static_cast<std::uint64_t>(*options.transport) : 0;
    // Four bits, and no value that there is not shall look like one that there is.
    const std::uint64_t order =
        options.order ? std::min<std::uint64_t>(15, 1 + static_cast<std::uint64_t>(*options.order))
                      : 0;
    numbers_[1] = options.epilogue != nullptr
                      ? options.epilogue->row_elements
                      : pair(call.root != 0 && has_root(call.collective) ? call.root : 0,
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
  // Of its length and three of its letters: names differ in these, and where not, comparing tells.
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
  // Count; root and peer, or elements of a row; segments, group; kinds and flags.
  std::uint64_t numbers_[4];
};

// A key of a call of its own, with names and lists of its own.
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
    // They need not live so long, and the view knows their sizes.
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

// The plans of a communicator, and those that one rank holds.
//
// Every rank keeps what it uses in a RankPlans of its own, where a look-up is a comparison for the
// call that it made last, and else a hash, a few loads and a comparison. What it does not hold it
// finds in the PlanTable that all ranks share, without a lock; only what nobody has planned yet is
// planned under one. A rank counts by itself who of its own holds a plan, so that ranks do not take
// one counter's line from each other.

class TimedSchedule;

// A plan and what a call needs to know beside it. Shared by all ranks, immutable.
struct Prepared {
  explicit Prepared(const PlanKey& of) : key(of) {}

  const OwnedKey key;
  Plan plan;
  Fingerprint fingerprint;
  bool lends = false;  // payloads of processes, which the others read and write in place
  const char* algorithm = "";
  std::string parameters;                      // of the algorithm, for people; may be empty
  OrderSet orders;                             // that the call keeps
  std::vector<BufferRule> rules;               // per rank
  std::shared_ptr<const TimedSchedule> timed;  // on the communicator's network; or nullptr
  std::size_t bytes = 0;                       // of memory that this takes
};
using PreparedPtr = std::shared_ptr<const Prepared>;

// What all ranks share. find() may be called by every rank at any time; the other members one at a
// time, by whoever holds the communicator's lock.
class PlanTable {
 public:
  // Beyond these it forgets all; ranks keep what they hold.
  static constexpr std::size_t kMostPlans = 2048;
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  explicit PlanTable(int ranks) : reading_(static_cast<std::size_t>(ranks)) {}
  ~PlanTable();
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  // The plan of that key, or nullptr. `rank` is who asks. Neither locks nor allocates.
  PreparedPtr find(const PlanKey& key, std::uint64_t hash, Rank rank) const noexcept;
  // May throw std::bad_alloc, and has then inserted nothing.
  void insert(PreparedPtr prepared);
  std::size_t plans() const { return plans_; }
  std::size_t table_bytes() const { return reading_.capacity() * sizeof(Reading) + sizeof(heads_); }

 private:
  struct Node {
    const PreparedPtr prepared;
    Node* const next;
    Node* next_retired = nullptr;
  };
  // Whether that rank looks for a plan right now, and so may hold a node's address.
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
  Node* retired_ = nullptr;  // no longer to be found; a rank may still be at them
};

// What one rank holds: four-way associative, twice as large whenever a set is full, up to a limit.
// Used by that rank's thread only.
class RankPlans {
 public:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kLeastSets = 16, kMostSets = 512;

  RankPlans() : slots_(kLeastSets * kWays) {}

  struct Slot {
    std::uint64_t hash = 0;
    PreparedPtr prepared;  // counted by this rank
    bool called = false;   // not only asked about
  };

  [[gnu::always_inline]] Slot* find(const PlanKey& key) noexcept {
    if (latest_ != nullptr && latest_->prepared->key.view() == key) return latest_;
    return look_up(key);
  }
  // Of a plan that it does not hold. May throw std::bad_alloc, and is then as before.
  Slot& insert(PreparedPtr prepared);
  void clear();
  std::size_t table_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  Slot* free_slot(std::uint64_t hash) noexcept;
  Slot* look_up(const PlanKey& key) noexcept;

  std::vector<Slot> slots_;
  Slot* latest_ = nullptr;  // that was found
  std::size_t next_victim_ = 0;
};

// How a call becomes a plan: what is chosen for what the call leaves open, compiled, and timed on a
// modelled network. The same for ranks that share an address space and for those that only have
// messages (mpi/member.h).

// What plans depend on beside the call. Refers to its communicator's, which it must not outlive.
struct PlanMaker {
  int ranks;
  const Costs& costs;
  const Environment& forced;    // for calls that leave the choice to us
  std::size_t slot_payload;     // as in CompileRequest
  int mailbox_capacity;         // likewise
  int ports = 0;                // likewise
  std::size_t most_plan_bytes;  // of memory that the making may take
  const std::vector<int>& levels;
  const TuningTable* tuning;      // or nullptr
  std::optional<Order> order;     // of calls that ask for none
  const CallClock* network;       // whose network chooses; or nullptr
  bool timed;                     // whether plans have a schedule for that network's clocks
  const ProcessRanks* processes;  // whose memory ranks share that are processes; nullptr: threads
  // Asked as it goes on; an error ends the making.
  const std::function<Status()>& may_go_on;

  // Errors: those of check_call() and compile(), an algorithm or an order that there is not, and
  // what may_go_on() answers.
  Result<std::unique_ptr<Prepared>> make(const PlanKey& key) const;

 private:
  Result<std::shared_ptr<const TimedSchedule>> time(const CompileRequest& request,
                                                    const Compiled& compiled, std::size_t m) const;
  Result<Compiled> compile_once(const Call& call, CompileRequest& request, std::size_t m,
                                const Costs& by, const std::vector<int>& fitting) const;
  // What may run in the place of what was chosen, the best first.
  Result<std::vector<Candidate>> others_to_try(const Call& call, const CompileRequest& chosen,
                                               std::size_t m, const Costs& by,
                                               const std::vector<int>& fitting) const;
};

}  // namespace rankine
