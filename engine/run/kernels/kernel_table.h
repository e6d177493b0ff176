// What one instruction set offers. Internal to engine/run/kernels.
#pragma once

#include <cstddef>

#include "engine/run/kernels/reduce.h"

namespace rankine {

using CopyKernel = void (*)(void* dst, const void* src, std::size_t bytes) noexcept;

struct KernelTable {
  ReduceKernel reduce[kDataTypes][kReduceOps];  // [type][op], nullptr iff !supports(type, op)
  SpreadKernel spread[kDataTypes][kReduceOps];
  ScaleKernel scale[kDataTypes];  // nullptr: b8
  CopyKernel copy;
  CopyKernel copy_streaming;
};

// One per source file, each compiled for its instruction set. nullptr: the compiler had no such
// target.
const KernelTable* portable_kernels();
const KernelTable* avx2_kernels();
const KernelTable* avx512_kernels();
const KernelTable* avx512_bf16_kernels();

}  // namespace rankine
