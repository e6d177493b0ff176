// Makes the kernel refuse system calls, as sandboxes do.
#pragma once

#include <vector>

namespace rankine::faults {

// From now on, for good, the kernel refuses these calls (SYS_...) of this thread and of its later
// child threads and processes with EPERM, as the default profile of container engines does. Returns
// 0 or the errno.
int refuse_calls(const std::vector<int>& numbers);

}  // namespace rankine::faults
