// FormTrials chooses between two forms of a call (OpCode::choose) with equal bits. Boards are
// faster if callers write new inputs; reads in place, if lines of untouched inputs stay in caches.
//
// All ranks must take the same form, or they wait in vain. They make equal calls, so they count
// alike: in fixed calls they time the form in force, and then the other form. In the next call they
// exchange their figures: each rank publishes its own and waits for the others', whatever the forms
// wait for. Then all conclude alike from the figures of all. Trials are repeated, because callers
// change their habits and cores move.
//
// A call's time ends where the next one begins, so it covers the caller's use of the result, which
// some forms leave in other cores' caches. Callers that do much between calls keep the first form.
//
// Exchanges follow one another, and each rank reads the figures of one before it publishes those of
// the next. So a rank with all figures of exchange n knows that all have read those of n - 1, whose
// place it writes next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/collective.h"
#include "engine/base/memory.h"
#include "engine/run/machine.h"

namespace rankine {

// Calls of one kind and similar size have their trials and their choice in common: a class. In a
// kind, its classes have up to 1 KiB, 2 KiB, ..., kTrialMaxBytes.
struct TrialKind {
  Collective collective = Collective::all_reduce;
  bool in_place = false;  // the plan is one for calls in place
};
inline constexpr TrialKind kTrialKinds[] = {
    {Collective::all_reduce},     {Collective::all_reduce, true},
    {Collective::all_to_all},     {Collective::all_to_all, true},
    {Collective::all_gather},     {Collective::broadcast},
    {Collective::reduce_scatter}, {Collective::reduce}};
inline constexpr std::size_t kTrialSizes = 8;
inline constexpr std::size_t kTrialMaxBytes = std::size_t{1024} << (kTrialSizes - 1);
inline constexpr std::size_t kTrialClasses = std::size(kTrialKinds) * kTrialSizes;

// The class of a call of M bytes; none: it makes no trials.
constexpr std::optional<std::size_t> trial_class(TrialKind kind, std::size_t bytes) {
  if (bytes > kTrialMaxBytes) return std::nullopt;
  for (std::size_t k = 0; k < std::size(kTrialKinds); ++k) {
    if (kTrialKinds[k].collective != kind.collective || kTrialKinds[k].in_place != kind.in_place)
      continue;
    std::size_t size = 0;
    while ((std::size_t{1024} << size) < bytes) ++size;
    return kTrialSizes * k + size;
  }
  return std::nullopt;
}

// A rank's figures of a class: the median times of its last trial in each form (0: no trial yet),
// and the form in force.
struct FormFigures {
  static constexpr std::uint32_t kMostNs = 0x7fffffff;

  std::uint32_t took_ns[2]{};
  bool takes_second = false;

  constexpr std::uint64_t word() const {
    return took_ns[0] | std::uint64_t{took_ns[1]} << 32 | std::uint64_t{takes_second} << 63;
  }
  static constexpr FormFigures of(std::uint64_t word) {
    return {{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32) & kMostNs},
            word >> 63 != 0};
  }
};

// A rank's published figures. Zeroed at first; each word has one writer, that rank.
struct alignas(kCacheLine) FormTimes {
  // The exchanges to which this rank has brought its figures. Release: pairs with the others' wait
  // in choose() (walk.h).
  Atomic<std::uint32_t> exchanges{0};
  // FormFigures::word(), by the exchange's last bit. Relaxed: `exchanges` publishes them.
  alignas(kCacheLine) Atomic<std::uint64_t> figures[2]{};
};

// One rank's part in the trials. Used by the rank's thread only.
class FormTrials {
 public:
  // A trial of a form: calls that bring the lines to where this form leaves them, and timed calls.
  static constexpr std::uint32_t kSettle = 2, kTimed = 5, kTrial = kSettle + kTimed;
  // The call in which all ranks conclude, counted from 1 in each interval between trials.
  static constexpr std::uint32_t kConcludes = 2 * kTrial + 1;
  // Trials are frequent at first and after a change, and rare later: the slower form costs time.
  static constexpr std::uint32_t kLeastBetween = 64, kMostBetween = 1024;
  static_assert(kConcludes <= kLeastBetween);

