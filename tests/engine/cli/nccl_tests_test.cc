// Tests of perf with the command lines and JSON of nccl-tests, and among processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/cli/perf.h"
#include "tests/engine/cli/tool_fixtures.h"

// Command lines of nccl-tests, and the members of the JSON that NVIDIA's tools/analyze_perf_json.py
// reads.

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

Captured perf(const std::vector<std::string>& more, int batches = 3) {
  std::vector<std::string> arguments = {"perf", "all_reduce", "-t", "2",  "-m",
                                        "2",    "-w",         "1",  "-n", std::to_string(batches)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_captured(arguments);
}

json report_of(const std::vector<std::string>& more, int batches = 3) {
  std::vector<std::string> arguments = more;
  arguments.insert(arguments.end(), {"-J", "-"});
  const Captured run = perf(arguments, batches);
  EXPECT_EQ(run.exit, 0) << run.err;
  return json::parse(run.out);
}

std::vector<std::string> rows_of(const std::string& table) {
  std::vector<std::string> rows;
  std::istringstream stream(table);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#') rows.push_back(line);
  }
  return rows;
}

TEST(NcclTestsFlags, WhatIsSoAnywayIsAccepted) {
  const Captured run =
      perf({"-b", "8", "-e", "32", "-f", "2", "-g", "1", "-d", "float", "-o", "sum", "-p", "1",
            "-z", "3", "-a", "3",  "-C", "0", "-G", "0", "-R", "0",     "-D", "0",   "-M", "0",
            "-I", "0", "-S", "0",  "-u", "0", "-N", "1", "-K", "0",     "-c", "1"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(rows_of(run.out).size(), 3U);
}

TEST(NcclTestsFlags, WhatIsNotSoIsExplained) {
  const auto error = [](const std::vector<std::string>& flags) {
    const Captured run = perf(flags);
    EXPECT_EQ(run.exit, 2) << run.out;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
    return run.err;
  };
  EXPECT_THAT(error({"-p", "2"}), HasSubstr("--parallel_init is '2'"));
  EXPECT_THAT(error({"-a", "4"}), HasSubstr("--average is '4'; allowed are"));
  EXPECT_THAT(error({"-I", "2"}), HasSubstr("--per_iter_timing is '2'"));
  EXPECT_THAT(error({"-u", "-1"}), HasSubstr("--unalign is '-1'"));
  EXPECT_THAT(error({"-N", "x"}), HasSubstr("--run_cycles is 'x'"));
  EXPECT_THAT(error({"-K", "1"}), HasSubstr("--per_iter_skip is 1; it leaves batches out of"));
  EXPECT_THAT(error({"-I", "1", "-K", "3"}), HasSubstr("allowed are 0 to 2, below --iters"));
}

// Pasted command lines run; one warning names the flags without effect.
TEST(NcclTestsFlags, WhatHasNoEffectIsAWarning) {
  const Captured run = perf({"-b", "8", "-e", "8", "-z", "2", "-D", "1", "-V", "16", "-M", "1",
                             "-C", "1", "-R", "2", "-G", "1"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  for (const char* part : {"--blocking 2 (", "--device_implementation 1 (there is no device",
                           "--device_cta_count 16 (", "rankine topo", "--report_cputime 1 (",
                           "--local_register 2 (", "--cudagraph 1 ("}) {
    EXPECT_THAT(run.err, HasSubstr(part));
  }
  EXPECT_EQ(perf({"-b", "8", "-e", "8", "-z", "1", "-z", "0"}).err, "");
}

TEST(NcclTestsFlags, GpusPerThreadAreRanks) {
  const auto ranks = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"perf", "all_reduce", "-b", "8", "-e", "8",
                                          "-m",   "1",          "-n", "1", "-J", "-"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    return run.exit == 0 ? json::parse(run.out).at("config").at("ranks").get<int>() : 0;
  };
  EXPECT_EQ(ranks({"-g", "2"}), 2);
  EXPECT_EQ(ranks({"-t", "2", "-g", "2"}), 4);
  EXPECT_EQ(ranks({"-t", "3", "-g", "1"}), 3);
  EXPECT_THAT(run_captured({"perf", "all_reduce", "-t", "1024", "-g", "1024"}).err,
              HasSubstr("--ngpus is 1024, with 1024 threads; together they are at most"));
}

TEST(NcclTestsFlags, AFactorOfOneStepsByBytes) {
  const auto sizes = [](const std::vector<std::string>& flags) {
    std::vector<std::size_t> found;
    const json report = report_of(flags, 1);
    for (const json& row : report.at("results")) found.push_back(row.at("size"));
    return found;
  };
  EXPECT_EQ(sizes({"-b", "64", "-e", "256", "-f", "1", "-i", "64"}),
            (std::vector<std::size_t>{64, 128, 192, 256}));
  EXPECT_EQ(sizes({"-b", "8", "-e", "1M", "-f", "1"}), (std::vector<std::size_t>{8}));
}

TEST(NcclTestsFlags, NoWarmUpCallsAreAllowed) {
  const json report = report_of({"-b", "8", "-e", "8", "-w", "0"});
  EXPECT_EQ(report.at("config").at("warmup_iters"), 0);
  EXPECT_EQ(report.at("out_of_bounds").at("count"), 0);
}

// Percentiles rise, the classes of the histogram hold all batches, and all times are present.
TEST(NcclTestsJson, HasPercentilesTimesAndAHistogram) {
  const json report = report_of({"-b", "8", "-e", "8"}, 7);
  const json& row = report.at("results")[0];
  const json& out = row.at("out_of_place");
  EXPECT_LE(out.at("median"), out.at("p90"));
  EXPECT_LE(out.at("p90"), out.at("p99"));
  EXPECT_LE(out.at("p99"), out.at("p999"));
  EXPECT_LE(out.at("p999"), out.at("max"));
  EXPECT_GT(out.at("calls_per_second"), 0.0);
  const json& times = row.at("out_of_place_per_iter");
  EXPECT_EQ(times.at("times_us").size(), 7U);
  int batches = 0;
  double before = 0;
  for (const json& one : times.at("histogram")) {
    batches += one.at("batches").get<int>();
    EXPECT_GE(one.at("from_us").get<double>(), before);
    before = one.at("to_us");
  }
  EXPECT_EQ(batches, 7);
}

TEST(NcclTestsFlags, CyclesRepeatAllRows) {
  const Captured run = perf({"-b", "8", "-e", "16", "-N", "3"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto rows = rows_of(run.out);
  ASSERT_EQ(rows.size(), 6U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_THAT(rows[i], HasSubstr(i % 2 == 0 ? "    8 " : "   16 "));
  }
  EXPECT_EQ(report_of({"-b", "8", "-e", "16", "-N", "3"}).at("results").size(), 6U);
}

TEST(NcclTestsFlags, TimestampsStandBesideEveryRow) {
  const Captured run = perf({"-b", "8", "-e", "16", "-S", "1"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("  timestamp"));
  for (const std::string& row : rows_of(run.out)) {
    EXPECT_THAT(
        row, MatchesRegex(".*  20[0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
                          "  direct_one_shot.*"));
  }
  EXPECT_THAT(perf({"-b", "8", "-e", "16"}).out, Not(HasSubstr("timestamp")));
}

// Results are checked at the shifted place, element by element; the largest type needs most room.
TEST(NcclTestsFlags, UnalignedBuffersAreCorrectToo) {
  for (const char* shift : {"1", "3", "17"}) {
    for (const char* size : {"8", "4K", "1M"}) {
      const json report = report_of({"-b", size, "-e", size, "-u", shift, "-d", "bf16,f64"});
      EXPECT_EQ(report.at("out_of_bounds").at("count"), 0);
      EXPECT_EQ(report.at("config").at("unalign"), std::stoi(shift));
    }
  }
  EXPECT_EQ(perf({"-b", "4K", "-e", "4K", "-u", "5", "--off-cache"}).exit, 0);
  EXPECT_THAT(perf({"-b", "8", "-e", "8", "-u", "5"}).out,
              HasSubstr("# unaligned : buffers begin 5"));
}

// All times come from one run, so their order holds for any clock.
TEST(NcclTestsFlags, AverageSaysWhoseTimeCounts) {
  for (int which = 0; which < 4; ++which) {
    const json report =
        report_of({"-b", "64", "-e", "64", "-I", "1", "-a", std::to_string(which)}, 1);
    EXPECT_EQ(report.at("config").at("average"), which);
    const json& row = report.at("results")[0];
    const double time = row.at("out_of_place").at("time");
    const json& ranks = row.at("out_of_place_per_iter").at("per_process_max_times_us");
    const double first = ranks[0][0], second = ranks[1][0];
    const double expected[] = {first, (first + second) / 2, std::min(first, second),
                               std::max(first, second)};
    EXPECT_NEAR(time, expected[which], 1e-9 * expected[which]) << which;
  }
}

// The rules of the script: the members that print_stats_table, print_straggler, print_spikes,
// print_iter0, print_nodes and print_consistency index without a check, and the relations between
// them.
TEST(NcclTestsJson, HasWhatTheirAnalyserReads) {
  const json report = report_of({"-b", "8", "-e", "32", "-I", "1", "-K", "2"}, 6);
  EXPECT_TRUE(report.contains("version"));
  const json& config = report.at("config");
  EXPECT_EQ(config.at("iterations"), 6);
  EXPECT_EQ(config.at("aggregated_iterations"), 2);
  EXPECT_EQ(config.at("per_iter_skip"), 2);
  ASSERT_EQ(config.at("devices").size(), 2U);
  for (const json& device : config.at("devices")) EXPECT_TRUE(device.at("hostname").is_string());
  ASSERT_EQ(report.at("results").size(), 3U);
  for (const json& row : report.at("results")) {
    EXPECT_TRUE(row.at("size").is_number_unsigned());
    for (const char* place : {"out_of_place_per_iter", "in_place_per_iter"}) {
      const json& times = row.at(place);
      const std::vector<double> all = times.at("times_us");
      ASSERT_EQ(all.size(), 6U);
      const json& ranks = times.at("per_process_max_times_us");
      ASSERT_EQ(ranks.size(), 2U);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double first = ranks[0].at(i), second = ranks[1].at(i);
        EXPECT_NEAR(all[i], std::max(first, second), 1e-3);
      }
      EXPECT_EQ(times.at("skipped_iterations"), 2);
      const std::vector<double> shown(all.begin() + 2, all.end());
      EXPECT_DOUBLE_EQ(times.at("min_us"), *std::min_element(shown.begin(), shown.end()));
      EXPECT_DOUBLE_EQ(times.at("max_us"), *std::max_element(shown.begin(), shown.end()));
      EXPECT_DOUBLE_EQ(times.at("p99_us"), times.at("max_us"));
      EXPECT_DOUBLE_EQ(times.at("p95_us"), times.at("max_us"));
      EXPECT_LE(times.at("p50_us"), times.at("p95_us"));
      EXPECT_NEAR(times.at("avg_us"), (shown[0] + shown[1] + shown[2] + shown[3]) / 4, 1e-9);
      EXPECT_GT(times.at("avg_us"), 0);
      EXPECT_GE(times.at("stdev_us"), 0);
      EXPECT_GE(times.at("cv_pct"), 0);
    }
  }
}

// One rank has no rows per rank, as in nccl-tests with one process.
TEST(NcclTestsJson, OneRankHasNoRowsOfRanks) {
  const json report = report_of({"-t", "1", "-b", "8", "-e", "8", "-I", "1"});
  const json& times = report.at("results")[0].at("out_of_place_per_iter");
  EXPECT_FALSE(times.contains("per_process_max_times_us"));
  EXPECT_EQ(times.at("times_us").size(), 3U);
}

TEST(SlowestOf, TakesTheSlowestRankOfEachBatch) {
  Series series;
  series.samples = {1, 1, 1};
  EXPECT_EQ(slowest_of(series), series.samples);  // no times per rank
  series.of_rank = {{1, 4, 3}, {2, 1, 3}};
  EXPECT_EQ(slowest_of(series), (std::vector<double>{2, 4, 3}));
  PerfOptions options;
  options.skip_batches = 2;
  EXPECT_EQ(shown_statistics(series, options).max, 3);
  options.skip_batches = 9;
  EXPECT_EQ(shown_statistics(series, options).samples, 0U);
}

TEST(PerfPlot, ShowsTimeAndBusbwOfAllRows) {
  const auto file = std::filesystem::path(testing::TempDir()) / "machine.svg";
  const auto plot = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-b", "64", "-e", "256", "--plot", file.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured run = perf(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_EQ(xml_error(text.str()), "");
    return text.str();
  };
  EXPECT_THAT(plot({"-d", "f32,bf16", "--algo", "ring,direct_one_shot"}),
              AllOf(HasSubstr("all_reduce among 2 ranks: time"),
                    HasSubstr("all_reduce among 2 ranks: busbw"), HasSubstr("ring f32"),
                    HasSubstr("ring bf16"), HasSubstr("direct_one_shot bf16")));
  EXPECT_THAT(plot({}), AllOf(HasSubstr("the engine's choice"), Not(HasSubstr("choice f32"))));
  // One rank uses no bus.
  EXPECT_THAT(plot({"-t", "1"}), AllOf(HasSubstr(": time"), Not(HasSubstr(": busbw"))));
  const Captured one_size = perf({"-b", "64", "-e", "64", "--plot", file.string()});
  EXPECT_EQ(one_size.exit, 2);
  EXPECT_THAT(one_size.err, HasSubstr("two of them, are needed"));
}

}  // namespace

// perf among processes: copies of the tool measure with it. The end of the tool, or of a copy, ends
// all copies.

namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> among_processes(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"perf", "all_reduce", "--processes", "-w", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> all;
  for (pid_t one = 0; file >> one;) all.push_back(one);
  return all;
}

bool is_gone(pid_t process) {
  for (int looks = 0; looks < 500; ++looks) {
    if (kill(process, 0) != 0) return true;
    usleep(10'000);
  }
  return false;
}

void expect_none_left(const std::vector<pid_t>& copies) {
  for (const pid_t one : copies) EXPECT_TRUE(is_gone(one)) << one;
}

TEST(PerfAmongProcesses, TellsWhatAllOfThemHaveMeasured) {
  ToolProcess tool(among_processes({"-t", "3", "-b", "8", "-e", "128K", "-f", "128", "-n", "2",
                                    "-m", "3", "--stats", "--json", "-"}));
  const auto report = nlohmann::json::parse(tool.rest());
  EXPECT_EQ(tool.wait(), 0) << tool.err();
  EXPECT_EQ(report["config"]["processes"], true);
  EXPECT_EQ(report["complete"], true);
  EXPECT_EQ(report["out_of_bounds"]["okay"], true);
  ASSERT_EQ(report["results"].size(), 3U);
  std::set<int> processes;
  for (const auto& device : report["config"]["devices"]) processes.insert(device["pid"].get<int>());
  EXPECT_EQ(processes.size(), 3U);
  for (const auto& row : report["results"]) {
    EXPECT_FALSE(row["algorithm"].get<std::string>().empty());
    EXPECT_GT(row["out_of_place"]["time"], 0);
  }
}

TEST(PerfAmongProcesses, SharePayloadsWhereTheyAreAsked) {
  ToolProcess tool(among_processes({"--shared-payloads", "-t", "3", "-b", "8", "-e", "1M", "-f",
                                    "64", "-n", "2", "--fresh", "--json", "-"}));
  const auto report = nlohmann::json::parse(tool.rest());
  EXPECT_EQ(tool.wait(), 0) << tool.err();
  EXPECT_EQ(report["config"]["shared_payloads"], true);
  EXPECT_EQ(report["out_of_bounds"]["okay"], true);
  ToolProcess threads({"perf", "all_reduce", "--shared-payloads", "-t", "2"});
  threads.rest();
  EXPECT_EQ(threads.wait(), 2);
  EXPECT_THAT(threads.err(), HasSubstr("--shared-payloads needs processes; add --processes"));
}

TEST(PerfAmongProcesses, SaysSo) {
  ToolProcess tool(among_processes({"-t", "2", "-b", "8", "-e", "8", "-n", "2", "--fresh"}));
  EXPECT_THAT(tool.rest(), HasSubstr(": all_reduce among 2 processes\n"));
  EXPECT_EQ(tool.wait(), 0) << tool.err();
}

// A tool that measures until a signal ends it; the constructor waits until it has begun.
struct Endless {
  ToolProcess tool{among_processes({"-t", "3", "-b", "8", "-e", "64", "-N", "0"})};
  std::vector<pid_t> copies;

  Endless() {
    for (std::string line = tool.line(); !line.empty() && line[0] == '#';) line = tool.line();
    copies = children_of(tool.id());
  }
};

TEST(PerfAmongProcesses, EndWithTheTool) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    Endless endless;
    ASSERT_EQ(endless.copies.size(), 2U);
    endless.tool.signal(signal);
    endless.tool.rest();
    EXPECT_EQ(endless.tool.wait(), signal == SIGKILL ? 1000 + SIGKILL : 128 + signal);
    expect_none_left(endless.copies);
  }
}

TEST(PerfAmongProcesses, SaysWhichOneWasKilled) {
  Endless endless;
  ASSERT_EQ(endless.copies.size(), 2U);
  kill(endless.copies[1], SIGKILL);
  endless.tool.rest();
  EXPECT_NE(endless.tool.wait(), 0);
  EXPECT_THAT(endless.tool.err(),
              HasSubstr("process " + std::to_string(endless.copies[1]) + " has ended"));
  expect_none_left(endless.copies);
}

TEST(PerfAmongProcesses, RefusesWhatTheyHaveNot) {
  for (const auto& [option, value] :
       {std::pair("--network", "scale_out"), std::pair("--probe", "")}) {
    std::vector<std::string> more = {"-t", "2", option};
    if (*value != '\0') more.emplace_back(value);
    ToolProcess tool(among_processes(more));
    tool.rest();
    EXPECT_EQ(tool.wait(), 2);
    EXPECT_THAT(tool.err(), HasSubstr("leave out --processes"));
  }
}

}  // namespace
}  // namespace rankine::tools
