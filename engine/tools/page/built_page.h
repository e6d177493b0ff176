// The page that was there when this was built; third_party/page makes it.
#pragma once

#include <string>

namespace rankine::tools {

// One HTML file; empty where there was none.
std::string built_page();

}  // namespace rankine::tools
