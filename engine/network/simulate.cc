#include "engine/network/simulate.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/base/units.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "engine/network/turned_model.h"

namespace rankine {
namespace {

Status too_many_bytes(const Schedule& schedule, std::uint64_t bytes, std::uint64_t limit) {
  return {Code::out_of_memory, "simulating " + std::to_string(schedule.ranks) + " ranks with " +
                                   std::to_string(schedule.slots()) + " blocks each takes about " +
                                   format_bytes(bytes) + " or more; " + format_bytes(limit) +
                                   " are allowed: ask for fewer ranks, or for more memory"};
}

// Counts the steps of a simulation, and calls may_take from time to time. A refusal is thrown as an
// exception, because for_each_transfer() cannot stop in the middle of a round.
class Steps {
 public:
  struct Refused {
    Status status;
  };
  Steps(const SimulateOptions& options, const Schedule& schedule)
      : may_take_(options.may_take), limit_(options.most_bytes), schedule_(schedule) {}

  void take(std::uint64_t steps) {
    taken_ += steps;
    if (taken_ >= ask_at_) [[unlikely]]
      ask();
  }
  // Announces steps that are known to follow, before any work.
  void expect(std::uint64_t steps) {
    if (!may_take_) return;
    if (Status status = may_take_(taken_ + steps); !status.ok()) throw Refused{std::move(status)};
  }
  void ask() {
    ask_at_ = taken_ + kBetween;
    expect(0);
  }
  void take(const Transfer& t) {
    const auto beyond = static_cast<std::uint64_t>(std::max(0, t.what.list.runs() - 2));
    take(steps::kOfTransfer + steps::kOfRun * beyond);
  }
  // Takes steps for a port model: the growth of its counters, and its bytes() beyond the greatest
  // so far.
  template <class Tick>
  void take(const PortModel<Tick>& model) {
    const std::uint64_t values = model.values(), searches = model.searches();
    const std::uint64_t bytes = model.bytes();
    take(steps::kOfValue * (values - values_) + steps::kOfSearch * (searches - searches_));
    keep(bytes);
    values_ = values;
    searches_ = searches;
  }
  template <class Tick>
  void take(const TurnedModel<Tick>& model) {
    take(steps::kOfPiece * (model.work() - values_));
    values_ = model.work();
    keep(model.bytes());
  }

 private:
  void keep(std::uint64_t bytes) {
    if (bytes <= most_bytes_) return;
    if (limit_ != 0 && bytes > limit_) throw Refused{too_many_bytes(schedule_, bytes, limit_)};
    const std::uint64_t more = bytes - most_bytes_;
    most_bytes_ = bytes;
    take(steps::kOfByte * more);
  }

  static constexpr std::uint64_t kBetween = std::uint64_t{1} << 20;
  const std::function<Status(std::uint64_t)>& may_take_;
  const std::uint64_t limit_;
  const Schedule& schedule_;
  std::uint64_t taken_ = 0, ask_at_ = kBetween;
  std::uint64_t values_ = 0, searches_ = 0, most_bytes_ = 0;  // last read from the port model
};

Status too_many_transfers(int ranks, std::uint64_t most) {
  return invalid_argument("the schedule among " + std::to_string(ranks) + " ranks has more than " +
                          std::to_string(most) + " messages, the most allowed; choose fewer ranks");
}

void summarise(Meetings& meetings, Simulation& result) {
  const Meetings::Numbers met = meetings.numbers();
  result.targets_max = *std::max_element(met.targets.begin(), met.targets.end());
  result.sources_max = *std::max_element(met.sources.begin(), met.sources.end());
  result.partners_max = *std::max_element(met.partners.begin(), met.partners.end());
}

template <class Tick>
class Simulator {
 public:
  static constexpr Tick kLatest = PortModel<Tick>::kLatest;

