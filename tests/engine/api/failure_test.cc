// Ranks that throw, leave, never come or make a different call: all ranks return with the right
// code and a text that names the waiting and the missing rank, and the process can start new ranks.
// The flight record of failures is tested too.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/team.h"
#include "engine/base/files.h"
#include "engine/run/interpret.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/fixtures.h"

namespace rankine {
namespace {

using testing::Values;
using std::chrono_literals::operator""ms;

constexpr auto kLong = 60'000ms;  // for failures that must not need a deadline
constexpr auto kShort = 1'000ms;  // for failures that need a deadline

struct Setting {
  int ranks;
  std::size_t count;  // small: mailboxes; large: direct
  WaitPolicy::Mode mode;
};

void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.ranks << " ranks, " << s.count << " elements, mode " << static_cast<int>(s.mode);
}

class Failure : public testing::TestWithParam<Setting> {
 protected:
  CommunicatorOptions options(std::chrono::milliseconds timeout) const {
    return {.ranks = GetParam().ranks,
            .timeout = timeout,
            .wait = WaitPolicy{.mode = GetParam().mode, .probes = 4}};
  }
  Call all_reduce(std::vector<std::uint32_t>& in, std::vector<std::uint32_t>& out) const {
    return {.in = in.data(), .out = out.data(), .count = in.size(), .type = DataType::u32};
  }
  std::size_t count() const { return GetParam().count; }
  int ranks() const { return GetParam().ranks; }
  Rank last() const { return GetParam().ranks - 1; }

  // New ranks in the same process reduce correctly.
  void expect_a_new_start() {
    Ranks fresh(options(kLong));
    const auto results = fresh.run([&](Member& me) {
      std::vector<std::uint32_t> data(count(), static_cast<std::uint32_t>(me.rank() + 1));
      Status status = me.all_reduce(std::span(data));
      const auto all = static_cast<std::uint32_t>(ranks() * (ranks() + 1) / 2);
      for (const std::uint32_t x : data) EXPECT_EQ(x, all);
      return status;
    });
    for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
  }

  static void expect_all(const std::vector<Status>& results, Code code,
                         const std::vector<std::string>& words) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      EXPECT_EQ(name_of(results[r].code()), name_of(code))
          << "rank " << r << ": " << results[r].text();
      EXPECT_EQ(results[r].text(), results[0].text());
    }
    for (const std::string& word : words) {
      EXPECT_NE(results[0].text().find(word), std::string::npos)
          << "'" << word << "' is not in: " << results[0].text();
    }
  }
};

TEST_P(Failure, ARankThatThrowsEndsAllOthers) {
  auto team = Team::create({.ranks = ranks(),
                            .timeout = kLong,
                            .wait = WaitPolicy{.mode = GetParam().mode, .probes = 4}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  std::vector<Status> results(static_cast<std::size_t>(last()));
  const Status status = (*team)->run([&](Member& me) {
    if (me.rank() == last()) throw std::runtime_error("out of luck");
    std::vector<std::uint32_t> in(count()), out(count());
    results[static_cast<std::size_t>(me.rank())] = me.call(all_reduce(in, out));
  });
  EXPECT_EQ(name_of(status.code()), name_of(Code::remote_error));
  EXPECT_NE(status.text().find("rank " + std::to_string(last()) + " threw: out of luck"),
            std::string::npos)
      << status.text();
  expect_all(results, Code::remote_error, {"out of luck"});
  ASSERT_TRUE((*team)->thrown());
  EXPECT_THROW(std::rethrow_exception((*team)->thrown()), std::runtime_error);
  // The team has ended with an error, but its threads still run.
  EXPECT_EQ((*team)->run([](Member&) {}).text(), status.text());
  expect_a_new_start();
}

TEST_P(Failure, ARankThatNeverComesIsNamedAtTheDeadline) {
  Ranks all(options(kLong));
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    if (me.rank() == 0) {
      // The deadline begins when all other ranks wait.
      for (Rank r = 1; r < last(); ++r) wait_until_waiting(all.communicator(), r);
      Call call = all_reduce(in, out);
      call.options.timeout = kShort;
      return me.call(call);
    }
    if (me.rank() != last()) return me.call(all_reduce(in, out));
    // The last rank makes no call before the other ranks have given up; then it gets the same
    // error.
    while (all.communicator().health().ok()) std::this_thread::sleep_for(1ms);
    return me.call(all_reduce(in, out));
  });
  const std::string late = "rank " + std::to_string(last());
  expect_all(results, Code::timeout,
             {"within 1000 ms", "waits for " + late, "all_reduce u32 sum",
              "count " + std::to_string(count()), late + " is in no collective"});
  expect_a_new_start();
}

