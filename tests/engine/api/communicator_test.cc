// The public interface: typed and untyped calls, threads of a team and of the caller, every type
// with every operation, awkward sizes, the engine's defaults, placement, and environment variables.

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "engine/run/kernels/reduce.h"
#include "numa/cpus.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kEvery = 7;  // one in kEvery cases
#else
constexpr std::size_t kEvery = 1;
#endif

// Runs cases back to back on a team and reports the first failure.
void expect_fine(int ranks, const std::vector<CollectiveCase>& cases) {
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(2)}).value();
  std::mutex mutex;
  std::string fault;
  const Status status = team->run([&](Member& me) {
    CaseBuffers buffers;
    for (std::size_t i = 0; i < cases.size(); i += kEvery) {
      const std::string found = run_case(me, cases[i], buffers);
      if (found.empty()) continue;
      const std::lock_guard lock(mutex);
      if (fault.empty()) fault = found;
      return;
    }
  });
  EXPECT_EQ(fault, "") << status.text();
}

TEST(Collectives, EveryTypeWithEveryOperation) {
  for (const int ranks : {2, 3, 5}) {
    std::vector<CollectiveCase> cases;
    for (int type = 0; type < kDataTypes; ++type) {
      for (int op = 0; op < kReduceOps; ++op) {
        const auto t = static_cast<DataType>(type);
        const auto o = static_cast<ReduceOp>(op);
        for (const Collective collective : all_collectives()) {
          if (!reduces(collective) || !takes(collective, t, o)) continue;
          for (const std::size_t count : {std::size_t{13}, std::size_t{2000}}) {
            for (const bool in_place : {false, true}) {
              cases.push_back({.collective = collective,
                               .ranks = ranks,
                               .count = count,
                               .type = t,
                               .op = o,
                               .root = ranks - 1,
                               .in_place = in_place,
                               .skew = cases.size() % 9,
                               .seed = cases.size()});
            }
          }
        }
      }
    }
    expect_fine(ranks, cases);
  }
}

class Sizes : public testing::TestWithParam<int> {};

TEST_P(Sizes, WhatTheEngineChoosesIsRight) {
  const int ranks = GetParam();
  const auto n = static_cast<std::size_t>(ranks);
  const std::vector<std::size_t> few = {0, 1, 3, n - 1, n, n + 1, 1009, 5003};
  std::vector<CollectiveCase> cases;
  for (const Collective collective : all_collectives()) {
    if (collective == Collective::barrier) continue;
    std::vector<std::size_t> counts = few;
    const bool is_vector = natural_blocks(collective, 2) == 1;
    // Several parts of 64 KiB with a remainder.
    if (ranks <= 9) counts.push_back((is_vector ? kMiB / 4 : kMiB / 4 / n) + 7);
    for (const std::size_t count : counts) {
      if (!is_vector && ranks > 9 && count > 1009) continue;
      for (const bool in_place : {false, true}) {
        cases.push_back({.collective = collective,
                         .ranks = ranks,
                         .count = count,
                         .type = count % 2 == 0 ? DataType::f32 : DataType::i64,
                         .root = static_cast<Rank>(count % n),
                         .peer = static_cast<Rank>((count + 1) % n),
                         .in_place = in_place,
                         .skew = cases.size() % 5,
                         .seed = cases.size()});
      }
    }
  }
  expect_fine(ranks, cases);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Sizes, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 64));

// Results above 32 MiB use non-temporal stores.
TEST(Collectives, VectorsLargerThanTheCaches) {
  const std::size_t count = 9 * kMiB + 3;  // f32 elements
  std::vector<CollectiveCase> cases;
  for (const std::string_view algorithm : {"direct_one_shot", "ring"}) {
    for (const bool in_place : {false, true}) {
      cases.push_back({.collective = Collective::all_reduce,
                       .ranks = 2,
                       .count = count,
                       .in_place = in_place,
                       .seed = 5,
                       .options = {.algorithm = algorithm}});
    }
  }
  for (const Collective collective : {Collective::broadcast, Collective::all_gather,
                                      Collective::all_to_all, Collective::send_recv}) {
    cases.push_back(
        {.collective = collective, .ranks = 2, .count = count, .peer = 1, .seed = cases.size()});
  }
  expect_fine(2, cases);
}

