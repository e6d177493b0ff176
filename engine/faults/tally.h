// What the calls of fault cases came to, counted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace rankine::faults {

struct Tally {
  std::int64_t cases = 0;
  // Calls (of one rank each) by the code that they returned; [0]: successes that were right.
  std::array<std::int64_t, kCodes> returned{};
  // Broken promises.
  std::int64_t hangs = 0;         // cases in which a call did not return at all
  std::int64_t wrong = 0;         // successes with wrong data; bytes changed that nobody may change
  std::int64_t undocumented = 0;  // other outcomes than the fault's documented ones; deaths
  std::int64_t late = 0;          // calls that returned later than promised
  // Cases that cannot be made on this machine, and why (the first reason).
  std::int64_t impossible = 0;
  std::string why_impossible;
  std::vector<std::string> remarks;  // what went wrong, the first kRemarks of it

  static constexpr std::size_t kRemarks = 20;

  std::int64_t broken() const { return hangs + wrong + undocumented + late; }
  void remark(std::string text) {
    if (remarks.size() < kRemarks) remarks.push_back(std::move(text));
  }
  Tally& operator+=(const Tally& other) {
    cases += other.cases;
    for (std::size_t i = 0; i < returned.size(); ++i) returned[i] += other.returned[i];
    hangs += other.hangs;
    wrong += other.wrong;
    undocumented += other.undocumented;
    late += other.late;
    impossible += other.impossible;
    if (why_impossible.empty()) why_impossible = other.why_impossible;
    for (const std::string& text : other.remarks) remark(text);
    return *this;
  }
};

}  // namespace rankine::faults
