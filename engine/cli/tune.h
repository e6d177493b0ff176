// Regret: the time of what was chosen over the time of the best. And the choice that will be
// regretted least.
//
// Contenders are timed in turns, round after round, by several protocols (warm or fresh, apart or
// in place). Winners change with the protocol, and from round to round as cores move, so the choice
// is the contender whose worst regret is the least.
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

inline constexpr double kNotTimed = std::numeric_limits<double>::infinity();

// Seconds of every contender in one context; kNotTimed where it did not run. At least one did.
using Context = std::vector<double>;

// times[contender] over the least of them; kNotTimed stays.
double regret_in(const Context& times, std::size_t contender);
// The worst regret in rounds of one protocol that may be believed: of three rounds or more the
// worst quarter, at least one, is left aside, as an interruption hits one contender in one round. 1
// without rounds.
double lasting_regret(const std::vector<Context>& rounds, std::size_t contender);

// The contender whose worst lasting regret over the protocols is the least. `standard`, what is
// taken without measuring, stays where noise may be all there is: unless its own is more than
// `margin` times as large, and it is so much slower in the median round of its worst protocol too,
// and where there are fewer than kFewestRounds.
struct Choice {
  std::size_t contender = 0;
  double regret = 1;  // its worst lasting one
};
inline constexpr std::size_t kFewestRounds = 3;
Choice robust_choice(std::span<const std::vector<Context>> protocols, std::size_t contenders,
                     std::size_t standard, double margin = 1.1);

// The median of each contender over contexts of one protocol, contexts in which it did not run left
// aside; kNotTimed where there are none.
Context median_over(const std::vector<Context>& contexts);

// Regrets of many choices together.
struct RegretSummary {
  std::size_t samples = 0;
  double geometric_mean = 1, max = 1;
  std::size_t worst = 0;  // index of the first that has the maximum
};
// Requires positive, finite values.
RegretSummary summarise_regrets(const std::vector<double>& regrets);

// Contests: all algorithms of a collective at one size, measured in turns.
//
// A round of a contest goes over all its contenders, warm and fresh, apart and in place, one after
// the other: what changes slowly on the machine falls on all of them alike. Rounds of different
// contests take turns, so those of one see the machine at different times.

enum class Protocol : unsigned char { warm_apart, warm_in_place, fresh_apart, fresh_in_place };
inline constexpr std::size_t kProtocols = 4;
std::string_view name_of(Protocol protocol);
// Whether it has a say in the choice: not how an all-reduce fares in place, where calls follow the
// default and not the table (choose.cc).
bool counts(Protocol protocol, Collective collective);

struct Contest {
  Collective collective = Collective::all_reduce;
  int ranks = 2;
  std::size_t bytes = 0;                        // M, as the call made of it has it
  std::vector<const Algorithm*> contenders{};   // no two with the same schedule
  std::vector<bool> running{};                  // of each: still measured
  std::vector<Context> contexts[kProtocols]{};  // one per round; none where it does not count
  std::size_t standard = 0;                     // the contender that stands for default_algorithm()

  std::size_t rounds() const { return contexts[0].size(); }
  // The contender with the schedule of that algorithm; contenders.size() where it cannot run.
  std::size_t stands_for(const Algorithm& algorithm) const;

  std::vector<std::string> schedules{};  // of each contender, to tell them apart
};

// Contests of a collective for each size, with every algorithm that takes so many ranks; those
// whose schedules are the same transfer by transfer as an earlier one's are left out. f32, sum,
// root 0. `costs` say what the default is. Collectives with one algorithm only give none.
std::vector<Contest> make_contests(Collective collective, int ranks,
                                   const std::vector<std::size_t>& sizes, const Costs& costs = {});
// What the contest measures, without an algorithm.
Call call_of(const Contest& contest);

// After a first, quick round: only the `most` contenders with the least regrets go on, those that
// came within `near` of the best in some protocol; the default and `keep` do in any case. What was
// measured is forgotten.
void keep_the_best(Contest& contest, std::size_t most, double near,
                   const Algorithm* keep = nullptr);