  // `one`: the part that stands for the whole schedule; nullptr: simulate all ranks.
  Simulator(const Schedule& schedule, const RotationSymmetric* one, const CollectiveSpec& goal,
            const Fabric& fabric, const Pricing& pricing, RoundPrices& prices,
            const SimulateOptions& options)
      : schedule_(one != nullptr ? one->part() : schedule),
        one_(one),
        fabric_(fabric),
        pricing_(pricing),
        prices_(prices),
        shared_(prices.shares_links()),
        traces_(options.trace),
        most_transfers_(options.most_transfers),
        steps_(options, schedule),
        gamma_(static_cast<Tick>(pricing.rates().gamma)),
        starts_(options.starts.begin(), options.starts.end()),
        model_(model_of(schedule, one, goal, options.unlimited_ports ? 0 : fabric.ports,
                        options.sync, starts_)),
        now_(one != nullptr ? 1 : static_cast<std::size_t>(schedule.ranks)),
        meetings_(schedule.ranks) {
    result_.sent.assign(now_.size(), 0);
    result_.received.assign(now_.size(), 0);
    result_.reduced.assign(now_.size(), 0);
    result_.weight_per_byte = pricing.weight_per_byte();
    result_.ticks_per_second = pricing.ticks_per_second();
    result_.round_end.reserve(static_cast<std::size_t>(schedule.rounds));
    for (std::size_t r = 0; r < starts_.size(); ++r) now_[r].end = starts_[r];
    for (const Pricing::LinkRates& rates : pricing.rates().links) {
      links_.push_back({static_cast<Tick>(rates.alpha), static_cast<Tick>(rates.beta)});
    }
  }

  // Returns false if times exceeded the type. An ability that the network lacks is an error in
  // status().
  bool run() {
    const std::uint64_t of_rounds = steps::kOfRank * now_.size();
    steps_.take(steps::kOfNote * meetings_.ranks());
    steps_.expect(of_rounds * static_cast<std::uint64_t>(schedule_.rounds));
    for (int k = 0; k < schedule_.rounds; ++k) {
      model_.begin_round(model_.end());
      const std::uint64_t before = result_.messages;
      steps_.take(of_rounds);
      prices_.begin_round(schedule_, k, [this](int links) {
        steps_.take(steps::kOfLink * static_cast<std::uint64_t>(links));
      });
      round_ = k;
      transfer_ = -1;
      for_each_transfer(schedule_, k, [this](const Transfer& t) { transfer(t); });
      if (!status_.ok()) return true;
      if (overflow_ || model_.overflowed()) return false;
      end_round(before);
    }
    steps_.take(model_);
    steps_.ask();
    result_.end = model_.end();
    for (const Now& rank : now_) result_.rank_end.push_back(rank.end);
    result_.seconds = pricing_.seconds(result_.end);
    summarise(meetings_, result_);
    if (one_ != nullptr) give_to_all();
    return true;
  }
  const Status& status() const { return status_; }
  Simulation& result() { return result_; }

 private:
  // One rank in the current round.
  struct Now {
    int sends = 0, receives = 0;
    Tick end = 0;  // the end of its last message so far
  };

  static PortModel<Tick> model_of(const Schedule& schedule, const RotationSymmetric* one,
                                  const CollectiveSpec& goal, int ports, Sync sync,
                                  const std::vector<Tick>& starts) {
    if (one != nullptr) return PortModel<Tick>(*one, goal, ports, sync);
    return PortModel<Tick>(schedule, goal, ports, sync, starts);
  }
  std::size_t index_of(Rank r) const { return one_ != nullptr ? 0 : static_cast<std::size_t>(r); }
  Now& now(Rank r) { return now_[index_of(r)]; }
  // Copies the results of the one rank to all ranks.
  void give_to_all() {
    const auto ranks = static_cast<std::size_t>(schedule_.ranks);
    result_.messages *= ranks;
    result_.rank_end.assign(ranks, Ticks{result_.rank_end.front()});
    for (auto* of : {&result_.sent, &result_.received, &result_.reduced}) {
      of->assign(ranks, std::int64_t{of->front()});
    }
  }

