// What processes must have alike to share memory as ranks that are processes do: the machine, the
// folder in which they meet (containers may mount others there), the namespace of process numbers,
// the user and the namespace of users. MPI has no part in it.
#pragma once

#include <cstdint>

namespace rankine {

struct SharedHost {
  std::uint64_t machine = 0;
  std::uint64_t memory = 0;  // of all of these
};

// This process's, read once. Thread-safe.
const SharedHost& shared_host();

}  // namespace rankine
