#include "engine/tools/test_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "engine/api/check.h"
#include "engine/base/numbers.h"
#include "engine/run/kernels/integer_reductions.h"

namespace rankine::tools {
namespace {

std::uint64_t mixed(std::uint64_t x) { return splitmix(x + kSplitMixStep); }

// Whole numbers up to this, and no further, are exact in T.
template <class T>
constexpr std::uint64_t kExact = 1;
template <>
constexpr std::uint64_t kExact<float> = std::uint64_t{1} << 24;
template <>
constexpr std::uint64_t kExact<double> = std::uint64_t{1} << 40;  // far below 2^53
template <>
constexpr std::uint64_t kExact<Half> = std::uint64_t{1} << 11;
template <>
constexpr std::uint64_t kExact<BFloat16> = std::uint64_t{1} << 8;
template <>
constexpr std::uint64_t kExact<Float8E4M3> = std::uint64_t{1} << 4;
template <>
constexpr std::uint64_t kExact<Float8E5M2> = std::uint64_t{1} << 3;

template <class T>
T element(double value) {
  if constexpr (SmallFloat<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// What rank r contributes to column c, as a number that T holds exactly.
template <class T>
double float_value(std::uint64_t random, Rank r, int c, int ranks, ReduceOp op) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t turn = static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(c);
  switch (op) {
    case ReduceOp::prod: {
      // So many twos or halves in one column at most: f16 reaches from 2^-14 to 2^15, f8e4m3 from
      // 2^-6 to 2^8.
      constexpr std::uint64_t kFactors = sizeof(T) == 1 ? 6 : 14;
      const bool is_unit = turn % ((n + kFactors - 1) / kFactors) != 0;
      const double size = is_unit ? 1 : (random & 2) != 0 ? 2 : 0.5;
      return (random & 1) != 0 ? -size : size;
    }
    case ReduceOp::min:
    case ReduceOp::max:
      return static_cast<double>(random % (2 * kExact<T> + 1)) - static_cast<double>(kExact<T>);
    default: {
      // All together stay within kExact: each gets its share, or only some ranks get a one.
      const std::uint64_t share = kExact<T> / n;
      if (share > 0) return static_cast<double>(1 + random % share);
      return turn % ((n + kExact<T> - 1) / kExact<T>) == 0 ? 1 : 0;
    }
  }
}

template <class T>
T integer_value(std::uint64_t random, int ranks, ReduceOp op) {
  constexpr auto kBits = static_cast<std::uint64_t>(sizeof(T) * 8);
  switch (op) {
    case ReduceOp::prod:
      return static_cast<T>(random | 1);  // two evens per bit, and the product is 0
    case ReduceOp::band:
    case ReduceOp::bor: {
      // About one bit in all ranks together for each bit of the type: neither 0 nor all ones.
      const std::uint64_t rare =
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ranks) / kBits);
      const std::uint64_t bits =
          (random >> 8) % rare == 0 ? std::uint64_t{1} << (random % kBits) : 0;
      return static_cast<T>(op == ReduceOp::bor ? bits : ~bits);
    }
    default:
      return static_cast<T>(random);
  }
}

double folded(double a, double b, ReduceOp op) {
  switch (op) {
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    default:
      return a + b;
  }
}

// Column c over all ranks: its contributions.
template <class T>
void make_column(int c, int ranks, ReduceOp op, std::uint64_t seed, T* column) {
  const auto random = [&](Rank r) {
    return mixed(mixed(seed * 0x10001 + static_cast<std::uint64_t>(r)) +
                 static_cast<std::uint64_t>(c));
  };
  if constexpr (Complex<T>) {
    // The parts apart; of a product, whose parts meet, the imaginary ones are 0, which stays one of
    // that sign if no factor is negative.
    using Part = typename T::value_type;
    std::vector<Part> parts(static_cast<std::size_t>(ranks));
    make_column<Part>(c, ranks, op, seed, parts.data());
    for (Rank r = 0; r < ranks; ++r) {
      const Part part = parts[static_cast<std::size_t>(r)];
      column[r] = T(op == ReduceOp::prod ? std::abs(part) : part);
    }
    if (op == ReduceOp::prod) return;
    make_column<Part>(c, ranks, op, seed + 1, parts.data());
    for (Rank r = 0; r < ranks; ++r) column[r].imag(parts[static_cast<std::size_t>(r)]);
  } else if constexpr (std::is_same_v<T, Bool>) {
    // Few differ from what the others cannot change.
    const bool rare = op != ReduceOp::prod && op != ReduceOp::min && op != ReduceOp::band;
    for (Rank r = 0; r < ranks; ++r) {
      column[r] = Bool((random(r) % static_cast<std::uint64_t>(2 * ranks) == 0) == rare);
    }
  } else if constexpr (std::is_integral_v<T>) {
    for (Rank r = 0; r < ranks; ++r) column[r] = integer_value<T>(random(r), ranks, op);
  } else {
    for (Rank r = 0; r < ranks; ++r) {
      column[r] = element<T>(float_value<T>(random(r), r, c, ranks, op));
    }
  }
}

template <class T>
double number(T element) {
  if constexpr (SmallFloat<T>) {
    return static_cast<double>(static_cast<float>(element));
  } else {
    return static_cast<double>(element);
  }
}

// What the first `ranks` contributions of a column reduce to.
template <class T>
T total_of(const T* column, int ranks, ReduceOp op) {
  if constexpr (Complex<T>) {
    using Part = typename T::value_type;
    std::vector<Part> real, imaginary;
    for (Rank r = 0; r < ranks; ++r) {
      real.push_back(column[r].real());
      imaginary.push_back(column[r].imag());
    }
    const Part total = total_of(real.data(), ranks, op);
    return op == ReduceOp::prod ? T(total) : T(total, total_of(imaginary.data(), ranks, op));
  } else if constexpr (std::is_same_v<T, Bool> || std::is_integral_v<T>) {
    T total = column[0];
    for (Rank r = 1; r < ranks; ++r) total = combined(op, total, column[r]);
    if constexpr (std::is_integral_v<T>) {
      if (op == ReduceOp::avg) return average(total, ranks);
    }
    return total;
  } else {
    double total = number(column[0]);
    for (Rank r = 1; r < ranks; ++r) total = folded(total, number(column[r]), op);
    if (op != ReduceOp::avg) return element<T>(total);
    // The engine divides in the type in which it accumulates: float for the small types.
    if constexpr (std::is_same_v<T, double>) {
      return total / ranks;
    } else {
      return element<T>(static_cast<double>(static_cast<float>(total) / static_cast<float>(ranks)));
    }
  }
}

// Calls visit(part of the block in bytes, offset in the period in bytes) along the block.
template <class Visit>
void along_block(int b, std::size_t block_bytes, std::size_t element_bytes,
                 std::size_t period_bytes, const Visit& visit) {
  // Blocks begin at different places of the period.
  std::size_t phase = static_cast<std::size_t>(b) * 37 % TestData::kPeriod * element_bytes;
  for (std::size_t at = 0; at < block_bytes;) {
    const std::size_t bytes = std::min(period_bytes - phase, block_bytes - at);
    visit(at, bytes, phase);
    at += bytes;
    phase = 0;
  }
}

}  // namespace