TEST_P(Failure, ARankThatHasLeftIsNamedAtOnce) {
  Ranks all(options(kLong));
  all.drop(last());
  auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    return me.call(all_reduce(in, out));
  });
  results.pop_back();
  expect_all(results, Code::rank_lost,
             {"rank " + std::to_string(last()) + " has left", "is still needed"});
  expect_a_new_start();
}

TEST_P(Failure, ARankOfATeamThatReturnsEarlyHasLeft) {
  auto team = Team::create({.ranks = ranks(),
                            .timeout = kLong,
                            .wait = WaitPolicy{.mode = GetParam().mode, .probes = 4}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  std::vector<Status> results(static_cast<std::size_t>(last()));
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    for (int call = 0; call < 3; ++call) {
      if (me.rank() == last() && call == 2) return;
      const Status done = me.call(all_reduce(in, out));
      if (me.rank() != last()) results[static_cast<std::size_t>(me.rank())] = done;
    }
  });
  expect_all(results, Code::rank_lost,
             {"rank " + std::to_string(last()) + " has left after 2 calls"});
  EXPECT_EQ(status.text(), results[0].text());
  expect_a_new_start();
}

TEST_P(Failure, AbortFromAnotherThreadEndsAllCalls) {
  Ranks all(options(kLong));
  std::atomic<int> entered{0};
  std::thread stranger([&] {
    while (entered.load() < last()) std::this_thread::yield();
    all.communicator().abort("the user pressed a key");
  });
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    if (me.rank() == last()) {
      while (all.communicator().health().ok()) std::this_thread::yield();
    }
    entered.fetch_add(1);
    return me.call(all_reduce(in, out));
  });
  stranger.join();
  expect_all(results, Code::aborted, {"the user pressed a key"});
  all.communicator().abort("somebody else, later");
  EXPECT_EQ(all.communicator().health().text(), "the user pressed a key");
  expect_a_new_start();
}

// The communicator that the signal handler aborts.
std::atomic<Communicator*> ended_by_signal{nullptr};

TEST_P(Failure, AbortFromASignalHandlerEndsAllCalls) {
  Ranks all(options(kLong));
  ended_by_signal.store(&all.communicator());
  struct sigaction action {};
  action.sa_handler = [](int) { ended_by_signal.load()->abort(); };
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<int> entered{0};
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    if (me.rank() == last()) {
      while (entered.load() < last()) std::this_thread::yield();
      // Twice, and on the thread of a rank.
      EXPECT_EQ(raise(SIGUSR1), 0);
      EXPECT_EQ(raise(SIGUSR1), 0);
    }
    entered.fetch_add(1);
    return me.call(all_reduce(in, out));
  });
  sigaction(SIGUSR1, &before, nullptr);
  expect_all(results, Code::aborted, {"abort() was called"});
  all.communicator().abort("somebody else, later");
  EXPECT_EQ(all.communicator().health().text(), "abort() was called");
  expect_a_new_start();
}

TEST_P(Failure, ACallMayHaveADeadlineOfItsOwn) {
  Ranks all(options(kLong));
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    Call call = all_reduce(in, out);
    Status status = me.call(call);  // all ranks call, so the communicator's deadline suffices
    if (!status.ok()) return status;
    if (me.rank() == last()) {
      while (all.communicator().health().ok()) std::this_thread::yield();
    }
    call.options.timeout = 300ms;
    return me.call(call);
  });
  expect_all(results, Code::timeout, {"within 300 ms"});
  expect_a_new_start();
}

