// What processes must have in common to be ranks of one communicator: whatever decides which plan a
// call gets and what it means. Each process compiles its own plans, so all must come to the same.
#pragma once

#include <cstdint>
#include <string>

namespace rankine {

// Plain memory, to lie in a file that other processes read. Texts end with a zero.
struct ProcessSettings {
  char host[64] = {};
  char boot[40] = {};
  std::uint64_t pid_namespace = 0;
  char version[16] = {};
  char isa[16] = {};  // of the kernels
  std::int32_t ranks = 0;
  // Hashes.
  std::uint64_t environment = 0;  // what is forced by variables
  std::uint64_t tuning = 0;       // table
  std::uint64_t costs = 0;
  std::uint64_t options = 0;  // levels, network, order, plan_bytes

  bool operator==(const ProcessSettings&) const = default;
};

// The first thing in which they differ: "version is 0.1.0 of rank 0 and 0.2.0 of rank 3".
std::string difference(const ProcessSettings& one, const std::string& who,
                       const ProcessSettings& other, const std::string& whose);

}  // namespace rankine
