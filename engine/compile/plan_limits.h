// What the making of a plan may cost, and the meter that watches it.
//
// A plan is made inside a call: the call's deadline holds meanwhile, and so does abort(). A
// schedule may also move so many blocks that no memory holds its plan. Whoever plans counts its
// steps on a meter, which looks at the limits now and then; where one is passed, planning ends by
// an exception that compile() turns into a Status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "engine/base/status.h"

namespace rankine {

struct PlanLimits {
  // Of memory that the making of a plan may take at a time.
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  // Asked about every 0.1 ms: planning goes on while it answers ok, and else ends with that.
  // Empty: nobody ends it.
  std::function<Status()> interrupted{};
};

// These end planning from anywhere inside, and leave compile() as a Status.
struct PlanningEnded {
  Status status;
};
struct PlanTooLarge {};

// The memory that it takes to plan, at most, where so many times a block goes from one rank to
// another. Neighbours that travel together become one operation, and take less.
constexpr std::size_t planning_bytes(int ranks, int blocks, std::size_t moves) {
  // A move becomes a version of a block, which knows what it is made from; then an operation with
  // its sources and, in the passes over programs, what it touches; then ops that wait, move and
  // wait again.
  constexpr std::size_t kPerMove = 848;
  constexpr std::size_t kPerPair = 32;   // of ranks: what they know of one another
  constexpr std::size_t kPerBlock = 64;  // where it lies
  constexpr std::size_t kAlways = std::size_t{128} << 10;
  const auto n = static_cast<std::size_t>(ranks);
  return kAlways + kPerPair * n * n + kPerBlock * static_cast<std::size_t>(blocks) +
         kPerMove * moves;
}

// Used by the one thread that plans.
class PlanMeter {
 public:
  explicit PlanMeter(const PlanLimits& limits) : limits_(limits) {}
  PlanMeter(const PlanMeter&) = delete;
  PlanMeter& operator=(const PlanMeter&) = delete;

  // Some tens of nanoseconds of work are done. Throws PlanningEnded where they were the last ones.
  void step() {
    if (--left_ == 0) [[unlikely]]
      look();
  }

  std::size_t bytes() const { return planning_bytes(ranks_, blocks_, moves_); }
  // Whether planning so many moves as well takes at most half of the memory that it may take.
  bool has_room_for(std::size_t moves) const {
    return planning_bytes(ranks_, blocks_, moves_ + moves) <= limits_.bytes / 2;
  }

  // From here on moves are counted anew: a schedule is read once more.
  void begin(int ranks, int blocks) {
    ranks_ = ranks;
    blocks_ = blocks;
    moves_ = 0;
  }
  // One step, and one block more that goes to one rank, or is added up once more. Throws
  // PlanTooLarge where planning so many needs more memory than it may take.
  void move() {
    step();
    ++moves_;
    if (bytes() > limits_.bytes) [[unlikely]]
      throw PlanTooLarge{};
  }

 private:
  static constexpr std::uint32_t kStepsPerLook = 1024;

  void look() {
    left_ = kStepsPerLook;
    if (!limits_.interrupted) return;
    if (Status status = limits_.interrupted(); !status.ok()) throw PlanningEnded{std::move(status)};
  }

  const PlanLimits& limits_;
  std::uint32_t left_ = kStepsPerLook;
  int ranks_ = 1, blocks_ = 1;
  std::size_t moves_ = 0;
};

// The same where there may be no meter: tests, and readers that plan for themselves.
inline void step(PlanMeter* meter) {
  if (meter != nullptr) meter->step();
}

}  // namespace rankine