using Clock = std::chrono::steady_clock;

// Measures up to `rounds` rounds of each (quick: with few samples) until `deadline` has passed or a
// signal interrupts it (interrupt.h); a round that was begun then does not count.
// Next is always the contest that has taken the least time so far: short calls get their rounds
// even where long ones would fill the time. progress(contest, round) is called before each round.
// Errors: those of the calls, and wrong results.
Status race(Workbench& workbench, std::vector<Contest>& contests, int rounds, bool quick,
            Clock::time_point deadline, const std::function<void(const Contest&, int)>& progress);

// What a hop and an addition cost on this machine: measured, and fitted by least squares.
//
// The model is T = hops alpha + moved beta + added gamma. Three kinds of points tell the three
// apart: a vector that goes to and fro between two ranks (1 hop, M moved), a reduce in place whose
// root alternates (1 hop, M moved, M added), and the kernel alone on one core (M added). To and
// fro, every byte was written by the other core just before, and no call can begin before the one
// before has ended: half a round trip is one way.

struct CostPoint {
  std::string what;  // "to and fro"
  std::size_t bytes = 0;
  double hops = 0, moved = 0, added = 0;
  double seconds = 0;
};

struct CostFit {
  CostModel model;
  std::vector<double> residuals;  // of each point: model over measured, less 1
  double rms = 0;                 // of these
};

// Least squares of the relative residuals, so that 8 bytes count as much as a megabyte. Errors:
// seconds that are not positive, and points that do not tell the three apart.
Result<CostFit> fit_costs(const std::vector<CostPoint>& points);

// Measures with a team of two ranks, for about so many seconds, and less once a signal has
// interrupted it (interrupt.h). Errors: those of its calls.
Result<std::vector<CostPoint>> measure_costs(Team& team, double seconds = 2);

// Which of this machine's costs (engine/base/costs.h) differ from the defaults.
//
// A field is a border between two forms of a call: up to it one is taken, beyond it the other. So
// each field has a trial: the same calls with the least and with the greatest value allowed, that
// is all in one form and all in the other, at sizes from well below the border to well above. The
// border that would have made all of them fastest, warm and fresh, is the field's new value, if it
// gains more than kWorthIt over the old one. Forms take turns, so that what changes slowly on the
// machine falls on both alike; fields are tried one after the other, each with those before it
// settled.

// One size of a trial: how long its calls take in either form.
struct FormTimes {
  std::size_t border = 0;  // the least value of the field with which the size takes the first form
  double first = 0, second = 0;  // seconds: up to the field, beyond it
};

// The field's value that makes all sizes together fastest (geometric mean), and the time with
// `before` over the time with it. Of values that are as good as each other the one nearest to
// `before`. Sizes in ascending order of their borders, at least one.
struct Border {
  std::size_t value = 0;
  double gain = 1;
};
Border best_border(std::span<const FormTimes> sizes, std::size_t before);

inline constexpr double kWorthIt = 1.03;

struct CostSearch {
  std::chrono::steady_clock::time_point deadline;
  int rounds = 5;  // measurements of each size in each form, of which the median counts
  std::span<const Collective> collectives{};  // whose calls are tried; empty: all
  // Called before each trial.
  std::function<void(std::string_view field)> progress = [](std::string_view) {};
};

struct CostFinding {
  const CostField* field = nullptr;
  std::size_t before = 0, after = 0;  // equal: the field stays
  double gain = 1;
  std::vector<FormTimes> sizes{};
};

// Tries what can be tried among so many ranks, from `costs` on, until the deadline has passed or a
// signal interrupts it (interrupt.h): a field whose trial was not done then is not among the
// findings. Errors: those of teams and calls.
Result<std::vector<CostFinding>> search_costs(const Costs& costs, int ranks,
                                              const CostSearch& search);

// With what they found.
Costs settled(Costs costs, std::span<const CostFinding> findings);

