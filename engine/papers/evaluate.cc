#include "engine/papers/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/torus.h"
#include "engine/api/communicator.h"
#include "engine/network/fabric.h"
#include "engine/papers/condition.h"

namespace rankine::claims {
namespace {

struct Unit {
  std::string_view name, factor;
};
constexpr Unit kUnits[] = {
    {"", "1"},     {"s", "1"},    {"ms", "1e-3"},  {"us", "1e-6"},     {"ns", "1e-9"},
    {"B", "1"},    {"KB", "1e3"}, {"MB", "1e6"},   {"GB", "1e9"},      {"GB/s", "1e9"},
    {"%", "0.01"}, {"x", "1"},    {"KiB", "1024"}, {"MiB", "1048576"},
};

Value absolute(const Value& v) { return less(v, 0) ? Value() - v : v; }

class Evaluation {
 public:
  Evaluation(const Paper& paper, const Claim& claim, Runs& runs)
      : claim_(claim), runs_(runs), texts_(read_runs(claim.runs, paper.runs)) {
    if (!claim.printed.empty()) printed_ = read_printed(claim.printed);
  }

  Case compare(const Letters& letters) {
    Case out{.letters = letters, .stated = 0, .found = 0};
    out.own = met(claim_.own, letters);
    out.degenerate = met(claim_.degenerate, letters) || met(claim_.but_where, letters);
    if (!claim_.stated.empty()) out.stated = worked_out(claim_.stated, letters);
    if (!claim_.found.empty()) out.found = worked_out(claim_.found, letters);
    if (printed_) {
      const auto rounds_to_stated = [&](const Value& value) {
        return !less(printed_->tolerance, absolute(value - printed_->value));
      };
      out.agrees = (claim_.stated.empty() || rounds_to_stated(out.stated)) &&
                   (claim_.found.empty() || rounds_to_stated(out.found));
      if (claim_.found.empty()) out.found = out.stated;
      out.stated = printed_->value;
      out.allowed = printed_->tolerance;
      return out;
    }
    out.agrees = related(out);
    return out;
  }

 private:
  Value worked_out(std::string_view text, const Letters& letters) {
    return formulas::evaluate(
        text, [&](std::string_view name, std::span<const Value> arguments) -> std::optional<Value> {
          const auto found = letters.find(name);
          if (arguments.empty() && found != letters.end()) return found->second;
          return runs_.quantity(texts_, letters, name, arguments);
        });
  }

  // The truth of an expression in the letters of the set; false if one of its letters is missing.
  static bool met(std::string_view expression, const Letters& letters) {
    if (expression.empty()) return false;
    bool known = true;
    const Value value = formulas::evaluate(
        expression,
        [&](std::string_view name, std::span<const Value> arguments) -> std::optional<Value> {
          const auto found = letters.find(name);
          if (!arguments.empty()) return std::nullopt;
          known = known && found != letters.end();
          return found != letters.end() ? found->second : Value(1);
        });
    return known && !equal(value, 0);
  }

  bool related(Case& c) {
    const std::string_view sign = claim_.relation;
    if (sign == "=") return equal(c.stated, c.found);
    if (sign == "<=") return !less(c.found, c.stated);
    if (sign == ">=") return !less(c.stated, c.found);
    if (sign == "<") return less(c.stated, c.found);
    if (sign == ">") return less(c.found, c.stated);
    if (!sign.starts_with("~ ")) {
      throw std::logic_error("claim '" + claim_.id + "' has the relation '" + claim_.relation +
                             "'");
    }
    Letters more = c.letters;
    more["stated"] = c.stated;
    more["found"] = c.found;
    c.allowed = worked_out(sign.substr(2), more);
    return !less(*c.allowed, absolute(c.stated - c.found));
  }

