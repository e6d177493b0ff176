#include "engine/run/kernels/reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

#include "engine/base/environment_variable.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/string_copy.h"

namespace rankine {
namespace {

constexpr std::string_view kIsaNames[kIsas] = {"portable", "avx2", "avx512", "avx512_bf16"};

// __builtin_cpu_supports also checks that the operating system saves the wide registers. Not every
// compiler's version knows F16C by name.
Isa detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  // Test the CPU first: the functions that return the tables are themselves compiled for it.
  if (!f16c || !__builtin_cpu_supports("avx2") || avx2_kernels() == nullptr) return Isa::portable;
  if (!__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl") || avx512_kernels() == nullptr) {
    return Isa::avx2;
  }
  if (!__builtin_cpu_supports("avx512bf16") || avx512_bf16_kernels() == nullptr) {
    return Isa::avx512;
  }
  return Isa::avx512_bf16;
#else
  return Isa::portable;
#endif
}

const KernelTable& table(Isa isa) {
  switch (std::min(isa, hardware_isa())) {
    case Isa::avx512_bf16:
      return *avx512_bf16_kernels();
    case Isa::avx512:
      return *avx512_kernels();
    case Isa::avx2:
      return *avx2_kernels();
    case Isa::portable:
      break;
  }
  return *portable_kernels();
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

std::string_view name_of(Isa isa) { return kIsaNames[static_cast<std::size_t>(isa)]; }

std::optional<Isa> parse_isa(std::string_view text) {
  for (int i = 0; i < kIsas; ++i) {
    if (text == kIsaNames[i]) return static_cast<Isa>(i);
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

RowKernel find_rows(DataType type, DataType out, Isa isa) {
  const Isa runs = std::min(isa, hardware_isa());
  if (runs >= Isa::avx512) return avx512_rows()(type, out);
  if (runs == Isa::avx2) return avx2_rows()(type, out);
  return portable_rows()(type, out);
}

Conversions find_conversions(DataType type, Isa isa) {
  const Isa runs = std::min(isa, hardware_isa());
  if (runs >= Isa::avx512) return avx512_conversions()(type);
  if (runs == Isa::avx2) return avx2_conversions()(type);
  return portable_conversions()(type);
}

}  // namespace rankine
