#include "engine/network/network_clock.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/base/numbers.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"

namespace rankine {
namespace {

// nullopt if the price exceeds 128 bits.
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
    const Schedule& schedule, const CollectiveSpec& goal, const Fabric& fabric,
    const Pricing& pricing, const std::function<Status()>& may_go_on) {
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

namespace {

// The time between the moment when all ranks are known to be there and the begin of the model's
// time: ranks are woken meanwhile.
constexpr std::int64_t kLeadNs = 1'000'000, kLeadPerRankNs = 50'000;
// The number of deadlines kept per seat.
constexpr std::size_t kRemembered = 1024;

}  // namespace

// All bytes zero: the state before first use.
struct NetworkClock::ChannelWords {
  // A rank that has sent a word waits for the answer, and credit is given for two words at a time.
  static constexpr std::uint32_t kWords = 4;
  static constexpr std::uint32_t kStride = kCacheLine;
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kStride];
  };
  Slot slots[kWords] = {};
  Counter credit;
};

struct NetworkClock::Channel {
  explicit Channel(ChannelWords* shared)
      : own(shared == nullptr ? std::make_unique<ChannelWords>() : nullptr) {
    ChannelWords& words = shared == nullptr ? *own : *shared;
    outbox.mailbox = inbox.mailbox = {words.slots[0].bytes, ChannelWords::kStride, &words.credit,
                                      ChannelWords::kWords};
  }

  const std::unique_ptr<ChannelWords> own;
  // The outbox belongs to the sending rank, the inbox to the receiving rank.
  alignas(kCacheLine) Outbox outbox;
  std::uint32_t sent = 0;
  alignas(kCacheLine) Inbox inbox;
  std::uint32_t received = 0;
};

NetworkClock::NetworkClock(const NetworkClockOptions& options, std::shared_ptr<RankClocks> seats,
                           const std::vector<int>& places, std::byte* channels)
    : options_(options),
      seats_(std::move(seats)),
      shared_channels_(channels),
      channels_(places.size() * places.size()),
      ranks_(places.size()) {
  for (std::size_t r = 0; r < places.size(); ++r) {
    ranks_[r].clock_ = this;
    ranks_[r].seat_ = &seats_->at(places[r]);
  }
}

NetworkClock::~NetworkClock() = default;

void NetworkClock::connect(Rank a, Rank b) {
  static_assert(sizeof(ChannelWords) == kChannelBytes);
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const std::size_t pair =
        static_cast<std::size_t>(from) * ranks_.size() + static_cast<std::size_t>(to);
    Channel*& made = channels_[pair];
    if (made != nullptr) continue;
    auto* const shared =
        shared_channels_ == nullptr
            ? nullptr
            : reinterpret_cast<ChannelWords*>(shared_channels_ + pair * kChannelBytes);
    made = made_.emplace_back(std::make_unique<Channel>(shared)).get();
  }
}

void NetworkClock::provide(const TimedSchedule& schedule) {
  if (options_.sync == Sync::rounds || options_.mode == ClockMode::wall) {
    for (Rank r = 1; r < static_cast<Rank>(ranks_.size()); ++r) connect(0, r);
  }
  for (int k = 0; k < schedule.schedule().rounds; ++k) {
    for (const TimedTransfer& timed : schedule.of_round(k)) {
      for (const Rank other : std::span(timed.touched).subspan(1)) {
        connect(timed.touched.front(), other);
      }
    }
  }
}

std::size_t NetworkClock::bytes() const {
  return sizeof(NetworkClock) + taken_bytes(channels_) + made_.capacity() * sizeof(made_[0]) +
         made_.size() * (sizeof(Channel) + (shared_channels_ == nullptr ? kChannelBytes : 0)) +
         ranks_.capacity() * sizeof(RankClock) +
         static_cast<std::size_t>(seats_->size()) * sizeof(Seat);
}

double NetworkClock::ns_of(Ticks ticks) const {
  return nearest_double(ticks, options_.ticks_per_second) * 1e9 * options_.dilate;
}

// --- One rank ---

template <class Act>
bool NetworkClock::RankClock::with_memory(const Act& act) noexcept {
  try {
    return act();
  } catch (const std::bad_alloc&) {
    waiter_->rank_control->abort(make_error(Code::out_of_memory, [&] {
      return "no memory for the clock of rank " + std::to_string(waiter_->rank);
    }));
    return false;
  }
}

bool NetworkClock::RankClock::begin(const TimedSchedule& schedule, Waiter& waiter,
                                    std::optional<Ticks> start) noexcept {
  waiter_ = &waiter;
  schedule_ = &schedule;
  return with_memory([&] { return take_up(start.value_or(seat_->now)); });
}