// Returns a policy with the first and the last of these CPUs.
PlacementPolicy listed(const std::vector<int>& cpus) {
  PlacementPolicy policy{.kind = PlacementPolicy::Kind::listed, .cpus = {cpus.front()}};
  if (cpus.size() > 1) policy.cpus.push_back(cpus.back());
  return policy;
}

TEST(Placement, ThreadsThatJoinArePinnedWhereTheyAskForIt) {
  const std::vector<int> all = allowed_cpus();
  const PlacementPolicy policy = listed(all);
  const std::string waits = to_string(choose_wait_policy(static_cast<int>(all.size())));
  auto communicator = Communicator::create({.ranks = 2, .placement = policy}).value();
  on_threads(2, [&](Rank r) {
    const int cpu = policy.cpus[static_cast<std::size_t>(r) % policy.cpus.size()];
    auto me = communicator->join(r);
    ASSERT_TRUE(me.ok()) << me.status().text();
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpu});
    EXPECT_EQ((*me)->cpu(), cpu);  // the CPU of the pin
    EXPECT_TRUE((*me)->barrier().ok());
    EXPECT_EQ((*me)->cpu(), cpu);  // the CPU of the thread that made the call
    // A communicator or team that a pinned thread creates still uses all CPUs.
    EXPECT_EQ(cpus_before_pin(), all);
    EXPECT_EQ(to_string(choose_wait_policy(static_cast<int>(all.size()))), waits);
  });
  EXPECT_EQ(allowed_cpus(), all);  // only the joining threads are pinned
}

TEST(Placement, ThreadsOfRanksThatOthersJoinedArePinnedByTheirFirstCall) {
  const std::vector<int> all = allowed_cpus();
  const PlacementPolicy policy = listed(all);
  auto communicator = Communicator::create({.ranks = 2, .placement = policy}).value();
  std::vector<std::unique_ptr<Member>> members;
  for (Rank r = 0; r < 2; ++r) {
    members.push_back(communicator->join_for_another_thread(r).value());
    EXPECT_EQ(members.back()->cpu(), kNotPlaced);
  }
  on_threads(2, [&](Rank r) {
    const auto i = static_cast<std::size_t>(r);
    const int cpu = policy.cpus[i % policy.cpus.size()];
    EXPECT_EQ(allowed_cpus(), all);
    const std::vector<std::int32_t> x(3, 1);
    std::vector<std::int32_t> sum(3);
    EXPECT_TRUE(members[i]->all_reduce(x, sum).ok());
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpu});
    EXPECT_EQ(members[i]->cpu(), cpu);
  });
}

