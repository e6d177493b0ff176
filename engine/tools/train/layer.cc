#include "engine/tools/train/layer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/tools/train/beginning.h"
#include "engine/tools/train/kept_type.h"

namespace rankine::tools {

Layer::Layer(const Model& model, const Places& places, int zero, std::uint64_t seed)
    : type_(kept_type(model)),
      places_(places),
      attention_{model.heads / places.tensor.of, model.hidden / model.heads, model.sequence,
                 type_} {
  const int hidden = model.hidden, width = hidden / places.tensor.of;
  const int wide = model.is_mixture() ? 0 : model.feed_forward / places.tensor.of;
  WeightsLayout layout;
  in_gains_ = layout.next(1, hidden);
  between_gains_ = layout.next(1, hidden);
  for (int t = 0; t < places.tensor.count; ++t) {
    Matrices& part = parts_.emplace_back();
    part.qkv = layout.next(hidden, 3 * width);
    part.out = layout.next(width, hidden);
    part.up = layout.next(hidden, wide);
    part.down = layout.next(wide, hidden);
  }
  unit_.emplace(layout.size(), places.data, 1, zero, type_, [&](std::span<float> values) {
    std::fill_n(values.begin(), in_gains_.size() + between_gains_.size(), 1.0F);
    const auto begin = [&](std::uint64_t matrix, const Weights& part, int rows, int cols,
                           int first_row, int first_col) {
      Beginning{seed + matrix, rows, cols}.fill(values.subspan(part.begin, part.size()), first_row,
                                                first_col, part.cols);
    };
    for (int t = 0; t < places.tensor.count; ++t) {
      const Matrices& part = parts_[static_cast<std::size_t>(t)];
      const int number = places.tensor.first + t;
      begin(0, part.qkv, hidden, 3 * hidden, 0, 3 * width * number);
      begin(1, part.out, hidden, hidden, width * number, 0);
      if (wide == 0) continue;
      begin(2, part.up, hidden, model.feed_forward, 0, wide * number);
      begin(3, part.down, model.feed_forward, hidden, wide * number, 0);
    }
  });
  if (model.is_mixture()) experts_.emplace(model, places, zero, seed + 4);
}

std::vector<Unit*> Layer::units() {
  std::vector<Unit*> all = {&*unit_};
  if (experts_) {
    const std::vector<Unit*> more = experts_->units();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Matrix Layer::forward(const Matrix& in, Saved& saved) const {
  const auto kept = [this](Matrix m) { return KeptMatrix(type_, std::move(m)); };
  saved.in = kept(in);
  saved.attended = kept(normed(in, in_gains_.values_of(*unit_), saved.in_scales));
  saved.parts.resize(parts_.size());
  std::vector<Matrix> sums;
  for (std::size_t t = 0; t < parts_.size(); ++t) {
    Saved::Part& part = saved.parts[t];
    part.qkv = kept(product(saved.attended, parts_[t].qkv.of(*unit_)));
    part.context = kept(attention_.forward(part.qkv.matrix(), part.weights));
    sums.push_back(product(part.context, parts_[t].out.of(*unit_)));
  }
  Matrix between = add_up(places_.tensor, type_, std::move(sums));
  add(in, between);
  between = rounded(type_, std::move(between));
  saved.fed = kept(normed(between, between_gains_.values_of(*unit_), saved.between_scales));
  Matrix result = experts_ ? experts_->forward(saved.fed, saved.experts) : feed(saved);
  add(between, result);
  saved.between = kept(std::move(between));
  return rounded(type_, std::move(result));
}

Matrix Layer::feed(Saved& saved) const {
  std::vector<Matrix> sums;
  for (std::size_t t = 0; t < parts_.size(); ++t) {
    Saved::Part& part = saved.parts[t];
    part.up = {type_, product(saved.fed, parts_[t].up.of(*unit_))};
    part.active = {type_, silu(part.up.matrix())};
    sums.push_back(product(part.active, parts_[t].down.of(*unit_)));
  }
  return add_up(places_.tensor, type_, std::move(sums));
}

Matrix Layer::feed_backward(const Matrix& by_result, int shard, const Saved& saved) {
  std::vector<Matrix> sums;
  for (std::size_t t = 0; t < parts_.size(); ++t) {
    const Saved::Part& part = saved.parts[t];
    const Matrix by_up = silu_backward(
        part.up.matrix(), product_with_transposed(by_result, parts_[t].down.of(*unit_)));
    add_transposed_product(part.active, by_result, parts_[t].down.gradient_of(*unit_, shard));
    add_transposed_product(saved.fed, by_up, parts_[t].up.gradient_of(*unit_, shard));
    sums.push_back(product_with_transposed(by_up, parts_[t].up.of(*unit_)));
  }
  return add_up(places_.tensor, type_, std::move(sums));
}

Matrix Layer::backward(const Matrix& by_result, int shard, const Saved& saved) {
  const Matrix by_fed = experts_ ? experts_->backward(by_result, shard, saved.experts)
                                 : feed_backward(by_result, shard, saved);
  Matrix by_between =
      normed_backward(saved.between.matrix(), between_gains_.values_of(*unit_),
                      saved.between_scales, by_fed, between_gains_.gradient_of(*unit_, shard));
  add(by_result, by_between);
  std::vector<Matrix> sums;
  for (std::size_t t = 0; t < parts_.size(); ++t) {
    const Saved::Part& part = saved.parts[t];
    const Matrix by_context = product_with_transposed(by_between, parts_[t].out.of(*unit_));
    add_transposed_product(part.context, by_between, parts_[t].out.gradient_of(*unit_, shard));
    const Matrix by_qkv = attention_.backward(part.qkv.matrix(), part.weights, by_context);
    add_transposed_product(saved.attended, by_qkv, parts_[t].qkv.gradient_of(*unit_, shard));
    sums.push_back(product_with_transposed(by_qkv, parts_[t].qkv.of(*unit_)));
  }
  const Matrix by_attended = add_up(places_.tensor, type_, std::move(sums));
  Matrix by_in = normed_backward(saved.in.matrix(), in_gains_.values_of(*unit_), saved.in_scales,
                                 by_attended, in_gains_.gradient_of(*unit_, shard));
  add(by_between, by_in);
  return rounded(type_, std::move(by_in));
}

}  // namespace rankine::tools
