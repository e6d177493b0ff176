#include "engine/run/wait.h"
#include "algorithms/catalogue.h"
#include "engine/base/parallel.h"
#include "engine/compile/passes.h"
#include "engine/run/fingerprint.h"
#include "engine/run/form_trials.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"
#include "tests/budget.h"
#include "tests/engine/run/random.h"
#include "tests/engine/run/replay.h"
#include "tests/engine/run/test_team.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

static_assert(reached(5, 5) && reached(6, 5) && !reached(4, 5));
static_assert(reached(2, 0xfffffffeU) && !reached(0xfffffffeU, 2));
static_assert(reached(0x80000001U, 0x7fffffffU) && !reached(0x7fffffffU, 0x80000001U));
static_assert(reached(0x7fffffffU, 0) && !reached(0x80000000U, 0));

TEST(RankControl, ACallBeginsOnlyBeforeTheEnd) {
  RankControl rank_control(2, {}, 1'000'000);  // a millisecond
  EXPECT_TRUE(rank_control.begin(0));
  EXPECT_TRUE(rank_control.record(0).inside.load());
  rank_control.end(0);
  EXPECT_FALSE(rank_control.record(0).inside.load());
  rank_control.abort({Code::aborted, "over"});
  EXPECT_FALSE(rank_control.begin(1));
  EXPECT_FALSE(rank_control.record(1).inside.load());
  RankControl stopped(2, {}, 1'000'000);
  ASSERT_TRUE(stopped.begin(1));
  stopped.abort({Code::aborted, "over"});
  stopped.wait_until_quiet(0);  // returns, although rank 1 is stopped for good
}

// A rank stores in its scratch while others read that of its previous call, not of earlier ones.
TEST(Scratch, IsKeptForTheReadersOfThePreviousCallOnly) {
  RankControl rank_control(3, {}, kMinute);
  RankState state;
  state.waiter = {.rank_control = &rank_control};
  state.memory.resize(4 * 3);
  std::vector<std::byte> memory(4 * kCacheLine);
  state.scratch = {.begin = memory.data(), .ring_bytes = memory.size()};
  Plan plan;
  plan.ranks = 3;
  plan.span = 0;
  plan.rank.resize(3);
  plan.rank[0].scratch_bytes = kCacheLine;
  Cursor cursor;
  const auto go_on = [&] { return interpret_some(plan, state, cursor); };
  const auto call = [&](std::vector<Op> ops) {
    ++state.waiter.call;
    plan.rank[0].ops = std::move(ops);
    plan.rank[0].ops.push_back({.code = OpCode::end});
    cursor = {};
    return go_on();
  };
  const auto place = [&] { return state.memory_of(0, Memory::scratch) - memory.data(); };
  const Op wait{.code = OpCode::wait_readers}, wait_all{.code = OpCode::wait_readers, .value = 1};
  const Op leave_1{.code = OpCode::leave_reader, .peer = 1, .value = 1};
  const Op leave_2{.code = OpCode::leave_reader, .peer = 2, .value = 1};
  rank_control.progress(1).value.store(1);
  EXPECT_EQ(call({wait, leave_2}), Walked::done);
  EXPECT_EQ(place(), 0);
  EXPECT_EQ(call({wait, leave_1}), Walked::done);
  EXPECT_EQ(place(), kCacheLine);
  EXPECT_EQ(call({}), Walked::done);
  EXPECT_EQ(call({wait, leave_2}), Walked::waiting);  // for the reader of the first call
  rank_control.progress(2).value.store(1);
  EXPECT_EQ(go_on(), Walked::done);
  EXPECT_EQ(place(), 2 * kCacheLine);
  rank_control.progress(2).value.store(0);
  EXPECT_EQ(call({wait}), Walked::done);
  EXPECT_EQ(call({wait_all}), Walked::waiting);
  rank_control.progress(2).value.store(1);
  EXPECT_EQ(go_on(), Walked::done);
  EXPECT_EQ(place(), 0);
}

