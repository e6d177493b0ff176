// Tests of perf: measurements, command lines and JSON of nccl-tests, reads of results, test data,
// processes and modelled networks.

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "engine/base/parallel.h"
#include "engine/base/statistics.h"
#include "engine/cli/harness.h"
#include "engine/cli/perf.h"
#include "engine/cli/question.h"
#include "engine/cli/workbench.h"
#include "engine/run/kernels/reduce.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using nlohmann::json;

// Short measurements among two ranks; later options count.
std::string perf(const std::string& more, const std::string& collective = "all_reduce") {
  return "perf " + collective + " -t 2 -n 3 -m 2 -w 1 -b 8 -e 8 " + more;
}
json report_of(const std::string& more, const std::string& collective = "all_reduce") {
  return json_of(perf(more + " -J -", collective));
}
// The words of the rows of a table.
std::vector<std::vector<std::string>> rows_of(const std::string& more) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(output_of(perf(more)))) {
    if (!line.empty() && line[0] != '#') rows.push_back(words_of(line));
  }
  return rows;
}

TEST(Perf, IsNotPutOnANetworkByTheEnvironment) {
  const ScopedEnv variable("RANKINE_NETWORK", "scale_out");
  for (const std::string& line :
       {perf(""), std::string("run all_reduce --algo ring --ranks 2 --clock none")}) {
    const Captured run = run_line(line);
    EXPECT_EQ(run.exit, 2);
    EXPECT_TRUE(has(run.err, "RANKINE_NETWORK is 'scale_out'")) << run.err;
  }
}

TEST(Perf, HasNcclTestsColumnsAndFooter) {
  const auto rows = rows_of("-e 32");
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& words : rows) {
    ASSERT_EQ(words.size(), 14U);  // and the algorithm
    EXPECT_EQ(words[2] + words[3] + words[4], "f32sum-1");
    EXPECT_EQ(words[8] + words[12], "00");
  }
  EXPECT_EQ(rows[0][0] + rows[0][1], "82");
  EXPECT_EQ(rows_of("-e 16 -N 3").size(), 6U);                 // cycles repeat all rows
  EXPECT_EQ(rows_of("-e 16 --probe")[0].size(), 14U + 3);      // two latencies and repeats
  EXPECT_EQ(rows_of("--off-cache -I 1")[0].size(), 14U + 12);  // percentiles
  EXPECT_EQ(rows_of("-S 1")[0].size(), 14U + 2);               // day and time
  EXPECT_EQ(rows_of("-c 0")[0][8], "N/A");
  const std::string table = output_of(perf("-u 5"));
  for (const char* part : {"# Out of bounds values : 0 OK\n", "# Avg bus bandwidth    : ",
                           "# placement", "# waiting", "# unaligned : buffers begin 5"}) {
    EXPECT_TRUE(has(table, part)) << table;
  }
}

TEST(Perf, ChecksEveryCollectiveOnEveryTransport) {
  for (const Collective collective : all_collectives()) {
    const std::string name(name_of(collective));
    if (algorithm_names(collective).empty()) continue;
    for (const std::string ranks : {"1", "3"}) {
      output_of("perf " + name + " -n 2 -m 3 -w 1 -t " + ranks + " -b 0 -e 8K -f 1024 -r " +
                (has_root(collective) ? "all" : "0") + " -d f32,bf16 -o " +
                (is_prefix(collective) ? "sum,prod" : "sum,avg"));
    }
  }
  for (const std::string transport : {"direct", "mailbox", "board"}) {
    const json report =
        report_of("-t 3 -b 4K -e 4K --algo ring,direct_one_shot --transport " + transport);
    for (const json& row : report.at("results")) EXPECT_EQ(row.at("transport"), transport);
  }
  // In CSV the transport is beside parameters, too.
  EXPECT_TRUE(has(output_of("perf broadcast -t 3 -n 1 -b 4K -e 4K --algo chain --segments 3 "
                            "--transport mailbox --csv"),
                  ",out_of_place,chain,mailbox,3,"));
}

TEST(Perf, PortsAreABudget) {
  const json report = report_of("-t 3 -e 8K -f 32 --ports 1");
  EXPECT_EQ(report.at("config").at("ports"), 1);
  EXPECT_EQ(report.at("most_sent"), json({1, 1, 1}));
  EXPECT_EQ(report.at("most_received"), json({1, 1, 1}));
  for (const json& row : report.at("results")) EXPECT_EQ(row.at("transport"), "mailbox");
}

void expect_members(const json& object, const std::string& names) {
  for (const std::string& name : words_of(names)) EXPECT_TRUE(object.contains(name)) << name;
}

