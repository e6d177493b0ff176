#include "engine/run/kernels/reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <bit>
#include <iterator>

#include "engine/base/files.h"
#include "engine/run/kernels/string_copy.h"

namespace rankine {
namespace {

struct InstructionSet {
  std::string_view name;
  const KernelTable* (*kernels)();
  bool (*runs_here)();  // the machine has it, and the set before it
};

#if defined(__x86_64__)

// True if the CPU has the instructions of all `bits` of its answer `which` (0: eax, 1: ebx, 2: ecx)
// to CPUID, and the operating system saves the `registers`, bits of XCR0. Not by
// __builtin_cpu_supports: with Zig's run-time library, which third_party/wheel links, every CPU
// lacks everything.
bool has(unsigned leaf, unsigned subleaf, int which, unsigned bits, unsigned registers) {
  unsigned answer[4] = {};
  const auto ask = [&](unsigned l, unsigned s) {
    return __get_cpuid_count(l, s, &answer[0], &answer[1], &answer[2], &answer[3]) != 0;
  };
  if (!ask(1, 0) || (answer[2] & bit_OSXSAVE) == 0) return false;
  unsigned saved = 0, high = 0;
  asm("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  return (saved & registers) == registers && ask(leaf, subleaf) && (answer[which] & bits) == bits;
}
constexpr unsigned kYmm = 0x06;  // with the lower half, xmm
constexpr unsigned kZmm = 0xe6;  // with mask registers and both lower parts

bool runs_avx2() { return has(1, 0, 2, bit_F16C, kYmm) && has(7, 0, 1, bit_AVX2, kYmm); }
bool runs_avx512() {
  return has(7, 0, 1, bit_BMI2 | bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL, kZmm);
}
bool runs_avx512_bf16() { return has(7, 1, 0, bit_AVX512BF16, kZmm); }

constexpr InstructionSet kSets[] = {
    {"portable", portable_kernels, nullptr},
    {"avx2", avx2_kernels, runs_avx2},
    {"avx512", avx512_kernels, runs_avx512},
    {"avx512_bf16", avx512_bf16_kernels, runs_avx512_bf16},
};

#elif defined(__aarch64__)

constexpr unsigned long kHasBf16 = 1UL << 14;  // HWCAP2_BF16, which older headers lack

constexpr InstructionSet kSets[] = {
    {"portable", portable_kernels, nullptr},
    {"neon", neon_kernels, [] { return true; }},
    {"neon_bf16", neon_bf16_kernels, [] { return (getauxval(AT_HWCAP2) & kHasBf16) != 0; }},
};

#else

constexpr InstructionSet kSets[] = {{"portable", portable_kernels, nullptr}};

#endif

static_assert(std::size(kSets) == kIsas);

Isa detect() {
  int best = 0;
  // Test the CPU first: the functions that return the tables are themselves compiled for it.
  while (best + 1 < kIsas && kSets[best + 1].runs_here() && kSets[best + 1].kernels() != nullptr) {
    ++best;
  }
  return static_cast<Isa>(best);
}

const KernelTable& table(Isa isa) {
  return *kSets[static_cast<std::size_t>(std::min(isa, hardware_isa()))].kernels();
}

const KernelTable& best_table() {
  static const KernelTable& best = table(best_isa());
  return best;
}

// The binary tree over sources: each node is a fold of two.
struct SourceTree {
  // Works on this much of the vectors at a time, so that the nodes' sums stay in the caches.
  // Smaller parts are slower for large vectors.
  static constexpr std::size_t kPart = 8192;  // bytes

  ReduceKernel fold;
  std::size_t element_bytes;
  const void* const* srcs;

  struct Buffers {
    alignas(64) std::byte low[kPart], high[kPart];
  };
  const void* leaf(std::size_t source, std::size_t at) const noexcept {
    return static_cast<const std::byte*>(srcs[source]) + at;
  }
  // Stores the two operands of the node over two or more sources, of `elements` elements from byte
  // `at` on.
  void find_operands(std::size_t first, std::size_t sources, std::size_t at, std::size_t elements,
                     Buffers& buffers, const void** both) const noexcept {
    const std::size_t half = std::bit_ceil(sources) / 2;
    both[0] = node(first, half, at, elements, buffers.low);
    both[1] = node(first + half, sources - half, at, elements, buffers.high);
  }
  const void* node(std::size_t first, std::size_t sources, std::size_t at, std::size_t elements,
                   std::byte* to) const noexcept {
    if (sources == 1) return leaf(first, at);
    if (sources > 2) return large_node(first, sources, at, elements, to);
    const void* const both[] = {leaf(first, at), leaf(first + 1, at)};
    fold(to, both, 2, elements, 0);
    return to;
  }
  // Not inlined: smaller nodes need no buffers on the stack.
  [[gnu::noinline]] const void* large_node(std::size_t first, std::size_t sources, std::size_t at,
                                           std::size_t elements, std::byte* to) const noexcept {
    Buffers buffers;
    const void* both[2];
    find_operands(first, sources, at, elements, buffers, both);
    fold(to, both, 2, elements, 0);
    return to;
  }
  // Calls last(operands, at, elements) for the parts of the vectors: the two operands of the root.
  template <class Last>
  void fold_parts(int sources, std::size_t count, const Last& last) const noexcept {
    const std::size_t most = kPart / element_bytes;
    Buffers buffers;
    for (std::size_t i = 0; i < count; i += most) {
      const void* both[2];
      const std::size_t at = i * element_bytes, elements = std::min(most, count - i);
      find_operands(0, static_cast<std::size_t>(sources), at, elements, buffers, both);
      last(both, at, elements);
    }
  }
};

template <DataType kType, ReduceOp kOp>
void reduce_tree(void* dst, const void* const* srcs, int n_srcs, std::size_t count,
                 int /*divisor*/) noexcept {
  const ReduceKernel fold = find_reduce(kType, kOp);
  if (n_srcs < 3) return fold(dst, srcs, n_srcs, count, 0);
  SourceTree{fold, size_of(kType), srcs}.fold_parts(
      n_srcs, count, [&](const void* const* both, std::size_t at, std::size_t elements) {
        fold(static_cast<std::byte*>(dst) + at, both, 2, elements, 0);
      });
}

template <DataType kType, ReduceOp kOp>
void spread_tree(void* const* dsts, int n_dsts, const void* const* srcs, int n_srcs,
                 std::size_t count, int /*divisor*/, bool streaming) noexcept {
  constexpr int kMost = 16;  // destinations at a time
  const SpreadKernel spread = find_spread(kType, kOp, best_isa());
  if (n_srcs < 3) return spread(dsts, n_dsts, srcs, n_srcs, count, 0, streaming);
  SourceTree{find_reduce(kType, kOp), size_of(kType), srcs}.fold_parts(
      n_srcs, count, [&](const void* const* both, std::size_t at, std::size_t elements) {
        void* there[kMost];
        const void* const sum = static_cast<std::byte*>(dsts[0]) + at;
        for (int first = 0; first < n_dsts; first += kMost) {
          const int n = std::min(kMost, n_dsts - first);
          for (int i = 0; i < n; ++i) there[i] = static_cast<std::byte*>(dsts[first + i]) + at;
          // The first destinations may be operands, so the others get a copy of the sum.
          if (first == 0) {
            spread(there, n, both, 2, elements, 0, streaming);
          } else {
            spread(there, n, &sum, 1, elements, 0, streaming);
          }
        }
      });
}

// Calls found.operator()<type, op>() for a sum or product that rounds; otherwise returns nullptr.
template <class Kernel, class Found>
Kernel find_tree(DataType type, ReduceOp op, const Found& found) {
  if (op == ReduceOp::avg || !rounds(type, op)) return nullptr;
  return with_element(type, [&]<class T>() -> Kernel {
    constexpr DataType kType = data_type_of<T>;
    if constexpr (!rounds(kType, ReduceOp::sum)) {
      return nullptr;
    } else if (op == ReduceOp::sum) {
      return found.template operator()<kType, ReduceOp::sum>();
    } else {
      return found.template operator()<kType, ReduceOp::prod>();
    }
  });
}

bool takes_strings(const void* dst, const void* src) {
  return has_fast_strings() && lie_well_for_strings(dst, src);
}

std::size_t index(DataType type) { return static_cast<std::size_t>(type); }
std::size_t index(ReduceOp op) { return static_cast<std::size_t>(op); }

}  // namespace

std::string_view name_of(Isa isa) { return kSets[static_cast<std::size_t>(isa)].name; }

std::optional<Isa> parse_isa(std::string_view text) {
  for (int i = 0; i < kIsas; ++i) {
    if (text == kSets[i].name) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

Isa hardware_isa() {
  static const Isa isa = detect();
  return isa;
}

Isa best_isa() {
  static const Isa isa = [] {
    const char* cap = environment_variable("RANKINE_ISA");
    return std::min(hardware_isa(), parse_isa(cap == nullptr ? "" : cap).value_or(hardware_isa()));
  }();
  return isa;
}

ReduceKernel find_reduce(DataType type, ReduceOp op, Isa isa) {
  return table(isa).reduce[index(type)][index(op)];
}

ReduceKernel find_reduce(DataType type, ReduceOp op) {
  return best_table().reduce[index(type)][index(op)];
}

SpreadKernel find_spread(DataType type, ReduceOp op, Isa isa) {
  return table(isa).spread[index(type)][index(op)];
}

ReduceKernel find_tree_reduce(DataType type, ReduceOp op) {
  const auto found = find_tree<ReduceKernel>(
      type, op, []<DataType kType, ReduceOp kOp>() { return reduce_tree<kType, kOp>; });
  return found != nullptr ? found : find_reduce(type, op);
}

SpreadKernel find_tree_spread(DataType type, ReduceOp op) {
  const auto found = find_tree<SpreadKernel>(
      type, op, []<DataType kType, ReduceOp kOp>() { return spread_tree<kType, kOp>; });
  return found != nullptr ? found : find_spread(type, op, best_isa());
}

ScaleKernel find_scale(DataType type, Isa isa) { return table(isa).scale[index(type)]; }

WeightedKernel find_weighted(DataType type, Isa isa) { return table(isa).weighted[index(type)]; }

// On lines that another core has written, string instructions are up to a quarter slower than our
// loop for blocks that fit in the first-level cache, and faster for larger ones. (glibc's memcpy
// uses them from 2 KiB to the size of the second-level cache.)
void copy_block(void* dst, const void* src, std::size_t bytes, const Costs& costs) noexcept {
  if (dst == src || bytes == 0) return;
  if (bytes < costs.loop_copy_min_bytes) {
    __builtin_memcpy(dst, src, bytes);
  } else if (bytes >= costs.string_copy_min_bytes && takes_strings(dst, src)) {
    string_copy(dst, src, bytes);
  } else {
    best_table().copy(dst, src, bytes);
  }
}

void copy_bytes_claiming(void* dst, const void* src, std::size_t bytes,
                         const Costs& costs) noexcept {
  if (bytes < costs.claim_copy_min_bytes || dst == src || !takes_strings(dst, src)) {
    return copy_bytes(dst, src, bytes, costs);
  }
  string_copy(dst, src, bytes);
}

void copy_bytes_spread(void* const* dsts, int n_dsts, const void* src, std::size_t bytes,
                       bool streaming) noexcept {
  if (n_dsts == 0) return;  // an op that copies a place to itself
  static const SpreadKernel spread = find_spread(DataType::u8, ReduceOp::bor, best_isa());
  spread(dsts, n_dsts, &src, 1, bytes, 0, streaming);
}

RowKernel find_rows(DataType type, DataType out, Isa isa) { return table(isa).rows(type, out); }

Conversions find_conversions(DataType type, Isa isa) { return table(isa).conversions(type); }

Packing find_packing(DataType type, DataType as, Isa isa) { return table(isa).packing(type, as); }

}  // namespace rankine
