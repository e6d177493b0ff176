#include "engine/faults/collective_case.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "engine/api/check.h"
#include "engine/base/numbers.h"
#include "engine/run/kernels/integer_reductions.h"

namespace rankine {
namespace {

constexpr std::size_t kGuard = 64;

// Input of rank r for element i of natural block b: a whole number, so small that sums and products
// over 64 ranks are exact in a float of the case's type, in any order.
std::uint64_t value(const CollectiveCase& test, Rank r, Block b, std::size_t i) {
  const std::uint64_t bits =
      splitmix(test.seed * kSplitMixStep + static_cast<std::uint64_t>(r) * 0x100000001u +
               static_cast<std::uint64_t>(b) * 0x10001u + i * 0x1000003u);
  if (!reduces(test.collective)) return bits & 0x7f;
  const bool is_sum = test.op == ReduceOp::sum || test.op == ReduceOp::avg;
  switch (test.type) {
    case DataType::bf16:
      if (is_sum) return bits & 3;
      break;
    case DataType::f16:
      if (is_sum) return bits & 15;
      break;
    case DataType::f32:
    case DataType::f64:
    case DataType::c64:
    case DataType::c128:
      if (is_sum) return bits & 0xffff;
      break;
    case DataType::f8e4m3:
    case DataType::f8e5m2:  // whole numbers up to 8 are exact, so few ranks are not 0 (or 1)
      if (is_sum) return bits % 64 == 0 ? 1 : 0;
      if (test.op == ReduceOp::prod) return bits % 8 == 0 ? 2 : 1;
      return bits & 7;
    case DataType::b8:
      return bits & 1;
    default:
      return bits;
  }
  if (test.op == ReduceOp::prod) return bits % 8 == 0 ? 2 : 1;
  return bits & 0x7f;
}

template <class T>
T element(std::uint64_t bits) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else if constexpr (SmallFloat<T>) {
    return T(static_cast<float>(bits));
  } else if constexpr (std::same_as<T, Bool>) {
    return Bool((bits & 1) != 0);
  } else if constexpr (Complex<T>) {
    return T(static_cast<typename T::value_type>(bits));
  } else {
    return static_cast<T>(bits);
  }
}

// Floats, in addition to the integers of integer_reductions.h; small types are computed in float.
using rankine::average;
using rankine::combined;

// Complex numbers with an imaginary part of 0.
template <Complex T>
T combined(ReduceOp op, T a, T b) {
  return op == ReduceOp::prod ? T(a.real() * b.real()) : a + b;
}
template <Complex T>
T average(T total, int ranks) {
  return total / static_cast<typename T::value_type>(ranks);
}
Bool average(Bool, int) { return Bool(false); }  // never called: see supports()

template <class T>
requires(std::floating_point<T> || SmallFloat<T>) T combined(ReduceOp op, T a, T b) {
  const auto x =
      static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(a));
  const auto y =
      static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(b));
  double result = x + y;
  if (op == ReduceOp::prod) result = x * y;
  if (op == ReduceOp::min) result = std::min(x, y);
  if (op == ReduceOp::max) result = std::max(x, y);
  if constexpr (SmallFloat<T>) {
    return T(static_cast<float>(result));
  } else {
    return static_cast<T>(result);
  }
}

template <class T>
requires(std::floating_point<T> || SmallFloat<T>) T average(T total, int ranks) {
  if constexpr (sizeof(T) == 8) {
    return total / ranks;
  } else {
    return T(static_cast<float>(total) / static_cast<float>(ranks));
  }
}

// The result of element i of natural block b, at a rank that needs it.
template <class T>
T result(const CollectiveCase& test, const CollectiveSpec& goal, Rank at, Block b, std::size_t i) {
  const Run heard = goal.contributors(at, b);
  T total = element<T>(value(test, heard.first, b, i));
  for (Rank r = heard.first + 1; r < heard.first + heard.count; ++r) {
    total = combined(test.op, total, element<T>(value(test, r, b, i)));
  }
  return heard.count > 1 && test.op == ReduceOp::avg ? average(total, test.ranks) : total;
}

CollectiveSpec goal_of_case(const CollectiveCase& test) {
  return {test.collective, test.ranks, natural_blocks(test.collective, test.ranks), test.root,
          test.peer};
}

}  // namespace

