// The plans of a communicator, and those that one rank holds.
//
// Every rank keeps what it uses in a RankPlans of its own, where a look-up is a comparison for the
// call that it made last, and else a hash, a few loads and a comparison. What it does not hold it
// finds in the PlanTable that all ranks share, without a lock; only what nobody has planned yet is
// planned under one. A rank counts by itself who of its own holds a plan, so that ranks do not take
// one counter's line from each other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/order.h"
#include "engine/api/plan_key.h"
#include "engine/base/cache_line.h"
#include "engine/run/fingerprint.h"
#include "engine/run/plan.h"

namespace rankine {

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

}  // namespace rankine