TEST(Placement, WithoutOneThreadsRunWhereTheyAre) {
  const std::vector<int> all = allowed_cpus();
  Ranks ranks({.ranks = 2});
  ranks.run([&](Member& me) -> Status {
    EXPECT_EQ(me.pin_thread().state, Enforcement::State::not_asked);
    Status status = me.barrier();
    EXPECT_EQ(allowed_cpus(), all);
    EXPECT_EQ(me.cpu(), all.size() == 1 ? all.front() : kNotPlaced);
    return status;
  });
  auto refused = Communicator::create(
      {.ranks = 2, .placement = PlacementPolicy{PlacementPolicy::Kind::listed, {4000}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_NE(refused.status().text().find("4000"), std::string::npos) << refused.status().text();
}

// Short ways are for the thread of the latest call. Fails if one of them, or a started call that
// another thread has ended, leaves the wrong thread in the rank's record.
TEST(Placement, TheThreadThatMakesTheCallsMayChange) {
  const std::vector<int> all = allowed_cpus();
  if (all.size() == 1) GTEST_SKIP() << "all threads run on one CPU";
  auto communicator = Communicator::create({.ranks = 2, .tuned = false}).value();
  const auto first = communicator->join_for_another_thread(0).value();
  // Members of one thread would share its started calls.
  std::unique_ptr<Member> second;
  std::thread([&] { second = communicator->join_for_another_thread(1).value(); }).join();
  const std::array<float, 2> x{1, 2}, u{3, 4};
  std::array<float, 2> y{}, v{};
  Request request = first->prepared().all_reduce(std::span(x), std::span(y)).value();
  Request other = second->prepared().all_reduce(std::span(u), std::span(v)).value();
  const auto answer = [&] { return second->all_reduce(std::span(u), std::span(v)); };
  const auto expect_all_cpus = [&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(other.start().ok() && first->all_reduce(std::span(x), std::span(y)).ok() &&
                  other.wait().ok());
      EXPECT_EQ(first->cpu(), kNotPlaced);
      EXPECT_EQ(second->cpu(), kNotPlaced);
      EXPECT_TRUE(request.start().ok() && answer().ok() && request.wait().ok());
      EXPECT_EQ(first->cpu(), kNotPlaced);
      EXPECT_EQ(second->cpu(), kNotPlaced);
    }
  };
  expect_all_cpus();
  EXPECT_TRUE(request.start().ok());
  std::latch has_called(1), may_end(1);
  std::thread pinned([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.back()), &one);
    EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
    EXPECT_TRUE(answer().ok() && request.wait().ok());
    EXPECT_EQ(first->cpu(), all.back());
    EXPECT_EQ(second->cpu(), all.back());
    has_called.count_down();
    may_end.wait();
  });
  has_called.wait();
  expect_all_cpus();
  may_end.count_down();
  pinned.join();
}

TEST(Ports, AreABudgetOfEachCommunicator) {
  expect_team_succeeds({.ranks = 3, .ports = 2}, [](Member& me) {
    const std::vector<std::int32_t> x(1000, me.rank());
    std::vector<std::int32_t> all(3000);
    me.all_gather(x, all).throw_if_error();
    EXPECT_EQ(all[1000], 1);
    EXPECT_GE(me.ports_in_use().most_received, 1);
    EXPECT_LE(me.ports_in_use().most_received, 2);
    // The parts of a split and the ends of a message have separate ports.
    auto part = me.split(0, -me.rank()).value();
    EXPECT_EQ(part->ports_in_use().most_sent, 0);
    part->barrier().throw_if_error();
    EXPECT_GE(part->ports_in_use().most_sent, 1);
    me.exchange(std::span<const std::int32_t>(x), (me.rank() + 1) % 3, std::span(all).first(1000),
                (me.rank() + 2) % 3)
        .throw_if_error();
    EXPECT_EQ(all[0], (me.rank() + 2) % 3);
    const Status refused = me.all_gather(x, all, {.transport = Transport::direct});
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.text(),
              "transport is direct, ports is 2; only the mailbox transport has ports: leave out "
              "one of the two");
  });
}