std::vector<std::byte> common_result(const CollectiveCase& test) {
  if (test.collective != Collective::broadcast && test.collective != Collective::all_reduce &&
      test.collective != Collective::all_gather) {
    return {};
  }
  const CollectiveSpec goal = goal_of_case(test);
  std::vector<std::byte> bytes(static_cast<std::size_t>(goal.blocks) * test.count *
                               size_of(test.type));
  with_element(test.type, [&]<class T>() {
    std::byte* at = bytes.data();
    for (Block b = 0; b < goal.blocks; ++b) {
      for (std::size_t i = 0; i < test.count; ++i, at += sizeof(T)) {
        const T x = result<T>(test, goal, 0, b, i);
        std::memcpy(at, &x, sizeof(T));
      }
    }
  });
  return bytes;
}

void CaseBuffers::fill(const CollectiveCase& test, Rank rank, std::span<const std::byte> common) {
  const CollectiveSpec goal = goal_of_case(test);
  const std::size_t block = test.count * size_of(test.type);
  const bool displaced =
      test.displaced && !test.in_place && test.collective == Collective::all_to_all;
  const std::size_t stride = displaced ? block + 5 : block;
  const auto blocks = static_cast<std::size_t>(test.ranks);  // per rank in an all-to-all
  const auto place = [&](std::size_t k) { return (displaced ? blocks - 1 - k : k) * stride; };
  in_places_.clear();
  for (std::size_t k = 0; displaced && k < blocks; ++k) in_places_.push_back(place(k));
  out_places_ = in_places_;
  displacements_ = {in_places_, out_places_};
  std::size_t in = 0, out = 0, own_in = 0, own_out = 0;
  bool has_both = false;
  for (Block b = 0; b < goal.blocks; ++b) {
    if (goal.initially_holds(rank, b) && goal.must_hold(rank, b) && !has_both) {
      has_both = true;
      own_in = in;
      own_out = out;
    }
    if (goal.initially_holds(rank, b)) in += stride;
    if (goal.must_hold(rank, b)) out += stride;
  }
  if (test.collective == Collective::all_to_all) own_in = own_out = 0;
  // The vector is aligned to about 16 bytes only; the skew just has to vary.
  const std::size_t begin = kGuard + test.skew;
  if (test.in_place && (has_both || test.collective == Collective::all_to_all)) {
    in_ = begin + (own_out > own_in ? own_out - own_in : 0);
    out_ = in_ + own_in - own_out;
  } else if (test.in_place && in == 0 && out == 0) {
    in_ = out_ = begin;
  } else {
    in_ = begin;
    out_ = begin + in + kGuard;
  }
  out_bytes_ = out;
  wanted_.assign(std::max(in_ + in, out_ + out) + kGuard, std::byte{0x5a});
  with_element(test.type, [&]<class T>() {
    std::size_t k = 0;
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.initially_holds(rank, b)) continue;
      std::size_t at = in_ + place(k++);
      for (std::size_t i = 0; i < test.count; ++i, at += sizeof(T)) {
        const T x = element<T>(value(test, rank, b, i));
        std::memcpy(wanted_.data() + at, &x, sizeof(T));
      }
    }
    bytes_ = before_ = wanted_;
    if (!common.empty()) {
      std::copy(common.begin(), common.end(), wanted_.begin() + static_cast<std::ptrdiff_t>(out_));
      return;
    }
    k = 0;
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.must_hold(rank, b)) continue;
      std::size_t at = out_ + place(k++);
      for (std::size_t i = 0; i < test.count; ++i, at += sizeof(T)) {
        const T x = result<T>(test, goal, rank, b, i);
        std::memcpy(wanted_.data() + at, &x, sizeof(T));
      }
    }
  });
}

std::string CaseBuffers::check() const { return difference_to(wanted_, false); }
std::string CaseBuffers::check_untouched() const { return difference_to(before_, false); }
std::string CaseBuffers::check_around() const { return difference_to(before_, true); }

