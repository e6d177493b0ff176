// Tests of perf: measurements, reads of results, test data, and modelled networks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/statistics.h"
#include "engine/cli/perf.h"
#include "engine/cli/probe.h"
#include "engine/cli/question.h"
#include "engine/cli/workbench.h"
#include "engine/run/kernels/reduce.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"

// Measurements by perf: small teams, short times, every result checked.

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> perf_command(const std::string& collective,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"perf", collective, "-n", "2", "-m", "3", "-w", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// perf measures this machine, and refuses an environment that puts programs on a network.
TEST(Perf, IsNotPutOnANetwork) {
  const ScopedEnv variable("RANKINE_NETWORK", "scale_out");
  for (const auto& arguments : {perf_command("all_reduce", {"-t", "2", "-b", "8", "-e", "8"}),
                                std::vector<std::string>{"run", "all_reduce", "--algo", "ring",
                                                         "--ranks", "2", "--clock", "none"}}) {
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 2);
    EXPECT_THAT(run.err, HasSubstr("environment variable RANKINE_NETWORK is 'scale_out'"));
  }
}

TEST(Perf, PortsAreABudgetAndTold) {
  const Captured captured = run_captured(perf_command(
      "all_reduce", {"-t", "3", "-b", "8", "-e", "8K", "-f", "32", "--ports", "1", "--json", "-"}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const json report = json::parse(captured.out);
  EXPECT_EQ(report.at("config").at("ports"), 1);
  EXPECT_EQ(report.at("most_sent"), json({1, 1, 1}));
  EXPECT_EQ(report.at("most_received"), json({1, 1, 1}));
  for (const json& row : report.at("results")) EXPECT_EQ(row.at("transport"), "mailbox");
  EXPECT_EQ(run_captured(perf_command("all_reduce", {"--ports", "2", "--transport", "direct"})).err,
            "rankine perf: --ports is 2, --transport is direct; only the mailbox transport has "
            "ports\n");
  EXPECT_EQ(
      run_captured(perf_command("all_reduce", {"--ports", "2", "--network", "scale_out"})).err,
      "rankine perf: --ports is 2, and networks have their own ports; leave out --network\n");
}

std::vector<std::vector<std::string>> data_lines(const std::string& table) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream stream(table);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  return lines;
}

TEST(Perf, HasNcclTestsColumnsAndFooter) {
  const Captured captured =
      run_captured(perf_command("all_reduce", {"-t", "2", "-b", "8", "-e", "32"}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const auto lines = data_lines(captured.out);
  ASSERT_EQ(lines.size(), 3U) << captured.out;
  for (const auto& words : lines) {
    ASSERT_EQ(words.size(), 14U);  // and the algorithm
    EXPECT_THAT(std::vector<std::string>(words.begin() + 2, words.begin() + 5),
                ElementsAre("f32", "sum", "-1"));
    EXPECT_EQ(words[8], "0");
    EXPECT_EQ(words[12], "0");
  }
  EXPECT_EQ(lines[0][0], "8");
  EXPECT_EQ(lines[0][1], "2");
  EXPECT_THAT(captured.out, AllOf(HasSubstr("# Out of bounds values : 0 OK\n"),
                                  HasSubstr("# Avg bus bandwidth    : "), HasSubstr("# placement"),
                                  HasSubstr("# waiting")));
}

TEST(Perf, ChecksEveryCollective) {
  for (const Collective collective : all_collectives()) {
    const std::string name(name_of(collective));
    if (algorithm_names(collective).empty()) continue;
    for (const char* ranks : {"1", "3"}) {
      const Captured captured =
          run_captured(perf_command(name, {"-t", ranks, "-b", "0", "-e", "8K", "-f", "1024", "-r",
                                           has_root(collective) ? "all" : "0", "-d", "f32,bf16",
                                           "-o", is_prefix(collective) ? "sum,prod" : "sum,avg"}));
      EXPECT_EQ(captured.exit, 0) << name << " among " << ranks << ": " << captured.err;
      EXPECT_FALSE(data_lines(captured.out).empty());
    }
  }
}

TEST(Perf, RunsAlgorithmsOnAllTransports) {
  for (const char* transport : {"direct", "mailbox", "board"}) {
    const Captured captured = run_captured(
        perf_command("all_reduce", {"-t", "3", "-b", "4K", "-e", "4K", "--algo",
                                    "ring,direct_one_shot", "--transport", transport, "--csv"}));
    ASSERT_EQ(captured.exit, 0) << captured.err;
    std::istringstream stream(captured.out);
    std::string header, line;
    std::getline(stream, header);
    EXPECT_THAT(header, HasSubstr("collective,ranks,size,count"));
    int lines = 0;
    for (; std::getline(stream, line); ++lines) {
      EXPECT_THAT(line, AllOf(HasSubstr("all_reduce,3,4096,1024,f32,sum,-1,"),
                              HasSubstr(std::string(",") + transport + ",")));
      EXPECT_THAT(line, HasSubstr(lines < 2 ? ",ring," : ",direct_one_shot,"));
      EXPECT_EQ(std::count(line.begin(), line.end(), ','),
                std::count(header.begin(), header.end(), ','));
    }
    EXPECT_EQ(lines, 4);
  }
}

// The transport is printed even if parameters stand between it and the algorithm.
TEST(Perf, SaysTheTransportBesideParameters) {
  const Captured captured = run_captured(
      perf_command("broadcast", {"-t", "3", "-b", "4K", "-e", "4K", "--algo", "chain", "--segments",
                                 "3", "--transport", "mailbox", "--csv"}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr(",out_of_place,chain,mailbox,3,"));
}

TEST(Perf, WritesNcclTestsJson) {
  const Captured captured = run_captured(perf_command(
      "all_gather", {"-t", "2", "-b", "64", "-e", "128", "--fresh", "--stats", "--json", "-"}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const json report = json::parse(captured.out);
  for (const char* key :
       {"version", "start_time", "args", "env", "nccl_version", "config", "results",
        "out_of_bounds", "average_bus_bandwidth", "errors", "end_time"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  for (const char* key :
       {"nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "step_factor", "warmup_iters",
        "iterations", "aggregated_iterations", "validation", "graph", "blocking_collectives",
        "per_iter_timing", "per_iter_skip", "parallel_init"}) {
    EXPECT_TRUE(report.at("config").contains(key)) << key;
  }
  ASSERT_EQ(report.at("config").at("devices").size(), 2U);
  for (const char* key :
       {"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"}) {
    EXPECT_TRUE(report.at("config").at("devices")[1].contains(key)) << key;
  }
  ASSERT_EQ(report.at("results").size(), 2U);
  const json& result = report.at("results")[0];
  EXPECT_EQ(result.at("size"), 64);
  EXPECT_EQ(result.at("count"), 8);  // per rank
  EXPECT_EQ(result.at("redop"), "none");
  EXPECT_EQ(result.at("root"), -1);
  for (const char* place : {"out_of_place", "in_place"}) {
    const json& one = result.at(place);
    EXPECT_EQ(one.at("nwrong"), 0);
    EXPECT_GT(one.at("time"), 0);
    EXPECT_NEAR(one.at("bus_bw").get<double>(), one.at("alg_bw").get<double>() / 2, 1e-9);
    EXPECT_LE(one.at("min"), one.at("median"));
    EXPECT_LE(one.at("median"), one.at("p99"));
    EXPECT_LE(one.at("p99"), one.at("max"));
    const json& times = result.at(std::string(place) + "_per_iter");
    EXPECT_EQ(times.at("times_us").size(), 2U);
    EXPECT_TRUE(times.contains("cv_pct"));
  }
  EXPECT_EQ(report.at("out_of_bounds"), json({{"count", 0}, {"okay", true}}));
}

TEST(Perf, WritesJsonToAFileBesideTheTable) {
  const auto file = std::filesystem::path(testing::TempDir()) / "perf.json";
  const Captured captured = run_captured(perf_command(
      "all_reduce", {"-t", "2", "-b", "8", "-e", "8", "-c", "0", "--json", file.string()}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  EXPECT_EQ(data_lines(captured.out).size(), 1U);
  EXPECT_THAT(captured.out, HasSubstr("N/A"));
  std::ifstream stream(file);
  const json report = json::parse(stream);
  EXPECT_TRUE(report.at("results")[0].at("in_place").at("nwrong").is_null());
  EXPECT_TRUE(report.at("complete").get<bool>());
}

// As in GivesUpAfterItsTimeout, the first row times out; the old file stays.
TEST(Perf, AFailureWithoutARowLeavesTheOldFile) {
  const auto file = std::filesystem::path(testing::TempDir()) / "failed.json";
  std::ofstream(file) << "old";
  const Captured late = run_captured(
      perf_command("all_reduce", {"-t", "4", "-b", "32M", "-e", "32M", "--algo", "chain",
                                  "--segments", "1", "--timeout", "1ms", "--json", file.string()}));
  EXPECT_EQ(late.exit, 124);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), "old");
}

TEST(Perf, ProbeBracketsEveryRow) {
  const Captured captured =
      run_captured(perf_command("all_reduce", {"-t", "2", "-b", "8", "-e", "16", "--probe"}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const auto lines = data_lines(captured.out);
  ASSERT_EQ(lines.size(), 2U) << captured.out;
  for (const auto& words : lines) EXPECT_EQ(words.size(), 14U + 3) << captured.out;

  const Captured written = run_captured(
      perf_command("all_reduce", {"-t", "2", "-b", "8", "-e", "16", "--probe", "-J", "-"}));
  ASSERT_EQ(written.exit, 0) << written.err;
  const json report = json::parse(written.out);
  for (const json& row : report.at("results")) {
    const double before = row.at("ping_pong_ns").at("before");
    const double after = row.at("ping_pong_ns").at("after");
    EXPECT_EQ(before > 0, after > 0);  // zero unless two ranks have two CPUs
    const json& devices = report.at("config").at("devices");
    const bool two_cpus = devices[0].at("device") != devices[1].at("device");
    EXPECT_EQ(before > 0, two_cpus && report.at("config").at("not_enforced").empty());
    EXPECT_EQ(row.at("steady"), LatencyBracket({before, after, 0}).steady());
    EXPECT_LE(row.at("repeats"), kRepeats);
  }
}

TEST(LatencyProbe, DriftIsTheGreatestChange) {
  EXPECT_EQ(drift({}), 1);
  EXPECT_EQ(drift({0, 0}), 1);  // without a probe
  EXPECT_DOUBLE_EQ(drift({20, 30, 25}), 1.5);
  EXPECT_TRUE(LatencyBracket({20, 30, 0}).steady());
  EXPECT_FALSE(LatencyBracket({31, 20, 0}).steady());
}

TEST(LatencyProbe, RepeatsUntilCalmAndKeepsTheCalmest) {
  const auto run = [](std::vector<double> drifts) {
    std::size_t next = 0;
    int repeats = -1;
    const double best =
        calmest([&] { return drifts.at(next++); }, [](double d) { return d; }, repeats);
    return std::pair(best, repeats);
  };
  EXPECT_EQ(run({1.2, 9}), std::pair(1.2, 0));
  EXPECT_EQ(run({3, 1.5, 9}), std::pair(1.5, 1));
  EXPECT_EQ(run({3, 2, 4, 5, 1}), std::pair(2.0, 3));  // never calm, and no fifth time
}

TEST(LatencyProbe, TwoThreadsGetOneLatencyEachTime) {
  LatencyProbe probe;
  double sides[2] = {-1, -1};
  for (int game = 0; game < 2; ++game) {
    std::thread other([&] { sides[1] = probe.play(1, 1, 20); });
    sides[0] = probe.play(0, 1, 20);
    other.join();
    EXPECT_GT(sides[0], 0);
    EXPECT_EQ(sides[1], 0);
  }
}

TEST(Perf, MeasuresBeyondTheCaches) {
  const Captured captured = run_captured(
      perf_command("all_reduce", {"-t", "2", "-b", "100", "-e", "100", "--off-cache", "-I", "1"}));
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const auto lines = data_lines(captured.out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].size(), 14U + 8);
}

TEST(Perf, EndsWithTheRightCode) {
  const std::vector<std::string> small = {"-t", "2", "-b", "8", "-e", "8"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = small;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_captured(perf_command("all_reduce", arguments));
  };
  const Captured slow = with({"--min-busbw", "1e9"});
  EXPECT_EQ(slow.exit, 1);
  EXPECT_THAT(slow.err, HasSubstr("--min-busbw asks for 1e+09"));
  const Captured nowhere = with({"--json", "/nonexistent/file"});
  EXPECT_EQ(nowhere.exit, 3);
  EXPECT_THAT(nowhere.err,
              HasSubstr("--json: '/nonexistent/file' cannot be written: No such file"));
  const Captured huge = run_captured({"perf", "all_reduce", "-e", "4000000T"});
  EXPECT_EQ(huge.exit, 3);
  EXPECT_THAT(huge.err, AllOf(HasSubstr("--maxbytes is 4000000T"), HasSubstr("available are")));
}

// Three ranks wait far longer than a millisecond while the vector passes from rank to rank. On a
// busy machine, planning takes that long too.
TEST(Perf, GivesUpAfterItsTimeout) {
  const Captured late =
      run_captured(perf_command("all_reduce", {"-t", "4", "-b", "32M", "-e", "32M", "--algo",
                                               "chain", "--segments", "1", "--timeout", "1ms"}));
  EXPECT_EQ(late.exit, 124);
  EXPECT_THAT(late.err, AllOf(HasSubstr("1 ms"),
                              AnyOf(HasSubstr("waits for rank"), HasSubstr("is still planning"))));
}

TEST(Perf, LeavesOutWhatRefusesTheRanksOnlyIfAllWereAskedFor) {
  const auto run = [](const std::string& algorithms) {
    return run_captured(perf_command(
        "all_reduce", {"-t", "3", "-b", "64", "-e", "64", "--group", "2", "--algo", algorithms}));
  };
  const Captured all = run("all");
  EXPECT_EQ(all.exit, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("# left out: all_reduce 'ring_2d'"));
  const Captured named = run("ring_2d");
  EXPECT_EQ(named.exit, 2);
  EXPECT_THAT(named.err, AllOf(HasSubstr("ring_2d"), HasSubstr("multiple of the group")));
}

TEST(PerfTotals, CountsWrongElements) {
  PerfRow row;
  row.bytes = 1000;
  row.bus_factor = 0.5;
  row.measured.out_of_place.seconds.median = 1e-6;  // 1 GB/s
  row.measured.in_place.seconds.median = 1e-6;
  row.measured.out_of_place.wrong = 3;
  row.measured.in_place.wrong = -1;  // unchecked
  PerfTotals totals;
  totals.add(row);
  EXPECT_EQ(totals.wrong, 3);
  EXPECT_DOUBLE_EQ(totals.average_busbw(), 0.5);
  std::ostringstream out;
  const PerfOptions options;
  const MachineReport machine;
  PerfRun run{.options = options, .machine = machine};
  run.totals = totals;
  PerfTable(out, options).end(run);
  EXPECT_THAT(out.str(), HasSubstr("# Out of bounds values : 3 FAILED\n"));
}

TEST(SizesOf, StepsByFactorOrBytes) {
  PerfOptions options;
  options.algorithm.collective = Collective::all_reduce;
  options.min_bytes = 8;
  options.max_bytes = 100;
  EXPECT_THAT(*sizes_of(options), ElementsAre(8, 16, 32, 64));
  options.step_bytes = 40;
  EXPECT_THAT(*sizes_of(options), ElementsAre(8, 48, 88));
  options.step_bytes.reset();
  options.min_bytes = 0;
  options.max_bytes = 16;
  EXPECT_THAT(*sizes_of(options), ElementsAre(0, 8, 16));
  options.min_bytes = std::size_t{1} << 62;
  options.max_bytes = (std::size_t{1} << 63) - 1;
  EXPECT_EQ(sizes_of(options)->size(), 1U);
}

TEST(SetEnds, KeepsTheDefaultShort) {
  PerfOptions options;
  set_ends(options, 2, 2);
  EXPECT_EQ(*options.min_bytes, 8U);
  EXPECT_EQ(*options.max_bytes, std::size_t{64} << 20);
  options.max_bytes.reset();
  set_ends(options, 64, 2);
  EXPECT_EQ(*options.max_bytes, std::size_t{2} << 20);
  PerfOptions small;
  small.max_bytes = 4;
  set_ends(small, 2, 2);
  EXPECT_EQ(*small.min_bytes, 4U);
  PerfOptions large;
  large.min_bytes = std::size_t{1} << 30;
  set_ends(large, 64, 2);
  EXPECT_EQ(*large.max_bytes, std::size_t{1} << 30);
}

TEST(Metrics, FollowNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 4), 1);
  EXPECT_EQ(count_for(Collective::all_reduce, 4, 64, 4), 16U);
  EXPECT_EQ(count_for(Collective::all_gather, 4, 64, 4), 4U);  // per rank
  EXPECT_EQ(count_for(Collective::all_to_all, 4, 64, 4), 4U);  // per pair
  EXPECT_EQ(count_for(Collective::reduce_scatter, 64, 8, 4), 1U);
  EXPECT_EQ(count_for(Collective::all_reduce, 4, 0, 4), 0U);
}

TEST(RankBarrier, TheLastActsBeforeAnybodyGoesOn) {
  constexpr int kRanks = 4, kTurns = 200;
  RankBarrier barrier(kRanks, 4);
  int value = 0;  // written by one, read by all, guarded by the meeting
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&] {
      for (int turn = 1; turn <= kTurns; ++turn) {
        if (!barrier.arrive([&] { value = turn; }) || value != turn) ++bad;
        if (!barrier.arrive()) ++bad;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
}

TEST(RankBarrier, StopsThoseWhoWait) {
  RankBarrier barrier(2, 4);
  std::atomic<bool> went_on{true};
  std::thread waiting([&] { went_on = barrier.arrive(); });
  barrier.stop();
  waiting.join();
  EXPECT_FALSE(went_on);
}

}  // namespace

// Reads every byte of a result once, at any alignment.

namespace {

std::uint64_t expected(const unsigned char* from, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof(sum)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, std::min(sizeof(word), bytes - at));
    sum += word;
  }
  return sum;
}

TEST(ReadResult, IsTheSumOfTheWords) {
  EXPECT_EQ(read_result(nullptr, 0), 0u);
  std::vector<unsigned char> data(2000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37 + 11);
  for (std::size_t offset = 0; offset < 3; ++offset) {
    for (std::size_t bytes = 0; bytes + offset <= data.size(); ++bytes) {
      ASSERT_EQ(read_result(data.data() + offset, bytes), expected(data.data() + offset, bytes))
          << offset << " " << bytes;
    }
  }
}

TEST(ReadResult, EveryWidthGivesTheSame) {
  std::vector<unsigned char> data(1500, 0xab);
  for (std::size_t bytes = 0; bytes <= data.size(); ++bytes) {
    using namespace read_result_detail;
    const std::uint64_t sum = sum_of<Words2>(data.data(), bytes);
    EXPECT_EQ(sum, read_result(data.data(), bytes));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
      EXPECT_EQ(sum, sum_avx2(data.data(), bytes));
    }
    if (__builtin_cpu_supports("avx512f")) {
      EXPECT_EQ(sum, sum_avx512(data.data(), bytes));
    }
#endif
  }
}

}  // namespace

namespace {

struct Scene {
  CollectiveSpec goal;
  Layout layout;
};

Scene make_scene(Collective collective, int ranks, std::size_t count, DataType type) {
  Scene scene;
  scene.goal = {collective, ranks, natural_blocks(collective, ranks), ranks / 2, ranks - 1};
  const std::vector<std::size_t> counts(static_cast<std::size_t>(scene.goal.blocks), count);
  scene.layout = make_layout(scene.goal, counts, size_of(type), Borders::plain);
  return scene;
}

using Bytes = std::vector<std::byte>;

Bytes input_of(const Scene& scene, const TestData& data, Rank r) {
  Bytes bytes(input_bytes(scene.layout, scene.goal, r) + 1);
  data.fill(scene.goal, scene.layout, r, bytes.data());
  return bytes;
}

// An exact check is possible because the engine's kernels give the expected period in any order and
// with any number of roundings.
TEST(TestData, IsExactInAnyOrderOfReduction) {
  std::mt19937 random(7);
  constexpr std::size_t kCount = 3 * TestData::kPeriod + 17;
  for (const int ranks : {1, 2, 3, 7, 64, 130, 300}) {
    for (int t = 0; t < kDataTypes; ++t) {
      for (int o = 0; o < kReduceOps; ++o) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        if (!supports(type, op)) continue;
        const Scene scene = make_scene(Collective::all_reduce, ranks, kCount, type);
        const TestData data(Collective::all_reduce, ranks, type, op, 5);
        std::vector<Bytes> parts;
        for (Rank r = 0; r < ranks; ++r) parts.push_back(input_of(scene, data, r));
        const ReduceKernel reduce = find_reduce(type, op);
        while (parts.size() > 1) {  // any two at a time, each time rounded
          std::shuffle(parts.begin(), parts.end(), random);
          Bytes last = std::move(parts.back());
          parts.pop_back();
          const void* sources[] = {parts.back().data(), last.data()};
          reduce(parts.back().data(), sources, 2, kCount, 0);
        }
        Bytes& result = parts.front();
        if (op == ReduceOp::avg) {
          const void* source = result.data();
          reduce(result.data(), &source, 1, kCount, ranks);
        }
        EXPECT_EQ(data.count_wrong(scene.goal, scene.layout, 0, result.data()), 0)
            << ranks << " ranks, " << name_of(type) << " " << name_of(op);
      }
    }
  }
}

TEST(TestData, SeesAMissingOrDoubledRank) {
  constexpr std::size_t kCount = 2000;
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16, DataType::i8}) {
    for (const int ranks : {2, 5, 64, 300}) {
      const Scene scene = make_scene(Collective::all_reduce, ranks, kCount, type);
      const TestData data(Collective::all_reduce, ranks, type, ReduceOp::sum, 0);
      const ReduceKernel reduce = find_reduce(type, ReduceOp::sum);
      for (const int copies : {0, 2}) {  // copies of the last rank's contribution
        Bytes sum = input_of(scene, data, 0);
        for (Rank r = 1; r < ranks; ++r) {
          const Bytes mine = input_of(scene, data, r);
          const void* sources[] = {sum.data(), mine.data()};
          for (int i = r == ranks - 1 ? copies : 1; i > 0; --i) {
            reduce(sum.data(), sources, 2, kCount, 0);
          }
        }
        EXPECT_GT(data.count_wrong(scene.goal, scene.layout, 0, sum.data()), 0)
            << ranks << " ranks, " << name_of(type) << ", " << copies << " copies";
      }
    }
  }
}

TEST(TestData, CountsEachWrongElement) {
  const Scene scene = make_scene(Collective::broadcast, 3, 1000, DataType::i32);
  const TestData data(Collective::broadcast, 3, DataType::i32, ReduceOp::sum, 0);
  Bytes bytes = input_of(scene, data, scene.goal.root);
  EXPECT_EQ(data.count_wrong(scene.goal, scene.layout, 0, bytes.data()), 0);
  bytes[0] ^= std::byte{1};
  bytes[3] ^= std::byte{1};  // the same element again
  bytes[4 * 999] ^= std::byte{0x80};
  EXPECT_EQ(data.count_wrong(scene.goal, scene.layout, 0, bytes.data()), 2);
}

TEST(TestData, SeesBlocksThatLandInAnotherPlace) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
    const Scene scene = make_scene(Collective::all_gather, 4, count, DataType::i32);
    const TestData data(Collective::all_gather, 4, DataType::i32, ReduceOp::sum, 0);
    const std::size_t block = count * sizeof(std::int32_t);
    Bytes all;
    for (Rank r = 0; r < 4; ++r) {
      const Bytes mine = input_of(scene, data, r);
      all.insert(all.end(), mine.begin(), mine.end() - 1);
    }
    ASSERT_EQ(data.count_wrong(scene.goal, scene.layout, 2, all.data()), 0);
    std::swap_ranges(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(block),
                     all.begin() + static_cast<std::ptrdiff_t>(2 * block));
    EXPECT_GE(data.count_wrong(scene.goal, scene.layout, 2, all.data()),
              static_cast<std::int64_t>(count));
  }
}

