// `rankine tune` times the algorithms and costs of this machine and writes the tuning table. This
// header declares its parts: regrets, contests, the fit of the cost model, the search for costs,
// the trials of c_real, the verdicts and the report.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/workbench.h"
#include "engine/network/fabric.h"

namespace rankine::tools {

// Regret is the time of the chosen contender over the time of the best one. Contenders are timed in
// turns, round after round, by several protocols (warm or fresh, apart or in place). Winners change
// with the protocol, and from round to round as cores move; therefore the chosen contender is the
// one with the least worst regret.

inline constexpr double kNotTimed = std::numeric_limits<double>::infinity();

// Seconds of every contender in one context; kNotTimed where it did not run. At least one did.
using Context = std::vector<double>;

// times[contender] over the least of them; kNotTimed stays.
double regret_in(const Context& times, std::size_t contender);
// The worst credible regret in the rounds of one protocol: with three rounds or more the worst
// quarter, at least one round, is left out, because an interruption hits one contender in one
// round. 1 without rounds.
double lasting_regret(const std::vector<Context>& rounds, std::size_t contender);

// Chooses the contender with the least worst lasting regret over the protocols. `standard`, the
// default without measurements, stays if noise may explain the difference: it is replaced only if
// its worst lasting regret is more than `margin` times the best one, it is also slower by that
// factor in the median round of its worst protocol, and there are at least kFewestRounds rounds.
struct Choice {
  std::size_t contender = 0;
  double regret = 1;  // its worst lasting regret
};
inline constexpr std::size_t kFewestRounds = 3;
Choice robust_choice(std::span<const std::vector<Context>> protocols, std::size_t contenders,
                     std::size_t standard, double margin = 1.1);

// The median of each contender over contexts of one protocol, without contexts in which it did not
// run; kNotTimed if it never ran.
Context median_over(const std::vector<Context>& contexts);

struct RegretSummary {
  std::size_t samples = 0;
  double geometric_mean = 1, max = 1;
  std::size_t worst = 0;  // index of the first that has the maximum
};
// Of many choices together. Requires positive, finite values.
RegretSummary summarise_regrets(const std::vector<double>& regrets);

// A contest times all algorithms of a collective at one size, in turns.
//
// A round of a contest goes over all its contenders, warm and fresh, apart and in place, one after
// the other: slow changes of the machine hit all contenders alike. Rounds of different contests
// take turns, so that the rounds of one contest see the machine at different times.

enum class Protocol : unsigned char { warm_apart, warm_in_place, fresh_apart, fresh_in_place };
inline constexpr std::size_t kProtocols = 4;
std::string_view name_of(Protocol protocol);
// True if the protocol counts for the choice. In-place times of an all-reduce do not count, because
// these calls follow the default and not the table (choose.cc).
bool counts(Protocol protocol, Collective collective);

struct Contest {
  Collective collective = Collective::all_reduce;
  int ranks = 2;
  std::size_t bytes = 0;                        // M of the contest's call
  std::vector<const Algorithm*> contenders{};   // no two with the same schedule
  std::vector<bool> running{};                  // by contender: still measured
  std::vector<Context> contexts[kProtocols]{};  // one per round; empty if the protocol does not
                                                // count
  std::size_t standard = 0;                     // the contender with the schedule of
                                                // default_algorithm()

  std::size_t rounds() const { return contexts[0].size(); }
  // The contender with the schedule of that algorithm; contenders.size() if the algorithm cannot
  // run.
  std::size_t stands_for(const Algorithm& algorithm) const;

