#include "engine/tools/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/read/count.h"
#include "engine/tools/coefficients.h"
#include "engine/tools/metrics.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/port_budget.h"
#include "engine/tools/question_arguments.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct CostArguments {
  QuestionArguments question;
  bool per_rank = false, json = false;
};

struct Cost {
  Prepared prepared;
  Counts counts;
  std::int64_t blocks_per_m = 1;
  Coefficients dataflow, rounds, critical_path;
};

Result<Cost> cost_of(const Question& question) {
  auto prepared = prepare(question);
  if (!prepared.ok()) return prepared.status();
  Cost cost;
  cost.prepared = std::move(*prepared);
  cost.counts = count(cost.prepared.schedule);
  cost.blocks_per_m = blocks_per_m(cost.prepared.goal);
  const struct {
    SimulateOptions options;
    Coefficients& into;
  } kRuns[] = {{{.sync = Sync::dataflow}, cost.dataflow},
               {{.sync = Sync::rounds}, cost.rounds},
               {{.unlimited_ports = true}, cost.critical_path}};
  for (const auto& [options, into] : kRuns) {
    const auto found = coefficients(cost.prepared, question.fabric, options);
    if (!found.ok()) return found.status();
    into = *found;
    if (!options.unlimited_ports && !(into.beta == 0)) {
      into.eta = bus_factor(question.algorithm->collective, cost.prepared.params.ranks) /
                 (into.beta.to_double() * question.fabric.ports);
    }
  }
  return cost;
}

// Blocks as a part of M, exactly, and in bytes.
Rational part_of_m(const Cost& cost, std::int64_t blocks) {
  return Rational(Int128{blocks}, Int128{cost.blocks_per_m});
}
double in_bytes(const Cost& cost, std::int64_t blocks, std::uint64_t bytes) {
  return nearest_double(Int128{blocks} * static_cast<Int128>(bytes), cost.blocks_per_m);
}

int ports_needed(const Cost& cost) {
  return std::max(cost.counts.busiest.send_ports, cost.counts.busiest.receive_ports);
}

Json rank_json(const Cost& cost, const RankCounts& rank, std::uint64_t bytes) {
  return {{"sent", in_bytes(cost, rank.sent, bytes)},
          {"received", in_bytes(cost, rank.received, bytes)},
          {"reduced", in_bytes(cost, rank.reduced, bytes)},
          {"messages_sent", rank.messages_sent},
          {"messages_received", rank.messages_received},
          {"partners", rank.partners},
          {"sends_at_once", rank.send_ports},
          {"receives_at_once", rank.receive_ports}};
}

Json to_json(const Question& question, const Cost& cost) {
  const Params& params = cost.prepared.params;
  const Algorithm& line = *question.algorithm;
  Json out = {{"collective", name_of(line.collective)},
              {"algorithm", line.name},
              {"ranks", params.ranks},
              {"bytes", question.bytes},
              {"segments", params.segments},
              {"root", params.root},
              {"ports", question.fabric.ports},
              {"ports_needed", ports_needed(cost)},
              {"serialises", rounds_serialise(ports_needed(cost), question.fabric.ports)},
              {"rounds", cost.counts.rounds},
              {"blocks_per_m", cost.blocks_per_m},
              {"critical_path", to_json(cost.critical_path)},
              {"dataflow", to_json(cost.dataflow)},
              {"rounds_sync", to_json(cost.rounds)}};
  write_parameters(line, params, out, out);
  out["busiest"] = rank_json(cost, cost.counts.busiest, question.bytes);
  Json& ranks = out["per_rank"] = Json::array();
  for (const RankCounts& rank : cost.counts.ranks) {
    ranks.push_back(rank_json(cost, rank, question.bytes));
  }
  return out;
}

