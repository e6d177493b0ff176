#include "engine/lab/train/layer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/lab/train/matrix.h"

namespace rankine::tools {

void add_up(const Share& share, std::span<const std::span<float>> parts) {
  const std::span<float> sum = parts.front();
  for (const std::span<float>& part : parts.subspan(1)) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  if (share.is_alone()) return;
  share.group->all_reduce(sum, ReduceOp::sum, {.order = Order::by_rank}).throw_if_error();
}

Matrix add_up(const Share& share, DataType type, std::vector<Matrix> parts) {
  if (share.of == 1) return std::move(parts.front());
  for (Matrix& part : parts) part = rounded(type, std::move(part));
  if (type == DataType::bf16 && !share.is_alone()) {
    KeptMatrix sum(type, std::move(parts.front()));
    share.group
        ->all_reduce(std::span(sum.values.as<BFloat16>()), ReduceOp::sum, {.order = Order::by_rank})
        .throw_if_error();
    return sum.matrix();
  }
  std::vector<std::span<float>> values(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) values[i] = parts[i].values;
  add_up(share, values);
  return rounded(type, std::move(parts.front()));
}

Unit::Unit(std::size_t size, const Share& shards, int bracket, int zero, DataType type,
           const std::function<void(std::span<float>)>& fill)
    : size_(size),
      shards_(shards),
      bracket_(bracket),
      zero_(shards.is_alone() ? 0 : zero),
      type_(type) {
  if (zero_ > 0) parts_ = static_cast<std::size_t>(shards_.group->ranks());
  part_ = (size + parts_ - 1) / parts_;
  std::vector<float> values(part_ * parts_);
  fill(std::span(values).first(size));
  gradients_.assign(static_cast<std::size_t>(shards_.count), std::vector<float>(values.size()));
  first_.resize(part_);
  second_.resize(part_);
  if (zero_ > 0) my_sum_.resize(part_);
  if (has_copy()) {
    const std::span<const float> mine = part_of(values);
    mine_.assign(mine.begin(), mine.end());
  }
  if (zero_ < 3) whole_ = Kept(type_, std::move(values));
}

std::span<float> Unit::part_of(std::vector<float>& values) const {
  const int number = parts_ == 1 ? 0 : shards_.group->rank();
  return std::span(values).subspan(part_ * static_cast<std::size_t>(number), part_);
}

std::span<float> Unit::my_part() {
  return has_copy() ? std::span(mine_) : part_of(whole_.as<float>());
}

void Unit::gather() {
  const std::span<const float> mine = my_part();
  Kept part(type_, std::vector(mine.begin(), mine.end()));
  if (parts_ == 1) {
    whole_ = std::move(part);
    return;
  }
  whole_ = Kept(type_, part_ * parts_);
  whole_.with([&]<class T>(std::vector<T>& whole) {
    const std::span<const T> sent(part.as<T>());
    shards_.group->all_gather(sent, std::span(whole)).throw_if_error();
  });
}

void Unit::fetch() {
  if (zero_ == 3 && whole_.empty()) gather();
}

void Unit::drop() {
  if (zero_ == 3) whole_ = Kept();
}

std::span<float> Unit::gradient(int shard) {
  return std::span(gradients_[static_cast<std::size_t>(shard - shards_.first)]).first(size_);
}

void Unit::start_reducing(std::map<Member*, Buckets>& buckets) {
  // First add up each bracket into the gradient of its first shard.
  std::vector<std::span<float>> sums;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (i % static_cast<std::size_t>(bracket_) == 0) {
      sums.emplace_back(gradients_[i]);
    } else {
      add_up({}, std::vector{sums.back(), std::span(gradients_[i])});
    }
  }
  add_up({}, sums);
  if (shards_.is_alone()) return;
  const CallOptions by_rank{.order = Order::by_rank};
  if (zero_ == 0) {
    buckets.at(shards_.group).add(sums.front(), ReduceOp::sum, by_rank).throw_if_error();
    return;
  }
  auto request = shards_.group->async().reduce_scatter(std::span<const float>(sums.front()),
                                                       std::span(my_sum_), ReduceOp::sum, by_rank);
  request.status().throw_if_error();
  reducing_ = std::move(*request);
}

