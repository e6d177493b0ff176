// Collectives that go on without late or lost ranks.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/active.h"
#include "engine/api/network.h"
#include "engine/base/parallel.h"
#include "engine/run/wait.h"
#include "tests/budget.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""us;

constexpr Collective kAll[] = {
    Collective::all_reduce,     Collective::broadcast,  Collective::all_gather,
    Collective::reduce_scatter, Collective::all_to_all, Collective::reduce,
    Collective::gather,         Collective::scatter,    Collective::scan,
    Collective::exscan,         Collective::all_reduce};

// Input i of rank q in a call; sums of such floats depend on their order.
float input(Rank q, int call, std::size_t i) {
  return 1.0F / static_cast<float>(3 + 7 * q + 31 * (call % 97)) + static_cast<float>(i % 13);
}
constexpr float kUntouched = -1;

struct Case {
  int ranks = 1;
  int call = 0;
  Rank root = 0;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;
  Collective collective = Collective::all_reduce;

  Case(int ranks_, int call_)
      : ranks(ranks_),
        call(call_),
        root(call % ranks),
        op(call % 3 == 0 ? ReduceOp::avg : ReduceOp::sum),
        count(call % 41 == 0 ? 5'000 : static_cast<std::size_t>(call % 5)),
        collective(kAll[static_cast<std::size_t>(call) % std::size(kAll)]) {
    if (is_prefix(collective)) op = ReduceOp::sum;
  }
  CollectiveSpec goal() const {
    return {.collective = collective,
            .ranks = ranks,
            .blocks = natural_blocks(collective, ranks),
            .root = root};
  }
  // The elements of buffers that hold each block of a rank, the largest that any rank has.
  std::size_t elements() const { return count * static_cast<std::size_t>(ranks); }
  bool is_from_root() const {
    return collective == Collective::broadcast || collective == Collective::scatter;
  }

  // The result at rank r if the ranks of `set` contribute: a loop in the order of the ranks.
  std::vector<float> result(Rank r, const std::vector<Rank>& set) const {
    std::vector<float> out(elements(), kUntouched);
    using enum Collective;
    for (Block b = 0; b < goal().blocks; ++b) {
      if (!goal().must_hold(r, b)) continue;
      const bool pairs = collective == all_to_all;
      const int from = pairs ? b % ranks : collective == all_gather || collective == gather ? 0 : b;
      const int to = pairs                                                   ? b / ranks
                     : collective == reduce_scatter || collective == scatter ? 0
                                                                             : b;
      for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        int n = 0;
        for (const Rank q : set) {
          if (!goal().must_include(r, b, q)) continue;
          const float x = input(q, call, static_cast<std::size_t>(from) * count + i);
          sum = n++ == 0 ? x : sum + x;
        }
        if (n == 0) continue;
        const bool divides = op == ReduceOp::avg && reduces(collective);
        out[static_cast<std::size_t>(to) * count + i] = divides ? sum / static_cast<float>(n) : sum;
      }
    }
    return out;
  }

  // Makes the call; returns the contributors. `out` is as long as elements().
  Result<std::vector<Rank>> make(ActiveRanks& active, std::vector<float>& out) const {
    std::vector<float> in(elements());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = input(active.rank(), call, i);
    out.assign(elements(), kUntouched);
    return active.call({.collective = collective,
                        .in = is_from_root() && active.rank() != root ? nullptr : in.data(),
                        .out = out.data(),
                        .count = count,
                        .op = op,
                        .root = root});
  }
};

std::vector<Rank> ranks_of(unsigned mask) {
  std::vector<Rank> set;
  for (Rank r = 0; r < 32; ++r) {
    if ((mask >> r & 1) != 0) set.push_back(r);
  }
  return set;
}

// In each call some ranks come, and the others make it when these have returned. Every set follows
// every set; then the last rank is lost, and the rest goes on, down to one.
TEST(Active, EverySetFollowsEverySet) {
  for (int n = 3; n <= 5; ++n) {
    Ranks all({.ranks = n});
    std::barrier gate(n);
    expect_ok(all.run([&](Member& me) -> Status {
      std::optional<ActiveRanks> active(
          ActiveRanks::create(me, {.wait = 1h, .bytes = std::size_t{1} << 17}).value());
      const Rank self = me.rank();
      std::vector<float> out;
      int call = 0;
      const auto step = [&](unsigned mask, unsigned living) {
        ++call;
        // A lost rank among those waited for costs no time.
        const std::vector<Rank> set = ranks_of(mask);
        const bool comes = (mask >> self & 1) != 0;
        const Case one(n, call);
        const auto expect = [&](const std::vector<Rank>& from) {
          const auto found = one.make(*active, out);
          EXPECT_TRUE(found.ok()) << found.status().text();
          std::vector<Rank> listed = from;
          if (one.is_from_root()) std::erase_if(listed, [&](Rank q) { return q != one.root; });
          if (!found.ok()) return;
          EXPECT_EQ(*found, listed) << "call " << call << " of rank " << self;
          EXPECT_EQ(out, one.result(self, from))
              << name_of(one.collective) << ", call " << call << " of rank " << self << " in "
              << text_of_set(set);
        };
        if (comes) {
          active->wait_for(ranks_of(mask | (~living & ((1U << n) - 1)))).throw_if_error();
          expect(set);
        }
        gate.arrive_and_wait();
        if (!comes && active) expect({});
        gate.arrive_and_wait();
      };
      for (int living = n; living > 0; --living) {
        const unsigned sets = 1U << living;
        for (unsigned a = 1; a < sets; ++a) {
          for (unsigned b = 1; b < sets; ++b) {
            step(a, sets - 1);
            step(b, sets - 1);
          }
        }
        if (self == living - 1) active.reset();
        gate.arrive_and_wait();
      }
      return {};
    }));
  }
}

