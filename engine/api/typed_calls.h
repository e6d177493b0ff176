// TypedCalls has the collective calls and messages on elements of a type; Reduction is the
// operation of such a call: an operation of the engine, a sum with a factor per rank (PreMulSum),
// or an operation of the user.
//
//     me.all_reduce(x, ReduceOp::max);
//     me.all_reduce(x, PreMulSum{0.25});                       // NCCL's PreMulSum
//     const auto compose = [](std::span<const Matrix> a, std::span<Matrix> b) {
//       for (std::size_t i = 0; i < b.size(); ++i) b[i] = a[i] * b[i];
//     };
//     me.all_reduce(matrices, user_op<Matrix>(compose, Commutes::no));
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/api/call.h"
#include "engine/base/status.h"
#include "engine/run/kernels/types.h"
#include "engine/run/user_functions.h"

namespace rankine {

// PreMulSum multiplies every rank's input by that rank's factor and adds the products; ranks may
// give different factors. See Call::factor.
template <class F>
struct PreMulSum {
  F factor;
};
template <class F>
PreMulSum(F) -> PreMulSum<F>;

enum class Commutes : bool { no, yes };

// An operation on T. It keeps a reference to the function.
template <class T>
struct TypedUserOp {
  UserOp op;
};

// f(in, inout) sets inout[i] = in[i] op inout[i] for all i; see UserOp for the rules. The result
// keeps a reference to f, so f must outlive its calls.
template <class T, class F>
requires std::is_invocable_v<F&, std::span<const T>, std::span<T>> TypedUserOp<T> user_op(
    F& f, Commutes commutes = Commutes::yes) {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
  static_assert(sizeof(T) <= kMostElementBytes && alignof(T) <= 64);
  const auto apply = [](const void* in, void* inout, std::size_t count, void* context) {
    (*static_cast<F*>(context))(std::span(static_cast<const T*>(in), count),
                                std::span(static_cast<T*>(inout), count));
  };
  void* context = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  return {{apply, context, sizeof(T), commutes == Commutes::yes}};
}

template <class T>
class Reduction {
 public:
  // The type of the factors of T.
  using Factor = std::conditional_t<SmallFloat<T> || !TypedElement<T> || sizeof(T) == 2, float,
                                    std::remove_cv_t<T>>;

  Reduction(ReduceOp op) : op_(op) {}
  template <class F>
  requires std::is_convertible_v<F, Factor> Reduction(PreMulSum<F> sum)
      : op_(ReduceOp::sum), factor_(static_cast<Factor>(sum.factor)), multiplies_(true) {}
  Reduction(const TypedUserOp<T>& op) : op_(ReduceOp::user), user_op_(&op.op) {}

  // The fields of a call; they refer to this object.
  DataType type() const {
    if constexpr (TypedElement<T>) {
      return user_op_ != nullptr ? DataType::raw : data_type_of<T>;
    } else {
      return DataType::raw;
    }
  }
  ReduceOp op() const { return op_; }
  const UserOp* user_op() const { return user_op_; }
  const void* factor() const { return multiplies_ ? &factor_ : nullptr; }

