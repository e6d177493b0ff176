#include "engine/run/crossbar.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/run/fingerprint.h"

namespace rankine {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

static_assert(reached(5, 5) && reached(6, 5) && !reached(4, 5));
static_assert(reached(2, 0xfffffffeU) && !reached(0xfffffffeU, 2));
static_assert(reached(0x80000001U, 0x7fffffffU) && !reached(0x7fffffffU, 0x80000001U));
static_assert(reached(0x7fffffffU, 0) && !reached(0x80000000U, 0));

TEST(Crossbar, TheFirstReasonCounts) {
  Crossbar crossbar(3, {}, kMinute);
  EXPECT_FALSE(crossbar.aborted());
  crossbar.abort({Code::timeout, "first"});
  crossbar.abort({Code::aborted, "second"});
  EXPECT_TRUE(crossbar.aborted());
  EXPECT_EQ(crossbar.reason().text(), "first");
  EXPECT_EQ(name_of(crossbar.reason().code()), name_of(Code::timeout));
}

TEST(Crossbar, ManyAbortsAtOnceAgree) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    Crossbar crossbar(4, {}, kMinute);
    std::vector<std::string> seen(4);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 4; ++r) {
      threads.emplace_back([&, r] {
        crossbar.abort({Code::aborted, "by " + std::to_string(r)});
        seen[r] = crossbar.reason().text();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : seen) EXPECT_EQ(text, seen[0]);
  }
}

TEST(Crossbar, ACallBeginsOnlyBeforeTheEnd) {
  Crossbar crossbar(2, {}, kMinute);
  EXPECT_TRUE(crossbar.begin(0));
  EXPECT_TRUE(crossbar.record(0).inside.load());
  crossbar.end(0);
  EXPECT_FALSE(crossbar.record(0).inside.load());
  crossbar.abort({Code::aborted, "over"});
  EXPECT_FALSE(crossbar.begin(1));
  EXPECT_FALSE(crossbar.record(1).inside.load());
}

// Whoever has returned from wait_until_quiet() may change what others read inside their calls.
TEST(Crossbar, NobodyIsInsideOnceItIsQuiet) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    Crossbar crossbar(2, {}, kMinute, attempt % 2 == 0);
    int shared = 1;  // not atomic: the thread sanitizer watches
    std::thread reader([&] {
      while (crossbar.begin(1)) {
        EXPECT_EQ(shared, 1);
        crossbar.end(1);
      }
    });
    for (int i = 0; i < attempt % 10; ++i) std::this_thread::yield();
    crossbar.abort({Code::aborted, "over"});
    crossbar.wait_until_quiet(0);
    shared = 2;
    reader.join();
  }
}

TEST(Crossbar, ARankThatIsStoppedForGoodStopsNobodyElse) {
  Crossbar crossbar(2, {}, 1'000'000);  // a millisecond
  ASSERT_TRUE(crossbar.begin(1));
  crossbar.abort({Code::aborted, "over"});
  crossbar.wait_until_quiet(0);  // returns
}

TEST(Crossbar, TellsWhoWaitsForWhom) {
  Crossbar crossbar(4, {}, kMinute);
  const auto print = make_fingerprint(Collective::all_reduce, DataType::f32, ReduceOp::sum, false,
                                      Transport::direct, 0, 0, 0);
  for (const Rank r : {0, 1, 3}) {
    CallRecord& record = crossbar.record(r);
    record.announce(17, print.bits, 99, "ring");
    ASSERT_TRUE(crossbar.begin(r));
  }
  crossbar.bell(0).waits_for.store(1);
  crossbar.bell(0).waits_in_round.store(2);
  crossbar.bell(1).waits_for.store(2);
  crossbar.bell(1).waits_in_round.store(3);
  crossbar.record(2).number.store(16);
  const std::string call = " of all_reduce f32 sum (ring, count 99), call 17; ";
  EXPECT_EQ(crossbar.who_waits_for_whom(0), "rank 0 waits for rank 1 in round 2" + call +
                                                "rank 1 waits for rank 2 in round 3" + call +
                                                "rank 2 is in no collective; it has made 16 calls");
  EXPECT_EQ(crossbar.who_waits_for_whom(3),
            "rank 3 is at work in all_reduce f32 sum (ring, count 99), call 17");
  crossbar.leave(2);
  EXPECT_NE(crossbar.who_waits_for_whom(1).find("rank 2 has left after 16 calls"),
            std::string::npos);
  // A circle ends where it began.
  crossbar.bell(1).waits_for.store(0);
  EXPECT_EQ(crossbar.who_waits_for_whom(0), "rank 0 waits for rank 1 in round 2" + call +
                                                "rank 1 waits for rank 0 in round 3" +
                                                call.substr(0, call.size() - 2));
}

}  // namespace
}  // namespace rankine
