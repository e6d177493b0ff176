// One pass over memory: sources say where the registers come from that a fold combines, a put where
// they go, and sweep() walks. Textual, like vector.h.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/run/kernels/finishes.h"

namespace rankine {
namespace {

// Named pointers, so that they live in registers. kCount is 1 or 2.
template <int kCount>
struct FewSources {
  const char *p0, *p1;

  RANKINE_INLINE explicit FewSources(const void* const* srcs)
      : p0(static_cast<const char*>(srcs[0])), p1(static_cast<const char*>(srcs[kCount - 1])) {}

  template <class F, class Load>
  RANKINE_INLINE typename F::Total fold(std::size_t at, Load get) const {
    typename F::Total total = F::first(get(p0 + at));
    if constexpr (kCount > 1) total = F::step(total, get(p1 + at));
    return total;
  }

  template <class F, std::size_t kRegisters>
  RANKINE_INLINE void fold_many(typename F::Total* totals, std::size_t at) const {
    using Register = typename F::Register;
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) {
      totals[r] = fold<F>(at + r * sizeof(Register), load<Register>);
    }
  }
};

// Vectors of at least kFar bytes are fetched kAhead bytes early when there are three or more of
// them: that many streams are too much for the prefetcher, and 16-bit floats keep the core too busy
// to run ahead by itself (four bf16 sources in L3: 27 -> 60 GB/s). In L1 it would cost 15 %.
inline constexpr std::size_t kFar = std::size_t{128} << 10;
inline constexpr std::size_t kAhead = 1024;

template <bool kMayFetch>
struct AnySources {
  const void* const* srcs;
  int count;
  bool fetching = false;

  RANKINE_INLINE const char* source(int s) const { return static_cast<const char*>(srcs[s]); }

  template <class F, class Load>
  RANKINE_INLINE typename F::Total fold(std::size_t at, Load get) const {
    typename F::Total total = F::first(get(source(0) + at));
    for (int s = 1; s < count; ++s) total = F::step(total, get(source(s) + at));
    return total;
  }

  template <class F, std::size_t kRegisters>
  RANKINE_INLINE void fold_many(typename F::Total* totals, std::size_t at) const {
    using Register = typename F::Register;
    const char* from = source(0) + at;
    fetch<kRegisters * sizeof(Register)>(from);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) {
      totals[r] = F::first(load<Register>(from + r * sizeof(Register)));
    }
    for (int s = 1; s < count; ++s) {
      from = source(s) + at;
      fetch<kRegisters * sizeof(Register)>(from);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRegisters; ++r) {
        totals[r] = F::step(totals[r], load<Register>(from + r * sizeof(Register)));
      }
    }
  }

 private:
  // Runs past the end by kAhead; a prefetch never faults.
  template <std::size_t kBytes>
  RANKINE_INLINE void fetch(const char* from) const {
    if constexpr (kMayFetch) {
      if (!fetching) return;
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBytes; b += 64) __builtin_prefetch(from + kAhead + b);
    }
  }
};

// Bytes to the next multiple of the register that F stores.
template <class F>
RANKINE_INLINE std::size_t to_alignment(const void* p) {
  return (0 - reinterpret_cast<std::uintptr_t>(p)) % sizeof(typename F::Register);
}

// Alignment is reached at a whole element.
template <class F>
RANKINE_INLINE bool can_align(const void* dst) {
  return to_alignment<F>(dst) % sizeof(typename F::Element) == 0;
}

// Less than a register. The sizes of a few elements get plain loads and stores, which, unlike
// masked ones, are forwarded from one to the next.
template <class F, class Sources, class Finish, class Put>
RANKINE_INLINE void sweep_partial(char* dst, Sources sources, std::size_t bytes, Finish finish,
                                  Put put) {
  using Register = typename F::Register;
  const auto exact = [&]<std::size_t kBytes>() {
    if constexpr (kBytes < sizeof(Register)) {
      const auto total = sources.template fold<F>(0, Target::load_exact<kBytes, Register>);
      put.each(dst, [value = F::last(finish(total))](char* to) {
        Target::store_exact<kBytes, Register>(to, value);
      });
    }
  };
  switch (bytes) {
    case 0:
      return;
    case 4:
      return exact.template operator()<4>();
    case 8:
      return exact.template operator()<8>();
    case 16:
      return exact.template operator()<16>();
    case 32:
      return exact.template operator()<32>();
    default:
      const auto total = sources.template fold<F>(
          0, [bytes](const char* p) { return Target::load_partial<Register>(p, bytes); });
      put.each(dst, [value = F::last(finish(total)), bytes](char* to) {
        Target::store_partial<Register>(to, value, bytes);
      });
  }
}

