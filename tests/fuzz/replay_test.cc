// The corpus through every target, as it is and damaged in a way that repeats: what libFuzzer has
// found stays found, without libFuzzer. RANKINE_TEST_DAMAGE=n damages each seed n times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace rankine::fuzz {
namespace {

constexpr char kCorpus[] = "tests/fuzz/corpus";

struct Seed {
  std::string folder, file, text;
};

const std::vector<Seed>& seeds() {
  static const std::vector<Seed> all = [] {
    std::vector<Seed> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kCorpus)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      out.push_back({entry.path().parent_path().filename(), entry.path().filename(),
                     std::string(std::istreambuf_iterator<char>(file), {})});
    }
    // Folders are read in any order; the damage is to be the same everywhere.
    std::sort(out.begin(), out.end(), [](const Seed& a, const Seed& b) {
      return std::tie(a.folder, a.file) < std::tie(b.folder, b.file);
    });
    return out;
  }();
  return all;
}

void run(const Target& target, const std::string& text, const std::string& origin) {
  try {
    target.run(text);
  } catch (const std::exception& error) {
    ADD_FAILURE() << target.name << ", " << origin << ": " << error.what() << "\n"
                  << testing::PrintToString(text);
  }
}

// One to four bytes changed, left out, doubled or put in from another seed.
std::string damaged(std::string text, const std::string& other, std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (std::size_t times = 1 + below(4); times > 0; --times) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(3));
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + below(8)));
        break;
      case 3:
        text.insert(at, 1, "0123456789.,:;-+e=x()[]{}\"' \n"[below(29)]);
        break;
      default:
        if (!other.empty()) text.insert(at, other.substr(below(other.size()), 1 + below(12)));
    }
  }
  return text;
}

TEST(Corpus, EveryTargetHasSeedsAndEveryFolderATarget) {
  std::set<std::string> folders, names;
  for (const Seed& seed : seeds()) folders.insert(seed.folder);
  for (const Target& target : targets()) names.emplace(target.name);
  EXPECT_EQ(folders, names);
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, AllSeedsOfAllTargets) {
  for (const Seed& seed : seeds()) run(GetParam(), seed.text, seed.folder + "/" + seed.file);
}

TEST_P(Replay, OwnSeedsDamaged) {
  constexpr int kPerSeed = 40;
  const char* asked = std::getenv("RANKINE_TEST_DAMAGE");
  const int times = asked == nullptr ? kPerSeed : std::atoi(asked);
  std::mt19937 random(1);
  std::vector<const Seed*> own;
  for (const Seed& seed : seeds()) {
    if (seed.folder == GetParam().name) own.push_back(&seed);
  }
  for (const Seed* seed : own) {
    for (int i = 0; i < times; ++i) {
      const Seed& other = *own[random() % own.size()];
      run(GetParam(), damaged(seed->text, other.text, random), seed->file + ", damaged");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

}  // namespace rankine::fuzz
