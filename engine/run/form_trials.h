// FormTrials chooses among the forms of a call (OpCode::choose) with equal bits. Boards are faster
// if callers write new inputs; reads in place, if lines of untouched inputs stay in caches; stores,
// if lines of unread outputs do; claims (stores that take lines over unread), if cores are far;
// stores past the caches, if the caches cannot hold the results; staging past the caches, if cores
// are far and callers write new inputs.
//
// All ranks must take the same form, or they wait in vain. They make equal calls, so they count
// alike: in fixed calls they time the form in force, and then the other forms. In the next call
// they exchange their figures: each rank publishes its own and waits for the others', whatever the
// forms wait for. Then all conclude alike from the figures of all. Trials are repeated, because
// callers change their habits and cores move: now and then, and at once if calls take another time
// than they did in the last trial.
//
// Three quarters of a form's time are the calls' own time, for which callers wait; a quarter is the
// time from call to call, which covers the caller's use of its buffers: some forms leave lines in
// other cores' caches, which delays stores that may overlap work, or let a rank run ahead. Callers
// that do much between calls keep their form, unless another one wins twice in succession.
//
// Exchanges follow one another, and each rank reads the figures of one before it publishes those of
// the next. So a rank with all figures of exchange n knows that all have read those of n - 1, whose
// place it writes next.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/collective.h"
#include "engine/base/memory.h"
#include "engine/run/machine.h"
#include "engine/run/plan.h"

namespace rankine {

// Calls of one kind and similar size have their trials and their choice in common: a class. In a
// kind, its classes have up to kTrialLeastBytes, twice as many, ..., kTrialMostBytes.
struct TrialKind {
  Collective collective = Collective::all_reduce;
  bool in_place = false;  // the plan is one for calls in place
};
inline constexpr TrialKind kTrialKinds[] = {
    {Collective::all_reduce},     {Collective::all_reduce, true},
    {Collective::all_to_all},     {Collective::all_to_all, true},
    {Collective::all_gather},     {Collective::broadcast},
    {Collective::reduce_scatter}, {Collective::reduce}};
inline constexpr std::size_t kTrialSizes = 20, kTrialLeastBytes = 128;
inline constexpr std::size_t kTrialMostBytes = kTrialLeastBytes << (kTrialSizes - 1);
inline constexpr std::size_t kTrialClasses = std::size(kTrialKinds) * kTrialSizes;

// The class of a call of M bytes; none: it makes no trials.
constexpr std::optional<std::size_t> trial_class(TrialKind kind, std::size_t bytes) {
  if (bytes > kTrialMostBytes) return std::nullopt;
  for (std::size_t k = 0; k < std::size(kTrialKinds); ++k) {
    if (kTrialKinds[k].collective != kind.collective || kTrialKinds[k].in_place != kind.in_place)
      continue;
    std::size_t size = 0;
    while (kTrialLeastBytes << size < bytes) ++size;
    return kTrialSizes * k + size;
  }
  return std::nullopt;
}

// A rank's figures of a class: the median times of each form in its last trial (0: none), for calls
// of the greatest size, and the form in force.
struct FormFigures {
  std::array<std::uint32_t, kForms> took_ns{};
  Form form = Form::posts;
};

// A rank's published figures. Zeroed at first; each word has one writer, that rank.
struct alignas(kCacheLine) FormTimes {
  // The exchanges to which this rank has brought its figures. Release: pairs with the others' wait
  // in choose() (walk.h).
  Atomic<std::uint32_t> exchanges{0};
  // Median times by form, by the exchange's last bit. Relaxed: `exchanges` publishes them.
  Atomic<std::uint32_t> took_ns[2][kForms]{};
};

// Numbers of calls. A form's calls in a trial: some bring lines to where the form leaves them; then
// come some stretches, and the mean time of a stretch counts. In short calls ranks may run ahead by
// many calls; long ones are few in a program.
struct TrialPace {
  std::uint32_t settle, stretches, calls;  // `calls`: of a stretch
  std::uint32_t watch;  // from one look at the usual time to the next; a power of two
  // From trial to trial. Trials are frequent at first and after a change, and rare later: the
  // slower forms cost time.
  std::uint32_t least, most;