// Registers per turn. More would help three and more sources in L1 (by 5 %) and hurt them in L2 (by
// 20 to 50 %), where short visits to each source suit the prefetcher.
inline constexpr std::size_t kRegisters = 2;

// Destinations of at least this many registers are worth one that overlaps, to align the stores.
inline constexpr std::size_t kAlignFrom = 16;

// Where the results go: edge() for the ends, which overlap their neighbours, else operator().
struct Temporal {
  template <class Put>
  RANKINE_INLINE void each(char* to, Put one) const {
    one(to);
  }
  template <class Register>
  RANKINE_INLINE void operator()(char* to, Register value) const {
    store(to, value);
  }
  template <class Register>
  RANKINE_INLINE void edge(char* to, Register value) const {
    store(to, value);
  }
  RANKINE_INLINE void done() const {}
};

// One or several vectors, past the caches or not. Asked per register, so that far vectors need one
// body only: they wait for memory anyway.
struct Spread {
  char* first;
  void* const* all;
  int count;
  std::ptrdiff_t second;  // from the first; the others are looked up
  bool streaming;

  RANKINE_INLINE Spread(void* const* dsts, int n_dsts, bool stream)
      : first(static_cast<char*>(dsts[0])),
        all(dsts),
        count(n_dsts),
        second(n_dsts > 1 ? static_cast<char*>(dsts[1]) - first : 0),
        streaming(stream) {}

  template <class Put>
  RANKINE_INLINE void each(char* to, Put one) const {
    one(to);
    if (count == 1) return;
    one(to + second);
    for (int d = 2; d < count; ++d) one(static_cast<char*>(all[d]) + (to - first));
  }
  template <class Register>
  RANKINE_INLINE void operator()(char* to, Register value) const {
    each(to, [&](char* at) {
      if (streaming) {
        Target::stream(at, value);
      } else {
        store(at, value);
      }
    });
  }
  template <class Register>
  RANKINE_INLINE void edge(char* to, Register value) const {
    each(to, [&](char* at) { store(at, value); });
  }
  RANKINE_INLINE void done() const {
    if (streaming) Target::fence();
  }
};

// Ends that do not fill a register overlap their neighbour instead of being masked. Both ends are
// folded before anything is stored and stored after everything else, so a destination may be one of
// the sources.
template <class F, class Sources, class Finish, class Put>
RANKINE_INLINE void sweep(char* dst, Sources sources, std::size_t bytes, Finish finish, Put put) {
  using Register = typename F::Register;
  constexpr std::size_t kBytes = sizeof(Register);
  if (bytes < kBytes) return sweep_partial<F>(dst, sources, bytes, finish, put);
  const auto one = [&](std::size_t at) {
    return F::last(finish(sources.template fold<F>(at, load<Register>)));
  };
  const std::size_t end = bytes - kBytes;
  const Register tail = one(end);
  Register head = tail;
  std::size_t begin = 0;
  if (bytes >= kAlignFrom * kBytes) {
    begin = can_align<F>(dst) ? to_alignment<F>(dst) : 0;
    if (begin != 0) head = one(0);
  }
  std::size_t at = begin;
  for (; at + kRegisters * kBytes <= end; at += kRegisters * kBytes) {
    typename F::Total totals[kRegisters];
    sources.template fold_many<F, kRegisters>(totals, at);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) {
      put(dst + at + r * kBytes, F::last(finish(totals[r])));
    }
  }
  for (; at < end; at += kBytes) put(dst + at, one(at));
  if (begin != 0) put.edge(dst, head);
  put.edge(dst + end, tail);
  put.done();
}

}  // namespace
}  // namespace rankine
