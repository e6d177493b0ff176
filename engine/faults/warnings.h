// What the engine warns of while a case is played.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/faults/judge.h"
#include "numa/warnings.h"

namespace rankine::faults {

// Hears the warnings of this process, as if none had been given before.
class Warnings {
 public:
  Warnings() {
    forget_warnings();
    before_ = set_warning_sink(
        [this](std::string_view key, std::string_view) { ++heard_[std::string(key)]; });
  }
  ~Warnings() { set_warning_sink(std::move(before_)); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  // Each of these once, and nothing else.
  void expect(const std::vector<std::string>& keys, Judge& judge) const {
    std::map<std::string, int> wanted;
    for (const std::string& key : keys) wanted[key] = 1;
    if (heard_ == wanted) return;
    std::string text = "warnings:";
    for (const auto& [key, times] : heard_) text += " " + key + " " + std::to_string(times) + "x";
    judge.blame(text);
  }
  bool heard(const std::string& key) const { return heard_.contains(key); }

 private:
  std::map<std::string, int> heard_;
  WarningSink before_;
};

}  // namespace rankine::faults