TEST(RankControl, TellsWhoWaitsForWhom) {
  RankControl rank_control(4, {}, kMinute);
  const auto print = make_fingerprint(Collective::all_reduce, DataType::f32, ReduceOp::sum, false,
                                      Transport::direct, 0, 0, 0);
  for (const Rank r : {0, 1, 3}) {
    CallRecord& record = rank_control.record(r);
    record.announce(17, print.bits, 99, "ring", thread_id());
    ASSERT_TRUE(rank_control.begin(r));
  }
  rank_control.wake_futex(0).waits_for.store(1);
  rank_control.wake_futex(0).waits_in_round.store(2);
  rank_control.wake_futex(1).waits_for.store(2);
  rank_control.wake_futex(1).waits_in_round.store(3);
  rank_control.record(2).number.store(16);
  const std::string call = " of all_reduce f32 sum (ring, count 99), call 17; ";
  EXPECT_EQ(rank_control.describe_waits(0), "rank 0 waits for rank 1 in round 2" + call +
                                                "rank 1 waits for rank 2 in round 3" + call +
                                                "rank 2 is in no collective; it has made 16 calls");
  EXPECT_EQ(rank_control.describe_waits(3),
            "rank 3 is at work in all_reduce f32 sum (ring, count 99), call 17");
  rank_control.leave(2);
  EXPECT_NE(rank_control.describe_waits(1).find("rank 2 has left after 16 calls"),
            std::string::npos);
  // A cycle is printed once.
  rank_control.wake_futex(1).waits_for.store(0);
  EXPECT_EQ(rank_control.describe_waits(0), "rank 0 waits for rank 1 in round 2" + call +
                                                "rank 1 waits for rank 0 in round 3" +
                                                call.substr(0, call.size() - 2));
}

// Parking: no wake-up is lost, and no wait sleeps through an abort, in every mode.

WaitPolicy policy_for(WaitPolicy::Mode mode) {
  return {.mode = mode, .probes = 1, .yield_ns = 2'000, .spin_ns = 2'000};
}

struct Setting {
  WaitPolicy::Mode mode;
  bool strict;
};

void PrintTo(const Setting& s, std::ostream* out) {
  *out << "mode " << static_cast<int>(s.mode) << (s.strict ? ", strict" : "");
}

class Wait : public testing::TestWithParam<Setting> {};

// Two ranks wait for one another in turn: each lost wake-up costs the look-about's 50 ms, so lost
// wake-ups exceed the test's time limit.
TEST_P(Wait, TwoRanksInTurn) {
  constexpr int kTurns = affordable(20'000);
  for (const std::uint32_t first : {0U, 0U - 1000U, 0x80000000U - 1000U}) {
    RankControl rank_control(2, policy_for(GetParam().mode), kMinute, GetParam().strict);
    for (Rank r : {0, 1}) rank_control.progress(r).value.store(first);
    std::int64_t passed = 0;  // guarded by the turns; not atomic, so that sanitizers see races
    on_threads(2, [&](Rank r) {
      Waiter waiter{.rank_control = &rank_control, .rank = r};
      for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
        // Rank 0 goes first; rank 1 follows.
        const std::uint32_t wanted = first + (r == 0 ? turn - 1 : turn);
        waiter.deadline_ns = 0;
        ASSERT_TRUE(wait_until(waiter, rank_control.progress(1 - r).value, wanted, 1 - r, 1));
        ++passed;
        publish(rank_control, r, rank_control.progress(r).value, first + turn);
      }
    });
    EXPECT_EQ(passed, 2 * kTurns);
  }
}

TEST_P(Wait, AnAbortWakesWhoeverWaits) {
  for (int attempt = 0; attempt < affordable(300); ++attempt) {
    RankControl rank_control(3, policy_for(GetParam().mode), kMinute, GetParam().strict);
    std::atomic<int> returned{0};
    const auto waits = [&](Rank r) {
      Waiter waiter{.rank_control = &rank_control, .rank = r};
      EXPECT_FALSE(wait_until(waiter, rank_control.progress(2).value, 1, 2, 1));
      returned.fetch_add(1);
    };
    on_threads(2, waits, [&] {
      for (int i = attempt % 40; i > 0; --i) std::this_thread::yield();
      rank_control.abort({Code::aborted, "now"});
    });
    EXPECT_EQ(returned.load(), 2);
    EXPECT_EQ(rank_control.reason().text(), "now");
  }
}