// The rules of NVIDIA's tools/analyze_perf_json.py: the members that it indexes without a check,
// and the relations between them.
TEST(Perf, WritesNcclTestsJson) {
  const json report = report_of("-b 64 -e 256 --fresh -n 6 -I 1 -K 2", "all_gather");
  expect_members(report,
                 "version start_time args env nccl_version config results out_of_bounds "
                 "average_bus_bandwidth errors end_time");
  const json& config = report.at("config");
  expect_members(config,
                 "nthreads ngpus minimum_bytes maximum_bytes step_factor warmup_iters validation "
                 "graph blocking_collectives per_iter_timing parallel_init");
  EXPECT_EQ(config.at("iterations"), 6);
  EXPECT_EQ(config.at("aggregated_iterations"), 2);
  EXPECT_EQ(config.at("per_iter_skip"), 2);
  ASSERT_EQ(config.at("devices").size(), 2U);
  expect_members(config.at("devices")[1], "rank group pid hostname device device_hex device_info");
  EXPECT_EQ(report.at("out_of_bounds"), json({{"count", 0}, {"okay", true}}));
  ASSERT_EQ(report.at("results").size(), 3U);
  EXPECT_EQ(report.at("results")[0].at("count"), 8);  // per rank
  for (const json& row : report.at("results")) {
    EXPECT_EQ(row.at("redop"), "none");
    EXPECT_EQ(row.at("root"), -1);
    for (const std::string place : {"out_of_place", "in_place"}) {
      const json& one = row.at(place);
      EXPECT_EQ(one.at("nwrong"), 0);
      EXPECT_GT(one.at("time"), 0);
      EXPECT_GT(one.at("calls_per_second"), 0.0);
      EXPECT_NEAR(one.at("bus_bw").get<double>(), one.at("alg_bw").get<double>() / 2, 1e-9);
      const char* const rising[] = {"min", "median", "p90", "p99", "p999", "max"};
      for (int i = 1; i < 6; ++i) EXPECT_LE(one.at(rising[i - 1]), one.at(rising[i]));
      const json& times = row.at(place + "_per_iter");
      const std::vector<double> all = times.at("times_us");
      ASSERT_EQ(all.size(), 6U);
      const json& ranks = times.at("per_process_max_times_us");
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_NEAR(all[i], std::max(ranks[0].at(i).get<double>(), ranks[1].at(i).get<double>()),
                    1e-3);
      }
      EXPECT_EQ(times.at("skipped_iterations"), 2);
      const std::vector<double> shown(all.begin() + 2, all.end());
      EXPECT_DOUBLE_EQ(times.at("min_us"), *std::min_element(shown.begin(), shown.end()));
      EXPECT_DOUBLE_EQ(times.at("max_us"), *std::max_element(shown.begin(), shown.end()));
      EXPECT_DOUBLE_EQ(times.at("p99_us"), times.at("max_us"));
      EXPECT_LE(times.at("p50_us"), times.at("p95_us"));
      EXPECT_NEAR(times.at("avg_us"), (shown[0] + shown[1] + shown[2] + shown[3]) / 4, 1e-9);
      expect_members(times, "stdev_us cv_pct");
      int batches = 0;
      double before = 0;
      for (const json& part : times.at("histogram")) {
        batches += part.at("batches").get<int>();
        EXPECT_GE(part.at("from_us").get<double>(), before);
        before = part.at("to_us");
      }
      EXPECT_GE(batches, 4);
    }
  }
  // One rank has no rows per rank, as in nccl-tests with one process.
  const json alone = report_of("-t 1 -I 1");
  EXPECT_FALSE(
      alone.at("results")[0].at("out_of_place_per_iter").contains("per_process_max_times_us"));
}

TEST(Perf, WritesFilesBesideTheTable) {
  const std::string file = file_with("perf.json", "old");
  output_of(perf("-c 0 --json " + file));
  const json report = json::parse(text_of(file));
  EXPECT_TRUE(report.at("results")[0].at("in_place").at("nwrong").is_null());
  EXPECT_TRUE(report.at("complete").get<bool>());
  const std::string svg = file_with("machine.svg", "");
  output_of(perf("-b 64 -e 256 -d f32,bf16 --algo ring,direct_one_shot --plot " + svg));
  EXPECT_TRUE(is_well_formed(text_of(svg)));
  for (const char* part : {": time", ": busbw", "ring f32", "ring bf16", "direct_one_shot bf16"}) {
    EXPECT_TRUE(has(text_of(svg), part)) << part;
  }
  output_of(perf("-t 1 -b 64 -e 256 --plot " + svg));  // one rank uses no bus
  EXPECT_FALSE(has(text_of(svg), ": busbw"));
}