void Unit::update(const Adam& adam, int step) {
  const std::span<float> values = my_part();
  std::span<float> sum = gradients_.front();
  if (zero_ > 0) {
    reducing_->wait().throw_if_error();
    sum = my_sum_;
  }
  const float first_part = 1 - std::pow(adam.first_decay, static_cast<float>(step));
  const float second_part = 1 - std::pow(adam.second_decay, static_cast<float>(step));
  for (std::size_t i = 0; i < values.size(); ++i) {
    first_[i] = adam.first_decay * first_[i] + (1 - adam.first_decay) * sum[i];
    second_[i] = adam.second_decay * second_[i] + (1 - adam.second_decay) * sum[i] * sum[i];
    values[i] -=
        adam.rate * (first_[i] / first_part) / (std::sqrt(second_[i] / second_part) + adam.epsilon);
  }
  for (std::vector<float>& gradient : gradients_) std::fill(gradient.begin(), gradient.end(), 0);
  if (zero_ == 1 || (zero_ == 0 && has_copy())) gather();
}

namespace {

Matrix taken(const Matrix& from, std::span<const int> rows) {
  Matrix to(static_cast<int>(rows.size()), from.cols);
  for (int i = 0; i < to.rows; ++i) {
    std::copy_n(from.row(rows[static_cast<std::size_t>(i)]), from.cols, to.row(i));
  }
  return to;
}

Matrix put_back(const Matrix& from, std::span<const int> rows) {
  Matrix to(from.rows, from.cols);
  for (int i = 0; i < to.rows; ++i) {
    std::copy_n(from.row(i), from.cols, to.row(rows[static_cast<std::size_t>(i)]));
  }
  return to;
}

}  // namespace

Experts::Experts(const Model& model, const Places& places, int zero, std::uint64_t seed)
    : type_(kept_type(model)),
      all_(model.experts),
      hidden_(model.hidden),
      feed_forward_(model.feed_forward),
      places_(places),
      router_weights_{0, hidden_, all_},
      up_{0, hidden_, feed_forward_},
      down_{up_.size(), feed_forward_, hidden_},
      router_(router_weights_.size(), places.data, 1, zero, type_, [&](std::span<float> values) {
        Beginning{seed, hidden_, all_}.fill(values, 0, 0, all_);
      }) {
  const int each = all_ / places.experts.of;
  const int first = places.experts.first * each, count = places.experts.count * each;
  for (int e = first; e < first + count; ++e) {
    const std::uint64_t matrix = seed + 1 + 2 * static_cast<std::uint64_t>(e);
    experts_.emplace_back(
        up_.size() + down_.size(), places.expert_data, places.experts.of, zero, type_,
        [&](std::span<float> values) {
          Beginning{matrix, hidden_, feed_forward_}.fill(values.first(up_.size()), 0, 0, up_.cols);
          Beginning{matrix + 1, feed_forward_, hidden_}.fill(values.subspan(down_.begin), 0, 0,
                                                             down_.cols);
        });
  }
}

std::vector<Unit*> Experts::units() {
  std::vector<Unit*> all = {&router_};
  for (Unit& expert : experts_) all.push_back(&expert);
  return all;
}

int Experts::source_shard(int source, int shard) const {
  return places_.experts.is_alone() ? shard : places_.expert_data.first + source;
}

Matrix Experts::travel(const Matrix& rows, const Saved& saved, bool back) const {
  if (places_.experts.is_alone()) return rounded(type_, rows);
  Member& group = *places_.experts.group;
  const auto ranks = static_cast<std::size_t>(group.ranks());
  const std::size_t each = static_cast<std::size_t>(all_) / ranks;  // experts per rank
  std::vector<std::size_t> counts(ranks * ranks);                   // elements, [from * ranks + to]
  std::size_t arriving = 0;
  for (std::size_t source = 0; source < ranks; ++source) {
    for (std::size_t e = 0; e < static_cast<std::size_t>(all_); ++e) {
      const std::size_t to = e / each;
      const auto tokens =
          static_cast<std::size_t>(saved.each[source * static_cast<std::size_t>(all_) + e]);
      counts[back ? to * ranks + source : source * ranks + to] += tokens * rows.width();
    }
  }
  for (std::size_t from = 0; from < ranks; ++from) {
    arriving += counts[from * ranks + static_cast<std::size_t>(group.rank())];
  }
  const Kept sent(type_, rows.values);
  KeptMatrix arrived(type_, Matrix(static_cast<int>(arriving / rows.width()), rows.cols));
  arrived.values.with([&]<class T>(std::vector<T>& values) {
    group
        .with_counts(Collective::all_to_all, std::span<const T>(sent.as<T>()), std::span(values),
                     counts)
        .throw_if_error();
  });
  return arrived.matrix();
}