TEST_P(Wait, TheDeadlineEndsTheWaitOfAll) {
  RankControl rank_control(3, policy_for(GetParam().mode), 30'000'000, GetParam().strict);
  on_threads(2, [&](Rank r) {
    Waiter waiter{.rank_control = &rank_control, .rank = r};
    ASSERT_TRUE(rank_control.begin(r));
    EXPECT_FALSE(wait_until(waiter, rank_control.progress(2).value, 1, 2, 4));
    rank_control.end(r);
  });
  EXPECT_EQ(name_of(rank_control.reason().code()), name_of(Code::timeout));
  EXPECT_NE(rank_control.reason().text().find("within 30 ms"), std::string::npos);
  EXPECT_NE(rank_control.reason().text().find("waits for rank 2 in round 4"), std::string::npos)
      << rank_control.reason().text();
}

TEST_P(Wait, ARankThatLeavesIsNoticedBeforeAndWhileWaiting) {
  for (int attempt = 0; attempt < affordable(100); ++attempt) {
    RankControl rank_control(2, policy_for(GetParam().mode), kMinute, GetParam().strict);
    std::thread leaver([&] {
      for (int i = attempt % 20; i > 0; --i) std::this_thread::yield();
      publish(rank_control, 1, rank_control.progress(1).value, 5);
      rank_control.leave(1);
    });
    Waiter waiter{.rank_control = &rank_control, .rank = 0};
    // A wait for progress from before the leave succeeds; a wait for later progress fails.
    EXPECT_TRUE(wait_until(waiter, rank_control.progress(1).value, 5, 1, 1));
    EXPECT_FALSE(rank_control.aborted());
    EXPECT_FALSE(wait_until(waiter, rank_control.progress(1).value, 6, 1, 1));
    leaver.join();
    EXPECT_EQ(name_of(rank_control.reason().code()), name_of(Code::rank_lost));
    EXPECT_NE(rank_control.reason().text().find("rank 1 has left"), std::string::npos);
  }
}

// The peer made a different call with this number, in which no rank had to wait, and has gone on to
// a later call.
TEST_P(Wait, ACallThatDisagreedIsNoticedWhenThePeerHasGoneOn) {
  const auto print = [](ReduceOp op, std::uint32_t call) {
    return with_call(make_fingerprint(Collective::all_reduce, DataType::f32, op, false,
                                      Transport::mailbox, 0, 0, 0),
                     call)
        .bits;
  };
  for (const std::uint64_t further : {1, 2, 7}) {
    RankControl rank_control(2, policy_for(GetParam().mode), kMinute, GetParam().strict);
    rank_control.record(0).announce(4, print(ReduceOp::sum, 4), 5, "ring", thread_id());
    for (std::uint64_t call = 4; call <= 4 + further; ++call) {
      const ReduceOp op = call == 4 ? ReduceOp::max : ReduceOp::sum;
      rank_control.record(1).announce(call, print(op, static_cast<std::uint32_t>(call)), 6, "ring",
                                      thread_id());
    }
    Waiter waiter{.rank_control = &rank_control,
                  .rank = 0,
                  .call = 4,
                  .fingerprint = print(ReduceOp::sum, 4)};
    EXPECT_FALSE(wait_until(waiter, rank_control.progress(1).value, 1, 1, 3));
    EXPECT_EQ(rank_control.reason().code(), Code::mismatch);
    // The call before the last one is still on record.
    const std::string text = rank_control.reason().text();
    if (further == 1) {
      EXPECT_EQ(text, "count is 5 at rank 0 and 6 at rank 1");
    } else {
      EXPECT_NE(text.find("rank 1 has gone on to all_reduce f32 sum (ring, count 6), call " +
                          std::to_string(4 + further)),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("rank 0 still waits for its data in round 3"), std::string::npos) << text;
    }
  }
}

