// Embeds the page as it was when this program was built; third_party/page builds the page.
#pragma once

#include <vector>

#include "engine/cli/text.h"

namespace rankine::tools {

// One HTML file; empty if there was no page.
std::vector<EmbeddedFile> built_page();

}  // namespace rankine::tools
