// The names under which processes meet (lobby.h): files in /dev/shm, and the locks that say
// who is in one of them. A lock is an open file description's: it ends with the process and with
// exec.
#pragma once

#include <sys/types.h>

#include <string>

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

// Locks that byte, until the open file description is closed by whoever closes it last.
bool try_lock(int file, off_t byte) noexcept;
// By somebody else.
bool is_locked(int file, off_t first, off_t bytes) noexcept;
// A rank's lock can only be missing where its process has ended: files appear with their maker's.
inline bool anybody_in(int file) noexcept { return is_locked(file, 0, kSeats); }

// Whether the name is this file's.
bool is_named(int file, const std::string& path) noexcept;
// Removes the name, where it is this file's. Nobody removes the next one's.
void remove_name(int file, const std::string& path) noexcept;
// Removes what ranks of this user have left that were all killed while they met, under names that
// nobody may ask for any more.
void remove_orphans() noexcept;

}  // namespace rankine