// The longest timeout is no overflow.
TEST_P(Wait, LongWaitsAreRecordedWithTheirEnds) {
  RankControl rank_control(2, policy_for(GetParam().mode), kForEverNs, GetParam().strict);
  Waiter waiter{.rank_control = &rank_control, .rank = 0, .timeout_ns = kForEverNs, .call = 4};
  std::thread peer([&] {
    // Waits until the other rank sleeps.
    while (rank_control.slow_waits(0).last().empty()) std::this_thread::yield();
    publish(rank_control, 1, rank_control.progress(1).value, 5);
  });
  EXPECT_TRUE(wait_until(waiter, rank_control.progress(1).value, 5, 1, 3));
  peer.join();
  EXPECT_FALSE(rank_control.aborted()) << rank_control.reason().text();
  EXPECT_TRUE(wait_until(waiter, rank_control.progress(1).value, 5, 1, 3));  // at once: no event
  waiter.timeout_ns = 1'000'000;
  waiter.deadline_ns = 0;
  EXPECT_FALSE(wait_until(waiter, rank_control.progress(1).value, 6, 1, 4));
  const auto waits = rank_control.slow_waits(0).last();
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].end, SlowWait::End::came);
  EXPECT_EQ(waits[0].call, 4u);
  EXPECT_EQ(waits[0].peer, 1);
  EXPECT_EQ(waits[0].round, 3);
  EXPECT_GE(waits[0].end_ns, waits[0].begin_ns);
  EXPECT_EQ(waits[1].end, SlowWait::End::deadline);
  EXPECT_EQ(waits[1].round, 4);
  EXPECT_GE(waits[1].end_ns - waits[1].begin_ns, 1'000'000);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Wait,
    testing::Values(Setting{WaitPolicy::Mode::spin, false}, Setting{WaitPolicy::Mode::yield, false},
                    Setting{WaitPolicy::Mode::park, false}, Setting{WaitPolicy::Mode::spin, true},
                    Setting{WaitPolicy::Mode::yield, true}, Setting{WaitPolicy::Mode::park, true}));

// Policies that stay awake for longer than any test takes.
struct Absurd {
  const char* name;
  WaitPolicy policy;
};

void PrintTo(const Absurd& a, std::ostream* out) { *out << a.name; }

constexpr std::int64_t kTestSpinNs = 3'600'000'000'000;
constexpr std::uint32_t kMost = 0xffffffff;
const Absurd kAbsurd[] = {
    {"spins_long", {.mode = WaitPolicy::Mode::spin, .probes = 1, .spin_ns = kTestSpinNs}},
    {"spins_for_ever", {.mode = WaitPolicy::Mode::spin, .probes = 1, .spin_ns = kForEverNs}},
    {"yields_long", {.mode = WaitPolicy::Mode::yield, .probes = 1, .yield_ns = kTestSpinNs}},
    {"yields_for_ever", {.mode = WaitPolicy::Mode::yield, .probes = 0, .yield_ns = kForEverNs}},
    {"probes", {.mode = WaitPolicy::Mode::park, .probes = kMost}},
    {"probes_and_spins",
     {.mode = WaitPolicy::Mode::spin, .probes = kMost, .spin_ns = kTestSpinNs}}};

// Every event that ends waits ends a wait in any phase, long before the policy's limit.
class AwakeWait : public testing::TestWithParam<Absurd> {
 protected:
  // Lets rank 0 wait for rank 1, which never arrives. Returns the duration.
  std::int64_t fail(RankControl& rank_control, Waiter waiter) {
    waiter.rank_control = &rank_control;
    const std::int64_t begin = now_ns();
    EXPECT_FALSE(wait_until(waiter, rank_control.progress(1).value, 1, 1, 3));
    return now_ns() - begin;
  }
};

TEST_P(AwakeWait, EndsWithItsDeadline) {
  RankControl rank_control(2, GetParam().policy, 100'000'000);
  const std::int64_t took = fail(rank_control, {});
  EXPECT_GE(took, 100'000'000);
  EXPECT_EQ(rank_control.reason().code(), Code::timeout);
  const auto waits = rank_control.slow_waits(0).last();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].end, SlowWait::End::deadline);
  EXPECT_GE(waits[0].end_ns - waits[0].begin_ns, 100'000'000);
}

// No wake_futex rings when a peer makes another call.
TEST_P(AwakeWait, EndsWithWhateverEndsTheOthers) {
  const auto print = [](ReduceOp op) {
    return with_call(make_fingerprint(Collective::all_reduce, DataType::f32, op, false,
                                      Transport::mailbox, 0, 0, 0),
                     4)
        .bits;
  };
  const std::pair<Code, std::function<void(RankControl&)>> events[] = {
      {Code::aborted,
       [](RankControl& control) {
         control.abort({Code::aborted, "now"});
       }},
      {Code::rank_lost, [](RankControl& control) { control.leave(1); }},
      {Code::mismatch, [&](RankControl& control) {
         control.record(1).announce(4, print(ReduceOp::max), 5, "ring", thread_id());
       }}};
  for (const auto& [code, happen] : events) {
    RankControl rank_control(2, GetParam().policy, kMinute);
    rank_control.record(0).announce(4, print(ReduceOp::sum), 5, "ring", thread_id());
    std::thread other([&] {
      sleep_ns(20'000'000);
      happen(rank_control);
    });
    const Waiter waiter{.call = 4, .fingerprint = print(ReduceOp::sum)};
    fail(rank_control, waiter);
    other.join();
    EXPECT_EQ(rank_control.reason().code(), code) << rank_control.reason().text();
    fail(rank_control, waiter);  // also a wait that begins afterwards
  }
}