TEST(TestData, DiffersBySeed) {
  const Scene scene = make_scene(Collective::all_reduce, 2, 100, DataType::f32);
  const TestData first(Collective::all_reduce, 2, DataType::f32, ReduceOp::sum, 0);
  const TestData second(Collective::all_reduce, 2, DataType::f32, ReduceOp::sum, 1);
  EXPECT_NE(input_of(scene, first, 0), input_of(scene, second, 0));
  EXPECT_NE(input_of(scene, first, 0), input_of(scene, first, 1));
}

}  // namespace

// perf on modelled networks: real data, checked; times that equal the simulator's to the last
// digit; and reports of crossovers and peaks.

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

Captured perf(const std::string& collective, const Arguments& more) {
  Arguments arguments = {"perf", collective, "-n", "1", "-m", "1", "-w", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_captured(arguments);
}

json report_of(const std::string& collective, Arguments more) {
  more.insert(more.end(), {"--json", "-"});
  const Captured run = perf(collective, more);
  EXPECT_EQ(run.exit, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

json simulated(const std::string& collective, const json& row, const std::string& network,
               const std::string& sync) {
  Arguments arguments = {"simulate", collective, "--algo", row.at("algorithm"), "--ranks", "8"};
  if (row.at("segments") > 0) {
    arguments.insert(arguments.end(), {"--segments", std::to_string(int(row.at("segments")))});
  }
  arguments.insert(arguments.end(), {"--bytes", row.at("size").dump(), "--network", network,
                                     "--sync", sync, "--json"});
  const Captured run = run_captured(arguments);
  EXPECT_EQ(run.exit, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

void expect_simulated(const std::string& collective, const json& row, const std::string& network,
                      const std::string& sync) {
  const json model = simulated(collective, row, network, sync);
  for (const char* place : {"out_of_place", "in_place"}) {
    const json& one = row.at(place);
    EXPECT_EQ(one.at("time").get<double>(), model.at("time").get<double>() * 1e6) << row;
    EXPECT_EQ(one.at("nwrong"), 0);
    EXPECT_GT(one.at("wall").get<double>(), 0);
    EXPECT_DOUBLE_EQ(one.at("eta").get<double>(), model.at("eta").get<double>()) << row;
    EXPECT_DOUBLE_EQ(one.at("bus_bw").get<double>() * 1e9, model.at("busbw").get<double>());
  }
}

TEST(PerfOnNetworks, TimesAreTheSimulators) {
  for (const auto& [collective, algorithms, rows] :
       {std::tuple("all_reduce", "ring,double_tree,bucket", 6U),
        std::tuple("broadcast", "chain", 2U), std::tuple("all_to_all", "pairwise", 2U)}) {
    const json report = report_of(collective, {"--algo", algorithms, "-b", "100K", "-e", "100K",
                                               "--network", "scale_out,torus,sync=rounds"});
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report.at("results").size(), rows) << collective;
    for (const json& row : report.at("results")) {
      if (row.at("network") == "scale_out") {
        expect_simulated(collective, row, "scale_out", "dataflow");
      } else {
        EXPECT_EQ(row.at("network"), "torus,sync=rounds");
        expect_simulated(collective, row, "torus", "rounds");
      }
    }
  }
}

// Without a name, perf uses the cheapest algorithm on the network, with its segments.
TEST(PerfOnNetworks, TheEnginesChoiceIsTheNetworks) {
  const json report =
      report_of("broadcast", {"-b", "8", "-e", "1M", "-f", "1024", "--network", "scale_out"});
  ASSERT_EQ(report.at("results").size(), 2U);
  for (const json& row : report.at("results")) {
    expect_simulated("broadcast", row, "scale_out", "dataflow");
    const Captured choice =
        run_captured({"choose", "broadcast", "--ranks", "8", "--bytes", row.at("size").dump(),
                      "--network", "scale_out", "--json"});
    EXPECT_EQ(json::parse(choice.out).at("choice").at("algorithm"), row.at("algorithm"));
  }
  EXPECT_FALSE(report.contains("crossovers"));
}

// A ring takes no dims, but the network does.
TEST(PerfOnNetworks, DimsAreTheNetworksToo) {
  const Captured run = perf("all_reduce", {"--algo", "ring", "-b", "64K", "-e", "64K", "--dims",
                                           "2x2x2", "--network", "torus"});
  EXPECT_THAT(run.out, HasSubstr("torus 2x2x2, 200 ns per hop"));
  const json model =
      json::parse(run_captured({"simulate", "all_reduce", "--algo", "ring", "--bytes", "64K",
                                "--dims", "2x2x2", "--network", "torus", "--json"})
                      .out);
  const double us = model.at("time").get<double>() * 1e6;
  EXPECT_THAT(run.out, HasSubstr(fmt::format("  {:.2f} ", us)));
  // Neither does the cheapest algorithm, which is used without --algo.
  const json report =
      report_of("all_reduce", {"-b", "64K", "-e", "64K", "--dims", "2x2x2", "--network", "torus"});
  const json choice = json::parse(run_captured({"choose", "all_reduce", "--bytes", "64K", "--dims",
                                                "2x2x2", "--network", "torus", "--json"})
                                      .out);
  const json& row = report.at("results").at(0);
  EXPECT_EQ(row.at("algorithm"), choice.at("choice").at("algorithm"));
  EXPECT_EQ(row.at("out_of_place").at("time").get<double>(),
            choice.at("choice").at("time").get<double>() * 1e6);
  const Captured full = perf("all_reduce", {"--dims", "2x2x2", "--network", "scale_out"});
  EXPECT_EQ(full.exit, 2);
  EXPECT_THAT(full.err, HasSubstr("--dims is '2x2x2'; no algorithm named by --algo takes it"));
}

TEST(PerfOnNetworks, ChecksEveryCollectiveAndPrintsBothTimes) {
  for (const Collective collective : all_collectives()) {
    const std::string name(name_of(collective));
    if (algorithm_names(collective).empty()) continue;
    const Captured run =
        perf(name, {"-t", "3", "-b", "4K", "-e", "4K", "--algo", "all", "--network", "two_level"});
    EXPECT_EQ(run.exit, 0) << name << ": " << run.err;
    EXPECT_THAT(run.out, AllOf(HasSubstr("    eta    wall"), HasSubstr("# network   : two_level"),
                               HasSubstr("# Out of bounds values : 0 OK")));
  }
}

TEST(PerfOnNetworks, AnOptionCountsMoreThanTheEnvironment) {
  const ScopedEnv variable("RANKINE_NETWORK", "scale_up");
  const json report =
      report_of("all_reduce", {"--algo", "ring", "-b", "8", "-e", "8", "--network", "scale_out"});
  EXPECT_NEAR(report.at("results")[0].at("out_of_place").at("time").get<double>(),
              14 * (1.5 + 1 / 50e3), 1e-9);
}

TEST(PerfOnNetworks, TellsAndDrawsCrossovers) {
  const auto file = std::filesystem::path(testing::TempDir()) / "regimes.svg";
  const Arguments asked = {
      "--algo",    "ring,recursive_doubling", "-b",     "1K",         "-e", "4M", "-f", "64",
      "--network", "scale_out,plain",         "--plot", file.string()};
  const json report = report_of("all_reduce", asked);
  // 14 (alpha + M beta / 8) = 3 (alpha + M beta) at M = 8.8 alpha / beta.
  const double sizes[] = {1024, 8.8 * 75'000, 1024, 8.8 * 100'000};
  ASSERT_EQ(report.at("crossovers").size(), 4U) << report.at("crossovers");
  for (std::size_t i = 0; i < 4; ++i) {
    const json& one = report.at("crossovers")[i];
    EXPECT_EQ(one.at("network"), i < 2 ? "scale_out" : "plain");
    EXPECT_EQ(one.at("algorithm"), i % 2 == 0 ? "recursive_doubling" : "ring");
    EXPECT_NEAR(one.at("size").get<double>(), sizes[i], 1e-3);
  }
  std::ostringstream svg;
  svg << std::ifstream(file).rdbuf();
  EXPECT_EQ(xml_error(svg.str()), "");
  EXPECT_THAT(svg.str(), AllOf(HasSubstr(">all_reduce among 8 ranks on plain<"),
                               HasSubstr(">645 KiB<"), HasSubstr(">859 KiB<")));
  const Captured table = perf("all_reduce", asked);
  EXPECT_THAT(table.out, AllOf(HasSubstr("# crossovers"), HasSubstr("# plain      859 KiB  ring")));
}

TEST(PerfOnNetworks, WritesOneCsvFieldPerColumn) {
  const Captured run = perf("all_reduce", {"--algo", "ring", "-b", "8", "-e", "8", "--csv",
                                           "--network", "scale_out,sync=rounds"});
  std::istringstream lines(run.out);
  std::string header, line;
  ASSERT_TRUE(std::getline(lines, header) && std::getline(lines, line));
  EXPECT_TRUE(header.ends_with(",network,eta,wall_us")) << header;
  EXPECT_THAT(line, HasSubstr(",\"scale_out,sync=rounds\",0.0000,"));
}

TEST(PerfOnNetworks, SaysWhatIsWrong) {
  const auto error = [](const Arguments& more) {
    const Captured run = perf("all_reduce", more);
    EXPECT_EQ(run.exit, 2) << run.out;
    return run.err;
  };
  EXPECT_THAT(error({"--network", "ether"}), HasSubstr("--network is 'ether'"));
  EXPECT_THAT(error({"--network", "scale_out", "--algo", "switch"}),
              HasSubstr("all_reduce 'switch': the schedule has a many -> one"));
  EXPECT_THAT(error({"--plot", "x.svg", "-e", "64", "-N", "2"}),
              HasSubstr("--plot is 'x.svg'; one cycle is needed"));
  EXPECT_THAT(error({"--plot", "x.svg", "-b", "64", "-e", "64", "--network", "plain"}),
              HasSubstr("two of them, are needed"));
  EXPECT_THAT(error({"--plot", "x.svg", "-e", "64", "-d", "f32,f64", "--network", "plain"}),
              HasSubstr("one --datatype"));
  EXPECT_THAT(error({"--peak", "fast"}), HasSubstr("--peak is 'fast'"));
}

TEST(Peak, IsWhatAllPortsCarryInOneDirection) {
  const auto peak = [](const char* name, int ranks) {
    return peak_of(*wired_for(find_regime(name)->fabric, ranks));
  };
  EXPECT_DOUBLE_EQ(*peak("scale_out", 8), 50e9);
  EXPECT_DOUBLE_EQ(*peak("scale_out_2", 8), 100e9);
  EXPECT_DOUBLE_EQ(*peak("torus", 16), 400e9);
  EXPECT_DOUBLE_EQ(*peak("two_level", 16), 450e9);
  Fabric single = find_regime("two_level")->fabric;
  single.group = 1;
  EXPECT_DOUBLE_EQ(*peak_of(single), 50e9);
  single = {};
  EXPECT_EQ(peak_of(single), std::nullopt);  // no limit
  EXPECT_EQ(eta_text(eta_of(1, std::nullopt)), "-");
  EXPECT_EQ(eta_text(eta_of(25e9, 50e9)), "50.0%");
}

TEST(Peak, IsGivenAtFullSpeed) {
  const json report =
      report_of("all_reduce", {"-t", "2", "-b", "64K", "-e", "64K", "--peak", "50GB/s"});
  const json& one = report.at("results")[0].at("out_of_place");
  EXPECT_DOUBLE_EQ(one.at("eta").get<double>(), one.at("bus_bw").get<double>() / 50);
  EXPECT_FALSE(one.contains("wall"));
}

// On large vectors a ring moves the bytes that busbw counts; recursive doubling moves 3 M instead
// of 14/8 M.
TEST(Eta, IsACoefficientOfCost) {
  const auto eta = [](const Arguments& more) {
    Arguments arguments = {"cost", "all_reduce", "--ranks", "8", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const json cost = json::parse(run_captured(arguments).out);
    EXPECT_FALSE(cost.at("critical_path").contains("eta"));
    return cost.at("dataflow").at("eta").get<double>();
  };
  EXPECT_DOUBLE_EQ(eta({"--algo", "ring"}), 1);
  EXPECT_DOUBLE_EQ(eta({"--algo", "recursive_doubling"}), 14.0 / 8 / 3);
  EXPECT_DOUBLE_EQ(eta({"--algo", "ring", "--ports", "2"}), 0.5);
}

}  // namespace
}  // namespace rankine::tools
