// A vector that grows without moving what it holds: neither twice the memory nor a copy when it is
// full. For what planning makes millions of, nobody knows how many beforehand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/base/huge_pages.h"

namespace rankine {

template <class T>
class Pool {
 public:
  int size() const { return size_; }
  T& operator[](int i) { return chunks_[chunk_of(i)][place_of(i)]; }
  const T& operator[](int i) const { return chunks_[chunk_of(i)][place_of(i)]; }

  // Makes room for about so many.
  void expect(std::size_t most) {
    if (chunks_.empty()) chunks_.emplace_back();
    chunks_.back().reserve(std::min(most, kPerChunk));
  }

  // The number of the new element.
  int add(T element) {
    if (chunk_of(size_) == chunks_.size()) {
      chunks_.emplace_back();
      // The first one grows as it is needed: most plans are small.
      if (chunks_.size() > 1) chunks_.back().reserve(kPerChunk);
    }
    chunks_.back().push_back(std::move(element));
    return size_++;
  }

  // All elements, in a vector with no room to spare where they are many. The pool is empty then.
  HugeVector<T> take() {
    HugeVector<T> all;
    if (chunks_.size() == 1) {
      all = std::move(chunks_.front());
    } else {
      all.reserve(static_cast<std::size_t>(size_));
      for (const HugeVector<T>& chunk : chunks_) all.insert(all.end(), chunk.begin(), chunk.end());
    }
    *this = {};
    return all;
  }

 private:
  static constexpr std::size_t kPerChunk = std::size_t{1} << 17;

  static std::size_t chunk_of(int i) { return static_cast<std::size_t>(i) / kPerChunk; }
  static std::size_t place_of(int i) { return static_cast<std::size_t>(i) % kPerChunk; }

  int size_ = 0;
  std::vector<HugeVector<T>> chunks_;
};

}  // namespace rankine
