#include "engine/api/mpi/preload_settings.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/environment_variable.h"

namespace rankine::mpi {
namespace {

PreloadSettings read() {
  PreloadSettings settings;
  const char* text = environment_variable("RANKINE_MPI");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
    if (word == "on" || word == "off") {
      settings.takes = word == "on";
    } else if (word == "report") {
      settings.reports = true;
    } else if (word == "memory" || word == "messages") {
      settings.messages = word == "messages";
    } else {
      std::fprintf(
          stderr,
          "rankine: RANKINE_MPI is '%s'; '%.*s' is none of on, off, report, memory, messages\n",
          text, static_cast<int>(word.size()), word.data());
      std::exit(2);
    }
  }
  return settings;
}

}  // namespace

const PreloadSettings& preload_settings() {
  static const PreloadSettings settings = read();
  return settings;
}

}  // namespace rankine::mpi
