// What a typed call reduces by: an operation of the engine's, a sum of products with a factor of
// each rank's own, or an operation of the user's.
//
//     me.all_reduce(x, ReduceOp::max);
//     me.all_reduce(x, PreMulSum{0.25});                       // NCCL's PreMulSum
//     const auto compose = [](std::span<const Matrix> a, std::span<Matrix> b) {
//       for (std::size_t i = 0; i < b.size(); ++i) b[i] = a[i] * b[i];
//     };
//     me.all_reduce(matrices, user_op<Matrix>(compose, Commutes::no));
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "engine/api/call.h"
#include "engine/run/kernels/types.h"
#include "engine/run/user_op.h"

namespace rankine {

// Every rank's input times its own factor, added up; ranks may give different factors. See
// Call::factor.
template <class F>
struct PreMulSum {
  F factor;
};
template <class F>
PreMulSum(F) -> PreMulSum<F>;

enum class Commutes : bool { no, yes };

// An operation on T. It refers to the function that it was made of.
template <class T>
struct TypedUserOp {
  UserOp op;
};

// f(in, inout) makes inout[i] = in[i] op inout[i] for all i; see UserOp for what it may do. It is
// kept by reference, and so must outlive its calls.
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
  // What factors of T are given in.
  using Factor = std::conditional_t<SmallFloat<T> || !TypedElement<T> || sizeof(T) == 2, float,
                                    std::remove_cv_t<T>>;

  Reduction(ReduceOp op) : op_(op) {}
  template <class F>
  requires std::is_convertible_v<F, Factor> Reduction(PreMulSum<F> sum)
      : op_(ReduceOp::sum), factor_(static_cast<Factor>(sum.factor)), multiplies_(true) {}
  Reduction(const TypedUserOp<T>& op) : op_(ReduceOp::user), user_op_(&op.op) {}

  // What a call has of it; it refers to this object.
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

}  // namespace rankine
