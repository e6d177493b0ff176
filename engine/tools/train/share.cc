#include "engine/tools/train/share.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace rankine::tools {

void add_up(const Share& share, std::span<const std::span<float>> parts) {
  const std::span<float> sum = parts.front();
  for (const std::span<float>& part : parts.subspan(1)) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  if (share.is_alone()) return;
  share.group->all_reduce(sum, ReduceOp::sum, {.order = Order::by_rank}).throw_if_error();
}

Matrix add_up(const Share& share, std::vector<Matrix> parts) {
  std::vector<std::span<float>> values(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) values[i] = parts[i].values;
  add_up(share, values);
  return std::move(parts.front());
}

}  // namespace rankine::tools
