#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "algorithms/circulant.h"
#include "engine/api/communicator.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/workbench.h"
#include "engine/lab/commands.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"
#include "engine/read/sweep.h"

namespace rankine::tools {
namespace {

struct SkipsArguments {
  int ranks = 8;
  std::size_t bytes = std::size_t{1} << 20;
  std::vector<int> dims;
  NetworkArguments network;
  int best = 5;
  bool measure = false, json = false, csv = false;
};

// One line of the report.
struct Row {
  std::string scheme;  // the scheme's name; empty for other skips
  std::vector<int> skips;
  double rounds_seconds = 0, flow_seconds = 0;
  std::optional<double> measured;  // seconds per call, the median
};

Result<Row> row_of(std::vector<int> skips, const Question& question) {
  const int p = question.params.ranks;
  const Schedule schedule =
      circulant_reduce_scatter(std::make_shared<const CirculantRounds>(p, skips));
  const CollectiveSpec goal{Collective::reduce_scatter, p, p};
  Row row;
  for (const SkipScheme& scheme : skip_schemes()) {
    if (row.scheme.empty() && scheme.skips(p) == skips) row.scheme = scheme.name;
  }
  const auto rounds_time = simulate(schedule, goal, question.fabric, question.bytes,
                                    {.sync = Sync::rounds, .ideal_blocks = true});
  if (!rounds_time.ok()) return rounds_time.status();
  row.rounds_seconds = rounds_time->seconds;
  const auto flow_time = simulate_flow(schedule, goal, question.fabric, question.bytes,
                                       {.sync = Sync::dataflow, .ideal_blocks = true});
  if (!flow_time.ok()) return flow_time.status();
  row.flow_seconds = flow_time->seconds;
  row.skips = std::move(skips);
  return row;
}

Status measure(std::vector<Row>& rows, const Question& question, Console& console) {
  const int p = question.params.ranks;
  if (p > Communicator::kMaxRanks) {
    return invalid_argument(fmt::format("--ranks is {}; with --measure allowed are 1 to {} threads",
                                        p, Communicator::kMaxRanks));
  }
  Call call{.collective = Collective::reduce_scatter, .type = DataType::f32, .op = ReduceOp::sum};
  call.count = count_for(call.collective, p, question.bytes, size_of(call.type));
  call.options.algorithm = "circulant";
  Workbench::Options bench;
  bench.team.ranks = p;
  bench.buffers = buffer_bytes(call, p);
  auto created = Workbench::create(bench);
  if (!created.ok()) return created.status();
  Progress progress(console);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    progress.show(fmt::format("measuring {} of {}", i + 1, rows.size()));
    call.options.skips = rows[i].skips;
    const auto measured = (*created)->measure(call, {});
    if (!measured.ok()) return measured.status();
    if (measured->out_of_place.wrong != 0) {
      return Status(Code::system, fmt::format("skips {}: {} wrong", skips_text(rows[i].skips),
                                              counted(measured->out_of_place.wrong, "element")));
    }
    rows[i].measured = measured->out_of_place.seconds.median;
  }
  return {};
}

// Shortens a long list: "63,62,61, ... 3,2,1".
std::string short_text(const std::vector<int>& skips) {
  constexpr std::size_t kWhole = 16, kEnds = 4;
  if (skips.size() <= kWhole) return skips_text(skips);
  return skips_text({skips.begin(), skips.begin() + kEnds}) + ", ... " +
         skips_text({skips.end() - kEnds, skips.end()});
}

std::string searched_text(const SkipSearch& found) {
  std::string text = fmt::format("searched: all {:.6g} sequence{} of Algorithm 1 (windows)",
                                 found.windows, found.windows == 1 ? "" : "s");
  if (found.all) {
    if (found.others == 0) return text;
    return text + fmt::format(".\nAnd all {}: no skips are faster", counted(found.others, "other"));
  }
  return text + fmt::format(
                    ".\nAnd {} others: every order of every valid set of up to {} skips; of longer "
                    "sets {} near the fastest and the schemes, which proves nothing",
                    found.others, found.all_up_to, found.stopped ? "some" : "all");
}

Table table_of(const Question& question, const SkipSearch& found, const std::vector<Row>& rows,
               std::size_t best, bool measured) {
  Table table(as::number("", "rank"), as::text("skips", "-"), as::data("skips"), as::data("scheme"),
              "rounds", as::model_time("time"), As("{:.3f}")("of halving", "-"),
              as::model_time("flow"), as::measured_time("measured").when(measured));
  table.title = describe(question);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::string skips = short_text(row.skips);
    if (!row.scheme.empty()) skips += "  " + row.scheme;
    const double ratio = found.halving.seconds > 0 ? row.rounds_seconds / found.halving.seconds : 1;
    table.add(i < best ? Cell(i + 1) : Cell(), std::move(skips), skips_text(row.skips),
              row.scheme.empty() ? Cell() : Cell(row.scheme), row.skips.size(), row.rounds_seconds,
              ratio, row.flow_seconds, row.measured);
  }
  table.notes = {"", searched_text(found) + ".",
                 "time: a reduce-scatter with a barrier between rounds, blocks of exactly M / N; "
                 "the search compares this.\nflow: without barriers, and with links shared at each "
                 "moment."};
  if (measured) {
    table.notes.push_back(
        "measured: threads of this machine at full speed, without the network; the median.");
  }
  return table;
}