TEST(TypedCalls, EachCollectiveOnEngineThreads) {
  for (const int ranks : {1, 3}) {
    expect_team_succeeds({.ranks = ranks}, [ranks](Member& me) {
      const auto n = static_cast<std::size_t>(ranks);
      const auto r = static_cast<std::size_t>(me.rank());
      EXPECT_EQ(me.ranks(), ranks);
      const auto own = [](std::size_t rank) {
        return std::vector<std::int32_t>{static_cast<std::int32_t>(rank), 7};
      };
      std::vector<std::int32_t> everything;
      for (std::size_t q = 0; q < n; ++q) {
        const auto part = own(q);
        everything.insert(everything.end(), part.begin(), part.end());
      }
      const auto total = static_cast<std::int32_t>(n * (n - 1) / 2);
      const auto seven = static_cast<std::int32_t>(7 * n);
      const std::vector<std::int32_t> sums = {total, seven};
      const std::vector<std::int32_t> mine = own(r);
      const std::span<const std::int32_t> in(mine);

      std::vector<std::int32_t> out(2);
      me.all_reduce(in, std::span(out)).throw_if_error();
      EXPECT_EQ(out, sums);
      out = mine;
      me.all_reduce(std::span(out), ReduceOp::max).throw_if_error();
      EXPECT_EQ(out, (std::vector<std::int32_t>{ranks - 1, 7}));

      std::vector<std::int32_t> wide(2 * n);
      me.all_gather(in, std::span(wide)).throw_if_error();
      EXPECT_EQ(wide, everything);

      std::vector<std::int32_t> one(2);
      me.reduce_scatter(std::span<const std::int32_t>(wide), std::span(one)).throw_if_error();
      EXPECT_EQ(one, (std::vector<std::int32_t>{static_cast<std::int32_t>(r * n), seven}));

      out = mine;
      me.broadcast(std::span(out), ranks - 1).throw_if_error();
      EXPECT_EQ(out, own(n - 1));

      out = {-1, -1};
      const bool is_root = me.rank() == ranks / 2;
      me.reduce(in, is_root ? std::span(out) : std::span<std::int32_t>(), ranks / 2)
          .throw_if_error();
      EXPECT_EQ(out, is_root ? sums : (std::vector<std::int32_t>{-1, -1}));

      std::fill(wide.begin(), wide.end(), -1);
      me.gather(in, is_root ? std::span(wide) : std::span<std::int32_t>(), ranks / 2)
          .throw_if_error();
      if (is_root) {
        EXPECT_EQ(wide, everything);
      }
      me.scatter(is_root ? std::span<const std::int32_t>(wide) : std::span<const std::int32_t>(),
                 std::span(out), ranks / 2)
          .throw_if_error();
      EXPECT_EQ(out, mine);

      std::vector<std::int32_t> to_all(n), from_all(n), wanted(n);
      for (std::size_t q = 0; q < n; ++q) {
        to_all[q] = static_cast<std::int32_t>(100 * r + q);
        wanted[q] = static_cast<std::int32_t>(100 * q + r);
      }
      me.all_to_all(std::span<const std::int32_t>(to_all), std::span(from_all)).throw_if_error();
      EXPECT_EQ(from_all, wanted);
      me.all_to_all(std::span<const std::int32_t>(to_all), std::span(to_all)).throw_if_error();
      EXPECT_EQ(to_all, wanted);

      out = mine;
      me.send_recv(std::span(out), 0, ranks - 1).throw_if_error();
      EXPECT_EQ(out, me.rank() == ranks - 1 ? own(0) : mine);
      me.barrier().throw_if_error();
    });
  }
}