TEST_P(AwakeWait, StaysAwakeAsAskedAndGetsWhatComes) {
  RankControl rank_control(2, GetParam().policy, kMinute);
  std::thread other([&] {
    // Waits until the waiting rank has looked about.
    while (rank_control.slow_waits(0).last().empty()) sleep_ns(1'000'000);
    EXPECT_EQ(rank_control.parked(1).count.load(), 0u);
    publish(rank_control, 1, rank_control.progress(1).value, 1);
  });
  Waiter waiter{.rank_control = &rank_control, .rank = 0};
  EXPECT_TRUE(wait_until(waiter, rank_control.progress(1).value, 1, 1, 3));
  other.join();
  EXPECT_EQ(rank_control.slow_waits(0).last().back().end, SlowWait::End::came);
  EXPECT_EQ(rank_control.wake_futex(0).waits_for.load(), -1);
}

INSTANTIATE_TEST_SUITE_P(Policies, AwakeWait, testing::ValuesIn(kAbsurd),
                         [](const auto& each) { return std::string(each.param.name); });

// One mailbox, two threads: data and order, credit, and counters that wrap.

constexpr std::size_t kStride = 128;
constexpr std::size_t kPayload = payload_of(kStride);

struct alignas(kCacheLine) Slots {
  std::byte bytes[kSlots * kStride];
};

constexpr std::uint64_t kFingerprint = 0x123456789abcdef;

// A mailbox from rank 0 to rank 1.
struct Pair {
  explicit Pair(std::uint32_t first, WaitPolicy policy = {.mode = WaitPolicy::Mode::yield},
                std::uint32_t capacity = kSlots)
      : rank_control(2, policy, kMinute) {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      (new (slots.bytes + i * kStride) PostHeader)->flag.store(first);
    }
    credit.value.store(first);
    // A rank in a long wait compares its fingerprint with the one that the peer announced.
    for (Rank r : {0, 1}) rank_control.record(r).of(0).fingerprint.store(kFingerprint);
    outbox = {{slots.bytes, kStride, &credit, capacity}, first, first};
    inbox = {{slots.bytes, kStride, &credit, capacity}, first};
  }
  RankControl rank_control;
  Slots slots{};
  Counter credit;
  Outbox outbox;
  Inbox inbox;
  Waiter sender{.rank_control = &rank_control, .rank = 0, .fingerprint = kFingerprint};
  Waiter receiver{.rank_control = &rank_control, .rank = 1, .fingerprint = kFingerprint};
};

constexpr std::uint32_t kFirsts[] = {0U, 0U - 50U, 0x80000000U - 50U};

TEST(Mailbox, MessagesArriveInOrderWithTheirData) {
  constexpr std::uint32_t kMessages = affordable(40'000);
  for (const std::uint32_t first : kFirsts) {
    for (const auto mode : {WaitPolicy::Mode::yield, WaitPolicy::Mode::park}) {
      Pair pair(first, {.mode = mode, .probes = 2, .yield_ns = 0});
      std::thread writer([&] {
        Random sizes(1), pace(2);
        for (std::uint32_t m = 0; m < kMessages; ++m) {
          if (pace.one_in(50)) std::this_thread::yield();
          std::array<std::byte, kPayload> data;
          const auto bytes = static_cast<std::size_t>(sizes.below(kPayload + 1));
          data.fill(static_cast<std::byte>(m));
          pair.sender.deadline_ns = 0;
          ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, data.data(), bytes, 1));
        }
      });
      Random sizes(1), pace(3);
      for (std::uint32_t m = 0; m < kMessages; ++m) {
        if (pace.one_in(70)) std::this_thread::yield();
        pair.receiver.deadline_ns = 0;
        PostHeader* slot = pair.inbox.wait(pair.receiver, 0, first + m, 1);
        ASSERT_NE(slot, nullptr);
        EXPECT_EQ(slot->fingerprint, kFingerprint);
        ASSERT_EQ(slot->bytes_or_history, static_cast<std::uint32_t>(sizes.below(kPayload + 1)));
        const std::vector<std::byte> wanted(slot->bytes_or_history, static_cast<std::byte>(m));
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), payload(*slot)));
        pair.inbox.release(pair.receiver, first + m + 1, false);
      }
      writer.join();
    }
  }
}

