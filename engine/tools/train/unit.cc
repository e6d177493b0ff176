#include "engine/tools/train/unit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rankine::tools {

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
  // Brackets first, each into its first shard's.
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

}  // namespace rankine::tools