bool NetworkClock::RankClock::take_up(Ticks start) {
  reached_ = start;
  model_.emplace(schedule_->schedule(), schedule_->goal(), schedule_->ports(),
                 clock_->options_.sync, waiter_->rank, start);
  round_end_.clear();
  round_elapsed_ns_.clear();
  if (!wall()) return true;
  seat_->lateness.behind_ns.reserve(kRemembered);
  slack_.begin();
  // True except at the first call, and after a restart of the seats' time.
  const bool started = origin_ns_ != 0 && origin_ns_ == clock_->seats_->origin_ns();
  if (!started && !start_together()) return false;
  // The rank may have done other work since its last call.
  const std::int64_t behind = now_ns() - due_ns(start);
  if (behind > clock_->options_.tolerance_ns) seat_->lateness.late_ns += behind;
  return true;
}

void NetworkClock::RankClock::work(Ticks ticks) {
  seat_->now = std::min(seat_->now + ticks, PortModel<Ticks>::kLatest);
}

bool NetworkClock::RankClock::tell(Rank peer, const Word& word) noexcept {
  Channel& channel = clock_->channel(waiter_->rank, peer);
  return channel.outbox.send(*waiter_, peer, channel.sent++, &word, sizeof(word), 0);
}

bool NetworkClock::RankClock::hear(Rank peer, Word& word) noexcept {
  Channel& channel = clock_->channel(peer, waiter_->rank);
  PostHeader* slot = channel.inbox.wait(*waiter_, peer, channel.received, 0);
  if (slot == nullptr) return false;
  std::memcpy(&word, payload(*slot), sizeof(word));
  channel.inbox.release(*waiter_, ++channel.received, false);
  return true;
}

// Joins the words of all ranks through rank 0, which calls `then` after it has all words.
template <class Then>
bool NetworkClock::RankClock::join_all(Word& word, const Then& then) noexcept {
  const Rank n = static_cast<Rank>(clock_->ranks_.size());
  if (waiter_->rank != 0) return tell(0, word) && hear(0, word);
  for (Rank r = 1; r < n; ++r) {
    Word other;
    if (!hear(r, other)) return false;
    word.join(other);
  }
  then();
  for (Rank r = 1; r < n; ++r) {
    if (!tell(r, word)) return false;
  }
  return true;
}

// Sets `end` to the end of this transfer, agreed by all ranks that it touches.
bool NetworkClock::RankClock::meet(const TimedTransfer& timed, Ticks& end) noexcept {
  Word word{model_->ready(timed.transfer, waiter_->rank, timed.once), seat_->lateness.late_ns};
  const Rank coordinator = timed.touched.front();
  if (coordinator != waiter_->rank) {
    if (!tell(coordinator, word) || !hear(coordinator, word)) return false;
  } else {
    const std::span<const Rank> others = std::span(timed.touched).subspan(1);
    for (const Rank other : others) {
      Word theirs;
      if (!hear(other, theirs)) return false;
      word.join(theirs);
    }
    word.time = std::min(word.time + timed.cost - timed.once, PortModel<Ticks>::kLatest);
    for (const Rank other : others) {
      if (!tell(other, word)) return false;
    }
  }
  end = word.time;
  seat_->lateness.late_ns = word.late_ns;
  return true;
}

bool NetworkClock::RankClock::agree_on_round(int k) {
  const Rank self = waiter_->rank;
  Word before{model_->end(), seat_->lateness.late_ns};
  if (clock_->options_.sync == Sync::rounds) {
    if (!join_all(before, [] {})) return false;
    seat_->lateness.late_ns = before.late_ns;
  }
  model_->begin_round(before.time);
  Ticks arrived = 0;
  for (const TimedTransfer* timed : schedule_->of_rank(self, k)) {
    const Transfer& transfer = timed->transfer;
    Ticks end = 0;
    if (!meet(*timed, end)) return false;
    // A port is held from the beginning of its setting.
    const Ticks passage = timed->cost - timed->once;
    const Ticks sending = passage + model_->unpaid_send(self, timed->once);
    const Ticks receiving = passage + model_->unpaid_receive(self, timed->once);
    model_->ended(transfer, self, end, timed->once);
    if (is_local(transfer) && timed->cost == 0) continue;
    reached_ = std::max(reached_, end);
    if (is_local(transfer)) continue;
    if (contains(transfer.from, self)) seat_->sending.hold(end - sending, end);
    if (contains(transfer.to, self)) {
      seat_->receiving.hold(end - receiving, end);
      arrived = std::max(arrived, end);
    }
  }
  model_->end_round();
  round_end_.push_back(model_->round_end());
  if (!wall()) return true;
  round_elapsed_ns_.push_back(0);
  if (arrived == 0) return true;
  if (!keep_deadline(arrived)) return false;
  round_elapsed_ns_.back() = now_ns() - clock_->seats_->origin_ns();
  return true;
}

bool NetworkClock::RankClock::before_round(int k) noexcept {
  return with_memory([&] { return agree_on_round(k); });
}