  constexpr std::uint32_t timed() const { return stretches * calls; }
  constexpr std::uint32_t of_form() const { return settle + timed(); }
  // The call in which all ranks conclude, counted from 1.
  constexpr std::uint32_t concludes(int forms) const {
    return static_cast<std::uint32_t>(forms) * of_form() + 1;
  }
};
inline constexpr TrialPace kTrialPaces[] = {
    {2, 3, 16, 512, 512, 16384}, {2, 3, 3, 128, 128, 4096}, {1, 2, 1, 8, 96, 512}};
static_assert(std::ranges::all_of(kTrialPaces, [](const TrialPace& pace) {
  return pace.concludes(kForms) <= pace.least && pace.timed() < pace.watch;
}));
constexpr const TrialPace& trial_pace(std::size_t of) {
  const std::size_t bytes = kTrialLeastBytes << of % kTrialSizes;
  return kTrialPaces[bytes <= 8192 ? 0 : bytes <= std::size_t{256} << 10 ? 1 : 2];
}

// One rank's part in the trials. Used by the rank's thread only.
class FormTrials {
 public:
  // The rank's call with that number begins, at the time now_ns(). A second time, it changes
  // nothing. `mine`: what this rank publishes. True: the ranks exchange figures. Then the rank
  // calls publish(exchange()), once; when exchange() has come from all, it calls conclude().
  template <class Now, class Publish>
  bool begin_call(const TrialOf& of, std::uint64_t number, FormTimes& mine, const Now& now_ns,
                  const Publish& publish) noexcept {
    Trial& trial = trials_[of.trial_class];
    if (number == begun_) return trial.exchanges;
    begun_ = number;
    trial.exchanges = is_timed_ = false;
    if (++trial.call < trial.next) [[likely]]
      return false;
    const Pace& pace = trial_pace(of.trial_class);
    if (!go_on(trial, of, pace, now_ns)) return false;
    exchange_ = mine.exchanges.load(std::memory_order_relaxed) + 1;
    for (std::size_t form = 0; form < kForms; ++form)
      mine.took_ns[exchange_ & 1][form].store(trial.took[form], std::memory_order_relaxed);
    publish(exchange_);
    return true;
  }

  // The call ends, but for bookkeeping, if its plan has forms.
  template <class Now>
  void end_call(const Now& now_ns) noexcept {
    if (is_timed_) [[unlikely]]
      *calls_ns_ += now_ns() - call_begun_ns_;
  }

  std::uint32_t exchange() const noexcept { return exchange_; }

  // times_of(r): what rank r has published. Returns this rank's figures.
  template <class TimesOf>
  FormFigures conclude(const TrialOf& of, int ranks, const TimesOf& times_of) noexcept {
    Trial& trial = trials_[of.trial_class];
    std::array<double, kForms> took{};
    // A call takes as long as on its slowest rank: in some forms the others run ahead.
    for (Rank r = 0; r < ranks; ++r) {
      for (std::size_t form = 0; form < kForms; ++form) {
        took[form] = std::max<double>(
            took[form], times_of(r).took_ns[exchange_ & 1][form].load(std::memory_order_relaxed));
      }
    }
    if (trial.call == trial.concludes) {
      end_trial(trial, took, trial_pace(of.trial_class));
    } else {
      watch(trial, took[index(trial.form)]);
    }
    trial.next = trial.call + 1;
    return {trial.took, trial.form};
  }

  // The form of the call that has begun.
  Form form(const TrialOf& of) const noexcept {
    const Trial& trial = trials_[of.trial_class];
    return trial.call < trial.concludes
               ? tried(trial, (trial.call - 1) / trial_pace(of.trial_class).of_form())
               : trial.form;
  }

 private:
  // Another form is taken if it needs less than kWins of the time of the form in force, or twice in
  // succession less than kGains: interruptions should not move ranks to and fro.
  static constexpr double kWins = 0.85, kGains = 0.97;
  static constexpr double kMostSlower = 16;
  static constexpr double kCallShare = 0.75;  // of a form's time
  // A change of the usual time by this factor starts a trial; by a larger one, if trials were
  // started in vain.
  static constexpr float kChange = 1.25F, kMostChange = 3;
  static constexpr double kMostNs = 0xffffffff;
  // A call takes about as long as it takes to move this many bytes, and its data.
  static constexpr double kCallBytes = 4096;

