// The one lock of what the C functions keep for the whole process: free handles, and unique ids.
// A fork waits for it, so that a child never inherits it locked.
#pragma once

#include <mutex>

namespace rankine {

std::mutex& registry_lock();

}  // namespace rankine
