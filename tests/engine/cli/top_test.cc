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

// Calls f(member) on the ranks `here` of two, which are threads or, with a name, of processes.
void play(CommunicatorOptions options, const std::vector<Rank>& here,
          const std::function<void(Member&)>& f) {
  if (!options.name.empty()) {
    options.rank = here[0];
    options.more_ranks = std::span(here).subspan(1);
  }
  const auto communicator = Communicator::create(options).value();
  std::vector<std::thread> threads;
  for (const Rank r : here) {
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
  {
    const CallSite site(me, "pipe");
    Request sum;  // rank 0's is under way during its messages
    if (me.rank() == 0) sum = me.async().all_reduce(std::span(all)).value();
    for (const Rank sender : {0, 1}) {
      const CallSite inner(me, "messages");
      const Status status = me.rank() == sender ? me.send(std::span<const float>(x), 1 - sender)
                                                : me.recv(std::span(x), sender);
      status.throw_if_error();
    }
    if (me.rank() == 1) sum = me.async().all_reduce(std::span(all)).value();
    sum.wait().throw_if_error();
  }
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

// A child process that plays both ranks until it is killed, or two processes. They have made
// their calls.
struct Server {
  explicit Server(const std::string& name, bool times = true, bool is_two = false) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const auto serve = [&](const std::vector<Rank>& here) {
      play({.ranks = 2, .record_times = times, .name = name}, here, [&](Member& me) {
        make_calls(me);
        me.barrier().throw_if_error();
        if (me.rank() == 0) static_cast<void>(!write(ends[1], "!", 1));
        for (;;) pause();
      });
      return 0;
    };
    if (is_two) other = ChildProcess([&] { return serve({1}); });
    child = ChildProcess([&] {
      return serve(is_two ? std::vector<Rank>{0} : std::vector<Rank>{0, 1});
    });
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "the server has ended";
    close(ends[0]);
  }
  ChildProcess child, other;
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
    ASSERT_EQ(all[0]["sites"].size(), 7u) << all.dump(1);
    struct Row {
      std::string site, call;
      int calls;
    };
    for (const auto& [site, call, calls] :
         {Row{"attention", "all_reduce", 5}, Row{"norm \"1\"", "barrier", 1},
          Row{"norm \"1\"", "all_reduce", 1}, Row{"pipe", "all_reduce", 1},
          Row{"messages", "send_recv", 2}, Row{"", "all_gather", 3}, Row{"", "barrier", 1}}) {
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
    EXPECT_EQ(count_of(metrics, "\nrankine_calls_total{"), 14u) << metrics;
    const std::string file = testing::TempDir() + "/calls.json";
    output_of("top " + target + " --trace " + file);
    int calls = 0;
    double end = 0;
    const Json trace = Json::parse(text_of(file));
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X" || event["pid"] != 0) continue;
      ++calls;
      // The call at "pipe" is under way during messages.
      EXPECT_EQ(event["ts"] >= end, event["name"] != "pipe")
          << "calls of a rank follow one another";
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
    EXPECT_EQ(calls, 14);
  }
}

// Rank 1 stays away: the JSON and the table name rank, site and awaited rank. When it has come, the
// time counts as rank 0's wait.
void show_who_waits(const std::string& call, const std::function<Status(Member&)>& make) {
  const std::string line = "top " + std::to_string(getpid()) + " --once";
  std::atomic<bool> begun{false}, seen{false};
  std::thread watcher([&] {
    begun.wait(false);
    for (double first = 0, last = 0; last - first < 0.15;) {
      const Json all = json_of(line + " --json");
      const Json& now = all[0]["under_way"];
      if (now.empty() || now[0]["waits_for"].is_null()) continue;
      EXPECT_EQ(now.size(), 1u);
      EXPECT_EQ(now[0]["rank"], 0);
      EXPECT_EQ(now[0]["waits_for"], 1);
      EXPECT_EQ(now[0]["site"], "attention");
      EXPECT_EQ(now[0]["call"], call);
      last = now[0]["seconds"];
      if (first == 0) first = last;
    }
    const std::string text = output_of(line);
    EXPECT_TRUE(has(text, "rank 0 has been in " + call + " at attention for ")) << text;
    EXPECT_TRUE(has(text, " and waits for rank 1\n")) << text;
    seen = true;
  });
  play({.ranks = 2, .record_times = true}, {0, 1}, [&](Member& me) {
    me.barrier().throw_if_error();
    if (me.rank() == 0) begun = true;
    begun.notify_all();
    while (me.rank() == 1 && !seen) std::this_thread::yield();
    {
      const CallSite site(me, "attention");
      make(me).throw_if_error();
    }
    me.barrier().throw_if_error();
    if (me.rank() == 1) return;
    const Json all = json_of(line + " --json");
    const Json& sum = site_of(all[0], "attention", call);
    EXPECT_EQ(sum["slowest_rank"], 1);
    EXPECT_GE(sum["ranks"][0]["waited_seconds"], 0.15);
    EXPECT_LT(sum["ranks"][1]["waited_seconds"], sum["ranks"][0]["waited_seconds"]);
  });
  watcher.join();
}

TEST(Top, ShowsWhoWaitsForWhom) {
  std::vector<float> x(16);
  const auto mine = [&](Member& me) { return std::span(x).subspan(me.rank() == 0 ? 0 : 8, 8); };
  show_who_waits("all_reduce", [&](Member& me) { return me.all_reduce(mine(me)); });
  show_who_waits("send_recv", [&](Member& me) {
    return me.rank() == 0 ? me.recv(mine(me), 1) : me.send(mine(me), 0);
  });
}

// Without records, too. The first call is made without a site.
void expect_errors_name_sites(const std::function<Status(Member&, const CallOptions&)>& make) {
  std::atomic<bool> left{false}, ended{false};
  Status error;
  play({.ranks = 2}, {0, 1}, [&](Member& me) {
    make(me, {}).throw_if_error();
    const CallSite site(me, me.rank() == 0 ? "attention" : "mlp");
    if (me.rank() == 1) {
      left = true;
      while (!ended) std::this_thread::yield();
      return;
    }
    while (!left) std::this_thread::yield();
    error = make(me, {.timeout = std::chrono::milliseconds(50)});
    ended = true;
  });
  EXPECT_EQ(error.code(), Code::timeout);
  for (const char* part : {"rank 0 waits for rank 1", "call 2, at call site attention",
                           "rank 1 is in no collective, at call site mlp"}) {
    EXPECT_TRUE(has(error.text(), part)) << error.text();
  }
}

TEST(Top, ErrorsNameTheCallSites) {
  std::vector<float> x(16);
  const auto mine = [&](Member& me) { return std::span(x).subspan(me.rank() == 0 ? 0 : 8, 8); };
  expect_errors_name_sites([&](Member& me, const CallOptions& options) {
    return me.all_reduce(mine(me), ReduceOp::sum, options);
  });
  expect_errors_name_sites([&](Member& me, const CallOptions& options) {
    return me.rank() == 0 ? me.recv(mine(me), 1, options) : me.send(mine(me), 0, options);
  });
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
  EXPECT_EQ(count_of(rest, "attention"), 1u) << "later tables have later calls only: " << rest;
}

TEST(Top, RefusesTargetsWithoutRecords) {
  const std::string name = fresh_name();
  const Server server(name, false, true), other(name + ".2");
  struct Case {
    std::string line, part;
  };
  for (const auto& [line, part] :
       {Case{"top " + name, "this communicator of process "},
        Case{"top " + name, " records no times; make it with record_times"},
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
  CallTimer timer{.figures = &calls};
  constexpr int kNames = 300;
  for (int i = 0; i < kNames; ++i) {
    for (const std::uint64_t collective : {0, 1}) {
      const std::uint32_t site = calls.site_of(SharedText("site " + std::to_string(i)));
      timer.begin(site, collective, 10);
      timer.end(collective, 20);
    }
  }
  const Json all = json_of("top " + std::to_string(getpid()) + " --once --json");
  std::uint64_t sum = 0;
  for (const Json& site : all[0]["sites"]) sum += site["ranks"][0]["calls"].get<std::uint64_t>();
  EXPECT_EQ(sum, 2u * kNames);
  EXPECT_EQ(site_of(all[0], "(other sites)", "various")["ranks"][0]["calls"], 2 * kNames - 191);
  EXPECT_EQ(SharedText(std::string(70, 'x')).get(), std::string(63, 'x'));
  EXPECT_EQ(SharedText(std::string(62, 'x') + "\xc3\xa9").get(), std::string(62, 'x'));
}

}  // namespace
}  // namespace rankine::tools
