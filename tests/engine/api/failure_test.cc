// The words of failures: the error names the waiting and the missing rank, or the argument that
// differs. The flight record of failures is tested too. (The fault table in engine/faults tests the
// codes, the deadlines, the memory and the new start after each failure.)

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/base/files.h"
#include "engine/run/interpret.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr auto kLong = 60'000ms;  // for failures that must not need a deadline
constexpr auto kShort = 300ms;    // for failures that need a deadline

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kThreadsMayVanish = false;  // the sanitizers must see threads end
#else
constexpr bool kThreadsMayVanish = true;
#endif

// The last rank fails in its own way; the other ranks call until they get the error.
struct Failing {
  const char* name;
  Code code;
  std::vector<std::string> words;  // parts of the text
  std::function<Status(Member&, Ranks&, const Call&)> last_rank;
  bool is_gone = false;  // the last rank gets no error
};

void PrintTo(const Failing& one, std::ostream* out) { *out << one.name; }

struct EndOfCall : RoundObserver {
  bool before_round(int) noexcept override { return false; }
} end_of_call;

struct EndOfThread : RoundObserver {
  bool before_round(int) noexcept override {
    syscall(SYS_exit, 0);  // without any destructor, so no rank is told
    return false;
  }
} end_of_thread;

class Failure : public testing::TestWithParam<Failing> {};

