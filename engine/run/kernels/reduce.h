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

}  // namespace rankine
