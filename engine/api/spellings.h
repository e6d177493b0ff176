// What typed calls may be given beside spans of dynamic extent: anything contiguous that knows its
// size (vectors, arrays, spans of either kind), and 16-bit words with a tag that says which floats
// they are. Outputs must be writable, and must be there when the call has returned.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "engine/api/call.h"
#include "engine/api/reduction.h"
#include "engine/run/kernels/types.h"

namespace rankine {

template <class R>
concept Contiguous = std::ranges::contiguous_range<R> && std::ranges::sized_range<R>;

// Its element type, without const.
template <Contiguous R>
using ElementOfRange = std::ranges::range_value_t<R>;

template <class R>
concept Writable = Contiguous<R> && std::ranges::borrowed_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// Spans as the calls themselves take them, which need no help.
template <class R>
inline constexpr bool kIsSpan = false;
template <class T>
inline constexpr bool kIsSpan<std::span<T>> = true;
template <class R>
concept ExactInput = kIsSpan<std::remove_cvref_t<R>> &&
    std::is_const_v<typename std::remove_cvref_t<R>::element_type>;
template <class R>
concept ExactOutput = kIsSpan<std::remove_cvref_t<R>> && !ExactInput<R>;

template <class In, class Out>
concept InputAndOutput = Contiguous<In> && Writable<Out> &&
    std::same_as<ElementOfRange<In>, ElementOfRange<Out>> && !(ExactInput<In> && ExactOutput<Out>);
template <class R>
concept InPlace = Writable<R> && !ExactOutput<R>;

template <Contiguous R>
std::span<const ElementOfRange<R>> input_of(const R& range) {
  return {std::ranges::data(range), std::ranges::size(range)};
}
template <Writable R>
std::span<ElementOfRange<R>> output_of(R&& range) {
  return {std::ranges::data(range), std::ranges::size(range)};
}

// Words that hold bits of floats, as such floats: as_bf16(std::span(words)).
template <class Float, class Word>
auto as_floats(std::span<Word> words) {
  static_assert(sizeof(Word) == sizeof(Float) && std::is_integral_v<Word>);
  using To = std::conditional_t<std::is_const_v<Word>, const Float, Float>;
  return std::span<To>(reinterpret_cast<To*>(words.data()), words.size());
}
template <class Word>
auto as_f16(std::span<Word> words) {
  return as_floats<Half>(words);
}
template <class Word>
auto as_bf16(std::span<Word> words) {
  return as_floats<BFloat16>(words);
}
template <class Word>
auto as_f8e4m3(std::span<Word> words) {
  return as_floats<Float8E4M3>(words);
}
template <class Word>
auto as_f8e5m2(std::span<Word> words) {
  return as_floats<Float8E5M2>(words);
}

// The calls of typed_calls.h (`Caller`) under these spellings; each hands spans on.
template <class Caller>
class Spellings {
 public:
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_reduce(In&& in, Out&& out, const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
                  const CallOptions& options = {}) {
    return caller().all_reduce(input_of(in), output_of(out), op, options);
  }
  template <class Data>
  requires InPlace<Data>
  auto all_reduce(Data&& in_place, const Reduction<ElementOfRange<Data>>& op = ReduceOp::sum,
                  const CallOptions& options = {}) {
    return caller().all_reduce(output_of(in_place), op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_reduce(In&& in, Out&& out, const CallOptions& options) {
    return caller().all_reduce(input_of(in), output_of(out), options);
  }
  template <class Data>
  requires InPlace<Data>
  auto all_reduce(Data&& in_place, const CallOptions& options) {
    return caller().all_reduce(output_of(in_place), options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_gather(In&& in, Out&& out, const CallOptions& options = {}) {
    return caller().all_gather(input_of(in), output_of(out), options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto reduce_scatter(In&& in, Out&& out, const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
                      const CallOptions& options = {}) {
    return caller().reduce_scatter(input_of(in), output_of(out), op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto reduce_scatter(In&& in, Out&& out, const CallOptions& options) {
    return caller().reduce_scatter(input_of(in), output_of(out), options);
  }
  template <class Data>
  requires InPlace<Data>
  auto broadcast(Data&& data, Rank root, const CallOptions& options = {}) {
    return caller().broadcast(output_of(data), root, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto reduce(In&& in, Out&& out, Rank root,
              const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
              const CallOptions& options = {}) {
    return caller().reduce(input_of(in), output_of(out), root, op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto scan(In&& in, Out&& out, const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
            const CallOptions& options = {}) {
    return caller().scan(input_of(in), output_of(out), op, options);
  }
  template <class Data>
  requires InPlace<Data>
  auto scan(Data&& in_place, const Reduction<ElementOfRange<Data>>& op = ReduceOp::sum,
            const CallOptions& options = {}) {
    return caller().scan(output_of(in_place), op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto exscan(In&& in, Out&& out, const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
              const CallOptions& options = {}) {
    return caller().exscan(input_of(in), output_of(out), op, options);
  }
  template <class Data>
  requires InPlace<Data>
  auto exscan(Data&& in_place, const Reduction<ElementOfRange<Data>>& op = ReduceOp::sum,
              const CallOptions& options = {}) {
    return caller().exscan(output_of(in_place), op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_to_all(In&& in, Out&& out, const CallOptions& options = {}) {
    return caller().all_to_all(input_of(in), output_of(out), options);
  }
  template <class In, class Out>
  requires(Contiguous<In>&& Writable<Out> && !(ExactInput<In> && ExactOutput<Out>)) auto all_to_all(
      In&& in, Out&& out, std::span<const std::size_t> counts, const Displacements& displacements,
      const CallOptions& options = {}) {
    return caller().all_to_all(input_of(in), output_of(out), counts, displacements, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto gather(In&& in, Out&& out, Rank root, const CallOptions& options = {}) {
    return caller().gather(input_of(in), output_of(out), root, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto scatter(In&& in, Out&& out, Rank root, const CallOptions& options = {}) {
    return caller().scatter(input_of(in), output_of(out), root, options);
  }
  template <class Data>
  requires InPlace<Data>
  auto send_recv(Data&& data, Rank from, Rank to, const CallOptions& options = {}) {
    return caller().send_recv(output_of(data), from, to, options);
  }

  template <class In>
  requires(Contiguous<In> && !ExactInput<In>) auto send(const In& data, Rank to,
                                                        const CallOptions& options = {}) {
    return caller().send(input_of(data), to, options);
  }
  template <class Data>
  requires InPlace<Data>
  auto recv(Data&& data, Rank from, const CallOptions& options = {}) {
    return caller().recv(output_of(data), from, options);
  }

 private:
  Caller& caller() { return static_cast<Caller&>(*this); }
};

}  // namespace rankine