  const Claim& claim_;
  Runs& runs_;
  std::vector<RunText> texts_;
  std::optional<Printed> printed_;
};

// The condition of the cases that hold, in words: the claim's condition if it is right, or one
// found by condition_of().
std::string where_text(const Finding& finding, const std::vector<bool>& holds) {
  const Claim& claim = *finding.claim;
  std::vector<Letters> sets;
  bool as_expected = !claim.when.empty();
  for (std::size_t i = 0; i < finding.cases.size(); ++i) {
    const Letters& letters = finding.cases[i].letters;
    sets.push_back(letters);
    as_expected = as_expected && holds[i] == !equal(formulas::evaluate(claim.when, letters), 0);
  }
  return as_expected ? claim.condition : condition_of(finding.order, sets, holds);
}

Verdict verdict_of(Finding& finding) {
  if (finding.cases.empty()) {
    finding.reason = "its algorithms exist for no parameter set";
    return Verdict::not_reproduced;
  }
  std::vector<bool> holds;
  bool proved = false;
  for (const Case& c : finding.cases) {
    holds.push_back(c.agrees);
    proved = proved || (c.agrees && !c.degenerate);
  }
  const auto agreeing = std::count(holds.begin(), holds.end(), true);
  if (agreeing == 0) return Verdict::does_not_hold;
  if (agreeing == static_cast<std::ptrdiff_t>(holds.size())) return Verdict::holds;
  (proved ? finding.condition : finding.exception) = where_text(finding, holds);
  return proved ? Verdict::holds_if : Verdict::does_not_hold;
}

// Judges a statement in each way to compute the figures. It holds if all that carry the schedules
// find it. If some find it, or the paper's formulas alone, these are its condition. If none does,
// it does not hold where the paper contradicts it by a statement that Eq. (1) finds; or else it is
// not reproduced.
void judge_statement(Finding& finding, Runs& runs) {
  using reproduce::By;
  std::string found_by, differs_by;
  int carried = 0, found = 0;
  for (int b = 0; b < reproduce::kBy; ++b) {
    const auto by = static_cast<By>(b);
    const reproduce::Outcome& outcome = runs.reproduced(finding.claim->id, by);
    finding.again.push_back(
        {by, found_text(outcome) + ": " + verdict_text(outcome), outcome.agrees});
    if (by == By::distances || (by == By::formulas && found > 0)) continue;
    carried += by == By::formulas ? 0 : 1;
    found += outcome.agrees ? 1 : 0;
    std::string& list = outcome.agrees ? found_by : differs_by;
    list += (list.empty() ? "" : " or ") + std::string(name_of(by));
  }
  const reproduce::Statement& statement = *runs.reproduced(finding.claim->id, By::eq_1).statement;
  finding.said = stated_text(statement);
  finding.measured = finding.again.front().measured;
  if (found > 0) {
    finding.verdict = found == carried ? Verdict::holds : Verdict::holds_if;
    if (found < carried) {
      finding.condition = "the figures are computed by " + found_by;
      finding.reason = "not by " + differs_by;
    }
    return;
  }
  for (const reproduce::Statement& other : reproduce::statements()) {
    if (!contradict(statement, other) || !runs.reproduced(other.id, By::eq_1).agrees) continue;
    finding.verdict = Verdict::does_not_hold;
    finding.reason = "the paper contradicts it: " + other.id;
    return;
  }
  finding.reason = "it is not found by " + differs_by;
}

// At most `most` of the sets, evenly spaced, the last one included.
std::vector<Letters> some_of(std::vector<Letters> sets, std::size_t most) {
  if (most == 0 || sets.size() <= most) return sets;
  std::vector<Letters> out;
  for (std::size_t i = 1; i <= most; ++i)
    out.push_back(std::move(sets[i * sets.size() / most - 1]));
  return out;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[kVerdicts] = {"holds", "holds_if", "does_not_hold",
                                                  "not_reproduced"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string_view name_of(Unexecuted why) {
  constexpr std::string_view kNames[kUnexecuted] = {"", "beyond_communicator", "not_reproduced"};
  return kNames[static_cast<std::size_t>(why)];
}

std::string words_of(Verdict verdict) {
  std::string words(name_of(verdict));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

Printed read_printed(std::string_view text) {
  std::string_view rest = text;
  const bool about = rest.starts_with('~');
  if (about) rest.remove_prefix(1);
  const std::size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const std::string_view number = rest.substr(0, end), unit = formulas::trimmed(rest.substr(end));
  const auto known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [unit](const Unit& each) { return each.name == unit; });
  if (number.empty() || known == std::end(kUnits)) {
    throw std::logic_error("'" + std::string(text) + "' is no printed number");
  }
  const std::size_t point = number.find('.');
  int last_place =
      point == std::string_view::npos ? 0 : -static_cast<int>(number.size() - point - 1);
  if (about && point == std::string_view::npos) {
    for (std::size_t i = number.size(); i > 1 && number[i - 1] == '0'; --i) ++last_place;
  }
  const Letters none;
  const Value factor = formulas::evaluate(known->factor, none);
  if (!about && unit.empty() && point == std::string_view::npos) {
    return {formulas::evaluate(number, none), 0};  // a count
  }
  return {formulas::evaluate(number, none) * factor,
          formulas::power(10, last_place) / (about ? 1 : 2) * factor};
}

const Case* Finding::own() const {
  const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& c) { return c.own; });
  return found == cases.end() ? nullptr : &*found;
}

const Case* Finding::shown() const {
  if (cases.empty()) return nullptr;
  // Searches backwards: small parameters often agree by accident.
  for (auto c = cases.rbegin(); c != cases.rend(); ++c) {
    if (!c->agrees) return &*c;
  }
  return &cases.back();
}

Case compare(const Paper& paper, const Claim& claim, Runs& runs, const Letters& letters) {
  return Evaluation(paper, claim, runs).compare(letters);
}

Finding judge(const Paper& paper, const Claim& claim, Runs& runs, std::size_t most_cases) {
  Finding finding;
  finding.paper = &paper;
  finding.claim = &claim;
  if (!claim.needs.empty()) {
    finding.reason = claim.needs;
    return finding;
  }
  if (claim.reproduced) {
    judge_statement(finding, runs);
    return finding;
  }
  Evaluation evaluation(paper, claim, runs);
  formulas::ParameterSets sets = formulas::parameter_sets(claim.sets);
  finding.order = std::move(sets.order);
  try {
    for (const Letters& letters : some_of(std::move(sets.sets), most_cases)) {
      try {
        finding.cases.push_back(evaluation.compare(letters));
      } catch (const NotDefined&) {
        ++finding.skipped;
      }
    }
    finding.verdict = verdict_of(finding);
  } catch (const NotInCatalogue& missing) {
    finding.cases.clear();
    finding.reason = missing.what();
  } catch (const std::domain_error& undefined) {
    throw std::logic_error("claim '" + claim.id + "': " + undefined.what());
  }
  return finding;
}

bool fails(const Paper& paper, const Claim& claim, Runs& runs, std::size_t most_cases) {
  if (!claim.needs.empty()) return false;
  if (claim.reproduced) return judge(paper, claim, runs).verdict == Verdict::does_not_hold;
  Evaluation evaluation(paper, claim, runs);
  bool some_differ = false;
  try {
    for (const Letters& letters : some_of(formulas::parameter_sets(claim.sets).sets, most_cases)) {
      try {
        const Case found = evaluation.compare(letters);
        if (found.agrees && !found.degenerate) return false;
        some_differ = some_differ || !found.agrees;
      } catch (const NotDefined&) {
      }
    }
  } catch (const NotInCatalogue&) {
    return false;
  } catch (const std::domain_error& undefined) {
    throw std::logic_error("claim '" + claim.id + "': " + undefined.what());
  }
  return some_differ;  // if all agree, the row holds, even if all are degenerate
}

Finding evaluate(const Paper& paper, const Claim& claim, Runs& runs,
                 const EvaluateOptions& options) {
  Finding finding = judge(paper, claim, runs, options.most_cases);
  Finding* const row = &finding;
  if (options.execute) execute({&row, 1}, runs, options);
  return finding;
}

namespace {

// The number of cases in which a row is executed.
constexpr int kExecutedCases = 2;
// Limit of block moves, in multiples of ranks^2: runs with more moves are large for their ranks.
constexpr std::uint64_t kMostTimes = 16;

struct Wanted {
  LiveRun live;
  std::optional<double> drawn;  // seconds in the figure
};
// The runs of one case, or of one panel.
using Group = std::vector<Wanted>;

// The run with the time of a point of a figure.
RunText run_of(const reproduce::Point& point) {
  const Fabric& network = find_regime("torus")->fabric;
  const std::vector<int>& dims = point.panel->spec.dims;
  const int ranks = Torus(dims).ranks();
  constexpr long long kBytesPerGigabit = 125'000'000;
  return {
      .name = {},
      .collective = "all_reduce",
      .algorithm = std::string(point.curve->contender->line(point.form)),
      .options = {{"ranks", std::to_string(ranks)},
                  {"dims", dims_text(dims)},
                  {"wiring", "torus"},
                  {"alpha", network.link.alpha.to_string()},
                  {"hop", network.alpha_hop.to_string()},
                  {"beta", Rational(1, point.panel->spec.gigabits * kBytesPerGigabit).to_string()},
                  {"bytes", std::to_string(std::llround(point.bytes))}}};
}

// The runs of one row, case by case or panel by panel.
class Row {
 public:
  Row(const Finding& finding, Runs& runs) : finding_(finding) {
    if (finding.claim->reproduced) {
      const reproduce::By eq_1 = reproduce::By::eq_1;
      points_ = points_of(*runs.reproduced(finding.claim->id, eq_1).statement, runs.panels(eq_1));
    } else {
      texts_ = read_runs(finding.claim->runs, finding.paper->runs);
    }
  }

