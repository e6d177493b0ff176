#include "engine/network/simulate.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string>

#include "algorithms/schedule/lower.h"
#include "engine/network/ability.h"
#include "engine/network/round_prices.h"

namespace rankine {
namespace {

// Who sends to whom, as a matrix of bits.
class Meetings {
 public:
  explicit Meetings(int ranks)
      : ranks_(static_cast<std::size_t>(ranks)),
        words_((ranks_ + 63) / 64),
        bits_(ranks_ * words_, 0) {}

  void add(Rank from, Rank to) { word(from, to) |= bit(to); }
  void summarise(Simulation& result) const {
    std::vector<int> targets(ranks_, 0), sources(ranks_, 0), partners(ranks_, 0);
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      const auto a = static_cast<Rank>(i / words_);
      for (std::uint64_t left = bits_[i]; left != 0; left &= left - 1) {
        const int b = static_cast<int>(i % words_) * 64 + std::countr_zero(left);
        ++targets[static_cast<std::size_t>(a)];
        ++sources[static_cast<std::size_t>(b)];
        ++partners[static_cast<std::size_t>(a)];
        const bool mutual = (bits_[index(b, a)] & bit(a)) != 0;
        if (!mutual) ++partners[static_cast<std::size_t>(b)];
      }
    }
    result.targets_max = *std::max_element(targets.begin(), targets.end());
    result.sources_max = *std::max_element(sources.begin(), sources.end());
    result.partners_max = *std::max_element(partners.begin(), partners.end());
  }

 private:
  static std::uint64_t bit(Rank to) { return std::uint64_t{1} << (to % 64); }
  std::size_t index(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * words_ + static_cast<std::size_t>(to) / 64;
  }
  std::uint64_t& word(Rank from, Rank to) { return bits_[index(from, to)]; }

  std::size_t ranks_, words_;
  std::vector<std::uint64_t> bits_;
};

template <class Tick>
class Simulator {
 public:
  static constexpr Tick kLatest = PortModel<Tick>::kLatest;

  Simulator(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
            const Pricing& pricing, RoundPrices& prices, const SimulateOptions& options)
      : schedule_(schedule),
        fabric_(fabric),
        pricing_(pricing),
        prices_(prices),
        shared_(prices.shares_links()),
        traces_(options.trace),
        gamma_(static_cast<Tick>(pricing.rates().gamma)),
        starts_(options.starts.begin(), options.starts.end()),
        model_(schedule, goal, options.unlimited_ports ? 0 : fabric.ports, options.sync, starts_),
        now_(ranks_of(schedule)),
        meetings_(schedule.ranks) {
    result_.sent.assign(ranks_of(schedule), 0);
    result_.received.assign(ranks_of(schedule), 0);
    result_.reduced.assign(ranks_of(schedule), 0);
    result_.weight_per_byte = pricing.weight_per_byte();
    result_.ticks_per_second = pricing.ticks_per_second();
    result_.round_end.reserve(static_cast<std::size_t>(schedule.rounds));
    for (std::size_t r = 0; r < starts_.size(); ++r) now_[r].end = starts_[r];
    for (const Pricing::LinkRates& one : pricing.rates().links) {
      links_.push_back({static_cast<Tick>(one.alpha), static_cast<Tick>(one.beta)});
    }
  }

  // False: times left the type. What the network cannot do is in status().
  bool run() {
    for (int k = 0; k < schedule_.rounds; ++k) {
      model_.begin_round(model_.end());
      const std::uint64_t before = result_.messages;
      prices_.begin_round(schedule_, k);
      round_ = k;
      transfer_ = -1;
      for_each_transfer(schedule_, k, [this](const Transfer& t) { transfer(t); });
      if (!status_.ok()) return true;
      if (overflow_ || model_.overflowed()) return false;
      end_round(before);
    }
    result_.end = model_.end();
    for (const Now& rank : now_) result_.rank_end.push_back(rank.end);
    result_.seconds = pricing_.seconds(result_.end);
    meetings_.summarise(result_);
    return true;
  }
  const Status& status() const { return status_; }
  Simulation& result() { return result_; }

