// This header declares the reduction, copy, row and conversion kernels, chosen at run time by
// instruction set.
//
// One body over GCC's and Clang's vector types, compiled per instruction set, with intrinsics for
// instructions that the compiler does not name. Set aside: plain loops and Highway (two sources of
// 4 KiB, bytes read and written, one Zen 5 core, g++ 12 -O3 -march=native): f32 sum 600 GB/s here,
// 525 as a loop; bf16 218 against 48; f16 149 against 12; and Highway 1.0.3 truncates f32 to bf16
// where we must round. In L2 and L3, f16 and bf16 reach 0.8 to 1.1 of f32's rate; two floats take
// 1.5 ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/base/costs.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// In order: each set includes the sets before it. avx512 needs F, BW, DQ and VL; avx512_bf16 also
// BF16. Every 64-bit Arm CPU has neon.
#if defined(__x86_64__)
enum class Isa : std::uint8_t { portable, avx2, avx512, avx512_bf16 };
inline constexpr int kIsas = 4;
#elif defined(__aarch64__)
enum class Isa : std::uint8_t { portable, neon, neon_bf16 };
inline constexpr int kIsas = 3;
#else
enum class Isa : std::uint8_t { portable };
inline constexpr int kIsas = 1;
#endif

std::string_view name_of(Isa isa);
std::optional<Isa> parse_isa(std::string_view text);

// The best set that this build, this CPU and this operating system can run.
Isa hardware_isa();

// hardware_isa(), capped by the environment variable RANKINE_ISA, the name of a set, read once. A
// value that is unknown or beyond hardware_isa() caps nothing here, and making a communicator fails
// with it: see api/environment.h.
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

// ReduceKernel's contract for n_dsts >= 1 destinations at once, each of which may be one of the
// sources. `streaming`: stores go around the caches, for destinations far larger than the
// last-level cache, out of place. A fence follows, so a release store by this thread publishes the
// result. Destinations that are short, or that differ in alignment, get ordinary stores.
using SpreadKernel = void (*)(void* const* dsts, int n_dsts, const void* const* srcs, int n_srcs,
                              std::size_t count, int divisor, bool streaming) noexcept;

// Arguments and nullptr as for find_reduce().
SpreadKernel find_spread(DataType type, ReduceOp op, Isa isa);

// As find_reduce() and find_spread(), but sums and products of floats are added up in the brackets
// of the binary tree over the sources (Bracket::canonical), with every node rounded to the type. No
// avg: the divisor must be 0.
ReduceKernel find_tree_reduce(DataType type, ReduceOp op);
SpreadKernel find_tree_spread(DataType type, ReduceOp op);

// dst[i] = src[i] * factor for i < count: floats of 16 and 8 bits in f32, rounded once; integers
// wrap. `factor` points to an f32 for floats of 16 and 8 bits, otherwise to an element. dst equals
// src or does not overlap it. Equal bits with every instruction set.
using ScaleKernel = void (*)(void* dst, const void* src, std::size_t count,
                             const void* factor) noexcept;

// nullptr for b8, whose only product is "and". Arguments as for find_reduce().
ScaleKernel find_scale(DataType type, Isa isa);

// dst[i] = srcs[0][i] * weights[0] + srcs[1][i] * weights[1] + ... for i < count: in f32, from 0
// and left to right, rounded after every operation, and once to the type. Without sources: zeros.
// The sources may repeat; dst overlaps none. A weight that is a NaN must be the quiet NaN with an
// empty payload. Equal bits with every instruction set.
using WeightedKernel = void (*)(void* dst, const void* const* srcs, const float* weights,
                                int n_srcs, std::size_t count) noexcept;

// nullptr for types other than floats of at most 32 bits. Arguments as for find_reduce().
WeightedKernel find_weighted(DataType type, Isa isa);