bool NetworkClock::RankClock::finish(bool done) noexcept {
  done = done && with_memory([&] {
           seat_->sending.settle();
           seat_->receiving.settle();
           return true;
         });
  if (!wall()) return done;
  done = done && sleep_until(due_ns(reached_), *waiter_->rank_control);
  seat_->lateness.finished_ns = now_ns();
  slack_.end();
  return done;
}

// --- Wall ---

// The moment of the real clock for `time`, with the rank's lateness added.
std::int64_t NetworkClock::RankClock::due_ns(Ticks time) const {
  const std::int64_t after = saturated_ns(clock_->ns_of(time));
  return deadline_after(deadline_after(clock_->seats_->origin_ns(), after),
                        seat_->lateness.late_ns);
}

// Waits until all ranks are there, then until the model's time begins.
bool NetworkClock::RankClock::start_together() noexcept {
  RankClocks& seats = *clock_->seats_;
  const auto n = static_cast<std::int64_t>(clock_->ranks_.size());
  Word word;
  if (!join_all(word, [&] { seats.begin_at(now_ns() + kLeadNs + n * kLeadPerRankNs); })) {
    return false;
  }
  origin_ns_ = seats.origin_ns();
  return sleep_until(origin_ns_, *waiter_->rank_control);
}

bool NetworkClock::RankClock::keep_deadline(Ticks arrived) noexcept {
  SeatLateness& lateness = seat_->lateness;
  const std::int64_t due = due_ns(arrived);
  const std::int64_t now = now_ns();
  if (due > waiter_->deadline(now)) {
    waiter_->rank_control->abort(make_error(Code::timeout, [&] {
      return "timeout is " + std::to_string(waiter_->call_timeout_ns() / 1'000'000) +
             " ms; the call of rank " + std::to_string(waiter_->rank) +
             " takes longer on a wall clock dilated " + std::to_string(clock_->options_.dilate) +
             " times: increase the timeout";
    }));
    return false;
  }
  if (!sleep_until(due, *waiter_->rank_control)) return false;
  const std::int64_t behind = now_ns() - due;
  if (lateness.behind_ns.size() < kRemembered) {
    lateness.behind_ns.push_back(behind);
  } else {
    lateness.behind_ns[static_cast<std::size_t>(lateness.deadlines) % kRemembered] = behind;
  }
  ++lateness.deadlines;
  lateness.worst_ns = std::max(lateness.worst_ns, behind);
  if (behind > clock_->options_.tolerance_ns) {
    lateness.late_ns += behind;
    ++lateness.missed;
  }
  return true;
}

// --- All ranks ---

void NetworkClock::restart() {
  seats_->restart();
  for (RankClock& rank : ranks_) {
    rank.round_end_.clear();
    rank.round_elapsed_ns_.clear();
  }
}

Ticks NetworkClock::now() const {
  Ticks latest = 0;
  for (const RankClock& rank : ranks_) latest = std::max(latest, rank.now());
  return latest;
}

namespace {

// The greatest value of each round over all ranks.
template <class T>
void join_rounds(std::vector<T>& all, const std::vector<T>& of_rank) {
  all.resize(std::max(all.size(), of_rank.size()), 0);
  for (std::size_t k = 0; k < of_rank.size(); ++k) all[k] = std::max(all[k], of_rank[k]);
}

}  // namespace

std::vector<Ticks> NetworkClock::round_end() const {
  std::vector<Ticks> ends;
  for (const RankClock& rank : ranks_) join_rounds(ends, rank.round_end_);
  return ends;
}

std::vector<std::int64_t> NetworkClock::round_elapsed_ns() const {
  std::vector<std::int64_t> elapsed;
  for (const RankClock& rank : ranks_) join_rounds(elapsed, rank.round_elapsed_ns_);
  return elapsed;
}

std::int64_t NetworkClock::elapsed_ns() const {
  std::int64_t last = seats_->origin_ns();
  for (const RankClock& rank : ranks_) last = std::max(last, rank.seat_->lateness.finished_ns);
  return last - seats_->origin_ns();
}

Lateness NetworkClock::lateness() const {
  Lateness all;
  std::vector<std::int64_t> behind;
  for (const RankClock& rank : ranks_) {
    const SeatLateness& one = rank.seat_->lateness;
    behind.insert(behind.end(), one.behind_ns.begin(), one.behind_ns.end());
    all.deadlines += one.deadlines;
    all.missed += one.missed;
    all.worst_ns = std::max(all.worst_ns, one.worst_ns);
    all.passed_on_ns = std::max(all.passed_on_ns, one.late_ns);
  }
  if (behind.empty()) return all;
  std::sort(behind.begin(), behind.end());
  all.median_ns = behind[behind.size() / 2];
  return all;
}

}  // namespace rankine