void print(const Question& question, const Cost& cost, bool per_rank, Console& console) {
  const Params& params = cost.prepared.params;
  const Algorithm& line = *question.algorithm;
  const std::string with = line.text_of(params);
  console.out << fmt::format("{} '{}' among {} ranks{}{}: {} rounds\n\n", name_of(line.collective),
                             line.name, params.ranks, with.empty() ? "" : ", ", with,
                             cost.counts.rounds);

  std::vector<std::vector<std::string>> terms = {{"", "n_alpha", "n_beta", "", "eta"}};
  const bool hops = cost.dataflow.hop.has_value();
  const bool adds = cost.dataflow.gamma.has_value();
  if (hops) terms.front().push_back("n_hop");
  if (adds) terms.front().push_back("n_gamma");
  const auto add = [&terms](std::string name, const Coefficients& c) {
    terms.push_back({std::move(name), c.alpha.to_string(), c.beta.to_string(),
                     fmt::format("= {:.4g}", c.beta.to_double()), eta_text(c.eta)});
    if (c.hop) terms.back().push_back(c.hop->to_string());
    if (c.gamma) terms.back().push_back(c.gamma->to_string());
  };
  add(fmt::format("dataflow, k = {}", question.fabric.ports), cost.dataflow);
  add(fmt::format("rounds, k = {}", question.fabric.ports), cost.rounds);
  add("critical path", cost.critical_path);
  console.out << columns(terms, "lrrlrrr") << "\n";

  std::vector<std::vector<std::string>> rows = {{"", "sent", "received", "reduced", "sent of M",
                                                 "partners", "sends at once", "receives at once"}};
  const auto add_rank = [&](std::string name, const RankCounts& rank) {
    const auto size = [&](std::int64_t blocks) {
      return format_bytes(in_bytes(cost, blocks, question.bytes));
    };
    rows.push_back({std::move(name), size(rank.sent), size(rank.received), size(rank.reduced),
                    part_of_m(cost, rank.sent).to_string(), std::to_string(rank.partners),
                    std::to_string(rank.send_ports), std::to_string(rank.receive_ports)});
  };
  add_rank("busiest rank", cost.counts.busiest);
  if (per_rank) {
    for (std::size_t r = 0; r < cost.counts.ranks.size(); ++r) {
      add_rank(fmt::format("rank {}", r), cost.counts.ranks[r]);
    }
  }
  console.out << columns(rows, "lrrrrrrr")
              << fmt::format(
                     "\nM = {}. n_alpha: the time where alpha is 1 and beta 0; n_beta: where "
                     "alpha is 0 and M beta 1; each\nexactly, and on its own longest chain. "
                     "The critical path has as many ports as it likes. eta: busbw over the "
                     "peak, for large M.\n{}{}",
                     format_bytes(question.bytes),
                     hops ? "n_hop: the time where a link crossed is 1 and the others 0.\n" : "",
                     adds ? "n_gamma: where M gamma is 1.\n" : "");
  if (const int needed = ports_needed(cost); needed > 1) {
    console.out << line.name << " " << port_budget(needed, question.fabric.ports) << "\n";
  }
}

Result<Exit> run_cost(const CostArguments& a, Console& console) {
  const auto question = question_of(a.question);
  if (!question.ok()) return question.status();
  const auto cost = cost_of(*question);
  if (!cost.ok()) return cost.status();
  if (a.json) {
    console.out << to_json(*question, *cost).dump() << "\n";
  } else {
    print(*question, *cost, a.per_rank, console);
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_cost(Command tool) {
  auto owned = std::make_shared<CostArguments>();
  CostArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "cost", "an algorithm's rounds, n_alpha and n_beta, and every rank's bytes and ports");
  add_algorithm_arguments(app, a.question.algorithm).required();
  add_argument(app, "--bytes", a.question.bytes, parse_size, "SIZE", "M: 8, 64K, 1M (1M)");
  add_network_arguments(app, a.question.network);
  app.add_flag("--per-rank", a.per_rank, "every rank, not only the busiest");
  app.add_flag("--json", a.json, "as JSON, with every rank");
  app.footer(
      "Examples:\n"
      "  rankine cost all_reduce --algo ring --ranks 8\n"
      "  rankine cost broadcast --algo binomial_far --ranks 16 --segments 8 --ports 2\n"
      "  rankine cost all_reduce --algo switch --ranks 8 --network switch --json\n" +
      std::string(kBusbwConvention) + kPeakConvention);
  return {app, [owned](Console& console) { return run_cost(*owned, console); }};
}

}  // namespace rankine::tools