TEST(Teams, ManyRunsAndTeamsSideBySide) {
  std::vector<std::unique_ptr<Team>> teams;
  for (const int ranks : {2, 3, 4}) {
    auto team = Team::create({.ranks = ranks}).value();
    teams.push_back(std::move(team));
  }
  for (int run = 0; run < 30; ++run) {
    for (const auto& team : teams) {
      const Status status = team->run([&](Member& me) {
        std::vector<std::uint64_t> data(static_cast<std::size_t>(run), 1);
        me.all_reduce(std::span(data)).throw_if_error();
        for (const std::uint64_t x : data) EXPECT_EQ(x, static_cast<std::uint64_t>(team->ranks()));
      });
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }
}

// run() and the destructor wait for the same ranks on two threads; either may wake first.
TEST(Teams, ThatAreDestroyedLetTheirRunsComeBack) {
  for (int i = 0; i < 30; ++i) {
    auto team = Team::create({.ranks = 2, .timeout = std::chrono::minutes(2)}).value();
    std::latch inside(2);
    std::thread runs([&, all = team.get()] {
      const Status status = all->run([&](Member& me) {
        inside.count_down();
        std::vector<float> data(30'000, 1.0F);  // so that both threads wait at the end
        me.all_reduce(std::span(data)).throw_if_error();
      });
      EXPECT_TRUE(status.ok()) << status.text();
    });
    inside.wait();
    team.reset();
    runs.join();
  }
}

// Environment variables force a choice or are an error.

TEST(Environment, ForcedAlgorithmsMayBeTypedAsPeopleTypeThem) {
  struct Forced {
    std::string_view text, all_reduce, all_gather, broadcast;
  };
  for (const auto& [text, all_reduce, all_gather, broadcast] :
       {Forced{"all_reduce:ring;broadcast:chain", "ring", "", "chain"},
        Forced{"all-reduce:Recursive-Doubling", "recursive_doubling", "", ""},
        Forced{"AllReduce:Tree", "double_tree", "", ""},
        // A name without a collective applies to each collective that has the algorithm. A name
        // with its collective takes precedence.
        Forced{"nvls", "switch", "switch", "switch"}, Forced{"Ring", "ring", "ring", ""},
        Forced{"all_reduce:chain;Ring", "chain", "ring", ""},
        Forced{"Ring;all_reduce:chain", "chain", "ring", ""}}) {
    const auto forced = parse_forced_algorithms(text).value();
    const auto name = [&](Collective collective) {
      const Algorithm* entry = forced[static_cast<std::size_t>(collective)];
      return entry == nullptr ? std::string_view() : entry->name;
    };
    EXPECT_EQ(name(Collective::all_reduce), all_reduce) << text;
    EXPECT_EQ(name(Collective::all_gather), all_gather) << text;
    EXPECT_EQ(name(Collective::broadcast), broadcast) << text;
  }
}

TEST(Environment, AMisspeltNameIsAnError) {
  for (const char* name : {"RANKINE_ALGOS", "RANKINE_ALG", "RANKINE_AGLO", "RANKINE_NETWROK",
                           "RANKINE_ISE", "RANKINE_TRANSPRT", "RANKINE_FLIGHTRECORDS",
                           "RANKINE_TUNINGS_", "RANKINE_WAITER", "RANKINE_MPI_NODE"}) {
    const ScopedEnv variable(name, "/");
    const auto communicator = Communicator::create({.ranks = 2});
    ASSERT_FALSE(communicator.ok()) << name;
    EXPECT_EQ(communicator.status().code(), Code::invalid_argument);
  }
  const ScopedEnv variable("RANKINE_ALGOS", "ring");
  expect_refused(Communicator::create({.ranks = 2}).status(),
                 {"environment variable RANKINE_ALGOS is unknown; did you mean RANKINE_ALGO?",
                  "RANKINE_FLIGHT_RECORD, RANKINE_FLIGHT_TIMES, RANKINE_ISA, RANKINE_MPI"});
}

TEST(Environment, OtherNamesAreOneWarningForTheProcess) {
  const CapturedWarnings warnings;
  const ScopedEnv port("RANKINE_PORT", "tcp://10.0.0.1:80");
  const std::string long_name = "RANKINE_" + std::string(10000, 'X');
  const ScopedEnv long_one(long_name.c_str(), "1");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Communicator::create({.ranks = 2}).ok());
  const ScopedEnv later("RANKINE_LATER", "1");
  EXPECT_TRUE(Communicator::create({.ranks = 2}).ok());
  ASSERT_EQ(warnings.lines.size(), 1U);
  EXPECT_NE(warnings.lines[0].second.find("RANKINE_PORT"), std::string::npos);
}

TEST(Environment, VariablesOfInstallationsOfTheBuildAndOfTestsAreNoWarnings) {
  const CapturedWarnings warnings;
  for (const char* name :
       {"RANKINE_ROOT", "RANKINE_DIR", "RANKINE_HOME", "RANKINE_PREFIX", "RANKINE_VERSION",
        "RANKINE_LIBRARY_PATH", "RANKINE_INC", "RANKINE_INCLUDE_DIR", "RANKINE_LIB", "RANKINE_BIN",
        "RANKINE_MAN", "RANKINE_BASE", "RANKINE_PKG_CONFIG_PATH", "RANKINE_WITH_RIVALS",
        "RANKINE_TEST_SEED", "RANKINE_MPI_RANKS"}) {
    const ScopedEnv variable(name, "7");
    EXPECT_TRUE(Communicator::create({.ranks = 2}).ok()) << name;
  }
  EXPECT_TRUE(warnings.lines.empty());
}

TEST(Environment, ErrorsNameTheVariableTheValueAndWhatIsAllowed) {
  struct Wrong {
    const char *variable, *value, *words;
  };
  for (const auto& [variable, value, words] :
       {Wrong{"RANKINE_ALGO", "all_reduce", "'all_reduce'"},
        Wrong{"RANKINE_ALGO", "all_redcue:ring", "'all_redcue'; allowed are broadcast"},
        Wrong{"RANKINE_ALGO", "all_reduce:rnig", "'rnig'; all_reduce has ring"},
        Wrong{"RANKINE_ALGO", "all_reduce:ring;allreduce:chain",
              "all_reduce is forced to ring and chain; allowed is one algorithm per collective"},
        Wrong{"RANKINE_WAIT", "sleep", "'sleep'; allowed are auto, spin, yield, park"},
        Wrong{"RANKINE_TRANSPORT", "tcp", "'tcp'; allowed are auto, direct, mailbox, board"},
        Wrong{"RANKINE_TRIALS", "2", "'2'; allowed are 0, 1"},
        Wrong{"RANKINE_NETWORK", "nowhere", "nowhere"}}) {
    const ScopedEnv wrong(variable, value);
    expect_refused(Communicator::create({.ranks = 2}).status(), {variable, words});
  }
}

TEST(Environment, ACapOnTheKernelsThatCannotBeHadIsAnError) {
  std::string allowed;
  for (int i = 0; i < kIsas; ++i) {
    const std::string name(name_of(static_cast<Isa>(i)));
    const ScopedEnv variable("RANKINE_ISA", name.c_str());
    const auto communicator = Communicator::create({.ranks = 2});
    if (static_cast<Isa>(i) <= hardware_isa()) {
      EXPECT_TRUE(communicator.ok()) << communicator.status().text();
      allowed += (i == 0 ? "" : ", ") + name;
    } else {
      EXPECT_EQ(communicator.status().text(),
                "environment variable RANKINE_ISA is '" + name +
                    "', which this machine does not have; allowed here are " + allowed);
    }
  }
  for (const char* value : {"", "AVX2", "avx"}) {
    const ScopedEnv variable("RANKINE_ISA", value);
    EXPECT_EQ(Communicator::create({.ranks = 2}).status().text(),
              "environment variable RANKINE_ISA is '" + std::string(value) +
                  "'; allowed here are " + allowed);
  }
}

TEST(Environment, TheProcesssIdStandsWhereverAskedForInTheRecordsName) {
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", "%p/record.%p.json%");
  const std::string id = std::to_string(getpid());
  EXPECT_EQ(read_environment()->flight_record, id + "/record." + id + ".json%");
}

TEST(Environment, TheForcedAlgorithmRunsWhereTheCallNamesNone) {
  const ScopedEnv algorithm("RANKINE_ALGO", "all_reduce:ring");
  const ScopedEnv transport("RANKINE_TRANSPORT", "mailbox");
  expect_team_succeeds({.ranks = 3}, [](Member& me) {
    std::vector<float> x(10, 1.0F);
    const Call call{.in = x.data(), .out = x.data(), .count = 10};
    EXPECT_EQ(*me.plan_of(call), "ring, mailbox transport");
    Call named = call;
    named.options.algorithm = "direct_two_shot";
    named.options.transport = Transport::direct;
    EXPECT_EQ(*me.plan_of(named), "direct_two_shot, direct transport");
    me.call(call).throw_if_error();
    EXPECT_EQ(x, std::vector<float>(10, 3.0F));
  });
}

TEST(Environment, AForcedAlgorithmThatCannotRunFailsTheCall) {
  const ScopedEnv algorithm("RANKINE_ALGO", "all_reduce:ring_2d");
  expect_team_succeeds({.ranks = 3}, [](Member& me) {
    std::vector<float> x(10, 1.0F);
    const Status refused =
        me.call({.in = x.data(), .out = x.data(), .count = 10, .options = {.group = 2}});
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(x, std::vector<float>(10, 1.0F));
  });
}

}  // namespace
}  // namespace rankine
