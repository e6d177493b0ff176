// FormTrials chooses between two forms of a call (OpCode::choose) with equal bits. Boards are
// faster if callers write new inputs; reads in place, if lines of untouched inputs stay in caches.
//
// All ranks must take the same form, or they wait in vain. They make equal calls, so they count
// alike: in fixed calls they time the form in force, and then the other form. Each rank publishes
// its figures, and in a later fixed call all conclude alike from the figures of all. Trials are
// repeated, because callers change their habits and cores move.
//
// A call's time ends where the next one begins, so it covers the caller's use of the result, which
// some forms leave in other cores' caches. Callers that do much between calls keep the first form.
//
// In each form every rank hears from all. So all ranks have begun call n - 1 before a rank begins
// call n: figures are complete before a rank reads them, and stay until all have read them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "algorithms/schedule/blocks.h"
#include "engine/base/memory.h"
#include "engine/run/machine.h"

namespace rankine {

// Calls of similar size have their trials and their choice in common: a class.
inline constexpr std::size_t kTrialClasses = 16;
inline constexpr std::size_t kTrialMaxBytes = std::size_t{128} << 10;

// The class of an all-reduce of up to 1 KiB, 2 KiB, ..., kTrialMaxBytes.
constexpr std::size_t trial_class(std::size_t bytes, bool in_place) {
  std::size_t octave = 0;
  while ((std::size_t{1024} << octave) < bytes) ++octave;
  return 2 * octave + (in_place ? 1 : 0);
}
static_assert(trial_class(kTrialMaxBytes, true) == kTrialClasses - 1);

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

// A rank publishes FormFigures::word() by class. Relaxed: the calls between the store of times and
// the others' loads order both.
struct alignas(kCacheLine) FormTimes {
  Atomic<std::uint64_t> of[kTrialClasses]{};
};

// One rank's part in the trials. Used by the rank's thread only.
class FormTrials {
 public:
  // A trial of a form: calls that bring the lines to where this form leaves them, and timed calls.
  static constexpr std::uint32_t kSettle = 2, kTimed = 5, kTrial = kSettle + kTimed;
  // The call in which all ranks conclude, counted from 1 in each interval between trials.
  static constexpr std::uint32_t kConcludes = 2 * kTrial + 2;
  // Trials are frequent at first and after a change, and rare later: the slower form costs time.
  static constexpr std::uint32_t kLeastBetween = 64, kMostBetween = 1024;
  static_assert(kConcludes <= kLeastBetween);

  // A call of that class begins, at the time now_ns(). True: it takes the second form.
  // times_of(r): the published times of rank r.
  template <class TimesOf, class Now>
  bool begin_call(std::size_t of, Rank rank, int ranks, const TimesOf& times_of,
                  const Now& now_ns) noexcept {
    Trial& trial = trials_[of];
    if (++trial.call > trial.between) trial.call = 1;
    if (trial.call > kConcludes) return trial.takes_second;
    if (trial.call == kConcludes) {
      conclude(trial, of, rank, ranks, times_of);
      return trial.takes_second;
    }
    const auto tries_other = [](std::uint32_t call) { return call > kTrial && call <= 2 * kTrial; };
    const std::int64_t now = now_ns();
    const std::uint32_t before = trial.call - 1;
    if (const std::uint32_t step = (before - 1) % kTrial; before > 0 && step >= kSettle) {
      trial.ns[trial.takes_second != tries_other(before) ? 1 : 0][step - kSettle] =
          static_cast<std::uint32_t>(
              std::clamp<std::int64_t>(now - trial.begun_ns, 1, FormFigures::kMostNs));
    }
    trial.begun_ns = now;
    if (before == 2 * kTrial) {
      const FormFigures figures{{median(trial.ns[0]), median(trial.ns[1])}, trial.takes_second};
      // Pairs with conclude().
      times_of(rank).of[of].store(figures.word(), std::memory_order_relaxed);
    }
    return trial.takes_second != tries_other(trial.call);
  }

 private:
  // The second form is taken if it needs less than kWins of the first one's time, and kept below
  // kStays: interruptions should not move ranks to and fro.
  static constexpr double kWins = 0.85, kStays = 0.95;

  struct Trial {
    std::uint32_t call = 0;  // since the last trial began, from 1
    std::uint32_t between = kLeastBetween;
    bool takes_second = false;  // the form in force, outside trials
    std::int64_t begun_ns = 0;  // the last call of a trial
    std::array<std::uint32_t, kTimed> ns[2];
  };

  static std::uint32_t median(std::array<std::uint32_t, kTimed> ns) noexcept {
    std::nth_element(ns.begin(), ns.begin() + kTimed / 2, ns.end());
    return ns[kTimed / 2];
  }

  template <class TimesOf>
  void conclude(Trial& trial, std::size_t of, Rank rank, int ranks,
                const TimesOf& times_of) noexcept {
    std::array<std::uint32_t, 2> least{FormFigures::kMostNs, FormFigures::kMostNs};
    for (Rank r = 0; r < ranks; ++r) {
      // Pairs with begin_call().
      const auto told = FormFigures::of(times_of(r).of[of].load(std::memory_order_relaxed));
      for (std::size_t form : {0U, 1U}) least[form] = std::min(least[form], told.took_ns[form]);
    }
    const bool wins = least[1] < (trial.takes_second ? kStays : kWins) * least[0];
    if (wins == trial.takes_second) {
      trial.between = std::min(2 * trial.between, kMostBetween);
      return;
    }
    trial.takes_second = wins;
    trial.between = kLeastBetween;
    // For reports. Others that read this rank's times now find the same ones.
    Atomic<std::uint64_t>& mine = times_of(rank).of[of];
    mine.store(mine.load(std::memory_order_relaxed) ^ FormFigures{{}, true}.word(),
               std::memory_order_relaxed);
  }

  std::array<Trial, kTrialClasses> trials_;
};

}  // namespace rankine