// Copies 8 to 16 bytes without a call, and returns true. False: another size; nothing is copied.
[[gnu::always_inline]] inline bool copy_few_bytes(void* dst, const void* src,
                                                  std::size_t bytes) noexcept {
  std::uint64_t first, last;  // the two may overlap
  if (bytes - sizeof(first) > sizeof(last)) return false;
  std::byte* const to = static_cast<std::byte*>(dst);
  const std::byte* const from = static_cast<const std::byte*>(src);
  std::memcpy(&first, from, sizeof(first));
  std::memcpy(&last, from + bytes - sizeof(last), sizeof(last));
  std::memcpy(to, &first, sizeof(first));
  std::memcpy(to + bytes - sizeof(last), &last, sizeof(last));
  return true;
}
// dst may equal src; any other overlap is invalid. bytes may be 0.
void copy_block(void* dst, const void* src, std::size_t bytes, const Costs& costs) noexcept;
inline void copy_bytes(void* dst, const void* src, std::size_t bytes,
                       const Costs& costs = {}) noexcept {
  if (!copy_few_bytes(dst, src, bytes)) copy_block(dst, src, bytes, costs);
}
// Copies to memory in another core's cache: takes its lines over without fetching them, from
// costs.claim_copy_min_bytes bytes on and if the processor can (string_copy.h).
void copy_bytes_claiming(void* dst, const void* src, std::size_t bytes,
                         const Costs& costs = {}) noexcept;
// To n_dsts >= 0 destinations in one pass; around the caches or not, as SpreadKernel.
void copy_bytes_spread(void* const* dsts, int n_dsts, const void* src, std::size_t bytes,
                       bool streaming) noexcept;

// Row kernels do a server's work on rows of activations after a collective: one pass over a row.
//
// A row x passes through these steps in order; a null pointer or kind none omits its step:
//
//   x += bias;  residual += x, rounded to the type, and x = residual;  norm;  activation;  out
//
// All in f32: elements are widened, and rounded to nearest even when stored. Norms are those of
// Zhang & Sennrich (Root Mean Square Layer Normalization, 2019) and of Ba, Kiros & Hinton (Layer
// Normalization, 2016):
//   rms:    x / sqrt(mean(x^2) + epsilon) * weight
//   layer:  (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + shift
// Activations: relu is max(x, 0); silu is x / (1 + exp(-x)); gelu_tanh is x / (1 + exp(-2u)), which
// is x/2 (1 + tanh u), with u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel, 2016). exp is
// accurate to 2 units in the last place, and 0 if it would be subnormal. silu and gelu_tanh are NaN
// at minus infinity. Rows stored as i8 and f8e4m3 are scaled: with m the largest |x|, out = x *
// (127 / m), f8e4m3: 448, to nearest even, and the row's scale is m / 127. A row with no element
// above 2^-100 becomes zeros with scale 0; a row with an infinity or a NaN becomes zeros, with that
// value as its scale.
//
// A sum over a row is made of 64 partial sums, of the elements i with equal i mod 64 in order; then
// halves are added, 32 + 32 down to 1 + 1. So a row's bits follow from the row alone, not from the
// number of rows, their addresses or the instruction set (except the payloads of NaNs).

enum class Norm : std::uint8_t { none, rms, layer };
enum class Activation : std::uint8_t { none, relu, gelu_tanh, silu };
inline constexpr int kNorms = 3, kActivations = 4;

// One call's work: rows that lie side by side, and the addresses of each array at the first of
// these rows. Only `scratch` needs alignment.
struct RowWork {
  const void* rows = nullptr;  // elements of the kernel's type, as for bias to shift
  std::size_t count = 0;       // number of rows
  std::size_t elements = 0;    // elements per row
  const void* bias = nullptr;  // one row
  void* residual = nullptr;    // rows
  Norm norm = Norm::none;
  const void* weight = nullptr;  // one row; nullptr: ones
  const void* shift = nullptr;   // one row; nullptr: zeros
  float epsilon = 0;
  Activation activation = Activation::none;
  void* out = nullptr;       // rows of the kernel's out type
  float* scales = nullptr;   // one per row, for i8 and f8e4m3; may be null
  float* scratch = nullptr;  // scratch_floats(elements), aligned to 64 bytes
};

