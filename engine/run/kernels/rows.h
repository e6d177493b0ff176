// What servers do with rows of activations behind a collective: one pass over a row, chosen at run
// time by instruction set.
//
// A row x becomes, in this order, each step left out where its pointer is null or its kind is none:
//
//   x += bias;  residual += x, rounded to the type, and x = residual;  norm;  activation;  out
//
// All in f32: elements are widened, and rounded to nearest even where they are stored. Norms are
// those of Zhang & Sennrich (Root Mean Square Layer Normalization, 2019) and of Ba, Kiros & Hinton
// (Layer Normalization, 2016):
//   rms:    x / sqrt(mean(x^2) + epsilon) * weight
//   layer:  (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + shift
// Activations: relu is max(x, 0); silu is x / (1 + exp(-x)); gelu_tanh is x / (1 + exp(-2u)), which
// is x/2 (1 + tanh u), with u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel, 2016). exp is
// right to 2 units in the last place, and 0 where it would be subnormal.
// Both are NaN of minus infinity.
// To i8 and f8e4m3 rows are scaled: with m the largest |x|, out = x * (127 / m), f8e4m3: 448, to
// nearest even, and the row's scale is m / 127. Rows of nothing larger than 2^-100 are zeros of
// scale 0; a row with an infinity or a NaN is zeros, and that is its scale.
//
// Sums over a row are 64 partial sums, of the elements i with the same i mod 64 in order, and then
// halves added to each other, 32 + 32 down to 1 + 1. So a row's bits follow from the row alone: not
// from how many rows come together, where they lie, or the instruction set (but for the payloads of
// NaNs).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/types.h"

namespace rankine {

enum class Norm : std::uint8_t { none, rms, layer };
enum class Activation : std::uint8_t { none, relu, gelu_tanh, silu };
inline constexpr int kNorms = 3, kActivations = 4;

// One call's share: rows that lie side by side, and the places of what belongs to each of them,
// already at the first of these rows. Nothing needs alignment but `scratch`.
struct RowWork {
  const void* rows = nullptr;  // elements of the kernel's type, as bias to shift are
  std::size_t count = 0;       // of rows
  std::size_t elements = 0;    // of a row
  const void* bias = nullptr;  // a row
  void* residual = nullptr;    // rows
  Norm norm = Norm::none;
  const void* weight = nullptr;  // a row; nullptr: ones
  const void* shift = nullptr;   // a row; nullptr: zeros
  float epsilon = 0;
  Activation activation = Activation::none;
  void* out = nullptr;       // rows of the kernel's out type
  float* scales = nullptr;   // one a row, of i8 and f8e4m3; may be null
  float* scratch = nullptr;  // scratch_floats(elements), aligned to 64 bytes
};

// A row in whole registers, whatever the instruction set.
inline constexpr std::size_t scratch_floats(std::size_t elements) {
  return (elements + 15) / 16 * 16;
}

using RowKernel = void (*)(const RowWork&) noexcept;

// type: f32, f16, bf16; out: these, i8, f8e4m3. Else nullptr. An isa beyond hardware_isa() gives
// the kernel of hardware_isa().
RowKernel find_rows(DataType type, DataType out, Isa isa);

// dst[i] = src[i] in the other type, for i < count. The vectors do not overlap and need no
// alignment. To f32: exact. From f32: as types.h rounds, 8 bits saturate, a NaN stays a NaN.
using ConvertKernel = void (*)(void* dst, const void* src, std::size_t count) noexcept;
struct Conversions {
  ConvertKernel widen = nullptr;   // to f32
  ConvertKernel narrow = nullptr;  // from f32
};

// type: f16, bf16, f8e4m3, f8e5m2; else two nullptr. The same bits with every instruction set.
Conversions find_conversions(DataType type, Isa isa);

// One per source file, as KernelTable is; internal to engine/run/kernels. nullptr: the compiler had
// no such target.
using FindRows = RowKernel (*)(DataType type, DataType out) noexcept;
FindRows portable_rows();
FindRows avx2_rows();
FindRows avx512_rows();
using FindConversions = Conversions (*)(DataType type) noexcept;
FindConversions portable_conversions();
FindConversions avx2_conversions();
FindConversions avx512_conversions();

}  // namespace rankine
