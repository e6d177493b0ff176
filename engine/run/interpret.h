// interpret() is the hot loop: it walks a rank's ops. It knows ops, words and addresses, but no
// schedule and no algorithm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/memory.h"
#include "engine/run/form_trials.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "engine/run/rank_control.h"
#include "engine/run/staging_stores.h"
#include "engine/run/user_functions.h"
#include "engine/run/wait.h"

namespace rankine {

// The sources of a sum that lie in other processes are read in pieces, so that the pieces of all of
// them are still in the cache when they are added.
inline constexpr std::size_t kReadRoom = std::size_t{256} << 10;

// A rank's scratch. Each call that runs ahead takes the next place of a ring, because lines in a
// reader's second-level cache are slow to overwrite. (Zen 4, 32 KiB: 3.9 us, other lines 1.2 us.)
// Other ranks may still read the place of the call before, but no earlier one.
struct Scratch {
  std::byte* begin = nullptr;
  std::size_t ring_bytes = 0;  // 0: no call runs ahead
  std::size_t next = 0;        // of the ring

  // Returns the place of a call with `bytes` of scratch. `alone`: no other rank reads the ring.
  std::byte* place(bool alone, std::size_t bytes) noexcept {
    if (alone || ring_bytes == 0) return begin;
    if (next + bytes > ring_bytes) next = 0;
    std::byte* const found = begin + next;
    next += whole_lines(bytes);
    return found;
  }
};
// A call, and the progress after which no other rank reads this rank's scratch of the call
// (OpCode::leave_reader). Ranks that run ahead have room for all their readers.
struct Readers {
  std::uint64_t call = 0;
  std::vector<WaitTarget> all;
};
// The most bytes of a call that runs ahead, and the size of a rank's ring, in which two successive
// calls never overlap. All rings together have 4 MiB.
constexpr std::size_t ahead_max_bytes(int ranks) {
  return whole_lines((std::size_t{1} << 20) / static_cast<std::size_t>(ranks));
}
constexpr std::size_t ring_bytes(int ranks) { return 4 * ahead_max_bytes(ranks); }

// The state that one rank keeps from call to call. Used by that rank's thread only.
struct RankState {
  Waiter waiter;
  std::uint32_t progress_base = 0;  // of this call; advances by Plan::span
  ZeroedVector<Outbox> outbox;      // by peer
  ZeroedVector<Inbox> inbox;        // by peer
  ZeroedVector<Board> boards;       // by rank
  std::uint32_t posts = 0;          // made so far
  std::uint32_t call_history = 0;   // a hash of the calls made so far: fingerprints, in order
  // Addresses of input, output and scratch by rank. The caller sets this rank's own; the others'
  // come from their entries during a call.
  ZeroedVector<std::byte*> memory;
  Scratch scratch;                 // this rank's
  std::array<Readers, 2> readers;  // by the last bit of their call's number
  StagingStores staging;
  std::unique_ptr<FormTrials> trials;  // if a plan of this rank has OpCode::choose
  std::vector<void*> operands;         // room for the most operands of any plan of this rank
  HugeVector<std::byte> read_room;     // kReadRoom bytes if a plan of this rank has OpCode::reach
  const UserOp* user_op = nullptr;     // this call's operation, if its plan has OpCode::apply
  const Epilogue* epilogue = nullptr;  // this call's epilogue, if its plan has OpCode::finish

  std::byte*& memory_of(std::size_t rank, Memory which) {
    return memory[rank * 4 + static_cast<std::size_t>(which)];
  }
};

// RoundObserver is called when a rank reaches a round of the schedule (from 0), before the rank
// does any of its work: the hook for clocks and perturbation. False ends the call.
class RoundObserver {
 public:
  virtual ~RoundObserver() = default;
  virtual bool before_round(int k) noexcept = 0;
};

// Runs one call. The caller has set this rank's own addresses in `memory`, waiter.call and
// waiter.fingerprint. Neither allocates nor throws. False: the communicator was aborted.
bool interpret(const Plan& plan, RankState& state) noexcept;

// interpret() with an observer: it announces every round, even one in which this rank has no op.
bool interpret(const Plan& plan, RankState& state, RoundObserver& observer) noexcept;

// PlanRunner runs a rank's calls with interpret(), for a transport beside shared memory: it
// provides the mailboxes between this rank and the ranks of other nodes.
class PlanRunner {
 public:
  virtual ~PlanRunner() = default;
  // Allocates the memory that this rank's calls with that plan need. No call is in flight. May
  // throw std::bad_alloc.
  virtual void make_room(const Plan& plan, RankState& state) = 0;
  // As interpret().
  virtual bool run(const Plan& plan, RankState& state) noexcept = 0;
};

// The position of a call that is walked step by step. Default: its beginning.
struct Cursor {
  std::size_t op = 0, operand = 0;
  bool waited = false;  // the reports show this wait
  std::int64_t next_look_ns = 0;
};

enum class Walked : std::uint8_t { done, waiting, failed };

// Continues the call from `cursor` until an op would wait for another rank. waiting: call again
// later; failed: the communicator was aborted. `plan` must not change until the call is done. (Once
// in 2^29 steps of the progress counters this function waits nevertheless.)
Walked interpret_some(const Plan& plan, RankState& state, Cursor& cursor) noexcept;
// Continues the call to its end, and waits as interpret() does.
bool interpret_rest(const Plan& plan, RankState& state, Cursor& cursor) noexcept;

}  // namespace rankine