 private:
  // One rank in the current round, and whom it sent to last: rings meet the same one in each.
  struct Now {
    int sends = 0, receives = 0;
    Rank last_target = -1;
    Tick end = 0;  // of its last message so far
  };

  static std::size_t ranks_of(const Schedule& schedule) {
    return static_cast<std::size_t>(schedule.ranks);
  }
  Now& now(Rank r) { return now_[static_cast<std::size_t>(r)]; }

  void transfer(const Transfer& t) {
    ++transfer_;
    if (t.from.empty() || t.to.empty()) return;
    const std::int64_t weight = pricing_.weight(t.what.list);
    if (is_message(t)) {
      const Rank from = t.from.front(), to = t.to.front();
      const Tick price = cost(t, from, to, weight);
      const Tick end = take(t, weight, price);
      if (from != to) count(t, weight, from, to);
      if (from == to) count_reduced(t, to, weight);  // what was pushed here before
      if (from != to || price > 0) {
        now(from).end = std::max(now(from).end, end);
        now(to).end = std::max(now(to).end, end);
      }
      return;
    }
    if (Status able = check_ability(t, fabric_); !able.ok()) {
      if (status_.ok()) status_ = std::move(able);
      return;
    }
    const Tick end = take(t, weight, any_cost(t, weight));
    for (const RankSet* set : {&t.from, &t.to}) {
      set->for_each([&](Rank r) { now(r).end = std::max(now(r).end, end); });
    }
    t.from.for_each([&](Rank r) { count_sent(r, weight); });
    t.to.for_each([&](Rank r) { count_received(t, r, weight); });
    t.from.for_each([&](Rank a) {
      t.to.for_each([&](Rank b) {
        if (a != b) meetings_.add(a, b);
      });
    });
    ++result_.messages;
  }

  // Ports are known before they are taken, times after.
  Tick take(const Transfer& t, std::int64_t weight, Tick price) {
    if (!traces_ || is_local(t)) return model_.take(t, price);
    const std::size_t first = result_.trace.size();
    t.from.for_each([&](Rank from) {
      t.to.for_each([&](Rank to) {
        result_.trace.push_back({.round = round_,
                                 .transfer = transfer_,
                                 .from = from,
                                 .to = to,
                                 .weight = weight,
                                 .send_port = model_.next_send_port(from),
                                 .receive_port = model_.next_receive_port(to)});
      });
    });
    const Tick end = model_.take(t, price);
    for (std::size_t i = first; i < result_.trace.size(); ++i) {
      result_.trace[i].start = end - price;
      result_.trace[i].end = end;
    }
    return end;
  }

  // RoundPrices' price; of links that messages do not share, faster.
  Tick cost(const Transfer& t, Rank from, Rank to, std::int64_t weight) {
    if (shared_) return any_cost(t, weight);
    Tick price = 0;
    if (from != to) {
      const Link& link = links_[static_cast<std::size_t>(fabric_.kind_between(from, to))];
      price = link.alpha + link.beta * static_cast<Tick>(weight);
    }
    if (gamma_ != 0 && t.act == Act::reduce) price += gamma_ * static_cast<Tick>(weight);
    return price;
  }
  Tick any_cost(const Transfer& t, std::int64_t weight) {
    const auto price = prices_.price(t, weight);
    if (price && *price <= kLatest) return static_cast<Tick>(*price);
    overflow_ = true;
    return 0;
  }

  void count(const Transfer& t, std::int64_t weight, Rank from, Rank to) {
    count_sent(from, weight);
    count_received(t, to, weight);
    if (now(from).last_target != to) {
      now(from).last_target = to;
      meetings_.add(from, to);
    }
    ++result_.messages;
  }
  void count_sent(Rank r, std::int64_t weight) {
    result_.sent[static_cast<std::size_t>(r)] += weight;
    ++now(r).sends;
  }
  void count_received(const Transfer& t, Rank r, std::int64_t weight) {
    result_.received[static_cast<std::size_t>(r)] += weight;
    count_reduced(t, r, weight);
    ++now(r).receives;
  }
  void count_reduced(const Transfer& t, Rank r, std::int64_t weight) {
    if (t.act == Act::reduce) result_.reduced[static_cast<std::size_t>(r)] += weight;
  }