// Mutations: a rank, a place or the first batch left out; another time than the JSON's.
TEST(Perf, WritesEachIterationOfEachRank) {
  const std::string file = file_with("iterations.csv", "old");
  const json report = report_of("-e 16 --iterations " + file);
  const std::vector<std::string> lines = lines_of(text_of(file));
  ASSERT_EQ(lines.size(), 1U + 2 * 2 * 2 * 3);  // sizes, places, ranks, batches
  EXPECT_TRUE(lines[0].ends_with(",iteration,rank,time_us")) << lines[0];
  const json& ranks =
      report.at("results")[0].at("out_of_place_per_iter").at("per_process_max_times_us");
  for (std::size_t i = 0; i < 6; ++i) {
    const std::string end =
        fmt::format(",{},{},{:.4f}", i % 3, i / 3, ranks[i / 3][i % 3].get<double>());
    EXPECT_TRUE(lines[1 + i].ends_with(end)) << lines[1 + i] << " and " << end;
  }
}

// Mutations: shares of the wrong rank; a rounding that loses elements; counts of another call.
TEST(Perf, DividesBlocksByShares) {
  PerfOptions options;
  options.algorithm.collective = Collective::all_to_all;
  options.counts = {1, 0, 3};
  options.min_bytes = options.max_bytes = 492;  // 41 elements for each pair
  const auto cases = cases_of(options, 3);
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  const auto& counts = cases->rows.front().call.counts;
  EXPECT_EQ(std::vector<std::size_t>(counts.begin(), counts.end()),
            (std::vector<std::size_t>{30, 0, 93, 30, 0, 93, 30, 0, 93}));
  for (const char* collective :
       {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}) {
    const json report = report_of("-t 3 --counts 1,0,3 -e 8K -f 32", collective);
    EXPECT_EQ(report.at("out_of_bounds").at("count"), 0) << collective;
  }
}

// A delay can only lengthen the run, on a busy machine too. Mutation: no rank waits.
TEST(Perf, LetsRanksArriveLate) {
  const double begun = seconds_now();
  const json report = json_of("perf all_reduce -t 3 -n 2 -w 1 -b 8 -e 8 --skew 30ms -J -");
  EXPECT_GE(seconds_now() - begun, 4 * 0.030);  // two batches in two places
  EXPECT_EQ(report.at("out_of_bounds").at("count"), 0);
  EXPECT_EQ(report.at("config").at("aggregated_iterations"), 1);
}

// Eight bits are checked by the bound of their error, and cross a slow network faster than floats.
// Mutations: a bound of 0 (wrong elements), calls without quantisation (no error).
TEST(Perf, MeasuresQuantisedSums) {
  for (const std::string more : {"", "--processes "}) {
    const std::string line =
        "perf all_reduce -t 2 -n 1 -m 1 -b 256K -e 256K -d f32,bf16 -J - " + more;
    for (const std::string as : {"i8", "f8e4m3"}) {
      ToolProcess tool(words_of(line + "--quantise " + as));
      const json report = json::parse(tool.rest());
      EXPECT_EQ(tool.wait(), 0) << tool.err();
      EXPECT_EQ(report.at("results").size(), 2U);
      for (const json& row : report.at("results")) {
        EXPECT_EQ(row.at("algorithm"), "quantised_" + as);
        for (const char* place : {"out_of_place", "in_place"}) {
          const json& one = row.at(place);
          EXPECT_EQ(one.at("nwrong"), 0);
          EXPECT_GT(one.at("error").get<double>(), 0);
          EXPECT_LE(one.at("error").get<double>(), one.at("allowed_error").get<double>());
        }
      }
    }
  }
  const auto on_slow_network = [](const std::string& more) {
    const json row =
        json_of("perf all_reduce -t 4 -n 1 -m 1 -b 4M -e 4M -J - --network scale_out " +
                more)["results"][0];
    EXPECT_EQ(row["out_of_place"]["nwrong"], 0);
    return row["out_of_place"]["time"].get<double>();
  };
  const double floats = on_slow_network(""), bytes = on_slow_network("--quantise i8");
  EXPECT_GT(floats, 3 * bytes);
  EXPECT_TRUE(has(output_of(perf("--quantise i8")), "# Largest error        : "));
}

TEST(Perf, EndsWithTheRightCode) {
  const Captured slow = run_line(perf("--min-busbw 1e9"));
  EXPECT_EQ(slow.exit, 1);
  EXPECT_TRUE(has(slow.err, "--min-busbw"));
  // Four ranks wait far longer than a millisecond while the vector passes from rank to rank. On a
  // busy machine, planning takes that long too. The first row times out, so the old file stays.
  const std::string file = file_with("failed.json", "old");
  const Captured late =
      run_line(perf("-t 4 -b 32M -e 32M --algo chain --segments 1 --timeout 1ms --json " + file));
  EXPECT_EQ(late.exit, 124);
  EXPECT_TRUE(has(late.err, "1 ms")) << late.err;
  EXPECT_EQ(text_of(file), "old");
  // Algorithms that refuse the ranks are left out if all were asked for.
  EXPECT_TRUE(
      has(output_of(perf("-t 3 --group 2 --algo all")), "# left out: all_reduce 'ring_2d'"));
}

