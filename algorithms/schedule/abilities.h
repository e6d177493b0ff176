// What a network does with one transfer, beyond carrying a message from one rank to another.
#pragma once

namespace rankine {

struct Abilities {
  bool multicast = false;  // one -> many
  bool alu = false;        // many -> one, added up on the way
};

}  // namespace rankine
