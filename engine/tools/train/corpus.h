// Text made on the spot: sentences of a small grammar, and what a model is trained on of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankine::tools {

class Corpus {
 public:
  explicit Corpus(std::uint64_t seed);

  static constexpr int kMostLength = 10'000;  // of a sequence, half the text

  int vocabulary() const;  // characters that occur

  // length + 1 tokens from somewhere in the text: number `sequence` of a step. The same for the
  // same arguments. Requires a length of kMostLength at most.
  std::vector<int> sequence(int step, int sequence, int length) const;

 private:
  std::uint64_t seed_;
  std::vector<int> tokens_;
};

}  // namespace rankine::tools
