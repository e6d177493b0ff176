#include "engine/read/profile.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <string>
#include <utility>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/everyone.h"
#include "engine/network/congestion.h"

namespace rankine {
namespace {

struct Message {
  Rank from, to;
  std::int64_t blocks;
};

// What one round comes to.
struct ProfiledRound {
  std::vector<SlowMessage> slowest;
  std::vector<std::int64_t> sent;  // blocks, by rank
  int most_messages = 0;
  bool on_wires = true;  // every transfer is a message from one rank to one
};

// Those that no other message reaches in both hops and load.
std::vector<SlowMessage> slowest_of(std::vector<std::int64_t>&& load_by_hops) {
  std::vector<SlowMessage> out;
  std::int64_t most = -1;
  for (std::size_t hops = load_by_hops.size(); hops-- > 0;) {
    if (load_by_hops[hops] <= most) continue;
    most = load_by_hops[hops];
    out.push_back({static_cast<int>(hops), most});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// visit(from, to, blocks) for the transfers of a round: ranks and how many blocks. Where everyone does
// the same these are counted once for all, and no list of blocks is turned that nobody looks at.
template <class Visit>
void for_each_count(const Schedule& schedule, int k, const Visit& visit) {
  const Everyone* all = everyone_in(schedule);
  for_each_transfer(all != nullptr ? all->part() : schedule, k, [&](const Transfer& t) {
    const std::int64_t blocks = t.what.list.size();
    if (all == nullptr || t.from.size() != 1 || t.to.size() != 1) {
      visit(t.from, t.to, blocks);
      return;
    }
    for (Rank by : ranks(schedule.ranks)) {
      const Rotation& turn = all->rotation();
      visit(turn.rotated(t.from.front(), by), turn.rotated(t.to.front(), by), blocks);
    }
  });
}

ProfiledRound read_round(const Schedule& schedule, int k, const Routes& routes) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  ProfiledRound out;
  out.sent.assign(ranks, 0);
  std::vector<Message> messages;
  std::vector<int> sends(ranks, 0), receives(ranks, 0);
  Congestion congestion(routes);
  for_each_count(schedule, k, [&](const RankSet& senders, const RankSet& receivers, auto blocks) {
    if (senders.empty() || receivers.empty()) return;
    if (senders.size() > 1 || receivers.size() > 1) {
      out.on_wires = false;
      return;
    }
    const Rank from = senders.front(), to = receivers.front();
    if (from == to) return;
    messages.push_back({from, to, blocks});
    congestion.add(from, to, blocks);
    out.sent[static_cast<std::size_t>(from)] += blocks;
    out.most_messages = std::max({out.most_messages, ++sends[static_cast<std::size_t>(from)],
                                  ++receives[static_cast<std::size_t>(to)]});
  });
  std::vector<std::int64_t> load_by_hops;
  for (const Message& m : messages) {
    const auto hops = static_cast<std::size_t>(routes.hops(m.from, m.to));
    if (hops >= load_by_hops.size()) load_by_hops.resize(hops + 1, -1);
    load_by_hops[hops] = std::max(
        load_by_hops[hops], static_cast<std::int64_t>(congestion.busiest(m.from, m.to, m.blocks)));
  }
  out.slowest = slowest_of(std::move(load_by_hops));
  return out;
}

}  // namespace

std::int64_t Profile::most_sent() const {
  return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
}

std::int64_t Profile::total_load() const {
  std::int64_t total = 0;
  for (const auto& round : rounds) total += round.front().load;
  return total;
}

double Profile::time(double alpha, double alpha_hop, double beta, double bytes) const {
  const double per_unit = beta * bytes / static_cast<double>(per_m);
  double total = 0;
  for (const auto& round : rounds) {
    double slowest = 0;
    for (const SlowMessage& m : round) {
      slowest = std::max(slowest, m.hops * alpha_hop + static_cast<double>(m.load) * per_unit);
    }
    total += alpha + slowest;
  }
  return total;
}

double Profile::time(const Fabric& fabric, double bytes) const {
  return time(fabric.link.latency().to_double(), fabric.alpha_hop.to_double(),
              fabric.link.per_byte().to_double(), bytes);
}

Result<Profile> profile(const Schedule& schedule, const Goal& goal, const Wiring& wiring) {
  if (wiring.has_leaves()) {
    return invalid_argument("wiring is " + std::string(name_of(wiring.kind)) +
                            ", where links between groups differ from those inside; allowed are "
                            "full, ring, torus, mesh, hypercube");
  }
  const auto routes = Routes::make(wiring, schedule.ranks);
  if (!routes.ok()) return routes.status();
  std::vector<ProfiledRound> rounds(static_cast<std::size_t>(schedule.rounds));
  tbb::parallel_for(std::size_t{0}, rounds.size(), [&](std::size_t k) {
    rounds[k] = read_round(schedule, static_cast<int>(k), *routes);
  });

  constexpr std::int64_t kHalves = 2;  // Congestion counts half blocks
  Profile out;
  out.ranks = schedule.ranks;
  out.per_m = kHalves * blocks_per_m(goal);
  out.sent.assign(static_cast<std::size_t>(schedule.ranks), 0);
  for (ProfiledRound& round : rounds) {
    if (!round.on_wires) {
      return invalid_argument(
          "the schedule has a multicast or ALU transfer; lower it to messages first");
    }
    for (std::size_t r = 0; r < out.sent.size(); ++r) out.sent[r] += kHalves * round.sent[r];
    out.most_messages = std::max(out.most_messages, round.most_messages);
    if (!round.slowest.empty()) out.rounds.push_back(std::move(round.slowest));
  }
  return out;
}

}  // namespace rankine
