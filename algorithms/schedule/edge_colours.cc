#include "algorithms/schedule/edge_colours.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace rankine {
namespace {

constexpr int kNone = -1;

// Which edge has which colour, at the ends of all ranks on one side.
class Ends {
 public:
  Ends(int ranks, int colours)
      : colours_(static_cast<std::size_t>(colours)),
        edge_(static_cast<std::size_t>(ranks) * colours_, kNone) {}
  int& at(Rank r, int colour) {
    return edge_[static_cast<std::size_t>(r) * colours_ + static_cast<std::size_t>(colour)];
  }

 private:
  std::size_t colours_;
  std::vector<int> edge_;
};

int most_at_one_end(int ranks, const std::vector<Edge>& edges) {
  std::vector<int> sends(static_cast<std::size_t>(ranks), 0), receives = sends;
  int most = 0;
  for (const auto& [from, to] : edges) {
    most = std::max(
        {most, ++sends[static_cast<std::size_t>(from)], ++receives[static_cast<std::size_t>(to)]});
  }
  return most;
}

bool takes_two_ports(const Transfer& t) {
  return t.from.size() == 1 && t.to.size() == 1 && t.from.front() != t.to.front();
}

void state_coloured(int ranks, std::vector<Transfer>&& round, Send send) {
  if (!std::all_of(round.begin(), round.end(), takes_two_ports)) {
    for (Transfer& t : round) send.exactly(std::move(t));
    return;
  }
  // By length, falling, then by colour, then as stated.
  std::vector<std::tuple<int, int, std::size_t>> order;
  for (std::size_t i = 0; i < round.size(); ++i) {
    order.emplace_back(-round[i].what.list.size(), 0, i);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t first = 0; first < order.size();) {
    std::vector<Edge> edges;
    std::size_t end = first;
    for (; end < order.size() && std::get<0>(order[end]) == std::get<0>(order[first]); ++end) {
      const Transfer& t = round[std::get<2>(order[end])];
      edges.push_back({t.from.front(), t.to.front()});
    }
    const std::vector<int> colours = edge_colours(ranks, edges);
    for (std::size_t i = first; i < end; ++i) std::get<1>(order[i]) = colours[i - first];
    first = end;
  }
  std::sort(order.begin(), order.end());
  for (const auto& [length, colour, i] : order) send.exactly(std::move(round[i]));
}

}  // namespace

std::vector<int> edge_colours(int ranks, const std::vector<Edge>& edges) {
  const int all = most_at_one_end(ranks, edges);
  Ends sent(ranks, all), received(ranks, all);
  std::vector<int> colour(edges.size(), kNone);
  const auto paint = [&](int edge, int with) {
    colour[static_cast<std::size_t>(edge)] = with;
    sent.at(edges[static_cast<std::size_t>(edge)].from, with) = edge;
    received.at(edges[static_cast<std::size_t>(edge)].to, with) = edge;
  };
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to] = edges[i];
    int at_sender = kNone, at_receiver = kNone, at_both = kNone;  // the least that are free
    for (int c = 0; c < all && at_both == kNone; ++c) {
      const bool sender = sent.at(from, c) == kNone, receiver = received.at(to, c) == kNone;
      if (sender && at_sender == kNone) at_sender = c;
      if (receiver && at_receiver == kNone) at_receiver = c;
      if (sender && receiver) at_both = c;
    }
    if (at_both == kNone) {
      // From the receiver on, a path whose edges have these two colours in turn. It never comes to
      // the sender, which it would enter by the one that is free there; so its colours can change
      // places, and the sender's is free at both ends.
      std::vector<int> path;
      int wanted = at_sender;
      bool by_receiver = true;
      for (Rank r = to;;) {
        const int edge = by_receiver ? received.at(r, wanted) : sent.at(r, wanted);
        if (edge == kNone) break;
        path.push_back(edge);
        const Edge& on = edges[static_cast<std::size_t>(edge)];
        r = by_receiver ? on.from : on.to;
        by_receiver = !by_receiver;
        wanted = wanted == at_sender ? at_receiver : at_sender;
      }
      for (const int edge : path) {
        const Edge& on = edges[static_cast<std::size_t>(edge)];
        sent.at(on.from, colour[static_cast<std::size_t>(edge)]) = kNone;
        received.at(on.to, colour[static_cast<std::size_t>(edge)]) = kNone;
      }
      for (const int edge : path) {
        const int old = colour[static_cast<std::size_t>(edge)];
        paint(edge, old == at_sender ? at_receiver : at_sender);
      }
      at_both = at_sender;
    }
    paint(static_cast<int>(i), at_both);
  }
  return colour;
}

Schedule coloured(Schedule a) {
  Schedule out = a;
  out.round = [a = std::move(a)](int k, Send send) {
    std::vector<Transfer> round;
    take_each_transfer(a, k, [&round](Transfer&& t) { round.push_back(std::move(t)); });
    state_coloured(a.ranks, std::move(round), send);
  };
  return out;
}

}  // namespace rankine
