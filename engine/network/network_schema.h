// What network files may say, for editors and other programs: a JSON Schema.
#pragma once

#include <string>

namespace rankine {

// A schema of draft 2020-12 with every row of network_members(), as text with a line feed at its
// end. Every file that is read satisfies it; of those that satisfy it read_network() refuses some:
// what asks for other members, such as dims for torus wiring, and numbers in texts beyond 128 bits.
std::string network_schema();

}  // namespace rankine
