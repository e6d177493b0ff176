// The names under which processes meet (lobby.h): files in /dev/shm, and the locks that say
// who is in one of them. A lock is an open file description's: it ends with exec and with the
// process, unless a forked child lives on, which holds it as well. So a missing lock says that a
// process has ended, and a lock alone does not say that it lives: KnownProcess does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "engine/base/status.h"

namespace rankine {

inline constexpr const char* kSharedFolder = "/dev/shm";
// What such a file begins with.
inline constexpr char kSharedMagic[8] = "rankine";
// Bytes of the file whose locks are ranks' seats; the one behind them is for who removes the name.
inline constexpr int kSeats = 256;

std::string shared_path(const std::string& name);

// As open(2) has it. Never as one of the standard streams, which a program may have closed and
// still write to: what it says would be in the memory that ranks share.
int open_shared(const char* path, int flags, mode_t mode = 0) noexcept;

// A descriptor that is kept for long, in a program that may close every number that it does not
// know, and open a file of its own under the same number. It is asked each time whether the number
// still means the same file, by device and inode. Kernels before 6.9 give all pidfds one inode.
class KeptFile {
 public:
  KeptFile() = default;
  // Owns it from now on, under a number from 1000 on where the process may have such. -1: none.
  explicit KeptFile(int file) noexcept;
  ~KeptFile() { close(); }
  KeptFile(KeptFile&& other) noexcept { *this = std::move(other); }
  KeptFile& operator=(KeptFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
  }

  bool is_open() const noexcept { return file_ >= 0; }
  // -1: none, or the number is not this file's any more; system calls then refuse it (EBADF).
  int number() const noexcept;
  void close() noexcept;

 private:
  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// A process, which no later one of the same number is taken for. Plain memory.
struct KnownProcess {
  std::int32_t id = 0;  // 0: none
  std::int64_t started = 0;  // clock ticks since the machine was started

  bool operator==(const KnownProcess&) const = default;
  static KnownProcess this_one() noexcept;
  // What shared memory may say of one. Else it has been written over.
  bool is_possible() const noexcept;
  // Reads /proc: 15 us. False where the kernel does not say.
  bool has_ended() const noexcept;
};

// Locks that byte, until the open file description is closed by whoever closes it last.
bool try_lock(int file, off_t byte) noexcept;
// By somebody else.
bool is_locked(int file, off_t first, off_t bytes) noexcept;
// False: all have ended. Files appear with their maker's lock.
inline bool anybody_in(int file) noexcept { return is_locked(file, 0, kSeats); }

// Whether the name is this file's.
bool is_named(int file, const std::string& path) noexcept;
// Removes the name, where it is this file's. Nobody removes the next one's.
void remove_name(int file, const std::string& path) noexcept;
// Removes what ranks of this user have left that were all killed while they met, under names that
// nobody may ask for any more.
void remove_orphans() noexcept;

// What processes must have in common to be ranks of one communicator: whatever decides which plan a
// call gets and what it means. Each process compiles its own plans, so all must come to the same.

// Plain memory, to lie in a file that other processes read. Texts end with a zero.
struct ProcessSettings {
  char host[64] = {};
  char boot[40] = {};
  std::uint64_t pid_namespace = 0;
  char version[16] = {};
  char isa[16] = {};  // of the kernels
  std::int32_t ranks = 0;
  // Hashes.
  std::uint64_t environment = 0;  // what is forced by variables
  std::uint64_t tuning = 0;       // table
  std::uint64_t costs = 0;
  std::uint64_t options = 0;  // levels, network, order, plan_bytes

  bool operator==(const ProcessSettings&) const = default;
};

// The first thing in which they differ: "version is 0.1.0 of rank 0 and 0.2.0 of rank 3".
std::string difference(const ProcessSettings& one, const std::string& who,
                       const ProcessSettings& other, const std::string& whose);

// Which machine this process runs on, as far as processes must agree on it to share memory.

struct ThisMachine {
  std::string host;
  std::string boot;  // the kernel's id of this boot
  std::uint64_t pid_namespace = 0;

  bool operator==(const ThisMachine&) const = default;
};

// Errors: system, of a machine that does not say. Throws std::bad_alloc.
Result<ThisMachine> this_machine();

}  // namespace rankine
