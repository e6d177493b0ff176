#include "numa/rank_report.h"

#include <fmt/core.h>

namespace rankine {

namespace {

bool may_bind(const Topology& topology) {
  return topology.is_this_system() && topology.knows_nodes();
}

}  // namespace

ArenaOptions arena_options(const Topology& topology, const RankPlace& place) {
  ArenaOptions options;
  if (may_bind(topology) && place.node >= 0) options.node = place.node;
  return options;
}

ArenaOptions interleaved_options(const Topology& topology, const std::vector<RankPlace>& places) {
  ArenaOptions options;
  options.huge_pages = false;
  if (!may_bind(topology)) return options;
  for (const RankPlace& place : places) {
    if (place.node >= 0 && place.node < kMaxNodes) {
      options.interleave.set(static_cast<std::size_t>(place.node));
    }
  }
  return options;
}

RankReport make_rank_report(int rank, const Topology& topology, const RankPlace& place,
                            const Enforcement& pin) {
  RankReport report;
  report.rank = rank;
  report.place = place;
  report.pin = pin;
  if (!may_bind(topology) && place.node >= 0) {
    report.binding = Enforcement::refusal(
        0, topology.is_this_system()
               ? "memory not bound: the machine's memory nodes are not known"
               : "memory not bound: the topology does not describe this machine");
  }
  return report;
}

std::string to_string(const RankReport& report) {
  std::string text = fmt::format("rank {}: ", report.rank);
  if (report.place.cpu == kNotPlaced) {
    text += "not placed";
  } else {
    text += fmt::format("cpu {}, node {}", report.place.cpu, report.place.node);
    if (report.place.core_shared) text += ", core shared";
  }
  for (const Enforcement* part :
       {&report.pin, &report.binding, &report.huge_pages, &report.locking}) {
    if (part->refused()) text += fmt::format("; {}", part->why());
  }
  return text;
}

}  // namespace rankine