TEST(Perf, ProbeBracketsEveryRow) {
  const json report = report_of("-e 16 --probe");
  const json& devices = report.at("config").at("devices");
  const bool two_cpus = devices[0].at("device") != devices[1].at("device");
  for (const json& row : report.at("results")) {
    const double before = row.at("ping_pong_ns").at("before");
    const double after = row.at("ping_pong_ns").at("after");
    EXPECT_EQ(before > 0, after > 0);  // zero unless two ranks have two CPUs
    EXPECT_EQ(before > 0, two_cpus && report.at("config").at("not_enforced").empty());
    EXPECT_EQ(row.at("steady"), LatencyBracket({before, after, 0}).steady());
    EXPECT_LE(row.at("repeats"), kRepeats);
  }
}

TEST(LatencyProbe, RepeatsUntilCalmAndKeepsTheCalmest) {
  EXPECT_EQ(drift({}), 1);
  EXPECT_EQ(drift({0, 0}), 1);  // without a probe
  EXPECT_DOUBLE_EQ(drift({20, 30, 25}), 1.5);
  EXPECT_TRUE(LatencyBracket({20, 30, 0}).steady());
  EXPECT_FALSE(LatencyBracket({31, 20, 0}).steady());
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
  LatencyProbe probe;
  double sides[2] = {-1, -1};
  on_threads(2, [&](Rank r) { sides[r] = probe.play(r, 1, 20); });
  EXPECT_GT(sides[0], 0);
  EXPECT_EQ(sides[1], 0);
}

// Command lines of nccl-tests: pasted flags run; one warning names those without effect.
TEST(NcclTestsFlags, AreTakenOrNamed) {
  const Captured run =
      run_line(perf("-f 2 -g 1 -d float -o sum -p 1 -z 3 -a 3 -C 0 -G 0 -R 0 -D 0 -M 0 -I 0 -S 0 "
                    "-u 0 -N 1 -K 0"));
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(run_line(perf("-z 1 -z 0")).err, "");
  const Captured named = run_line(perf("-z 2 -D 1 -V 16 -M 1 -C 1 -R 2 -G 1"));
  EXPECT_EQ(named.exit, 0) << named.err;
  EXPECT_EQ(lines_of(named.err).size(), 1U) << named.err;
  for (const char* part :
       {"--blocking 2 (", "--device_implementation 1 (", "--device_cta_count 16 (",
        "--report_cputime 1 (", "--local_register 2 (", "--cudagraph 1 ("}) {
    EXPECT_TRUE(has(named.err, part)) << named.err;
  }
  EXPECT_EQ(report_of("-w 0").at("config").at("warmup_iters"), 0);
  EXPECT_EQ(report_of("-t 1 -g 2").at("config").at("ranks"), 2);  // GPUs per thread are ranks
  EXPECT_EQ(report_of("-t 2 -g 2").at("config").at("ranks"), 4);
}

// Results are checked at the shifted place, element by element; the largest type needs most room.
TEST(NcclTestsFlags, UnalignedBuffersAreCorrectToo) {
  for (const std::string shift : {"1", "3", "17"}) {
    for (const std::string size : {"8", "4K", "1M"}) {
      const json report = report_of("-b " + size + " -e " + size + " -u " + shift + " -d bf16,f64");
      EXPECT_EQ(report.at("out_of_bounds").at("count"), 0);
      EXPECT_EQ(report.at("config").at("unalign"), std::stoi(shift));
    }
  }
  output_of(perf("-b 4K -e 4K -u 5 --off-cache"));
}

// All times come from one run, so their order holds for any clock.
TEST(NcclTestsFlags, AverageSaysWhoseTimeCounts) {
  for (int which = 0; which < 4; ++which) {
    const json report = report_of("-n 1 -I 1 -a " + std::to_string(which));
    const json& row = report.at("results")[0];
    const double time = row.at("out_of_place").at("time");
    const json& ranks = row.at("out_of_place_per_iter").at("per_process_max_times_us");
    const double first = ranks[0][0], second = ranks[1][0];
    const double expected[] = {first, (first + second) / 2, std::min(first, second),
                               std::max(first, second)};
    EXPECT_NEAR(time, expected[which], 1e-9 * expected[which]) << which;
  }
}

TEST(SlowestOf, TakesTheSlowestRankOfEachBatch) {
  Series series;
  series.samples = {1, 1, 1};
  EXPECT_EQ(slowest_of(series), series.samples);  // no times per rank
  series.of_rank = {{1, 4, 3}, {2, 1, 3}};
  EXPECT_EQ(slowest_of(series), (std::vector<double>{2, 4, 3}));
  PerfOptions options;
  options.skip_batches = 2;
  EXPECT_EQ(summarise(shown_batches(series, options)).max, 3);
  options.skip_batches = 9;
  EXPECT_EQ(summarise(shown_batches(series, options)).samples, 0U);
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
}

