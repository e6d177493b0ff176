#include "numa/refusals.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace rankine {
namespace {

struct State {
  std::mutex mutex;
  std::set<std::string, std::less<>> seen;
  WarningSink sink;
};

// Never destroyed: threads may still warn while static objects are destroyed.
State& state() {
  static State* const instance = new State;
  return *instance;
}

void write_to_stderr(std::string_view text) {
  std::string line = "rankine: warning: ";
  line += text;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);  // stderr is unbuffered: one call, one write
}

}  // namespace

void warn_once(std::string_view key, std::string_view text) noexcept {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // writing is a cancellation point
  try {
    State& s = state();
    std::string line(text);
    for (char& c : line) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    const std::lock_guard lock(s.mutex);
    if (!s.seen.emplace(key).second) return;
    if (s.sink) {
      s.sink(key, line);
    } else {
      write_to_stderr(line);
    }
  } catch (...) {  // a lost warning is better than a lost process
  }
}

WarningSink set_warning_sink(WarningSink sink) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return std::exchange(s.sink, std::move(sink));
}

void forget_warnings() noexcept {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.seen.clear();
}

}  // namespace rankine