  void transfer(const Transfer& t) {
    ++transfer_;
    steps_.take(t);
    steps_.take(model_);
    if (++gone_through_ > most_transfers_) {
      if (status_.ok()) status_ = too_many_transfers(schedule_.ranks, most_transfers_);
      return;
    }
    if (t.from.empty() || t.to.empty()) return;
    const std::int64_t weight = pricing_.weight(t.what.list);
    if (is_message(t)) {
      const Rank from = t.from.front(), to = t.to.front();
      const Tick price = cost(t, from, to, weight);
      const Tick end = take(t, weight, price);
      if (from != to) count(t, weight, from, to);
      if (from == to) count_reduced(t, to, weight);  // adds data pushed here before
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
        if (a != b) meetings_.add(a, b, one_);
      });
    });
    ++result_.messages;
  }

  // Traces ports before the transfer takes them, and times afterwards.
  Tick take(const Transfer& t, std::int64_t weight, Tick price) {
    const Tick once = fabric_.permute ? static_cast<Tick>(prices_.once(t)) : 0;
    if (!traces_ || is_local(t)) return model_.take(t, price, once);
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
    const Tick paid = once == 0 ? 0
                                : once - std::min(model_.unpaid_send(t.from.front(), once),
                                                  model_.unpaid_receive(t.to.front(), once));
    const Tick end = model_.take(t, price, once);
    for (std::size_t i = first; i < result_.trace.size(); ++i) {
      result_.trace[i].start = end - (price - paid);
      result_.trace[i].end = end;
    }
    return end;
  }

  // The price of RoundPrices; faster for links that messages do not share.
  Tick cost(const Transfer& t, Rank from, Rank to, std::int64_t weight) {
    if (shared_) return any_cost(t, weight);
    Tick price = 0;
    if (from != to) {
      const Link& link = links_[static_cast<std::size_t>(fabric_.kind_between(from, to))];
      price = link.alpha + link.beta * static_cast<Tick>(weight);
    }
    if (gamma_ != 0 && t.kind == TransferKind::reduce) price += gamma_ * static_cast<Tick>(weight);
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
    meetings_.add(from, to, one_);
    ++result_.messages;
  }
  void count_sent(Rank r, std::int64_t weight) {
    result_.sent[index_of(r)] += weight;
    ++now(r).sends;
  }
  void count_received(const Transfer& t, Rank r, std::int64_t weight) {
    result_.received[index_of(r)] += weight;
    count_reduced(t, r, weight);
    ++now(r).receives;
  }
  void count_reduced(const Transfer& t, Rank r, std::int64_t weight) {
    if (t.kind == TransferKind::reduce) result_.reduced[index_of(r)] += weight;
  }

  void end_round(std::uint64_t messages_before) {
    steps_.take(model_);
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

  const Schedule& schedule_;            // the simulated schedule: the whole, or one rank's part
  const RotationSymmetric* const one_;  // set if schedule_ is its part
  const Fabric& fabric_;
  const Pricing& pricing_;
  RoundPrices& prices_;
  const bool shared_, traces_;
  const std::uint64_t most_transfers_;
  std::uint64_t gone_through_ = 0;
  Steps steps_;
  int round_ = 0, transfer_ = -1;  // the current ones
  struct Link {
    Tick alpha, beta;
  };
  std::vector<Link> links_;  // by kind of link of the Fabric
  const Tick gamma_;
  const std::vector<Tick> starts_;
  PortModel<Tick> model_;
  std::vector<Now> now_;
  Meetings meetings_;
  bool overflow_ = false;  // a price exceeded kLatest
  Status status_;
  Simulation result_;
};

// A Simulator for one rank that stands for all, with blocks of two sizes: times and weights are
// functions of the rank. All links are alike, and messages share none.
template <class Tick>
class TurnedSimulator {
 public:
  TurnedSimulator(const Schedule& schedule, const RotationSymmetric& one, const TwoSizes& sizes,
                  const CollectiveSpec& goal, const Fabric& fabric, const Pricing& pricing,
                  const SimulateOptions& options)
      : one_(one),
        part_(one.part()),
        pricing_(pricing),
        most_transfers_(options.most_transfers),
        steps_(options, schedule),
        alpha_(static_cast<Tick>(pricing.rates().links.front().alpha)),
        beta_(static_cast<Tick>(pricing.rates().links.front().beta)),
        gamma_(static_cast<Tick>(pricing.rates().gamma)),
        model_(one, goal, sizes, options.unlimited_ports ? 0 : fabric.ports, options.sync),
        meetings_(schedule.ranks),
        ends_(schedule.ranks, 0),
        sent_(ends_),
        received_(ends_),
        reduced_(ends_) {}

