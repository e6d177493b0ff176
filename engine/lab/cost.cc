#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>

#include "engine/cli/arguments.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/lab/coefficients.h"
#include "engine/lab/commands.h"
#include "engine/read/count.h"

namespace rankine::tools {
namespace {

struct CostArguments {
  QuestionArguments question;
  bool per_rank = false, json = false, csv = false;
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

// A number of blocks as an exact part of M, and in bytes.
Rational part_of_m(const Cost& cost, std::int64_t blocks) {
  return Rational(Int128{blocks}, Int128{cost.blocks_per_m});
}
double in_bytes(const Cost& cost, std::int64_t blocks, std::uint64_t bytes) {
  return nearest_double(Int128{blocks} * static_cast<Int128>(bytes), cost.blocks_per_m);
}

int ports_needed(const Cost& cost) {
  return std::max(cost.counts.busiest.send_ports, cost.counts.busiest.receive_ports);
}

Table terms_of(const Question& question, const Cost& cost) {
  const Params& params = cost.prepared.params;
  const Algorithm& entry = *question.algorithm;
  const std::string with = entry.text_of(params);
  Table table(as::text("", "bound"), "n_alpha", "n_beta", As("= {:.4g}", nullptr, true)(""),
              As("{:.1f}%")("eta", "", "-"),
              as::number("n_hop").when(cost.dataflow.hop.has_value()),
              as::number("n_gamma").when(cost.dataflow.gamma.has_value()));
  table.title = fmt::format("{} '{}' among {}{}{}: {}", name_of(entry.collective), entry.name,
                            counted(params.ranks, "rank"), with.empty() ? "" : ", ", with,
                            counted(cost.counts.rounds, "round"));
  const auto add = [&table](std::string name, const Coefficients& c) {
    table.add(std::move(name), c.alpha, c.beta, c.beta.to_double(), c.eta, c.hop, c.gamma);
  };
  add(fmt::format("dataflow, k = {}", question.fabric.ports), cost.dataflow);
  add(fmt::format("rounds, k = {}", question.fabric.ports), cost.rounds);
  add("critical path", cost.critical_path);
  return table;
}

Table ranks_of(const Question& question, const Cost& cost, bool per_rank) {
  Table table(as::text("", "rank"), as::bytes("sent"), as::bytes("received"), as::bytes("reduced"),
              as::number("sent of M", "-"), as::data("messages_sent"),
              as::data("messages_received"), "partners", "sends at once", "receives at once");
  const auto add = [&](std::string name, const RankCounts& rank) {
    const auto size = [&](std::int64_t blocks) { return in_bytes(cost, blocks, question.bytes); };
    table.add(std::move(name), size(rank.sent), size(rank.received), size(rank.reduced),
              part_of_m(cost, rank.sent), rank.messages_sent, rank.messages_received, rank.partners,
              rank.send_ports, rank.receive_ports);
  };
  add("busiest rank", cost.counts.busiest);
  for (std::size_t r = 0; per_rank && r < cost.counts.ranks.size(); ++r) {
    add(fmt::format("rank {}", r), cost.counts.ranks[r]);
  }
  table.notes = {
      "", fmt::format(
              "M = {}. n_alpha: the time if alpha is 1 and beta 0; n_beta: the time if alpha is "
              "0 and M beta 1;\n"
              "both are exact, each on its own longest chain. The critical path has unlimited "
              "ports.\n"
              "eta: busbw over the peak, for large M.",
              format_bytes(question.bytes))};
  if (cost.dataflow.hop) {
    table.notes.push_back("n_hop: the time if each link crossed takes 1 and all else 0.");
  }
  if (cost.dataflow.gamma)
    table.notes.push_back("n_gamma: the time if M gamma is 1 and all else 0.");
  if (const int needed = ports_needed(cost); needed > 1) {
    table.notes.push_back(
        fmt::format("{} {}", question.algorithm->name, port_budget(needed, question.fabric.ports)));
  }
  return table;
}

Json to_json(const Question& question, const Cost& cost) {
  const Params& params = cost.prepared.params;
  const Algorithm& entry = *question.algorithm;
  Json out = {{"collective", name_of(entry.collective)},
              {"algorithm", entry.name},
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
  write_parameters(entry, params, out, out);
  Json ranks = rankine::tools::to_json(ranks_of(question, cost, true));
  for (Json& rank : ranks) rank.erase("rank");
  out["busiest"] = ranks.front();
  ranks.erase(0);
  out["per_rank"] = std::move(ranks);
  return out;
}

Result<Exit> run_cost(const CostArguments& a, Console& console) {
  const auto question = question_of(a.question);
  if (!question.ok()) return question.status();
  const auto cost = cost_of(*question);
  if (!cost.ok()) return cost.status();
  const Table terms = terms_of(*question, *cost), ranks = ranks_of(*question, *cost, a.per_rank);
  console.out << (a.json  ? to_json(*question, *cost).dump() + "\n"
                  : a.csv ? to_csv(a.per_rank ? ranks : terms)
                          : to_text(terms) + "\n" + to_text(ranks));
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
  add_formats(app, a.json, a.csv, "as JSON, with every rank");
  app.footer(
      "Examples:\n"
      "  rankine cost all_reduce --algo ring --ranks 8\n"
      "  rankine cost broadcast --algo binomial_far --ranks 16 --segments 8 --ports 2\n"
      "  rankine cost all_reduce --algo switch --ranks 8 --network switch --json\n" +
      std::string(kBusbwConvention) + kPeakConvention);
  return {app, [owned](Console& console) { return run_cost(*owned, console); }};
}

}  // namespace rankine::tools
