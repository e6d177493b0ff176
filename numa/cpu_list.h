// CPU numbers as the kernel writes them: "0,2,4-7".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankine {

constexpr int kMaxCpus = 8192;  // the largest NR_CPUS that x86-64 Linux can be built with

struct CpuList {
  std::vector<int> cpus;  // in the order written
  std::string error;      // empty: well-formed
  bool ok() const { return error.empty(); }
};

// Reads "0,2,4-7": numbers and rising ranges, separated by commas, each in 0..kMaxCpus-1 and none
// twice. The error names the offending part and what is expected.
CpuList parse_cpu_list(std::string_view text);

// The inverse, with runs of neighbours folded: {0,2,4,5,6,7} -> "0,2,4-7". Keeps the order given.
std::string format_cpu_list(const std::vector<int>& cpus);

}  // namespace rankine