  // Returns false if times exceeded the type.
  bool run() {
    steps_.take(steps::kOfNote * meetings_.ranks());
    steps_.expect(steps::kOfRank * static_cast<std::uint64_t>(part_.rounds));
    result_.round_end.reserve(static_cast<std::size_t>(part_.rounds));
    for (int k = 0; k < part_.rounds; ++k) {
      model_.begin_round(model_.end());
      steps_.take(steps::kOfRank);
      sends_ = receives_ = 0;
      for_each_transfer(part_, k, [this](const Transfer& t) { transfer(t); });
      if (!status_.ok()) return true;
      if (model_.overflowed()) return false;
      model_.end_round();
      steps_.take(model_);
      result_.round_end.push_back(model_.round_end());
      if (sends_ > 0) ++result_.rounds;
      result_.send_ports_needed = std::max(result_.send_ports_needed, sends_);
      result_.receive_ports_needed = std::max(result_.receive_ports_needed, receives_);
    }
    steps_.ask();
    result_.messages *= static_cast<std::uint64_t>(part_.ranks);
    result_.end = model_.end();
    result_.seconds = pricing_.seconds(result_.end);
    result_.ticks_per_second = pricing_.ticks_per_second();
    result_.weight_per_byte = pricing_.weight_per_byte();
    give(ends_, result_.rank_end);
    give(sent_, result_.sent);
    give(received_, result_.received);
    give(reduced_, result_.reduced);
    summarise(meetings_, result_);
    return true;
  }
  const Status& status() const { return status_; }
  Simulation& result() { return result_; }

 private:
  using Times = ByRank<Tick>;

  void transfer(const Transfer& t) {
    steps_.take(t);
    steps_.take(model_);
    if (++gone_through_ > most_transfers_) {
      if (status_.ok()) status_ = too_many_transfers(part_.ranks, most_transfers_);
      return;
    }
    if (t.from.empty() || t.to.empty()) return;
    const auto way = model_.turned(t);
    const bool local = way.distance == 0, adds = t.kind == TransferKind::reduce;
    const Tick rate = (local ? 0 : beta_) + (adds ? gamma_ : 0);
    const Times end = model_.take(t, way, way.weight.scaled(rate, local ? 0 : alpha_));
    const Times arrives = end.turned(model_.back(way.distance));
    if (!local || rate != 0) ends_ = Times::greater(Times::greater(ends_, end), arrives);
    const Times weight = way.weight.turned(model_.back(way.distance));
    if (adds) reduced_ = reduced_ + weight;
    if (local) return;
    sent_ = sent_ + way.weight;
    received_ = received_ + weight;
    ++sends_;
    ++receives_;
    ++result_.messages;
    meetings_.add(t.from.front(), t.to.front(), &one_);
  }

  template <class Number>
  static void give(const Times& times, std::vector<Number>& out) {
    times.for_each([&out](int, int count, Tick value, Tick slope) {
      for (int i = 0; i < count; ++i) out.push_back(static_cast<Number>(value + slope * i));
    });
  }

  const RotationSymmetric& one_;
  const Schedule& part_;
  const Pricing& pricing_;
  const std::uint64_t most_transfers_;
  std::uint64_t gone_through_ = 0;
  Steps steps_;
  const Tick alpha_, beta_, gamma_;
  TurnedModel<Tick> model_;
  Meetings meetings_;
  Times ends_, sent_, received_, reduced_;
  int sends_ = 0, receives_ = 0;  // by the one rank in the current round
  Status status_;
  Simulation result_;
};

// One rank's part that stands for all, with sizes if blocks are of two sizes. nullptr: no such
// part.
struct Representative {
  const RotationSymmetric* one = nullptr;
  std::optional<TwoSizes> sizes{};
};

template <class Sim>
std::optional<Result<Simulation>> outcome(Sim& simulator) {
  if (!simulator.run()) return std::nullopt;
  if (!simulator.status().ok()) return Result<Simulation>(simulator.status());
  return Result<Simulation>(std::move(simulator.result()));
}

// nullopt if the times do not fit into Tick.
template <class Tick>
std::optional<Result<Simulation>> simulate_in(const Schedule& schedule, const Representative& by,
                                              const CollectiveSpec& goal, const Fabric& fabric,
                                              const Pricing& pricing, RoundPrices& prices,
                                              const SimulateOptions& options) {
  constexpr Tick kLatest = Simulator<Tick>::kLatest;
  if (pricing.most() > kLatest) return std::nullopt;
  for (const Ticks start : options.starts) {
    if (start > kLatest) return std::nullopt;
  }
  if (by.sizes) {
    TurnedSimulator<Tick> simulator(schedule, *by.one, *by.sizes, goal, fabric, pricing, options);
    return outcome(simulator);
  }
  Simulator<Tick> simulator(schedule, by.one, goal, fabric, pricing, prices, options);
  return outcome(simulator);
}

