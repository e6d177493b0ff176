// What else there is to do for a rank that waits.
#pragma once

namespace rankine {

struct Awaited;

class OtherWork {
 public:
  virtual ~OtherWork() = default;
  // A wait begins, for that. Who asks it (Awaited::is_there) knows whether the rank can go on.
  virtual void wait_for(const Awaited&) noexcept {}
  // Called where the rank would spin on, yield or sleep, again and again until what it waits for
  // has come: `turn` counts the calls of one wait, from 0. Returns soon, and lets time pass where
  // there is nothing to do.
  virtual void give_way(int turn) noexcept = 0;
};

}  // namespace rankine
