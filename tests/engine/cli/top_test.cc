// `rankine top` reads the call sites of a running program: figures that are exact, a rank that
// hangs, a program that ends meanwhile, and targets without records.

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/processes/call_sites.h"
#include "engine/base/child_process.h"
#include "engine/base/numbers.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/cli/tool_fixtures.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;
using testing_processes::fresh_name;

// The ranks of one process under a name, or of threads without a name.
CommunicatorOptions options_of(const std::string& name, bool times) {
  static constexpr Rank kMore[] = {1};
  CommunicatorOptions options{.ranks = 2, .record_times = times};
  if (!name.empty()) {
    options.rank = 0;
    options.name = name;
    options.more_ranks = kMore;
  }
  return options;
}

// Calls f(member) on both ranks; throws if the communicator cannot be made.
void play(const CommunicatorOptions& options, const std::function<void(Member&)>& f) {
  const auto communicator = Communicator::create(options).value();
  std::vector<std::thread> threads;
  for (const Rank r : {0, 1}) {
    threads.emplace_back([&, r] { f(*communicator->join(r).value()); });
  }
  for (std::thread& thread : threads) thread.join();
}

void make_calls(Member& me) {
  std::vector<float> x(8), all(16);
  {
    const CallSite site(me, "attention");
    for (int i = 0; i < 5; ++i) me.all_reduce(std::span(x)).throw_if_error();
    const CallSite inner(me, "norm\n\"1\"");
    me.barrier().throw_if_error();
    Request kept = me.async().all_reduce(std::span(x)).value();
    static_cast<void>(me.set_call_site("elsewhere"));
    kept.wait().throw_if_error();
  }
  EXPECT_EQ(me.call_site(), "");
  for (int i = 0; i < 3; ++i)
    me.all_gather(std::span<const float>(x), std::span(all)).throw_if_error();
}

const Json& site_of(const Json& figures, const std::string& site, const std::string& call) {
  static const Json none;
  for (const Json& one : figures["sites"]) {
    if (one["site"] == site && one["call"] == call) return one;
  }
  ADD_FAILURE() << site << ", " << call << " is missing in " << figures.dump(1);
  return none;
}

// A child process that plays both ranks until it is killed; ready when it has printed a line.
struct Server {
  explicit Server(const std::string& name, bool times = true) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child = ChildProcess([&]() -> int {
      play(options_of(name, times), [&](Member& me) {
        make_calls(me);
        me.barrier().throw_if_error();
        if (me.rank() == 0) static_cast<void>(!write(ends[1], "!", 1));
        for (;;) pause();
      });
      return 0;
    });
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "the server has ended";
    close(ends[0]);
  }
  ChildProcess child;
};