std::string CaseBuffers::difference_to(const std::vector<std::byte>& wanted,
                                       bool but_output) const {
  // Most buffers are equal, and a loop over single bytes is slow under a sanitizer.
  if (!but_output && bytes_.size() == wanted.size() &&
      std::memcmp(bytes_.data(), wanted.data(), wanted.size()) == 0) {
    return {};
  }
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (bytes_[i] == wanted[i] || (but_output && i >= out_ && i < out_ + out_bytes_)) continue;
    return "byte " + std::to_string(i) + " of " + std::to_string(bytes_.size()) + " (in at " +
           std::to_string(in_) + ", out at " + std::to_string(out_) + ") is " +
           std::to_string(static_cast<int>(bytes_[i])) + ", should be " +
           std::to_string(static_cast<int>(wanted[i]));
  }
  return {};
}

CollectiveCase numbered_case(const Algorithm& algorithm, int ranks, std::size_t count,
                             std::size_t number, bool in_place, const CallOptions& options) {
  struct Kind {
    DataType type;
    ReduceOp op;
  };
  constexpr Kind kKinds[] = {
      {DataType::f32, ReduceOp::sum},  {DataType::u32, ReduceOp::sum},
      {DataType::bf16, ReduceOp::avg}, {DataType::u8, ReduceOp::bxor},
      {DataType::f64, ReduceOp::avg},  {DataType::i64, ReduceOp::prod},
      {DataType::f16, ReduceOp::max},  {DataType::i32, ReduceOp::min},
      {DataType::i8, ReduceOp::sum},   {DataType::c64, ReduceOp::sum},
  };
  const Collective collective = algorithm.collective;
  const auto n = static_cast<std::size_t>(ranks);
  Kind kind = kKinds[number * 7 % std::size(kKinds)];
  if (!takes(collective, kind.type, kind.op)) kind.op = ReduceOp::sum;
  return {.collective = collective,
          .ranks = ranks,
          .count = count,
          .type = kind.type,
          .op = kind.op,
          .root = has_root(collective) ? static_cast<Rank>(number % n) : 0,
          .peer = static_cast<Rank>(number / 2 % n),
          .in_place = in_place,
          .skew = number % 3 == 0 ? 0 : number % 61,
          .seed = number,
          .options = options};
}

std::string to_string(const CollectiveCase& test) {
  std::string text(name_of(test.collective));
  text += " " + std::string(test.options.algorithm.empty() ? "chosen" : test.options.algorithm);
  text += ", " + std::to_string(test.ranks) + " ranks, count " + std::to_string(test.count) + " " +
          std::string(name_of(test.type)) + " " + std::string(name_of(test.op)) + ", root " +
          std::to_string(test.root) + ", peer " + std::to_string(test.peer);
  if (test.in_place) text += ", in place";
  if (test.displaced) text += ", displaced";
  if (test.options.transport) text += ", " + std::string(name_of(*test.options.transport));
  const Params params = params_of(test.options, test.ranks);
  for (const Parameter& row : parameters()) {
    if (row.name == "ranks" || row.open(params)) continue;
    text += ", " + std::string(row.name) + " " + row.text(params);
  }
  return text;
}

Call call_of(const CollectiveCase& test, CaseBuffers& buffers) {
  return {.collective = test.collective,
          .in = buffers.in(),
          .out = buffers.out(),
          .count = test.count,
          .type = test.type,
          .op = test.op,
          .root = test.root,
          .peer = test.peer,
          .displacements = buffers.displacements(),
          .options = test.options};
}

std::string run_case(Member& me, const CollectiveCase& test, CaseBuffers& buffers,
                     std::span<std::byte> room, std::span<const std::byte> common) {
  buffers.fill(test, me.rank(), common);
  Call call = call_of(test, buffers);
  const std::span<std::byte> bytes = buffers.bytes();
  if (!room.empty()) {
    if (room.size() < bytes.size()) return "the room has " + std::to_string(room.size()) + " bytes";
    std::copy(bytes.begin(), bytes.end(), room.begin());
    call.in = room.data() + (static_cast<const std::byte*>(call.in) - bytes.data());
    call.out = room.data() + (static_cast<std::byte*>(call.out) - bytes.data());
  }
  const Status status = me.call(call);
  if (!room.empty()) std::copy_n(room.begin(), bytes.size(), bytes.begin());
  const std::string fault = status.ok() ? buffers.check() : status.text();
  if (fault.empty()) return {};
  return to_string(test) + ", at rank " + std::to_string(me.rank()) + ": " + fault;
}

}  // namespace rankine
