#include "engine/network/timed_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/network/ability.h"
#include "engine/network/port_model.h"
#include "engine/network/round_prices.h"

namespace rankine {
namespace {

// Nothing where the price leaves 128 bits.
std::optional<TimedTransfer> timed(const Pricing& pricing, const RoundPrices& prices,
                                   const Transfer& t) {
  TimedTransfer timed{.transfer = t, .touched = t.to.to_vector()};
  const auto price = prices.price(t, pricing.weight(t.what.list));
  if (!price) return std::nullopt;
  timed.cost = *price;
  timed.once = prices.once(t);
  t.from.for_each([&](Rank r) {
    if (std::find(timed.touched.begin(), timed.touched.end(), r) == timed.touched.end()) {
      timed.touched.push_back(r);
    }
  });
  return timed;
}

}  // namespace

Result<std::shared_ptr<const TimedSchedule>> TimedSchedule::make(
    const Schedule& schedule, const Goal& goal, const Fabric& fabric, const Pricing& pricing,
    const std::function<Status()>& may_go_on) {
  auto prices = RoundPrices::make(fabric, pricing, schedule.ranks);
  if (!prices.ok()) return prices.status();
  const std::shared_ptr<TimedSchedule> made(
      new TimedSchedule(schedule, goal, fabric.ports, pricing.ticks_per_second()));
  Status status;
  for (int k = 0; k < schedule.rounds && status.ok(); ++k) {
    if (may_go_on) status = may_go_on();
    std::vector<TimedTransfer>& of_round = made->transfers_.emplace_back();
    prices->begin_round(schedule, k);
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      if (!status.ok() || t.from.empty() || t.to.empty()) return;
      status = check_ability(t, fabric);
      if (!status.ok()) return;
      auto one = timed(pricing, *prices, t);
      if (!one) {
        status = beyond_128_bits();
        return;
      }
      if (!is_local(t)) {
        Ticks& least = made->least_cost_;
        least = least == 0 ? one->cost : std::min(least, one->cost);
      }
      of_round.push_back(std::move(*one));
    });
  }
  if (!status.ok()) return status;
  const std::size_t rounds = made->transfers_.size();
  made->touching_.resize(static_cast<std::size_t>(schedule.ranks) * rounds);
  for (std::size_t k = 0; k < rounds; ++k) {
    for (const TimedTransfer& one : made->transfers_[k]) {
      for (const Rank r : one.touched) {
        made->touching_[static_cast<std::size_t>(r) * rounds + k].push_back(&one);
      }
    }
  }
  return std::shared_ptr<const TimedSchedule>(made);
}

std::size_t TimedSchedule::bytes() const {
  std::size_t bytes = sizeof(TimedSchedule) + touching_.capacity() * sizeof(touching_[0]);
  for (const std::vector<TimedTransfer>& of_round : transfers_) {
    for (const TimedTransfer& one : of_round) {
      bytes += sizeof(one) + one.touched.size() * (sizeof(Rank) + sizeof(&one));
    }
  }
  return bytes;
}

}  // namespace rankine
