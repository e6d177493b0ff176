#include "engine/tools/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/base/statistics.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/process_seat.h"
#include "engine/tools/read_result.h"

namespace rankine::tools {
namespace {

constexpr double kShortestBatch = 20e-6;  // seconds
constexpr int kMostCalls = 1 << 20;       // per batch

// Where the others stopped, a rank stops without a reason of its own.
Status stopped() { return {Code::aborted, "another rank stopped"}; }

}  // namespace

Trial::Trial(const Call& call, const MeasureOptions& options, const Communicator& ranks, bool apart,
             bool on_network, const std::vector<BufferPair>& buffers, BufferBytes region)
    : call_(call),
      options_(options),
      buffers_(buffers),
      ranks_(ranks.ranks()),
      apart_(apart),
      on_network_(on_network),
      goal_(natural_goal(call, ranks_)),
      layout_(natural_layout(call, ranks_)),
      shift_(static_cast<std::size_t>(options.unalign) * size_of(call.type)),
      meeting_(ranks_, ranks.wait_policy().mode == WaitPolicy::Mode::spin ? 5000 : 4),
      slots_(static_cast<std::size_t>(ranks_)) {
  for (Rank r = 0; r < ranks_; ++r) {
    if (options.perturb) {
      slots_[static_cast<std::size_t>(r)].perturbation.emplace(*options.perturb, r);
    }
    rules_.push_back(buffer_rule(layout_, goal_, r));
    stride_.input = std::max(stride_.input, round_up(rules_.back().input_bytes));
    stride_.output = std::max(stride_.output, round_up(rules_.back().output_bytes));
  }
  if (options.off_cache) {
    const BufferBytes left{region.input - std::min(shift_, region.input),
                           region.output - std::min(shift_, region.output)};
    copies_ = std::min(stride_.input > 0 ? left.input / stride_.input : left.input,
                       stride_.output > 0 ? left.output / stride_.output : left.output);
    copies_ = std::max<std::size_t>(1, copies_);
  }
  step_ = static_cast<std::size_t>(static_cast<double>(copies_) * 0.618) | 1;
  while (std::gcd(step_, copies_) != 1) step_ += 2;
  data_.emplace_back(call.collective, ranks_, call.type, call.op, 0);
  for (int i = 1; i < options.checks; ++i) {
    data_.emplace_back(call.collective, ranks_, call.type, call.op, static_cast<std::uint64_t>(i));
  }
}

template <class Last>
bool Trial::arrive(Member& me, const Last& last) {
  Told& mine = slots_[static_cast<std::size_t>(me.rank())].told;
  mine.now = seconds_now();
  mine.interrupted = interruption() != 0;
  if (!apart_) return meeting_.arrive(last);
  const auto all = gathered(me, mine);
  if (!all.ok()) return false;
  for (std::size_t r = 0; r < slots_.size(); ++r) slots_[r].told = (*all)[r];
  last();
  return !meeting_.stopped();
}

bool Trial::arrive(Member& me) {
  return arrive(me, [] {});
}

void Trial::play(Member& me, bool in_place) {
  Slot& slot = slots_[static_cast<std::size_t>(me.rank())];
  slot.status = play_one(me, slot, in_place);
  if (!slot.status.ok()) meeting_.stop();
}

Status Trial::status() const {
  for (const Slot& slot : slots_) {
    if (!slot.status.ok() && slot.status.code() != Code::aborted) return slot.status;
  }
  return interrupted_ ? Status(Code::aborted, "a signal interrupted the measurement") : Status();
}

Measured Trial::result() {
  for (Series* series : {&measured_.out_of_place, &measured_.in_place}) {
    series->seconds = summarise(series->samples);
  }
  return std::move(measured_);
}

BufferPair Trial::ends(Rank r, std::size_t turn, bool in_place) const {
  const auto i = static_cast<std::size_t>(r);
  const std::size_t copy = turn * step_ % copies_;
  BufferPair e{buffers_[i].input + copy * stride_.input + shift_,
               buffers_[i].output + copy * stride_.output + shift_};
  const BufferRule& rule = rules_[i];
  if (!in_place || !rule.may_be_in_place) return e;
  if (rule.output_bytes >= rule.input_bytes) {
    e.input = e.output + rule.in_place_offset;
  } else {
    e.output = e.input - rule.in_place_offset;
  }
  return e;
}

Status Trial::make_call(Member& me, const BufferPair& e) {
  Call call = call_;
  call.in = e.input;
  call.out = e.output;
  Slot& slot = slots_[static_cast<std::size_t>(me.rank())];
  return slot.perturbation ? me.call(call, *slot.perturbation) : me.call(call);
}

double Trial::time_of_batch() const {
  double sum = 0, least = slots_.front().told.seconds, most = least;
  for (const Slot& slot : slots_) {
    sum += slot.told.seconds;
    least = std::min(least, slot.told.seconds);
    most = std::max(most, slot.told.seconds);
  }
  switch (options_.of_ranks) {
    case RankTime::first:
      return slots_.front().told.seconds;
    case RankTime::mean:
      return sum / static_cast<double>(slots_.size());
    case RankTime::least:
      return least;
    case RankTime::most:
      break;
  }
  return most;
}

// The time of the batch that is over decides what comes next.
void Trial::after_batch(Series& series) {
  const auto is_interrupted = [](const Slot& slot) { return slot.told.interrupted; };
  if (std::any_of(slots_.begin(), slots_.end(), is_interrupted)) {
    interrupted_ = true;
    return meeting_.stop();
  }
  const double seconds = time_of_batch();
  if (!calibrated_) {
    constexpr int kMostCalibrations = 8;
    const bool fixed = options_.calls > 0 || options_.fresh;
    calibrated_ = fixed || seconds >= kShortestBatch || calls_ >= kMostCalls ||
                  ++calibrations_ >= kMostCalibrations;
    if (!calibrated_) {
      // A tenth more than needed, and no leap on the word of a single short batch.
      const double factor = std::clamp(1.1 * kShortestBatch / std::max(seconds, 1e-9), 2.0, 16.0);
      calls_ = std::min(kMostCalls, static_cast<int>(std::ceil(calls_ * factor)));
    }
    begun_ = slots_.front().told.now;
    return;
  }
  series.samples.push_back(seconds / calls_);
  if (options_.each_rank) {
    series.of_rank.resize(slots_.size());
    for (std::size_t r = 0; r < slots_.size(); ++r) {
      series.of_rank[r].push_back(slots_[r].told.seconds / calls_);
    }
  }
  const int batches = static_cast<int>(series.samples.size());
  done_ = options_.batches > 0 ? batches >= options_.batches
                               : batches >= MeasureOptions::kMostBatches ||
                                     (batches >= MeasureOptions::kFewestBatches &&
                                      slots_.front().told.now - begun_ > options_.seconds);
}

Status Trial::play_one(Member& me, Slot& slot, bool in_place) {
  const Rank r = me.rank();
  const BufferRule& rule = rules_[static_cast<std::size_t>(r)];
  Series& series = in_place ? measured_.in_place : measured_.out_of_place;
  std::size_t turn = 0;

  // The ranks meet before calls: filling takes long, and must not count as waiting.
  data_[0].fill(goal_, layout_, r, ends(r, turn, in_place).input);
  if (!arrive(me)) return stopped();
  // The model's time is that of one call by itself, which is a warm-up.
  const int warmups = on_network_ ? std::max(1, options_.warmups) : options_.warmups;
  for (int i = 0; i < warmups; ++i) {
    Status status = make_call(me, ends(r, turn++, in_place));
    if (!status.ok()) return status;
    if (i == 0) slot.told.model_seconds = me.model_time();
  }
  const bool together = arrive(me, [&] {
    if (on_network_) {
      double& seconds = series.model_seconds.emplace(0);
      for (const Slot& one : slots_) seconds = std::max(seconds, one.told.model_seconds);
    }
    calls_ = options_.fresh ? 1 : std::max(1, options_.calls);
    done_ = calibrated_ = false;
    calibrations_ = 0;
  });
  if (!together) return stopped();

  while (!done_) {
    const int calls = calls_;
    if (options_.fresh) {
      const BufferPair e = ends(r, turn, in_place);
      data_[0].fill(goal_, layout_, r, e.input);
      if (!arrive(me)) return stopped();
      const double begin = seconds_now();
      Status status = make_call(me, e);
      if (!status.ok()) return status;
      slot.sink += read_result(e.output, rule.output_bytes);
      slot.told.seconds = seconds_now() - begin;
      ++turn;
    } else {
      const double begin = seconds_now();
      for (int i = 0; i < calls; ++i) {
        Status status = make_call(me, ends(r, turn++, in_place));
        if (!status.ok()) return status;
      }
      slot.told.seconds = seconds_now() - begin;
    }
    if (!arrive(me, [&] { after_batch(series); })) return stopped();
  }

  if (r == 0) {
    Call call = call_;
    const BufferPair e = ends(r, 0, in_place);
    call.in = e.input;
    call.out = e.output;
    auto plan = me.plan_of(call);
    if (!plan.ok()) return plan.status();
    // "chain, P = 8, mailbox transport": what stands between is the algorithm's own.
    const std::size_t end = plan->find(" transport"), begin = plan->rfind(' ', end - 1) + 1;
    series.algorithm = plan->substr(0, plan->find(", "));
    series.transport = plan->substr(begin, end - begin);
  }
  slot.told.wrong = 0;
  Status status = check(me, slot, in_place, turn);
  if (!status.ok()) return status;
  const bool checked = arrive(me, [&] {
    series.calls = calls_;
    if (options_.checks == 0) return;
    series.wrong = 0;
    for (const Slot& one : slots_) series.wrong += one.told.wrong;
  });
  return checked ? Status() : stopped();
}

Status Trial::check(Member& me, Slot& slot, bool in_place, std::size_t turn) {
  const Rank r = me.rank();
  const BufferRule& rule = rules_[static_cast<std::size_t>(r)];
  const BufferPair e = ends(r, turn, in_place);
  constexpr int kSpoilt = 0xa5;
  for (int i = 0; i < options_.checks; ++i) {
    const TestData& data = data_[static_cast<std::size_t>(i)];
    if (rule.output_bytes > 0) std::memset(e.output, kSpoilt, rule.output_bytes);
    if (rule.input_bytes > 0) data.fill(goal_, layout_, r, e.input);
    if (!arrive(me)) return stopped();
    Status status = make_call(me, e);
    if (!status.ok()) return status;
    if (rule.output_bytes > 0) slot.told.wrong += data.count_wrong(goal_, layout_, r, e.output);
  }
  return {};
}

}  // namespace rankine::tools
