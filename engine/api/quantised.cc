#include "engine/api/quantised.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

#include "engine/base/numbers.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

double limit_of(DataType as) { return as == DataType::i8 ? 127 : 448; }
// The widest step between packed values, over the block's largest value: near 448 the steps of
// f8e4m3 are 32 wide.
double step_of(DataType as) { return (as == DataType::i8 ? 1 : 32) / limit_of(as); }

}  // namespace

Status QuantisedSum::check(const Options& options, DataType type) {
  const DataType as = options.as;
  const std::size_t block = options.block;
  if (as != DataType::i8 && as != DataType::f8e4m3) {
    return invalid_argument("as is " + std::string(name_of(as)) + "; allowed are i8 and f8e4m3");
  }
  if (block < 1 || block > kMostBlock) {
    return invalid_argument("block is " + std::to_string(block) + "; allowed are 1 to " +
                            std::to_string(kMostBlock));
  }
  if (type == DataType::f32 || type == DataType::f16 || type == DataType::bf16) return {};
  return invalid_argument("type is " + std::string(name_of(type)) +
                          "; allowed are f32, f16 and bf16");
}

// A share of the vector: the scales of its blocks, then their bytes. Shares begin at floats.
struct QuantisedSum::Shares {
  std::size_t blocks, scale_bytes, bytes;
};

QuantisedSum::Shares QuantisedSum::shares_of(std::size_t count) const {
  const std::size_t ranks = static_cast<std::size_t>(member_.ranks()), block = options_.block;
  const std::size_t blocks = (count + ranks * block - 1) / (ranks * block);
  const std::size_t scale_bytes = blocks * sizeof(float);
  return {blocks, scale_bytes, scale_bytes + (blocks * block + 3) / 4 * 4};
}

Call QuantisedSum::first_call(std::size_t count) {
  return {.collective = Collective::all_to_all,
          .in = sent_.data(),
          .out = received_.data(),
          .count = shares_of(count).bytes,
          .type = DataType::u8};
}

Status QuantisedSum::all_reduce(const void* in, std::size_t in_count, void* out, std::size_t count,
                                DataType type) try {
  if (Status status = check(options_, type); !status.ok()) return status;
  if (in_count != count) {
    return invalid_argument("in has " + std::to_string(in_count) + " elements, out has " +
                            std::to_string(count) + "; allowed are equal lengths");
  }
  if (count > 0 && (in == nullptr || out == nullptr)) {
    return invalid_argument(std::string(in == nullptr ? "in" : "out") + " is null; " +
                            std::to_string(count) + " elements are needed");
  }
  const auto ranks = static_cast<std::size_t>(member_.ranks());
  const Shares shares = shares_of(count);
  const std::size_t block = options_.block, blocks = shares.blocks, share_bytes = shares.bytes,
                    width = size_of(type);
  const Isa isa = best_isa();
  const Packing elements = find_packing(type, options_.as, isa),
                floats = find_packing(DataType::f32, options_.as, isa);
  sent_.resize(ranks * share_bytes);
  received_.resize(ranks * share_bytes);
  // The blocks of a share from block b on.
  const auto blocks_of = [&](std::vector<std::byte>& all, std::size_t r, std::size_t b = 0) {
    std::byte* const share = all.data() + r * share_bytes;
    return PackedBlocks{share + b * sizeof(float), share + shares.scale_bytes + b * block};
  };
  // Calls f(r, first, n) for the n elements of each share, from byte `first` of the vector on.
  const auto for_each_share = [&](const auto& f) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t first = std::min(count, r * blocks * block);
      f(r, first * width, std::min(count - first, blocks * block));
    }
  };
  for_each_share([&](std::size_t r, std::size_t first, std::size_t n) {
    elements.pack(blocks_of(sent_, r), static_cast<const std::byte*>(in) + first, n, block, blocks);
  });
  // Ranks with other options must not meet in shares that happen to have equal bytes.
  const CallOptions options{
      .tag = mixed(mixed(mixed(count, block), static_cast<std::uint64_t>(options_.as)), width)};
  Call call = first_call(count);
  call.options = options;
  if (Status status = member_.call(call); !status.ok()) return status;
  // Some blocks at a time, whose sums the first-level cache holds.
  const std::size_t some = std::max<std::size_t>(1, 2048 / block);
  sums_.resize(some * block);
  for (std::size_t b = 0; b < blocks; b += some) {
    const std::size_t now = std::min(some, blocks - b);
    floats.unpack(sums_.data(), blocks_of(received_, 0, b), share_bytes, member_.ranks(),
                  now * block, block);
    floats.pack(blocks_of(sent_, 0, b), sums_.data(), now * block, block, now);
  }
  call.collective = Collective::all_gather;
  if (Status status = member_.call(call); !status.ok()) return status;
  for_each_share([&](std::size_t r, std::size_t first, std::size_t n) {
    elements.unpack(static_cast<std::byte*>(out) + first, blocks_of(received_, r), 0, 1, n, block);
  });
  return {};
} catch (const std::exception&) {
  return member_.give_up(make_error(Code::out_of_memory, [&] {
    return "no memory to pack " + std::to_string(count) + " elements";
  }));
}

double QuantisedSum::largest_error(DataType as, DataType type, std::span<const double> peaks) {
  constexpr double kF32 = 0x1p-24;  // half a step of f32, over the value
  const double half = step_of(as) / 2;
  double all = 0;
  for (const double peak : peaks) all += peak;
  const auto ranks = static_cast<double>(peaks.size());
  const double sum = all * (1 + half), result = sum * (1 + half);  // the largest that they can be
  const double own = type == DataType::bf16 ? 0x1p-9 : type == DataType::f16 ? 0x1p-12 : 0;
  // A block's step is at least 2^-126, the least scale; f16 has steps of 2^-24 near zero.
  const double least =
      (ranks + 1) * 0x1p-126 * limit_of(as) * half + (type == DataType::f16 ? 0x1p-25 : 0);
  return half * (all + sum) + (ranks + 8) * kF32 * result + own * result + least;
}

}  // namespace rankine
