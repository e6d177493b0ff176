#include "engine/tools/line_reader.h"

#include <algorithm>
#include <istream>
#include <streambuf>
#include <utility>

namespace rankine::tools {

std::vector<LineReader::Line> LineReader::next(std::size_t most) {
  constexpr std::size_t kEnoughBytes = std::size_t{1} << 20;
  const auto more_is_there = [this] { return in_.rdbuf()->in_avail() > 0; };
  while (!ended_ && (whole_.empty() ||
                     (whole_.size() < most && whole_bytes_ < kEnoughBytes && more_is_there()))) {
    read_some();
  }
  std::vector<Line> lines;
  for (; !whole_.empty() && lines.size() < most; whole_.pop_front()) {
    whole_bytes_ -= whole_.front().text.size();
    lines.push_back(std::move(whole_.front()));
  }
  return lines;
}

// Waits for one byte and takes those that have come with it: asking for more would wait for them.
void LineReader::read_some() {
  constexpr std::streamsize kAtOnce = std::streamsize{64} << 10;
  char bytes[kAtOnce];
  std::streambuf& in = *in_.rdbuf();
  if (in.sgetc() == std::char_traits<char>::eof()) {
    ended_ = true;
    if (in_line_) end_line();
    return;
  }
  const char* from = bytes;
  const char* const end =
      bytes + in.sgetn(bytes, std::clamp<std::streamsize>(in.in_avail(), 1, kAtOnce));
  while (from < end) {
    const char* const stop = std::find(from, end, '\n');
    append(from, stop);
    if (stop == end) break;
    end_line();
    from = stop + 1;
  }
}

void LineReader::append(const char* from, const char* to) {
  in_line_ = true;
  const std::size_t room = most_bytes_ + 1 - begun_.size();
  begun_.append(from, std::min(static_cast<std::size_t>(to - from), room));
}

void LineReader::end_line() {
  whole_bytes_ += begun_.size();
  whole_.push_back({++number_, std::exchange(begun_, {})});
  in_line_ = false;
}

}  // namespace rankine::tools