TEST(SizesOf, StepsByFactorOrBytes) {
  using Sizes = std::vector<std::size_t>;
  PerfOptions options;
  options.algorithm.collective = Collective::all_reduce;
  const auto sizes = [&options](std::size_t from, std::size_t to) {
    options.min_bytes = from;
    options.max_bytes = to;
    return *sizes_of(options);
  };
  EXPECT_EQ(sizes(8, 100), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(sizes(0, 16), (Sizes{0, 8, 16}));
  EXPECT_EQ(sizes(std::size_t{1} << 62, (std::size_t{1} << 63) - 1).size(), 1U);
  options.step_bytes = 40;
  EXPECT_EQ(sizes(8, 100), (Sizes{8, 48, 88}));
  // The default is short.
  for (const auto& [from, to, ranks, first, last] : {std::tuple(-1, -1, 2, 8, 64 << 20),
                                                     {-1, -1, 64, 8, 2 << 20},
                                                     {-1, 4, 2, 4, 4},
                                                     {1 << 30, -1, 64, 1 << 30, 1 << 30}}) {
    PerfOptions open;
    if (from >= 0) open.min_bytes = from;
    if (to >= 0) open.max_bytes = to;
    set_ends(open, ranks, 2);
    EXPECT_EQ(*open.min_bytes, static_cast<std::size_t>(first));
    EXPECT_EQ(*open.max_bytes, static_cast<std::size_t>(last));
  }
  EXPECT_EQ(rows_of("-e 1M -f 1").size(), 1U);  // a factor of one is one size
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

// Plain values, so that only the barrier can order a rank's reads after the others' writes.
TEST(Harness, RanksMeetUntilOneStops) {
  struct Seat : Arrival {
    int value = 0;
  };
  constexpr int kRanks = 4, kTurns = 200;
  std::vector<Seat> seats(kRanks);
  std::atomic<bool> is_stopped{false};
  std::atomic<int> bad{0}, done{0};
  const auto arrive = [&](int r) {
    return meet(seats.data(), kRanks, r, SpinBudget(4), &is_stopped);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      for (int turn = 1; turn <= kTurns; ++turn) {
        seats[static_cast<std::size_t>(r)].value = turn;
        if (!arrive(r)) ++bad;
        for (const Seat& seat : seats) bad += seat.value != turn;
        if (!arrive(r)) ++bad;
      }
      ++done;
      if (r > 0 && arrive(r)) ++bad;  // rank 0 never comes
    });
  }
  while (done != kRanks) std::this_thread::yield();
  is_stopped = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
}

// A clock that counts the events.
TEST(Harness, FreshTimesCoverTheCallAndTheReadingOnly) {
  std::string events;
  const auto event = [&](char name) { return [&, name] { events += name; }; };
  const auto clock = [&] { return events += 't', static_cast<int>(events.size()); };
  const char result[8] = {};
  EXPECT_EQ(time_fresh(event('w'), event('m'), clock, clock, event('c'), result, sizeof(result)),
            2);
  EXPECT_EQ(events, "wmtct");
  const auto fails = [] { return false; };
  EXPECT_EQ(time_fresh(event('w'), fails, clock, clock, event('c'), result, 1), std::nullopt);
  EXPECT_EQ(time_warm(clock, clock, 2, fails), std::nullopt);
  EXPECT_EQ(events, "wmtctwt");
  EXPECT_EQ(time_warm(clock, clock, 3, event('c')), 4);
  EXPECT_EQ(events, "wmtctwttccct");
}

TEST(Harness, BatchesGrowUntilTheyAreLongEnough) {
  const auto steps = [](double per_call, int least, int most) {
    std::vector<int> calls;
    for (BatchSize size; !size.settled; calls.push_back(size.calls)) {
      size.learn(size.calls == 1 ? 100 * per_call : per_call, 1000, least, most);
    }
    return calls;
  };
  EXPECT_EQ(steps(1, 1, 9999), (std::vector<int>{8, 64, 1000}));
  EXPECT_EQ(steps(50, 1, 9999), (std::vector<int>{1}));  // the first call is long enough
  EXPECT_EQ(steps(8, 3, 9999), (std::vector<int>{3, 24, 125, 125}));
  EXPECT_EQ(steps(0, 1, 500), (std::vector<int>{8, 64, 500}));
}

// Reads every byte of a result once, at any alignment and by every width of vectors.
TEST(ReadResult, IsTheSumOfTheWords) {
  std::vector<unsigned char> data(1500);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37 + 11);
  for (std::size_t offset = 0; offset < 3; ++offset) {
    for (std::size_t bytes = 0; bytes + offset <= data.size(); ++bytes) {
      const unsigned char* from = data.data() + offset;
      std::uint64_t sum = 0;
      for (std::size_t at = 0; at < bytes; at += sizeof(sum)) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + at, std::min(sizeof(word), bytes - at));
        sum += word;
      }
      ASSERT_EQ(read_result(from, bytes), sum) << offset << " " << bytes;
      using namespace read_result_detail;
      ASSERT_EQ(sum_of<Words2>(from, bytes), sum);
