#include "engine/api/experts.h"

#include <algorithm>
#include <cmath>
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

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kRefused = kAny;  // as the room of a rank
constexpr std::size_t kMostNumber = std::numeric_limits<std::int32_t>::max();
// Bytes that a process stages in a turn, of tokens or results.
constexpr std::size_t kStaged = std::size_t{4} << 20;

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
  if (options.row_elements < 1 || options.row_elements > kMostNumber) {
    return not_allowed("row_elements", std::to_string(options.row_elements),
                       "1 to " + std::to_string(kMostNumber));
  }
  for (const auto& [name, type] :
       {std::pair("type", options.type),
        std::pair("result_type", options.result_type.value_or(options.type))}) {
    if (!is_float(type) || type == DataType::f64) {
      return not_allowed(name, name_of(type), "f32, f16, bf16, f8e4m3 and f8e5m2");
    }
  }
  return {};
}

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
      self_(static_cast<std::size_t>(me.rank())),
      ranks_(static_cast<std::size_t>(me.ranks())),
      experts_(static_cast<std::size_t>(options.experts)),
      here_(experts_ / ranks_),
      choices_(static_cast<std::size_t>(options.choices)),
      row_bytes_(options.row_elements * size_of(options.type)),
      turn_tokens_(kMostNumber),
      stages_(me.state_->shared->processes != nullptr),
      fingerprint_(0),
      starts_(experts_),
      counts_(here_),
      next_(experts_),
      all_shown_(ranks_),
      sources_(choices_),
      weights_(choices_) {
  const DataType results = options.result_type.value_or(options.type);
  options_.result_type = results;
  result_bytes_ = options.row_elements * size_of(results);
  sum_ = find_weighted(results, best_isa());
  for (const std::size_t n :
       {options.capacity, options.row_elements, static_cast<std::size_t>(options.type),
        static_cast<std::size_t>(results)}) {
    fingerprint_ = mixed(fingerprint_, n);
  }
  if (!stages_) return;
  const std::size_t results_of_token =
      choices_ * std::max<std::size_t>(1, ranks_ - 1) * result_bytes_;
  turn_tokens_ = std::max<std::size_t>(
      1, kStaged / std::max({row_bytes_, results_of_token, choices_ * sizeof(std::uint32_t)}));
  me.state_->lends = true;  // failed calls wait until no process reads this rank's memory
}

Status Experts::check(std::string_view name, const Buffer& buffer, DataType type,
                      std::size_t rows) const {
  if (buffer.type != type) {
    return invalid_argument(std::string(name) + " has elements of " +
                            std::string(name_of(buffer.type)) + "; allowed is " +
                            std::string(name_of(type)) + ", as in ExpertsOptions");
  }
  if (rows != kAny && buffer.count != rows * options_.row_elements) {
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
  if (indices.size() % choices_ != 0 || indices.size() > kMostNumber) {
    return invalid_argument("indices has " + std::to_string(indices.size()) +
                            " elements; allowed are multiples of " + std::to_string(choices_) +
                            ", the experts per token, below 2^31");
  }
  const std::size_t count = indices.size() / choices_;
  if (Status status = check("tokens", tokens, options_.type, count); !status.ok()) return status;
  if (Status status = check("rows", rows, options_.type, kAny); !status.ok()) return status;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= -1 && indices[i] < options_.experts) continue;
    return not_allowed("indices[" + std::to_string(i) + "]", std::to_string(indices[i]),
                       "0 to " + std::to_string(experts_ - 1) + ", and -1 for no expert");
  }
  return {};
}

Experts::Shown Experts::shown_at(std::uintptr_t address) const {
  auto* const words = reinterpret_cast<std::uintptr_t*>(address);
  auto* const numbers = reinterpret_cast<std::uint32_t*>(words + 1 + experts_);
  return {words, words + 1, numbers, numbers + experts_ + 1};
}

// Counts this rank's rows for each expert.
void Experts::number_choices(std::span<const std::int32_t> indices) {
  places_.resize(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    places_[i] = {indices[i], 0};
    if (indices[i] < 0) continue;
    places_[i].number =
        static_cast<std::uint32_t>(rows_of(self_, static_cast<std::size_t>(indices[i]))++);
  }
}

