// Collects warnings instead of letting them reach stderr.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numa/refusals.h"

namespace rankine {

// While alive: every key counts as not yet seen, and warnings land here. Read `lines` once no
// thread can warn.
class CapturedWarnings {
 public:
  CapturedWarnings() {
    forget_warnings();
    before_ = set_warning_sink(
        [this](std::string_view key, std::string_view text) { lines.emplace_back(key, text); });
  }
  ~CapturedWarnings() { set_warning_sink(std::move(before_)); }
  CapturedWarnings(const CapturedWarnings&) = delete;
  CapturedWarnings& operator=(const CapturedWarnings&) = delete;

  std::vector<std::pair<std::string, std::string>> lines;  // (key, text)

 private:
  WarningSink before_;
};

}  // namespace rankine