// A message by address: the sender may write its memory again after the credit.
TEST(Mailbox, MemorySentByAddressIsLeftAloneUntilTheCredit) {
  constexpr std::uint32_t kMessages = affordable(20'000);
  for (const std::uint32_t first : kFirsts) {
    Pair pair(first);
    std::thread writer([&] {
      std::vector<std::uint64_t> data(20);
      for (std::uint32_t m = 0; m < kMessages; ++m) {
        data.assign(data.size(), m);
        const std::uint64_t* address = data.data();
        pair.sender.deadline_ns = 0;
        ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, &address, sizeof(address), 1));
        ASSERT_TRUE(pair.outbox.wait_credit(pair.sender, 1, first + m + 1, 1));
      }
    });
    for (std::uint32_t m = 0; m < kMessages; ++m) {
      pair.receiver.deadline_ns = 0;
      PostHeader* slot = pair.inbox.wait(pair.receiver, 0, first + m, 1);
      ASSERT_NE(slot, nullptr);
      const std::uint64_t* address;
      std::memcpy(&address, payload(*slot), sizeof(address));
      for (int i = 0; i < 20; ++i) ASSERT_EQ(address[i], m);
      pair.inbox.release(pair.receiver, first + m + 1, true);
    }
    writer.join();
  }
}

// Half the slots may always be sent without the receiver's help, for all numbers and capacities. If
// nothing is in flight all slots may be sent, and not one more.
TEST(Mailbox, HalfTheCapacityNeedsNoFreshCredit) {
  for (const std::uint32_t capacity : {2U, 8U, kSlots}) {
    for (std::uint32_t used = 0; used < 3 * capacity; ++used) {
      for (const std::uint32_t first : kFirsts) {
        Pair pair(first, {.mode = WaitPolicy::Mode::park}, capacity);
        const std::uint64_t word = 5;
        for (std::uint32_t m = 0; m < used; ++m) {
          ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, &word, sizeof(word), 1));
          ASSERT_NE(pair.inbox.wait(pair.receiver, 0, first + m, 1), nullptr);
          pair.inbox.release(pair.receiver, first + m + 1, false);
        }
        // One thread: a send that had to wait would never return.
        for (std::uint32_t m = used; m < used + capacity / 2; ++m) {
          ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, &word, sizeof(word), 1));
        }
      }
    }
    Pair full(0, {.mode = WaitPolicy::Mode::park}, capacity);
    full.rank_control.abort({Code::aborted, "over"});
    const std::uint64_t word = 5;
    for (std::uint32_t m = 0; m < capacity; ++m) {
      EXPECT_TRUE(full.outbox.send(full.sender, 1, m, &word, sizeof(word), 1));
    }
    EXPECT_FALSE(full.outbox.send(full.sender, 1, capacity, &word, sizeof(word), 1));
  }
}

// Random schedules, all forms back to back in one team, on threads: the real interpreter,
// mailboxes, counters and ways of waiting, with more ranks than cores.

