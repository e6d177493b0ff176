// The one lock of what the C functions keep for the whole process: free handles, and unique ids.
// A fork waits for it, so that a child never inherits it locked.
#pragma once

#include <atomic>
#include <mutex>

namespace rankine {

// Signal handlers that look at a handle at this moment (handle_table.h). A forked child begins with
// none: only the thread that forks is there.
extern std::atomic<int> handlers_looking;

std::mutex& registry_lock();

}  // namespace rankine
