#include "engine/tools/train/unit.h"

#include <algorithm>
#include <cmath>

namespace rankine::tools {

Unit::Unit(std::size_t size, const Share& shards, int bracket, int zero,
           const std::function<void(std::span<float>)>& fill)
    : size_(size), shards_(shards), bracket_(bracket), zero_(shards.is_alone() ? 0 : zero) {
  if (zero_ > 0) parts_ = static_cast<std::size_t>(shards_.group->ranks());
  part_ = (size + parts_ - 1) / parts_;
  whole_.resize(part_ * parts_);
  fill(std::span(whole_).first(size));
  gradients_.assign(static_cast<std::size_t>(shards_.count), std::vector<float>(whole_.size()));
  first_.resize(part_);
  second_.resize(part_);
  if (zero_ == 0) return;
  my_sum_.resize(part_);
  if (zero_ < 3) return;
  const std::span<float> mine = my_part();
  mine_.assign(mine.begin(), mine.end());
  drop();
}

std::span<float> Unit::my_part() {
  return std::span(whole_).subspan(part_ * static_cast<std::size_t>(shards_.group->rank()), part_);
}

void Unit::fetch() {
  if (zero_ < 3 || !whole_.empty()) return;
  whole_.resize(part_ * parts_);
  shards_.group->all_gather(std::span<const float>(mine_), std::span(whole_)).throw_if_error();
}

void Unit::drop() {
  if (zero_ == 3) std::vector<float>().swap(whole_);
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
  std::span<float> values = whole_, sum = gradients_.front();
  if (zero_ > 0) {
    reducing_->wait().throw_if_error();
    sum = my_sum_;
    values = zero_ == 3 ? std::span(mine_) : my_part();
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
  if (zero_ == 1) {
    shards_.group->all_gather(std::span<const float>(values), std::span(whole_)).throw_if_error();
  }
}

}  // namespace rankine::tools
