#include "engine/tools/working_directory.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "engine/base/environment_variable.h"

namespace rankine::tools {

void stand_where_the_user_stands() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error || here.string().find(".runfiles/") == std::string::npos) return;
  for (const char* name : {"RANKINE_WITH_WORKING_DIRECTORY", "BUILD_WORKING_DIRECTORY"}) {
    const char* there = environment_variable(name);
    if (there == nullptr || *there == '\0') continue;
    std::filesystem::current_path(there, error);
    if (!error) return;
  }
}

}  // namespace rankine::tools
