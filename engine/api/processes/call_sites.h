// CallSiteFile is the memory file in which a process records the calls of its ranks on one
// communicator by call site (engine/run/call_sites.h); CallSiteReader reads the file of another
// process, and find_call_sites() finds the files.
//
// The file is a memfd, which every process of the same user finds in /proc/PID/fd. It has no name
// in a file system, so nothing remains when its process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/processes/identity.h"
#include "engine/base/status.h"
#include "engine/run/call_sites.h"

namespace rankine {

// The beginning of the file; the ranks' RankCalls follow. Texts end with a zero byte.
struct CallSiteHead {
  char magic[8] = {};
  std::uint32_t layout = 0;  // sizeof(RankCalls): versions with other records differ in it
  std::int32_t ranks = 0;    // of the communicator
  std::int32_t here = 0;     // ranks with records in this file
  KnownProcess process;
  char name[128] = {};   // CommunicatorOptions::name; empty for threads
  char group[128] = {};  // of a communicator that was split from that one: "ranks 0, 2"
};

class CallSiteFile {
 public:
  // Errors: system, out_of_memory. Throws std::bad_alloc.
  static Result<std::unique_ptr<CallSiteFile>> make(std::string_view name, std::string_view group,
                                                    int ranks, std::span<const Rank> here);
  ~CallSiteFile();
  CallSiteFile(const CallSiteFile&) = delete;
  CallSiteFile& operator=(const CallSiteFile&) = delete;

  RankCalls& calls(std::size_t i) noexcept;  // of here[i]; valid during this object's life
  std::string_view name() const noexcept;
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  CallSiteFile() = default;
  KeptFile file_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

class CallSiteReader {
 public:
  // Takes ownership of the descriptor. Not is_valid(): it is no such file, or one of another
  // version.
  explicit CallSiteReader(int file);
  bool is_valid() const { return is_valid_; }
  const CallSiteHead& head() const { return head_; }
  bool has_ended() const noexcept { return head_.process.has_ended(); }
  // The records of rank number i of `head().here` as of now, also of a process that has ended.
  // nullptr: the file is shorter. Throws std::bad_alloc.
  std::unique_ptr<RankCalls> read(std::size_t i) const;
  // Equal for two descriptors of one file.
  std::uint64_t inode() const { return inode_; }

 private:
  KeptFile file_;
  CallSiteHead head_;
  std::uint64_t inode_ = 0;
  bool is_valid_ = false;
};

struct FoundCallSites {
  std::vector<CallSiteReader> files;
  std::vector<std::string> names;    // of all files that were seen, for error texts
  std::vector<std::int32_t> others;  // processes of other users, which cannot be read
  // Processes that have come to a communicator of that name and have no records; not the process
  // that has made its shared file, because /proc does not name the file there.
  std::vector<std::int32_t> without_times;
};

// Finds the files of communicators with that name among all processes that this user may read, or
// the files of one process if `target` is its number. Error: that process cannot be read, or does
// not exist. `folder`: /proc, or a folder like it for tests.
Result<FoundCallSites> find_call_sites(std::string_view target,
                                       const std::string& folder = "/proc");

}  // namespace rankine
