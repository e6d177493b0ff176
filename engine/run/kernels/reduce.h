// Reduction and copy kernels, chosen at run time by instruction set.
//
// One body over GCC's and Clang's vector types, compiled per instruction set, with intrinsics where
// the compiler has no name for an instruction. Why not plain loops or Highway (two sources of 4
// KiB, bytes read and written, one Zen 5 core, g++ 12 -O3 -march=native): f32 sum 600 GB/s here,
// 525 as a loop; bf16 218 against 48; f16 149 against 12; and Highway 1.0.3 truncates f32 to bf16
// where we must round. In L2 and L3 f16 and bf16 reach 0.8 to 1.1 of f32's rate; two floats
// take 1.5 ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/costs.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// In order: each can do all that the ones before it can. avx512 needs F, BW, DQ and VL; avx512_bf16
// also BF16.
enum class Isa : std::uint8_t { portable, avx2, avx512, avx512_bf16 };
inline constexpr int kIsas = 4;

std::string_view name_of(Isa isa);
std::optional<Isa> parse_isa(std::string_view text);

// What this build, this CPU and this operating system can run.
Isa hardware_isa();

// hardware_isa(), capped by the environment variable RANKINE_ISA=portable|avx2|avx512|avx512_bf16
// (read once; a value that is unknown or beyond hardware_isa() caps nothing here, and no
// communicator is made with it: see api/environment.h).
Isa best_isa();

// dst[i] = finish(srcs[0][i] op srcs[1][i] op ... op srcs[n_srcs - 1][i]) for i < count, folded
// left to right, in one pass over memory.
//
// Requires: n_srcs >= 1; dst is exactly one of the sources or overlaps none. Sources may repeat.
// Pointers need no alignment at all. count may be 0 (then no pointer is used). Thread-safe;
// allocates nothing. Nothing outside the vectors is written, and nothing outside is read, except by
// prefetch.
//
// The result is the same to the last bit with every instruction set:
// - Integers wrap (two's complement). f32 and f64, and the parts of c64 and c128, round after every
//   operation. Floats of 16 and 8 bits are widened to f32, folded there over all sources and
//   rounded once, to nearest even; those of 8 bits saturate (types.h). Subnormals are never flushed
//   (in the default floating-point environment, which the kernels neither read nor set).
// - min and max: if any source is NaN, the result is the quiet NaN with a clear sign and an empty
//   payload. -0 is less than +0.
// - sum, prod and avg of floats: a NaN source gives a quiet NaN of unspecified sign and payload.
// - n_srcs = 1 copies bytes (then finishes).
// - divisor = 0: no finish. divisor > 0, for avg: the total is divided by it. Floats: true division
//   in the type of the accumulation, before f16 and bf16 are rounded. Integers: the (wrapped)
//   total, truncated toward zero. avg accumulates like sum; the other operators ignore divisor.
using ReduceKernel = void (*)(void* dst, const void* const* srcs, int n_srcs, std::size_t count,
                              int divisor) noexcept;

// nullptr iff !supports(type, op). An isa beyond hardware_isa() gives the kernel of hardware_isa().
ReduceKernel find_reduce(DataType type, ReduceOp op, Isa isa);
ReduceKernel find_reduce(DataType type, ReduceOp op);  // best_isa()

// Same contract, but to n_dsts >= 1 vectors at once, each of which may be one of the sources. Where
// `streaming`, stores go around the caches: for destinations far beyond the last-level cache, out
// of place. Fences at the end, so a release store by the same thread publishes the result.
// Destinations that are short, or not aligned alike to their element type, get ordinary stores.
using SpreadKernel = void (*)(void* const* dsts, int n_dsts, const void* const* srcs, int n_srcs,
                              std::size_t count, int divisor, bool streaming) noexcept;

// As find_reduce().
SpreadKernel find_spread(DataType type, ReduceOp op, Isa isa);

// dst[i] = src[i] * factor for i < count: floats of 16 and 8 bits in f32, rounded once; integers
// wrap. `factor` points to an f32 for floats of 16 and 8 bits, else to an element. dst is src or
// overlaps it nowhere. The same bits with every instruction set.
using ScaleKernel = void (*)(void* dst, const void* src, std::size_t count,
                             const void* factor) noexcept;

// nullptr: b8, which has no products but "and". As find_reduce().
ScaleKernel find_scale(DataType type, Isa isa);

// dst == src is fine; any other overlap is not. bytes may be 0.
void copy_bytes(void* dst, const void* src, std::size_t bytes, const Costs& costs = {}) noexcept;
// To memory that another core's cache holds: takes its lines over without fetching them, from
// costs.claim bytes on and where the processor can (string_copy.h).
void copy_bytes_claiming(void* dst, const void* src, std::size_t bytes,
                         const Costs& costs = {}) noexcept;
// Around the caches, fenced at the end.
void copy_bytes_streaming(void* dst, const void* src, std::size_t bytes) noexcept;

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

// What one instruction set offers. Internal to engine/run/kernels.

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
