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
  std::int8_t transport = -1;  // -1: the engine chooses
  bool in_place = false;       // where it makes a difference to the plan
  int shape = 0;               // Shared::shape_of() of dims and skips; 0: the defaults

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
  std::vector<int> dims, skips;
  explicit Shape(const CallOptions& options)
      : dims(options.dims.begin(), options.dims.end()),
        skips(options.skips.begin(), options.skips.end()) {}
  bool operator<(const Shape& other) const {
    return std::tie(dims, skips) < std::tie(other.dims, other.skips);
  }
  bool is(const CallOptions& options) const {
    return std::ranges::equal(dims, options.dims) && std::ranges::equal(skips, options.skips);
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

// Bytes of a mailbox slot. Larger slots for few ranks: N * (N - 1) mailboxes must stay within a few
// MiB.
std::uint32_t slot_stride(int ranks);

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
        stride(slot_stride(options.ranks)),
        recorder(options.ranks, options.record_times || environment.flight_times),
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
  Result<PreparedPtr> make(const Key& key, const Call& call) const;
  Status provide_mailboxes(const Plan& plan);

  const int ranks;
  const std::uint32_t forks = count_forks();
  const Environment forced;  // for calls that leave the choice to us
  const std::uint32_t first_count;
  const std::uint32_t stride;
  FlightRecorder recorder;
  std::atomic<bool> flight_record_left{false};  // in the file that the environment asks for
  Crossbar crossbar;
  std::vector<ArenaOptions> arena_options;

  mutable std::mutex mutex;  // guards what follows
  std::vector<bool> joined;
  std::vector<Arena> arenas;       // mailboxes live with their readers
  std::vector<Mailbox> mailboxes;  // [from * ranks + to]; made when a plan first needs one
  std::map<std::pair<Key, std::vector<std::size_t>>, PreparedPtr> plans;
  std::size_t plan_bytes = 0;
  std::map<Shape, int> shapes;
  int last_shape = 0;
  std::vector<std::size_t> scratch_bytes = std::vector<std::size_t>(joined.size(), 0);
};

}  // namespace rankine