#if defined(__x86_64__)
      ASSERT_TRUE(!__builtin_cpu_supports("avx2") || sum_avx2(from, bytes) == sum);
      ASSERT_TRUE(!__builtin_cpu_supports("avx512f") || sum_avx512(from, bytes) == sum);
#endif
    }
  }
}

// The data of measurements.

using Bytes = std::vector<std::byte>;

struct Scene {
  Scene(Collective collective, int ranks, std::size_t count, DataType type,
        ReduceOp op = ReduceOp::sum, int seed = 0)
      : goal{collective, ranks, natural_blocks(collective, ranks), ranks / 2, ranks - 1},
        layout(make_layout(goal,
                           std::vector<std::size_t>(static_cast<std::size_t>(goal.blocks), count),
                           size_of(type), Borders::plain)),
        data(collective, ranks, type, op, static_cast<std::uint64_t>(seed)) {}
  Bytes input_of(Rank r) const {
    Bytes bytes(input_bytes(layout, goal, r) + 1);
    data.fill(goal, layout, r, bytes.data());
    return bytes;
  }
  std::int64_t wrong(Rank r, const Bytes& result) const {
    return data.count_wrong(goal, layout, r, result.data());
  }
  CollectiveSpec goal;
  Layout layout;
  TestData data;
};

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
        const Scene scene(Collective::all_reduce, ranks, kCount, type, op, 5);
        std::vector<Bytes> parts;
        for (Rank r = 0; r < ranks; ++r) parts.push_back(scene.input_of(r));
        const ReduceKernel reduce = find_reduce(type, op);
        while (parts.size() > 1) {  // any two at a time, each time rounded
          std::shuffle(parts.begin(), parts.end(), random);
          const Bytes last = std::move(parts.back());
          parts.pop_back();
          const void* sources[] = {parts.back().data(), last.data()};
          reduce(parts.back().data(), sources, 2, kCount, 0);
        }
        const void* source = parts.front().data();
        if (op == ReduceOp::avg) reduce(parts.front().data(), &source, 1, kCount, ranks);
        EXPECT_EQ(scene.wrong(0, parts.front()), 0)
            << ranks << " ranks, " << name_of(type) << " " << name_of(op);
      }
    }
  }
}

TEST(TestData, SeesAMissingOrDoubledRank) {
  constexpr std::size_t kCount = 2000;
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16, DataType::i8}) {
    for (const int ranks : {2, 5, 64, 300}) {
      const Scene scene(Collective::all_reduce, ranks, kCount, type);
      const ReduceKernel reduce = find_reduce(type, ReduceOp::sum);
      for (const int copies : {0, 2}) {  // copies of the last rank's contribution
        Bytes sum = scene.input_of(0);
        for (Rank r = 1; r < ranks; ++r) {
          const Bytes mine = scene.input_of(r);
          const void* sources[] = {sum.data(), mine.data()};
          for (int i = r == ranks - 1 ? copies : 1; i > 0; --i) {
            reduce(sum.data(), sources, 2, kCount, 0);
          }
        }
        EXPECT_GT(scene.wrong(0, sum), 0) << ranks << name_of(type) << copies;
      }
    }
  }
}

TEST(TestData, CountsEachWrongElement) {
  const Scene scene(Collective::broadcast, 3, 1000, DataType::i32);
  Bytes bytes = scene.input_of(scene.goal.root);
  EXPECT_EQ(scene.wrong(0, bytes), 0);
  bytes[0] ^= std::byte{1};
  bytes[3] ^= std::byte{1};  // the same element again
  bytes[4 * 999] ^= std::byte{0x80};
  EXPECT_EQ(scene.wrong(0, bytes), 2);
  for (const std::size_t count : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
    const Scene gather(Collective::all_gather, 4, count, DataType::i32);
    Bytes all;
    for (Rank r = 0; r < 4; ++r) {
      const Bytes mine = gather.input_of(r);
      all.insert(all.end(), mine.begin(), mine.end() - 1);
    }
    ASSERT_EQ(gather.wrong(2, all), 0);
    const auto block = static_cast<std::ptrdiff_t>(count * sizeof(std::int32_t));
    std::swap_ranges(all.begin(), all.begin() + block, all.begin() + 2 * block);
    EXPECT_GE(gather.wrong(2, all), static_cast<std::int64_t>(count));  // blocks in another place
  }
  const Scene first(Collective::all_reduce, 2, 100, DataType::f32);
  const Scene second(Collective::all_reduce, 2, 100, DataType::f32, ReduceOp::sum, 1);
  EXPECT_NE(first.input_of(0), second.input_of(0));
  EXPECT_NE(first.input_of(0), first.input_of(1));
}

