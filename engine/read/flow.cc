#include "engine/read/flow.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"
#include "engine/base/names.h"
#include "engine/network/port_model.h"
#include "engine/read/carried_schedule.h"

namespace rankine {

const std::vector<std::string_view>& fidelity_names() {
  static const std::vector<std::string_view> kNames = {"eq1", "flow", "packet"};
  return kNames;
}

std::string_view name_of(Fidelity fidelity) {
  return fidelity_names()[static_cast<std::size_t>(fidelity)];
}

std::optional<Fidelity> parse_fidelity(std::string_view text) {
  return enumerator_of<Fidelity>(fidelity_names(), text);
}

MaxMin::MaxMin(int links) : links_(static_cast<std::size_t>(links)) {}

int MaxMin::add_link() {
  links_.emplace_back();
  return static_cast<int>(links_.size()) - 1;
}

int MaxMin::start(int weight, std::span<const int> links) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int f = unused_.back();
  unused_.pop_back();
  Flow& started = flow(f);
  started.weight = weight;
  started.rate = 0;
  for (const int l : links) {
    auto& passages = link(l).passages;
    passages.push_back({f, static_cast<int>(started.hops.size())});
    started.hops.push_back({l, static_cast<int>(passages.size()) - 1});
    touch(l);
  }
  return f;
}

void MaxMin::stop(int f) {
  for (const Hop& hop : flow(f).hops) {
    // The link's last passage takes the free place.
    auto& passages = link(hop.link).passages;
    const Passage last = passages.back();
    passages[static_cast<std::size_t>(hop.at)] = last;
    flow(last.flow).hops[static_cast<std::size_t>(last.hop)].at = hop.at;
    passages.pop_back();
    touch(hop.link);
  }
  flow(f).hops.clear();
  flow(f).rate = 0;
  unused_.push_back(f);
}

void MaxMin::touch(int l) {
  if (link(l).seen == turn_) return;
  link(l).seen = turn_;
  touched_.push_back(l);
}

// Collects all links that touched links may affect, with all flows unfrozen.
void MaxMin::gather() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    Link& l = link(touched_[i]);
    l.left = l.capacity;
    l.open = 0;
    for (const Passage& passage : l.passages) {
      Flow& crossing = flow(passage.flow);
      l.open += crossing.weight;
      if (crossing.seen == turn_) continue;
      crossing.seen = turn_;
      for (const Hop& hop : crossing.hops) touch(hop.link);
    }
  }
}

std::span<const int> MaxMin::settle() {
  gather();
  changed_.clear();
  fullest_.clear();
  for (const int l : touched_) {
    if (link(l).open > 0) fullest_.emplace_back(link(l).capacity / link(l).open, l);
  }
  std::make_heap(fullest_.begin(), fullest_.end(), std::greater<>());
  while (!fullest_.empty()) {
    std::pop_heap(fullest_.begin(), fullest_.end(), std::greater<>());
    const auto [noted, l] = fullest_.back();
    fullest_.pop_back();
    Link& full = link(l);
    if (full.open == 0) continue;
    // Freezing a flow at a lower level than this link's can only raise this link's.
    const double level = full.left / full.open;
    if (level > noted) {
      fullest_.emplace_back(level, l);
      std::push_heap(fullest_.begin(), fullest_.end(), std::greater<>());
      continue;
    }
    for (const Passage& passage : full.passages) {
      Flow& crossing = flow(passage.flow);
      if (crossing.frozen != turn_) freeze(crossing, passage.flow, level);
    }
  }
  touched_.clear();
  ++turn_;
  return changed_;
}

void MaxMin::freeze(Flow& crossing, int f, double level) {
  // A difference by rounding is no change: predictions from the old rate stay valid.
  constexpr double kRounding = 1e-14;
  crossing.frozen = turn_;
  const double rate = crossing.weight * level;
  if (std::abs(rate - crossing.rate) > kRounding * rate) {
    crossing.rate = rate;
    changed_.push_back(f);
  }
  for (const Hop& hop : crossing.hops) {
    Link& l = link(hop.link);
    l.left = std::max(0.0, l.left - rate);
    l.open -= crossing.weight;
  }
}

