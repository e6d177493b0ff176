#include "bench/server/decoder.h"

#include <algorithm>
#include <cstring>

namespace rankine::server {

void BarrierExchange::broadcast(std::span<std::byte> data) {
  show(data.data());
  if (rank_ != 0) std::memcpy(data.data(), barrier_.data[0], data.size());
  meet();
}

// Each rank sums its part of the vector. Then each rank copies all parts.
void BarrierExchange::all_reduce(std::span<float> x, const Epilogue& then) {
  if (rank_ == 0) barrier_.sums.resize(x.size());
  show(x.data());
  const auto n = static_cast<std::size_t>(ranks()), me = static_cast<std::size_t>(rank_);
  const std::size_t begin = x.size() * me / n, end = x.size() * (me + 1) / n;
  float* const sums = barrier_.sums.data();
  std::copy(static_cast<const float*>(barrier_.data[0]) + begin,
            static_cast<const float*>(barrier_.data[0]) + end, sums + begin);
  for (std::size_t rank = 1; rank < n; ++rank) {
    const auto* from = static_cast<const float*>(barrier_.data[rank]);
    for (std::size_t i = begin; i < end; ++i) sums[i] += from[i];
  }
  meet();
  std::copy_n(sums, x.size(), x.data());
  apply(then, x.data(), x.size() / then.row_elements);
  meet();  // before rank 0 resizes `sums` for another call
}

void BarrierExchange::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  show(mine.data());
  for (std::size_t rank = 0; rank < barrier_.data.size(); ++rank) {
    std::memcpy(all.data() + rank * mine.size(), barrier_.data[rank], mine.size());
  }
  meet();
}

}  // namespace rankine::server