// perf among processes: copies of the tool measure with it. The end of the tool, or of a copy, ends
// all copies.

std::vector<std::string> among_processes(const std::string& more) {
  return words_of("perf all_reduce --processes -w 1 -t 3 " + more);
}

TEST(PerfAmongProcesses, TellsWhatAllOfThemHaveMeasured) {
  for (const std::string payloads : {"", "--shared-payloads "}) {
    ToolProcess tool(among_processes(payloads + "-b 8 -e 128K -f 128 -n 2 -m 3 --fresh -J -"));
    const json report = json::parse(tool.rest());
    EXPECT_EQ(tool.wait(), 0) << tool.err();
    EXPECT_EQ(report["config"]["processes"], true);
    EXPECT_EQ(report["config"]["shared_payloads"], !payloads.empty());
    EXPECT_EQ(report["complete"], true);
    EXPECT_EQ(report["out_of_bounds"]["okay"], true);
    ASSERT_EQ(report["results"].size(), 3U);
    std::set<int> processes;
    for (const json& device : report["config"]["devices"])
      processes.insert(device["pid"].get<int>());
    EXPECT_EQ(processes.size(), 3U);
    for (const json& row : report["results"]) EXPECT_GT(row["out_of_place"]["time"], 0);
  }
}

// A tool that measures until a signal ends it; the constructor waits until it has begun.
struct Endless {
  ToolProcess tool{among_processes("-b 8 -e 64 -N 0")};
  std::vector<pid_t> copies;

  Endless() {
    for (std::string line = tool.line(); !line.empty() && line[0] == '#';) line = tool.line();
    const std::string id = std::to_string(tool.id());
    std::ifstream file("/proc/" + id + "/task/" + id + "/children");
    for (pid_t one = 0; file >> one;) copies.push_back(one);
    EXPECT_EQ(copies.size(), 2U);
  }
  int end() {
    tool.rest();
    const int exit = tool.wait();
    for (const pid_t copy : copies) {
      bool gone = false;
      for (int looks = 0; looks < 500 && !gone; ++looks) {
        gone = kill(copy, 0) != 0;
        if (!gone) usleep(10'000);
      }
      EXPECT_TRUE(gone) << copy;
    }
    return exit;
  }
};

TEST(PerfAmongProcesses, EndWithTheToolAndWithEachOther) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    Endless endless;
    endless.tool.send(signal);
    EXPECT_EQ(endless.end(), signal == SIGKILL ? 1000 + SIGKILL : 128 + signal);
  }
  Endless endless;
  ASSERT_EQ(endless.copies.size(), 2U);
  kill(endless.copies[1], SIGKILL);
  EXPECT_NE(endless.end(), 0);
  EXPECT_TRUE(has(endless.tool.err(), "process " + std::to_string(endless.copies[1])));
}

// perf on modelled networks: real data, checked, and times that equal the simulator's.

json on_network(const std::string& collective, const std::string& more) {
  return json_of("perf " + collective + " -n 1 -m 1 -w 2 -J - " + more);
}

TEST(PerfOnNetworks, ProcessesTakeTheTimesOfThreads) {
  const std::string options = "--network scale_up -b 8 -e 8K -f 32 -n 1 -m 1 -J -";
  ToolProcess tool(among_processes(options));
  const json processes = json::parse(tool.rest())["results"];
  EXPECT_EQ(tool.wait(), 0) << tool.err();
  const json threads = json_of("perf all_reduce -w 1 -t 3 " + options)["results"];
  ASSERT_EQ(processes.size(), 3U);
  ASSERT_EQ(threads.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const char* series : {"out_of_place", "in_place"}) {
      EXPECT_EQ(processes[i][series]["time"], threads[i][series]["time"]) << i << " " << series;
    }
  }
}

TEST(PerfOnNetworks, TimesAreTheSimulators) {
  for (const auto& [collective, algorithms, rows] :
       {std::tuple("all_reduce", "ring,double_tree,bucket", 6U),
        {"broadcast", "chain", 2U},
        {"all_to_all", "pairwise", 2U}}) {
    const json report = on_network(collective, std::string("-b 100K -e 100K --algo ") + algorithms +
                                                   " --network scale_out,torus,sync=rounds");
    EXPECT_EQ(report.at("results").size(), rows) << collective;
    for (const json& row : report.at("results")) {
      const bool is_torus = row.at("network") != "scale_out";
      std::string line = std::string("simulate ") + collective + " --algo " +
                         row.at("algorithm").get<std::string>() + " --bytes 100K --json --network ";
      line += is_torus ? "torus --sync rounds" : "scale_out";
      if (row.at("segments") > 0) line += " --segments " + row.at("segments").dump();
      const json model = json_of(line);
      for (const char* place : {"out_of_place", "in_place"}) {
        const json& one = row.at(place);
        EXPECT_EQ(one.at("time").get<double>(), model.at("time").get<double>() * 1e6) << row;
        EXPECT_EQ(one.at("nwrong"), 0);
        EXPECT_GT(one.at("wall").get<double>(), 0);
        EXPECT_DOUBLE_EQ(one.at("eta").get<double>(), model.at("eta").get<double>()) << row;
        EXPECT_DOUBLE_EQ(one.at("bus_bw").get<double>() * 1e9, model.at("busbw").get<double>());
      }
    }
  }
}

