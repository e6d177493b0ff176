#include "engine/tools/working_directory.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace rankine::tools {

void stand_where_the_user_stands() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error || here.string().find(".runfiles/") == std::string::npos) return;
  for (const char* name : {"RANKINE_WITH_WORKING_DIRECTORY", "BUILD_WORKING_DIRECTORY"}) {
    const char* there = std::getenv(name);
    if (there == nullptr || *there == '\0') continue;
    std::filesystem::current_path(there, error);
    if (!error) return;
  }
}

}  // namespace rankine::tools
