// identity.h names the shared files under which processes meet (ranks.h), identifies processes and
// machines, and compares the settings of processes.
//
// The files lie in /dev/shm. Locks on a file show the processes in it. A lock belongs to an open
// file description: it ends with exec and with the process, unless a forked child still holds it.
// So a missing lock shows that a process has ended, but a lock does not show that it lives: use
// KnownProcess.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "engine/base/status.h"

namespace rankine {

inline constexpr const char* kSharedFolder = "/dev/shm";
// The first bytes of such a file.
inline constexpr char kSharedMagic[8] = "rankine";
// The number of seats: locks on these bytes of the file are the ranks' seats. A lock on the next
// byte protects the removal of the name.
inline constexpr int kSeats = 256;

std::string shared_path(const std::string& name);

// As open(2), but never returns the number of a standard stream: a program may have closed a stream
// and still write to it, and the text would go into the shared memory.
int open_shared(const char* path, int flags, mode_t mode = 0) noexcept;

// KeptFile keeps a descriptor for long in a program that may close every descriptor that it does
// not know, and may reuse the number. Each use checks by device and inode that the number still
// means this file. Kernels before 6.9 give all pidfds one inode.
class KeptFile {
 public:
  KeptFile() = default;
  // Takes ownership of `file`, under a number from 1000 on if the process may have such numbers.
  // -1: no file.
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
  // -1: no file, or the number does not mean this file any more; system calls then fail with EBADF.
  int number() const noexcept;
  void close() noexcept;

 private:
  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// KnownProcess identifies a process so that a later process with this number differs. Plain data.
struct KnownProcess {
  std::int32_t id = 0;       // 0: no process
  std::int64_t started = 0;  // clock ticks since the machine was started

  bool operator==(const KnownProcess&) const = default;
  static KnownProcess this_one() noexcept;
  // False if shared memory cannot contain this value, so that a program must have overwritten it.
  bool is_possible() const noexcept;
  // Reads /proc: 15 us. False if the kernel does not tell.
  bool has_ended() const noexcept;
};

// Locks that byte until the last descriptor of the open file description is closed.
bool try_lock(int file, off_t byte) noexcept;
// True if another open file description has a lock there.
bool is_locked(int file, off_t first, off_t bytes) noexcept;
// False: all have ended. A file is created with its maker's lock.
inline bool anybody_in(int file) noexcept { return is_locked(file, 0, kSeats); }

// True if the path still names this file.
bool is_named(int file, const std::string& path) noexcept;
// Removes the name if it names this file; never removes the name of a later file.
void remove_name(int file, const std::string& path) noexcept;
// Removes files of this user that remain because all ranks were killed while they met, and no later
// meeting uses the name.
void remove_orphans() noexcept;

// ProcessSettings holds the settings that processes must share to be ranks of one communicator: all
// settings that decide over the plan of a call and its meaning. Each process compiles its own
// plans, so the plans must be equal. Plain data in a file that other processes read. Texts end with
// a zero byte.
struct ProcessSettings {
  char host[64] = {};
  char boot[40] = {};
  std::uint64_t pid_namespace = 0;
  char version[16] = {};
  char isa[16] = {};  // the kernels' instruction set
  std::int32_t ranks = 0;
  // Hashes.
  std::uint64_t environment = 0;  // forced by variables
  std::uint64_t tuning = 0;       // the tuning table
  std::uint64_t costs = 0;
  std::uint64_t options = 0;  // levels, network, order, plan_bytes

  bool operator==(const ProcessSettings&) const = default;
};

// The first difference: "version is 0.1.0 of rank 0 and 0.2.0 of rank 3".
std::string difference(const ProcessSettings& one, const std::string& who,
                       const ProcessSettings& other, const std::string& whose);

// ThisMachine identifies the machine of this process, as far as processes that share memory must
// agree.

struct ThisMachine {
  std::string host;
  std::string boot;  // the kernel's id of this boot
  std::uint64_t pid_namespace = 0;

  bool operator==(const ThisMachine&) const = default;
};

// Errors: system, if the machine does not identify itself. Throws std::bad_alloc.
Result<ThisMachine> this_machine();

}  // namespace rankine
