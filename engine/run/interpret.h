// The hot loop: walks a rank's ops. It knows ops, words and addresses; no schedule and no
// algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/memory.h"
#include "engine/run/crossbar.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "engine/run/staging_stores.h"
#include "engine/run/user_functions.h"
#include "engine/run/wait.h"

namespace rankine {

// What one rank carries from call to call. Used by that rank's thread only.
struct RankState {
  Waiter waiter;
  std::uint32_t progress_base = 0;  // of this call; advances by Plan::span
  ZeroedVector<Outbox> outbox;      // by peer
  ZeroedVector<Inbox> inbox;        // by peer
  ZeroedVector<Board> boards;       // by rank
  std::uint32_t posts = 0;          // made so far
  std::uint32_t past = 0;           // a hash of the calls made so far: fingerprints, in order
  // Addresses of input, output and scratch by rank; our own are set by the caller, the others' are
  // learnt from their entries during a call.
  ZeroedVector<std::byte*> memory;
  StagingStores staging;
  std::vector<void*> operands;         // room for the most operands of any plan that we run
  const UserOp* user_op = nullptr;     // of this call, where its plan has OpCode::apply
  const Epilogue* epilogue = nullptr;  // of this call, where its plan has OpCode::finish

  std::byte*& memory_of(std::size_t rank, Memory which) {
    return memory[rank * 4 + static_cast<std::size_t>(which)];
  }
};

// Is told when a rank comes to a round of the schedule (from 0), before it does anything of it: the
// place of clocks and perturbation. False ends the call.
class RoundObserver {
 public:
  virtual ~RoundObserver() = default;
  virtual bool before_round(int k) noexcept = 0;
};

// Runs one call. The caller has set our own addresses in `memory`, waiter.call and
// waiter.fingerprint. Neither allocates nor throws. False: the communicator was aborted.
bool interpret(const Plan& plan, RankState& state) noexcept;

// The same, observed: every round is announced, also those in which this rank has nothing to do.
bool interpret(const Plan& plan, RankState& state, RoundObserver& observer) noexcept;

// Where a call has come to that is walked step by step. Default: its beginning.
struct Cursor {
  std::size_t op = 0, operand = 0;
  bool waited = false;  // and others were told
  std::int64_t next_look_ns = 0;
};

enum class Walked : std::uint8_t { done, waiting, failed };

// Goes on with the call from there as far as that is possible without waiting for another rank.
// waiting: to be called again, by and by; failed: the communicator was aborted. `plan` is the same
// until the call is done. (Once in 2^29 steps of the progress counters it waits all the same.)
Walked interpret_some(const Plan& plan, RankState& state, Cursor& cursor) noexcept;
// Goes on to the end, and waits as interpret() does.
bool interpret_rest(const Plan& plan, RankState& state, Cursor& cursor) noexcept;

}  // namespace rankine
