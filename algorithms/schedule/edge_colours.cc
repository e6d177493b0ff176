#include "algorithms/schedule/edge_colours.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace rankine {
namespace {

constexpr int kNone = -1;

// Which edge has which colour, at the ends of all ranks on one side. A rank has room for as many as
// it has edges: the leaves of a tree have one each, however many their parents have.
class Ends {
 public:
  // `end`: the side, as an edge names it.
  Ends(int ranks, const std::vector<Edge>& edges, Rank Edge::*end)
      : rows_(static_cast<std::size_t>(ranks)), ends_(edges.size()) {
    for (const Edge& edge : edges) ++row(edge.*end).room;
    int first = 0;
    for (Row& row : rows_) {
      row.first = first;
      first += row.room;
      most_ = std::max(most_, row.room);
    }
  }
  int most() const { return most_; }  // edges of one rank

  int at(Rank r, int colour) const {
    const Row& row = rows_[static_cast<std::size_t>(r)];
    const auto there = place_of(row, colour);
    return there != end_of(row) && there->colour == colour ? there->edge : kNone;
  }
  int least_free(Rank r) const { return rows_[static_cast<std::size_t>(r)].least_free; }

  // The colour was free there; and free it is again.
  void paint(Rank r, int colour, int edge) {
    Row& row = this->row(r);
    const auto there = ends_.begin() + (place_of(row, colour) - ends_.cbegin());
    std::move_backward(there, begin_of(row) + row.used, begin_of(row) + row.used + 1);
    *there = {colour, edge};
    ++row.used;
    while (at(r, row.least_free) != kNone) ++row.least_free;
  }
  void clear(Rank r, int colour) {
    Row& row = this->row(r);
    const auto there = ends_.begin() + (place_of(row, colour) - ends_.cbegin());
    std::move(there + 1, begin_of(row) + row.used, there);
    --row.used;
    row.least_free = std::min(row.least_free, colour);
  }

 private:
  struct End {
    int colour = kNone, edge = kNone;
  };
  struct Row {  // of a rank: by colour, rising
    int first = 0, room = 0, used = 0, least_free = 0;
  };

  Row& row(Rank r) { return rows_[static_cast<std::size_t>(r)]; }
  std::vector<End>::iterator begin_of(const Row& row) { return ends_.begin() + row.first; }
  std::vector<End>::const_iterator end_of(const Row& row) const {
    return ends_.begin() + row.first + row.used;
  }
  // Of that colour, or where it would be.
  std::vector<End>::const_iterator place_of(const Row& row, int colour) const {
    return std::lower_bound(ends_.begin() + row.first, end_of(row), colour,
                            [](const End& end, int c) { return end.colour < c; });
  }

  std::vector<Row> rows_;
  std::vector<End> ends_;
  int most_ = 0;
};

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
  Ends sent(ranks, edges, &Edge::from), received(ranks, edges, &Edge::to);
  const int all = std::max(sent.most(), received.most());
  if (all <= 1) return std::vector<int>(edges.size(), 0);
  std::vector<int> colour(edges.size(), kNone);
  const auto paint = [&](int edge, int with) {
    colour[static_cast<std::size_t>(edge)] = with;
    sent.paint(edges[static_cast<std::size_t>(edge)].from, with, edge);
    received.paint(edges[static_cast<std::size_t>(edge)].to, with, edge);
  };
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to] = edges[i];
    const int at_sender = sent.least_free(from), at_receiver = received.least_free(to);
    int at_both = kNone;  // the least that is free
    for (int c = std::max(at_sender, at_receiver); c < all && at_both == kNone; ++c) {
      if (sent.at(from, c) == kNone && received.at(to, c) == kNone) at_both = c;
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
        sent.clear(on.from, colour[static_cast<std::size_t>(edge)]);
        received.clear(on.to, colour[static_cast<std::size_t>(edge)]);
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