// All ranks learn the rows of all ranks for each expert, and get the same decision.
Status Experts::exchange_counts(std::size_t room, bool is_wrong) {
  rows_of(self_, experts_) = is_wrong ? kRefused : room;
  rows_of(self_, experts_ + 1) = (tokens() + turn_tokens_ - 1) / turn_tokens_;
  rows_of(self_, experts_ + 2) = reinterpret_cast<std::uintptr_t>(shown_.span().data());
  Status status = make({.collective = Collective::all_gather,
                        .in = &rows_of(self_, 0),
                        .out = table_.data(),
                        .count = experts_ + 3,
                        .type = DataType::u64});
  if (!status.ok() || is_wrong) return status;
  turns_ = 0;
  for (std::size_t r = 0; r < ranks_; ++r) {
    if (rows_of(r, experts_) == kRefused) {
      return invalid_argument("rank " + std::to_string(r) +
                              " has refused its arguments, so no rank sends rows; its error names "
                              "the argument: correct it, and let all ranks call again");
    }
    turns_ = std::max(turns_, rows_of(r, experts_ + 1));
    all_shown_[r] = shown_at(rows_of(r, experts_ + 2));
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
  for (std::size_t to = 0; to < ranks_; ++to) {
    std::size_t arriving = 0;
    for (std::size_t from = 0; from < ranks_; ++from) {
      for (std::size_t e = to * here_; e < (to + 1) * here_; ++e) arriving += rows_of(from, e);
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

// Finds the places of arriving rows, and drops the choices beyond the limits.
void Experts::place() {
  std::size_t at = 0;
  for (std::size_t e = 0; e < here_; ++e) {
    counts_[e] = 0;
    for (std::size_t r = 0; r < ranks_; ++r) {
      starts_[r * here_ + e] = at + counts_[e];
      counts_[e] += rows_of(r, self_ * here_ + e);
    }
    at += counts_[e];
  }
  taken_.assign((turns_ + 1) * experts_, 0);
  dropped_.clear();
  dropped_.reserve(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.expert < 0 || place.number < rows_of(self_, static_cast<std::size_t>(place.expert))) {
      continue;
    }
    dropped_.push_back(i);
    place.expert = -1;
  }
}

// Lists the turn's choices by expert.
Status Experts::show_tokens(std::size_t turn, const std::byte* tokens) {
  const std::size_t begin = std::min(turn * turn_tokens_, this->tokens());
  const std::size_t end = std::min(begin + turn_tokens_, this->tokens());
  const std::size_t bytes = (end - begin) * row_bytes_;
  if (turn == 0) {
    const std::size_t numbers = experts_ + 1 + (end - begin) * choices_;
    Status status = make_room(
        shown_, (1 + experts_) * sizeof(std::uintptr_t) + numbers * sizeof(std::uint32_t));
    if (!status.ok()) return status;
  }
  const Shown mine = shown_at(reinterpret_cast<std::uintptr_t>(shown_.span().data()));
  tokens += begin * row_bytes_;
  if (!is_in_reach(tokens, bytes)) {
    if (Status status = make_room(staged_, bytes); !status.ok()) return status;
    copy_bytes(staged_.span().data(), tokens, bytes);
    tokens = staged_.span().data();
  }
  *mine.tokens = reinterpret_cast<std::uintptr_t>(tokens);
  const std::span<const Place> chosen =
      std::span(places_).subspan(begin * choices_, (end - begin) * choices_);
  std::fill(next_.begin(), next_.end(), 0);
  for (const Place& place : chosen) {
    if (place.expert >= 0) ++next_[static_cast<std::size_t>(place.expert)];
  }
  std::uint32_t at = 0;
  for (std::size_t e = 0; e < experts_; ++e) {
    mine.first[e] = at;
    at += std::exchange(next_[e], at);
  }
  mine.first[experts_] = at;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].expert < 0) continue;
    mine.chosen[next_[static_cast<std::size_t>(chosen[i].expert)]++] =
        static_cast<std::uint32_t>(i / choices_);
  }
  return {};
}

