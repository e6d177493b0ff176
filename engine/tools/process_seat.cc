#include "engine/tools/process_seat.h"

#include <unistd.h>

#include <type_traits>

#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine::tools {

Result<ProcessSeat> sit_down(const TeamOptions& options, const ProcessRank& process) {
  const Topology topology = Topology::detect();
  const Placement placement = place_ranks(topology, options.ranks, options.placement);
  if (!placement.ok()) return invalid_argument(placement.error);
  const RankPlace& mine = placement.ranks[static_cast<std::size_t>(process.rank)];
  const std::vector<int> levels = level_groups(topology, placement);
  auto communicator = Communicator::create({.ranks = options.ranks,
                                            .timeout = options.timeout,
                                            .wait = options.wait,
                                            .levels = levels,
                                            .tuned = options.tuned,
                                            .order = options.order,
                                            .rank = process.rank,
                                            .name = process.name,
                                            .ports = options.ports});
  if (!communicator.ok()) return communicator.status();
  // Afterwards: how it waits follows from the cores that the process may use.
  const Enforcement pin = pin_calling_thread(topology, mine);
  ProcessSeat seat{.communicator = std::move(*communicator), .member = {}, .places = {}};
  auto member = seat.communicator->join(process.rank);
  if (!member.ok()) return member.status();
  seat.member = std::move(*member);
  static_assert(std::is_trivially_copyable_v<RankReport>);
  auto places =
      gathered(*seat.member,
               ProcessSeat::Place{make_rank_report(process.rank, topology, mine, pin), getpid()});
  if (!places.ok()) return places.status();
  seat.places = std::move(*places);
  return seat;
}

}  // namespace rankine::tools