// Ranks wait for hardly any time, so all are late now and then, in copying too: each result belongs
// to one set per call.
TEST(Active, RanksWithAResultHaveOneSet) {
  constexpr int kRanks = 4;
  const auto calls = static_cast<int>(budgeted(4'000, 400'000));
  std::vector<std::atomic<unsigned>> sets(static_cast<std::size_t>(calls) + 1);
  std::atomic<int> results{0}, missed{0};
  Ranks all({.ranks = kRanks});
  expect_ok(all.run([&](Member& me) -> Status {
    ActiveRanks active = ActiveRanks::create(me, {.wait = 20us, .bytes = 1 << 17}).value();
    std::vector<float> out;
    for (int call = 1; call <= calls; ++call) {
      const Case one(kRanks, 41 * call);  // long all-reduces and others
      const auto found = one.make(active, out);
      if (!found.ok()) return found.status();
      if (found->empty()) {
        ++missed;
        continue;
      }
      ++results;
      if (one.is_from_root()) continue;
      unsigned mask = 0, others = 0;
      for (const Rank q : *found) mask |= 1U << q;
      EXPECT_NE(mask >> me.rank() & 1, 0U);
      if (!sets[static_cast<std::size_t>(call)].compare_exchange_strong(others, mask)) {
        EXPECT_EQ(mask, others) << "call " << call;
      }
      EXPECT_EQ(out, one.result(me.rank(), *found)) << "call " << call;
    }
    return {};
  }));
  std::printf("%d results, %d missed\n", results.load(), missed.load());
  EXPECT_GT(results, 0);
}

// Rank 0 goes on alone, when its time has passed or because it waits for no rank; rank 1 makes the
// missed calls without waiting, and then has a part in the next one.
TEST(Active, ALateRankCatchesUp) {
  Ranks all({.ranks = 2});
  std::barrier gate(2);
  expect_ok(all.run([&](Member& me) -> Status {
    const bool is_late = me.rank() == 1;
    const std::vector<Rank> alone = is_late ? std::vector<Rank>{} : std::vector<Rank>{0};
    auto hasty = ActiveRanks::create(me, {.wait = 100us}).value();
    auto active = ActiveRanks::create(me, {.wait = 1h}).value();
    if (is_late) gate.arrive_and_wait();
    double x = me.rank() + 1;
    EXPECT_EQ(hasty.all_reduce(std::span(&x, 1)).value(), alone);
    if (!is_late) active.wait_for({}).throw_if_error();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(active.all_reduce(std::span(&x, 1)).value(), alone);
      EXPECT_EQ(x, me.rank() + 1);
    }
    if (!is_late) gate.arrive_and_wait();
    active.wait_for(std::vector<Rank>{1, 0}).throw_if_error();
    EXPECT_EQ(text_of_set(active.all_reduce(std::span(&x, 1)).value()), "{0, 1}");
    EXPECT_EQ(x, 3);
    return {};
  }));
}

