// This header reads small files within a limit, replaces whole files atomically, and reads the
// environment. Paths may come
// from a user, an environment variable or the kernel: pipes, devices and files above the limit are
// refused, and no call blocks on them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace rankine {

struct SmallFile {
  std::string text;  // all of it; empty on error
  // the reason for a missing text: "No such file or directory", "it is a pipe, ..."
  std::string error;
  bool is_missing = false;  // no such file

  bool ok() const { return error.empty(); }
};

// Reads a whole regular file (files of /proc, /sys and control groups count as regular) of at most
// `limit` bytes. Throws only std::bad_alloc.
SmallFile read_small_file(const std::string& path, std::size_t limit);

// "it is a pipe, and no regular file", for a mode of stat(2); empty: a regular file.
std::string refusal_of_file(unsigned mode);

// WholeFile writes a file that readers see completely or not at all: it writes a neighbour with a
// name that begins with a dot, and renames it when the text is complete. The old file stays until
// then, and for good if a step fails.

// Writes the whole text. Returns 0 or errno's value.
int write_all(int descriptor, std::string_view text);

class WholeFile {
 public:
  // Refuses an existing path that is no regular file: pipes, devices, directories, symbolic links
  // (/dev/stdout is one). Waits for nothing but the disk.
  explicit WholeFile(const std::string& path);
  ~WholeFile();  // without finish(): discards the text
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  // Sets the file's permissions, as for chmod(2); by default 0666 reduced by the umask.
  void permit(unsigned permissions);
  void append(std::string_view text);
  // The first error so far, or empty.
  const std::string& error() const { return error_; }
  // Moves the file to its place. Returns empty or the first error: "No space left on device".
  std::string finish();

 private:
  void fail(int error);

  const std::string path_;
  std::string beside_;  // empty: none
  std::string error_;
  int file_ = -1;
};

// replace_file() replaces a whole file: a reader finds the old text or the new one, even if the
// process ends in between.

// Writes `text` to a new file beside `path` and renames it to `path`. A symbolic link stays, and
// its target is replaced; an existing file keeps its permissions. A device or a pipe is written in
// place. Errors: `system`, with the path and the reason; then the old file is untouched, and no new
// file is left. From any thread.
Status replace_file(const std::string& path, std::string_view text);

// Returns ok if replace_file() can make its new file there: makes an empty one and removes it.
// Call it before long work, so that the work is not lost.
Status check_replaceable(const std::string& path);

// environment_variable() is the only place in Rankine that reads the environment.
//
// A program with more rights than the user who started it (set-user-ID, set-group-ID, file
// capabilities: AT_SECURE, see getauxval(3)) must not obey that user's variables. In such a program
// every variable counts as unset, as with secure_getenv(3).

// True if this program has more rights than its user. Thread-safe.
bool is_privileged() noexcept;

// The value, or nullptr if the variable is not set or is_privileged(). The text lives until the
// program changes the variable. Thread-safe beside other readers, as getenv(3) is.
const char* environment_variable(const char* name) noexcept;

// The names that begin with `prefix`, in the order of the environment, also if is_privileged().
// Throws std::bad_alloc. Thread-safe as getenv(3) is.
std::vector<std::string> variables_with_prefix(std::string_view prefix);

}  // namespace rankine
