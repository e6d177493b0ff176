// Files that a build has in it; embed.py writes the functions that hand them out.
#pragma once

#include <string>

namespace rankine::tools {

struct EmbeddedFile {
  std::string name;  // below the folder that embed.py was told
  std::string text;
};

}  // namespace rankine::tools