TEST(Active, ErrorsLeaveItUsable) {
  Ranks all({.ranks = 2});
  expect_ok(all.run([](Member& me) -> Status {
    expect_refused(ActiveRanks::create(me, {.wait = -1us}).status(), {"wait is -1 us"});
    expect_refused(ActiveRanks::create(me, {.bytes = 0}).status(),
                   {"bytes is 0; allowed are 1 to"});
    auto active = ActiveRanks::create(me, {.wait = 1h, .bytes = 64}).value();
    std::vector<double> x(8, 1), both(16);
    const auto refused = [&](const auto& result, const std::vector<std::string>& words) {
      expect_refused(result.status(), words);
    };
    refused(active.all_reduce(both), {"a rank's input has 128 bytes; allowed are 0 to 64"});
    refused(active.all_gather(x, x), {"out has 8"});
    refused(active.broadcast(x, 2), {"root is 2; allowed are 0 to 1"});
    refused(active.call({.out = x.data(), .count = 8, .type = DataType::f64}), {"in is null"});
    refused(active.all_reduce(x, PreMulSum{0.5}), {"the call has counts, a factor"});
    refused(active.all_reduce(x, {.algorithm = "ring"}), {"the options order and tag"});
    refused(active.all_reduce(x, {.order = Order::group_invariant}), {"order is group_invariant"});
    expect_refused(active.wait_for(std::vector<Rank>{2}), {"a rank is 2; allowed are 0 to 1"});
    // Each of these differences is a mismatch.
    for (int number = 1; number <= 6; ++number) {
      Call call{.in = x.data(), .out = x.data(), .count = 2, .type = DataType::f64};
      if (number == 1) call.collective = Collective::broadcast;
      if (me.rank() == 1 && number <= 2) call.root = 1;
      if (number == 2) call.collective = Collective::reduce;
      if (me.rank() == 1 && number == 3) call.type = DataType::i64;
      if (me.rank() == 1 && number == 4) call.op = ReduceOp::max;
      if (me.rank() == 1 && number == 5) call.collective = Collective::scan;
      if (me.rank() == 1 && number == 6) call.count = 1;
      const Status status = active.call(call).status();
      EXPECT_EQ(status.code(), Code::mismatch) << number;
      expect_words(status,
                   {"the ranks {0, 1} make different calls with number " + std::to_string(number)});
    }
    const CallOptions other{.tag = static_cast<std::uint64_t>(me.rank())};
    EXPECT_EQ(active.all_reduce(x, other).status().code(), Code::mismatch);
    EXPECT_EQ(x, std::vector<double>(8, 1));
    EXPECT_EQ(active.all_reduce(x, {.tag = 7, .order = Order::by_rank}).value().size(), 2U);
    EXPECT_EQ(x, std::vector<double>(8, 2));
    const pid_t child = fork();
    if (child == 0) _exit(active.all_reduce(x).status().code() == Code::forked ? 0 : 1);
    int ended = 0;
    waitpid(child, &ended, 0);
    EXPECT_EQ(ended, 0);
    auto unequal =
        ActiveRanks::create(me, {.wait = 1h, .bytes = me.rank() == 0 ? 64u : 128u}).value();
    EXPECT_EQ(unequal.all_reduce(x).status().code(), Code::mismatch);
    return {};
  }));
  for (const CommunicatorOptions& options :
       {CommunicatorOptions{.ranks = 2, .ports = 1},
        CommunicatorOptions{.ranks = 2, .network = find_call_network("plain").value()}}) {
    Ranks ported(options);
    expect_ok(ported.run([](Member& me) -> Status {
      expect_refused(ActiveRanks::create(me).status(), {"a modelled network or ports"});
      return {};
    }));
  }
  Ranks tree({.ranks = 2, .order = Order::group_invariant});
  expect_ok(tree.run([](Member& me) -> Status {
    expect_refused(ActiveRanks::create(me).status(),
                   {"the communicator's order is group_invariant"});
    return {};
  }));
}

// An interrupt ends the wait as its deadline does; the next call waits again.
TEST(Active, AnInterruptEndsTheWait) {
  Ranks all({.ranks = 2});
  std::barrier gate(2);
  expect_ok(all.run([&](Member& me) -> Status {
    auto active = ActiveRanks::create(me, {.wait = 1h}).value();
    double x = 1;
    if (me.rank() == 0) {
      set_interrupt_check([] { return 1; });
      const Status status = active.all_reduce(std::span(&x, 1)).status();
      set_interrupt_check(nullptr);
      EXPECT_EQ(status.code(), Code::aborted);
      expect_words(status, {"rank 0 waited for active ranks in call 1"});
    }
    gate.arrive_and_wait();
    if (me.rank() == 1) {
      EXPECT_TRUE(active.all_reduce(std::span(&x, 1)).value().empty());
    }
    EXPECT_EQ(active.all_reduce(std::span(&x, 1)).value().size(), 2U);
    EXPECT_EQ(x, 2);
    return {};
  }));
}

// It needs no communicator: neither a working one nor any.
TEST(Active, GoesOnAfterTheCommunicator) {
  Ranks all({.ranks = 3});
  std::barrier gate(3);
  expect_ok(all.run([&](Member& me) -> Status {
    const Rank self = me.rank();
    if (self == 0) me.communicator().abort("over");
    gate.arrive_and_wait();
    auto active = ActiveRanks::create(me, {.wait = 1h}).value();
    all.drop(self);
    std::int32_t x = 1 << self;
    EXPECT_EQ(active.all_reduce(std::span(&x, 1)).value().size(), 3U);
    EXPECT_EQ(x, 7);
    return {};
  }));
}

}  // namespace
}  // namespace rankine