Goal natural_goal(const Call& call, int ranks) {
  return {call.collective, ranks, natural_blocks(call.collective, ranks), call.root, call.peer};
}

Layout natural_layout(const Call& call, int ranks) {
  return make_layout(natural_goal(call, ranks), natural_counts(call, ranks), size_of(call.type),
                     Borders::plain);
}

TestData::TestData(Collective collective, int ranks, DataType type, ReduceOp op, std::uint64_t seed)
    : element_bytes_(size_of(type)), period_bytes_(element_bytes_ * kPeriod) {
  const auto n = static_cast<std::size_t>(ranks);
  contributions_.resize(n * period_bytes_);
  const bool reducing = rankine::reduces(collective);
  if (reducing) reduced_.resize(is_prefix(collective) ? n * period_bytes_ : period_bytes_);
  const Goal goal{.collective = collective, .ranks = ranks};
  const ReduceOp shaping = reducing ? op : ReduceOp::max;  // copies take the widest range
  with_element(type, [&]<class T>() {
    std::vector<T> column(n);
    for (int c = 0; c < kPeriod; ++c) {
      const std::size_t at = static_cast<std::size_t>(c) * sizeof(T);
      make_column<T>(c, ranks, shaping, seed, column.data());
      for (std::size_t r = 0; r < n; ++r) {
        std::memcpy(&contributions_[r * period_bytes_ + at], &column[r], sizeof(T));
      }
      // Of all ranks, or of those from 0 on that each hears.
      for (std::size_t r = 0; r < reduced_.size() / period_bytes_; ++r) {
        const int heard = goal.heard_by(static_cast<Rank>(r), 0).count;
        if (heard == 0) continue;
        const T total = total_of(column.data(), heard, op);
        std::memcpy(&reduced_[r * period_bytes_ + at], &total, sizeof(T));
      }
    }
  });
}

const std::byte* TestData::period_of(Rank source) const {
  return &contributions_[static_cast<std::size_t>(source) * period_bytes_];
}

void TestData::fill(const Goal& goal, const Layout& layout, Rank r, std::byte* input) const {
  const std::byte* period = period_of(r);
  for (int b = 0; b < goal.blocks; ++b) {
    if (!goal.starts(r, b)) continue;
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    along_block(b, home.bytes, element_bytes_, period_bytes_,
                [&](std::size_t at, std::size_t bytes, std::size_t phase) {
                  std::memcpy(input + home.input + at, period + phase, bytes);
                });
  }
}

std::int64_t TestData::count_wrong(const Goal& goal, const Layout& layout, Rank r,
                                   const std::byte* output) const {
  std::int64_t wrong = 0;
  for (int b = 0; b < goal.blocks; ++b) {
    if (!goal.needs(r, b)) continue;
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    const Rank source = goal.source_of(b);
    const std::size_t of = is_prefix(goal.collective) ? static_cast<std::size_t>(r) : 0;
    const std::byte* period =
        reduced_.empty() ? period_of(std::max(source, 0)) : &reduced_[of * period_bytes_];
    along_block(b, home.bytes, element_bytes_, period_bytes_,
                [&](std::size_t at, std::size_t bytes, std::size_t phase) {
                  const std::byte* got = output + home.output + at;
                  if (std::memcmp(got, period + phase, bytes) == 0) return;
                  for (std::size_t i = 0; i < bytes; i += element_bytes_) {
                    wrong += std::memcmp(got + i, period + phase + i, element_bytes_) != 0 ? 1 : 0;
                  }
                });
  }
  return wrong;
}

}  // namespace rankine::tools