  // The rank's call with that number begins, of that class, at the time now_ns(). A second time, it
  // changes nothing. `mine`: what this rank publishes. True: the call ends a trial. Then the rank
  // calls publish(exchange()), once; when exchange() has come from all, it calls conclude().
  template <class Now, class Publish>
  bool begin_call(std::size_t of, std::uint64_t number, FormTimes& mine, const Now& now_ns,
                  const Publish& publish) noexcept {
    Trial& trial = trials_[of];
    if (number == begun_) return trial.call == kConcludes;
    begun_ = number;
    if (++trial.call > trial.between) trial.call = 1;
    if (trial.call > kConcludes) return false;
    const std::int64_t now = now_ns();
    const std::uint32_t before = trial.call - 1;
    if (const std::uint32_t step = (before - 1) % kTrial; before > 0 && step >= kSettle) {
      trial.ns[trial.takes_second != tries_other(before) ? 1 : 0][step - kSettle] =
          static_cast<std::uint32_t>(
              std::clamp<std::int64_t>(now - trial.begun_ns, 1, FormFigures::kMostNs));
    }
    trial.begun_ns = now;
    if (trial.call < kConcludes) return false;
    exchange_ = mine.exchanges.load(std::memory_order_relaxed) + 1;
    mine.figures[exchange_ & 1].store(
        FormFigures{{median(trial.ns[0]), median(trial.ns[1])}, trial.takes_second}.word(),
        std::memory_order_relaxed);
    publish(exchange_);
    return true;
  }

  std::uint32_t exchange() const noexcept { return exchange_; }

  // times_of(r): what rank r has published. Returns this rank's figures.
  template <class TimesOf>
  FormFigures conclude(std::size_t of, Rank rank, int ranks, const TimesOf& times_of) noexcept {
    Trial& trial = trials_[of];
    // A call takes as long as on its slowest rank: in some forms the others run ahead.
    std::array<std::uint32_t, 2> took{};
    for (Rank r = 0; r < ranks; ++r) {
      const auto told =
          FormFigures::of(times_of(r).figures[exchange_ & 1].load(std::memory_order_relaxed));
      for (std::size_t form : {0U, 1U}) took[form] = std::max(took[form], told.took_ns[form]);
    }
    const bool wins = took[1] < (trial.takes_second ? kStays : kWins) * took[0];
    if (wins == trial.takes_second) {
      // A form that takes several times as long is tried as many times less often.
      const std::uint32_t slower = std::clamp<std::uint32_t>(
          took[wins ? 0 : 1] / std::max<std::uint32_t>(1, took[wins ? 1 : 0]), 1, kMostSlower);
      trial.between = std::min(2 * trial.between, kMostBetween * slower);
    } else {
      trial.takes_second = wins;
      trial.between = kLeastBetween;
    }
    FormFigures mine =
        FormFigures::of(times_of(rank).figures[exchange_ & 1].load(std::memory_order_relaxed));
    mine.takes_second = wins;
    return mine;
  }

  // True if the call that has begun takes the second form.
  bool takes_second(std::size_t of) const noexcept {
    return trials_[of].takes_second != tries_other(trials_[of].call);
  }

 private:
  // The second form is taken if it needs less than kWins of the first one's time, and kept below
  // kStays: interruptions should not move ranks to and fro.
  static constexpr double kWins = 0.85, kStays = 0.95;
  static constexpr std::uint32_t kMostSlower = 16;

  struct Trial {
    std::uint32_t call = 0;  // since the last trial began, from 1
    std::uint32_t between = kLeastBetween;
    bool takes_second = false;  // the form in force, outside trials
    std::int64_t begun_ns = 0;  // the last call of a trial
    std::array<std::uint32_t, kTimed> ns[2];
  };

  static constexpr bool tries_other(std::uint32_t call) {
    return call > kTrial && call <= 2 * kTrial;
  }

  static std::uint32_t median(std::array<std::uint32_t, kTimed> ns) noexcept {
    std::nth_element(ns.begin(), ns.begin() + kTimed / 2, ns.end());
    return ns[kTimed / 2];
  }

  std::uint64_t begun_ = 0;     // the number of the last call begun
  std::uint32_t exchange_ = 0;  // the last one
  std::array<Trial, kTrialClasses> trials_;
};

}  // namespace rankine
