// Epilogues for calls (CallOptions::epilogue): what servers do with activations behind an
// all-reduce, ready-made, and functions of one's own.
//
//     auto norm = RowEpilogue::make({.type = DataType::bf16, .row_elements = 4096,
//                                    .residual = stream, .norm = Norm::rms, .weight = gain,
//                                    .epsilon = 1e-6F, .out_type = DataType::bf16, .out = normed});
//     me.all_reduce(hidden, {.epilogue = &*norm});
//
// Each rank brings its own. apply(*norm, hidden, rows) is the pass over the whole vector
// afterwards, with the same bits (engine/run/epilogue.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "engine/base/status.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/types.h"
#include "engine/run/user_functions.h"

namespace rankine {

// What becomes of each row x, in this order; what is null or none is left out. rows.h has the
// formulas. The buffers hold as many rows as the call's output has at that rank, or one row (bias,
// weight, shift); they stay the caller's and overlap neither each other nor a buffer of the call.
struct RowSteps {
  DataType type = DataType::bf16;  // f32, f16 or bf16: of the call, and of bias to shift
  std::size_t row_elements = 0;
  const void* bias = nullptr;  // a row: x += bias
  void* residual = nullptr;    // rows: residual += x, and x = residual
  Norm norm = Norm::none;
  const void* weight = nullptr;  // a row; nullptr: ones
  const void* shift = nullptr;   // a row, of layer norms; nullptr: zeros
  float epsilon = 1e-5F;
  Activation activation = Activation::none;
  DataType out_type = DataType::bf16;  // the same, or i8 or f8e4m3, which are scaled by row
  void* out = nullptr;                 // rows; nullptr: only the residual is wanted
  float* scales = nullptr;             // one a row, of i8 and f8e4m3
};

// May be moved, but not while a call that it was given to is under way. Used by one thread at a
// time.
class RowEpilogue : public Epilogue {
 public:
  // Errors: invalid_argument names the step that makes no sense; out_of_memory.
  static Result<RowEpilogue> make(const RowSteps& steps);
  RowEpilogue(RowEpilogue&&) noexcept;
  RowEpilogue& operator=(RowEpilogue&&) noexcept;
  ~RowEpilogue();

 private:
  struct State;
  explicit RowEpilogue(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// f(rows, first): rows of the result that are final, side by side, from row `first` on, as elements
// of T. It is kept by reference, and what is made of it is not moved.
template <class T, class F>
class FunctionEpilogue : public Epilogue {
 public:
  FunctionEpilogue(std::size_t elements, F& f) : function_(f) {
    row_elements = elements;
    if constexpr (TypedElement<T>) type = data_type_of<T>;
    context = this;
    finish = [](const void* rows, std::size_t first, std::size_t count, void* self) {
      const auto& me = *static_cast<const FunctionEpilogue*>(self);
      me.function_(std::span(static_cast<const T*>(rows), count * me.row_elements), first);
    };
  }
  FunctionEpilogue(const FunctionEpilogue&) = delete;
  FunctionEpilogue& operator=(const FunctionEpilogue&) = delete;

 private:
  F& function_;
};

//     const auto count = [&](std::span<const float> rows, std::size_t first) { ... };
//     const auto counting = epilogue<float>(128, count);
template <class T, class F>
requires std::is_invocable_v<F&, std::span<const T>, std::size_t> FunctionEpilogue<T, F> epilogue(
    std::size_t row_elements, F& f) {
  return FunctionEpilogue<T, F>(row_elements, f);
}

}  // namespace rankine