namespace {

// The coordinate that stands for x, and true if x is a mirror image of it.
std::pair<int, bool> least_of(const Alike::Line& line, int x) {
  const int way = x % line.step, image = line.step - 1 - way;
  return line.mirrored && image < way ? std::pair(image, true) : std::pair(way, false);
}

// All messages of a round by rank, those of a rank in order, so that ranks can be compared.
class RoundMessages {
 public:
  RoundMessages(const std::vector<Sent>& messages, int ranks)
      : first_(static_cast<std::size_t>(ranks) + 1), sorted_(messages.size()) {
    for (const Sent& m : messages) ++first_[static_cast<std::size_t>(m.from) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const Sent& m : messages) sorted_[next[static_cast<std::size_t>(m.from)]++] = m;
    for (int r = 0; r < ranks; ++r) std::sort(begin(r), begin(r + 1));
  }

  // True if turned(Rank) maps these messages to themselves.
  template <class Turn>
  bool is_kept_by(const Turn& turned) {
    std::vector<Sent> images;
    for (Rank r = 0; r + 1 < static_cast<Rank>(first_.size()); ++r) {
      images.clear();
      for (auto m = begin(r); m != begin(r + 1); ++m) {
        images.push_back({turned(m->from), turned(m->to), m->blocks});
      }
      std::sort(images.begin(), images.end());
      const Rank image = turned(r);
      if (!std::equal(images.begin(), images.end(), begin(image), begin(image + 1))) return false;
    }
    return true;
  }

 private:
  std::vector<Sent>::iterator begin(Rank r) {
    return sorted_.begin() + static_cast<std::ptrdiff_t>(first_[static_cast<std::size_t>(r)]);
  }
  std::vector<std::size_t> first_;  // index of each rank's first message, and the end
  std::vector<Sent> sorted_;
};

// The symmetries of all rounds, dimension by dimension: those of one dimension are a group, and
// those of several dimensions can be combined.
std::vector<Alike::Line> lines_of(const SentByRound& all, const Torus& torus) {
  std::vector<RoundMessages> rounds;
  for (const auto& messages : all) rounds.emplace_back(messages, torus.ranks());
  std::vector<Alike::Line> lines;
  for (int d = 0; d < torus.dimensions(); ++d) {
    const int size = torus.size(d), stride = torus.stride(d);
    const auto kept = [&](const auto& coordinate) {
      const auto turned = [&](Rank r) {
        const int x = torus.coordinate(r, d);
        return r + (coordinate(x) - x) * stride;
      };
      return std::all_of(rounds.begin(), rounds.end(),
                         [&turned](RoundMessages& round) { return round.is_kept_by(turned); });
    };
    Alike::Line line;
    while (size % line.step != 0 ||
           (line.step < size && !kept([&](int x) { return (x + line.step) % size; }))) {
      ++line.step;
    }
    line.mirrored = line.step % 2 == 0 && kept([size](int x) { return size - 1 - x; });
    lines.push_back(line);
  }
  return lines;
}

Skeleton skeleton_in(const SentByRound& all, const CollectiveSpec& goal,
                     const std::vector<int>& dims, std::vector<Alike::Line> lines) {
  Skeleton out{dims, Alike(dims, std::move(lines)), goal, {}};
  for (const auto& messages : all) {
    auto& kept = out.messages.emplace_back();
    std::copy_if(messages.begin(), messages.end(), std::back_inserter(kept),
                 [&out](const Sent& m) { return out.alike.represents_others(m.from); });
  }
  return out;
}

}  // namespace

Alike::Alike(const std::vector<int>& dims, std::vector<Line> lines)
    : lines_(std::move(lines)), ways_(2 * static_cast<int>(dims.size())) {
  const Torus torus(dims);
  const auto ranks = static_cast<std::size_t>(torus.ranks());
  class_of_.assign(ranks, -1);
  stands_.assign(ranks, false);
  turned_.reserve(ranks * dims.size());
  classes_ = 0;
  for (Rank r = 0; r < torus.ranks(); ++r) {
    Rank first = 0;
    for (int d = 0; d < torus.dimensions(); ++d) {
      const auto [x, image] = least_of(lines_[static_cast<std::size_t>(d)], torus.coordinate(r, d));
      first += x * torus.stride(d);
      turned_.push_back(image);
    }
    // The rank with the least coordinates comes first.
    stands_[static_cast<std::size_t>(r)] = first == r;
    class_of_[static_cast<std::size_t>(r)] =
        first == r ? classes_++ : class_of_[static_cast<std::size_t>(first)];
  }
}

Schedule Skeleton::schedule() const {
  Schedule out{.ranks = goal.ranks,
               .blocks = goal.blocks,
               .rounds = static_cast<int>(messages.size()),
               .round = {}};
  out.round = [this](int k, Send send) {
    for (const Sent& m : messages[static_cast<std::size_t>(k)]) {
      send(m.from, m.to, blocks(0, m.blocks), reduce);
    }
  };
  return out;
}

