#include "engine/api/mpi/measured_network.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/machine_model.h"
#include "engine/api/mpi/member_state.h"
#include "engine/run/machine.h"

namespace rankine::mpi {
namespace {

constexpr std::size_t kShort = 8, kLong = std::size_t{1} << 20;
constexpr int kMostTurns = 200;
constexpr std::int64_t kMostNs = 300'000'000;  // of one size
constexpr int kLeastTurns = 5;

// Seconds of a message one way, as rank `a` sees it, known to all: the least, since what else goes
// on only adds to it.
Result<double> time_of(Member& me, Rank a, Rank b, std::size_t bytes) {
  std::vector<std::byte> buffer(bytes);
  const auto send = [&](Rank from, Rank to) {
    return me.call({.collective = Collective::send_recv,
                    .in = buffer.data(),
                    .out = buffer.data(),
                    .count = bytes,
                    .type = DataType::u8,
                    .root = from,
                    .peer = to});
  };
  std::vector<double> times;
  const std::int64_t began = now_ns();
  for (int turn = -1; turn < kMostTurns; ++turn) {
    const std::int64_t start = now_ns();
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      if (Status status = send(from, to); !status.ok()) return status;
    }
    if (turn >= 0) times.push_back(static_cast<double>(now_ns() - start) * 0.5e-9);
    // All go on as long as rank a does.
    double go_on = turn < kLeastTurns || now_ns() - began < kMostNs ? 1 : 0;
    Status status = me.broadcast(std::span<double>(&go_on, 1), a);
    if (!status.ok()) return status;
    if (go_on == 0) break;
  }
  double seconds = *std::min_element(times.begin(), times.end());
  Status status = me.broadcast(std::span<double>(&seconds, 1), a);
  if (!status.ok()) return status;
  return seconds;
}

Result<Link> link_between(Member& me, Rank a, Rank b) {
  const auto shortest = time_of(me, a, b, kShort);
  if (!shortest.ok()) return shortest.status();
  const auto longest = time_of(me, a, b, kLong);
  if (!longest.ok()) return longest.status();
  const auto fabric =
      machine_fabric({.alpha = *shortest,
                      .beta = (*longest - *shortest) / static_cast<double>(kLong - kShort),
                      .gamma = 0});
  if (!fabric.ok()) return fabric.status();
  return fabric->link;
}

}  // namespace

Result<Fabric> measure_network(Member& me) {
  const Homes& homes = me.homes();
  if (homes.nodes() > 1 && homes.group() == 0) {
    return invalid_argument("a network's groups are as many neighbours each; there are " +
                            homes.in_words());
  }
  Fabric fabric;
  fabric.name = "measured";
  if (me.ranks() == 1) return invalid_argument("ranks is 1; a message needs two");
  const bool several = homes.nodes() > 1;
  const int group = several ? homes.group() : me.ranks();
  if (group > 1) {
    const auto link = link_between(me, 0, 1);
    if (!link.ok()) return link.status();
    fabric.link = *link;
  }
  if (!several) return fabric;
  const auto between = link_between(me, 0, group);
  if (!between.ok()) return between.status();
  if (group == 1) {
    fabric.link = *between;
  } else {
    fabric.group = group;
    fabric.between = *between;
  }
  return fabric;
}

}  // namespace rankine::mpi
