// What a network's switch does, beyond carrying a message from one rank to another.
#pragma once

namespace rankine {

struct Abilities {
  bool multicast = false;  // one -> many
  bool alu = false;        // many -> one, added up on the way
  bool permute = false;  // all one -> one of a round at once: no schedule asks for it, so there is
                         // nothing to lower
};

}  // namespace rankine