// True if rotating the ranks maps the network to itself.
bool same_round(const Wiring& wiring, const Rotation& rotation) {
  if (!wiring.shares_links()) return true;
  if (wiring.kind == WiringKind::torus) return wiring.dims == rotation.dims();
  return wiring.kind == WiringKind::ring && rotation.dims().size() == 1;
}

// If every rank does the same work and the network treats ranks alike, one rank's part gives every
// result except the trace.
Representative one_for_all(const Schedule& schedule, const CollectiveSpec& goal,
                           const Fabric& fabric, const Pricing& pricing,
                           const SimulateOptions& options) {
  const bool unlike_ranks = fabric.two_level() || !fabric.odd.empty() || !fabric.places.empty() ||
                            fabric.size > 0 || !options.starts.empty();
  if (!options.one_for_all || options.trace || unlike_ranks) return {};
  const RotationSymmetric* one = symmetry_for(schedule, goal);
  if (one == nullptr || !same_round(fabric.wiring, one->rotation())) return {};
  if (one->rotation().moves() == Moves::nothing || pricing.blocks_alike()) return {one};
  if (fabric.permute || fabric.wiring.shares_links()) return {};
  const auto sizes = TwoSizes::of(pricing, goal);
  if (!sizes || !TurnedModel<Ticks>::knows(one->rotation(), *sizes)) return {};
  return {one, sizes};
}

// Estimates the bytes of a dataflow's notes from the blocks that each rank receives: the arrivals
// of a round, and the values of cells: one for each stretch that arrived, or one for each place if
// these are fewer. Small tables grow with the cells touched and need no estimate.
class NotesEstimate {
 public:
  explicit NotesEstimate(const Schedule& schedule)
      : places_(static_cast<std::uint64_t>(schedule.slots())), heard_(1, 0) {}
  explicit NotesEstimate(const Schedule& schedule, int ranks) : NotesEstimate(schedule) {
    heard_.assign(static_cast<std::size_t>(ranks), 0);
  }
  void add(const Transfer& t) {
    const IndexList& list = t.where.list;
    std::uint64_t parts = 0;
    for (int i = 0; i < list.runs(); ++i) {
      parts += list.run(i).stride == 1 ? 1 : static_cast<std::uint64_t>(list.run(i).count);
    }
    t.to.for_each([&](Rank r) {
      heard_[heard_.size() == 1 ? 0 : static_cast<std::size_t>(r)] += parts;
      arrivals_ += static_cast<std::uint64_t>(list.runs());
    });
  }
  void end_round() {
    most_arrivals_ = std::max(most_arrivals_, arrivals_);
    arrivals_ = 0;
  }
  // For these ranks, or for `like_it` ranks like the one.
  std::uint64_t bytes(std::uint64_t like_it = 1) const {
    constexpr std::uint64_t kArrival = 48, kStretch = 16, kValue = 8;
    std::uint64_t sum = kArrival * most_arrivals_;
    for (const std::uint64_t parts : heard_) {
      sum += std::min(kValue * places_, kStretch * (2 * parts + 1));
    }
    return like_it * sum;
  }

 private:
  const std::uint64_t places_;
  std::vector<std::uint64_t> heard_;
  std::uint64_t arrivals_ = 0, most_arrivals_ = 0;
};

Status check_bytes(const Schedule& schedule, std::uint64_t bytes, const SimulateOptions& options) {
  if (options.most_bytes == 0 || options.sync == Sync::rounds || bytes <= options.most_bytes) {
    return {};
  }
  return too_many_bytes(schedule, bytes, options.most_bytes);
}

