#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cli/arguments.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/lab/coefficients.h"
#include "engine/lab/commands.h"

namespace rankine::tools {
namespace {

constexpr int kMostRanks = 256;

struct GapsArguments {
  QuestionArguments question;
  int ranks_to = 81;
  bool least = false, json = false, csv = false;
};

// An algorithm's coefficients at a number of ranks.
struct Standing {
  const Algorithm* algorithm = nullptr;
  Coefficients costs;
};

struct Gap {
  int ranks = 0;
  Standing behind;
  Standing better{};  // algorithm is nullptr: none is better, but the lower bound is less
};

struct Found {
  int asked = 0;  // questions that had an answer
  std::vector<Gap> gaps;
};

// No coefficient is larger, and one is smaller.
bool is_better(const Coefficients& a, const Coefficients& b) {
  const auto no_more = [](const std::optional<Rational>& x, const std::optional<Rational>& y) {
    return !x || !y || !(*y < *x);
  };
  return no_more(a.alpha, b.alpha) && no_more(a.beta, b.beta) && no_more(a.hop, b.hop) &&
         no_more(a.gamma, b.gamma) &&
         (a.alpha < b.alpha || a.beta < b.beta || (a.hop && b.hop && *a.hop < *b.hop) ||
          (a.gamma && b.gamma && *a.gamma < *b.gamma));
}

// The algorithms that can run on this number of ranks on the network.
Result<std::vector<Standing>> standings(QuestionArguments arguments, int ranks) {
  arguments.algorithm.algorithms = "all";
  arguments.algorithm.take("ranks");
  arguments.algorithm.begin.ranks = ranks;
  std::vector<std::string> left_out;
  const auto questions = questions_of(arguments, left_out);
  if (!questions.ok()) return questions.status();
  std::vector<Standing> all;
  for (const Question& question : *questions) {
    const auto prepared = prepare(question);
    if (!prepared.ok()) continue;
    const auto costs = coefficients(*prepared, question.fabric, question.options);
    if (costs.ok()) all.push_back({question.algorithm, *costs});
  }
  return all;
}

// The lower bound of the bytes that a rank moves, as a part of M, if no switch adds.
double least(Collective collective, int ranks, int ports) {
  return bus_factor(collective, ranks) / ports;
}

// Allows for rounding: a difference of rounding does not count.
bool moves_more(const Standing& one, Collective collective, int ranks, int ports) {
  return one.costs.beta.to_double() > least(collective, ranks, ports) * (1 + 1e-12);
}

Result<Found> find(const GapsArguments& a, const Fabric& fabric, Console& console) {
  const auto params = read_params(a.question.algorithm);
  if (!params.ok()) return params.status();
  if (a.ranks_to < params->ranks) {
    return invalid_argument(fmt::format("--ranks-to is {}; allowed are {} (--ranks) to {}",
                                        a.ranks_to, params->ranks, kMostRanks));
  }
  const auto asked =
      read_algorithms("--algo", a.question.algorithm.algorithms, *a.question.algorithm.collective);
  if (!asked.ok()) return asked.status();
  const std::set<const Algorithm*> lines(asked->begin(), asked->end());
  Found found;
  Progress progress(console);
  for (int n = params->ranks; n <= a.ranks_to; ++n) {
    if (progress.due()) progress.show(fmt::format("{} of {} ranks", n, a.ranks_to));
    const auto all = standings(a.question, n);
    if (!all.ok()) return all.status();
    for (const Standing& one : *all) {
      if (!lines.contains(one.algorithm)) continue;
      ++found.asked;
      // Among better algorithms, choose the smallest beta; among equals, the smallest alpha.
      const Standing* best = nullptr;
      for (const Standing& other : *all) {
        if (!is_better(other.costs, one.costs)) continue;
        if (best == nullptr || std::pair(other.costs.beta, other.costs.alpha) <
                                   std::pair(best->costs.beta, best->costs.alpha)) {
          best = &other;
        }
      }
      if (best != nullptr) {
        found.gaps.push_back({n, one, *best});
      } else if (a.least && moves_more(one, *a.question.algorithm.collective, n, fabric.ports)) {
        found.gaps.push_back({n, one});
      }
    }
  }
  return found;
}

Json json_of(const Standing& one) {
  Json out = {{"algorithm", one.algorithm->name}};
  out.update(to_json(one.costs));
  return out;
}

Table table_of(const GapsArguments& a, const Fabric& fabric, const Found& found) {
  const Collective collective = *a.question.algorithm.collective;
  const bool shares = fabric.wiring.shares_links(), any = !found.gaps.empty();
  Table table("ranks", as::text("algorithm"), "n_alpha", As("{:.4g}")("n_beta"),
              as::number("n_hop").when(shares), as::text("better", "", "-"),
              as::number("n_alpha", "better_n_alpha"), As("{:.4g}")("n_beta", "better_n_beta"),
              as::number("n_hop", "better_n_hop").when(shares),
              As("{:.4g}")("least n_beta").when(!shares));
  table.title = fmt::format("{} on {}", name_of(collective), describe(fabric));
  for (const Gap& gap : found.gaps) {
    auto& row = table.add(gap.ranks);
    for (const auto& [algorithm, costs] : {gap.behind, gap.better}) {
      if (algorithm == nullptr)
        row.resize(row.size() + 4);
      else
        row.insert(row.end(), {algorithm->name, costs.alpha, costs.beta, costs.hop});
    }
    if (!shares) row.push_back(least(collective, gap.ranks, fabric.ports));
  }
  for (Column& column : table.columns) column.shown &= any;
  table.notes = {fmt::format(
      "{}{} of {}: another algorithm of the catalogue is not worse in any cost and better in "
      "one{}.\n"
      "'rankine cost' explains n_alpha and n_beta.{}",
      any ? "\n" : "", found.gaps.size(), found.asked,
      a.least ? ",\nor no algorithm is (-), but the lower bound of bytes is less" : "",
      shares ? "" : " Least: the lower bound of the busiest rank's bytes, if no switch adds.")};
  return table;
}

Result<Exit> run_gaps(const GapsArguments& a, Console& console) {
  const auto network = network_of(a.question.network);
  if (!network.ok()) return network.status();
  if (a.least && network->wiring.shares_links()) {
    return invalid_argument(
        "--least is given; it needs a network with a link between every two ranks: leave out "
        "--wiring");
  }
  const auto found = find(a, *network, console);
  if (!found.ok()) return found.status();
  if (!a.json) {
    const Table table = table_of(a, *network, *found);
    console.out << (a.csv ? to_csv(table) : to_text(table));
    return Exit::ok;
  }
  for (const Gap& gap : found->gaps) {
    Json line = {{"collective", name_of(*a.question.algorithm.collective)}, {"ranks", gap.ranks}};
    line.update(json_of(gap.behind));
    line["better"] = gap.better.algorithm == nullptr ? Json() : json_of(gap.better);
    if (!network->wiring.shares_links()) {
      line["least_n_beta"] = least(*a.question.algorithm.collective, gap.ranks, network->ports);
    }
    console.out << line.dump() << "\n";
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_gaps(Command tool) {
  auto owned = std::make_shared<GapsArguments>();
  GapsArguments& a = *owned;
  a.question.algorithm.algorithms = "all";
  a.question.algorithm.begin.ranks = 2;
  const Command app = tool.add_subcommand(
      "gaps", "ranks at which another algorithm is better in one cost and worse in none");
  add_algorithm_arguments(
      app, a.question.algorithm,
      {.algorithms = "names of the catalogue, or all (all)", .ranks = "the fewest ranks (2)"})
      .required();
  add_argument(app, "--ranks-to", a.ranks_to, Whole{2, kMostRanks}, "N", "the most ranks (81)");
  add_network_arguments(app, a.question.network);
  app.add_flag("--least", a.least,
               "also gaps to the lower bound of bytes, if no algorithm is better");
  add_formats(app, a.json, a.csv, "one line of JSON per gap");
  app.footer(
      "Examples:\n"
      "  rankine gaps all_reduce --algo trivance --ports 2 --least\n"
      "  rankine gaps all_gather --algo bruck,circulant,ring --ranks-to 33\n"
      "  rankine gaps all_reduce --algo swing,trivance,bucket --wiring ring --ranks-to 32 "
      "--json\n");
  return {app, [owned](Console& console) { return run_gaps(*owned, console); }};
}

}  // namespace rankine::tools
