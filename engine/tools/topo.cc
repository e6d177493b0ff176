#include "engine/tools/topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <vector>

#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/tools/machine.h"
#include "engine/tools/machine_team.h"
#include "engine/tools/text.h"
#include "engine/tools/topo_view.h"
#include "numa/memory.h"

namespace rankine::tools {
namespace {

// Small and large calls on all transports, so that mailboxes, boards, scratch and plans are there.
Status use(Team& team) {
  constexpr std::size_t kSmall = 64, kLarge = 16 * 1024;
  Status status = team.run([](Member& me) {
    std::vector<float> in(kLarge), out(kLarge);
    for (const Transport transport : {Transport::mailbox, Transport::direct}) {
      for (const std::size_t count : {kSmall, kLarge}) {
        const CallOptions options{.transport = transport};
        me.all_reduce(std::span<const float>(in.data(), count), std::span<float>(out.data(), count),
                      ReduceOp::sum, options)
            .throw_if_error();
      }
    }
    me.all_reduce(std::span<const float>(in.data(), 1), std::span<float>(out.data(), 1))
        .throw_if_error();
  });
  return status;
}

// A page for every node in use, touched, so that one can see where they went.
StagingView try_staging(Team& team, const Placement& placement) {
  StagingView view;
  for (const RankPlace& place : placement.ranks) {
    if (place.node >= 0 && place.node < kMaxNodes) {
      view.nodes.set(static_cast<std::size_t>(place.node));
    }
  }
  const std::size_t bytes = std::max<std::size_t>(1, view.nodes.count()) * page_bytes();
  if (void* const memory = team.staging().allocate(bytes, page_bytes())) {
    std::memset(memory, 1, bytes);
    view.where = residency_of(MemoryRange{memory, bytes});
  }
  view.binding = team.staging().binding();
  return view;
}

Result<TopoView::Real> try_out(const TopoOptions& options, int ranks, const Placement& placement) {
  TopoView::Real real;
  real.machine = read_machine();
  real.costs = machine_costs();
  if (const TuningTable* table = machine_tuning()) {
    real.table = tuning_file().path;
    real.table_made = table->made();
  }
  auto team = machine_team(
      {.ranks = ranks, .placement = options.placement, .lock_memory = options.lock_memory});
  if (!team.ok()) return team.status();
  Communicator& communicator = (*team)->communicator();
  real.waiting = to_string(communicator.wait_policy());
  real.memory_idle = communicator.memory_bytes();
  if (Status status = use(**team); !status.ok()) return status;
  real.memory_used = communicator.memory_bytes();
  real.report = (*team)->report();
  real.shared = communicator.shared_memory();
  for (Rank r = 0; r < ranks; ++r) {
    RankMemory memory = communicator.memory_of(r);
    RankMemoryView view{{},
                        residency_of(memory.lines.ranges),
                        residency_of(memory.mailboxes.ranges),
                        residency_of(memory.scratch.ranges)};
    view.memory = std::move(memory);
    real.memory.push_back(std::move(view));
  }
  real.staging = try_staging(**team, placement);
  return real;
}

}  // namespace

Result<Exit> topo(const TopoOptions& options, Console& console) {
  const Topology topology = options.synthetic ? *options.synthetic : Topology::detect();
  int ranks = options.ranks;
  if (ranks == 0) {
    ranks = std::max(2, options.synthetic ? topology.cores() : cpu_budget().cores);
    ranks = std::min(ranks, Communicator::kMaxRanks);
  }
  TopoView view{.topology = topology,
                .ranks = ranks,
                .policy = options.placement,
                .placement = place_ranks(topology, ranks, options.placement),
                .real = std::nullopt};
  if (!view.placement.ok()) return invalid_argument("--placement: " + view.placement.error);
  if (!options.synthetic) {
    auto real = try_out(options, ranks, view.placement);
    if (!real.ok()) return real.status();
    view.real = std::move(*real);
  }
  if (!options.svg.empty()) {
    Status status = write_picture("--svg", options.svg, to_svg(view));
    if (!status.ok()) return status;
  }
  if (options.json) {
    console.out << to_json(view).dump(2) << "\n";
  } else {
    print(view, console.out);
  }
  return Exit::ok;
}

Subcommand add_topo(Command tool) {
  auto owned = std::make_shared<TopoOptions>();
  TopoOptions& o = *owned;
  const Command app =
      tool.add_subcommand("topo", "draw the machine and where every rank and its memory goes");
  add_argument(app, "-t,--ranks", o.ranks, Whole{1, Communicator::kMaxRanks}, "N",
               "how many (usable cores, at least 2)");
  add_argument(app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(
      app, "--synthetic", o.synthetic,
      [](std::string_view argument, std::string_view text) -> Result<Topology> {
        TopologyResult parsed = Topology::synthetic(text);
        if (parsed.ok()) return std::move(*parsed.topology);
        return invalid_argument(fmt::format("{}: {}", argument, parsed.error));
      },
      "TEXT", "a machine in hwloc's notation instead of ours");
  app.add_flag("--lock", o.lock_memory, "keep the engine's memory from being swapped out");
  add_picture_file(app, "--svg", o.svg, "draw the same into this file");
  app.add_flag("--json", o.json, "the same as JSON");
  app.footer(
      "Examples:\n"
      "  rankine topo --ranks 4 --placement scatter --svg topo.svg\n"
      "  rankine topo --ranks 32 --synthetic \"pack:2 [numa] l3:4 core:8 pu:2\"");
  return {app, [owned](Console& console) { return topo(*owned, console); }};
}

}  // namespace rankine::tools
