#include "engine/api/experts.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/member_state.h"
#include "engine/base/numbers.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kRefused = kNowhere;  // as the room of a rank

// The row at a place: the first `sent` places are at `away`, the others at `here`.
template <class Byte>
Byte* row_at(std::size_t place, std::size_t sent, Byte* away, Byte* here, std::size_t row_bytes) {
  return place < sent ? away + place * row_bytes : here + (place - sent) * row_bytes;
}

Status not_allowed(std::string_view name, std::string_view value, std::string_view allowed) {
  return invalid_argument(std::string(name) + " is " + std::string(value) + "; allowed are " +
                          std::string(allowed));
}

Status check_options(const ExpertsOptions& options, int ranks) {
  if (options.experts < 1 || options.experts % ranks != 0) {
    return not_allowed("experts", std::to_string(options.experts),
                       "multiples of " + std::to_string(ranks) + ", the number of ranks");
  }
  if (options.choices < 1) {
    return not_allowed("choices", std::to_string(options.choices), "1 and more");
  }
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  if (options.row_elements < 1 || options.row_elements > kMost) {
    return not_allowed("row_elements", std::to_string(options.row_elements),
                       "1 to " + std::to_string(kMost));
  }
  if (!is_float(options.type) || options.type == DataType::f64) {
    return not_allowed("type", name_of(options.type), "f32, f16, bf16, f8e4m3 and f8e5m2");
  }
  return {};
}

// Adds up the weighted rows of a token, from 0. Products and sums round to f32: no fused
// multiply-adds.
class RowSum {
 public:
  explicit RowSum(DataType type)
      : conversions_(find_conversions(type, best_isa())),
        scale_(find_scale(DataType::f32, best_isa())),
        fold_(find_reduce(DataType::f32, ReduceOp::sum)),
        element_bytes_(size_of(type)) {}

  void add_up(std::span<const std::byte* const> rows, std::span<const float> weights,
              std::size_t elements, std::byte* out) const {
    constexpr std::size_t kPart = 512;  // stays in the L1 cache
    alignas(64) float sums[kPart], product[kPart];
    const void* const both[] = {sums, product};
    for (std::size_t i = 0; i < elements; i += kPart) {
      const std::size_t n = std::min(kPart, elements - i), at = i * element_bytes_;
      std::fill_n(sums, n, 0.0F);
      for (std::size_t c = 0; c < rows.size(); ++c) {
        const void* row = rows[c] + at;
        if (conversions_.widen != nullptr) {
          conversions_.widen(product, row, n);
          row = product;
        }
        scale_(product, row, n, &weights[c]);
        fold_(sums, both, 2, n, 0);
      }
      if (conversions_.narrow != nullptr) {
        conversions_.narrow(out + at, sums, n);
      } else {
        std::memcpy(out + at, sums, n * sizeof(float));
      }
    }
  }

 private:
  Conversions conversions_;
  ScaleKernel scale_;
  ReduceKernel fold_;
  std::size_t element_bytes_;
};

}  // namespace

Result<Experts> Experts::create(Member& me, const ExpertsOptions& options) try {
  if (Status status = check_options(options, me.ranks()); !status.ok()) return status;
  return Experts(me, options);
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [&] {
    return "experts is " + std::to_string(options.experts) + "; no memory for their counts";
  });
}

Experts::Experts(Member& me, const ExpertsOptions& options)
    : me_(&me),
      options_(options),
      ranks_(static_cast<std::size_t>(me.ranks())),
      experts_(static_cast<std::size_t>(options.experts)),
      here_(experts_ / ranks_),
      row_bytes_(options.row_elements * size_of(options.type)),
      counts_(here_) {}

Status Experts::check(std::string_view name, const Buffer& buffer, std::size_t rows) const {
  if (buffer.type != options_.type) {
    return invalid_argument(std::string(name) + " has elements of " +
                            std::string(name_of(buffer.type)) + "; allowed is " +
                            std::string(name_of(options_.type)) + ", as in ExpertsOptions");
  }
  if (rows != kNowhere && buffer.count != rows * options_.row_elements) {
    return invalid_argument(std::string(name) + " has " + std::to_string(buffer.count) +
                            " elements; allowed are " + std::to_string(rows) + " rows of " +
                            std::to_string(options_.row_elements));
  }
  if (buffer.count > 0 && buffer.elements == nullptr) {
    return invalid_argument(std::string(name) + " is null; " + std::to_string(buffer.count) +
                            " elements are needed");
  }
  return {};
}

