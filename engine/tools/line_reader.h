// Lines of a stream as they come: what is there can be answered before more is asked.
#pragma once

#include <cstddef>
#include <deque>
#include <iosfwd>
#include <string>
#include <vector>

namespace rankine::tools {

class LineReader {
 public:
  struct Line {
    std::size_t number;  // from 1
    std::string text;    // without its end
  };

  // Of longer lines the first most_bytes + 1 bytes are kept, so that who reads them sees that they
  // are too long.
  LineReader(std::istream& in, std::size_t most_bytes) : in_(in), most_bytes_(most_bytes) {}

  // Waits until a whole line is there, and gives that and those that are there besides, up to
  // `most` and to a mebibyte or so; begun lines stay for later. Empty: the end. Throws what the
  // stream's buffer throws where it cannot be read.
  std::vector<Line> next(std::size_t most);

 private:
  void read_some();
  void append(const char* from, const char* to);
  void end_line();

  std::istream& in_;
  const std::size_t most_bytes_;
  std::deque<Line> whole_;
  std::size_t whole_bytes_ = 0;
  std::string begun_;
  bool in_line_ = false, ended_ = false;
  std::size_t number_ = 0;
};

}  // namespace rankine::tools
