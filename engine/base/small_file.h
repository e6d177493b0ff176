// Files that a user, an environment variable or the kernel names, and that are small where they are
// what they should be. A pipe that nobody writes, a device without an end, a file of gigabytes: all
// are refused, and nothing waits.
#pragma once

#include <cstddef>
#include <string>

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

}  // namespace rankine