// Without a name, perf uses the cheapest algorithm on the network, with its segments and dims.
TEST(PerfOnNetworks, TheEnginesChoiceIsTheNetworks) {
  for (const std::string more :
       {"broadcast --bytes 8 --network scale_out", "broadcast --bytes 8K --network scale_out",
        "all_reduce --bytes 64K --dims 2x2x2 --network torus"}) {
    const json choice = json_of("choose " + more + " --json")["choice"];
    std::string line = more.substr(more.find(' '));
    const std::string size = words_of(line)[1];
    line.replace(line.find("--bytes"), 7, "-e " + size + " -b");
    const json report = on_network(more.substr(0, more.find(' ')), line);
    const json& row = report.at("results").at(0);
    EXPECT_EQ(row.at("algorithm"), choice.at("algorithm"));
    EXPECT_EQ(row.at("out_of_place").at("time").get<double>(),
              choice.at("time").get<double>() * 1e6);
    EXPECT_FALSE(report.contains("crossovers"));
  }
}

TEST(PerfOnNetworks, ChecksEveryCollectiveAndPrintsBothTimes) {
  const ScopedEnv variable("RANKINE_NETWORK", "scale_up");  // an option counts more
  for (const Collective collective : all_collectives()) {
    const std::string name(name_of(collective));
    if (algorithm_names(collective).empty()) continue;
    const std::string table = output_of("perf " + name + " -n 1 -m 1 -w 2 -t 3 -b 4K -e 4K " +
                                        "--algo all --network two_level");
    EXPECT_TRUE(has(table, "    eta    wall") && has(table, "# Out of bounds values : 0 OK"));
    EXPECT_TRUE(has(table, "# network   : two_level")) << table;
  }
}

TEST(PerfOnNetworks, TellsAndDrawsCrossovers) {
  const std::string file = file_with("regimes.svg", "");
  const json report =
      on_network("all_reduce",
                 "--algo ring,recursive_doubling -b 1K -e 4M -f 64 --network scale_out,plain "
                 "--plot " +
                     file);
  // 14 (alpha + M beta / 8) = 3 (alpha + M beta) at M = 8.8 alpha / beta.
  const double sizes[] = {1024, 8.8 * 75'000, 1024, 8.8 * 100'000};
  ASSERT_EQ(report.at("crossovers").size(), 4U) << report.at("crossovers");
  for (std::size_t i = 0; i < 4; ++i) {
    const json& one = report.at("crossovers")[i];
    EXPECT_EQ(one.at("network"), i < 2 ? "scale_out" : "plain");
    EXPECT_EQ(one.at("algorithm"), i % 2 == 0 ? "recursive_doubling" : "ring");
    EXPECT_NEAR(one.at("size").get<double>(), sizes[i], 1e-3);
  }
  EXPECT_TRUE(is_well_formed(text_of(file)));
  EXPECT_TRUE(has(text_of(file), ">645 KiB<") && has(text_of(file), ">859 KiB<"));
}

TEST(Peak, IsWhatAllPortsCarryInOneDirection) {
  for (const auto& [name, ranks, peak] : {std::tuple("scale_out", 8, 50e9),
                                          {"torus", 16, 400e9},
                                          {"scale_out_2", 8, 100e9},
                                          {"two_level", 16, 450e9}}) {
    EXPECT_DOUBLE_EQ(*peak_of(*wired_for(find_regime(name)->fabric, ranks)), peak);
  }
  Fabric single = find_regime("two_level")->fabric;
  single.group = 1;
  EXPECT_DOUBLE_EQ(*peak_of(single), 50e9);
  single = {};
  EXPECT_EQ(peak_of(single), std::nullopt);  // no limit
  EXPECT_EQ(eta_text(eta_of(1, std::nullopt)), "-");
  EXPECT_EQ(eta_text(eta_of(25e9, 50e9)), "50.0%");
  const json report = report_of("-b 64K -e 64K --peak 50GB/s");
  const json& one = report.at("results")[0].at("out_of_place");
  EXPECT_DOUBLE_EQ(one.at("eta").get<double>(), one.at("bus_bw").get<double>() / 50);
}

}  // namespace
}  // namespace rankine::tools
