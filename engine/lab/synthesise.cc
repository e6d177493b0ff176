#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/formats/formats.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"
#include "engine/lab/forest.h"
#include "engine/network/simulate.h"

namespace rankine::tools {
namespace {

constexpr int kMostTreeRanks = 128, kMostSegments = 256;
constexpr std::array<std::string_view, 5> kCollectives = {"broadcast", "reduce", "all_gather",
                                                          "reduce_scatter", "all_reduce"};

struct SynthesiseArguments {
  std::string collective;
  int ranks = 8, root = 0, trees = 0, segments = 0;
  std::size_t bytes = std::size_t{1} << 20;
  std::vector<int> dims;
  NetworkArguments network;
};

// Trees from the roots, towards the roots (of the network with every link turned round), or both.
struct Halves {
  std::optional<Forest> in{}, out{};
  Rational cut, time;  // of both, in vectors per unit of the links
};

Result<Halves> halves_of(const SynthesiseArguments& a, Collective collective,
                         const LinkGraph& graph) {
  std::vector<int> vectors(static_cast<std::size_t>(a.ranks), has_root(collective) ? 0 : 1);
  at(vectors, a.root) = 1;
  Halves out;
  const auto add = [&](std::optional<Forest>& half, const LinkGraph& links) -> Status {
    auto forest = forest_of(links, vectors, a.trees);
    if (!forest.ok()) return forest.status();
    out.cut = out.cut + forest->cut.time;
    out.time = out.time + forest->time;
    half = std::move(*forest);
    return {};
  };
  Status status;
  if (reduces(collective)) status = add(out.in, graph.reversed());
  const bool spreads = collective == Collective::all_reduce || !reduces(collective);
  if (status.ok() && spreads) status = add(out.out, graph);
  if (!status.ok()) return status;
  return out;
}

Schedule schedule_of(const Halves& halves, int ranks, int segments) {
  if (!halves.out) return dual(schedule_of(*halves.in, ranks, segments));
  const Schedule out = schedule_of(*halves.out, ranks, segments);
  if (!halves.in) return out;
  const Schedule in = dual(schedule_of(*halves.in, ranks, segments));
  const int blocks = std::lcm(in.blocks, out.blocks);
  return then(named("reduce-scatter", refined(blocks / in.blocks, in)),
              named("all-gather", refined(blocks / out.blocks, out)));
}

// True if the schedule's text can be read again; each half moves every block to every rank.
bool is_writable(const Schedule& schedule) {
  const std::size_t moves =
      static_cast<std::size_t>(schedule.ranks) * static_cast<std::size_t>(schedule.blocks);
  return schedule.blocks <= kMostWrittenBlocks && 2 * moves <= kMostWrittenMoves;
}

Result<Exit> run_synthesise(const SynthesiseArguments& a, Console& console) {
  const Collective collective = *parse_collective(a.collective);
  if (a.root >= a.ranks || (a.root > 0 && !has_root(collective))) {
    return invalid_argument(
        fmt::format("--root is {}; allowed for {} among {} ranks are 0{}", a.root, a.collective,
                    a.ranks, has_root(collective) ? fmt::format(" to {}", a.ranks - 1) : ""));
  }
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  const auto fabric = wired_for(*network, a.ranks, a.dims);
  if (!fabric.ok()) return fabric.status();
  const auto graph = link_graph(*fabric, a.ranks);
  if (!graph.ok()) return graph.status();
  const auto halves = halves_of(a, collective, *graph);
  if (!halves.ok()) return halves.status();

  // The number of segments with the least time in rounds.
  std::optional<Schedule> best;
  int segments = 0;
  double seconds = 0;
  for (int s = std::max(a.segments, 1); s <= kMostSegments; s *= 2) {
    const Schedule schedule = schedule_of(*halves, a.ranks, s);
    if (!is_writable(schedule)) {
      if (best) break;
      return invalid_argument(fmt::format(
          "--segments is {}, so {} ranks move {} blocks each; allowed are {} moves; use fewer "
          "segments or --trees",
          s, a.ranks, schedule.blocks, kMostWrittenMoves / 2));
    }
    const CollectiveSpec goal{collective, a.ranks, schedule.blocks, a.root};
    const auto time =
        simulate(schedule, goal, *fabric, a.bytes, {.sync = Sync::rounds, .ideal_blocks = true});
    if (!time.ok()) return time.status();
    if (!best || time->seconds < seconds) {
      best = schedule;
      segments = s;
      seconds = time->seconds;
    }
    if (a.segments > 0) break;
  }

  const Forest& forest = halves->out ? *halves->out : *halves->in;
  const std::uint64_t vectors = has_root(collective) ? 1 : static_cast<std::uint64_t>(a.ranks);
  const double per_time = static_cast<double>(a.bytes) / static_cast<double>(vectors) *
                          graph->seconds_per_byte.to_double();
  console.out << fmt::format(
      "# {} of {} among {} ranks on {}\n"
      "# {} per vector, {} deep, in {} ({})\n"
      "# no messages take less than {}: the tightest cut sends {} over {}{}\n"
      "# these trees take {} without latencies, {} in rounds\n",
      a.collective, format_bytes(a.bytes), a.ranks, describe(*fabric),
      counted(forest.trees, "tree"), forest.depth(), counted(segments, "segment"),
      counted(best->blocks, "block"), format_duration(halves->cut.to_double() * per_time),
      counted(forest.cut.vectors, "vector"),
      format_bandwidth(graph->seconds_per_byte /
                       Rational(std::max<std::int64_t>(forest.cut.bandwidth, 1))),
      halves->in && halves->out ? ", in both halves" : "",
      format_duration(halves->time.to_double() * per_time), format_duration(seconds));
  console.out << schedule_text(*best, {collective, a.ranks, best->blocks, a.root});
  return Exit::ok;
}

}  // namespace

Subcommand add_synthesise(Command tool) {
  auto owned = std::make_shared<SynthesiseArguments>();
  SynthesiseArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "synthesise", "make spanning trees for a network by its tightest cut, as a schedule");
  add_argument(app, "collective,--collective", a.collective, OneOf{kCollectives}, "NAME",
               fmt::format("{}", fmt::join(kCollectives, ", ")))
      .required();
  add_argument(app, "-t,--ranks", a.ranks, Whole{1, kMostTreeRanks}, "N", "ranks (8)");
  add_argument(app, "-r,--root", a.root, Whole{0, kMostTreeRanks - 1}, "RANK",
               "of broadcast and reduce (0)");
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE", "M, the vector: 8, 64K, 1M (1M)");
  add_argument(app, "--trees", a.trees, Whole{1, kMostTrees}, "K",
               "trees per vector (the least number that reaches the cut's time)");
  add_argument(app, "--segments", a.segments, Whole{1, kMostSegments}, "P",
               "of a tree's part (those with the least time in rounds)");
  add_dims(app, a.dims);
  add_network_arguments(app, a.network);
  app.footer(
      "Trees after ForestColl (arXiv:2402.06787). The output is a schedule's text.\n"
      "Examples:\n"
      "  rankine synthesise all_gather --ranks 16 --network torus > trees.txt\n"
      "  rankine check trees.txt --network torus\n"
      "  rankine synthesise broadcast --ranks 16 --network two_level_shared | rankine check -");
  return {app, [owned](Console& console) { return run_synthesise(*owned, console); }};
}

}  // namespace rankine::tools