  using Pace = TrialPace;
  struct Trial {
    std::uint32_t call = 0;       // since the last trial began, from 1
    std::uint32_t next = 0;       // the next call that is timed, or ends a stretch, or exchanges
    std::uint32_t between = 0;    // the calls from trial to trial; 0: no call yet
    std::uint32_t pause = 0;      // `between`, without a rival
    std::uint32_t concludes = 0;  // the call that ends the trial; 0: none yet
    Form form = Form::posts;      // in force, outside trials
    std::optional<Form> rival{};  // won the last trial by little
    std::uint8_t tried = 0;       // 1 << each form of the trial
    bool exchanges = false;       // the last call exchanges figures
    bool is_surprised = false;    // the usual time has changed
    bool lacks_form = false;      // a call of the stretch took another form
    float usual_ns = 0;           // 0: unknown
    float change = kChange;
    std::int64_t begun_ns = 0;          // of the stretch
    std::int64_t calls_ns = 0;          // of the stretch: in calls
    double work = 0;                    // of the stretch, in bytes
    std::array<std::uint32_t, 3> ns{};  // of stretches
    std::array<std::uint32_t, kForms> took{};
  };

  // The position of the trial's call among a form's timed calls; a larger number: not timed.
  static std::uint32_t position(const Trial& trial, const Pace& pace) noexcept {
    if (trial.call < trial.concludes) return (trial.call - 1) % pace.of_form() - pace.settle;
    return (trial.call - trial.concludes) % pace.watch - (pace.watch - pace.timed());
  }

  static constexpr std::size_t index(Form form) { return static_cast<std::size_t>(form); }
  static constexpr std::uint8_t bit(Form form) { return std::uint8_t(1U << index(form)); }

  // The trial's form with number `i`; 0: the one in force.
  static Form tried(const Trial& trial, std::uint32_t i) noexcept {
    if (i == 0) return trial.form;
    unsigned others = trial.tried & ~bit(trial.form);
    while (--i > 0) others &= others - 1;
    return static_cast<Form>(std::countr_zero(others));
  }

  // The call trial.next begins. True: the ranks exchange figures.
  template <class Now>
  [[gnu::noinline]] bool go_on(Trial& trial, const TrialOf& of, const Pace& pace,
                               const Now& now_ns) noexcept {
    --trial.call;
    const std::uint32_t last = position(trial, pace);
    const bool was_timed = trial.call > 0 && last < pace.timed();
    const Form last_form = form(of);
    ++trial.call;
    std::int64_t now = 0;
    if (trial.call > trial.between) {
      begin_trial(trial, of, pace);
    } else if (was_timed && (last + 1) % pace.calls == 0) {
      time(trial, of, last_form, last / pace.calls, pace, now = now_ns());
    }
    const std::uint32_t position_now = position(trial, pace);
    is_timed_ = position_now < pace.timed();
    if (is_timed_) {
      call_begun_ns_ = now != 0 ? now : now_ns();
      calls_ns_ = &trial.calls_ns;
    }
    if (is_timed_ && position_now % pace.calls == 0) {
      trial.begun_ns = call_begun_ns_;
      trial.calls_ns = 0;
      trial.work = 0;
      trial.lacks_form = false;
    }
    trial.work += of.bytes + kCallBytes;
    trial.lacks_form |= trial.call < trial.concludes && !of.has(form(of));
    trial.exchanges =
        trial.call >= trial.concludes && (trial.call - trial.concludes) % pace.watch == 0;
    // Outside a trial: until the timed calls before the next look.
    trial.next = trial.call + 1;
    if (trial.call > trial.concludes && !is_timed_)
      trial.next = std::min(trial.call - position_now, trial.between + 1);
    return trial.exchanges;
  }

