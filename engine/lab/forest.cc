#include "engine/lab/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>

#include "algorithms/schedule/stating_order.h"
#include "engine/network/wiring.h"

namespace rankine::tools {
namespace {

using Links = LinkGraph::Links;

// Maximum flows (Dinitz). For one question: run() uses up the links' room.
class Flow {
 public:
  static constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

  explicit Flow(int nodes) : arcs_(static_cast<std::size_t>(nodes)) {}

  void add(int from, int to, std::int64_t room) {
    if (room == 0 || from == to) return;
    at(arcs_, from).push_back({to, static_cast<int>(at(arcs_, to).size()), room});
    at(arcs_, to).push_back({from, static_cast<int>(at(arcs_, from).size()) - 1, 0});
  }
  void add(const Links& links) {
    for (const auto& [ends, room] : links) add(ends.first, ends.second, room);
  }

  std::int64_t run(int from, int to) {
    std::int64_t total = 0;
    while (reaches(from, to)) {
      next_.assign(arcs_.size(), 0);
      while (const std::int64_t more = push(from, to, kNoLimit)) total += more;
    }
    return total;
  }
  // After run(): true for the nodes on the side of `from` of a cut without room.
  bool reached(int node) const { return at(depth_, node) >= 0; }

 private:
  struct Arc {
    int to, back;
    std::int64_t room;
  };

