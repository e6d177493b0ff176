#include "engine/read/simulate.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string>

#include "engine/network/round_prices.h"
#include "engine/read/ability.h"
#include "engine/read/cells.h"

namespace rankine {
namespace {

// When each of a rank's ports of one direction is free again. k is small: a scan finds the
// earliest.
template <class Tick>
class Ports {
 public:
  Ports(int ranks, int k)
      : k_(static_cast<std::size_t>(k)), free_(static_cast<std::size_t>(ranks) * k_, 0) {}

  Tick& earliest(Rank r) {
    const auto first =
        free_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * k_);
    if (k_ == 1) return *first;
    return *std::min_element(first, first + static_cast<std::ptrdiff_t>(k_));
  }
  void reset(Tick time) { std::fill(free_.begin(), free_.end(), time); }

 private:
  std::size_t k_;
  std::vector<Tick> free_;
};

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

// Tick: 64 bits where all times fit, which is twice as fast, or 128. run() says when they did not.
template <class Tick>
class Simulator {
 public:
  // A message may be added to a time up to here without overflow.
  static constexpr Tick kLatest =
      sizeof(Tick) == 8 ? static_cast<Tick>(Tick{1} << 62) : static_cast<Tick>(Ticks{1} << 126);

  Simulator(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
            const Pricing& pricing, RoundPrices& prices, const SimulateOptions& options)
      : schedule_(schedule),
        fabric_(fabric),
        pricing_(pricing),
        prices_(prices),
        shared_(prices.shares_links()),
        by_rounds_(options.sync == Sync::rounds),
        unlimited_(options.unlimited_ports),
        near_alpha_(static_cast<Tick>(pricing.rates().near_alpha)),
        near_beta_(static_cast<Tick>(pricing.rates().near_beta)),
        far_alpha_(static_cast<Tick>(pricing.rates().far_alpha)),
        far_beta_(static_cast<Tick>(pricing.rates().far_beta)),
        send_(schedule.ranks, unlimited_ ? 0 : fabric.ports),
        receive_(schedule.ranks, unlimited_ ? 0 : fabric.ports),
        now_(ranks_of(schedule)),
        meetings_(schedule.ranks) {
    if (!by_rounds_) ready_.emplace(schedule, goal);
    result_.sent.assign(ranks_of(schedule), 0);
    result_.received.assign(ranks_of(schedule), 0);
    result_.reduced.assign(ranks_of(schedule), 0);
    result_.weight_per_byte = pricing.weight_per_byte();
    result_.ticks_per_second = pricing.ticks_per_second();
    result_.round_end.reserve(static_cast<std::size_t>(schedule.rounds));
  }

  // False: times left the type. What the network cannot do is in status().
  bool run() {
    for (int k = 0; k < schedule_.rounds; ++k) {
      if (by_rounds_) {
        send_.reset(end_);
        receive_.reset(end_);
      }
      round_end_ = by_rounds_ ? end_ : 0;
      const std::uint64_t before = result_.messages;
      prices_.begin_round(schedule_, k);
      for_each_transfer(schedule_, k, [this](const Transfer& t) { transfer(t); });
      if (!status_.ok()) return true;
      if (overflow_) return false;
      end_round(before);
    }
    result_.end = end_;
    result_.seconds = pricing_.seconds(result_.end);
    meetings_.summarise(result_);
    return true;
  }
  const Status& status() const { return status_; }
  Simulation& result() { return result_; }

 private:
  struct Arrival {
    std::size_t cell;
    std::size_t count, stride;
    Tick time;
    bool replaces;  // a copy: what was there before does not matter
  };
  // One rank in the current round, and whom it sent to last: rings meet the same one in each.
  struct Now {
    int sends = 0, receives = 0;
    Rank last_target = -1;
  };

  static std::size_t ranks_of(const Schedule& schedule) {
    return static_cast<std::size_t>(schedule.ranks);
  }
  Now& now(Rank r) { return now_[static_cast<std::size_t>(r)]; }

  void transfer(const Transfer& t) {
    const std::int64_t weight = pricing_.weight(t.what.list);
    const bool many_from = t.from.size() > 1, many_to = t.to.size() > 1;
    if (!many_from && !many_to) {
      if (!t.from.empty() && !t.to.empty()) message(t, t.from.front(), t.to.front(), weight);
      return;
    }
    if (Status able = check_ability(t, fabric_); !able.ok()) {
      if (status_.ok()) status_ = std::move(able);
      return;
    }
    through_switch(t, weight);
  }

  Tick cost(Rank from, Rank to, std::int64_t weight) {
    if (shared_) return shared_cost(from, to, weight);
    if (fabric_.two_level() && &fabric_.between_ranks(from, to) == &fabric_.between) {
      return far_alpha_ + far_beta_ * static_cast<Tick>(weight);
    }
    return near_alpha_ + near_beta_ * static_cast<Tick>(weight);
  }
  Tick shared_cost(Rank from, Rank to, std::int64_t weight) {
    const auto price = prices_.message(from, to, weight);
    if (price && *price <= kLatest) return static_cast<Tick>(*price);
    overflow_ = true;
    return 0;
  }
  Tick checked(Tick end) {
    if (end <= kLatest) [[likely]]
      return end;
    overflow_ = true;
    return kLatest;
  }