// RANKINE_TEST_SESSIONS runs another number.
TEST(Fuzz, RandomSchedulesOfAllFormsGiveWhatTheyMean) {
  const auto only = number_from_environment("RANKINE_TEST_SEED");
  const int usual = affordable(static_cast<int>(budgeted(500, 2'500)));
  const auto sessions = only ? 1
                             : static_cast<int>(number_from_environment("RANKINE_TEST_SESSIONS")
                                                    .value_or(static_cast<std::uint64_t>(usual)));
  std::size_t schedules = 0, calls = 0;
  for (int i = 0; i < sessions; ++i) {
    const std::uint64_t seed = only.value_or(0xf0220000u + static_cast<std::uint64_t>(i));
    Random random(seed);
    const Session session =
        random_session(random, {.calls = {.ranks = 9}, .schedules = 20, .repetitions = 20});
    ASSERT_EQ(session.fault, "") << "replay with RANKINE_TEST_SEED=" << seed;
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .strict = random.one_in(3)});
    // Several runs: the counters go on from run to run, in both modes of execution.
    const std::span<const TestCall* const> all(session.calls);
    const std::size_t half = all.size() / 2;
    std::string fault = team.run(all.first(half), seed);
    if (fault.empty()) fault = team.step(all, seed + 2, random.one_in(2) ? 2 : 1);
    if (fault.empty()) fault = team.run(all.subspan(half), seed + 1);
    ASSERT_EQ(fault, "") << session.explain(fault) << "\nreplay with RANKINE_TEST_SEED=" << seed;
    schedules += session.made.size();
    calls += session.calls.size();
  }
  std::printf("%zu schedules, %zu calls\n", schedules, calls);
}

// Fixed calls take the other form, whatever the times are, and each form gives what the schedule
// means. Ranks that chose differently would wait for each other until their deadline.
TEST(Fuzz, PlansWithForms) {
  Random random(20261129);
  const auto all_reduce = find_algorithm(Collective::all_reduce, "direct_one_shot"),
             broadcast = find_algorithm(Collective::broadcast, "linear");
  for (const auto& [ranks, algorithm, first] : {std::tuple(2, all_reduce, Transport::board),
                                                {2, all_reduce, Transport::direct},
                                                {3, all_reduce, Transport::board},
                                                {2, broadcast, Transport::mailbox},
                                                {4, broadcast, Transport::mailbox},
                                                {4, broadcast, Transport::direct}}) {
    const bool posts_first = first != Transport::direct;
    const CallRules rules{.ranks = ranks, .algorithm = algorithm, .transport = first};
    TestCall call = random_call(random, rules);
    while (output_bytes(call.layout, call.goal, 0) == 0) call = random_call(random, rules);
    const auto other = posts_first ? Transport::direct : Transport::board;
    std::vector<FormPlan> plans;
    const auto add = [&plans](Plan plan) {
      const Form form = form_of(plan);
      plans.push_back({form, std::move(plan)});
    };
    add(std::move(call.plan));
    add(make_plan(call.schedule, call.goal, call.layout, Buffers::in_place, other,
                  {.board_bytes = kTestBoard}, {.eager = !posts_first})
            .value());
    call.plan = with_forms(std::move(plans), 5, output_bytes(call.layout, call.goal, 0));
    TestTeam team({.ranks = ranks, .policy = random_policy(random), .timeout_ns = kMinute});
    // Returns the number of the last call of rank 0 that published its buffers, as direct calls do.
    const auto last_direct_of = [&](std::size_t calls) {
      const std::vector<const TestCall*> all(calls, &call);
      EXPECT_EQ(team.run(all, random.next()), "") << call.text;
      const Entries& entries = team.rank_control().entries(0);
      return std::max(entries.by_last_bit[0].call.load(), entries.by_last_bit[1].call.load());
    };
    constexpr std::uint32_t kTrial = trial_pace(5).of_form();
    EXPECT_EQ(last_direct_of(kTrial), posts_first ? 0 : kTrial);
    EXPECT_EQ(last_direct_of(kTrial), posts_first ? 2 * kTrial : kTrial);
    last_direct_of(static_cast<std::size_t>(affordable(1'000)));
  }
}

// A rank without waits, for which no rank waits, must stay near the others: counters are compared
// modulo their range, so a rank too far behind or ahead would seem to be on the other side. Here
// each call advances the counters by an eighth of their range.
TEST(Fuzz, CountersKeepTogether) {
  constexpr int kRanks = 3;
  Random random(11);
  const auto call_of = [&](Collective collective, std::string_view name) {
    TestCall call = random_call(random, {.ranks = kRanks,
                                         .algorithm = find_algorithm(collective, name),
                                         .transport = Transport::direct});
    call.plan.span = 1U << 29;
    return call;
  };
  const TestCall everybody = call_of(Collective::all_reduce, "ring");
  TestCall two;
  do {
    two = call_of(Collective::send_recv, "direct");
  } while (two.goal.root == 2 || two.goal.peer == 2 || two.goal.root == two.goal.peer);
  for (int idle = 1; idle <= 20; ++idle) {
    TestTeam team({.ranks = kRanks, .policy = random_policy(random)});
    std::vector<const TestCall*> calls(static_cast<std::size_t>(idle), &two);
    calls.insert(calls.begin(), &everybody);
    calls.insert(calls.end(), 3, &everybody);
    ASSERT_EQ(team.run(calls, random.next()), "") << idle << " calls without rank 2";
  }
}

}  // namespace
}  // namespace rankine
