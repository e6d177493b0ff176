// A file that readers find whole or not at all: it is written beside its place, under a name that
// begins with a dot, and renamed when all of it is there. What was there before stays until then,
// and for good where something fails.
#pragma once

#include <string>
#include <string_view>

namespace rankine {

// Writes all of it. 0, or errno's value.
int write_all(int descriptor, std::string_view text);

class WholeFile {
 public:
  // Refuses what is there and is no regular file: pipes, devices, directories, symbolic links
  // (/dev/stdout is one). Nothing here waits for anybody but the disk.
  explicit WholeFile(const std::string& path);
  ~WholeFile();  // without finish(): as if nothing had been written
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  // What it will be allowed, as chmod(2) takes it; otherwise what the umask leaves of 0666.
  void permit(unsigned permissions);
  void append(std::string_view text);
  // The first thing that failed so far, or empty.
  const std::string& error() const { return error_; }
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
