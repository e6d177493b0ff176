// libFuzzer's entry: `fuzzer --target=size FOLDER`. See third_party/fuzz.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const rankine::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// libFuzzer passes over options that begin with two dashes.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(kOption)) continue;
    for (const rankine::fuzz::Target& target : rankine::fuzz::targets()) {
      if (target.name == argument.substr(kOption.size())) chosen = &target;
    }
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "--target=NAME is needed; allowed are");
  for (const rankine::fuzz::Target& target : rankine::fuzz::targets()) {
    std::fprintf(stderr, " %s", target.name.data());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Catches nothing, because libFuzzer keeps the input of an escaping exception.
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
