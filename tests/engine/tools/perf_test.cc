// Measuring for real: small teams, short times, every result checked.
#include "engine/tools/perf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/statistics.h"
#include "engine/tools/latency_probe.h"
#include "engine/tools/meeting.h"
#include "engine/tools/metrics.h"
#include "engine/tools/perf_report.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/numa/scoped_env.h"

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

// What is measured is this machine, whatever the environment puts programs on.
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
  const Captured captured =
      run_captured(perf_command("all_reduce", {"-t", "3", "-b", "8", "-e", "8K", "-f", "32", "--ports",
                                               "1", "--json", "-"}));
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

// Also where the plan says more between the algorithm and its transport.
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

// As below, the first row is too late; nothing takes the place of what was there.
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
    EXPECT_EQ(before > 0, after > 0);  // zero where two ranks do not have two CPUs
    const json& devices = report.at("config").at("devices");
    const bool two_cpus = devices[0].at("device") != devices[1].at("device");
    EXPECT_EQ(before > 0, two_cpus && report.at("config").at("not_enforced").empty());
    EXPECT_EQ(row.at("steady"), LatencyBracket({before, after, 0}).steady());
    EXPECT_LE(row.at("repeats"), kRepeats);
  }
}

TEST(LatencyProbe, DriftIsTheGreatestChange) {
  EXPECT_EQ(drift({}), 1);
  EXPECT_EQ(drift({0, 0}), 1);  // nothing was probed
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

// Three ranks wait while the vector is handed from rank to rank: far longer than a millisecond. On
// a busy machine making the plan takes that long, too.
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

TEST(Meeting, TheLastActsBeforeAnybodyGoesOn) {
  constexpr int kRanks = 4, kTurns = 200;
  Meeting meeting(kRanks, 4);
  int value = 0;  // written by one, read by all, guarded by the meeting
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&] {
      for (int turn = 1; turn <= kTurns; ++turn) {
        if (!meeting.arrive([&] { value = turn; }) || value != turn) ++bad;
        if (!meeting.arrive()) ++bad;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
}

TEST(Meeting, StopsThoseWhoWait) {
  Meeting meeting(2, 4);
  std::atomic<bool> went_on{true};
  std::thread waiting([&] { went_on = meeting.arrive(); });
  meeting.stop();
  waiting.join();
  EXPECT_FALSE(went_on);
}

}  // namespace
}  // namespace rankine::tools
