// string_copy() copies with the string instruction. From 4 KiB on, processors with fast strings
// (ERMS) take over whole lines of the destination without fetching their contents: if another
// core's cache holds these lines, that saves one crossing per line. (Zen 5, 1 MiB to lines that a
// far core has just read: 50 us, by stores of 64 bytes 170 us; from 2 KiB pieces no gain.) Its
// stores may be reordered among themselves, but never with a later store (Intel SDM, volume 3,
// "Memory Ordering ... String Operations"; every program that publishes a memcpy's result relies on
// it), so a release store publishes them.
//
// It is slow if the destination begins less than half a line above the source, modulo the page
// size: Zen 4 and 5 then copy at a twelfth of the speed (64 KiB: 24 us instead of 2). Large memory
// of malloc() begins 16 bytes into a page, mapped memory at its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define RANKINE_HAS_STRINGS 1
#include <cpuid.h>
#endif

namespace rankine {

// True if the two addresses allow the fast copy.
inline bool lie_well_for_strings(const void* dst, const void* src) noexcept {
  const auto above = reinterpret_cast<std::uintptr_t>(dst) - reinterpret_cast<std::uintptr_t>(src);
  return above % 4096 == 0 || above % 4096 >= 32;
}

#ifdef RANKINE_HAS_STRINGS

inline bool has_fast_strings() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 9)) != 0;
  }();
  return has;
}

// No overlap. Only after has_fast_strings().
inline void string_copy(void* dst, const void* src, std::size_t bytes) noexcept {
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes) : : "memory");
}

#else  // sanitizers see no stores of the string instruction

inline bool has_fast_strings() { return false; }
inline void string_copy(void* dst, const void* src, std::size_t bytes) noexcept {
  std::memcpy(dst, src, bytes);
}

#endif

}  // namespace rankine
