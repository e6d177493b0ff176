// RowEpilogue and epilogue() make epilogues for calls (CallOptions::epilogue): the steps that
// inference servers apply to activations after an all-reduce, ready-made, or a function of the
// user.
//
//     auto norm = RowEpilogue::make({.type = DataType::bf16, .row_elements = 4096,
//                                    .residual = stream, .norm = Norm::rms, .weight = gain,
//                                    .epsilon = 1e-6F, .out_type = DataType::bf16, .out = normed});
//     me.all_reduce(hidden, {.epilogue = &*norm});
//
// Each rank passes a separate epilogue. apply(*norm, hidden, rows) makes the same pass over the
// whole vector afterwards, with the same bits (engine/run/user_functions.h).
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

// RowSteps lists the steps on each row x, in this order; steps that are null or none are skipped.
// The formulas are in engine/run/kernels/reduce.h. Each buffer holds as many rows as the call's
// output has at that rank, or one row (bias, weight, shift). The caller owns the buffers; they
// overlap neither each other nor a buffer of the call.
struct RowSteps {
  // f32, f16 or bf16; the type of the call, bias, residual, weight and shift
  DataType type = DataType::bf16;
  std::size_t row_elements = 0;
  const void* bias = nullptr;  // a row: x += bias
  void* residual = nullptr;    // rows: residual += x, and x = residual
  Norm norm = Norm::none;
  const void* weight = nullptr;  // a row; nullptr: ones
  const void* shift = nullptr;   // a row, of layer norms; nullptr: zeros
  float epsilon = 1e-5F;
  Activation activation = Activation::none;
  DataType out_type = DataType::bf16;  // `type`, or i8 or f8e4m3, which are scaled by row
  void* out = nullptr;                 // rows; nullptr: only the residual is updated
  float* scales = nullptr;             // one a row, of i8 and f8e4m3
};

// An epilogue may be moved, but not while a call that uses it is in flight. One thread at a time
// uses it.
class RowEpilogue : public Epilogue {
 public:
  // Errors: invalid_argument names the invalid step; out_of_memory.
  static Result<RowEpilogue> make(const RowSteps& steps);
  RowEpilogue(RowEpilogue&&) noexcept;
  RowEpilogue& operator=(RowEpilogue&&) noexcept;
  ~RowEpilogue();

 private:
  struct State;
  explicit RowEpilogue(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Calls f(rows, first) with consecutive final rows of the result, as elements of T; `first` is the
// index of the first row. It keeps a reference to f, and the object must not be moved.
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
