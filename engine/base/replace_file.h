// Files that are replaced whole: whoever reads one finds the old text or the new one, whatever ends
// the process in between.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine {

// Writes `text` to a new file beside `path`, which then takes its name. A symbolic link stays, and
// what it points to is replaced; a file that was there keeps its permissions. What is no regular
// file (a device, a pipe) is written to as it is. Errors: `system`, with the path and the reason;
// then what was there is untouched, and nothing new lies beside it. From any thread.
Status replace_file(const std::string& path, std::string_view text);

// Whether replace_file() can make its new file there, found out by making an empty one and removing
// it. To be asked before long work, so that nobody waits for it in vain.
Status check_replaceable(const std::string& path);

}  // namespace rankine
