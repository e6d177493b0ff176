// Golden drawings: what every algorithm of the catalogue does, for 4, 5 and 8 ranks, as checked-in
// text. A change of meaning is a readable difference.
//
// To write them anew (and then read what changed):
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

TEST(Golden, EveryAlgorithmIsDrawnAsChecked) {
  const char* out = std::getenv("RANKINE_TEST_GOLDEN_OUT");
  for (const Algorithm& algorithm : catalogue()) {
    const std::string drawn = drawings(algorithm);
    if (out != nullptr) {
      std::ofstream(std::filesystem::path(out) / file_name(algorithm)) << drawn;
      continue;
    }
    const std::filesystem::path golden =
        std::filesystem::path("tests/golden") / file_name(algorithm);
    ASSERT_TRUE(std::filesystem::exists(golden))
        << golden << " is missing; see the head of this file";
    EXPECT_EQ(read_file(golden), drawn) << golden;
  }
}

// A drawing without its algorithm is left from something deleted.
TEST(Golden, NoFileIsLeftOver) {
  if (std::getenv("RANKINE_TEST_GOLDEN_OUT") != nullptr) GTEST_SKIP();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden")) {
    const std::string name = entry.path().filename().string();
    if (std::count(name.begin(), name.end(), '.') == 2) {
      ++files;
    }
  }
  EXPECT_EQ(files, catalogue().size());
}

}  // namespace
}  // namespace rankine