TEST_P(Failure, IsToldToAllRanksInTheSameWords) {
  const Failing& failing = GetParam();
  for (const std::size_t count : {3U, 40'000U}) {  // by mailboxes; directly
    constexpr int kRanks = 3;
    constexpr Rank kLast = kRanks - 1;
    // The buffers outlive the ranks: a thread may end in its call.
    std::vector<std::vector<std::uint32_t>> in(kRanks, std::vector<std::uint32_t>(count)), out = in;
    Ranks all({.ranks = kRanks, .timeout = kLong});
    auto results = all.run([&](Member& me) {
      const auto r = static_cast<std::size_t>(me.rank());
      Call call{.in = in[r].data(), .out = out[r].data(), .count = count, .type = DataType::u32};
      if (me.rank() == kLast) return failing.last_rank(me, all, call);
      if (me.rank() == 0 && failing.code == Code::timeout) {
        wait_until_waiting(all.communicator(), 1);  // the deadline begins when all other ranks wait
        call.options.timeout = kShort;
      }
      Status status;
      while (status.ok()) status = me.call(call);
      return status;
    });
    if (failing.is_gone) results.pop_back();
    expect_all(results, failing.code, failing.words);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Failure,
    testing::Values(
        Failing{"never comes",
                Code::timeout,
                {"within 300 ms", "waits for rank 2", "all_reduce u32 sum", "count ",
                 "rank 2 is in no collective"},
                [](Member& me, Ranks& all, const Call& call) {
                  static_cast<void>(when_over(all.communicator()));
                  return me.call(call);  // gets the same error
                }},
        Failing{"leaves after two calls",
                Code::rank_lost,
                {"rank 2 has left after 2 calls", "is still needed"},
                [](Member& me, Ranks& all, const Call& call) {
                  for (int i = 0; i < 2; ++i) me.call(call).throw_if_error();
                  all.drop(me.rank());
                  return Status();
                },
                true},
        Failing{"ends its thread in a call",
                Code::rank_lost,
                {kThreadsMayVanish ? "thread has ended in" : "has left", "rank 2", "still needed"},
                [](Member& me, Ranks& all, const Call& call) {
                  if (kThreadsMayVanish) return me.call(call, end_of_thread);
                  all.drop(me.rank());
                  return Status();
                },
                true},
        Failing{"its observer ends the call",
                Code::aborted,
                {"the observer of rank 2"},
                [](Member& me, Ranks&, const Call& call) { return me.call(call, end_of_call); }},
        Failing{"aborts",
                Code::aborted,
                {"the user pressed a key"},
                [](Member& me, Ranks& all, const Call& call) {
                  wait_until_waiting(all.communicator(), 0);
                  all.communicator().abort("the user pressed a key");
                  all.communicator().abort("a stranger, later");
                  return me.call(call);
                }},
        Failing{"aborts without a text, as in a signal handler",
                Code::aborted,
                {"abort() was called"},
                [](Member& me, Ranks& all, const Call& call) {
                  all.communicator().abort();
                  all.communicator().abort("a stranger, later");
                  return me.call(call);
                }}));

// The sum of the clock and such a duration would overflow to a time in the past.
TEST(Timeouts, MayBeForEver) {
  for (const auto longest :
       {std::chrono::milliseconds::max(),
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::years(293))}) {
    for (const bool of_the_call : {false, true}) {
      expect_ranks_succeed({.ranks = 2, .timeout = of_the_call ? 1ms : longest}, [&](Member& me) {
        // The last rank comes late enough that the other rank has read the clock.
        if (me.rank() == 1) std::this_thread::sleep_for(100ms);
        return me.barrier({.timeout = of_the_call ? longest : 0ms});
      });
    }
  }
}

// --- Calls that disagree

struct Disagreement {
  const char* name;
  void (*change)(Call&);             // makes rank 1's call different
  std::vector<std::string> words{};  // parts of the error text
};

void PrintTo(const Disagreement& d, std::ostream* out) { *out << d.name; }

class Mismatch : public testing::TestWithParam<Disagreement> {};

TEST_P(Mismatch, EndsAllRanksAndNamesTheDifference) {
  for (const std::size_t count : {5U, 10'000U}) {
    for (const int good_calls : {0, 5}) {
      Ranks all({.ranks = 3, .timeout = kLong, .tuned = false});
      const auto results = all.run([&](Member& me) {
        std::vector<std::int32_t> in(8 * 10'000 + 64, 1), out(in.size());
        Call call{.in = in.data(),
                  .out = out.data(),
                  .count = count,
                  .type = DataType::i32,
                  .op = ReduceOp::sum};
        for (int i = 0; i < good_calls; ++i) {
          if (const Status status = me.call(call); !status.ok()) return status;
        }
        if (me.rank() == 1) GetParam().change(call);
        const Status status = me.call(call);
        if (!status.ok()) return status;
        // Rank 1 did not have to wait in the different call. The other ranks find the mismatch and
        // compare with that call, because rank 1 makes no call in between.
        EXPECT_EQ(me.rank(), 1) << "a success beside a call that differs";
        return when_over(all.communicator());
      });
      expect_all(results, Code::mismatch, GetParam().words);
      expect_words(results[0], {"at rank 1"});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Mismatch,
    testing::Values(
        Disagreement{"count", [](Call& c) { c.count += 1; }, {"count is"}},
        Disagreement{"type", [](Call& c) { c.type = DataType::u32; }, {"type is", "i32", "u32"}},
        Disagreement{"op", [](Call& c) { c.op = ReduceOp::max; }, {"operation is", "sum", "max"}},
        Disagreement{"in place",
                     [](Call& c) { c.out = const_cast<void*>(c.in); },
                     {"in place is", "yes", "no"}},
        Disagreement{
            "algorithm", [](Call& c) { c.options.algorithm = "ring"; }, {"algorithm is", "ring"}},
        Disagreement{"order", [](Call& c) { c.options.order = Order::by_rank; }, {"the order"}},
        Disagreement{"epilogue",
                     [](Call& c) {
                       static constexpr Epilogue kRows{
                           [](const void*, std::size_t, std::size_t, void*) {}, nullptr, 5};
                       c.options.epilogue = &kRows;
                     },
                     {"the rows of an epilogue"}},
        Disagreement{"collective, rotation_symmetric waits",
                     [](Call& c) { c.collective = Collective::all_gather; },
                     {"collective is", "all_reduce", "all_gather"}},
        Disagreement{"collective, a root that waits for nobody",
                     [](Call& c) {
                       c.collective = Collective::broadcast;
                       c.root = 1;
                     },
                     {"collective is", "all_reduce", "broadcast"}},
        Disagreement{"transport",
                     [](Call& c) {
                       c.options.transport = c.count < 100 ? Transport::direct : Transport::mailbox;
                     },
                     {"transport is", "direct"}},
        Disagreement{"size that takes another transport",
                     [](Call& c) { c.count = c.count < 100 ? 10'000 : 5; },
                     {"count is"}}));

// --- Memory after the end

// After a call has returned an error, the rank may free its buffers at once, because no rank reads
// them any more.
TEST(BuffersAfterAnError, AreTheCallersAgain) {
  constexpr std::size_t kBytes = std::size_t{1} << 25;
  for (int attempt = 0; attempt < 12; attempt += 2) {
    for (const int ranks : {2, 4}) {
      Ranks all({.ranks = ranks, .timeout = kLong});
      std::atomic<int> entered{0};
      std::thread stranger([&] {
        while (entered.load() < ranks) std::this_thread::yield();
        for (int i = 0; i < attempt * 500; ++i) std::this_thread::yield();
        all.communicator().abort("now");
      });
      const auto results = all.run([&](Member& me) {
        // Separate mappings: a rank that reads them after munmap() crashes.
        const auto map = [] {
          return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        };
        void *const in = map(), *const out = map();
        const Call call{.in = in, .out = out, .count = kBytes / sizeof(float)};
        Status status = me.call(call);
        entered.fetch_add(1);
        while (status.ok()) status = me.call(call);
        munmap(in, kBytes);
        munmap(out, kBytes);
        return status;
      });
      stranger.join();
      expect_all(results, Code::aborted);
    }
  }
}

// --- The flight record: the last actions of the ranks

using Json = nlohmann::json;

Status all_reduce(Member& me, std::chrono::milliseconds timeout = 0ms) {
  std::vector<float> data(100, 1);
  return me.all_reduce(std::span(data), ReduceOp::max, {.algorithm = "ring", .timeout = timeout});
}

Json record_of(Ranks& all) { return Json::parse(all.communicator().flight_record()); }
Json json_in(const std::string& path) { return Json::parse(read_small_file(path, 1 << 24).text); }

// Also where the counters wrap, and with times where asked for.
TEST(FlightRecord, TellsTheLastThousandCallsOfEveryRank) {
  for (const bool times : {false, true}) {
    const FirstCount near_the_wrap(0xfffffff0u);
    Ranks all({.ranks = 3, .record_times = times});
    EXPECT_EQ(record_of(all)["ranks"][1]["calls"], 0);
    EXPECT_EQ(record_of(all)["ranks"][1]["last"].size(), 0u);
    expect_ok(all.run([&](Member& me) {
      for (int i = 0; i < 1500; ++i) {
        if (Status status = all_reduce(me); !status.ok()) return status;
      }
      std::vector<int> x(7);
      return me.broadcast(std::span(x), 2, {.algorithm = "chain"});
    }));
    const Json record = record_of(all);
    EXPECT_EQ(record["health"], "ok");
    ASSERT_EQ(record["ranks"].size(), 3u);
    for (const Json& rank : record["ranks"]) {
      EXPECT_EQ(rank["calls"], 1501);
      ASSERT_EQ(rank["last"].size(), 1024u);
      const Json &first = rank["last"][0], &second = rank["last"][1], &last = rank["last"][1023];
      EXPECT_EQ(first["call"], 1501 - 1023);
      EXPECT_EQ(first["what"], "all_reduce f32 max");
      EXPECT_EQ(first["algorithm"], "ring");
      EXPECT_EQ(last["call"], 1501);
      EXPECT_EQ(last["what"], "broadcast i32");
      EXPECT_EQ(last["algorithm"], "chain");
      EXPECT_EQ(last["root"], 2);
      ASSERT_EQ(first.contains("took_us"), times);
      if (!times) continue;
      const double began = first["began_us"], took = first["took_us"];
      EXPECT_GT(took, 0);
      EXPECT_GE(second["began_us"], began + took);
    }
  }
}

// RANKINE_FLIGHT_RECORD names a file; the first failing call writes the record there, whole, over
// an earlier file. Each rank's state describes only that rank, so the record grows linearly.
TEST(FlightRecord, IsLeftInAFileWhenACallFails) {
  const TempTree tree;
  const std::string path = tree.root() + "/flight_" + std::to_string(getpid()) + ".json";
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", (tree.root() + "/flight_%p.json").c_str());
  for (const int ranks : {2, 48}) {
    tree.write(path.substr(tree.root().size()), "an earlier file: " + std::string(1 << 20, 'x'));
    Ranks all({.ranks = ranks});
    // Rank 1's thread lives until then: the end of a thread would be another failure.
    std::latch failed(ranks - 1);
    const auto results = all.run([&](Member& me) {
      if (Status status = all_reduce(me); !status.ok()) return status;
      if (Status status = me.barrier(); !status.ok()) return status;
      if (me.rank() == 1) {
        failed.wait();
        return Status();
      }
      const Status status = all_reduce(me, 200ms);
      failed.count_down();
      return status;
    });
    EXPECT_EQ(results[0].code(), Code::timeout);
    const Json record = json_in(path);
    expect_words(Status(Code::timeout, record["health"]), {"timeout: no answer within 200 ms"});
    ASSERT_EQ(record["ranks"].size(), static_cast<std::size_t>(ranks));
    EXPECT_EQ(record["ranks"][0]["calls"], 3);
    EXPECT_EQ(record["ranks"][1]["calls"], 2);
    for (const Json& rank : record["ranks"]) {
      const std::string state = rank["state"];
      EXPECT_EQ(state.find("; rank"), std::string::npos) << state;
    }
    const std::string state = record["ranks"][1]["state"];
    EXPECT_NE(state.find("in no collective"), std::string::npos) << state;
    if (ranks > 2) continue;
    const Json wait = record["ranks"][0]["slow_waits"].back();  // the last wait of rank 0
    EXPECT_EQ(wait["call"], 3);
    EXPECT_EQ(wait["for"], 1);
    EXPECT_EQ(wait["end"], "deadline");
    EXPECT_GE(wait["took_us"], 1000.0);
  }
}

// The record is also written if the call failed during planning.
TEST(FlightRecord, IsLeftWherePlanningFails) {
  const TempTree tree;
  const std::string path = tree.root() + "/planning.json";
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", path.c_str());
  Ranks all({.ranks = 24, .timeout = 20ms, .plan_bytes = std::size_t{64} << 30});
  std::vector<float> data(1 << 20);
  const Status status =
      all.members()[0]->call({.in = data.data(),
                              .out = data.data(),
                              .count = data.size(),
                              .options = {.algorithm = "double_tree", .segments = 16384}});
  EXPECT_EQ(status.code(), Code::timeout) << status.text();
  const Json record = json_in(path);
  expect_words(Status(Code::timeout, record["health"]), {"rank 0 was still planning its call"});
  EXPECT_EQ(record["ranks"][0]["calls"], 0);
}

// Bytes of a text that are no UTF-8 are replaced.
TEST(FlightRecord, IsJsonWhateverTheTextsAre) {
  Ranks all({.ranks = 2});
  all.communicator().abort("no \xc3\x28 UTF-8 \xff");
  EXPECT_EQ(all.communicator().health().text(), "no \xc3\x28 UTF-8 \xff");
  EXPECT_EQ(record_of(all)["health"], "aborted: no \xef\xbf\xbd( UTF-8 \xef\xbf\xbd");
}

}  // namespace
}  // namespace rankine