Json to_json(const Question& question, const SkipSearch& found, const std::vector<Row>& rows,
             const Table& table) {
  Json lines = rankine::tools::to_json(table);
  for (std::size_t i = 0; i < rows.size(); ++i) lines[i]["skips"] = rows[i].skips;
  return {{"collective", "reduce_scatter"},
          {"ranks", question.params.ranks},
          {"bytes", question.bytes},
          {"network", question.fabric.name},
          {"windows", found.windows},
          {"others", found.others},
          {"every_order_up_to", found.all_up_to},
          {"exhaustive", found.all},
          {"stopped", found.stopped},
          {"halving", found.halving.seconds},
          {"rows", std::move(lines)}};
}

Result<Exit> run_skips(const SkipsArguments& a, Console& console) {
  const auto fabric = network_of(a.network);
  if (!fabric.ok()) return fabric.status();
  Question question{.algorithm = find_algorithm(Collective::reduce_scatter, "circulant"),
                    .params = {.ranks = a.ranks},
                    .bytes = a.bytes,
                    .fabric = *fabric,
                    .options = {.sync = Sync::rounds, .ideal_blocks = true}};
  auto wired = wired_for(question.fabric, a.ranks, a.dims);
  if (!wired.ok()) return wired.status();
  question.fabric = std::move(*wired);

  SkipSearchOptions options{.best = a.best};
  std::optional<Result<SkipSearch>> found;
  {
    Progress progress(console);
    options.progress = [&](std::uint64_t done, std::uint64_t all) {
      if (progress.due()) progress.show(fmt::format("searching, {} of {}", done, all));
    };
    found = search_skips(a.ranks, question.fabric, a.bytes, options);
  }
  if (!found->ok()) return found->status();
  const SkipSearch& search = **found;

  std::vector<std::vector<int>> wanted;
  const auto want = [&wanted](const std::vector<int>& skips) {
    if (std::find(wanted.begin(), wanted.end(), skips) == wanted.end()) wanted.push_back(skips);
  };
  for (const RatedSkips& one : search.best) want(one.skips);
  const std::size_t best = wanted.size();
  want(search.best_windows.skips);
  for (const SkipScheme& scheme : skip_schemes()) want(scheme.skips(a.ranks));
  std::vector<Row> rows;
  for (std::vector<int>& skips : wanted) {
    auto row = row_of(std::move(skips), question);
    if (!row.ok()) return row.status();
    rows.push_back(std::move(*row));
  }
  if (a.measure) {
    if (Status status = measure(rows, question, console); !status.ok()) return status;
  }
  const Table table = table_of(question, search, rows, best, a.measure);
  console.out << (a.json  ? to_json(question, search, rows, table).dump() + "\n"
                  : a.csv ? to_csv(table)
                          : to_text(table));
  return Exit::ok;
}

}  // namespace

Subcommand add_skips_search(Command tool) {
  auto owned = std::make_shared<SkipsArguments>();
  SkipsArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "skips", "search the skips of a circulant reduce-scatter that suit a network");
  add_argument(app, "-t,--ranks", a.ranks, Whole{1, kMostSearchedRanks}, "N", "ranks (8)");
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE", "M, the vector: 8, 64K, 1M (1M)");
  add_dims(app, a.dims);
  constexpr int kMany = 1000;
  add_argument(app, "--best", a.best, Whole{1, kMany}, "N", "sequences to show (5)");
  add_network_arguments(app, a.network);
  app.add_flag("--measure", a.measure,
               "also run them on threads, at full speed and without the network");
  add_formats(app, a.json, a.csv, "as JSON");
  app.footer(
      "Examples:\n"
      "  rankine skips --ranks 22 --network ring --bytes 64K\n"
      "  rankine skips --ranks 64 --network torus --dims 8x8 --bytes 16M --best 10\n"
      "  rankine skips --ranks 8 --bytes 1M --measure\n"
      "Other skips: use --skips with show, verify, simulate, cost and other commands.");
  return {app, [owned](Console& console) { return run_skips(*owned, console); }};
}

}  // namespace rankine::tools
