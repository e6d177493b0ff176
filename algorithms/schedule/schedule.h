// A schedule is a value: a pure function from a round number to the transfers of that round.
//
// Meaning is round-synchronous: every transfer of round k reads the data that were there when the
// round began, and its writes are there when round k + 1 begins. Readers decide how a schedule is
// executed (without barriers between rounds), timed, drawn or proved; a schedule knows no bytes, no
// threads and no clock. Schedules are immutable and may be read from many threads at once.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "algorithms/schedule/blocks.h"

namespace rankine {

enum class TransferKind : unsigned char { copy, reduce };
inline constexpr TransferKind copy = TransferKind::copy;
inline constexpr TransferKind reduce = TransferKind::reduce;

// Sends `what` of each rank of `from` to `where` of each rank of `to`.
//   one -> one    a message on a wire         one -> many   a switch multicast
//   many -> one   (reduce) a switch ALU       many -> many  both at once
// copy: replaces the receiver's block. reduce: adds the data to the receiver's block (or stores
// them, if the receiver has none yet). A transfer from a rank to itself is local work and no
// message. If several transfers add to one place in a round, all their data and the place's own are
// added in the order of the lowest rank that has contributed to each: the order does not depend on
// the rank that adds. A receiver that is also a sender adds its own data once more, so if all ranks
// send and receive, the sum must go to another plane.
struct Transfer {
  RankSet from, to;
  BlockSet what, where;
  TransferKind kind = TransferKind::copy;
};

// A round calls a Send for each of its transfers. Takes ranks and blocks modulo the schedule's, so
// that files say `r + 1` and `block(r - k)`; passes every transfer on, in the order stated. A light
// view: pass by value; valid only during the call of Schedule::round for which it was made.
class Send {
 public:
  template <class Visit, class = std::enable_if_t<!std::is_same_v<std::decay_t<Visit>, Send>>>
  Send(int ranks, int blocks, const Visit& visit)
      : ranks_(ranks),
        blocks_(blocks),
        visit_(&visit),
        call_([](const void* f, Transfer&& t) { (*static_cast<const Visit*>(f))(std::move(t)); }) {}

  void operator()(const RankSet& from, const RankSet& to, const BlockSet& what,
                  TransferKind kind) const {
    BlockSet at{what.list.modulo(blocks_), what.plane};
    call_(visit_, Transfer{from.modulo(ranks_), to.modulo(ranks_), at, at, kind});
  }
  void operator()(const RankSet& from, const RankSet& to, const BlockSet& what,
                  const BlockSet& where, TransferKind kind) const {
    call_(visit_, Transfer{from.modulo(ranks_),
                           to.modulo(ranks_),
                           {what.list.modulo(blocks_), what.plane},
                           {where.list.modulo(blocks_), where.plane},
                           kind});
  }
  // Sends a transfer with indices in range already (for combinators).
  void exactly(Transfer&& transfer) const { call_(visit_, std::move(transfer)); }
  void exactly(const Transfer& transfer) const { call_(visit_, Transfer(transfer)); }

 private:
  int ranks_, blocks_;
  const void* visit_;
  void (*call_)(const void*, Transfer&&);
};

// A named stretch of rounds.
struct Phase {
  std::string name;
  int rounds = 0;
};

struct Schedule {
  int ranks = 1;
  int blocks = 1;
  int rounds = 0;
  std::function<void(int k, Send send)> round;
  std::vector<Phase> phases{};  // empty, or their rounds add up to `rounds`
  int planes = 1;               // the vector itself, and planes - 1 scratch vectors of its shape

  int slots() const { return planes * blocks; }
};

// Calls visit(const Transfer&) for every transfer of round k, in the order stated.
template <class Visit>
void for_each_transfer(const Schedule& schedule, int k, const Visit& visit) {
  const auto hand_on = [&visit](Transfer&& transfer) { visit(std::as_const(transfer)); };
  schedule.round(k, Send(schedule.ranks, schedule.blocks, hand_on));
}

// As for_each_transfer(), for combinators, which change a transfer and pass it on:
// visit(Transfer&&).
template <class Visit>
void take_each_transfer(const Schedule& schedule, int k, const Visit& visit) {
  schedule.round(k, Send(schedule.ranks, schedule.blocks, visit));
}

// A slot is a block on a plane, as one number below Schedule::slots().
inline int slot_of(const Schedule& schedule, Block b, int plane) {
  return plane * schedule.blocks + b;
}

// 0, 1, ... p - 1, for `for (Rank r : ranks(p))`.
class RankRange {
 public:
  explicit RankRange(int count) : count_(count) {}
  struct Iterator {
    int value;
    int operator*() const { return value; }
    Iterator& operator++() {
      ++value;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return value != other.value; }
  };
  Iterator begin() const { return {0}; }
  Iterator end() const { return {count_}; }

 private:
  int count_;
};
inline RankRange ranks(int p) { return RankRange(p); }

// ceil(log2 n), floor(log2 n), and true for a power of two: the papers' most common letters.
constexpr int floor_log2(int n) {
  int k = 0;
  while (n >>= 1) ++k;
  return k;
}
constexpr int ceil_log2(int n) { return n <= 1 ? 0 : floor_log2(n - 1) + 1; }
constexpr bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

// For base b, two or more: b^k and the logarithms; and for base three.
constexpr int power_of(int b, int k) { return k <= 0 ? 1 : b * power_of(b, k - 1); }
constexpr int floor_log(int b, int n) { return n < b ? 0 : 1 + floor_log(b, n / b); }
constexpr int ceil_log(int b, int n) { return n <= 1 ? 0 : floor_log(b, n - 1) + 1; }
constexpr int power_of_three(int k) { return power_of(3, k); }
constexpr int floor_log3(int n) { return floor_log(3, n); }
constexpr int ceil_log3(int n) { return ceil_log(3, n); }

}  // namespace rankine
