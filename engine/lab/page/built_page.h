// The page that was there when this was built; third_party/page makes it.
#pragma once

#include <vector>

#include "engine/cli/text.h"

namespace rankine::tools {

// One HTML file; none where there was none.
std::vector<EmbeddedFile> built_page();

}  // namespace rankine::tools
