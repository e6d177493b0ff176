#include "engine/tools/train/experts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "engine/tools/train/beginning.h"
#include "engine/tools/train/kept_type.h"

namespace rankine::tools {
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
  const std::size_t each = static_cast<std::size_t>(all_) / ranks;  // experts of a rank
  std::vector<std::size_t> counts(ranks * ranks);                   // elements, from and to
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

}  // namespace rankine::tools