// Checks limits that are known in advance: places, transfers, steps and bytes of notes.
Status check_messages(const Schedule& schedule, const CollectiveSpec& goal,
                      const Representative& by, const SimulateOptions& options) {
  const std::int64_t places = std::int64_t{schedule.blocks} * schedule.planes;
  if (places > std::numeric_limits<int>::max()) {
    return invalid_argument(std::to_string(schedule.blocks) + " blocks on " +
                            std::to_string(schedule.planes) + " planes are " +
                            std::to_string(places) + " places; allowed are " +
                            std::to_string(std::numeric_limits<int>::max()));
  }
  if (by.one != nullptr) return {};
  // CellTable stores more cells than this in stretches.
  const bool many =
      static_cast<std::uint64_t>(places) * static_cast<std::uint64_t>(schedule.ranks) >
      std::uint64_t{1} << 24;
  const RotationSymmetric* all = symmetry_of(schedule);
  if (all == nullptr) {
    if (!many || options.most_bytes == 0 || options.sync == Sync::rounds) return {};
    NotesEstimate notes(schedule, schedule.ranks);
    for (int k = 0; k < schedule.rounds; ++k) {
      for_each_transfer(schedule, k, [&notes](const Transfer& t) { notes.add(t); });
      notes.end_round();
      // The estimate only grows, and the next rounds may take minutes.
      const Status status = check_bytes(schedule, notes.bytes(), options);
      if (!status.ok()) return status;
    }
    return {};
  }
  const auto all_ranks = static_cast<std::uint64_t>(schedule.ranks);
  std::uint64_t of_one = 0;
  NotesEstimate notes(schedule);
  const std::uint64_t most_of_one = options.most_transfers / all_ranks;
  for (int k = 0; k < schedule.rounds && of_one <= most_of_one; ++k) {
    for_each_transfer(all->part(), k, [&](const Transfer& t) {
      ++of_one;
      notes.add(t);
    });
    notes.end_round();
  }
  const std::string but_one_for_all =
      "; one rank stands for all where links are alike or those of its torus and, if messages "
      "share "
      "links or ranks are on a torus, the blocks are of one size (bytes a multiple of " +
      std::to_string(blocks_per_m(goal)) + ", or ideal blocks)";
  if (of_one > most_of_one) {
    return invalid_argument("ranks is " + std::to_string(schedule.ranks) +
                            ": more than the limit of " + std::to_string(options.most_transfers) +
                            " messages" + but_one_for_all);
  }
  if (many) {
    const Status bytes = check_bytes(schedule, notes.bytes(all_ranks), options);
    if (!bytes.ok()) return Status(bytes.code(), bytes.text() + but_one_for_all);
  }
  if (!options.may_take) return {};
  const Status may = options.may_take(of_one * all_ranks * steps::kOfTransfer);
  return may.ok() ? Status() : Status(may.code(), may.text() + but_one_for_all);
}

}  // namespace

Result<Pricing> pricing_of(const Fabric& fabric, const CollectiveSpec& goal, std::uint64_t bytes,
                           const SimulateOptions& options) {
  if (options.counts.empty()) return Pricing::make(fabric, goal, bytes, options.ideal_blocks);
  if (options.ideal_blocks) {
    return invalid_argument("counts and ideal blocks are both set; allowed is one of them");
  }
  return Pricing::of_counts(fabric, goal, options.counts);
}

Result<Simulation> simulate(const Schedule& schedule, const CollectiveSpec& goal,
                            const Fabric& fabric, std::uint64_t bytes,
                            const SimulateOptions& options) {
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
      return invalid_argument("starts is set with ideal blocks or unlimited ports; unset these");
    }
    for (const Ticks start : options.starts) {
      if (start < 0) return invalid_argument("starts has a negative time; allowed are 0 and more");
    }
  }
  try {
    const auto pricing = pricing_of(*wired, goal, bytes, options);
    if (!pricing.ok()) return pricing.status();
    const Representative by = one_for_all(schedule, goal, *wired, *pricing, options);
    if (Status status = check_messages(schedule, goal, by, options); !status.ok()) return status;
    Fabric priced = *wired;
    if (options.unlimited_ports) priced.ports = Fabric::kMostPorts;
    auto prices = RoundPrices::make(priced, *pricing, schedule.ranks, by.one != nullptr);
    if (!prices.ok()) return prices.status();
    auto result = simulate_in<std::int64_t>(schedule, by, goal, *wired, *pricing, *prices, options);
    if (!result)
      result = simulate_in<Ticks>(schedule, by, goal, *wired, *pricing, *prices, options);
    if (result) return std::move(*result);
  } catch (const Steps::Refused& refused) {
    return refused.status;
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "no memory to simulate " + std::to_string(schedule.ranks) +
                                           " ranks with " + std::to_string(schedule.slots()) +
                                           " blocks each");
  }
  return beyond_128_bits();
}

}  // namespace rankine
