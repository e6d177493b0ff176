// What all ranks compute in one step of a server: tokens of several sequences, some at work on
// their prompts, some on their answers. It is plain bytes, so that rank 0 can tell it to the
// others.
#pragma once

#include <cstddef>
#include <span>

namespace rankine::server {

inline constexpr int kMostSequences = 32, kMostTokens = 256;

// Tokens of one sequence that follow each other.
struct Piece {
  int sequence = 0;  // the place of its keys and values: 0 .. kMostSequences - 1
  int position = 0;  // of the first of them in the sequence
  int tokens = 0;
  bool wants_next = false;  // the token that follows the last of them
};

struct Batch {
  bool stop = false;  // no step: all ranks are done
  int pieces = 0, tokens = 0;
  Piece piece[kMostSequences];
  int token[kMostTokens] = {};  // of all pieces, one after the other

  std::span<const Piece> all() const { return {piece, static_cast<std::size_t>(pieces)}; }
  void add(const Piece& next, std::span<const int> its_tokens) {
    piece[pieces++] = next;
    for (const int t : its_tokens) token[tokens++] = t;
  }
};

}  // namespace rankine::server