Result<Skeleton> skeleton_of(const Schedule& schedule, const CollectiveSpec& goal,
                             const std::vector<int>& dims) {
  if (const auto why = dims_refusal(dims, schedule.ranks)) return invalid_argument(*why);
  const RotationSymmetric* one = symmetry_for(schedule, goal);
  if (one != nullptr && one->rotation().dims() != dims) one = nullptr;
  SentByRound all(static_cast<std::size_t>(schedule.rounds));
  bool wires_only = true;
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(one == nullptr ? schedule : one->part(), k, [&](const Transfer& t) {
      if (t.from.empty() || t.to.empty() || is_local(t)) return;
      wires_only = wires_only && is_message(t);
      const Rank from = t.from.front(), to = t.to.front();
      const auto add = [&](Rank a, Rank b) {
        all[static_cast<std::size_t>(k)].push_back({a, b, t.what.list.size()});
      };
      if (one == nullptr) return add(from, to);
      add(0, one->rotation().rotated(to, one->rotation().back(from)));
    });
  }
  if (!wires_only) {
    return invalid_argument(
        "the schedule has a multicast or ALU transfer; lower it to messages first");
  }
  if (one == nullptr) return skeleton_of(all, goal, dims);
  return skeleton_in(all, goal, dims, std::vector<Alike::Line>(dims.size()));
}

Skeleton skeleton_of(const SentByRound& all, const CollectiveSpec& goal,
                     const std::vector<int>& dims) {
  return skeleton_in(all, goal, dims, lines_of(all, Torus(dims)));
}

namespace {

constexpr int kNoLink = -1;

// The flow simulator's part of a message.
struct FlowLoad {
  double work = 0;         // seconds that its bytes need on a private link
  int flows = 0;           // flows still under way
  int own_link = kNoLink;  // a link with the bandwidth of an odd place
};

class FlowSimulator : public MessagesInOrder<double, FlowLoad, FlowSimulator> {
  using Order = MessagesInOrder<double, FlowLoad, FlowSimulator>;
  friend Order;

 public:
  explicit FlowSimulator(const CarriedSchedule& of)
      : Order(of),
        ways_(of),
        rates_(rates_of_kinds()),
        gamma_(of.fabric.gamma.to_double() / static_cast<double>(of.pricing.weight_per_byte())),
        alpha_hop_(of.fabric.alpha_hop.to_double()),
        alpha_switch_(of.fabric.alpha_switch.to_double()),
        sharing_(ways_.links()) {
    set_odd_wires();
  }

 private:
  enum What : std::uint8_t { kFlowsStart = 1, kFlowEnds };

  struct Rates {
    double alpha = 0, beta = 0;  // beta per unit of weight
  };
  struct Flow {
    Id node = 0;
    double left = 0, rate = 0, since = 0;  // `left` was true at `since`
    std::uint32_t prediction = 0;          // number of the valid prediction of its end
  };

  std::vector<Rates> rates_of_kinds() const {
    std::vector<Rates> all;
    for (int kind = 0; kind < fabric().link_kinds(); ++kind) {
      const Link link = fabric().link_of_kind(kind);
      all.push_back(
          {link.latency().to_double(),
           link.per_byte().to_double() / static_cast<double>(pricing().weight_per_byte())});
    }
    return all;
  }
  const Rates& rates_of(int kind) const { return rates_[static_cast<std::size_t>(kind)]; }
  // Kinds come in pairs, of which the first two are those of ordinary links.
  const Rates& like_the_rest(int kind) const { return rates_of(kind % 2); }
  // The bandwidth of a link of this kind, as a fraction of that of an ordinary link.
  double part(int kind) const {
    constexpr double kAnything = 1e18;
    const double beta = rates_of(kind).beta;
    return beta > 0 ? like_the_rest(kind).beta / beta : kAnything;
  }
  void set_odd_wires() {
    ways_.for_each_odd_wire(
        [this](int link, int kind) { sharing_.set_capacity(link, part(kind)); });
  }
  int kind_of(const Node& n) const { return fabric().kind_between(n.from, n.to); }

  // --- Functions that MessagesInOrder calls

  double adding(std::int64_t weight) const { return gamma_ * static_cast<double>(weight); }

