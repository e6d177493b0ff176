#include "engine/tools/train/corpus.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "engine/base/numbers.h"

namespace rankine::tools {
namespace {

constexpr std::size_t kCharacters = 2 * Corpus::kMostLength;
constexpr std::string_view kAlphabet = " .abcdefghijklmnopqrstuvwxyz";

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) { return splitmix(state_ += kSplitMixStep) % n; }
  std::string_view one_of(std::span<const std::string_view> words) {
    return words[below(words.size())];
  }

 private:
  std::uint64_t state_;
};

std::string sentence(Draw& draw) {
  static constexpr std::array<std::string_view, 4> kArticles = {"the", "a", "every", "one"};
  static constexpr std::array<std::string_view, 6> kNouns = {"rank",   "ring", "tree",
                                                             "switch", "port", "message"};
  static constexpr std::array<std::string_view, 6> kVerbs = {"sends to", "waits for", "adds to",
                                                             "reads",    "finds",     "leaves"};
  std::string text;
  const auto add = [&text](std::string_view word) { (text += word) += ' '; };
  add(draw.one_of(kArticles));
  add(draw.one_of(kNouns));
  add(draw.one_of(kVerbs));
  add(draw.one_of(kArticles));
  add(draw.one_of(kNouns));
  text.back() = '.';
  return text + ' ';
}

}  // namespace

Corpus::Corpus(std::uint64_t seed) : seed_(seed) {
  Draw draw(seed);
  while (tokens_.size() < kCharacters) {
    for (const char c : sentence(draw)) tokens_.push_back(static_cast<int>(kAlphabet.find(c)));
  }
}

int Corpus::vocabulary() const { return static_cast<int>(kAlphabet.size()); }

std::vector<int> Corpus::sequence(int step, int sequence, int length) const {
  Draw draw(
      mixed(mixed(seed_, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(sequence)));
  const std::size_t taken = static_cast<std::size_t>(length) + 1;
  const auto from =
      tokens_.begin() + static_cast<std::ptrdiff_t>(draw.below(tokens_.size() - taken));
  return {from, from + static_cast<std::ptrdiff_t>(taken)};
}

}  // namespace rankine::tools
