// The algorithms that Trivance is compared with, and itself: names of the paper, and which lines of
// the catalogue they are.
#pragma once

#include <span>
#include <string_view>

namespace rankine::reproduce {

// (L) and (B) of the paper.
enum class Form : unsigned char { latency, bandwidth };
std::string_view letter_of(Form form);  // "L", "B"

struct Contender {
  std::string_view name;
  std::string_view latency;  // lines of all_reduce; empty: there is no such form
  std::string_view bandwidth;
  bool powers_of_two = false;  // the paper runs it on tori of such sizes only

  std::string_view line(Form form) const { return form == Form::latency ? latency : bandwidth; }
};

// In the order of the figures' legends: Bucket, Recursive doubling, Swing, Bruck, Trivance.
std::span<const Contender> contenders();
const Contender& trivance();
const Contender* find_contender(std::string_view name);  // or nullptr

}  // namespace rankine::reproduce