TEST(Top, CountsTheCallsOfEachSite) {
  for (const std::string& name : {std::string(), fresh_name()}) {
    const Server server(name);
    const std::string target = name.empty() ? std::to_string(server.child.id()) : name;
    const Json all = json_of("top " + target + " --once --json");
    ASSERT_EQ(all.size(), 1u) << all.dump(1);
    EXPECT_EQ(all[0]["ranks"], 2);
    EXPECT_EQ(all[0]["communicator"], name.empty() ? "process " + target : name);
    EXPECT_EQ(all[0]["under_way"], Json::array());
    ASSERT_EQ(all[0]["sites"].size(), 5u) << all.dump(1);
    struct Row {
      std::string site, call;
      int calls;
    };
    for (const auto& [site, call, calls] :
         {Row{"attention", "all_reduce", 5}, Row{"norm \"1\"", "barrier", 1},
          Row{"norm \"1\"", "all_reduce", 1}, Row{"", "all_gather", 3}, Row{"", "barrier", 1}}) {
      const Json& ranks = site_of(all[0], site, call)["ranks"];
      ASSERT_EQ(ranks.size(), 2u);
      for (const Json& rank : ranks) {
        EXPECT_EQ(rank["calls"], calls) << site << ", " << call;
        const double took = rank["seconds"], waited = rank["waited_seconds"];
        EXPECT_GT(took, 0);
        EXPECT_GE(waited, 0);
        EXPECT_LE(waited, took);
        EXPECT_GT(rank["p50"], 0);
        EXPECT_LE(rank["p50"], rank["p99"]);
        EXPECT_LE(rank["p99"], took * 1.07) << "of one call, to a sixteenth";
      }
    }
    const std::string text = output_of("top " + target + " --once");
    for (const char* part : {"2 ranks\n", "attention", "slowest rank", " %"}) {
      EXPECT_TRUE(has(text, part)) << text;
    }
    const std::string metrics = output_of("top " + target + " --metrics --once");
    EXPECT_TRUE(has(metrics, "site=\"norm \\\"1\\\"\",call=\"barrier\",rank=\"1\"} 1\n"))
        << metrics;
    EXPECT_EQ(count_of(metrics, "\nrankine_calls_total{"), 10u) << metrics;
    const std::string file = testing::TempDir() + "/calls.json";
    output_of("top " + target + " --trace " + file);
    int calls = 0;
    double end = 0;
    for (const Json& event : Json::parse(text_of(file))["traceEvents"]) {
      if (event["ph"] != "X" || event["pid"] != 0) continue;
      ++calls;
      EXPECT_GE(event["ts"], end) << "calls of a rank follow one another";
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
    EXPECT_EQ(calls, 11);
  }
}

// Rank 1 stays away: the table, the JSON and at last the error name rank, site and awaited rank.
TEST(Top, ShowsWhoWaitsForWhom) {
  for (const bool times : {true, false}) {
    std::atomic<bool> seen{false};
    std::thread watcher;
    if (times) {
      watcher = std::thread([&] {
        for (;;) {
          const Json all = json_of("top " + std::to_string(getpid()) + " --once --json");
          const Json& now = all[0]["under_way"];
          if (now.empty() || now[0]["waits_for"].is_null() || now[0]["seconds"] < 0.2) continue;
          EXPECT_EQ(now.size(), 1u);
          EXPECT_EQ(now[0]["rank"], 0);
          EXPECT_EQ(now[0]["waits_for"], 1);
          EXPECT_EQ(now[0]["site"], "attention");
          EXPECT_EQ(now[0]["call"], "all_reduce");
          break;
        }
        EXPECT_TRUE(has(output_of("top " + std::to_string(getpid()) + " --once"),
                        "rank 0 has been in all_reduce at attention for "));
        seen = true;
      });
    }
    CommunicatorOptions options = options_of("", times);
    options.timeout = std::chrono::milliseconds(times ? 60'000 : 100);
    Status error;
    play(options, [&](Member& me) {
      me.barrier().throw_if_error();
      const CallSite site(me, me.rank() == 0 ? "attention" : "mlp");
      std::vector<float> x(8);
      if (me.rank() == 0) {
        error = me.all_reduce(std::span(x));
        seen = true;
        return;
      }
      while (!seen) std::this_thread::yield();
      if (times) me.communicator().abort(Status(Code::timeout, "seen"));
    });
    if (watcher.joinable()) watcher.join();
    if (times) continue;
    EXPECT_EQ(error.code(), Code::timeout);
    for (const char* part : {"rank 0 waits for rank 1", "call 2, at call site attention",
                             "rank 1 is in no collective, at call site mlp"}) {
      EXPECT_TRUE(has(error.text(), part)) << error.text();
    }
  }
}

TEST(Top, EndsWithTheProgram) {
  const std::string name = fresh_name();
  Server server(name);
  ToolProcess tool({"top", name, "--every", "20ms"});
  EXPECT_TRUE(has(tool.line(), "2 ranks"));
  server.child.end();
  const std::string rest = tool.rest(Spawned::kPatience);
  EXPECT_EQ(tool.wait(), 0);
  EXPECT_TRUE(has(tool.err(), "has ended")) << tool.err();
  EXPECT_FALSE(has(rest, "-")) << "no figure is below 0: " << rest;
}

TEST(Top, RefusesTargetsWithoutRecords) {
  const std::string name = fresh_name();
  const Server server(name, false), other(name + ".2");
  struct Case {
    std::string line, part;
  };
  for (const auto& [line, part] :
       {Case{"top " + name, "this communicator of process " + std::to_string(server.child.id()) +
                                " records no times; make it with record_times"},
        Case{"top nobody", "target is 'nobody'; allowed are"}, Case{"top nobody", name + ".2"},
        Case{"top " + std::to_string(server.child.id()), "RANKINE_FLIGHT_TIMES=1"},
        Case{"top", "target is required"}, Case{"top " + name + ".2 --every 0s", "--every is '0s'"},
        Case{"top " + name + ".2 --json --metrics", "--metrics"}}) {
    const Captured run = run_line(line);
    EXPECT_EQ(run.exit, 2) << line;
    EXPECT_TRUE(has(run.err, part)) << line << ": " << run.err;
  }
}

// Processes of other users: their descriptors cannot be listed. A folder stands for /proc, because
// a test has one user.
TEST(Top, TellsProcessesThatItMayNotRead) {
  const std::string folder = new_folder();
  for (const char* process : {"17", "18", "text"}) {
    std::filesystem::create_directories(folder + "/" + process);
  }
  std::filesystem::create_directories(folder + "/18/fd");
  std::ofstream(folder + "/17/fd") << "no folder";
  const auto found = find_call_sites("job", folder).value();
  EXPECT_EQ(found.others, std::vector<std::int32_t>{17});
  EXPECT_TRUE(found.files.empty());
  const auto one = find_call_sites("17", folder);
  ASSERT_FALSE(one.ok());
  EXPECT_TRUE(has(one.status().text(), "process 17 cannot be read")) << one.status().text();
  EXPECT_TRUE(has(one.status().text(), "run this as the user of that process"));
  EXPECT_FALSE(find_call_sites("job", folder + "/none").ok());
}

// A file with another layout, or a cut one, is no record.
TEST(Top, TrustsNoFile) {
  const auto made = CallSiteFile::make("job", "", 2, std::vector<Rank>{0, 1}).value();
  std::string whole;
  for (const FoundCallSites& all : {find_call_sites(std::to_string(getpid())).value()}) {
    ASSERT_EQ(all.files.size(), 1u);
    EXPECT_NE(all.files[0].read(1), nullptr);
    EXPECT_EQ(all.files[0].read(1)->rank.load(), 1);
    whole.assign(reinterpret_cast<const char*>(&all.files[0].head()), sizeof(CallSiteHead));
  }
  for (const std::size_t at : {std::size_t{0}, offsetof(CallSiteHead, layout), whole.size()}) {
    std::string text = whole;
    if (at < text.size()) text[at] ^= 1;
    EXPECT_FALSE(CallSiteReader(file_in_memory(text)).is_valid()) << at;  // the last one is cut
  }
}

TEST(Top, PutsTimesIntoClasses) {
  int before = -1;
  for (std::int64_t ns = 0; ns < (std::int64_t{1} << 41); ns += 1 + ns / 50) {
    const int now = TimeClasses::of(ns);
    EXPECT_TRUE(now == before || now == before + 1) << ns;
    if (ns < std::int64_t{1} << 40) {
      EXPECT_NEAR(TimeClasses::middle(now), static_cast<double>(ns),
                  std::max(0.5, static_cast<double>(ns) / 15));
    }
    before = now;
  }
  EXPECT_EQ(before, TimeClasses::kClasses - 1);
  EXPECT_EQ(TimeClasses::of(-5), 0);
}

// More sites than a rank has room for.
TEST(Top, CountsTheSitesThatDoNotFitTogether) {
  const auto file = CallSiteFile::make("", "", 1, std::vector<Rank>{0}).value();
  RankCalls& calls = file->calls(0);
  constexpr int kNames = 300;
  for (int i = 0; i < kNames; ++i) {
    for (const std::uint64_t collective : {0, 1}) {
      const std::uint32_t site = calls.site_of(SharedText("site " + std::to_string(i)));
      calls.begin(site, collective, 10);
      calls.end(collective, 20);
    }
  }
  const Json all = json_of("top " + std::to_string(getpid()) + " --once --json");
  std::uint64_t sum = 0;
  for (const Json& site : all[0]["sites"]) sum += site["ranks"][0]["calls"].get<std::uint64_t>();
  EXPECT_EQ(sum, 2u * kNames);
  EXPECT_EQ(site_of(all[0], "(other sites)", "various")["ranks"][0]["calls"].get<int>() % 2, 0);
  EXPECT_EQ(SharedText(std::string(70, 'x')).get(), std::string(63, 'x'));
  EXPECT_EQ(SharedText(std::string(62, 'x') + "\xc3\xa9").get(), std::string(62, 'x'));
}

}  // namespace
}  // namespace rankine::tools