Matrix Experts::forward(const KeptMatrix& tokens, Saved& saved) const {
  saved.tokens = tokens;
  saved.probabilities = product(tokens, router_weights_.of(router_));
  saved.expert_of.clear();
  std::vector<std::int32_t> mine(static_cast<std::size_t>(all_));
  for (int i = 0; i < tokens.rows; ++i) {
    const std::span<float> row(saved.probabilities.row(i), static_cast<std::size_t>(all_));
    softmax(row);
    const auto chosen = std::max_element(row.begin(), row.end()) - row.begin();
    saved.expert_of.push_back(static_cast<int>(chosen));
    ++mine[static_cast<std::size_t>(chosen)];
  }
  saved.sent.resize(saved.expert_of.size());
  std::iota(saved.sent.begin(), saved.sent.end(), 0);
  std::stable_sort(saved.sent.begin(), saved.sent.end(), [&](int a, int b) {
    return saved.expert_of[static_cast<std::size_t>(a)] <
           saved.expert_of[static_cast<std::size_t>(b)];
  });
  saved.each = mine;
  if (!places_.experts.is_alone()) {
    saved.each.resize(mine.size() * static_cast<std::size_t>(sources()));
    places_.experts.group
        ->all_gather(std::span<const std::int32_t>(mine), std::span<std::int32_t>(saved.each))
        .throw_if_error();
  }

  const Matrix arrived = travel(taken(tokens.matrix(), saved.sent), saved, false);
  Matrix done(arrived.rows, arrived.cols);
  saved.worked.clear();
  int at = 0;
  const int first = places_.experts.first * (all_ / places_.experts.of);
  for (int source = 0; source < sources(); ++source) {
    for (int e = 0; e < here(); ++e) {
      const int count = saved.each[static_cast<std::size_t>(source * all_ + first + e)];
      const Unit& expert = experts_[static_cast<std::size_t>(e)];
      Worked& w = saved.worked.emplace_back();
      Matrix inputs(count, hidden_);
      std::copy_n(arrived.row(at), inputs.values.size(), inputs.values.begin());
      w.inputs = {type_, std::move(inputs)};
      w.up = {type_, product(w.inputs, up_.of(expert))};
      w.active = {type_, silu(w.up.matrix())};
      const Matrix out = product(w.active, down_.of(expert));
      std::copy(out.values.begin(), out.values.end(), done.row(at));
      at += count;
    }
  }
  Matrix result = put_back(travel(done, saved, true), saved.sent);
  saved.outputs = {type_, result};
  for (int i = 0; i < result.rows; ++i) {
    const float p = saved.probabilities.row(i)[saved.expert_of[static_cast<std::size_t>(i)]];
    for (int j = 0; j < hidden_; ++j) result.row(i)[j] *= p;
  }
  return result;
}

Matrix Experts::backward(const Matrix& by_result, int shard, const Saved& saved) {
  const Matrix outputs = saved.outputs.matrix();
  Matrix by_output = by_result;
  Matrix by_logits(by_result.rows, all_);
  for (int i = 0; i < by_result.rows; ++i) {
    const int chosen = saved.expert_of[static_cast<std::size_t>(i)];
    const float* p = saved.probabilities.row(i);
    const float by_chosen = dot(by_result.row(i), outputs.row(i), hidden_);
    for (int j = 0; j < hidden_; ++j) by_output.row(i)[j] *= p[chosen];
    for (int e = 0; e < all_; ++e) {
      by_logits.row(i)[e] = by_chosen * p[chosen] * ((e == chosen ? 1.0F : 0.0F) - p[e]);
    }
  }

  const Matrix arrived = travel(taken(by_output, saved.sent), saved, false);
  Matrix by_inputs(arrived.rows, arrived.cols);
  int at = 0;
  auto w = saved.worked.begin();
  for (int source = 0; source < sources(); ++source) {
    const int from = source_shard(source, shard);
    for (Unit& expert : experts_) {
      Matrix by_done(w->inputs.rows, hidden_);
      std::copy_n(arrived.row(at), by_done.values.size(), by_done.values.begin());
      const Matrix by_up =
          silu_backward(w->up.matrix(), product_with_transposed(by_done, down_.of(expert)));
      add_transposed_product(w->active, by_done, down_.gradient_of(expert, from));
      add_transposed_product(w->inputs, by_up, up_.gradient_of(expert, from));
      const Matrix back = product_with_transposed(by_up, up_.of(expert));
      std::copy(back.values.begin(), back.values.end(), by_inputs.row(at));
      at += by_done.rows;
      ++w;
    }
  }
  Matrix by_tokens = put_back(travel(by_inputs, saved, true), saved.sent);
  add_transposed_product(saved.tokens, by_logits, router_weights_.gradient_of(router_, shard));
  add(product_with_transposed(by_logits, router_weights_.of(router_)), by_tokens);
  return by_tokens;
}

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
