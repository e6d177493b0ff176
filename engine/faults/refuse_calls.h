// A kernel that refuses system calls, as sandboxes make it.
#pragma once

#include <vector>

namespace rankine::faults {

// From now on the kernel answers these calls (SYS_...) of this thread, and of those that it starts,
// with EPERM; so does the default profile of container engines. For good. 0, or the errno.
int refuse_calls(const std::vector<int>& numbers);

}  // namespace rankine::faults
