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

Matrix add_up(const Share& share, DataType type, std::vector<Matrix> parts) {
  if (share.of == 1) return std::move(parts.front());
  for (Matrix& part : parts) part = rounded(type, std::move(part));
  if (type == DataType::bf16 && !share.is_alone()) {
    KeptMatrix sum(type, std::move(parts.front()));
    share.group
        ->all_reduce(std::span(sum.values.as<BFloat16>()), ReduceOp::sum, {.order = Order::by_rank})
        .throw_if_error();
    return sum.matrix();
  }
  std::vector<std::span<float>> values(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) values[i] = parts[i].values;
  add_up(share, values);
  return rounded(type, std::move(parts.front()));
}

}  // namespace rankine::tools