// Copies the turn's rows for this rank's experts to their places.
void Experts::gather(std::size_t turn, std::byte* rows) {
  for (std::size_t e = 0; e < here_; ++e) {
    const std::size_t expert = self_ * here_ + e;
    for (std::size_t r = 0; r < ranks_; ++r) {
      const Shown& from = all_shown_[r];
      const std::size_t at = turn * experts_ + r * here_ + e, taken = taken_[at];
      // Rows beyond the capacity are shown, too.
      const std::size_t n = std::min<std::size_t>(from.first[expert + 1] - from.first[expert],
                                                  rows_of(r, expert) - taken);
      taken_[at + experts_] = taken + n;
      const auto* const tokens = reinterpret_cast<const std::byte*>(*from.tokens);
      const std::uint32_t* const chosen = from.chosen + from.first[expert];
      std::byte* const to = rows + (starts_[r * here_ + e] + taken) * row_bytes_;
      for (std::size_t i = 0; i < n; ++i) {
        copy_bytes(to + i * row_bytes_, tokens + chosen[i] * row_bytes_, row_bytes_);
      }
    }
  }
}

Status Experts::show_results(std::size_t turn, const std::byte* results) {
  const Shown mine = shown_at(reinterpret_cast<std::uintptr_t>(shown_.span().data()));
  const std::size_t *const taken = &taken_[turn * experts_], *const end = taken + experts_;
  const std::size_t arrived = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
  const bool in_reach = is_in_reach(results, arrived * result_bytes_);
  std::byte* to = nullptr;
  if (!in_reach) {
    const std::size_t rows = std::accumulate(end, end + experts_, std::size_t{0}) -
                             std::accumulate(taken, end, std::size_t{0});
    if (Status status = make_room(staged_, rows * result_bytes_); !status.ok()) return status;
    to = staged_.span().data();
  }
  for (std::size_t i = 0; i < experts_; ++i) {
    const std::byte* first = results + starts_[i] * result_bytes_;
    const std::size_t before = taken[i] * result_bytes_,
                      bytes = (end[i] - taken[i]) * result_bytes_;
    mine.results[i] = reinterpret_cast<std::uintptr_t>(first);
    if (in_reach || i / here_ == self_) continue;
    copy_bytes(to, first + before, bytes);
    mine.results[i] = reinterpret_cast<std::uintptr_t>(to) - before;
    to += bytes;
  }
  return {};
}

// Adds up the turn's results, token by token.
void Experts::add_up(std::size_t turn, std::span<const float> weights, std::byte* out) {
  const std::size_t begin = std::min(turn * turn_tokens_, tokens());
  const std::size_t end = std::min(begin + turn_tokens_, tokens());
  for (std::size_t t = begin; t < end; ++t) {
    std::size_t n = 0;
    for (std::size_t i = t * choices_; i < (t + 1) * choices_; ++i) {
      if (places_[i].expert < 0) continue;
      const auto expert = static_cast<std::size_t>(places_[i].expert);
      const std::uintptr_t first =
          all_shown_[expert / here_].results[self_ * here_ + expert % here_];
      sources_[n] = reinterpret_cast<const void*>(first + places_[i].number * result_bytes_);
      const float weight = weights.empty() ? 1.0F : weights[i];
      weights_[n++] = std::isnan(weight) ? std::numeric_limits<float>::quiet_NaN() : weight;
    }
    sum_(out + t * result_bytes_, sources_.data(), weights_.data(), static_cast<int>(n),
         options_.row_elements);
  }
}

// After an error this waits until no rank reads this rank's memory.
Status Experts::make(const Call& call, RoundObserver* observer) {
  Call mine = call;
  mine.options.tag = fingerprint_;
  Status status = observer == nullptr ? me_->call(mine) : me_->call(mine, *observer);
  return status.ok() || goes_on(status.code()) ? status : me_->state_->broken();
}

Status Experts::meet() {
  std::uint32_t in = 0, out = 0;
  return make(barrier_of(in, out, {}));
}

// Makes a barrier, with the work inside the call: other ranks wait for it, and so does an error.
template <class Work>
Status Experts::meet(const Work& work) {
  struct Before : RoundObserver {
    explicit Before(const Work& work_) : work(work_) {}
    bool before_round(int k) noexcept override {
      if (k == 0) work();
      return true;
    }
    const Work& work;
  } before(work);
  if (ranks_ == 1) work();  // a call without rounds
  std::uint32_t in = 0, out = 0;
  // A direct barrier reads words of ranks that have not begun a round.
  return make(barrier_of(in, out, {.transport = Transport::mailbox}), &before);
}

