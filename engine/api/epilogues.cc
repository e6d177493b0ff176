#include "engine/api/epilogues.h"

#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankine {
namespace {

constexpr std::string_view kFloats = "f32, f16 and bf16";

constexpr std::size_t kMostRow = std::size_t{1} << 30;

bool is_scaled(DataType type) { return type == DataType::i8 || type == DataType::f8e4m3; }

Status makes_no_sense(std::string_view what, std::string_view why) {
  return invalid_argument(std::string(what) + " is given, " + std::string(why) +
                          "; change one of the two");
}

Status check(const RowSteps& steps) {
  const auto no_type = [](std::string_view what, DataType type, std::string_view allowed) {
    return invalid_argument(std::string(what) + " is " + std::string(name_of(type)) +
                            "; allowed are " + std::string(allowed));
  };
  const auto no_kind = [](std::string_view what, int value, int kinds) {
    return invalid_argument(std::string(what) + " is " + std::to_string(value) +
                            "; allowed are 0 to " + std::to_string(kinds - 1));
  };
  if (find_rows(steps.type, DataType::f32, Isa::portable) == nullptr) {
    return no_type("type", steps.type, kFloats);
  }
  if (find_rows(steps.type, steps.out_type, Isa::portable) == nullptr) {
    return no_type("out_type", steps.out_type, std::string(kFloats) + ", i8 and f8e4m3");
  }
  const int norm = static_cast<int>(steps.norm), activation = static_cast<int>(steps.activation);
  if (norm >= kNorms) return no_kind("norm", norm, kNorms);
  if (activation >= kActivations) return no_kind("activation", activation, kActivations);
  if (steps.row_elements == 0 || steps.row_elements > kMostRow) {
    return invalid_argument("row_elements is " + std::to_string(steps.row_elements) +
                            "; allowed are 1 to " + std::to_string(kMostRow));
  }
  if (!(steps.epsilon >= 0)) {
    return invalid_argument("epsilon is " + std::to_string(steps.epsilon) +
                            "; allowed are 0 and more");
  }
  if (steps.weight != nullptr && steps.norm == Norm::none) {
    return makes_no_sense("weight", "norm is none");
  }
  if (steps.shift != nullptr && steps.norm != Norm::layer) {
    return makes_no_sense("shift", "norm is not layer");
  }
  if (steps.out == nullptr) {
    if (steps.norm != Norm::none) return makes_no_sense("norm", "out is null");
    if (steps.activation != Activation::none) return makes_no_sense("activation", "out is null");
    if (steps.scales != nullptr) return makes_no_sense("scales", "out is null");
    if (steps.residual == nullptr)
      return invalid_argument("out and residual are null; set one of them");
    return {};
  }
  if (is_scaled(steps.out_type) != (steps.scales != nullptr)) {
    return invalid_argument("out_type is " + std::string(name_of(steps.out_type)) + ", scales " +
                            (steps.scales != nullptr ? "are given" : "is null") +
                            "; allowed are scales for i8 and f8e4m3 only, and required there");
  }
  return {};
}

struct alignas(64) ScratchLine {
  float floats[16];
};

}  // namespace

struct RowEpilogue::State {
  RowKernel kernel;
  DataType type;
  RowWork work;  // of row 0
  std::size_t row_bytes, out_bytes;
  std::vector<ScratchLine> scratch;

  explicit State(const RowSteps& steps)
      : kernel(find_rows(steps.type, steps.out_type, best_isa())),
        type(steps.type),
        work{.elements = steps.row_elements,
             .bias = steps.bias,
             .residual = steps.residual,
             .norm = steps.norm,
             .weight = steps.weight,
             .shift = steps.shift,
             .epsilon = steps.epsilon,
             .activation = steps.activation,
             .out = steps.out,
             .scales = steps.scales},
        row_bytes(steps.row_elements * size_of(steps.type)),
        out_bytes(steps.row_elements * size_of(steps.out_type)),
        scratch(scratch_floats(steps.row_elements) / std::size(ScratchLine().floats)) {
    work.scratch = scratch.front().floats;
  }

  void run(const void* rows, std::size_t first, std::size_t count) const noexcept {
    RowWork part = work;
    part.rows = rows;
    part.count = count;
    const auto move = [first](void*& place, std::size_t bytes) {
      if (place != nullptr) place = static_cast<std::byte*>(place) + first * bytes;
    };
    move(part.residual, row_bytes);
    move(part.out, out_bytes);
    if (part.scales != nullptr) part.scales += first;
    kernel(part);
  }
};

RowEpilogue::RowEpilogue(std::unique_ptr<State> state) : state_(std::move(state)) {
  row_elements = state_->work.elements;
  type = state_->type;
  context = state_.get();
  finish = [](const void* rows, std::size_t first, std::size_t count, void* self) {
    static_cast<const State*>(self)->run(rows, first, count);
  };
}

RowEpilogue::RowEpilogue(RowEpilogue&&) noexcept = default;
RowEpilogue& RowEpilogue::operator=(RowEpilogue&&) noexcept = default;
RowEpilogue::~RowEpilogue() = default;

Result<RowEpilogue> RowEpilogue::make(const RowSteps& steps) try {
  if (Status status = check(steps); !status.ok()) return status;
  return RowEpilogue(std::make_unique<State>(steps));
} catch (const std::exception&) {  // also for a row that is too long for any memory
  return make_error(Code::out_of_memory, [&] {
    return "no memory for an epilogue on rows of " + std::to_string(steps.row_elements) +
           " elements";
  });
}

}  // namespace rankine