  bool on_a_network() const { return !texts_.empty() || !points_.empty(); }
  std::size_t groups() const { return points_.empty() ? finding_.cases.size() : points_.size(); }
  Group group(std::size_t i) const {
    Group out;
    if (points_.empty()) {
      for (const RunText& text : texts_) out.push_back({{text, finding_.cases[i].letters}, {}});
    } else {
      for (const reproduce::Point& point : points_[i]) out.push_back(wanted(point));
    }
    return out;
  }
  // For a figure only the (L) forms: the (B) forms move hundreds of times as much.
  Group light_group(std::size_t i) const {
    if (points_.empty()) return group(i);
    Group out;
    for (const reproduce::Point& point : points_[i]) {
      if (point.form == reproduce::Form::latency) out.push_back(wanted(point));
    }
    return out;
  }

 private:
  static Wanted wanted(const reproduce::Point& point) { return {{run_of(point)}, point.seconds()}; }

  const Finding& finding_;
  std::vector<RunText> texts_;
  std::vector<std::vector<reproduce::Point>> points_;
};

// The runs that pass the test.
template <class Test>
Group some_of(Group group, const Test& test) {
  std::erase_if(group, [&test](const Wanted& each) { return !test(each.live); });
  return group;
}

Group of_two_cases(const Row& row, Runs& runs, int most_ranks) {
  const auto small = [&](const LiveRun& live) {
    const auto most = static_cast<std::uint64_t>(most_ranks);
    return runs.ranks_of(live.run, live.letters) <= most_ranks &&
           runs.moves_of(live.run, live.letters) <= kMostTimes * most * most;
  };
  Group out;
  int cases = 0;
  // The last case is the largest in most tables; the middle one is different from it.
  for (std::size_t i = row.groups(); i > 0 && cases < kExecutedCases; i = i / 2) {
    // The first case from there down that has such runs.
    for (std::size_t j = i; j > 0; --j) {
      Group group = some_of(row.group(j - 1), small);
      if (group.empty()) continue;
      std::move(group.begin(), group.end(), std::back_inserter(out));
      ++cases;
      i = j;
      break;
    }
  }
  return out;
}

bool has_communicator(const LiveRun& live, const Runs& runs) {
  return runs.ranks_of(live.run, live.letters) <= Communicator::kMaxOnNetwork;
}

Group of_least_case(const Row& row, Runs& runs, std::uint64_t most_moves) {
  Group out;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < row.groups(); ++i) {
    std::uint64_t least_here = least;
    Group group = some_of(row.light_group(i), [&](const LiveRun& live) {
      if (!has_communicator(live, runs)) return false;
      const std::uint64_t moves = runs.moves_of(live.run, live.letters);
      least_here = std::min(least_here, moves);
      return moves <= most_moves;
    });
    if (group.empty() || least_here == least) continue;
    least = least_here;
    out = std::move(group);
  }
  return out;
}

// The least run of all, however many moves it has.
Group of_least_run(const Row& row, Runs& runs) {
  Group out;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < row.groups(); ++i) {
    for (Wanted& each : row.group(i)) {
      if (!has_communicator(each.live, runs)) continue;
      const std::uint64_t moves = runs.moves_of(each.live.run, each.live.letters);
      if (!out.empty() && moves >= least) continue;
      least = moves;
      out = {std::move(each)};
    }
  }
  return out;
}

// A row that has runs, but none that could be executed, has only runs of too many ranks.
Unexecuted reason_of(const Row& row) {
  return row.groups() == 0 ? Unexecuted::not_reproduced : Unexecuted::beyond_communicator;
}

// The figure's time is a sum of floating-point numbers, the ranks' time a number of whole ticks.
bool is_drawn(double seconds, double drawn) {
  constexpr double kRounding = 1e-12;
  return std::abs(seconds - drawn) <= kRounding * drawn;
}

void note(const Wanted& wanted, const Executed& executed, const Runs& runs, Finding& finding) {
  ++finding.executed;
  finding.first_executed += executed.first ? 1 : 0;
  std::string fault = executed.fault;
  if (fault.empty() && wanted.drawn && !is_drawn(executed.seconds, *wanted.drawn)) {
    fault = fmt::format("executed in {:.12g} s, in the figure {:.12g} s", executed.seconds,
                        *wanted.drawn);
  }
  if (fault.empty() || !finding.fault.empty()) return;
  const RunText& run = wanted.live.run;
  finding.fault = run.collective + " " + run.algorithm + ", " +
                  std::to_string(runs.ranks_of(run, wanted.live.letters)) + " ranks: " + fault;
}

}  // namespace

void execute(std::span<Finding* const> rows, Runs& runs, const EvaluateOptions& options,
             const std::function<void(std::size_t done, std::size_t all)>& progress) {
  std::vector<std::pair<Finding*, Wanted>> all;
  for (Finding* finding : rows) {
    const Row row(*finding, runs);
    if (!row.on_a_network()) continue;
    Group group = of_two_cases(row, runs, options.most_ranks);
    if (group.empty()) group = of_least_case(row, runs, options.most_moves_of_least);
    if (group.empty()) group = of_least_run(row, runs);
    if (group.empty()) finding->unexecuted = reason_of(row);
    for (Wanted& each : group) all.emplace_back(finding, std::move(each));
  }
  std::vector<LiveRun> live;
  for (const auto& [finding, wanted] : all) live.push_back(wanted.live);
  const std::vector<Executed> executed = runs.execute(live, progress);
  for (std::size_t i = 0; i < all.size(); ++i) {
    note(all[i].second, executed[i], runs, *all[i].first);
  }
}

}  // namespace rankine::claims