// The sum of the clock and such a duration would overflow to a time in the past.
TEST_P(Failure, TimeoutsMayBeForEver) {
  for (const auto longest :
       {std::chrono::milliseconds::max(),
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::years(293))}) {
    for (const bool of_the_call : {false, true}) {
      Ranks all(options(of_the_call ? 1ms : longest));
      const auto results = all.run([&](Member& me) {
        std::vector<std::uint32_t> in(count()), out(count());
        Call call = all_reduce(in, out);
        if (of_the_call) call.options.timeout = longest;
        // The last rank comes late enough that the other ranks have read the clock.
        if (me.rank() == last()) std::this_thread::sleep_for(100ms);
        return me.call(call);
      });
      for (const Status& status : results) EXPECT_EQ(status.text(), "");
    }
  }
}

// An observer that ends a call ends it for all ranks at once.
TEST_P(Failure, AnObserverThatEndsACallEndsItForAll) {
  struct : RoundObserver {
    bool before_round(int) noexcept override { return false; }
  } end_of_call;
  Ranks all(options(kLong));
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    const Call call = all_reduce(in, out);
    return me.rank() == last() ? me.call(call, end_of_call) : me.call(call);
  });
  expect_all(results, Code::aborted, {"the observer of rank " + std::to_string(last())});
  expect_a_new_start();
}

// The thread ends without any destructor, so no rank is told.
TEST_P(Failure, AThreadThatEndsInsideACallIsFoundOut) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "these sanitizers must see threads end: one would wait for ever for a thread that "
         "ends unseen, the other meets its remains in the next one's storage";
#endif
  struct : RoundObserver {
    bool before_round(int) noexcept override {
      syscall(SYS_exit, 0);
      return false;
    }
  } end_of_thread;
  Ranks all(options(kLong));
  std::vector<std::uint32_t> last_in(count()), last_out(count());
  auto results = all.run([&](Member& me) {
    if (me.rank() == last()) return me.call(all_reduce(last_in, last_out), end_of_thread);
    std::vector<std::uint32_t> in(count()), out(count());
    return me.call(all_reduce(in, out));
  });
  results.pop_back();
  expect_all(results, Code::rank_lost,
             {"rank " + std::to_string(last()) + " is still needed", "thread has ended in"});
  expect_a_new_start();
}