// The scratch size in floats: a row in whole registers of any instruction set.
inline constexpr std::size_t scratch_floats(std::size_t elements) {
  return (elements + 15) / 16 * 16;
}

using RowKernel = void (*)(const RowWork&) noexcept;

// type: f32, f16, bf16; out: these, i8, f8e4m3; nullptr for others. An isa beyond hardware_isa()
// gives the kernel of hardware_isa().
RowKernel find_rows(DataType type, DataType out, Isa isa);

// dst[i] = src[i] in the other type, for i < count. The vectors do not overlap and need no
// alignment. To f32: exact. From f32: rounded as in types.h; 8 bits saturate, and a NaN stays a
// NaN.
using ConvertKernel = void (*)(void* dst, const void* src, std::size_t count) noexcept;
struct Conversions {
  ConvertKernel widen = nullptr;   // to f32
  ConvertKernel narrow = nullptr;  // from f32
};

// type: f16, bf16, f8e4m3, f8e5m2; two nullptr for others. Equal bits with every instruction set.
Conversions find_conversions(DataType type, Isa isa);

// Blocks of `block` elements as 8 bits with one f32 scale each, for QuantisedSum. The blocks lie
// side by side: their scales at `scales`, their bytes at `bytes`.
struct PackedBlocks {
  std::byte* scales = nullptr;
  std::byte* bytes = nullptr;
};
// Packs `count` elements of src, and zeros behind them, as `blocks` blocks. A scale is the largest
// magnitude times 1/127 (i8) or 1/448 (f8e4m3), and at least 2^-126; an element times 1/scale is
// rounded to nearest even. A block with an infinity or a NaN becomes zeros with a NaN as scale.
using PackKernel = void (*)(const PackedBlocks& to, const void* src, std::size_t count,
                            std::size_t block, std::size_t blocks) noexcept;
// dst[i] = the sum over n_srcs packed vectors, `stride` bytes apart, of byte times scale, for i <
// count: added up in f32 in their order, from 0 on, and rounded once.
using UnpackKernel = void (*)(void* dst, const PackedBlocks& first, std::size_t stride, int n_srcs,
                              std::size_t count, std::size_t block) noexcept;
struct Packing {
  PackKernel pack = nullptr;
  UnpackKernel unpack = nullptr;
};

// type: f32, f16, bf16; as: i8, f8e4m3; two nullptr for others. Equal bits with every instruction
// set, except the payloads of NaNs.
Packing find_packing(DataType type, DataType as, Isa isa);

// KernelTable lists the kernels of one instruction set. Internal to engine/run/kernels.

using CopyKernel = void (*)(void* dst, const void* src, std::size_t bytes) noexcept;

struct KernelTable {
  ReduceKernel reduce[kDataTypes][kReduceOps];  // [type][op], nullptr iff !supports(type, op)
  SpreadKernel spread[kDataTypes][kReduceOps];
  ScaleKernel scale[kDataTypes];  // nullptr: b8
  WeightedKernel weighted[kDataTypes];
  CopyKernel copy;
  CopyKernel copy_streaming;
  RowKernel (*rows)(DataType type, DataType out) noexcept;
  Conversions (*conversions)(DataType type) noexcept;
  Packing (*packing)(DataType type, DataType as) noexcept;
};

// One per source file, each compiled for its instruction set. nullptr: the compiler lacked that
// target.
const KernelTable* portable_kernels();
const KernelTable* avx2_kernels();
const KernelTable* avx512_kernels();
const KernelTable* avx512_bf16_kernels();
const KernelTable* neon_kernels();
const KernelTable* neon_bf16_kernels();

}  // namespace rankine
