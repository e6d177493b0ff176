// What every call says that has given up, whoever it waited for: its time, and what it was about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rankine {

// "no answer within 200 ms: rank 0 was still planning its call"
inline std::string no_answer_within(std::int64_t timeout_ns, std::string_view waiting) {
  return "no answer within " + std::to_string(timeout_ns / 1'000'000) +
         " ms: " + std::string(waiting);
}

}  // namespace rankine
