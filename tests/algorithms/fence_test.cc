// Algorithms know no threads, no machine and no clock, and are short: the header of each, which reads
// like its paper, fits on a page, and the working behind it, where it has some, on three.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

// All files of algorithms/ itself but the catalogue, which is a table, and the reader of formulas;
// the language below it, in schedule/, is no algorithm.
TEST(Fence, AnAlgorithmFitsOnAPageAndItsWorkingOnThree) {
  int pages = 0;
  for (const auto& path : sources()) {
    if (path.parent_path() != "algorithms" || path == "algorithms/catalogue.cc" ||
        path == "algorithms/formula.cc") {
      continue;
    }
    EXPECT_LE(lines(path).size(), path.extension() == ".h" ? 90u : 220u) << path;
    ++pages;
  }
  EXPECT_GE(pages, 25);
}

}  // namespace
}  // namespace rankine
