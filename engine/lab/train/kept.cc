#include "engine/lab/train/matrix.h"

namespace rankine::tools {

std::vector<BFloat16> rounded_to_bf16(std::span<const float> values) {
  std::vector<BFloat16> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = BFloat16(values[i]);
  return out;
}

Kept::Kept(DataType type, std::size_t size) {
  if (type == DataType::bf16) {
    values_ = std::vector<BFloat16>(size, BFloat16(0.0F));
  } else {
    values_ = std::vector<float>(size);
  }
}

Kept::Kept(DataType type, std::vector<float> values) {
  if (type == DataType::bf16) {
    values_ = rounded_to_bf16(values);
  } else {
    values_ = std::move(values);
  }
}

bool Kept::empty() const {
  return with([](const auto& values) { return values.empty(); });
}

std::vector<float> Kept::floats() const {
  return with([](const auto& values) {
    std::vector<float> out(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
    return out;
  });
}

}  // namespace rankine::tools
