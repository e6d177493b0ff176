// Products of matrices of bf16 with sums in f32: the same bits on every set of instructions.
#pragma once

#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/types.h"

namespace rankine::tools {

// c += a b, row-major: a has rows x depth elements, b depth x cols. Each element is added up by
// rising index from what is there on, rounded after every addition; a product of two bf16 is exact.
// That is what AVX512-BF16 does with pairs, if they lie the other way round. Numbers below 2^-126
// may count as zero, as they do there. Thread-safe. An isa beyond hardware_isa() gives the best one
// that there is.
void add_bf16_product(const BFloat16* a, const BFloat16* b, int rows, int depth, int cols, float* c,
                      Isa isa = best_isa());

}  // namespace rankine::tools