  void end_round(std::uint64_t messages_before) {
    model_.end_round();
    result_.round_end.push_back(model_.round_end());
    if (shared_) result_.traffic.push_back(prices_.traffic());
    if (result_.messages > messages_before) ++result_.rounds;
    for (Now& rank : now_) {
      result_.send_ports_needed = std::max(result_.send_ports_needed, rank.sends);
      result_.receive_ports_needed = std::max(result_.receive_ports_needed, rank.receives);
      rank.sends = rank.receives = 0;
    }
  }

  const Schedule& schedule_;
  const Fabric& fabric_;
  const Pricing& pricing_;
  RoundPrices& prices_;
  const bool shared_, traces_;
  int round_ = 0, transfer_ = -1;  // at hand
  struct Link {
    Tick alpha, beta;
  };
  std::vector<Link> links_;  // by Fabric's kinds
  const Tick gamma_;
  const std::vector<Tick> starts_;
  PortModel<Tick> model_;
  std::vector<Now> now_;
  Meetings meetings_;
  bool overflow_ = false;  // a price did
  Status status_;
  Simulation result_;
};

// Nothing where the times do not fit into Tick.
template <class Tick>
std::optional<Result<Simulation>> simulate_in(const Schedule& schedule, const Goal& goal,
                                              const Fabric& fabric, const Pricing& pricing,
                                              RoundPrices& prices, const SimulateOptions& options) {
  constexpr Tick kLatest = Simulator<Tick>::kLatest;
  if (pricing.most() > kLatest) return std::nullopt;
  for (const Ticks start : options.starts) {
    if (start > kLatest) return std::nullopt;
  }
  Simulator<Tick> simulator(schedule, goal, fabric, pricing, prices, options);
  if (!simulator.run()) return std::nullopt;
  if (!simulator.status().ok()) return Result<Simulation>(simulator.status());
  return Result<Simulation>(std::move(simulator.result()));
}

}  // namespace

Result<Simulation> simulate(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                            std::uint64_t bytes, const SimulateOptions& options) {
  if (options.lower) {
    SimulateOptions lowered = options;
    lowered.lower = false;
    return simulate(lower(schedule, fabric.abilities()), goal, fabric, bytes, lowered);
  }
  const auto wired = wired_for(fabric, schedule.ranks);
  if (!wired.ok()) return wired.status();
  if (!options.starts.empty()) {
    if (options.starts.size() != static_cast<std::size_t>(schedule.ranks)) {
      return invalid_argument("starts has " + std::to_string(options.starts.size()) +
                              " entries; allowed are none or " + std::to_string(schedule.ranks));
    }
    if (options.ideal_blocks || options.unlimited_ports) {
      return invalid_argument("starts is for whole bytes and a network's own ports");
    }
    for (const Ticks start : options.starts) {
      if (start < 0) return invalid_argument("starts has a negative one; allowed are 0 and more");
    }
  }
  try {
    const auto pricing = Pricing::make(*wired, goal, bytes, options.ideal_blocks);
    if (!pricing.ok()) return pricing.status();
    auto prices = RoundPrices::make(*wired, *pricing, schedule.ranks);
    if (!prices.ok()) return prices.status();
    auto result = simulate_in<std::int64_t>(schedule, goal, *wired, *pricing, *prices, options);
    if (!result) result = simulate_in<Ticks>(schedule, goal, *wired, *pricing, *prices, options);
    if (result) return std::move(*result);
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "simulating " + std::to_string(schedule.ranks) +
                                           " ranks with " + std::to_string(schedule.places()) +
                                           " blocks each");
  }
  return beyond_128_bits();
}

}  // namespace rankine
