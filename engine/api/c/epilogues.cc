// The C functions of epilogues.
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/api/c/epilogue_handle.h"
#include "engine/api/c/last_error.h"
#include "engine/api/c/numbers.h"
#include "engine/api/c/settings.h"

namespace rankine {

CreatedEpilogue::CreatedEpilogue(RowEpilogue steps)
    : steps_(std::make_unique<RowEpilogue>(std::move(steps))) {
  static_cast<Epilogue&>(*this) = *steps_;
}

CreatedEpilogue::CreatedEpilogue(rkRowFunction_t function, std::size_t elements,
                                 void* function_context)
    : function_(function), function_context_(function_context) {
  row_elements = elements;
  context = this;
  // What a C function cannot throw, it returns.
  finish = [](const void* rows, std::size_t first, std::size_t count, void* self) {
    const auto& me = *static_cast<const CreatedEpilogue*>(self);
    const int result = me.function_(rows, first, count, me.function_context_);
    if (result != 0) {
      throw std::runtime_error("the epilogue returned " + std::to_string(result));
    }
  };
}

namespace {

constexpr std::array kNormsByNumber = {Norm::none, Norm::rms, Norm::layer};
constexpr std::array kActivationsByNumber = {Activation::none, Activation::relu,
                                             Activation::gelu_tanh, Activation::silu};
static_assert(kNormsByNumber.size() == kNorms && kActivationsByNumber.size() == kActivations);

// Names are those of the C struct. Throws a Refusal of what has no meaning as a number.
RowSteps read_steps(const rkRowSteps_t& steps) {
  return {.type = row(kTypes, "type", steps.type),
          .row_elements = steps.rowElements,
          .bias = steps.bias,
          .residual = steps.residual,
          .norm = row(kNormsByNumber, "norm", steps.norm),
          .weight = steps.weight,
          .shift = steps.shift,
          .epsilon = steps.epsilon,
          .activation = row(kActivationsByNumber, "activation", steps.activation),
          .out_type = row(kTypes, "outType", steps.outType),
          .out = steps.out,
          .scales = steps.scales};
}

rkEpilogue_t add_epilogue(std::shared_ptr<const CreatedEpilogue> epilogue) {
  return HandleTable<EpilogueHandle>::all().add(
      std::make_unique<EpilogueHandle>(EpilogueHandle{std::move(epilogue)}));
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkEpilogueCreate(rkEpilogue_t* epilogue, const rkRowSteps_t* steps) noexcept {
  return guarded("rkEpilogueCreate", [&]() -> Status {
    if (epilogue == nullptr) return invalid_argument("epilogue is NULL");
    if (steps == nullptr) return invalid_argument("steps is NULL");
    if (Status size = check_size("steps", steps->size, sizeof *steps, sizeof *steps); !size.ok()) {
      return size;
    }
    auto made = RowEpilogue::make(read_steps(*steps));
    if (!made.ok()) return made.status();
    *epilogue = add_epilogue(std::make_shared<CreatedEpilogue>(std::move(*made)));
    return {};
  });
}

rkResult_t rkEpilogueCreateFunction(rkEpilogue_t* epilogue, size_t rowElements,
                                    rkRowFunction_t function, void* context) noexcept {
  return guarded("rkEpilogueCreateFunction", [&]() -> Status {
    if (epilogue == nullptr) return invalid_argument("epilogue is NULL");
    if (rowElements == 0) return invalid_argument("rowElements is 0; allowed are 1 and more");
    if (function == nullptr) return invalid_argument("function is NULL");
    *epilogue = add_epilogue(std::make_shared<CreatedEpilogue>(function, rowElements, context));
    return {};
  });
}

rkResult_t rkEpilogueApply(rkEpilogue_t epilogue, const void* rows, size_t count) noexcept {
  return guarded("rkEpilogueApply", [&]() -> Status {
    const BorrowedEpilogue handle(epilogue, BorrowedEpilogue::As::caller);
    if (rows == nullptr && count > 0) return invalid_argument("rows is NULL");
    std::string why;
    if (count > 0 && !finish_rows(*handle->epilogue, rows, 0, count, why)) {
      throw Refusal{rkRemoteError, std::move(why)};
    }
    return {};
  });
}

rkResult_t rkEpilogueDestroy(rkEpilogue_t epilogue) noexcept {
  return guarded("rkEpilogueDestroy", [&]() -> Status {
    if (epilogue == nullptr || forget_inherited<EpilogueHandle>(epilogue)) return {};
    BorrowedEpilogue handle(epilogue, BorrowedEpilogue::As::caller);
    handle.doom();
    return {};
  });
}

}  // extern "C"
