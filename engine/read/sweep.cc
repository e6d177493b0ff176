#include "engine/read/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"
#include "engine/base/parallel.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"

namespace rankine {
namespace {

struct Message {
  Rank from, to;
  std::int64_t blocks;
};

// The profile of one round.
struct ProfiledRound {
  std::vector<SlowMessage> slowest;
  std::vector<std::int64_t> sent;  // blocks, by rank
  int most_messages = 0;
  bool on_wires = true;  // every transfer is a message from one rank to one
};

// Keeps the messages that no other one reaches in both hops and load.
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

// Calls visit(from, to, blocks) for the transfers of a round: ranks and the number of blocks. If
// every rank does the same work, blocks are counted once for all ranks, and no list of blocks is
// rotated.
template <class Visit>
void for_each_count(const Schedule& schedule, int k, const Visit& visit) {
  const RotationSymmetric* all = symmetry_of(schedule);
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

Result<Profile> profile(const Schedule& schedule, const CollectiveSpec& goal,
                        const Wiring& wiring) {
  if (wiring.has_leaves()) {
    return invalid_argument("wiring is " + std::string(name_of(wiring.kind)) +
                            "; its links between groups differ from those inside; allowed are "
                            "full, ring, torus, mesh, hypercube");
  }
  const auto routes = Routes::make(wiring, schedule.ranks);
  if (!routes.ok()) return routes.status();
  std::vector<ProfiledRound> rounds(static_cast<std::size_t>(schedule.rounds));
  parallel_for(rounds.size(), [&](std::size_t k) {
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

namespace {

const SimulateOptions kByRounds{.sync = Sync::rounds, .ideal_blocks = true};

// The time of rounds, by skip and number of blocks.
//
// All messages of a round have one size, so each takes a time linear in the number of blocks, and a
// round takes as long as the longest: a convex function. If one, two and all but one blocks lie on
// a line, all numbers between do; so a skip takes three simulations. Only if they do not (far
// messages on idle links are overtaken by near ones on busy links) does it take one simulation per
// number.
class RoundCosts {
 public:
  RoundCosts(int ranks, const Fabric& fabric, std::uint64_t bytes)
      : ranks_(ranks), fabric_(fabric), bytes_(bytes), of_skip_(static_cast<std::size_t>(ranks)) {}

  // The time of a round in which every rank sends `blocks` blocks to the rank `skip` further on.
  Ticks of_round(int skip, int blocks) {
    OfSkip& here = of_skip_[static_cast<std::size_t>(skip)];
    if (here.one == kUnknown) {
      here.one = of_exchange(skip, 1);
      if (ranks_ > 3) {
        here.more = of_exchange(skip, 2) - here.one;
        here.even = of_exchange(skip, ranks_ - 1) == here.one + (ranks_ - 2) * here.more;
      }
    }
    if (here.even) return here.one + (blocks - 1) * here.more;
    if (here.known.empty()) here.known.assign(static_cast<std::size_t>(ranks_), kUnknown);
    Ticks& cost = here.known[static_cast<std::size_t>(blocks)];
    if (cost == kUnknown) cost = of_exchange(skip, blocks);
    return cost;
  }

  Ticks of_all(const SharedRounds& c) {
    Ticks total = 0;
    for (int k = 0; k < c->rounds(); ++k) total += of_round(c->skip(k), c->sent(k).size());
    return total;
  }

  Ticks simulated(const Schedule& schedule) {
    const CollectiveSpec goal{Collective::reduce_scatter, ranks_, ranks_};
    auto result = simulate(schedule, goal, fabric_, bytes_, kByRounds);
    if (!result.ok()) {
      if (status_.ok()) status_ = result.status();
      return 0;
    }
    ticks_per_second_ = result->ticks_per_second;
    return result->end;
  }
  double seconds(Ticks ticks) const { return nearest_double(ticks, ticks_per_second_); }
  const Status& status() const { return status_; }  // error of the first failed simulation

 private:
  static constexpr Ticks kUnknown = -1;
  struct OfSkip {
    Ticks one = kUnknown, more = 0;  // for one block, and for each further one
    bool even = false;               // true if `more` is the same for all numbers of blocks
    std::vector<Ticks> known{};      // by number of blocks, unless even
  };

  Ticks of_exchange(int skip, int count) {
    return simulated({ranks_, ranks_, 1, [this, skip, count](int, Send send) {
                        for (Rank r : ranks(ranks_)) send(r, r + skip, blocks(r, count), reduce);
                      }});
  }

  int ranks_;
  const Fabric& fabric_;
  std::uint64_t bytes_;
  std::vector<OfSkip> of_skip_;
  Ticks ticks_per_second_ = 1;
  Status status_;
};

// The order: the fastest first; among equals fewer rounds, then falling skips, then nearer skips
// first.
bool before(const RatedSkips& a, const RatedSkips& b) {
  if (a.time != b.time) return a.time < b.time;
  if (a.skips.size() != b.skips.size()) return a.skips.size() < b.skips.size();
  const bool a_falls = std::is_sorted(a.skips.rbegin(), a.skips.rend());
  const bool b_falls = std::is_sorted(b.skips.rbegin(), b.skips.rend());
  return a_falls != b_falls ? a_falls : a.skips < b.skips;
}

// The best few of all sequences added, each once.
class Best {
 public:
  explicit Best(int most) : most_(static_cast<std::size_t>(std::max(1, most))) {}
  void add(RatedSkips rated) {
    const auto place = std::lower_bound(kept_.begin(), kept_.end(), rated, before);
    if (place != kept_.end() && place->skips == rated.skips) return;
    if (place == kept_.end() && kept_.size() == most_) return;
    kept_.insert(place, std::move(rated));
    if (kept_.size() > most_) kept_.pop_back();
  }
  const std::vector<RatedSkips>& kept() const { return kept_; }

 private:
  std::size_t most_;
  std::vector<RatedSkips> kept_;
};

// The best sequences of windows: for every window w, the best ways from w on to 1.
Best best_windows(int p, RoundCosts& costs, const SkipSearchOptions& options, double& sequences) {
  std::vector<Best> from(static_cast<std::size_t>(p) + 1, Best(options.best));
  std::vector<double> ways(static_cast<std::size_t>(p) + 1, 0);
  from[1].add({});
  ways[1] = 1;
  for (int w = 2; w <= p && costs.status().ok(); ++w) {
    const auto here = static_cast<std::size_t>(w);
    for (int s = (w + 1) / 2; s < w; ++s) {
      const auto next = static_cast<std::size_t>(s);
      const Ticks cost = costs.of_round(s, w - s);
      ways[here] += ways[next];
      for (const RatedSkips& rest : from[next].kept()) {
        RatedSkips longer{{s}, cost + rest.time, 0};
        longer.skips.insert(longer.skips.end(), rest.skips.begin(), rest.skips.end());
        from[here].add(std::move(longer));
      }
    }
    if (options.progress) {
      options.progress(static_cast<std::uint64_t>(w) * static_cast<std::uint64_t>(w),
                       static_cast<std::uint64_t>(p) * static_cast<std::uint64_t>(p));
    }
  }
  sequences = ways.back();
  return std::move(from.back());
}

// Visits all sets of `left` more skips, rising, with which every distance below p is a sum of
// different skips: no skip is more than one above the sum of those before it, and the total is at
// least p - 1.
template <class Visit>
bool for_each_set(int p, int left, int sum, std::vector<int>& skips, const Visit& visit) {
  if (left == 0) return sum < p - 1 || visit(skips);
  const int least = skips.empty() ? 1 : skips.back() + 1;
  for (int s = least; s < p && s <= sum + 1; ++s) {
    skips.push_back(s);
    const bool go_on = for_each_set(p, left - 1, std::min(sum + s, p), skips, visit);
    skips.pop_back();
    if (!go_on) return false;
  }
  return true;
}

// The number of sequences of the sets of m skips; nullopt if it is more than `most`.
std::optional<std::uint64_t> orders_of_sets(int p, int m, std::uint64_t most) {
  std::uint64_t orders = 1;
  for (int i = 2; i <= m; ++i) {
    orders *= static_cast<std::uint64_t>(i);
    if (orders > most) return std::nullopt;
  }
  std::uint64_t total = 0;
  std::vector<int> none;
  const bool all = for_each_set(p, m, 0, none, [&](const std::vector<int>&) {
    total += orders;
    return total <= most;
  });
  if (!all) return std::nullopt;
  return total;
}

// Calls visit(skips) for all sequences that differ from `skips` by one skip added, removed, changed
// or moved, until visit returns false.
template <class Visit>
bool for_each_neighbour(int p, const std::vector<int>& skips, const Visit& visit) {
  const std::ptrdiff_t rounds = std::ssize(skips);
  for (std::ptrdiff_t at = 0; at <= rounds; ++at) {
    for (int s = 1; s < p; ++s) {
      if (std::find(skips.begin(), skips.end(), s) != skips.end()) continue;
      std::vector<int> longer = skips;
      longer.insert(longer.begin() + at, s);
      if (!visit(longer)) return false;
      if (at == rounds) continue;
      longer.erase(longer.begin() + at + 1);
      if (!visit(longer)) return false;
    }
    if (at == rounds) continue;
    std::vector<int> shorter = skips;
    shorter.erase(shorter.begin() + at);
    if (!visit(shorter)) return false;
    for (std::ptrdiff_t to = 0; to < rounds; ++to) {
      std::vector<int> moved = shorter;
      moved.insert(moved.begin() + to, skips[static_cast<std::size_t>(at)]);
      if (to != at && !visit(moved)) return false;
    }
  }
  return true;
}

}  // namespace

Result<SkipSearch> search_skips(int p, const Fabric& fabric, std::uint64_t bytes,
                                const SkipSearchOptions& options) {
  if (p < 1 || p > kMostSearchedRanks) {
    return invalid_argument("ranks is " + std::to_string(p) + "; allowed are 1 to " +
                            std::to_string(kMostSearchedRanks));
  }
  const auto wired = wired_for(fabric, p);
  if (!wired.ok()) return wired.status();
  RoundCosts costs(p, *wired, bytes);
  const auto rounds_of = [p](const std::vector<int>& skips) {
    return std::make_shared<const CirculantRounds>(p, skips);
  };
  const auto rated = [&](const std::vector<int>& skips) {
    return RatedSkips{skips, costs.of_all(rounds_of(skips)), 0};
  };
  SkipSearch out;
  Best best = best_windows(p, costs, options, out.windows);
  if (!costs.status().ok()) return costs.status();
  out.best_windows = best.kept().front();
  const auto try_one = [&](const std::vector<int>& skips) -> std::optional<RatedSkips> {
    if (are_windows(skips, p) || skips_refusal(skips, p)) return std::nullopt;
    ++out.others;
    RatedSkips one = rated(skips);
    best.add(one);
    return one;
  };

  std::uint64_t left = options.most_tried;
  out.all_up_to = std::max(0, ceil_log2(p) - 1);  // fewer skips make no valid set
  for (int m = ceil_log2(p); m < p && p > 1; ++m) {
    const auto sequences = orders_of_sets(p, m, left);
    if (!sequences) break;
    std::vector<int> none;
    std::uint64_t done = 0;
    for_each_set(p, m, 0, none, [&](std::vector<int> skips) {
      do try_one(skips);
      while (std::next_permutation(skips.begin(), skips.end()));
      if (options.progress) options.progress(++done, *sequences);
      return costs.status().ok();
    });
    left -= *sequences;
    out.all_up_to = m;
  }
  out.all = out.all_up_to >= p - 1;
  std::vector<std::vector<int>> starts;
  for (const RatedSkips& one : best.kept()) starts.push_back(one.skips);
  for (const SkipScheme& scheme : skip_schemes()) starts.push_back(scheme.skips(p));
  for (std::size_t i = 0, seen = starts.size(); i < seen; ++i) {
    starts.push_back(starts[i]);
    std::sort(starts.back().begin(), starts.back().end());
  }
  constexpr std::size_t kLong = 40;  // longer ones have too many neighbours, which are slow to rate
  std::uint64_t looked_at = 0;
  const auto stop = [&] { return looked_at >= options.most_work / static_cast<std::uint64_t>(p); };
  for (const std::vector<int>& start : starts) {
    if (out.all) break;
    if (stop()) break;
    if (static_cast<int>(start.size()) > out.all_up_to) try_one(start);
    RatedSkips at = rated(start);
    for (bool better = start.size() <= kLong; better && costs.status().ok();) {
      better = false;
      const std::vector<int> from = at.skips;
      for_each_neighbour(p, from, [&](const std::vector<int>& skips) {
        if (++looked_at % 1024 == 0 && options.progress) {
          options.progress(looked_at, options.most_work / static_cast<std::uint64_t>(p));
        }
        const auto one = try_one(skips);
        if (one && one->time < at.time) {
          at = *one;
          better = true;
        }
        return !stop();
      });
      if (stop()) better = false;
    }
  }
  out.stopped = !out.all && stop();

  out.best = best.kept();
  out.halving = rated(halving_skips(p));
  const auto settle = [&](RatedSkips& one) {
    const Ticks whole = costs.simulated(circulant_reduce_scatter(rounds_of(one.skips)));
    if (costs.status().ok() && whole != one.time) {
      throw std::logic_error("skips " + skips_text(one.skips) +
                             ": the times of the rounds do not add up to the schedule's");
    }
    one.seconds = costs.seconds(one.time);
  };
  for (RatedSkips& one : out.best) settle(one);
  settle(out.best_windows);
  settle(out.halving);
  if (!costs.status().ok()) return costs.status();
  return out;
}

namespace {

// The first, middle and last rank, each once; all ranks of a short range.
std::vector<std::string> ranks_to_try(int ranks, const SweepOptions& options) {
  std::vector<std::string> out;
  for (Rank r = 0; r < ranks; ++r) {
    const bool tried = ranks <= options.all_roots_up_to || r == 0 || r == ranks / 2;
    if (tried || r == ranks - 1) out.push_back(std::to_string(r));
  }
  return out;
}

// The most even tori of `ranks` ranks, by the number of dimensions.
std::vector<std::string> tori_to_try(int ranks) {
  std::vector<std::string> out;
  for (const int dimensions : {1, 2, 3}) {
    const std::vector<int> dims = balanced_dims(ranks, dimensions);
    if (!dims.empty()) out.push_back(dims_text(dims));
  }
  return out;
}

// Texts to try for a parameter that the algorithm takes; an empty one is the default.
std::vector<std::string> texts_to_try(const Parameter& row, int ranks,
                                      const SweepOptions& options) {
  if (const auto found = options.values.find(row.name); found != options.values.end()) {
    return found->second;
  }
  if (row.kind == Parameter::Kind::torus) return tori_to_try(ranks);
  if (row.tried.empty()) return ranks_to_try(ranks, options);
  std::vector<std::string> out(1);
  for (const char c : row.tried) {
    if (c == ';') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// Adds all combinations of the parameters from `row` on, each once.
void add_cases(std::span<const Parameter> rows, const SweepOptions& options,
               const SweepResult& begun, std::vector<SweepResult>& out) {
  if (rows.empty()) {
    if (!begun.algorithm->refusal(begun.params)) out.push_back(begun);
    return;
  }
  const Parameter& row = rows.front();
  if (!begun.algorithm->takes(row.name)) return add_cases(rows.subspan(1), options, begun, out);
  std::set<std::string> tried;
  for (const std::string& text : texts_to_try(row, begun.params.ranks, options)) {
    SweepResult next = begun;
    if (!row.read(text, next.params)) {
      throw std::invalid_argument(std::string(row.name) + " is '" + text + "'");
    }
    if (tried.insert(row.text(next.params)).second) {
      add_cases(rows.subspan(1), options, next, out);
    }
  }
}

std::string failure_of(SweepResult& result, const VerifyOptions& options) {
  try {
    const Algorithm& entry = *result.algorithm;
    const Schedule schedule = entry.make(result.params);
    const CollectiveSpec goal = goal_of(entry, result.params, schedule);
    if (const auto violation = verify(schedule, goal, options)) {
      return fmt::format("{}: {}", name_of(violation->kind), violation->text);
    }
    const Counts counts = count(schedule);
    result.rounds = counts.rounds;
    return compare_statement(entry, result.params, goal, counts).value_or("");
  } catch (const std::exception& error) {
    return fmt::format("throws: {}", error.what());
  }
}

}  // namespace

std::string SweepResult::name() const {
  std::string out = fmt::format("{} {}", name_of(algorithm->collective), algorithm->name);
  for (const Parameter& row : parameters()) {
    if (!algorithm->takes(row.name) || (row.has_default() && row.open(params))) continue;
    const bool by_letter = row.number != nullptr && !row.letter.empty();
    out += fmt::format(" {}={}", by_letter ? row.letter : row.name, row.text(params));
  }
  return out;
}

std::vector<SweepResult> sweep_cases(const SweepOptions& options) {
  std::vector<SweepResult> out;
  for (const Algorithm& entry : catalogue()) {
    if (options.collective && entry.collective != *options.collective) continue;
    if (!options.algorithm.empty() && entry.name != options.algorithm) continue;
    for (int n = options.ranks_from; n <= options.ranks_to; ++n) {
      SweepResult begun;
      begun.algorithm = &entry;
      begun.params.ranks = n;
      add_cases(parameters().subspan(1), options, begun, out);
    }
  }
  return out;
}

std::vector<SweepResult> sweep(const SweepOptions& options, const SweepProgress& progress) {
  std::vector<SweepResult> results = sweep_cases(options);
  // Large N first: no core is left with the longest case at the end.
  std::vector<std::size_t> order(results.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return results[a].params.ranks > results[b].params.ranks;
  });

  std::mutex reporting;
  std::size_t done = 0;
  const auto work = [&](std::size_t i) {
    SweepResult& result = results[order[i]];
    result.failure = failure_of(result, options.verify);
    if (!progress) return;
    const std::lock_guard lock(reporting);
    progress(++done, results.size());
  };
  parallel_for(order.size(), work, options.threads);
  return results;
}

}  // namespace rankine