 private:
  ReduceOp op_;
  Factor factor_{};
  bool multiplies_ = false;
  const UserOp* user_op_ = nullptr;
};

// The arguments that typed calls accept beside spans of dynamic extent: any contiguous range with a
// size (vectors, arrays, spans of either kind), and 16-bit words with a tag that names their float
// type. Outputs must be writable and must exist when the call has returned.

template <class R>
concept Contiguous = std::ranges::contiguous_range<R> && std::ranges::sized_range<R>;

// The element type of a range, without const.
template <Contiguous R>
using ElementOfRange = std::ranges::range_value_t<R>;

template <class R>
concept Writable = Contiguous<R> && std::ranges::borrowed_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// Spans in the form that the calls take; they need no conversion.
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

// Converts words that hold the bits of floats into floats: as_bf16(std::span(words)).
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

// Spellings accepts these arguments for the calls of TypedCalls (`Caller`), and passes spans on.
template <class Caller>
class Spellings {
 public:
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_reduce [[gnu::always_inline]] (In&& in, Out&& out,
                                          const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
                                          const CallOptions& options = {}) {
    return caller().all_reduce(input_of(in), output_of(out), op, options);
  }
  template <class Data>
  requires InPlace<Data>
  auto all_reduce [[gnu::always_inline]] (Data&& in_place,
                                          const Reduction<ElementOfRange<Data>>& op = ReduceOp::sum,
                                          const CallOptions& options = {}) {
    return caller().all_reduce(output_of(in_place), op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_reduce [[gnu::always_inline]] (In&& in, Out&& out, const CallOptions& options) {
    return caller().all_reduce(input_of(in), output_of(out), options);
  }
  template <class Data>
  requires InPlace<Data>
  auto all_reduce [[gnu::always_inline]] (Data&& in_place, const CallOptions& options) {
    return caller().all_reduce(output_of(in_place), options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto all_gather [[gnu::always_inline]] (In&& in, Out&& out, const CallOptions& options = {}) {
    return caller().all_gather(input_of(in), output_of(out), options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto reduce_scatter
      [[gnu::always_inline]] (In&& in, Out&& out,
                              const Reduction<ElementOfRange<In>>& op = ReduceOp::sum,
                              const CallOptions& options = {}) {
    return caller().reduce_scatter(input_of(in), output_of(out), op, options);
  }
  template <class In, class Out>
  requires InputAndOutput<In, Out>
  auto reduce_scatter [[gnu::always_inline]] (In&& in, Out&& out, const CallOptions& options) {
    return caller().reduce_scatter(input_of(in), output_of(out), options);
  }
  template <class Data>
  requires InPlace<Data>
  auto broadcast [[gnu::always_inline]] (Data&& data, Rank root, const CallOptions& options = {}) {
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

// TypedCalls declares the collective calls and messages on elements of a type once, for Member,
// which waits (Answer: Status), and for Async, which starts or prepares (Result<Request>).
//
// Besides spans the calls accept vectors, arrays and the other ranges of Spellings, and reduce by a
// Reduction. The sizes of the buffers must agree with each other and with the number of ranks;
// otherwise invalid_argument names the wrong one.

// The error for an argument with a wrong size.
Status size_mismatch(std::string_view what, std::size_t got, std::size_t allowed, int ranks);
// Checks that buffers with that many elements suffice for the rank in a call with counts.
Status check_sizes(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out);

// Checks that buffers with that many bytes contain all blocks of a call with displacements. Errors:
// a buffer that ends before the end of a block, and all errors of the call except null buffers.
Status check_reach(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out);

// A message to or from another rank.
struct Message {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;
  Rank peer = 0;
  bool sends = true;
};

// A Caller has rank(), ranks(), submit(const Call&) and submit(const Message&, const CallOptions&).
template <class Caller, class Answer>
class TypedCalls : public Spellings<TypedCalls<Caller, Answer>> {
 public:
  using Base = Spellings<TypedCalls<Caller, Answer>>;
  using Base::all_reduce, Base::all_gather, Base::reduce_scatter, Base::broadcast, Base::reduce,
      Base::all_to_all, Base::gather, Base::scatter, Base::send_recv, Base::send, Base::recv,
      Base::scan, Base::exscan;
  // A non-deduced type, so that callers may pass any argument that converts to a Reduction.
  template <class T>
  using By = std::type_identity_t<Reduction<T>>;

  // out[i] = in of all ranks, reduced. Sizes must agree.
  template <class T>
  Answer all_reduce
      [[gnu::always_inline]] (std::span<const T> in, std::span<T> out,
                              const By<T>& op = ReduceOp::sum, const CallOptions& options = {}) {
    if (in.size() != out.size()) return mismatch("out", out.size(), in.size());
    return caller().submit(reducing(Collective::all_reduce, in, out, in.size(), op, options));
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer all_reduce
      [[gnu::always_inline]] (std::span<T> in_place, const By<T>& op = ReduceOp::sum,
                              const CallOptions& options = {}) {
    return all_reduce(std::span<const T>(in_place), in_place, op, options);
  }
  // Sums, with options: me.all_reduce(x, {.epilogue = &norm}).
  template <class T>
  Answer all_reduce
      [[gnu::always_inline]] (std::span<const T> in, std::span<T> out, const CallOptions& options) {
    return all_reduce(in, out, ReduceOp::sum, options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer all_reduce
      [[gnu::always_inline]] (std::span<T> in_place, const CallOptions& options) {
    return all_reduce(in_place, ReduceOp::sum, options);
  }
  // out = the ranks' inputs one after the other: ranks() * in.size() elements.
  template <class T>
  Answer all_gather [[gnu::always_inline]] (std::span<const T> in, std::span<T> out,
                                            const CallOptions& options = {}) {
    const std::size_t all = in.size() * n();
    if (out.size() != all) return mismatch("out", out.size(), all);
    return caller().submit(
        moving<T>(Collective::all_gather, in.data(), out.data(), in.size(), options));
  }
  // out = this rank's block of the reduced inputs: in has ranks() * out.size() elements.
  template <class T>
  Answer reduce_scatter
      [[gnu::always_inline]] (std::span<const T> in, std::span<T> out,
                              const By<T>& op = ReduceOp::sum, const CallOptions& options = {}) {
    const std::size_t all = out.size() * n();
    if (in.size() != all) return mismatch("in", in.size(), all);
    return caller().submit(reducing(Collective::reduce_scatter, in, out, out.size(), op, options));
  }
  template <class T>
  Answer reduce_scatter(std::span<const T> in, std::span<T> out, const CallOptions& options) {
    return reduce_scatter(in, out, ReduceOp::sum, options);
  }
  // data = the root's data, on every rank.
  template <class T>
  requires(!std::is_const_v<T>) Answer broadcast
      [[gnu::always_inline]] (std::span<T> data, Rank root, const CallOptions& options = {}) {
    return caller().submit(
        moving<T>(Collective::broadcast, data.data(), data.data(), data.size(), options, root));
  }
  // out at the root = in of all ranks, reduced; elsewhere out is not used and may be empty.
  template <class T>
  Answer reduce(std::span<const T> in, std::span<T> out, Rank root, const By<T>& op = ReduceOp::sum,
                const CallOptions& options = {}) {
    if (caller().rank() == root && out.size() != in.size()) {
      return mismatch("out", out.size(), in.size());
    }
    Call call = reducing(Collective::reduce, in, out, in.size(), op, options);
    call.root = root;
    return caller().submit(call);
  }
  // out at rank r = in of ranks 0 to r, reduced in the order of the ranks. Sizes must agree. On
  // each rank, in and out may be one buffer or lie apart.
  template <class T>
  Answer scan(std::span<const T> in, std::span<T> out, const By<T>& op = ReduceOp::sum,
              const CallOptions& options = {}) {
    return prefix(Collective::scan, in, out, op, options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer scan(std::span<T> in_place, const By<T>& op = ReduceOp::sum,
                                            const CallOptions& options = {}) {
    return scan(std::span<const T>(in_place), in_place, op, options);
  }
  // out at rank r = in of ranks 0 to r - 1, reduced in the order of the ranks. Rank 0 receives no
  // data: its out stays as it is, as with MPI, and may be empty.
  template <class T>
  Answer exscan(std::span<const T> in, std::span<T> out, const By<T>& op = ReduceOp::sum,
                const CallOptions& options = {}) {
    return prefix(Collective::exscan, in, out, op, options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer
      exscan(std::span<T> in_place, const By<T>& op = ReduceOp::sum,
             const CallOptions& options = {}) {
    return exscan(std::span<const T>(in_place), in_place, op, options);
  }
  // Block d of in goes to rank d and is stored there as the block of the sender: in and out have
  // ranks() blocks of one size.
  template <class T>
  Answer all_to_all(std::span<const T> in, std::span<T> out, const CallOptions& options = {}) {
    if (in.size() % n() != 0) return mismatch("in", in.size(), in.size() / n() * n());
    if (out.size() != in.size()) return mismatch("out", out.size(), in.size());
    return caller().submit(
        moving<T>(Collective::all_to_all, in.data(), out.data(), in.size() / n(), options));
  }
  // With a count per pair, [from * ranks() + to], equal on all ranks, and displacements of this
  // rank's blocks (call.h): me.all_to_all(in, out, counts, {.in = to_each, .out = from_each}).
  template <class T>
  Answer all_to_all(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                    const Displacements& displacements, const CallOptions& options = {}) {
    const Call request{.collective = Collective::all_to_all,
                       .in = in.data(),
                       .out = out.data(),
                       .type = data_type_of<T>,
                       .counts = counts,
                       .displacements = &displacements,
                       .options = options};
    Status status =
        check_reach(request, caller().rank(), caller().ranks(), in.size_bytes(), out.size_bytes());
    if (!status.ok()) return status;
    return caller().submit(request);
  }
  // out at the root = the ranks' inputs one after the other; elsewhere out may be empty.
  template <class T>
  Answer gather(std::span<const T> in, std::span<T> out, Rank root,
                const CallOptions& options = {}) {
    const std::size_t all = in.size() * n();
    if (caller().rank() == root && out.size() != all) return mismatch("out", out.size(), all);
    return caller().submit(
        moving<T>(Collective::gather, in.data(), out.data(), in.size(), options, root));
  }
  // out = this rank's block of the root's in; elsewhere in may be empty.
  template <class T>
  Answer scatter(std::span<const T> in, std::span<T> out, Rank root,
                 const CallOptions& options = {}) {
    const std::size_t all = out.size() * n();
    if (caller().rank() == root && in.size() != all) return mismatch("in", in.size(), all);
    return caller().submit(
        moving<T>(Collective::scatter, in.data(), out.data(), out.size(), options, root));
  }
  // data at the receiver = the sender's data. All ranks call it; data of other ranks is not
  // touched.
  template <class T>
  requires(!std::is_const_v<T>) Answer
      send_recv(std::span<T> data, Rank from, Rank to, const CallOptions& options = {}) {
    return caller().submit(
        moving<T>(Collective::send_recv, data.data(), data.data(), data.size(), options, from, to));
  }

  // With one count per rank, zeros included (all_gather, reduce_scatter, gather, scatter), or one
  // per pair, [from * ranks() + to] (all_to_all). Counts must be equal on all ranks; buffers hold
  // the rank's inputs and outputs without gaps.
  template <class T>
  Answer with_counts(Collective collective, std::span<const T> in, std::span<T> out,
                     std::span<const std::size_t> counts, Rank root = 0,
                     const By<T>& op = ReduceOp::sum, const CallOptions& options = {}) {
    Call request = reducing(collective, in, out, 0, op, options);
    request.root = root;
    request.counts = counts;
    Status status = check_sizes(request, caller().rank(), caller().ranks(), in.size(), out.size());
    if (!status.ok()) return status;
    return caller().submit(request);
  }

  // A message to one rank or from one rank: only these two ranks make the call (Member).
  template <class T>
  Answer send(std::span<const T> data, Rank to, const CallOptions& options = {}) {
    return caller().submit(Message{const_cast<T*>(data.data()), data.size(), data_type_of<T>, to},
                           options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer
      recv(std::span<T> data, Rank from, const CallOptions& options = {}) {
    return caller().submit(Message{data.data(), data.size(), data_type_of<T>, from, false},
                           options);
  }

 private:
  template <class T>
  Answer prefix(Collective collective, std::span<const T> in, std::span<T> out, const By<T>& op,
                const CallOptions& options) {
    const bool no_result = collective == Collective::exscan && caller().rank() == 0 && out.empty();
    if (!no_result && in.size() != out.size()) return mismatch("out", out.size(), in.size());
    return caller().submit(reducing(collective, in, out, in.size(), op, options));
  }
  template <class T>
  static Call reducing
      [[gnu::always_inline]] (Collective collective, std::span<const T> in, std::span<T> out,
                              std::size_t count, const By<T>& op, const CallOptions& options) {
    return {.collective = collective,
            .in = in.data(),
            .out = out.data(),
            .count = count,
            .type = op.type(),
            .op = op.op(),
            .user_op = op.user_op(),
            .factor = op.factor(),
            .options = options};
  }
  template <class T>
  static Call moving
      [[gnu::always_inline]] (Collective collective, const void* in, void* out, std::size_t count,
                              const CallOptions& options, Rank root = 0, Rank peer = 0) {
    return {.collective = collective,
            .in = in,
            .out = out,
            .count = count,
            .type = data_type_of<T>,
            .root = root,
            .peer = peer,
            .options = options};
  }
  Caller& caller() { return static_cast<Caller&>(*this); }
  std::size_t n() { return static_cast<std::size_t>(caller().ranks()); }
  Answer mismatch(std::string_view what, std::size_t got, std::size_t allowed) {
    return size_mismatch(what, got, allowed, caller().ranks());
  }
};

}  // namespace rankine
