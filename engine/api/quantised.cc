#include "engine/api/quantised.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <string>

#include "engine/base/numbers.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

// A block that has no finite scale.
constexpr float kNoScale = std::numeric_limits<float>::quiet_NaN();

// The packed value of a block's largest value.
float limit_of(DataType as) { return as == DataType::i8 ? 127 : 448; }
// The widest step between packed values, over the block's largest value: near 448 the steps of
// f8e4m3 are 32 wide.
double step_of(DataType as) { return (as == DataType::i8 ? 1.0 : 32.0) / limit_of(as); }

// To the nearest whole number, ties to even; |x| is below 2^22.
std::int8_t nearest(float x) {
  constexpr float kShift = 0x1.8p23F;  // the sum's last bit is worth 1
  return static_cast<std::int8_t>(std::bit_cast<std::uint32_t>(x + kShift));
}

struct Packing {
  DataType as;
  std::size_t block;  // elements
  Conversions bytes;  // of f8e4m3
  std::vector<float>& scaled;

  // Packs the block's values and returns their scale.
  float pack(const std::vector<float>& values, std::byte* to) const {
    constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
    std::uint32_t top = 0;
    for (const float x : values) top = std::max(top, std::bit_cast<std::uint32_t>(x) & kMagnitude);
    if (top >= kInfinity) {
      std::memset(to, 0, block);
      return kNoScale;
    }
    const float scale =
        std::max(std::bit_cast<float>(top) / limit_of(as), std::numeric_limits<float>::min());
    for (std::size_t i = 0; i < block; ++i) scaled[i] = values[i] / scale;
    if (as == DataType::i8) {
      for (std::size_t i = 0; i < block; ++i) to[i] = static_cast<std::byte>(nearest(scaled[i]));
    } else {
      bytes.narrow(to, scaled.data(), block);
    }
    return scale;
  }

  // Adds a packed block to `sums`.
  void add(float scale, const std::byte* from, std::vector<float>& sums) const {
    if (as == DataType::i8) {
      for (std::size_t i = 0; i < block; ++i) scaled[i] = static_cast<std::int8_t>(from[i]);
    } else {
      bytes.widen(scaled.data(), from, block);
    }
    for (std::size_t i = 0; i < block; ++i) sums[i] += scale * scaled[i];
  }
};

// A share of the vector: the scales of its blocks, then their bytes.
struct Share {
  std::byte* begin;
  std::size_t blocks, block;

  std::byte* bytes(std::size_t b) const { return begin + blocks * sizeof(float) + b * block; }
  void set_scale(std::size_t b, float scale) const {
    std::memcpy(begin + b * sizeof scale, &scale, sizeof scale);
  }
  float scale(std::size_t b) const {
    float scale = 0;
    std::memcpy(&scale, begin + b * sizeof scale, sizeof scale);
    return scale;
  }
};

bool is_packable(DataType type) {
  return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16;
}

}  // namespace

