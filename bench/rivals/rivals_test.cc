// Tests the parts of rivals that run in threads: all in-process rivals, the result
// check, coprocesses, rows and limits.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/right_everywhere.h"
#include "bench/rivals/rival.h"

#if defined(__SANITIZE_THREAD__)
#define RIVALS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RIVALS_TSAN 1
#endif
#endif

namespace rankine::rivals {
namespace {

using Make = std::unique_ptr<Rival> (*)(const Setup&);

const Make kAll[] = {
    make_expert_one_shot, make_expert_ll,     make_expert_pull,
    make_expert_push,     make_expert_stream, make_std_barrier,
    make_inference_shm,   make_vllm_shm,      make_rankine,
#if !defined(RIVALS_TSAN)
    make_openmp,  // its runtime is not instrumented
#endif
};

// Everything that a contender in this process needs.
struct Driver {
  explicit Driver(int ranks)
      : setup(make_setup(ranks, kMaxFloats * sizeof(float), false)),
        team(make_team(ranks, setup.cpus)),
        stage(std::make_unique<InProcess::Stage>(*team, setup)) {}
  Setup setup;
  std::unique_ptr<Team> team;
  std::unique_ptr<InProcess::Stage> stage;
};

class InProcessTest : public testing::TestWithParam<int> {};

TEST_P(InProcessTest, EveryRivalIsRightAtEverySize) {
  Driver driver(GetParam());
  for (const Make make : kAll) {
    InProcess contender(make(driver.setup), *driver.stage);
    if (contender.missing.empty()) expect_right_all_reduces(contender);
  }
}

TEST_P(InProcessTest, EveryRivalIsRightInEveryCollectiveItTakes) {
  Driver driver(GetParam());
  int taken = 0;
  for (const Make make : kAll) {
    InProcess contender(make(driver.setup), *driver.stage);
    if (contender.missing.empty()) taken += expect_right_other_collectives(contender);
  }
  // One-shot takes all but the largest, pull all, push all but reduce-scatter, stream the largest,
  // the servers' designs all-gather, and Rankine all.
  EXPECT_EQ(taken, 5 * 6 + 5 * 7 + 4 * 7 + 5 * 1 + 2 * 7 + 5 * 7);
}

INSTANTIATE_TEST_SUITE_P(Ranks, InProcessTest, testing::Values(1, 2, 3, 4));

// A correct rival with one fault.
struct Liar final : Rival {
  enum class Lie { one_element, old_result };
  Liar(Lie its_lie, const Setup& setup)
      : Rival("liar", Family::kOther), lie(its_lie), honest(make_expert_push(setup)), calls(2) {}
  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
    const int call = calls[static_cast<std::size_t>(rank)]++;
    if (lie == Lie::one_element || call == 0) honest->call(collective, rank, in, out, count);
    if (lie == Lie::one_element && rank == 1) out[count / 2] += 1;
  }
  const Lie lie;
  std::unique_ptr<Rival> honest;
  std::vector<int> calls;
};

TEST(Check, FindsOneWrongElement) {
  Driver driver(2);
  InProcess liar(std::make_unique<Liar>(Liar::Lie::one_element, driver.setup), *driver.stage);
  Batch batch;
  batch.bytes = 4000;
  EXPECT_EQ(liar.run(batch).wrong, 1u);
}

TEST(Check, FindsAResultOfThePreviousCall) {
  Driver driver(2);
  InProcess liar(std::make_unique<Liar>(Liar::Lie::old_result, driver.setup), *driver.stage);
  Batch batch;
  batch.bytes = 4000;
  batch.protocol = Protocol::fresh;
  batch.calls = 2;
  EXPECT_GT(liar.run(batch).wrong, 1500u);  // of 2000; some sums are equal by chance
}

TEST(Check, KnowsEveryCollective) {
  const int ranks = 3;
  const Kernels& k = kernels();
  for (int c = 0; c < kCollectives; ++c) {
    Batch batch;
    batch.collective = static_cast<Collective>(c);
    batch.bytes = 3 * 50 * sizeof(float);
    for (int rank = 0; rank < ranks; ++rank) {
      const Shape s = shape(batch, ranks, rank);
      std::vector<float> out(s.out);
      // All ranks' inputs, and from them, by definition, this rank's result.
      std::vector<std::vector<float>> ins;
      for (int r = 0; r < ranks; ++r) {
        ins.emplace_back(shape(batch, ranks, r).in);
        k.fill(ins.back().data(), ins.back().size(), r, 0, 5);
      }
      const auto own = static_cast<std::size_t>(rank);
      for (std::size_t i = 0; i < s.out; ++i) {
        const std::size_t from = i / s.block;
        const std::size_t at = i % s.block;
        switch (batch.collective) {
          case Collective::all_reduce:
          case Collective::reduce:
            out[i] = ins[0][i] + ins[1][i] + ins[2][i];
            break;
          case Collective::broadcast:
            out[i] = ins[0][i];
            break;
          case Collective::all_gather:
            out[i] = ins[from][at];
            break;
          case Collective::all_to_all:
            out[i] = ins[from][own * s.block + at];
            break;
          case Collective::reduce_scatter: {
            const std::size_t j = own * s.block + i;
            out[i] = ins[0][j] + ins[1][j] + ins[2][j];
            break;
          }
        }
      }
      EXPECT_EQ(count_wrong(batch, ranks, rank, out.data(), 5), 0u) << name_of(batch.collective);
      if (out.empty()) continue;
      out.back() += 1;
      EXPECT_EQ(count_wrong(batch, ranks, rank, out.data(), 5), 1u) << name_of(batch.collective);
    }
  }
}

TEST(Coprocess, AnswersAndEnds) {
  Coprocess cat({"cat"});
  ASSERT_TRUE(cat.send("one\ntwo"));
  EXPECT_EQ(cat.receive(10), "one");
  EXPECT_EQ(cat.receive(10), "two");
  EXPECT_EQ(cat.receive(0.02), std::nullopt);
  EXPECT_EQ(cat.stop(), 0);
  EXPECT_EQ(cat.stop(), 0);
}

TEST(Coprocess, TellsWhyItEnded) {
  Coprocess child({"sh", "-c", "echo not installed >&2; echo ----- >&2; exit 3"});
  EXPECT_EQ(child.receive(10), std::nullopt);
  EXPECT_EQ(child.stop(), 3);
  EXPECT_EQ(child.last_words(), "not installed");
  Coprocess nothing({"/no/such/program"});
  EXPECT_EQ(nothing.receive(10), std::nullopt);
  EXPECT_EQ(nothing.stop(), 127);
}

bool alive(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string ignored;
  std::string name;
  std::string state;
  return stat >> ignored >> name >> state && state != "Z";
}

// Mutations: another exit status of the script; a remedy of another row; a row without a name.
TEST(MpiContender, TellsWhichScriptInstallsIt) {
  const std::string script = find_start_mpi();
  const std::vector<std::string> names = mpi_names(script);
  for (const char* name : {"openmpi_ucx", "mpich", "mpich5", "intel_mpi", "oneccl"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  ASSERT_EQ(setenv("RIVALS_HOME", "/nonexistent", 1), 0);
  for (const char* name : {"openmpi5_sm", "oneccl"}) {
    rivals::Setup setup;
    setup.ranks = 2;
    MpiContender contender(name, script, setup);
    contender.await();
    EXPECT_EQ(contender.missing, "not installed: third_party/rivals") << name;
  }
  unsetenv("RIVALS_HOME");
}

TEST(Coprocess, NeverLingersNorDoItsChildren) {
  const char* const script = "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 0.1; done";
  Coprocess stubborn({"sh", "-c", script}, 0.1);
  const auto grandchild = stubborn.receive(10);
  ASSERT_TRUE(grandchild.has_value());
  EXPECT_TRUE(alive(*grandchild));
  EXPECT_EQ(stubborn.stop(), 128 + SIGKILL);
  for (int i = 0; i < 1000 && alive(*grandchild); ++i) usleep(1000);
  EXPECT_FALSE(alive(*grandchild));
}

// Returns given times, so that rows can be checked.
struct Scripted final : Contender {
  Scripted(std::string its_name, Family its_family, double its_us)
      : Contender(std::move(its_name), its_family), us(its_us) {}
  bool takes(Collective, std::size_t bytes) const override { return bytes > 4; }
  Measured run(const Batch& batch) override {
    EXPECT_TRUE(missing.empty());
    if (breaks && ++runs > 2) missing = "broken";
    calls = batch.calls;
    return {us, us, 0};
  }
  double us;
  int calls = 0;
  int runs = 0;
  bool breaks = false;
};

TEST(Row, ComparesTheBestOfFamilies) {
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(std::make_unique<Scripted>("a", Family::kExpert, 2));
  all.push_back(std::make_unique<Scripted>("b", Family::kExpert, 1));
  all.push_back(std::make_unique<Scripted>("c", Family::kMpi, 4));
  auto broken = std::make_unique<Scripted>("d", Family::kMpi, 0.1);
  broken->breaks = true;
  all.push_back(std::move(broken));
  const auto team = make_team(1, allowed_cpus());
  Plan plan;
  plan.rounds = 5;
  LimitProbe limits(*team, 1);
  const Row row = measure_row(all, plan, 8, Protocol::warm, *team, limits);
  EXPECT_TRUE(row.steady());  // one rank has no peer for a ping-pong
  EXPECT_EQ(row.cells[0].us, std::vector<double>(5, 2.0));
  EXPECT_EQ(row.best(Family::kExpert, all), 1u);
  EXPECT_EQ(row.best(Family::kMpi, all), 2u);  // a partial row is invalid
  EXPECT_EQ(row.best(kExpert + kMpi, all), 1u);
  EXPECT_EQ(row.best(Family::kRankine, all), std::nullopt);
  EXPECT_DOUBLE_EQ(row.ratio(1, 2), 0.25);
  EXPECT_EQ(static_cast<Scripted&>(*all[0]).calls, 1000);  // 2 ms of 2 us

  ASSERT_EQ(row.limits.size(), 5u);
  for (const Limit& limit : row.limits) EXPECT_GT(limit.us, 0);
  EXPECT_GE(row.limit_ratio(0), 2 * row.limit_ratio(1) * (1 - 1e-9));

  const Row too_small = measure_row(all, plan, 4, Protocol::warm, *team, limits);
  EXPECT_TRUE(too_small.cells[0].us.empty());
}

TEST(Row, EveryRoundsLimitHasTheLatencyProbedBeforeIt) {
  Driver driver(2);
  std::vector<std::unique_ptr<Contender>> one;
  one.push_back(std::make_unique<Scripted>("a", Family::kExpert, 2));
  LimitProbe limits(*driver.team, driver.setup.cpus.size());
  Plan plan;
  plan.rounds = 3;
  const Row row = measure_row(one, plan, 8, Protocol::fresh, *driver.team, limits);
  ASSERT_EQ(row.limits.size(), 3u);
  ASSERT_EQ(row.ping_pong_ns.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(row.limits[i].latency_us, row.ping_pong_ns[i] / 1000);
    EXPECT_GT(row.limits[i].us, row.limits[i].latency_us);  // the stamps and more
  }
}

TEST(Row, SeesThatTheMachineHasChanged) {
  Row row;
  row.ping_pong_ns = {20, 22, 29};
  EXPECT_TRUE(row.steady());
  row.ping_pong_ns = {20, 200, 20};  // changes and changes back
  EXPECT_FALSE(row.steady());
}

Batch batch_of(Collective collective, Protocol protocol, std::size_t bytes) {
  Batch batch;
  batch.collective = collective;
  batch.protocol = protocol;
  batch.bytes = bytes;
  return batch;
}

// Rates that make every term of the formula visible: powers of ten that do not mix.
Rates rates_of(const Batch& batch, int ranks) {
  Rates rates;
  rates.latency_us = 1;
  rates.cross_us_per_byte = 10;
  rates.read_us_per_byte = 0.5;
  rates.stamps_us = 0.25;
  rates.motion_us.assign(ways(batch, ranks).size(), 0.125);
  return rates;
}

TEST(Limits, OfAnAllReduceAmongTwo) {
  const Batch warm = batch_of(Collective::all_reduce, Protocol::warm, 1024);
  Rates rates = rates_of(warm, 2);
  EXPECT_DOUBLE_EQ(limit_of(warm, 2, 1, rates).us, 1);  // the latency
  rates.motion_us = {30, 40};                           // two-shot, one-shot
  EXPECT_DOUBLE_EQ(limit_of(warm, 2, 1, rates).us, 30);
  EXPECT_DOUBLE_EQ(limit_of(warm, 2, 3, rates).us, 90);  // three ranks on each core
  EXPECT_STREQ(limit_of(warm, 2, 1, rates).way, "two-shot");

  // Two-shot: half of the input crosses, and half of the result is read from the other core.
  const Batch fresh = batch_of(Collective::all_reduce, Protocol::fresh, 1024);
  rates = rates_of(fresh, 2);
  const double two_shot = 1 + 512 * 10 + 1024 * (0.5 * 10 + 0.5 * 0.5) + 0.25;
  const double one_shot = 1 + 1024 * 10 + 1024 * 0.5 + 0.25;
  EXPECT_DOUBLE_EQ(limit_of(fresh, 2, 1, rates).us, std::min(two_shot, one_shot));
  rates.motion_us = {1e6, 0};
  EXPECT_DOUBLE_EQ(limit_of(fresh, 2, 1, rates).us, one_shot);
  rates.motion_us = {1e6, 1e6};  // the motion hides the crossing, not the reading
  EXPECT_DOUBLE_EQ(limit_of(fresh, 2, 1, rates).us, 1 + 1e6 + 1024 * 0.5 + 0.25);
  // Too large for one-shot.
  EXPECT_EQ(ways(batch_of(Collective::all_reduce, Protocol::fresh, 2 * kOneShotLimit), 2).size(),
            1u);
}

TEST(Limits, BytesComeThroughMemoryWhereThatIsQuicker) {
  const Batch fresh = batch_of(Collective::all_reduce, Protocol::fresh, 1024);
  Rates rates = rates_of(fresh, 2);
  rates.motion_us = {0, 1e6};  // two-shot
  EXPECT_STREQ(limit_of(fresh, 2, 1, rates).path, "cache");
  rates.stream_us_per_byte = 3;  // hides the reading of 2
  rates.memory_us_per_byte = 2;
  EXPECT_DOUBLE_EQ(limit_of(fresh, 2, 1, rates).us,
                   1 + 512 * 3 + 1024 * (0.5 * 2 + 0.5 * 0.5) + 0.25);
  EXPECT_STREQ(limit_of(fresh, 2, 1, rates).path, "memory");
  rates.memory_us_per_byte = 4;
  EXPECT_DOUBLE_EQ(limit_of(fresh, 2, 1, rates).us,
                   1 + 512 * 4 + 1024 * (0.5 * 4 + 0.5 * 0.5) + 0.25);
  rates.stream_us_per_byte = 11;  // slower than the caches' 10
  EXPECT_STREQ(limit_of(fresh, 2, 1, rates).path, "cache");
  EXPECT_DOUBLE_EQ(limit_of(fresh, 2, 1, rates).crossing_us, 512 * 10);
}

TEST(Limits, OfTheOthersAmongFour) {
  const std::size_t m = 4096;
  const auto us = [&](Collective collective) {
    const Batch batch = batch_of(collective, Protocol::fresh, m);
    return limit_of(batch, 4, 1, rates_of(batch, 4)).us - 1.25;
  };
  const auto bytes = static_cast<double>(m);
  const double read = 0.5, cross = 10, mixed = 0.75 * cross + 0.25 * read;
  // Pull: the crossing bytes, and the result read from the own cache. Push: nothing crosses before
  // the result is read.
  EXPECT_DOUBLE_EQ(us(Collective::broadcast),
                   std::min(bytes * (cross + read), bytes / 4 * cross + bytes * mixed));
  EXPECT_DOUBLE_EQ(us(Collective::all_gather),
                   std::min(0.75 * bytes * cross + bytes * read, 0.125 + bytes * mixed));
  EXPECT_DOUBLE_EQ(us(Collective::reduce_scatter), 0.75 * bytes * cross + bytes / 4 * read);
  EXPECT_DOUBLE_EQ(us(Collective::all_to_all),
                   std::min(0.75 * bytes * cross + bytes * read, 0.125 + bytes * mixed));
  EXPECT_DOUBLE_EQ(us(Collective::reduce), 0.75 * bytes * cross + bytes * mixed);
}

TEST(Limits, NobodyWaitsForNewsThatGoOneWay) {
  const Batch batch = batch_of(Collective::broadcast, Protocol::warm, 8);
  Rates rates = rates_of(batch, 2);
  rates.cross_us_per_byte = 0.001;
  rates.motion_us.assign(2, 0.01);
  EXPECT_DOUBLE_EQ(limit_of(batch, 2, 1, rates).us, 0.064);
  rates.motion_us.assign(2, 5);
  EXPECT_DOUBLE_EQ(limit_of(batch, 2, 1, rates).us, 5);
}

TEST(Limits, AloneNothingCrosses) {
  for (int c = 0; c < kCollectives; ++c) {
    for (const Way& way : ways(batch_of(static_cast<Collective>(c), Protocol::fresh, 4096), 1)) {
      EXPECT_EQ(way.crossing, 0u) << way.name;
      EXPECT_EQ(way.remote, 0) << way.name;
      EXPECT_GT(way.outs, 0) << way.name;
    }
  }
}

TEST(Limits, AreMeasuredForEveryCollective) {
  for (const int ranks : {1, 2, 3}) {  // three: more than cores on the smallest machines
    Driver driver(ranks);
    LimitProbe probe(*driver.team, driver.setup.cpus.size());
    for (int c = 0; c < kCollectives; ++c) {
      // The larger size only once: it measures streaming stores, too, and takes longer.
      for (const std::size_t bytes : {std::size_t{16}, std::size_t{2} << 20}) {
        if (bytes > 16 && c > 0) continue;
        const Batch batch = batch_of(static_cast<Collective>(c), Protocol::fresh, bytes);
        const Rates rates = probe.measure(batch);
        ASSERT_EQ(rates.motion_us.size(), ways(batch, ranks).size());
        for (const double us : rates.motion_us) EXPECT_GT(us, 0);
        EXPECT_GT(rates.cross_us_per_byte, 0);
        EXPECT_GT(rates.read_us_per_byte, 0);
        for (const double us : {rates.stream_us_per_byte, rates.memory_us_per_byte}) {
          EXPECT_GT(us, 0);
          EXPECT_LT(us, 1e6);
        }
        const Limit limit = limit_of(batch, ranks, probe.share(), rates);
        EXPECT_GE(limit.us, limit.motion_us);
        EXPECT_GE(limit.us, limit.crossing_us + limit.reading_us);
      }
    }
  }
}

TEST(Limits, LevelsHaveRates) {
  Driver driver(2);
  const LevelRates level =
      LimitProbe(*driver.team, driver.setup.cpus.size()).measure_level("L2", std::size_t{1} << 20);
  EXPECT_EQ(level.bytes, std::size_t{1} << 19);
  for (const double rate : {level.copy, level.add, level.read, level.cross_read}) {
    EXPECT_GT(rate, 0);
  }
}

TEST(FutexChain, SumsWhereRanksShareCores) {
  for (const int ranks : {2, 3, 5}) {
    Driver driver(ranks);
    EXPECT_EQ(make_futex_chain(driver.setup)->takes(Collective::all_reduce, 8),
              driver.setup.crowded);
    driver.setup.crowded = true;
    InProcess chain(make_futex_chain(driver.setup), *driver.stage);
    EXPECT_FALSE(chain.takes(Collective::all_reduce, 8192));
    EXPECT_FALSE(chain.takes(Collective::broadcast, 8));
    std::uint32_t seed = 0;
    for (const std::size_t bytes : {8, 4096}) {
      for (const Protocol protocol : {Protocol::warm, Protocol::fresh}) {
        Batch batch = batch_of(Collective::all_reduce, protocol, bytes);
        batch.calls = 20;
        batch.seed = seed += 30;
        EXPECT_EQ(chain.run(batch).wrong, 0u) << ranks << " ranks, " << bytes << " B";
      }
    }
  }
}

TEST(FlagExchange, EndsACallWhenAllHaveBegunIt) {
  constexpr int kCalls = 100;
  for (const int ranks : {2, 3}) {
    rivals::Setup setup{ranks, 4096, false, allowed_cpus(), false};
    const auto exchange = make_flag_exchange(setup);
    EXPECT_TRUE(exchange->takes(Collective::all_reduce, 1024));
    EXPECT_FALSE(exchange->takes(Collective::all_reduce, 1028));
    EXPECT_FALSE(exchange->takes(Collective::broadcast, 8));
    setup.crowded = true;
    EXPECT_FALSE(make_flag_exchange(setup)->takes(Collective::all_reduce, 8));
    // Relaxed, so that only the exchange itself can order a rank's reads after others' earlier
    // writes.
    std::vector<std::atomic<int>> begun(static_cast<std::size_t>(ranks));
    std::atomic<int> early{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        for (int call = 1; call <= kCalls; ++call) {
          begun[static_cast<std::size_t>(rank)].store(call, std::memory_order_relaxed);
          exchange->call(Collective::all_reduce, rank, nullptr, nullptr, 0);
          for (const auto& other : begun) early += other.load(std::memory_order_relaxed) < call;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(early.load(), 0);
  }
}

// It sums nothing, so its result is neither wrong nor compared with contenders that sum.
TEST(FlagExchange, HasNoResult) {
  Driver driver(2);
  InProcess exchange(make_flag_exchange(driver.setup), *driver.stage);
  EXPECT_EQ(exchange.family, Family::kExchange);
  Batch batch = batch_of(Collective::all_reduce, Protocol::fresh, 64);
  const Measured measured = exchange.run(batch);
  EXPECT_EQ(measured.wrong, 0u);
  EXPECT_GT(measured.us, 0);
}

}  // namespace
}  // namespace rankine::rivals