Status Experts::take_time(bool back) {
  if (me_->state_->clock == nullptr) return {};
  std::vector<std::size_t> pairs(ranks_ * ranks_);
  for (std::size_t r = 0; r < ranks_; ++r) {
    for (std::size_t e = 0; e < experts_; ++e) {
      const std::size_t owner = e / here_;
      if (owner != r) {
        pairs[back ? owner * ranks_ + r : r * ranks_ + owner] +=
            rows_of(r, e) * options_.row_elements;
      }
    }
  }
  const DataType type = back ? *options_.result_type : options_.type;
  const std::size_t all = std::accumulate(pairs.begin(), pairs.end(), std::size_t{0});
  const std::vector<std::byte> in(all * size_of(type));
  std::vector<std::byte> out(in.size());
  return make({.collective = Collective::all_to_all,
               .in = in.data(),
               .out = out.data(),
               .type = type,
               .counts = pairs});
}

bool Experts::is_in_reach(const std::byte* from, std::size_t bytes) const {
  return !stages_ || (me_->state_->lent != nullptr && me_->state_->lent->holds(from, bytes));
}

Status Experts::make_room(Payload<std::byte>& memory, std::size_t bytes) {
  const std::size_t size = memory.span().size();
  if (bytes <= size) return {};
  memory = {};
  auto more = me_->allocate<std::byte>(std::max(bytes, 2 * size));
  if (!more.ok()) return me_->give_up(more.status());
  memory = std::move(*more);
  return {};
}

Status Experts::no_memory() const {
  static_cast<void>(me_->give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for the choices of rank " + std::to_string(me_->rank());
  })));
  return me_->state_->broken();
}

Status Experts::may_run(std::string_view call) const {
  if (me_->state_->shared->forked()) return forked_status();
  if (!me_->state_->progress_engine->in_group()) return {};
  return invalid_argument(std::string(call) + ": a group() is open; call it outside of groups");
}

Status Experts::dispatch(const Buffer& tokens, std::span<const std::int32_t> indices,
                         const Buffer& rows) try {
  if (Status status = may_run("dispatch"); !status.ok()) return status;
  is_open_ = false;
  Status wrong = check_dispatch(tokens, indices, rows);
  if (!wrong.ok()) indices = {};
  table_.assign(ranks_ * (experts_ + 3), 0);
  number_choices(indices);
  const auto* const sent = static_cast<const std::byte*>(tokens.elements);
  Status status = show_tokens(0, sent);
  if (status.ok()) {
    status = exchange_counts(rows.count / options_.row_elements, !wrong.ok());
  }
  if (!wrong.ok()) return wrong;
  if (!status.ok()) return status;
  place();
  for (std::size_t turn = 0; turn < turns_ && status.ok(); ++turn) {
    if (turn > 0) {
      status = show_tokens(turn, sent);
      if (status.ok()) status = meet();
      if (!status.ok()) return status;
    }
    status = meet([&] { gather(turn, static_cast<std::byte*>(rows.elements)); });
  }
  if (status.ok()) status = take_time(false);
  is_open_ = status.ok();
  return status;
} catch (const std::exception&) {
  return no_memory();
}

Status Experts::combine(const Buffer& results, std::span<const float> weights,
                        const Buffer& out) try {
  if (Status status = may_run("combine"); !status.ok()) return status;
  if (!is_open_) {
    return invalid_argument("combine: no rows are out; the latest dispatch() must have succeeded");
  }
  const std::size_t arrived = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
  const DataType type = *options_.result_type;
  if (Status status = check("results", results, type, arrived); !status.ok()) return status;
  if (Status status = check("out", out, type, tokens()); !status.ok()) return status;
  if (!weights.empty() && weights.size() != places_.size()) {
    return invalid_argument("weights has " + std::to_string(weights.size()) +
                            " elements; allowed are " + std::to_string(places_.size()) +
                            ", as in indices, or none");
  }
  is_open_ = false;
  Status status;
  for (std::size_t turn = 0; turn < turns_ && status.ok(); ++turn) {
    status = show_results(turn, static_cast<const std::byte*>(results.elements));
    if (status.ok()) status = meet();
    if (!status.ok()) return status;
    status = meet([&] { add_up(turn, weights, static_cast<std::byte*>(out.elements)); });
  }
  return status.ok() ? take_time(true) : status;
} catch (const std::exception&) {
  return no_memory();
}

}  // namespace rankine
