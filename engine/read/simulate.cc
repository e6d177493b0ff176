#include "engine/read/simulate.h"

#include <algorithm>
#include <string>

namespace rankine {
namespace {

// When each of a rank's ports of one direction is free again. k is small: a scan finds the earliest.
class Ports {
 public:
  Ports(int ranks, int k)
      : k_(static_cast<std::size_t>(k)), free_(static_cast<std::size_t>(ranks) * k_, 0) {}

  Ticks& earliest(Rank r) {
    const auto first = free_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * k_);
    return *std::min_element(first, first + static_cast<std::ptrdiff_t>(k_));
  }
  void reset(Ticks time) { std::fill(free_.begin(), free_.end(), time); }

 private:
  std::size_t k_;
  std::vector<Ticks> free_;
};

class Simulator {
 public:
  Simulator(const Schedule& schedule, const Fabric& fabric, const Pricing& pricing,
            const SimulateOptions& options)
      : schedule_(schedule),
        fabric_(fabric),
        pricing_(pricing),
        by_rounds_(options.sync == Sync::rounds),
        places_(static_cast<std::size_t>(schedule.places())),
        send_(schedule.ranks, fabric.ports),
        receive_(schedule.ranks, fabric.ports),
        out_now_(ranks_of(schedule), 0),
        in_now_(ranks_of(schedule), 0),
        partners_(ranks_of(schedule)) {
    if (!by_rounds_) ready_.assign(ranks_of(schedule) * places_, 0);
    result_.sent.assign(ranks_of(schedule), 0);
    result_.received.assign(ranks_of(schedule), 0);
    result_.reduced.assign(ranks_of(schedule), 0);
    result_.weight_per_byte = pricing.weight_per_byte();
  }

  Result<Simulation> run() {
    Status status;
    for (int k = 0; k < schedule_.rounds && status.ok(); ++k) {
      if (by_rounds_) {
        send_.reset(result_.end);
        receive_.reset(result_.end);
      }
      round_end_ = by_rounds_ ? result_.end : 0;
      const std::uint64_t before = result_.messages;
      for_each_transfer(schedule_, k, [&](const Transfer& t) {
        if (status.ok()) status = transfer(t);
      });
      end_round(k, before);
    }
    if (!status.ok()) return status;
    result_.seconds = pricing_.seconds(result_.end);
    for (auto& partners : partners_) {
      std::sort(partners.begin(), partners.end());
      const auto distinct = std::unique(partners.begin(), partners.end()) - partners.begin();
      result_.partners_max = std::max(result_.partners_max, static_cast<int>(distinct));
    }
    return std::move(result_);
  }

 private:
  struct Arrival {
    std::size_t cell;
    Ticks time;
    bool replaces;  // a copy: what was there before does not matter
  };

  static std::size_t ranks_of(const Schedule& schedule) {
    return static_cast<std::size_t>(schedule.ranks);
  }
  std::size_t cell(Rank r, const BlockSet& set, Block b) const {
    return static_cast<std::size_t>(r) * places_ +
           static_cast<std::size_t>(place_of(schedule_, b, set.plane));
  }

  Status transfer(const Transfer& t) {
    const int from = t.from.size(), to = t.to.size();
    const std::int64_t weight = pricing_.weight(t.what.list);
    if (from == 1 && to == 1) {
      message(t, t.from.front(), t.to.front(), weight);
      return {};
    }
    if ((to > 1 && !fabric_.multicast) || (from > 1 && !fabric_.alu)) {
      return invalid_argument(std::string("the schedule has a ") +
                              (from > 1 ? "many -> one" : "one -> many") + " transfer; network '" +
                              fabric_.name + "' has no " + (from > 1 ? "ALU" : "multicast") +
                              " (lower the schedule, or choose a network that has it)");
    }
    through_switch(t, weight);
    return {};
  }

  void message(const Transfer& t, Rank from, Rank to, std::int64_t weight) {
    if (from == to) {
      arrive(t, to, data_ready(t, from));
      return;
    }
    Ticks& out = send_.earliest(from);
    Ticks& in = receive_.earliest(to);
    const Ticks start = std::max({out, in, data_ready(t, from)});
    const Ticks end = start + pricing_.message(fabric_, from, to, weight);
    out = in = end;
    account(from, to, weight);
    ++result_.messages;
    if (t.act == Act::reduce) result_.reduced[static_cast<std::size_t>(to)] += weight;
    arrive(t, to, end);
  }