  std::vector<std::string> schedules{};  // by contender, to tell them apart
};

// Makes a contest of a collective for each size, with every algorithm that can run on `ranks`
// ranks; algorithms with a schedule equal to an earlier one, transfer by transfer, are left out.
// f32, sum, root 0. `costs` determine the default. Collectives with a single algorithm have no
// contest.
std::vector<Contest> make_contests(Collective collective, int ranks,
                                   const std::vector<std::size_t>& sizes, const Costs& costs = {});
// The contest's call, without an algorithm.
Call call_of(const Contest& contest);

// After a first, quick round: keeps the `most` contenders with the least regrets, if they came
// within `near` of the best in some protocol, and always the default and `keep`. Discards the
// measured times.
void keep_the_best(Contest& contest, std::size_t most, double near,
                   const Algorithm* keep = nullptr);

using Clock = std::chrono::steady_clock;

// Measures up to `rounds` rounds of each contest (quick: with few samples) until `deadline` passes
// or a signal interrupts (console.h); an unfinished round does not count. The next contest is
// always the one with the least time spent so far: short calls get their rounds even if long calls
// would fill the time. progress(contest, round) is called before each round. Errors: errors of the
// calls, and wrong results.
Status race(Workbench& workbench, std::vector<Contest>& contests, int rounds, bool quick,
            Clock::time_point deadline, const std::function<void(const Contest&, int)>& progress);

// CostFit is the cost of a hop and of an addition on this machine: measured, and fitted by least
// squares.
//
// The model is T = hops alpha + moved beta + added gamma. Three kinds of points separate the three:
// a vector that goes to and fro between two ranks (1 hop, M moved), a reduce in place with
// alternating root (1 hop, M moved, M added), and the kernel alone on one core (M added). To and
// fro, every byte was written by the other core just before, and no call can begin before the
// previous one has ended: half a round trip is one way.

struct CostPoint {
  std::string what;  // "to and fro"
  std::size_t bytes = 0;
  double hops = 0, moved = 0, added = 0;
  double seconds = 0;
};

struct CostFit {
  CostModel model;
  std::vector<double> residuals;  // by point: model over measured, less 1
  double rms = 0;                 // of the residuals
};

// Least squares of the relative residuals, so that 8 bytes count as much as a megabyte. Errors:
// seconds that are not positive, and points that do not separate the three parameters.
Result<CostFit> fit_costs(const std::vector<CostPoint>& points);

// Measures with two ranks for at most about `seconds`. Errors: as Workbench::measure().
Result<std::vector<CostPoint>> measure_costs(double seconds);

// CostSearch finds the costs of this machine (engine/base/costs.h) that differ from the defaults.
//
// A field is a border between two forms of a call: calls up to the border take one form, calls
// beyond it the other. Each field has a trial: the same calls with the least and with the greatest
// allowed value, so that all calls take one form or all take the other, at sizes from well below
// the border to well above. The border that would have made all of them fastest, warm and fresh, is
// the field's new value, if it gains more than kWorthIt over the old one. Forms take turns, so that
// slow changes of the machine hit both alike; fields are tried one after the other, each with the
// earlier fields settled.

// The times of one size of a trial in both forms.
struct FormTimes {
  std::size_t border = 0;  // the least value of the field for which the size takes the first form
  double first = 0, second = 0;  // seconds: in the form up to the field, beyond it
};

// The field's value that makes all sizes together fastest (geometric mean), and the time with
// `before` over the time with that value. Among equally good values the one nearest to `before`.
// Requires at least one size; sizes in ascending order of their borders.
struct Border {
  std::size_t value = 0;
  double gain = 1;
};
Border best_border(std::span<const FormTimes> sizes, std::size_t before);

inline constexpr double kWorthIt = 1.03;

struct CostSearch {
  std::chrono::steady_clock::time_point deadline;
  int rounds = 5;  // measurements of each size in each form; the median counts
  std::span<const Collective> collectives{};  // only calls of these are tried; empty: all
  // Called before each trial.
  std::function<void(std::string_view field)> progress = [](std::string_view) {};
};

struct CostFinding {
  const CostField* field = nullptr;
  std::size_t before = 0, after = 0;  // equal: the field stays
  double gain = 1;
  std::vector<FormTimes> sizes{};
};

// Tries all fields that can be tried with `ranks` ranks, starting from `costs`, until the deadline
// passes or a signal interrupts (console.h). Fields with an unfinished trial are missing in the
// findings. Errors: errors of teams and calls.
Result<std::vector<CostFinding>> search_costs(const Costs& costs, int ranks,
                                              const CostSearch& search);

// `costs` with the values found.
Costs settled(Costs costs, std::span<const CostFinding> findings);

// Computes c_real from trials: the times of contests over the model's times of their calls. Not
// thread-safe.
class CRealTrials {
 public:
  // Times are seconds on `machine` (machine_fabric()); `costs` determine the segments of calls.
  CRealTrials(Fabric machine, const Costs& costs) : machine_(std::move(machine)), costs_(costs) {}

  // Adds all present rounds of a contest. May be called again with later rounds of that contest.
  void add(const Contest& contest);

  // c_real of every algorithm that was timed in both regimes: alphas make up at least half of the
  // model's time, or less. Each value is the median over the sizes and protocols of a regime, of
  // the medians over the rounds. Calls with a model time of 0 and values beyond CReal's bounds are
  // left out. Errors: predict_on_threads()' errors.
  Result<std::vector<MeasuredCReal>> measured() const;

 private:
  using Question = std::tuple<Collective, int, std::size_t, const Algorithm*>;  // ranks, bytes

  Fabric machine_;
  Costs costs_;
  std::map<Question, std::vector<double>[kProtocols]> seconds_;
};

// A header line with the columns' names and one line per algorithm; empty if `measured` is empty.
std::string table_of(const std::vector<MeasuredCReal>& measured);

// A finished contest with the choice and its cost.
struct Verdict {
  Contest contest{};  // contexts: measured after the choice
  const Algorithm* standard = nullptr;
  const Algorithm* table = nullptr;  // nullptr: no row of the table applies, so the default stands
  double chosen_with = 1;            // the worst regret during choosing
  // By protocol, if the contest was measured: medians of the times, and the regrets of the two.
  std::vector<Context> medians{};
  std::vector<double> standard_regrets{}, table_regrets{};

  // A median of fewer rounds is unreliable.
  bool judged() const { return contest.rounds() >= kFewestRounds; }
};

struct TuneFindings {
  std::vector<CostPoint> points{};
  std::optional<CostFit> fit{};  // of the points; absent if a table was checked
  std::vector<CostFinding> costs{};
  std::vector<Verdict> verdicts{};
  std::vector<MeasuredCReal> c_real{};  // relative to the fit's model
  std::string no_c_real{};              // the reason why c_real is missing
  std::string file{};                   // path of the table
  bool written = false, complete = false;
};

// `sizes`: print a line for every size, too.
void print(const TuneFindings& findings, bool sizes, Console& console);
nlohmann::ordered_json to_json(const TuneFindings& findings, const MachineReport& machine);

}  // namespace rankine::tools
