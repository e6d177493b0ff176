#include "engine/tools/console.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

namespace rankine::tools {

Exit exit_of(Code code) {
  switch (code) {
    case Code::ok:
      return Exit::ok;
    case Code::invalid_argument:
      return Exit::usage;
    case Code::timeout:
      return Exit::timeout;
    case Code::out_of_memory:
    case Code::system:
      return Exit::environment;
    case Code::mismatch:
    case Code::rank_lost:
    case Code::remote_error:
    case Code::aborted:
    case Code::forked:
      return Exit::wrong;
  }
  return Exit::wrong;
}

std::string time_left(std::size_t done, std::size_t all, double seconds) {
  if (done == 0 || done >= all || seconds < 1) return {};
  const double left = seconds / static_cast<double>(done) * static_cast<double>(all - done);
  if (left >= 3600) return fmt::format(", {:.1f} h left", left / 3600);
  if (left >= 120) return fmt::format(", {:.0f} min left", left / 60);
  return fmt::format(", {:.0f} s left", std::max(1.0, left));
}

void Progress::show(std::string_view text) {
  if (!console_.err_is_terminal) {
    const double took = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (next_line_ <= 0 || took < next_line_) return;
    console_.err << text << std::endl;
    while (next_line_ <= took) next_line_ *= 2;
    return;
  }
  const std::size_t blanks = width_ > text.size() ? width_ - text.size() : 0;
  console_.err << '\r' << text << std::string(blanks, ' ') << std::flush;
  width_ = text.size();
}

bool Progress::due() {
  const auto now = Clock::now();
  if (now - was_due_ < std::chrono::milliseconds(100)) return false;
  was_due_ = now;
  return true;
}

void Progress::clear() {
  if (width_ == 0) return;
  console_.err << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace rankine::tools