  // All ports that the transfer touches are taken at once, for the same time.
  void through_switch(const Transfer& t, std::int64_t weight) {
    Ticks start = 0;
    t.from.for_each([&](Rank r) { start = std::max({start, send_.earliest(r), data_ready(t, r)}); });
    t.to.for_each([&](Rank r) { start = std::max(start, receive_.earliest(r)); });
    const Ticks end = start + pricing_.through_switch(weight);
    t.from.for_each([&](Rank r) {
      send_.earliest(r) = end;
      result_.sent[static_cast<std::size_t>(r)] += weight;
      ++out_now_[static_cast<std::size_t>(r)];
    });
    t.to.for_each([&](Rank r) {
      receive_.earliest(r) = end;
      result_.received[static_cast<std::size_t>(r)] += weight;
      ++in_now_[static_cast<std::size_t>(r)];
      if (t.act == Act::reduce) result_.reduced[static_cast<std::size_t>(r)] += weight;
      arrive(t, r, end);
    });
    t.from.for_each([&](Rank a) {
      t.to.for_each([&](Rank b) { meet(a, b); });
    });
    ++result_.messages;
  }

  void account(Rank from, Rank to, std::int64_t weight) {
    result_.sent[static_cast<std::size_t>(from)] += weight;
    result_.received[static_cast<std::size_t>(to)] += weight;
    ++out_now_[static_cast<std::size_t>(from)];
    ++in_now_[static_cast<std::size_t>(to)];
    meet(from, to);
  }

  // Remembers partners cheaply: a ring meets the same one in every round.
  void meet(Rank a, Rank b) {
    if (a == b) return;
    for (const auto& [self, other] : {std::pair(a, b), std::pair(b, a)}) {
      auto& list = partners_[static_cast<std::size_t>(self)];
      const std::size_t n = list.size();
      if ((n > 0 && list[n - 1] == other) || (n > 1 && list[n - 2] == other)) continue;
      if (std::find(list.begin(), list.end(), other) == list.end()) list.push_back(other);
    }
  }

  Ticks data_ready(const Transfer& t, Rank r) const {
    Ticks ready = 0;
    if (by_rounds_) return ready;  // everything of the rounds before is there
    t.what.list.for_each([&](Block b) { ready = std::max(ready, ready_[cell(r, t.what, b)]); });
    return ready;
  }

  void arrive(const Transfer& t, Rank to, Ticks end) {
    round_end_ = std::max(round_end_, end);
    if (by_rounds_) return;
    t.where.list.for_each([&](Block b) {
      arrivals_.push_back({cell(to, t.where, b), end, t.act == Act::copy});
    });
  }

  void end_round(int k, std::uint64_t messages_before) {
    // A round reads what was there when it began, so its arrivals count from the next one on.
    for (const Arrival& a : arrivals_) {
      if (a.replaces) ready_[a.cell] = 0;
    }
    for (const Arrival& a : arrivals_) ready_[a.cell] = std::max(ready_[a.cell], a.time);
    arrivals_.clear();
    result_.end = std::max(result_.end, round_end_);
    result_.round_end.push_back(round_end_);
    if (result_.messages > messages_before) result_.rounds = k + 1;
    for (std::size_t r = 0; r < out_now_.size(); ++r) {
      result_.ports_needed = std::max({result_.ports_needed, out_now_[r], in_now_[r]});
      out_now_[r] = in_now_[r] = 0;
    }
  }

  const Schedule& schedule_;
  const Fabric& fabric_;
  const Pricing& pricing_;
  const bool by_rounds_;
  const std::size_t places_;
  Ports send_, receive_;
  std::vector<Ticks> ready_;  // per (rank, place): when what is there arrived
  std::vector<Arrival> arrivals_;
  Ticks round_end_ = 0;
  std::vector<int> out_now_, in_now_;  // messages of each rank in this round
  std::vector<std::vector<Rank>> partners_;
  Simulation result_;
};

}  // namespace

std::string_view name_of(Sync sync) { return sync == Sync::dataflow ? "dataflow" : "rounds"; }

std::optional<Sync> parse_sync(std::string_view text) {
  if (text == "dataflow") return Sync::dataflow;
  if (text == "rounds") return Sync::rounds;
  return std::nullopt;
}

Result<Simulation> simulate(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                            std::uint64_t bytes, const SimulateOptions& options) {
  Status status = check_fabric(fabric);
  if (!status.ok()) return status;
  const auto pricing = Pricing::make(fabric, goal, bytes, options.ideal_blocks);
  if (!pricing.ok()) return pricing.status();
  return Simulator(schedule, fabric, *pricing, options).run();
}

}  // namespace rankine
