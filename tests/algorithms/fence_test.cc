// Algorithms know no threads, no machine and no clock, and are short: each file, the working behind
// a header as well, reads like its paper and has fewer than 80 lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace rankine {
namespace {

// The sources lie below the directory in which Bazel starts a test.
std::vector<std::filesystem::path> sources() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("algorithms")) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cc") out.push_back(entry.path());
  }
  return out;
}

std::vector<std::string> lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

TEST(Fence, FindsTheSources) { EXPECT_GE(sources().size(), 25u); }

TEST(Fence, AlgorithmsKnowNoThreadsNoMachineAndNoClock) {
  for (const auto& path : sources()) {
    for (const std::string& line : lines(path)) {
      if (line.rfind("#include", 0) != 0) continue;
      for (const char* word :
           {"\"engine/", "\"numa/", "\"bench/", "<thread>", "<atomic>", "<mutex>",
            "<condition_variable>", "<chrono>", "<future>", "<ctime>"}) {
        EXPECT_EQ(line.find(word), std::string::npos) << path << ": " << line;
      }
    }
  }
}

TEST(Fence, AlgorithmsIncludeOnlyEachOtherAndTheStandardLibrary) {
  for (const auto& path : sources()) {
    for (const std::string& line : lines(path)) {
      if (line.rfind("#include \"", 0) != 0) continue;
      EXPECT_EQ(line.rfind("#include \"algorithms/", 0), 0u) << path << ": " << line;
    }
  }
}

// All files of algorithms/ itself but the catalogue and the parameters, which are tables, and the
// reader of formulas with its numbers; and but the planner of sums over runs. The language below
// it, in schedule/, is no algorithm.
TEST(Fence, AnAlgorithmsFilesHaveFewerThan80Lines) {
  const std::set<std::string> others = {"catalogue.cc", "parameters.cc", "formula.cc",
                                        "value.cc",     "rational.cc",   "run_sums.cc"};
  int files = 0;
  for (const auto& path : sources()) {
    if (path.parent_path() != "algorithms" || others.contains(path.filename())) continue;
    EXPECT_LT(lines(path).size(), 80u) << path;
    ++files;
  }
  EXPECT_GE(files, 60);
}

}  // namespace
}  // namespace rankine
