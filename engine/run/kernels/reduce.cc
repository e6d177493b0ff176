#include "engine/run/kernels/reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
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

// __builtin_cpu_supports also checks that the operating system saves the wide registers. Not every
// compiler's version knows F16C by name.
bool runs_avx2() {
  __builtin_cpu_init();
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return f16c && __builtin_cpu_supports("avx2");
}

bool runs_avx512() {
  return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

constexpr InstructionSet kSets[] = {
    {"portable", portable_kernels, nullptr},
    {"avx2", avx2_kernels, runs_avx2},
    {"avx512", avx512_kernels, runs_avx512},
    {"avx512_bf16", avx512_bf16_kernels, [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
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

ScaleKernel find_scale(DataType type, Isa isa) { return table(isa).scale[index(type)]; }

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

void copy_bytes_streaming(void* dst, const void* src, std::size_t bytes) noexcept {
  best_table().copy_streaming(dst, src, bytes);
}

RowKernel find_rows(DataType type, DataType out, Isa isa) { return table(isa).rows(type, out); }

Conversions find_conversions(DataType type, Isa isa) { return table(isa).conversions(type); }

}  // namespace rankine
