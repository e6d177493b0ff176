// A file that readers find whole or not at all: it is written beside its place, under a name that
// begins with a dot, and renamed when all of it is there. What was there before stays until then,
// and for good where something fails.
#pragma once

#include <string>
#include <string_view>

namespace rankine {

class WholeFile {
 public:
  // Refuses what is there and is no regular file: pipes, devices, directories, symbolic links
  // (/dev/stdout is one). Nothing here waits for anybody but the disk.
  explicit WholeFile(const std::string& path);
  ~WholeFile();  // without finish(): as if nothing had been written
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void append(std::string_view text);
  // Puts it in its place. Empty, or the first thing that failed: "No space left on device".
  std::string finish();

 private:
  void fail(int error);

  const std::string path_;
  std::string beside_;  // empty: none
  std::string error_;
  int file_ = -1;
};

}  // namespace rankine
