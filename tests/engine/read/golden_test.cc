// Compares drawings of the papers' main algorithms among 4, 5 and 8 ranks with checked-in texts, so that a change of meaning is a
// readable difference. The verifier proves every algorithm; these files show what it proves.
//
// To write the files anew, or a new one after `touch tests/golden/COLLECTIVE.ALGORITHM.txt`:
//   RANKINE_TEST_GOLDEN_OUT=$PWD/tests/golden third_party/bazel run //tests/engine/read:golden_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/read/draw.h"

namespace rankine {
namespace {

std::string file_name(const Algorithm& algorithm) {
  return std::string(name_of(algorithm.collective)) + "." + std::string(algorithm.name) + ".txt";
}

// Roots other than 0 and two segments, so that rotation and pipelining show.
std::string drawings(const Algorithm& algorithm) {
  std::string text;
  for (const int n : {4, 5, 8}) {
    Params params;
    params.ranks = n;
    params.root = has_root(algorithm.collective) ? 1 : 0;
    params.peer = algorithm.collective == Collective::send_recv ? 3 : 0;
    params.segments = algorithm.takes("segments") ? 2 : 1;
    if (const auto refusal = algorithm.refusal(params)) {
      text += *refusal + "\n\n";
      continue;
    }
    const Schedule schedule = algorithm.make(params);
    text += draw(schedule, goal_of(algorithm, params, schedule)) + "\n";
  }
  return text;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Golden, DrawingsAreAsChecked) {
  const char* out = std::getenv("RANKINE_TEST_GOLDEN_OUT");
  const std::filesystem::path folder = out == nullptr ? "tests/golden" : out;
  std::size_t drawn = 0;
  for (const Algorithm& algorithm : catalogue()) {
    const std::filesystem::path golden = folder / file_name(algorithm);
    if (!std::filesystem::exists(golden)) continue;
    ++drawn;
    if (out != nullptr) {
      std::ofstream(golden) << drawings(algorithm);
    } else {
      EXPECT_EQ(read_file(golden), drawings(algorithm)) << golden;
    }
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    files += std::count(name.begin(), name.end(), '.') == 2;
  }
  EXPECT_EQ(files, drawn) << "a drawing has no algorithm";
  EXPECT_GE(drawn, 25u);
}

}  // namespace
}  // namespace rankine
