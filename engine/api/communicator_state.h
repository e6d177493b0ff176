// What the ranks of a communicator share, and how a call becomes a plan: the inside of
// communicator.h, for its two source files only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/placed_lines.h"
#include "engine/api/tuning.h"
#include "engine/exec/board.h"
#include "engine/exec/fingerprint.h"
#include "engine/exec/flight_recorder.h"
#include "engine/exec/fork_count.h"
#include "engine/exec/mailbox.h"
#include "engine/exec/plan.h"

namespace rankine {

// What distinguishes one plan from another.
struct Key {
  std::size_t count = 0;
  const Algorithm* algorithm = nullptr;  // nullptr: the engine chooses
  Rank root = 0, peer = 0;
  int segments = 0, group = 0;
  Collective collective = Collective::all_reduce;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::int16_t transport = -1;  // -1: the engine chooses. Has room for all that a caller may give
  bool in_place = false;        // where it makes a difference to the plan
  int shape = 0;                // Shared::shape_of() of dims, skips and levels; 0: the defaults

  auto tie() const {
    return std::tie(count, algorithm, root, peer, segments, group, collective, type, op, transport,
                    in_place, shape);
  }
  bool operator==(const Key& other) const { return tie() == other.tie(); }
  bool operator<(const Key& other) const { return tie() < other.tie(); }
  std::size_t hash() const {
    std::uint64_t h = count * 0x9e3779b97f4a7c15u;
    h ^= reinterpret_cast<std::uintptr_t>(algorithm) >> 4;
    h ^= static_cast<std::uint64_t>(collective) << 7 ^ static_cast<std::uint64_t>(type) << 13 ^
         static_cast<std::uint64_t>(op) << 17 ^ static_cast<std::uint64_t>(root) << 23 ^
         static_cast<std::uint64_t>(in_place) << 31 ^ static_cast<std::uint64_t>(shape) << 37;
    return static_cast<std::size_t>(h * 0xd6e8feb86659fd93u >> 32);
  }
};

// Parameters of a call that are lists.
struct Shape {
  std::vector<int> dims, skips, levels;
  explicit Shape(const CallOptions& options)
      : dims(options.dims.begin(), options.dims.end()),
        skips(options.skips.begin(), options.skips.end()),
        levels(options.levels.begin(), options.levels.end()) {}
  bool operator<(const Shape& other) const {
    return std::tie(dims, skips, levels) < std::tie(other.dims, other.skips, other.levels);
  }
  bool is(const CallOptions& options) const {
    return std::ranges::equal(dims, options.dims) && std::ranges::equal(skips, options.skips) &&
           std::ranges::equal(levels, options.levels);
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
// Whoever holds one keeps it: it counts in Shared::plan_bytes until the last holder lets go.
using PreparedPtr = std::shared_ptr<const Prepared>;

// Plans that a communicator keeps, beyond the newest: what it takes to run without planning anew,
// and no more. Ranks that hold others still let go of them when they next meet a new one.
inline constexpr std::size_t kSharedPlans = 1024;
inline constexpr std::size_t kSharedPlanBytes = std::size_t{32} << 20;

// One rank's scratch, as its member has it: for reports.
struct ScratchNote {
  MemoryRange range;
  Enforcement binding, huge_pages, locking;
};

// Slots and bytes per slot of a mailbox. Less for many ranks, since there may be N * (N - 1): 0.2
// MiB in all at N = 4, 1.2 at 16, 2.0 at 32, 2.2 at 64.
struct MailboxShape {
  std::uint32_t slots = kSlots;
  std::uint32_t stride = 0;
};
MailboxShape mailbox_shape(int ranks);

// What a child of the process that made a communicator gets from it.
inline Status forked_status() noexcept {
  return make_error(Code::forked, [] {
    return "this process was forked from the one whose ranks these are; make a communicator of its "
           "own";
  });
}

// One per communicator. Const members and the crossbar need no lock.
struct Communicator::Shared {
  Shared(const CommunicatorOptions& options, WaitPolicy policy, const Environment& environment)
      : ranks(options.ranks),
        forced(environment),
        first_count(options.first_count),
        mail(mailbox_shape(options.ranks)),
        levels(options.levels.begin(), options.levels.end()),
        tuning(options.tuned ? machine_tuning() : nullptr),
        recorder(options.ranks, options.record_times || environment.flight_times),
        lines(options.ranks, options.arenas),
        crossbar(options.ranks, policy,
                 std::chrono::duration_cast<std::chrono::nanoseconds>(options.timeout).count(),
                 std::nullopt, lines.memory()),
        joined(static_cast<std::size_t>(options.ranks), false),
        mailboxes(static_cast<std::size_t>(options.ranks) *
                  static_cast<std::size_t>(options.ranks)),
        boards(static_cast<std::size_t>(options.ranks)) {
    for (Rank r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      arena_options.push_back(options.arenas.empty() ? ArenaOptions{} : options.arenas[i]);
      ArenaOptions near = arena_options.back();
      near.chunk_bytes = 64 * 1024;
      near.huge_pages = false;
      arenas.emplace_back(near);
      crossbar.progress(r).value.store(first_count, std::memory_order_relaxed);
      crossbar.entry(r).call.store(first_count, std::memory_order_relaxed);
    }
  }

  // A number for the lists, the same for all ranks, so that keys are small and calls need not
  // allocate. Never 0.
  Result<int> shape_of(const Shape& shape, Waiter& waiter);
  // Takes the lock below for a call. Whoever plans holds it for long, and may be stopped with it;
  // so who waits for it gives up when its time has passed, which ends the communicator, or when
  // that has ended.
  Status lock_for_call(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  // Whether this process is a child of the one that made the communicator.
  bool forked() const { return fork_count.load(std::memory_order_relaxed) != forks; }

  Result<PreparedPtr> prepare(const Key& key, const Call& call, Waiter& waiter);
  Result<PreparedPtr> make(const Key& key, const Call& call);
  Status provide_mailboxes(const Plan& plan);
  Status provide_boards(const Plan& plan);

  const int ranks;
  const std::uint32_t forks = count_forks();
  const Environment forced;  // for calls that leave the choice to us
  const std::uint32_t first_count;
  const MailboxShape mail;
  const std::vector<int> levels;
  const TuningTable* const tuning;  // or nullptr
  FlightRecorder recorder;
  std::atomic<bool> flight_record_left{false};  // in the file that the environment asks for
  const PlacedLines lines;
  Crossbar crossbar;
  std::vector<ArenaOptions> arena_options;
  // Of all plans that live, also of those that only ranks still hold. Relaxed: a bound, not a lock.
  std::atomic<std::size_t> plan_bytes{0};
  std::atomic<std::size_t> member_bytes{0};  // of the members' own tables

  mutable std::mutex mutex;  // guards what follows
  std::vector<bool> joined;
  std::vector<Arena> arenas;       // by reader: slots with who receives, credit with who sends;
                                   // boards with who posts
  std::vector<Mailbox> mailboxes;  // [from * ranks + to]; made when a plan first needs one
  std::vector<Board> boards;       // likewise
  std::map<std::pair<Key, std::vector<std::size_t>>, PreparedPtr> plans;
  std::size_t shared_plan_bytes = 0;  // of those in `plans`
  std::map<Shape, int> shapes;
  int last_shape = 0;
  std::vector<ScratchNote> scratch = std::vector<ScratchNote>(joined.size());
};

}  // namespace rankine