  void message(const Transfer& t, Rank from, Rank to, std::int64_t weight) {
    if (from == to) {
      arrive(t, to, data_ready(t, from));
      return;
    }
    Tick end = data_ready(t, from);
    if (unlimited_) {
      end = checked(end + cost(from, to, weight));
    } else {
      Tick& out = send_.earliest(from);
      Tick& in = receive_.earliest(to);
      end = checked(std::max({out, in, end}) + cost(from, to, weight));
      out = in = end;
    }
    result_.sent[static_cast<std::size_t>(from)] += weight;
    result_.received[static_cast<std::size_t>(to)] += weight;
    if (t.act == Act::reduce) result_.reduced[static_cast<std::size_t>(to)] += weight;
    ++now(from).sends;
    ++now(to).receives;
    if (now(from).last_target != to) {
      now(from).last_target = to;
      meetings_.add(from, to);
    }
    ++result_.messages;
    arrive(t, to, end);
  }

  // All ports that the transfer touches are taken at once, for the same time.
  void through_switch(const Transfer& t, std::int64_t weight) {
    Tick start = 0;
    t.from.for_each([&](Rank r) { start = std::max(start, data_ready(t, r)); });
    if (!unlimited_) {
      t.from.for_each([&](Rank r) { start = std::max(start, send_.earliest(r)); });
      t.to.for_each([&](Rank r) { start = std::max(start, receive_.earliest(r)); });
    }
    if (by_rounds_) start = std::max(start, end_);
    const Tick end = checked(start + static_cast<Tick>(pricing_.through_switch(weight)));
    t.from.for_each([&](Rank r) {
      if (!unlimited_) send_.earliest(r) = end;
      result_.sent[static_cast<std::size_t>(r)] += weight;
      ++now(r).sends;
    });
    t.to.for_each([&](Rank r) {
      if (!unlimited_) receive_.earliest(r) = end;
      result_.received[static_cast<std::size_t>(r)] += weight;
      ++now(r).receives;
      if (t.act == Act::reduce) result_.reduced[static_cast<std::size_t>(r)] += weight;
      arrive(t, r, end);
    });
    t.from.for_each([&](Rank a) {
      t.to.for_each([&](Rank b) {
        if (a != b) meetings_.add(a, b);
      });
    });
    ++result_.messages;
  }

  // In rounds everything of the rounds before is there.
  Tick data_ready(const Transfer& t, Rank r) const {
    if (by_rounds_) return end_;
    Tick ready = 0;
    for (int i = 0; i < t.what.list.runs(); ++i) {
      const Run& run = t.what.list.run(i);
      std::size_t at = ready_->cell(r, t.what.plane, run.first);
      for (int j = 0; j < run.count; ++j, at += static_cast<std::size_t>(run.stride)) {
        ready = std::max(ready, ready_->get(at));
      }
    }
    return ready;
  }

  void arrive(const Transfer& t, Rank to, Tick end) {
    round_end_ = std::max(round_end_, end);
    if (by_rounds_) return;
    for (int i = 0; i < t.where.list.runs(); ++i) {
      const Run& run = t.where.list.run(i);
      arrivals_.push_back({ready_->cell(to, t.where.plane, run.first),
                           static_cast<std::size_t>(run.count),
                           static_cast<std::size_t>(run.stride), end, t.act == Act::copy});
    }
  }

  // A round reads what was there when it began, so its arrivals count from the next one on.
  template <class Visit>
  void for_each_arrival(const Visit& visit) {
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      if (i + kAhead < arrivals_.size()) ready_->will_need(arrivals_[i + kAhead].cell);
      const Arrival& a = arrivals_[i];
      std::size_t at = a.cell;
      for (std::size_t j = 0; j < a.count; ++j, at += a.stride) visit(a, ready_->at(at));
    }
  }

  void end_round(std::uint64_t messages_before) {
    for_each_arrival([](const Arrival& a, Tick& ready) {
      if (a.replaces) ready = 0;
    });
    for_each_arrival([](const Arrival& a, Tick& ready) { ready = std::max(ready, a.time); });
    arrivals_.clear();
    end_ = std::max(end_, round_end_);
    result_.round_end.push_back(round_end_);
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
  const bool shared_;
  const bool by_rounds_, unlimited_;
  const Tick near_alpha_, near_beta_, far_alpha_, far_beta_;
  Ports<Tick> send_, receive_;
  // When what lies in a cell arrived; 0 where it was there from the start. Dataflow only.
  std::optional<CellTable<Tick>> ready_;
  std::vector<Arrival> arrivals_;
  Tick end_ = 0, round_end_ = 0;
  std::vector<Now> now_;
  Meetings meetings_;
  bool overflow_ = false;
  Status status_;
  Simulation result_;
};

// Nothing where the times do not fit into Tick.
template <class Tick>
std::optional<Result<Simulation>> simulate_in(const Schedule& schedule, const Goal& goal,
                                              const Fabric& fabric, const Pricing& pricing,
                                              RoundPrices& prices, const SimulateOptions& options) {
  if (pricing.most() > Simulator<Tick>::kLatest) return std::nullopt;
  Simulator<Tick> simulator(schedule, goal, fabric, pricing, prices, options);
  if (!simulator.run()) return std::nullopt;
  if (!simulator.status().ok()) return Result<Simulation>(simulator.status());
  return Result<Simulation>(std::move(simulator.result()));
}

}  // namespace

std::string_view name_of(Sync sync) { return sync == Sync::dataflow ? "dataflow" : "rounds"; }

std::optional<Sync> parse_sync(std::string_view text) {
  if (text == "dataflow") return Sync::dataflow;
  if (text == "rounds") return Sync::rounds;
  return std::nullopt;
}

Result<Simulation> simulate(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                            std::uint64_t bytes, const SimulateOptions& options) {
  const auto wired = wired_for(fabric, schedule.ranks);
  if (!wired.ok()) return wired.status();
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