// What trials say of c_real: the times of contests, over what the model says of their calls.

// For one thread.
class CRealTrials {
 public:
  // Times are seconds on `machine` (machine_fabric()); calls have as many segments as `costs` say.
  CRealTrials(Fabric machine, const Costs& costs) : machine_(std::move(machine)), costs_(costs) {}

  // All rounds that a contest has now. May be called again with later rounds of it.
  void add(const Contest& contest);

  // Of every algorithm that was timed both where alphas make up half of the model's time or more
  // and where they make up less: the medians over the sizes and protocols of either regime, of the
  // medians over the rounds. What the model has no time for, and what is beyond CReal's bounds, is
  // left out. Errors: those of predict_on_threads().
  Result<std::vector<MeasuredCReal>> measured() const;

 private:
  using Question = std::tuple<Collective, int, std::size_t, const Algorithm*>;  // ranks, bytes

  Fabric machine_;
  Costs costs_;
  std::map<Question, std::vector<double>[kProtocols]> seconds_;
};

// A line per algorithm, under one that names the columns; nothing where there are none.
std::string table_of(const std::vector<MeasuredCReal>& measured);

// What tune finds out: contests measured, a choice made in each, and that choice measured again.

// A contest that is over: what would have been taken, and what that costs.
struct Verdict {
  Contest contest{};  // contexts: those measured after the choice
  const Algorithm* standard = nullptr;
  const Algorithm* table = nullptr;  // nullptr: the table is silent here, so the default stands
  double chosen_with = 1;            // the worst regret seen while choosing
  // By protocol, where the contest was measured: times' medians, and the regrets of the two.
  std::vector<Context> medians{};
  std::vector<double> standard_regrets{}, table_regrets{};

  // A median of fewer rounds says little.
  bool judged() const { return contest.rounds() >= kFewestRounds; }
};

struct TunePlan {
  std::vector<int> ranks;
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;
  int rounds;         // of choosing and of judging, at most
  bool until_budget;  // and no longer than there is time
  Costs costs{};      // that calls are made with
};

// Measures among so many ranks for `seconds` and appends what comes of it. With a table its choices
// are judged; without one they are made. All rounds go to `trials`, or nowhere where that is
// nullptr. Errors: those of the calls, and memory that is not there.
Status reach_verdicts(const TunePlan& plan, int ranks, const TuningTable* table, double seconds,
                      Progress& progress, std::vector<Verdict>& verdicts, CRealTrials* trials);

// What tune prints: the fitted model, regrets by collective and by size, as text and as JSON.

struct TuneFindings {
  std::vector<CostPoint> points{};
  std::optional<CostFit> fit{};  // of the points; absent where a table was checked
  std::vector<CostFinding> costs{};
  std::vector<Verdict> verdicts{};
  std::vector<MeasuredCReal> c_real{};  // of the fit's model
  std::string no_c_real{};              // why there cannot be any
  std::string file{};                   // the table's
  bool written = false, complete = false;
};

// `sizes`: also a line for every size.
void print(const TuneFindings& findings, bool sizes, Console& console);
nlohmann::ordered_json to_json(const TuneFindings& findings, const MachineReport& machine);

// rankine tune: measures this machine's contenders and costs, and writes the table by which calls
// choose their algorithms from then on (engine/api/tuning/tuning.h).

struct TuneArguments {
  std::vector<int> ranks;               // empty: 2 to the usable cores
  std::vector<Collective> collectives;  // empty: all that have several algorithms
  std::size_t min_bytes = 8, max_bytes = std::size_t{64} << 20;
  int step_factor = 4;
  std::chrono::milliseconds budget{60'000};
  int rounds = 0;      // of choosing and of judging each; 0: as many as the budget allows
  bool check = false;  // measure the regret of the table that is there, and write nothing
  bool sizes = false;  // a line per size
  bool json = false;
};

Result<Exit> tune(const TuneArguments& arguments, Console& console);

Subcommand add_tune(Command tool);

}  // namespace rankine::tools