Status Experts::check_dispatch(const Buffer& tokens, std::span<const std::int32_t> indices,
                               const Buffer& rows) const {
  const auto choices = static_cast<std::size_t>(options_.choices);
  if (indices.size() % choices != 0) {
    return invalid_argument("indices has " + std::to_string(indices.size()) +
                            " elements; allowed are multiples of " + std::to_string(choices) +
                            ", the experts per token");
  }
  if (Status status = check("tokens", tokens, indices.size() / choices); !status.ok()) {
    return status;
  }
  if (Status status = check("rows", rows, kNowhere); !status.ok()) return status;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= -1 && indices[i] < options_.experts) continue;
    return not_allowed("indices[" + std::to_string(i) + "]", std::to_string(indices[i]),
                       "0 to " + std::to_string(experts_ - 1) + ", and -1 for no expert");
  }
  return {};
}

// All ranks learn the rows of all ranks for each expert, and get the same decision.
Status Experts::exchange_counts(std::span<const std::int32_t> indices, std::size_t room,
                                bool is_wrong) {
  table_.assign(ranks_ * (experts_ + 1), 0);
  const auto self = static_cast<std::size_t>(me_->rank());
  if (!is_wrong) {
    for (const std::int32_t e : indices) {
      if (e >= 0) ++rows_of(self, static_cast<std::size_t>(e));
    }
  }
  rows_of(self, experts_) = is_wrong ? kRefused : room;
  std::uint64_t shape = 0;
  for (const std::size_t n :
       {options_.capacity, row_bytes_, static_cast<std::size_t>(options_.type)}) {
    shape = mixed(shape, n);
  }
  Status status = me_->call({.collective = Collective::all_gather,
                             .in = &rows_of(self, 0),
                             .out = table_.data(),
                             .count = experts_ + 1,
                             .type = DataType::u64,
                             .options = {.tag = shape}});
  if (!status.ok() || is_wrong) return status;
  for (std::size_t r = 0; r < ranks_; ++r) {
    if (rows_of(r, experts_) == kRefused) {
      return invalid_argument("rank " + std::to_string(r) +
                              " has refused its arguments, so no rank sends rows; its error names "
                              "the argument: correct it, and let all ranks call again");
    }
  }
  return limit_rows();
}

Status Experts::limit_rows() {
  for (std::size_t e = 0; e < experts_ && options_.capacity > 0; ++e) {
    std::size_t left = options_.capacity;
    for (std::size_t r = 0; r < ranks_; ++r) {
      rows_of(r, e) = std::min(rows_of(r, e), left);
      left -= rows_of(r, e);
    }
  }
  pairs_.assign(ranks_ * ranks_, 0);
  for (std::size_t to = 0; to < ranks_; ++to) {
    std::size_t arriving = 0;
    for (std::size_t from = 0; from < ranks_; ++from) {
      std::size_t rows = 0;
      for (std::size_t e = to * here_; e < (to + 1) * here_; ++e) rows += rows_of(from, e);
      // A rank's rows for its own experts go to their places at once.
      pairs_[from * ranks_ + to] = from == to ? 0 : rows * options_.row_elements;
      arriving += rows;
    }
    if (arriving > rows_of(to, experts_)) {
      return invalid_argument("rows of rank " + std::to_string(to) + " has room for " +
                              std::to_string(rows_of(to, experts_)) + "; " +
                              std::to_string(arriving) +
                              " rows arrive: give more room, or all ranks a capacity");
    }
  }
  return {};
}

// Finds the place of each choice's row: among the rows that this rank sends, by expert, or behind
// them, among the rows of its own experts.
void Experts::place(std::span<const std::int32_t> indices) {
  const auto self = static_cast<std::size_t>(me_->rank());
  std::vector<std::size_t> next(experts_), left(experts_);
  sent_ = 0;
  for (std::size_t e = 0; e < experts_; ++e) {
    left[e] = rows_of(self, e);
    next[e] = sent_;
    if (e / here_ != self) sent_ += left[e];
  }
  std::size_t arriving = 0;
  for (std::size_t e = 0; e < here_; ++e) {
    counts_[e] = 0;
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (r == self) next[self * here_ + e] = sent_ + arriving + counts_[e];
      counts_[e] += rows_of(r, self * here_ + e);
    }
    arriving += counts_[e];
  }
  places_.assign(indices.size(), kNowhere);
  dropped_.clear();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0) continue;
    const auto e = static_cast<std::size_t>(indices[i]);
    if (left[e] == 0) {
      dropped_.push_back(i);
    } else {
      --left[e];
      places_[i] = next[e]++;
    }
  }
  at_home_.resize(std::max(at_home_.size(), sent_ * row_bytes_));
  by_rank_.resize(std::max(by_rank_.size(), arriving * row_bytes_));
}

