// Runs every seed through every target, unchanged and with repeatable damage, so that libFuzzer's
// findings stay fixed without libFuzzer. RANKINE_TEST_DAMAGE=n damages each seed n times.
#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace rankine::fuzz {
namespace {

struct Seed {
  std::string target, name, text;
};

// The bytes of a text in which character n stands for byte n.
std::string bytes_of(const std::string& utf8) {
  std::string out;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    out += first < 0x80 ? utf8[i] : static_cast<char>((first & 3) << 6 | (utf8[++i] & 0x3f));
  }
  return out;
}

// Sorted by target.
const std::vector<Seed>& seeds() {
  static const std::vector<Seed> all = [] {
    std::vector<Seed> out;
    std::ifstream file("tests/fuzz/seeds.json");
    const nlohmann::json targets = nlohmann::json::parse(file);
    for (const auto& [target, inputs] : targets.items()) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        out.push_back({target, std::to_string(i), bytes_of(inputs[i].get<std::string>())});
      }
    }
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

// The text with one to four bytes changed, removed, doubled or inserted from another seed.
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

TEST(Corpus, TargetsWithSeedsAreTheTargets) {
  std::set<std::string> seeded, names;
  for (const Seed& seed : seeds()) seeded.insert(seed.target);
  for (const Target& target : targets()) names.emplace(target.name);
  EXPECT_EQ(seeded, names);
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, AllSeedsOfAllTargets) {
  for (const Seed& seed : seeds()) run(GetParam(), seed.text, seed.target + "/" + seed.name);
}

TEST_P(Replay, OwnSeedsDamaged) {
  constexpr int kPerSeed = 40;
  const char* asked = std::getenv("RANKINE_TEST_DAMAGE");
  const int times = asked == nullptr ? kPerSeed : std::atoi(asked);
  std::mt19937 random(1);
  std::vector<const Seed*> own;
  for (const Seed& seed : seeds()) {
    if (seed.target == GetParam().name) own.push_back(&seed);
  }
  for (const Seed* seed : own) {
    for (int i = 0; i < times; ++i) {
      const Seed& other = *own[random() % own.size()];
      run(GetParam(), damaged(seed->text, other.text, random), seed->name + ", damaged");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

}  // namespace rankine::fuzz
