// The collectives of a rival of Rankine's (bench/rivals) that takes these three.
#pragma once

#include <stdexcept>
#include <vector>

#include "bench/rivals/rival.h"
#include "bench/server/exchange.h"

namespace rankine::server {

class RivalExchange : public Exchange {
 public:
  RivalExchange(rivals::Rival& rival, int rank, int ranks)  // which outlives it, and has started
      : rival_(rival), rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void broadcast(std::span<std::byte> data) override {
    float* const all = floats(data.data());
    rival_.call(rivals::Collective::broadcast, rank_, all, all, whole(data.size()));
  }
  std::span<float> addends(std::size_t n) override {
    addends_.resize(n);
    return addends_;
  }
  void all_reduce(std::span<float> x, const Epilogue& then) override {
    rival_.call(rivals::Collective::all_reduce, rank_, x.data(), x.data(), x.size());
    apply(then, x.data(), x.size() / then.row_elements);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    rival_.call(rivals::Collective::all_gather, rank_, reinterpret_cast<const float*>(mine.data()),
                floats(all.data()), whole(mine.size()));
  }

 private:
  static float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }
  // Rivals move floats.
  static std::size_t whole(std::size_t bytes) {
    if (bytes % sizeof(float) != 0) throw std::logic_error("bytes that are no whole floats");
    return bytes / sizeof(float);
  }

  rivals::Rival& rival_;
  int rank_, ranks_;
  std::vector<float> addends_;
};

}  // namespace rankine::server