Status QuantisedSum::all_reduce(const void* in, std::size_t in_count, void* out, std::size_t count,
                                DataType type) try {
  const auto [as, block] = options_;
  const auto refuse = [](const std::string& text) { return invalid_argument(text); };
  if (as != DataType::i8 && as != DataType::f8e4m3) {
    return refuse("as is " + std::string(name_of(as)) + "; allowed are i8 and f8e4m3");
  }
  if (block < 1 || block > kMostBlock) {
    return refuse("block is " + std::to_string(block) + "; allowed are 1 to " +
                  std::to_string(kMostBlock));
  }
  if (!is_packable(type)) {
    return refuse("type is " + std::string(name_of(type)) + "; allowed are f32, f16 and bf16");
  }
  if (in_count != count) {
    return refuse("in has " + std::to_string(in_count) + " elements, out has " +
                  std::to_string(count) + "; allowed are equal lengths");
  }
  if (count > 0 && (in == nullptr || out == nullptr)) {
    return refuse(std::string(in == nullptr ? "in" : "out") + " is null; " + std::to_string(count) +
                  " elements are needed");
  }
  const auto ranks = static_cast<std::size_t>(member_.ranks());
  const std::size_t width = size_of(type), blocks = (count + ranks * block - 1) / (ranks * block),
                    share_bytes = blocks * (sizeof(float) + block);
  const Conversions elements = find_conversions(type, best_isa());
  const Packing packing{as, block, find_conversions(as, best_isa()), scaled_};
  sent_.resize(ranks * share_bytes);
  received_.resize(ranks * share_bytes);
  scaled_.resize(block);
  const auto share = [&](std::vector<std::byte>& all, std::size_t r) {
    return Share{all.data() + r * share_bytes, blocks, block};
  };
  // Calls f(share, b, first, n) for each block of all shares: n elements from `first` on.
  const auto for_each_block = [&](std::vector<std::byte>& all, const auto& f) {
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t b = 0; b < blocks; ++b) {
        const std::size_t first = std::min(count, (r * blocks + b) * block);
        values_.assign(block, 0);
        f(share(all, r), b, first * width, std::min(block, count - first));
      }
    }
  };
  for_each_block(sent_, [&](const Share& to, std::size_t b, std::size_t at, std::size_t n) {
    const std::byte* from = static_cast<const std::byte*>(in) + at;
    if (type != DataType::f32) {
      elements.widen(values_.data(), from, n);
    } else if (n > 0) {
      std::memcpy(values_.data(), from, n * width);
    }
    to.set_scale(b, packing.pack(values_, to.bytes(b)));
  });
  // Ranks with other options must not meet in shares that happen to have equal bytes.
  const CallOptions options{
      .tag = mixed(mixed(mixed(count, block), static_cast<std::uint64_t>(as)), width)};
  Call call{.collective = Collective::all_to_all,
            .in = sent_.data(),
            .out = received_.data(),
            .count = share_bytes,
            .type = DataType::u8,
            .options = options};
  if (Status status = member_.call(call); !status.ok()) return status;
  const Share sums = share(sent_, 0);
  for (std::size_t b = 0; b < blocks; ++b) {
    values_.assign(block, 0);
    for (std::size_t r = 0; r < ranks; ++r) {
      const Share from = share(received_, r);
      packing.add(from.scale(b), from.bytes(b), values_);
    }
    sums.set_scale(b, packing.pack(values_, sums.bytes(b)));
  }
  call.collective = Collective::all_gather;
  if (Status status = member_.call(call); !status.ok()) return status;
  for_each_block(received_, [&](const Share& from, std::size_t b, std::size_t at, std::size_t n) {
    std::byte* to = static_cast<std::byte*>(out) + at;
    packing.add(from.scale(b), from.bytes(b), values_);
    if (type != DataType::f32) {
      elements.narrow(to, values_.data(), n);
    } else if (n > 0) {
      std::memcpy(to, values_.data(), n * width);
    }
  });
  return {};
} catch (const std::exception&) {
  return member_.give_up(make_error(Code::out_of_memory, [&] {
    return "no memory to pack " + std::to_string(count) + " elements";
  }));
}

double QuantisedSum::largest_error(DataType type, std::span<const double> peaks) const {
  constexpr double kF32 = 0x1p-24;  // half a step of f32, over the value
  const double half = step_of(options_.as) / 2;
  double all = 0;
  for (const double peak : peaks) all += peak;
  const auto ranks = static_cast<double>(peaks.size());
  const double sum = all * (1 + half), result = sum * (1 + half);  // the largest that they can be
  const double own = type == DataType::bf16 ? 0x1p-9 : type == DataType::f16 ? 0x1p-12 : 0;
  // A block's step is at least 2^-126, the least scale; f16 has steps of 2^-24 near zero.
  const double least =
      (ranks + 1) * 0x1p-126 * limit_of(options_.as) * half + (type == DataType::f16 ? 0x1p-25 : 0);
  return half * (all + sum) + (ranks + 6) * kF32 * result + own * result + least;
}

}  // namespace rankine
