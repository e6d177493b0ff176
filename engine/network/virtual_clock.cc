#include "engine/network/virtual_clock.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>

namespace rankine {

std::size_t VirtualClock::bytes(int ranks) {
  const auto pairs = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
  return pairs * (kSlots * sizeof(Slot) + sizeof(Counter) + sizeof(Outbox) + sizeof(Inbox));
}

VirtualClock::VirtualClock(int ranks, Sync sync) : ranks_(static_cast<std::size_t>(ranks)) {
  const std::size_t n = ranks_.size();
  slots_ = std::vector<Slot>(n * n * kSlots);
  credits_ = std::vector<Counter>(n * n);
  for (OfRank& one : ranks_) {
    one.sync_ = sync;
    one.to_.resize(n);
    one.from_.resize(n);
    one.sent_.assign(n, 0);
    one.received_.assign(n, 0);
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      Slot* first = &slots_[(a * n + b) * kSlots];
      for (std::uint32_t i = 0; i < kSlots; ++i) new (first + i) PostHeader;
      const Mailbox mailbox{first->bytes, kStride, &credits_[a * n + b]};
      ranks_[a].to_[b].mailbox = mailbox;
      ranks_[b].from_[a].mailbox = mailbox;
    }
  }
}

void VirtualClock::OfRank::begin(const TimedSchedule& schedule, Waiter& waiter) {
  waiter_ = &waiter;
  schedule_ = &schedule;
  model_.emplace(schedule.schedule(), schedule.goal(), schedule.ports(), sync_, waiter.rank, now_);
  round_end_.clear();
}

void VirtualClock::OfRank::work(Ticks ticks) {
  now_ = std::min(now_ + ticks, PortModel<Ticks>::kLatest);
}

bool VirtualClock::OfRank::tell(Rank peer, Ticks value) noexcept {
  const auto p = static_cast<std::size_t>(peer);
  return to_[p].send(*waiter_, peer, sent_[p]++, &value, sizeof(value), 0);
}

bool VirtualClock::OfRank::hear(Rank peer, Ticks& value) noexcept {
  const auto p = static_cast<std::size_t>(peer);
  PostHeader* slot = from_[p].wait(*waiter_, peer, received_[p], 0);
  if (slot == nullptr) return false;
  std::memcpy(&value, payload(*slot), sizeof(value));
  from_[p].release(*waiter_, ++received_[p], false);
  return true;
}

// All ranks' greatest value, through rank 0.
bool VirtualClock::OfRank::greatest(Ticks& value) noexcept {
  const Rank n = static_cast<Rank>(to_.size());
  if (waiter_->rank != 0) return tell(0, value) && hear(0, value);
  for (Rank r = 1; r < n; ++r) {
    Ticks other = 0;
    if (!hear(r, other)) return false;
    value = std::max(value, other);
  }
  for (Rank r = 1; r < n; ++r) {
    if (!tell(r, value)) return false;
  }
  return true;
}

// When this transfer ends, agreed by all who touch it.
bool VirtualClock::OfRank::meet(const TimedTransfer& timed, Ticks& end) noexcept {
  Ticks ready = model_->ready(timed.transfer, waiter_->rank);
  const Rank coordinator = timed.touched.front();
  if (coordinator != waiter_->rank) return tell(coordinator, ready) && hear(coordinator, end);
  const std::span<const Rank> others = std::span(timed.touched).subspan(1);
  for (const Rank other : others) {
    Ticks theirs = 0;
    if (!hear(other, theirs)) return false;
    ready = std::max(ready, theirs);
  }
  end = std::min(ready + timed.cost, PortModel<Ticks>::kLatest);
  for (const Rank other : others) {
    if (!tell(other, end)) return false;
  }
  return true;
}

bool VirtualClock::OfRank::agree_on_round(int k) {
  Ticks before = model_->end();
  if (sync_ == Sync::rounds && !greatest(before)) return false;
  model_->begin_round(before);
  for (const TimedTransfer* timed : schedule_->of_rank(waiter_->rank, k)) {
    Ticks end = 0;
    if (!meet(*timed, end)) return false;
    model_->ended(timed->transfer, waiter_->rank, end);
    if (!is_local(timed->transfer)) now_ = std::max(now_, end);
  }
  model_->end_round();
  round_end_.push_back(model_->round_end());
  return true;
}

bool VirtualClock::OfRank::before_round(int k) noexcept {
  try {
    return agree_on_round(k);
  } catch (const std::bad_alloc&) {
    waiter_->crossbar->abort(make_error(
        Code::out_of_memory, [&] { return "the clock of rank " + std::to_string(waiter_->rank); }));
    return false;
  }
}

}  // namespace rankine