  void begin_trial(Trial& trial, const TrialOf& of, const Pace& pace) noexcept {
    trial.call = 1;
    if (trial.between == 0) {  // the first call of this class
      trial.between = trial.pause = pace.least;
      trial.form = of.first;
      // A size seen seldom profits from the trials of similar sizes.
      if (const Trial* like = neighbour(of.trial_class)) {
        trial.form = like->form;
        return;
      }
    }
    if (!of.has(trial.form)) trial.form = of.first;
    trial.tried = of.forms;
    if (trial.rival && of.has(*trial.rival)) trial.tried = bit(trial.form) | bit(*trial.rival);
    trial.concludes = pace.concludes(std::popcount(trial.tried));
    trial.took = {};
  }

  // A class of the same kind and similar size that has made calls.
  const Trial* neighbour(std::size_t of) const noexcept {
    for (const std::size_t distance : {1U, 2U}) {
      for (const std::size_t other : {of - distance, of + distance}) {
        if (other < kTrialClasses && other / kTrialSizes == of / kTrialSizes &&
            trials_[other].between != 0)
          return &trials_[other];
      }
    }
    return nullptr;
  }

  // The stretch with that number has ended.
  static void time(Trial& trial, const TrialOf& of, Form form, std::uint32_t stretch,
                   const Pace& pace, std::int64_t now) noexcept {
    const double greatest = static_cast<double>(kTrialLeastBytes << of.trial_class % kTrialSizes);
    const double taken = kCallShare * static_cast<double>(trial.calls_ns) +
                         (1 - kCallShare) * static_cast<double>(now - trial.begun_ns);
    const double ns = taken * (greatest + kCallBytes) / trial.work;
    trial.ns[stretch] =
        static_cast<std::uint32_t>(trial.lacks_form ? kMostNs : std::clamp(ns, 1.0, kMostNs));
    if (stretch + 1 < pace.stretches) return;
    std::array<std::uint32_t, 3> sorted = trial.ns;
    const auto median = sorted.begin() + (pace.stretches - 1) / 2;
    std::nth_element(sorted.begin(), median, sorted.begin() + pace.stretches);
    trial.took[index(form)] = *median;
  }

  static void end_trial(Trial& trial, const std::array<double, kForms>& took,
                        const Pace& pace) noexcept {
    const double now = std::max(1.0, took[index(trial.form)]);
    Form best = trial.form;
    double others = 0;  // their times, in calls
    for (std::size_t form = 0; form < kForms; ++form) {
      if (form == index(trial.form) || took[form] == 0) continue;
      others += took[form] / now;
      if (best == trial.form || took[form] < took[index(best)]) best = static_cast<Form>(form);
    }
    const double ratio = best == trial.form ? 1 : took[index(best)] / now;
    const bool wins = ratio < kWins || (trial.rival == best && ratio < kGains);
    trial.rival.reset();
    if (wins) {
      trial.form = best;
      trial.pause = pace.least;
      trial.change = kChange;
    } else if (ratio < kGains) {
      trial.rival = best;
    } else {
      // Forms that take several times as long are tried as many times less often.
      const double most = pace.most * std::clamp(others / 2, 1.0, kMostSlower);
      trial.pause = std::min(2 * trial.pause, static_cast<std::uint32_t>(most));
      if (trial.is_surprised) trial.change = std::min(trial.change * kChange, kMostChange);
    }
    trial.is_surprised = false;
    trial.usual_ns = static_cast<float>(took[index(trial.form)]);
    trial.between = trial.rival ? pace.least : trial.pause;
  }

  static void watch(Trial& trial, double ns) noexcept {
    const auto now = static_cast<float>(ns);
    if (trial.usual_ns == 0) trial.usual_ns = now;
    trial.is_surprised = now > trial.change * trial.usual_ns || trial.change * now < trial.usual_ns;
    if (trial.is_surprised) trial.between = trial.call;  // the next call begins a trial
  }

  std::uint64_t begun_ = 0;  // the number of the last call begun
  bool is_timed_ = false;    // that call is
  std::int64_t call_begun_ns_ = 0;
  std::int64_t* calls_ns_ = nullptr;  // Trial::calls_ns of its class
  std::uint32_t exchange_ = 0;        // the last one
  std::array<Trial, kTrialClasses> trials_;
};

}  // namespace rankine