// Copies the rows of other ranks from the order of ranks to the order of experts, or back.
void Experts::regroup(const std::byte* from, std::byte* to, bool back) const {
  const auto self = static_cast<std::size_t>(me_->rank());
  std::vector<std::size_t> next(here_);  // by expert, in rows
  for (std::size_t e = 1; e < here_; ++e) next[e] = next[e - 1] + counts_[e - 1];
  std::size_t at = 0;
  for (std::size_t r = 0; r < ranks_; ++r) {
    for (std::size_t e = 0; e < here_; ++e) {
      const std::size_t rows = rows_of(r, self * here_ + e);
      if (r != self) {
        const std::size_t source = back ? next[e] : at, target = back ? at : next[e];
        copy_bytes(to + target * row_bytes_, from + source * row_bytes_, rows * row_bytes_);
        at += rows;
      }
      next[e] += rows;
    }
  }
}

Status Experts::exchange(const std::byte* from, std::byte* to) {
  return me_->call({.collective = Collective::all_to_all,
                    .in = from,
                    .out = to,
                    .type = options_.type,
                    .counts = pairs_});
}

Status Experts::no_memory() const {
  return me_->give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for the rows of experts of rank " + std::to_string(me_->rank());
  }));
}

Status Experts::may_run(std::string_view call) const {
  if (!me_->state_->progress_engine->in_group()) return {};
  return invalid_argument(std::string(call) + ": a group() is open; call it outside of groups");
}

Status Experts::dispatch(const Buffer& tokens, std::span<const std::int32_t> indices,
                         const Buffer& rows) try {
  if (Status status = may_run("dispatch"); !status.ok()) return status;
  is_open_ = false;
  Status wrong = check_dispatch(tokens, indices, rows);
  Status status = exchange_counts(indices, rows.count / options_.row_elements, !wrong.ok());
  if (!wrong.ok()) return wrong;
  if (!status.ok()) return status;
  place(indices);
  const auto* const sent = static_cast<const std::byte*>(tokens.elements);
  auto* const arrived = static_cast<std::byte*>(rows.elements);
  const auto choices = static_cast<std::size_t>(options_.choices);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i] == kNowhere) continue;
    copy_bytes(row_at(places_[i], sent_, at_home_.data(), arrived, row_bytes_),
               sent + i / choices * row_bytes_, row_bytes_);
  }
  if (ranks_ > 1) {
    status = exchange(at_home_.data(), by_rank_.data());
    if (!status.ok()) return status;
    regroup(by_rank_.data(), arrived, false);
  }
  is_open_ = true;
  return {};
} catch (const std::exception&) {
  return no_memory();
}

Status Experts::combine(const Buffer& results, std::span<const float> weights,
                        const Buffer& out) try {
  if (Status status = may_run("combine"); !status.ok()) return status;
  if (!is_open_) {
    return invalid_argument("combine: no rows are out; the latest dispatch() must have succeeded");
  }
  const auto choices = static_cast<std::size_t>(options_.choices);
  const std::size_t arrived = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
  if (Status status = check("results", results, arrived); !status.ok()) return status;
  if (Status status = check("out", out, places_.size() / choices); !status.ok()) return status;
  if (!weights.empty() && weights.size() != places_.size()) {
    return invalid_argument("weights has " + std::to_string(weights.size()) +
                            " elements; allowed are " + std::to_string(places_.size()) +
                            ", as in indices, or none");
  }
  is_open_ = false;
  const auto* const here = static_cast<const std::byte*>(results.elements);
  if (ranks_ > 1) {
    regroup(here, by_rank_.data(), true);
    for (std::size_t a = 0; a < ranks_; ++a) {
      for (std::size_t b = 0; b < a; ++b) std::swap(pairs_[a * ranks_ + b], pairs_[b * ranks_ + a]);
    }
    Status status = exchange(by_rank_.data(), at_home_.data());
    if (!status.ok()) return status;
  }
  add_up_choices(here, weights, static_cast<std::byte*>(out.elements));
  return {};
} catch (const std::exception&) {
  return no_memory();
}

void Experts::add_up_choices(const std::byte* here, std::span<const float> weights,
                             std::byte* out) const {
  const auto choices = static_cast<std::size_t>(options_.choices);
  const RowSum sum(options_.type);
  std::vector<const std::byte*> rows;
  std::vector<float> factors;
  for (std::size_t i = 0; i < places_.size(); i += choices, out += row_bytes_) {
    rows.clear();
    factors.clear();
    for (std::size_t c = i; c < i + choices; ++c) {
      if (places_[c] == kNowhere) continue;
      rows.push_back(row_at(places_[c], sent_, at_home_.data(), here, row_bytes_));
      factors.push_back(weights.empty() ? 1.0F : weights[c]);
    }
    sum.add_up(rows, factors, options_.row_elements, out);
  }
}

}  // namespace rankine
