// The type in which a model's matrices are kept and multiplied.
#pragma once

#include "engine/run/kernels/types.h"
#include "engine/tools/plan/model.h"

namespace rankine::tools {

inline DataType kept_type(const Model& model) {
  return model.bytes == 2 ? DataType::bf16 : DataType::f32;
}

}  // namespace rankine::tools
