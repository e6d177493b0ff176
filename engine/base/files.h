// Files that a user, an environment variable or the kernel names, and that are small where they are
// what they should be. A pipe that nobody writes, a device without an end, a file of gigabytes: all
// are refused, and nothing waits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine {

struct SmallFile {
  std::string text;   // all of it
  std::string error;  // why there is no text: "No such file or directory", "it is a pipe, ..."
  bool is_missing = false;  // there is no such file

  bool ok() const { return error.empty(); }
};

// The whole of a regular file (those of /proc, /sys and control groups are such) that holds at most
// `limit` bytes. Throws std::bad_alloc, and nothing else.
SmallFile read_small_file(const std::string& path, std::size_t limit);

// "it is a pipe, and no regular file", by a mode as of stat(2); empty: it is a regular file.
std::string refusal_of_file(unsigned mode);

// A file that readers find whole or not at all: it is written beside its place, under a name that
// begins with a dot, and renamed when all of it is there. What was there before stays until then,
// and for good where something fails.

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

// Files that are replaced whole: whoever reads one finds the old text or the new one, whatever ends
// the process in between.

// Writes `text` to a new file beside `path`, which then takes its name. A symbolic link stays, and
// what it points to is replaced; a file that was there keeps its permissions. What is no regular
// file (a device, a pipe) is written to as it is. Errors: `system`, with the path and the reason;
// then what was there is untouched, and nothing new lies beside it. From any thread.
Status replace_file(const std::string& path, std::string_view text);

// Whether replace_file() can make its new file there, found out by making an empty one and removing
// it. To be asked before long work, so that nobody waits for it in vain.
Status check_replaceable(const std::string& path);

}  // namespace rankine