// A forked child has one thread and no rank: it gets an error at once, can clean up, and can start
// new ranks.
TEST_P(Failure, AForkedChildIsToldAtOnce) {
  auto team = Team::create({.ranks = ranks(), .timeout = kLong});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Ranks all(options(kLong));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int failed = 0;
    {
      std::vector<std::uint32_t> in(count()), out(count());
      auto member = std::move(all.members().front());
      failed |= member->call(all_reduce(in, out)).code() == Code::forked ? 0 : 1;
      failed |= member->barrier().code() == Code::forked ? 0 : 2;
      failed |= member->plan_of(all_reduce(in, out)).status().code() == Code::forked ? 0 : 4;
      failed |= all.communicator().health().code() == Code::forked ? 0 : 8;
      failed |= (*team)->run([](Member&) {}).code() == Code::forked ? 0 : 16;
      member.reset();
      *team = nullptr;
    }
    { Ranks old = std::move(all); }
#if !defined(__SANITIZE_THREAD__)  // which allows no threads in a child
    auto anew = Team::create({.ranks = ranks(), .timeout = kLong});
    failed |=
        anew.ok() && (*anew)->run([](Member& me) { me.barrier().throw_if_error(); }).ok() ? 0 : 32;
#endif
    _exit(failed);
  }
  // The parent still works.
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count(), 1), out(count());
    Status status = me.call(all_reduce(in, out));
    for (const std::uint32_t x : out) EXPECT_EQ(x, static_cast<std::uint32_t>(ranks()));
    return status;
  });
  for (const Status& status : results) EXPECT_EQ(status.text(), "");
  EXPECT_TRUE((*team)->run([](Member& me) { me.barrier().throw_if_error(); }).ok());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(Failure, ABadCallOfOneRankLetsTheOthersWaitForTheirDeadline) {
  Ranks all(options(kShort));
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count(), 7), out(count(), 9);
    Call call = all_reduce(in, out);
    if (me.rank() != last()) return me.call(call);
    call.in = nullptr;
    Status status = me.call(call);
    EXPECT_EQ(out, std::vector<std::uint32_t>(count(), 9));
    return status;
  });
  EXPECT_EQ(name_of(results.back().code()), name_of(Code::invalid_argument));
  EXPECT_EQ(name_of(results.front().code()), name_of(Code::timeout)) << results.front().text();
  expect_a_new_start();
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Failure,
    Values(Setting{2, 3, WaitPolicy::Mode::spin}, Setting{2, 5'000, WaitPolicy::Mode::yield},
           Setting{3, 3, WaitPolicy::Mode::park}, Setting{3, 40'000, WaitPolicy::Mode::park},
           Setting{5, 1, WaitPolicy::Mode::yield}, Setting{5, 5'000, WaitPolicy::Mode::spin}));

// --- Calls that disagree

struct Disagreement {
  const char* name;
  void (*change)(Call&);             // makes rank 1's call different
  std::vector<std::string> words{};  // parts of the error text
};

void PrintTo(const Disagreement& d, std::ostream* out) { *out << d.name; }

class Mismatch : public testing::TestWithParam<Disagreement> {};

TEST_P(Mismatch, EndsAllRanksAndNamesWhatDiffers) {
  for (const int ranks : {2, 3, 4}) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{10'000}}) {
      Ranks all({.ranks = ranks, .timeout = kLong});
      std::vector<Status> results = all.run([&](Member& me) {
        const std::size_t room = std::max<std::size_t>(8 * count, 10'000) + 64;
        std::vector<std::int32_t> in(room, 1), out(room);
        Call call{.in = in.data(),
                  .out = out.data(),
                  .count = count,
                  .type = DataType::i32,
                  .op = ReduceOp::sum};
        if (me.rank() == 1) GetParam().change(call);
        Status status = me.call(call);
        if (!status.ok()) return status;
        // Rank 1 did not have to wait in the different call. The other ranks find the mismatch and
        // compare with that call, because rank 1 makes no call in between.
        EXPECT_EQ(me.rank(), 1) << "a success beside a call that differs";
        while (all.communicator().health().ok()) std::this_thread::yield();
        return me.call(call);
      });
      for (const Status& status : results) {
        EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
        EXPECT_EQ(status.text(), results[0].text());
      }
      for (const std::string& word : GetParam().words) {
        EXPECT_NE(results[0].text().find(word), std::string::npos)
            << "'" << word << "' is not in: " << results[0].text();
      }
      EXPECT_NE(results[0].text().find("at rank 1"), std::string::npos) << results[0].text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Mismatch,
    Values(
        Disagreement{"count", [](Call& c) { c.count += 1; }, {"count is"}},
        Disagreement{"type", [](Call& c) { c.type = DataType::u32; }, {"type is", "i32", "u32"}},
        Disagreement{"op", [](Call& c) { c.op = ReduceOp::max; }, {"operation is", "sum", "max"}},
        Disagreement{"in place",
                     [](Call& c) { c.out = const_cast<void*>(c.in); },
                     {"in place is", "yes", "no"}},
        Disagreement{
            "algorithm", [](Call& c) { c.options.algorithm = "ring"; }, {"algorithm is", "ring"}},
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

TEST(MismatchOfRoots, ShowsInThisCallOrTheNext) {
  for (const int ranks : {2, 3, 4}) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{9'000}}) {
      Ranks all({.ranks = ranks, .timeout = kLong});
      const auto results = all.run([&](Member& me) {
        std::vector<float> data(count, 1.0F);
        Status status = me.broadcast(std::span(data), me.rank() == 1 ? 1 : 0);
        for (int further = 0; status.ok() && further < 40; ++further) {
          status = me.all_reduce(std::span(data));
        }
        return status;
      });
      for (const Status& status : results) {
        EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
        EXPECT_EQ(status.text(), results[0].text());
      }
    }
  }
}

TEST(MismatchOfNumbers, ACallLessIsFoundOut) {
  // Rank 1 leaves out one of many calls that differ only in their number.
  for (const std::size_t count : {std::size_t{5}, std::size_t{9'000}}) {
    Ranks all({.ranks = 3, .timeout = kLong});
    auto results = all.run([&](Member& me) {
      std::vector<float> data(count, 1.0F);
      Status status;
      for (int call = me.rank() == 1 ? 1 : 0; status.ok() && call < 10; ++call) {
        status = me.all_reduce(std::span(data), ReduceOp::max);
      }
      if (me.rank() == 1 && status.ok()) all.drop(1);
      return status;
    });
    EXPECT_EQ(name_of(results[0].code()), name_of(Code::rank_lost)) << results[0].text();
    EXPECT_EQ(name_of(results[2].code()), name_of(Code::rank_lost)) << results[2].text();
    EXPECT_NE(results[0].text().find("rank 1 has left after 9 calls"), std::string::npos)
        << results[0].text();
  }
}

// --- Memory after the end

// After a call has returned an error, the rank may free its buffers at once, because no rank reads
// them any more.
TEST(BuffersAfterAnError, AreTheCallersAgain) {
  constexpr std::size_t kBytes = std::size_t{1} << 25;
  for (int attempt = 0; attempt < 12; ++attempt) {
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
        void* in =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void* out =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const Call call{.in = in, .out = out, .count = kBytes / sizeof(float)};
        Status status = me.call(call);
        entered.fetch_add(1);
        while (status.ok()) status = me.call(call);
        munmap(in, kBytes);
        munmap(out, kBytes);
        return status;
      });
      stranger.join();
      for (const Status& status : results) {
        EXPECT_EQ(name_of(status.code()), name_of(Code::aborted)) << status.text();
      }
    }
  }
}

// --- Counters that wrap

TEST(Wrap, CountersRunOverTheEndOfTheirRange) {
  for (const std::uint32_t first : {0U - 3U, 0x80000000U - 3U, 0U - 40U, 0x80000000U - 40U}) {
    for (const int ranks : {2, 3, 5}) {
      const FirstCount near_the_wrap(first);
      Ranks all({.ranks = ranks, .timeout = kLong});
      const auto results = all.run([&](Member& me) {
        Status status;
        for (int call = 0; call < 60 && status.ok(); ++call) {
          for (const Transport transport :
               {Transport::mailbox, Transport::direct, Transport::board}) {
            const bool large = call % 7 == 0 && transport != Transport::board;
            std::vector<std::uint32_t> data(large ? 700U : 11U,
                                            static_cast<std::uint32_t>(me.rank() + call));
            status = me.all_reduce(
                std::span(data), ReduceOp::sum,
                {.algorithm = call % 2 == 0 ? "ring" : "direct_one_shot", .transport = transport});
            const auto all_ranks =
                static_cast<std::uint32_t>(ranks * (ranks - 1) / 2 + ranks * call);
            EXPECT_EQ(data, std::vector<std::uint32_t>(data.size(), all_ranks));
          }
        }
        return status;
      });
      for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
    }
  }
}

}  // namespace

// The flight record: the last actions of the ranks.

namespace {

using Json = nlohmann::json;
using std::chrono_literals::operator""ms;

Status all_reduce(Member& me, std::chrono::milliseconds timeout = 0ms) {
  std::vector<float> data(100, 1);
  return me.all_reduce(std::span(data), ReduceOp::max, {.algorithm = "ring", .timeout = timeout});
}

TEST(FlightRecord, TellsTheLastCallsOfEveryRank) {
  Ranks all({.ranks = 3});
  const auto results = all.run([&](Member& me) {
    for (int i = 0; i < 5; ++i) {
      if (Status status = all_reduce(me); !status.ok()) return status;
    }
    std::vector<int> x(7);
    return me.broadcast(std::span(x), 2, {.algorithm = "chain"});
  });
  for (const Status& status : results) EXPECT_EQ(status.text(), "");
  const Json record = Json::parse(all.communicator().flight_record());
  EXPECT_EQ(record["health"], "ok");
  ASSERT_EQ(record["ranks"].size(), 3u);
  for (const Json& rank : record["ranks"]) {
    EXPECT_EQ(rank["calls"], 6);
    ASSERT_EQ(rank["last"].size(), 6u);
    const Json &first = rank["last"][0], &last = rank["last"][5];
    EXPECT_EQ(first["call"], 1);
    EXPECT_EQ(first["what"], "all_reduce f32 max");
    EXPECT_EQ(first["algorithm"], "ring");
    EXPECT_EQ(last["call"], 6);
    EXPECT_EQ(last["what"], "broadcast i32");
    EXPECT_EQ(last["algorithm"], "chain");
    EXPECT_EQ(last["root"], 2);
    EXPECT_FALSE(last.contains("took_us"));
  }
}

TEST(FlightRecord, KeepsTheLastThousandAlsoWhereCountersWrap) {
  const FirstCount near_the_wrap(0xfffffff0u);
  Ranks all({.ranks = 2});
  all.run([&](Member& me) {
    for (int i = 0; i < 1500; ++i) {
      if (Status status = all_reduce(me); !status.ok()) return status;
    }
    return me.barrier();
  });
  const Json record = Json::parse(all.communicator().flight_record());
  for (const Json& rank : record["ranks"]) {
    EXPECT_EQ(rank["calls"], 1501);
    ASSERT_EQ(rank["last"].size(), 1024u);
    EXPECT_EQ(rank["last"][0]["call"], 1501 - 1023);
    EXPECT_EQ(rank["last"][1022]["what"], "all_reduce f32 max");
    EXPECT_EQ(rank["last"][1023]["what"], "barrier u32");
  }
}

TEST(FlightRecord, HasTimesWhereAskedFor) {
  Ranks all({.ranks = 2, .record_times = true});
  all.run([&](Member& me) {
    if (Status status = all_reduce(me); !status.ok()) return status;
    return all_reduce(me);
  });
  const Json record = Json::parse(all.communicator().flight_record());
  for (const Json& rank : record["ranks"]) {
    ASSERT_EQ(rank["last"].size(), 2u);
    const double first = rank["last"][0]["began_us"], took = rank["last"][0]["took_us"];
    EXPECT_GE(first, 0);
    EXPECT_GT(took, 0);
    EXPECT_GE(rank["last"][1]["began_us"], first + took);
  }
}

TEST(FlightRecord, OfNobodyIsEmpty) {
  Ranks all({.ranks = 2});
  const Json record = Json::parse(all.communicator().flight_record());
  EXPECT_EQ(record["ranks"][1]["calls"], 0);
  EXPECT_EQ(record["ranks"][1]["last"].size(), 0u);
}

// RANKINE_FLIGHT_RECORD names a file; the first failing call writes the record there.
TEST(FlightRecord, IsLeftInAFileWhenACallFails) {
  const std::string folder = testing::TempDir();
  setenv("RANKINE_FLIGHT_RECORD", (folder + "/flight_%p.json").c_str(), 1);
  const std::string path = folder + "/flight_" + std::to_string(getpid()) + ".json";
  {
    Ranks all({.ranks = 2});
    // Rank 1's thread lives until then: the end of a thread would be another failure.
    std::latch failed(1);
    const auto results = all.run([&](Member& me) {
      if (Status status = all_reduce(me); !status.ok()) return status;
      EXPECT_FALSE(std::ifstream(path).good());
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
  }
  unsetenv("RANKINE_FLIGHT_RECORD");
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  const Json record = Json::parse(file);
  EXPECT_NE(record["health"].get<std::string>().find("timeout: no answer within 200 ms"),
            std::string::npos);
  EXPECT_EQ(record["ranks"][0]["calls"], 3);
  EXPECT_EQ(record["ranks"][1]["calls"], 2);
  EXPECT_NE(record["ranks"][1]["state"].get<std::string>().find("in no collective"),
            std::string::npos);
  // The last wait of rank 0.
  const Json wait = record["ranks"][0]["slow_waits"].back();
  EXPECT_EQ(wait["call"], 3);
  EXPECT_EQ(wait["for"], 1);
  EXPECT_EQ(wait["end"], "deadline");
  EXPECT_GE(wait["took_us"], 1000.0);
  std::remove(path.c_str());
}

// Rank 0 waits for rank 1, which does not call; the record goes to `path`. Returns rank 0's status.
Status fail_and_leave(const std::string& path, int ranks = 2) {
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", path.c_str());
  Ranks all({.ranks = ranks, .timeout = 100ms});
  const auto results =
      all.run([&](Member& me) { return me.rank() == 1 ? Status() : all_reduce(me); });
  return results[0];
}

Json json_in(const std::string& path) { return Json::parse(read_small_file(path, 1 << 24).text); }

// If the record cannot be written, no call waits and no other file changes.
TEST(FlightRecord, ThatCannotBeLeftDelaysNoCall) {
  const TempTree tree;
  const std::string pipe = tree.root() + "/pipe", link = tree.root() + "/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  tree.write("/file", "the link's");
  ASSERT_EQ(symlink((tree.root() + "/file").c_str(), link.c_str()), 0);
  for (const std::string& path : {pipe, link, tree.root(), std::string("/dev/full"),
                                  tree.root() + "/none/file", tree.root() + "/file/below"}) {
    CapturedWarnings captured;
    EXPECT_EQ(fail_and_leave(path).code(), Code::timeout) << path;
    ASSERT_EQ(captured.lines.size(), 1u) << path;
    EXPECT_EQ(captured.lines[0].first, "api.flight_record");
    EXPECT_NE(captured.lines[0].second.find("'" + path + "', which cannot be written: "),
              std::string::npos)
        << captured.lines[0].second;
  }
  EXPECT_EQ(read_small_file(tree.root() + "/file", 100).text, "the link's");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

// The record is also written if the call failed during planning.
TEST(FlightRecord, IsLeftWherePlanningFails) {
  const std::string path = testing::TempDir() + "/planning.json";
  std::remove(path.c_str());
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
  EXPECT_NE(record["health"].get<std::string>().find("rank 0 was still planning its call"),
            std::string::npos);
  EXPECT_EQ(record["ranks"][0]["calls"], 0);
}

TEST(FlightRecord, ReplacesAnEarlierOneWhole) {
  const TempTree tree;
  tree.write("/file", "what was there before, and was longer: " + std::string(1 << 20, 'x'));
  const std::string path = tree.root() + "/file";
  EXPECT_EQ(fail_and_leave(path).code(), Code::timeout);
  EXPECT_EQ(json_in(path)["ranks"].size(), 2u);
}

TEST(FlightRecord, IsWrittenWhateverTheTextsAre) {
  const TempTree tree;
  const std::string path = tree.root() + "/\xff\xfe";
  {
    const ScopedEnv variable("RANKINE_FLIGHT_RECORD", path.c_str());
    Ranks all({.ranks = 2});
    const auto results = all.run([&](Member& me) {
      if (me.rank() == 0) return all_reduce(me);
      all.communicator().abort("no \xc3\x28 UTF-8 \xff");
      return Status();
    });
    EXPECT_EQ(results[0].text(), "no \xc3\x28 UTF-8 \xff");
    EXPECT_EQ(Json::parse(all.communicator().flight_record())["health"],
              "aborted: no \xef\xbf\xbd( UTF-8 \xef\xbf\xbd");
  }
  EXPECT_EQ(json_in(path)["health"], "aborted: no \xef\xbf\xbd( UTF-8 \xef\xbf\xbd");
}

// Each rank's state describes only that rank, so the size of a record grows linearly with the
// ranks.
TEST(FlightRecord, SaysOfEachRankWhatItDoesItself) {
  const TempTree tree;
  const std::string path = tree.root() + "/file";
  constexpr int kMany = 48;
  EXPECT_EQ(fail_and_leave(path, kMany).code(), Code::timeout);
  const Json record = json_in(path);
  ASSERT_EQ(record["ranks"].size(), static_cast<std::size_t>(kMany));
  for (const Json& rank : record["ranks"]) {
    const std::string state = rank["state"];
    EXPECT_EQ(state.find("; rank"), std::string::npos) << state;
  }
}

}  // namespace
}  // namespace rankine