  bool reaches(int from, int to) {
    depth_.assign(arcs_.size(), -1);
    at(depth_, from) = 0;
    std::queue<int> open({from});
    for (; !open.empty(); open.pop()) {
      for (const Arc& arc : at(arcs_, open.front())) {
        if (arc.room == 0 || reached(arc.to)) continue;
        at(depth_, arc.to) = at(depth_, open.front()) + 1;
        open.push(arc.to);
      }
    }
    return reached(to);
  }
  std::int64_t push(int node, int to, std::int64_t most) {
    if (node == to) return most;
    std::vector<Arc>& arcs = at(arcs_, node);
    for (std::size_t& i = next_[static_cast<std::size_t>(node)]; i < arcs.size(); ++i) {
      Arc& arc = arcs[i];
      if (arc.room == 0 || at(depth_, arc.to) != at(depth_, node) + 1) continue;
      const std::int64_t pushed = push(arc.to, to, std::min(most, arc.room));
      if (pushed == 0) continue;
      arc.room -= pushed;
      at(at(arcs_, arc.to), arc.back).room += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<std::vector<Arc>> arcs_;
  std::vector<int> depth_;
  std::vector<std::size_t> next_;
};

// The room of every link for trees, and the trees that begin at each rank.
struct Room {
  int ranks, nodes;
  Links links;
  std::vector<std::int64_t> begin;

  std::int64_t all() const { return std::accumulate(begin.begin(), begin.end(), std::int64_t{0}); }
  std::int64_t of(int from, int to) const {
    const auto found = links.find({from, to});
    return found == links.end() ? 0 : found->second;
  }
  void change(int from, int to, std::int64_t by) {
    if (from == to || by == 0) return;
    const auto place = links.try_emplace({from, to}, 0).first;
    if ((place->second += by) == 0) links.erase(place);
  }

  // The trees that can pass all cuts with the nodes `from` and the source of all trees on one side,
  // and the nodes `to` on the other; the cut, if it is wanted.
  std::int64_t between(std::initializer_list<int> from, std::initializer_list<int> to,
                       std::vector<bool>* side = nullptr) const {
    const int source = nodes, target = nodes + 1;
    Flow flow(nodes + 2);
    flow.add(links);
    for (Rank u = 0; u < ranks; ++u) flow.add(source, u, at(begin, u));
    for (const int node : from) flow.add(source, node, Flow::kNoLimit);
    for (const int node : to) flow.add(node, target, Flow::kNoLimit);
    const std::int64_t most = flow.run(source, target);
    if (side != nullptr) {
      for (int node = 0; node < nodes; ++node) side->push_back(flow.reached(node));
    }
    return most;
  }
  // Edmonds: then each rank's trees fit, if there is no switch.
  bool fits() const {
    for (Rank v = 0; v < ranks; ++v) {
      if (between({}, {v}) < all()) return false;
    }
    return true;
  }
};

bool crosses(const std::vector<bool>& side, std::pair<int, int> ends) {
  return at(side, ends.first) && !at(side, ends.second);
}

std::int64_t as_count(Int128 value) {
  if (value > Flow::kNoLimit / 2) throw std::overflow_error("more trees than can be counted");
  return static_cast<std::int64_t>(value);
}

}  // namespace

LinkGraph LinkGraph::reversed() const {
  LinkGraph out = *this;
  out.links.clear();
  for (const auto& [ends, bandwidth] : links) out.links[{ends.second, ends.first}] = bandwidth;
  return out;
}

Result<LinkGraph> link_graph(const Fabric& fabric, int ranks) {
  const int places = fabric.places_among(ranks);
  const auto routes = Routes::make(fabric.wiring, places);
  if (!routes.ok()) return routes.status();
  std::map<std::pair<int, int>, Rational> bandwidths;
  const auto bandwidth = [&fabric](int kind) {
    const Rational beta = fabric.link_of_kind(kind).per_byte();
    return beta == 0 ? Rational(0) : Rational(1) / beta;
  };
  const auto no_limit = [&bandwidths] {
    return std::any_of(bandwidths.begin(), bandwidths.end(),
                       [](const auto& link) { return link.second == 0; });
  };
  LinkGraph out{.ranks = ranks, .nodes = ranks, .seconds_per_byte = 1};
  if (fabric.wiring.is_grid()) {
    if (places != ranks) {
      return invalid_argument(
          fmt::format("the grid has {} places; allowed for trees among {} "
                      "ranks are {}",
                      places, ranks, ranks));
    }
    if (fabric.ports != std::max(1, routes->degree())) {
      return invalid_argument(
          fmt::format("ports is {}; allowed for trees on a grid are {}, one "
                      "per wire",
                      fabric.ports, std::max(1, routes->degree())));
    }
    for (Rank a = 0; a < ranks; ++a) {
      for (Rank b = 0; b < ranks; ++b) {
        const int from = fabric.place_of(a), to = fabric.place_of(b);
        if (a == b || routes->hops(from, to) != 1) continue;
        int wires = 0, kind = fabric.kind_between(a, b);
        routes->for_each_link(from, to, [&wires](int, int) { ++wires; });
        for (std::size_t i = fabric.odd.size(); i > 0; --i) {
          const OddLink& odd = fabric.odd[i - 1];
          if (!odd.is_place() && odd.joins(from, to)) kind = 2 * static_cast<int>(i);
        }
        bandwidths[{a, b}] = Rational(wires) * bandwidth(kind);
      }
    }
  } else {
    for (const OddLink& odd : fabric.odd) {
      if (odd.is_place()) continue;
      return invalid_argument(
          fmt::format("the network has an odd link from {} to {}; trees need "
                      "odd places, or a grid",
                      odd.from, odd.to));
    }
    const bool shared = fabric.wiring.shares_links();
    const int groups = fabric.two_level() ? (places - 1) / fabric.group + 1 : 1;
    const int core = ranks + groups;
    out.nodes = groups > 1 ? core + 1 : core;
    const auto wire = [&bandwidths](int a, int b, Rational both) {
      if (a != b) bandwidths[{a, b}] = bandwidths[{b, a}] = both;
    };
    for (Rank r = 0; r < ranks; ++r) {
      Rational inside, far;  // the fastest link to another rank
      for (Rank other = 0; other < ranks; ++other) {
        if (other == r) continue;
        const int kind = fabric.kind_between(r, other);
        Rational& best = kind % 2 == 0 ? inside : far;
        best = std::max(best, bandwidth(kind));
        if (bandwidth(kind) == 0) return invalid_argument("the network has links without a limit");
      }
      const Rational ports(fabric.ports);
      const int leaf = ranks + (groups > 1 ? fabric.place_of(r) / fabric.group : 0);
      if (shared) inside = std::max(inside, far);
      if (!(inside == 0)) wire(r, leaf, ports * inside);
      if (!shared && !(far == 0)) wire(r, core, ports * far);
    }
    if (shared && groups > 1) {
      const int links = std::max(1, fabric.wiring.spines);
      for (int j = 0; j < groups; ++j) wire(ranks + j, core, Rational(links) * bandwidth(1));
    }
  }
  if (no_limit()) return invalid_argument("the network has links without a limit");
  try {
    Rational unit;  // the greatest number of which all bandwidths are multiples
    for (const auto& [ends, value] : bandwidths) {
      Rational a = value, b = unit;
      while (!(b == 0)) {
        const Rational rest = a - b * (a / b).floor();
        a = std::exchange(b, rest);
      }
      unit = a;
    }
    for (const auto& [ends, value] : bandwidths) {
      out.links[ends] = as_count((value / unit).top());
    }
    if (!bandwidths.empty()) out.seconds_per_byte = Rational(1) / unit;
  } catch (const std::overflow_error&) {
    return invalid_argument(
        "the links' bandwidths have no common unit within 64 bits; fewer "
        "digits are needed");
  }
  return out;
}

Result<Cut> tightest_cut(const LinkGraph& graph, const std::vector<int>& vectors) {
  Cut cut;
  for (Rank v = 0; v < graph.ranks; ++v) {
    for (;;) {
      // Times the denominator, for whole numbers.
      Room room{graph.ranks, graph.nodes, graph.links, {}};
      for (auto& [ends, trees] : room.links) trees = as_count(cut.time.top() * trees);
      for (const int each : vectors) room.begin.push_back(as_count(cut.time.bottom() * each));
      std::vector<bool> side;
      if (room.between({}, {v}, &side) >= room.all()) break;
      cut = Cut();
      cut.side = side;
      for (Rank u = 0; u < graph.ranks; ++u) {
        if (at(side, u)) cut.vectors += at(vectors, u);
      }
      for (const auto& [ends, bandwidth] : graph.links) {
        if (crosses(side, ends)) cut.bandwidth += bandwidth;
      }
      if (cut.bandwidth == 0) {
        return invalid_argument(fmt::format("no link leads to rank {} from all other ranks", v));
      }
      cut.time = Rational(cut.vectors, cut.bandwidth);
    }
  }
  return cut;
}

namespace {

// The room of the links in the least time for k trees of each vector.
Room room_for(const LinkGraph& graph, const std::vector<int>& vectors, std::int64_t k,
              Rational& time) {
  Rational factor = time * Rational(k);  // a link of bandwidth b carries floor(factor b) trees
  Room room{graph.ranks, graph.nodes, {}, {}};
  for (const int each : vectors) room.begin.push_back(each * k);
  const auto trees = [&factor](std::int64_t bandwidth) {
    return as_count((factor * Rational(bandwidth)).floor().top());
  };
  for (Rank v = 0; v < graph.ranks; ++v) {
    for (;;) {
      room.links.clear();
      for (const auto& [ends, bandwidth] : graph.links) {
        if (trees(bandwidth) > 0) room.links[ends] = trees(bandwidth);
      }
      std::vector<bool> side;
      if (room.between({}, {v}, &side) >= room.all()) break;
      std::optional<Rational> next;  // the least factor for one more tree across the cut
      for (const auto& [ends, bandwidth] : graph.links) {
        if (!crosses(side, ends)) continue;
        const Rational one_more = Rational(trees(bandwidth) + 1) / Rational(bandwidth);
        if (!next || one_more < *next) next = one_more;
      }
      factor = next.value();
    }
  }
  time = factor / Rational(k);
  return room;
}

// Replaces `trees` of the links u -> w -> t by u -> t.
void split_off(Room& room, int u, int w, int t, std::int64_t trees) {
  room.change(u, w, -trees);
  room.change(w, t, -trees);
  room.change(u, t, trees);
}

// The most trees that split_off() may take: the cuts that lose room are those between {u, t} and w,
// and between w and {u, t}.
std::int64_t most_to_split(const Room& room, int u, int w, int t, std::int64_t trees) {
  const std::int64_t all = room.all();
  for (Rank v = 0; v < room.ranks && trees > 0; ++v) {
    if (v != u && v != t) trees = std::min(trees, room.between({u, t}, {w, v}) - all);
    trees = std::min(trees, room.between({w}, {u, t, v}) - all);
  }
  return trees;
}

std::vector<int> switch_neighbours(const Room& room, int w) {
  std::set<int> out;
  for (const auto& [ends, trees] : room.links) {
    if (ends.first == w) out.insert(ends.second);
    if (ends.second == w) out.insert(ends.first);
  }
  return {out.begin(), out.end()};
}

// Calls visit(u, t) for all pairs of different neighbours, the most distant numbers first.
template <class Visit>
void for_each_pair(const std::vector<int>& ends, const Visit& visit) {
  const int n = static_cast<int>(ends.size());
  for (int d = 0; d < n; ++d) {
    for (int i = 0; i < n; ++i) {
      const int u = at(ends, i), t = at(ends, (i + n / 2 + d) % n);
      if (u != t) visit(u, t);
    }
  }
}

// Splits the links of switch w in equal parts, for shallow trees; false if a cut is too tight then.
bool split_evenly(Room& room, int w, const std::vector<int>& ends) {
  Room tried = room;
  const auto others = static_cast<std::int64_t>(ends.size()) - 1;
  for (const bool even : {true, false}) {
    for_each_pair(ends, [&](int u, int t) {
      std::int64_t trees = std::min(tried.of(u, w), tried.of(w, t));
      if (even) trees = std::min({trees, room.of(u, w) / others, room.of(w, t) / others});
      split_off(tried, u, w, t, trees);
    });
  }
  const bool whole =
      std::all_of(ends.begin(), ends.end(), [&tried, w](int u) { return tried.of(u, w) == 0; });
  if (!whole || !tried.fits()) return false;
  room = std::move(tried);
  return true;
}

void remove_switches(Room& room) {
  for (int w = room.nodes - 1; w >= room.ranks; --w) {
    const std::vector<int> ends = switch_neighbours(room, w);
    if (split_evenly(room, w, ends)) continue;
    const Room before = room;
    const auto others = static_cast<std::int64_t>(ends.size()) - 1;
    for (const bool even : {true, false}) {
      for_each_pair(ends, [&](int u, int t) {
        std::int64_t trees = std::min(room.of(u, w), room.of(w, t));
        if (even) {
          const std::int64_t part = std::min(before.of(u, w), before.of(w, t)) / others;
          trees = std::min(trees, std::max<std::int64_t>(part, 1));
        }
        split_off(room, u, w, t, most_to_split(room, u, w, t, trees));
      });
    }
    for (const int u : ends) {  // room that no tree needs
      room.change(u, w, -room.of(u, w));
      room.change(w, u, -room.of(w, u));
    }
  }
  room.nodes = room.ranks;
  if (!room.fits()) throw std::logic_error("forest: a cut became too tight without a switch");
}

// Trees that grow together.
struct Growing {
  SpanningTree tree;
  std::vector<int> depth;  // by rank; -1: not reached
};

// The most trees of `all[i]` that may take the link from x to y: the others must still fit.
std::int64_t most_to_grow(const Room& room, const std::vector<Growing>& all, std::size_t i, Rank x,
                          Rank y) {
  Flow flow(room.ranks + static_cast<int>(all.size()));
  flow.add(room.links);
  std::int64_t others = 0;
  for (std::size_t j = 0; j < all.size(); ++j) {
    if (j == i) continue;
    const int source = room.ranks + static_cast<int>(j);
    flow.add(x, source, all[j].tree.count);
    for (Rank v = 0; v < room.ranks; ++v) {
      if (at(all[j].depth, v) >= 0) flow.add(source, v, Flow::kNoLimit);
    }
    others += all[j].tree.count;
  }
  const std::int64_t most = std::min(all[i].tree.count, room.of(x, y));
  return std::min(most, flow.run(x, y) - others);
}

std::vector<SpanningTree> pack_trees(Room room) {
  std::vector<Growing> growing;
  for (Rank u = 0; u < room.ranks; ++u) {
    if (at(room.begin, u) == 0) continue;
    growing.push_back({{.root = u, .count = at(room.begin, u)},
                       std::vector<int>(static_cast<std::size_t>(room.ranks), -1)});
    at(growing.back().depth, u) = 0;
  }
  std::vector<SpanningTree> out;
  while (!growing.empty()) {
    // Breadth first, so that trees are shallow.
    std::vector<Rank> reached = {growing.front().tree.root};
    for (const SpanningTree::Edge& edge : growing.front().tree.edges) reached.push_back(edge.to);
    for (std::size_t next = 0; next < reached.size(); ++next) {
      const Rank x = reached[next];
      for (Rank y = 0; y < room.ranks; ++y) {
        if (at(growing.front().depth, y) >= 0 || room.of(x, y) == 0) continue;
        const std::int64_t trees = most_to_grow(room, growing, 0, x, y);
        if (trees <= 0) continue;
        if (trees < growing.front().tree.count) {
          growing.push_back(growing.front());
          growing.back().tree.count -= trees;
        }
        Growing& one = growing.front();
        one.tree.count = trees;
        at(one.depth, y) = at(one.depth, x) + 1;
        one.tree.edges.push_back({x, y, at(one.depth, y)});
        room.change(x, y, -trees);
        reached.push_back(y);
      }
    }
    if (static_cast<int>(reached.size()) < room.ranks) {
      throw std::logic_error("forest: a tree cannot grow");
    }
    out.push_back(std::move(growing.front().tree));
    growing.erase(growing.begin());
  }
  return out;
}

}  // namespace

int Forest::depth() const {
  int deepest = 0;
  for (const SpanningTree& tree : all) {
    for (const SpanningTree::Edge& edge : tree.edges) deepest = std::max(deepest, edge.depth);
  }
  return deepest;
}

Result<Forest> forest_of(const LinkGraph& graph, const std::vector<int>& vectors, int trees) {
  const auto cut = tightest_cut(graph, vectors);
  if (!cut.ok()) return cut.status();
  Forest out{.cut = *cut, .time = cut->time};
  if (graph.ranks == 1) return out;
  // Bandwidths have no common divisor, so all links carry a whole number of trees if k is a
  // multiple of the time's denominator.
  const Int128 least = cut->time.bottom();
  std::optional<Room> best;
  const int last = trees > 0 ? trees : kMostTrees;
  const int first = trees > 0 ? trees : least <= last ? static_cast<int>(least) : 1;
  for (int k = first; k <= last; ++k) {
    Rational time = cut->time;
    Room room = room_for(graph, vectors, k, time);
    if (best && !(time < out.time)) continue;
    best = std::move(room);
    out.trees = k;
    out.time = time;
    if (time == cut->time) break;
  }
  Room room = std::move(*best);
  remove_switches(room);
  out.all = pack_trees(std::move(room));
  return out;
}

Schedule schedule_of(const Forest& forest, int ranks, int segments) {
  using Messages = std::map<std::pair<Rank, Rank>, BlockSet>;
  const bool one_root = std::all_of(forest.all.begin(), forest.all.end(), [&](const auto& tree) {
    return tree.root == forest.all.front().root;
  });
  const int k = static_cast<int>(forest.trees), owners = one_root ? 1 : ranks;
  const int deepest = forest.depth();
  const int count = deepest == 0 ? 0 : deepest + segments - 1;
  auto rounds = std::make_shared<std::vector<Messages>>(static_cast<std::size_t>(count));
  std::vector<int> taken(static_cast<std::size_t>(ranks), 0);  // trees of each root so far
  for (const SpanningTree& tree : forest.all) {
    const int trees = static_cast<int>(tree.count);
    const Block first = ((one_root ? 0 : tree.root * k) + at(taken, tree.root)) * segments;
    at(taken, tree.root) += trees;
    for (const SpanningTree::Edge& edge : tree.edges) {
      for (int s = 0; s < segments; ++s) {
        Messages& messages = at(*rounds, edge.depth - 1 + s);
        messages[{edge.from, edge.to}].list.append(Run{first + s, trees, segments});
      }
    }
  }
  return coloured({ranks, owners * k * segments, count, [rounds](int t, Send send) {
                     for (const auto& [ends, what] : at(*rounds, t)) {
                       send(ends.first, ends.second, what, copy);
                     }
                   }});
}

}  // namespace rankine::tools
