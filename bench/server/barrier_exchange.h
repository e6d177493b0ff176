// The same among threads as one would write it in an hour: a pointer from each rank, a
// std::barrier, and loops. What Rankine is measured beside.
#pragma once

#include <barrier>
#include <vector>

#include "bench/server/exchange.h"

namespace rankine::server {

// What the ranks share; it outlives their exchanges. A rank that throws leaves the others waiting.
struct Barrier {
  explicit Barrier(int ranks) : all(ranks), data(static_cast<std::size_t>(ranks)) {}

  std::barrier<> all;
  std::vector<const void*> data;  // by rank: what the others may read until the next meeting
  std::vector<float> sums;
};

class BarrierExchange : public Exchange {
 public:
  BarrierExchange(Barrier& barrier, int rank) : barrier_(barrier), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(barrier_.data.size()); }

  void broadcast(std::span<std::byte> data) override;
  std::span<float> addends(std::size_t n) override {
    addends_.resize(n);
    return addends_;
  }
  void all_reduce(std::span<float> x, const Epilogue& then) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  void meet() { barrier_.all.arrive_and_wait(); }
  void show(const void* data) {
    barrier_.data[static_cast<std::size_t>(rank_)] = data;
    meet();
  }

  Barrier& barrier_;
  int rank_;
  std::vector<float> addends_;
};

}  // namespace rankine::server