  void launch(Id id) {
    Node& n = node(id);
    const auto weight = static_cast<double>(n.weight);
    if (n.parties != nullptr) {
      return ends_at(now() + 2 * alpha_switch_ + rates_of(0).beta * weight + n.adding, id);
    }
    // On shared links, work is in seconds of an ordinary link.
    const int kind = kind_of(n);
    const bool shares = ways_.shares_links(n.from, n.to);
    n.load.work = (shares ? like_the_rest(kind) : rates_of(kind)).beta * weight;
    const double flowing = now() + rates_of(kind).alpha + ways_.hops(n.from, n.to) * alpha_hop_;
    if (n.load.work > 0 && shares) {
      at(flowing, kFlowsStart, id, 0, next_order());
    } else {
      ends_at(flowing + n.load.work + n.adding, id);
    }
  }

  // Events within rounding of now() count as now.
  double until() const {
    constexpr double kRounding = 1e-12;
    return now() * (1 + kRounding);
  }

  void happens(const Event& event) {
    if (event.what == kFlowsStart) {
      start_flows(event.who);
    } else {
      end_flow(static_cast<int>(event.who), event.version);
    }
  }

  void settle() {
    for (const int f : sharing_.settle()) {
      Flow& flow = flows_[static_cast<std::size_t>(f)];
      flow.left = std::max(0.0, flow.left - flow.rate * (now() - flow.since));
      flow.since = now();
      flow.rate = sharing_.rate(f);
      at(now() + flow.left / flow.rate, kFlowEnds, static_cast<std::uint64_t>(f), ++flow.prediction,
         next_order());
    }
  }

  // --- Flows

  void start_flows(Id id) {
    Node& n = node(id);
    ways_.find(n.from, n.to);
    if (const int kind = kind_of(n); kind >= 2 && part(kind) < 1) {
      n.load.own_link = own_link(part(kind));
      for (auto* way : {&ways_.up, &ways_.down}) way->push_back(n.load.own_link);
    }
    if (ways_.splits) {
      start_flow(id, n.load.work / 2, 1, ways_.up);
      start_flow(id, n.load.work / 2, 1, ways_.down);
    } else {
      start_flow(id, n.load.work, 2, ways_.up);
    }
  }

  void start_flow(Id id, double work, int halves, const std::vector<int>& links) {
    const auto f = static_cast<std::size_t>(sharing_.start(halves, links));
    if (f >= flows_.size()) flows_.resize(f + 1);
    const std::uint32_t prediction = flows_[f].prediction;
    flows_[f] = {id, work, 0, now(), prediction};
    ++node(id).load.flows;
  }

  void end_flow(int f, std::uint32_t prediction) {
    Flow& flow = flows_[static_cast<std::size_t>(f)];
    if (flow.prediction != prediction) return;
    ++flow.prediction;
    sharing_.stop(f);
    Node& n = node(flow.node);
    if (--n.load.flows > 0) return;
    if (n.load.own_link != kNoLink) unused_links_.push_back(n.load.own_link);
    arrived(flow.node);
  }

  // A link that no other message takes.
  int own_link(double capacity) {
    if (unused_links_.empty()) unused_links_.push_back(sharing_.add_link());
    const int link = unused_links_.back();
    unused_links_.pop_back();
    sharing_.set_capacity(link, capacity);
    return link;
  }

  Ways ways_;
  const std::vector<Rates> rates_;  // by kind of link of the Fabric
  const double gamma_;              // per unit of weight
  const double alpha_hop_, alpha_switch_;

  MaxMin sharing_;
  std::vector<Flow> flows_;        // by their numbers in sharing_
  std::vector<int> unused_links_;  // private links of finished messages
};

Result<FlowTimes> flown(const CarriedSchedule& of) {
  if (!of.fabric.odd.empty() && of.fabric.wiring.shares_links() && of.fabric.link.beta == 0) {
    return invalid_argument(
        "the network has beta 0 and odd links; the flow fidelity needs them as fractions of the "
        "other links' bandwidth; allowed is eq1");
  }
  FlowSimulator simulator(of);
  if (Status status = simulator.run(); !status.ok()) return status;
  return FlowTimes{simulator.end(), std::move(simulator.round_end()), simulator.messages()};
}

}  // namespace

Result<FlowTimes> simulate_flow(const Schedule& schedule, const CollectiveSpec& goal,
                                const Fabric& fabric, std::uint64_t bytes,
                                const SimulateOptions& options) {
  return carried(schedule, goal, fabric, bytes, options, nullptr, flown);
}

Result<FlowTimes> simulate_flow(const Skeleton& skeleton, const Fabric& fabric,
                                std::uint64_t bytes) {
  return carried(skeleton, fabric, bytes, flown);
}

}  // namespace rankine
