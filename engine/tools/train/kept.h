// Numbers between two uses, as a training keeps them and sends them.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "engine/run/kernels/types.h"

namespace rankine::tools {

std::vector<BFloat16> rounded_to_bf16(std::span<const float> values);

// f32 as they are, or rounded to bf16, which takes half the memory and half of every message.
class Kept {
 public:
  Kept() = default;
  // Zeroes. `type`: f32 or bf16.
  Kept(DataType type, std::size_t size);
  Kept(DataType type, std::vector<float> values);

  DataType type() const {
    return std::holds_alternative<std::vector<float>>(values_) ? DataType::f32 : DataType::bf16;
  }
  bool empty() const;
  std::vector<float> floats() const;

  // Requires the element type of type().
  template <class T>
  std::vector<T>& as() {
    return std::get<std::vector<T>>(values_);
  }
  template <class T>
  const std::vector<T>& as() const {
    return std::get<std::vector<T>>(values_);
  }
  // Calls f with the vector that there is.
  template <class F>
  auto with(const F& f) {
    return std::visit(f, values_);
  }
  template <class F>
  auto with(const F& f) const {
    return std::visit(f, values_);
  }

 private:
  std::variant<std::vector<float>, std::vector<BFloat16>> values_;
};

}  // namespace rankine::tools
