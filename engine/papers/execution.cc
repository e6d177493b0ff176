#include "engine/papers/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/torus.h"
#include "engine/api/communicator.h"
#include "engine/network/fabric.h"
#include "engine/papers/statements.h"

namespace rankine::claims {
namespace {

// At how many different numbers of ranks a row is executed.
constexpr int kExecutedCases = 2;
// Of so many ranks each with each so often: runs that move more blocks are large for their ranks.
constexpr std::uint64_t kMostTimes = 16;

struct Wanted {
  LiveRun live;
  std::optional<double> drawn;  // seconds that the figure has
};
// Of one case, or of one panel.
using Group = std::vector<Wanted>;

// The run whose time a point of a figure is.
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
      points_ = points_of(*runs.reproduced(finding.claim->id).statement, runs.panels());
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
  // Of a figure the (L) forms: the others move hundreds of times as much.
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

// Those of the runs that pass the test.
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
  // The last one is the largest in most tables; the one in the middle is another.
  for (std::size_t i = row.groups(); i > 0 && cases < kExecutedCases; i = i / 2) {
    // From there down to the first that has any.
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

// One, whatever it takes.
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

// One that has runs has one of more ranks than a communicator takes at the least.
Unexecuted reason_of(const Row& row) {
  return row.groups() == 0 ? Unexecuted::beyond_model : Unexecuted::beyond_communicator;
}

// The figure's time is a sum of floating-point numbers, the ranks' one of whole ticks.
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
