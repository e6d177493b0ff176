// QuantisedSum adds floats up across ranks and sends 8 bits per element: a block of elements
// travels as bytes with one scale. It trades accuracy for bandwidth, so no other call uses it.
//
//   QuantisedSum sum(me, {.as = DataType::i8, .block = 128});
//   sum.all_reduce(std::span<const float>(in), std::span(out)).throw_if_error();
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/api/member.h"
#include "engine/base/status.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// QuantisedSum makes an all-reduce in two shots. An all-to-all brings each rank all contributions
// to its share of the vector, packed; the rank adds them up in f32, in the order of ranks, and
// packs the sums; an all-gather brings these to all ranks. All ranks unpack the same bytes, so they
// get identical bits. A block's scale is its largest absolute value over 127 (i8) or 448 (f8e4m3).
// Li et al., "Flash Communication", arXiv:2412.04964, 2024.
//
// Each rank has one QuantisedSum with equal options, used by that rank's thread; different options
// are a mismatch. It keeps its buffers, about two bytes per element of the longest vector so far. A
// block with an infinity or a NaN, or with a sum beyond f32, is NaN on all ranks.
class QuantisedSum {
 public:
  struct Options {
    DataType as = DataType::i8;  // or f8e4m3
    std::size_t block = 128;     // elements per scale; 1 to kMostBlock
    bool operator==(const Options&) const = default;
  };
  static constexpr std::size_t kMostBlock = 65'536;

  explicit QuantisedSum(Member& member) : QuantisedSum(member, Options{}) {}
  // The member must outlive this.
  QuantisedSum(Member& member, Options options) : member_(member), options_(options) {}

  const Options& options() const { return options_; }
  // The refusal of options, or of vectors of a type, as an invalid_argument.
  static Status check(const Options& options, DataType type);

  // out = the sum of all ranks' `in`; both have equal lengths on all ranks and may overlap. T: f32,
  // Half or BFloat16. Errors: invalid_argument for options out of range and vectors of different
  // lengths; out_of_memory, which ends the communicator; and the errors of Member::call().
  template <class T>
  Status all_reduce(std::span<const T> in, std::span<T> out) {
    return all_reduce(in.data(), in.size(), out.data(), out.size(), data_type_of<T>);
  }
  // The untyped form.
  Status all_reduce(const void* in, std::size_t in_count, void* out, std::size_t out_count,
                    DataType type);

  // The all-to-all of an all_reduce() of `count` elements, for Member::plan_of(); its buffers are
  // valid until the next all_reduce().
  Call first_call(std::size_t count);

  // An upper bound of the error of an element of a result of this type. `peaks`: per rank, the
  // largest absolute value of the rank's block with that element, or more. An element is packed
  // once per rank and once as a sum; each time, half a step of its block is lost at most. The bound
  // adds the roundings of f32 and of the result's type.
  static double largest_error(DataType as, DataType type, std::span<const double> peaks);

 private:
  struct Shares;
  Shares shares_of(std::size_t count) const;

  Member& member_;
  const Options options_;
  std::vector<std::byte> sent_, received_;
  std::vector<float> sums_;  // of some blocks
};

}  // namespace rankine
