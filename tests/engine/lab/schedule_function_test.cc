// Tests of rankine check with functions, of the programs that it runs, and of written schedules.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/cli/console.h"
#include "engine/cli/judge.h"
#include "engine/lab/page/answers.h"
#include "engine/read/verify.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"

// rankine check of functions in Python and C++: it judges them for every N, and an error names the
// file, N and the line.

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kRing =
    "collective = 'all_gather'\n"
    "def schedule(n):\n"
    "    for k in range(n - 1):\n"
    "        yield [(r, (r + 1) % n, (r - k) % n) for r in range(n)]\n";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Captured check(const std::string& file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"check", file});
  return run_captured(more);
}

// Checks that the process with the number in `file` has ended.
void expect_gone(const std::string& file) {
  pid_t process = 0;
  std::ifstream(file) >> process;
  ASSERT_GT(process, 0) << file;
  EXPECT_EQ(kill(process, 0), -1) << file;
}

TEST(ScheduleFunctions, AreProvedForEveryNumberOfRanks) {
  const std::string file = file_with("ring.py", kRing);
  const Captured all = check(file);
  EXPECT_EQ(all.exit, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("\nproved for N = 1-17\n"));
  const Captured some = check(file, {"--ranks", "3,8..9", "--json"});
  EXPECT_EQ(some.exit, 0) << some.err;
  std::istringstream lines(some.out);
  std::vector<int> ranks;
  for (std::string line; std::getline(lines, line);) {
    const json one = json::parse(line);
    ranks.push_back(one["ranks"]);
    EXPECT_TRUE(one["proved"]);
    // The verdict equals that of the schedule's text.
    const Captured text = run_captured({"show", "all_gather", "--algo", "ring", "--ranks",
                                        std::to_string(ranks.back()), "--text"});
    const Captured judged = check(file_with("ring.txt", text.out), {"--json"});
    EXPECT_EQ(one, json::parse(judged.out));
  }
  EXPECT_EQ(ranks, (std::vector{3, 8, 9}));
}

TEST(ScheduleFunctions, AreWrongAtTheLineThatMakesTheTransfer) {
  const Captured python =
      check(file_with("late.py", replaced(kRing, "(r - k)", "(r - 2 * k)")), {"--ranks", "1..4"});
  EXPECT_EQ(python.exit, 1) << python.err;
  EXPECT_THAT(python.out, HasSubstr("\nwrong for N = 3-4; proved for N = 1-2\n"
                                    "N = 3: not_there at round 1, rank 0, block 1\n"));
  EXPECT_THAT(python.out, HasSubstr("\n  line 4: 0 -> 1: 1\n"));
  const Captured cxx = check(file_with("once.cc",
                                       "#include \"schedule_to_check.h\"\n"
                                       "Schedule schedule(int n) {\n"
                                       "  Schedule s{\"reduce\", n};\n"
                                       "  s.root = n - 1;\n"
                                       "  for (int r = 0; r < 3 && r + 1 < n; ++r) {\n"
                                       "    s.round();\n"
                                       "    s.add(r, n - 1, 0);\n"
                                       "  }\n"
                                       "  if (n == 3) {\n"
                                       "    s.round();\n"
                                       "    s.add(0, 2, {0});\n"
                                       "  }\n"
                                       "  return s;\n"
                                       "}\n"),
                             {"--ranks", "1..5"});
  EXPECT_EQ(cxx.exit, 1) << cxx.err;
  EXPECT_THAT(cxx.out, HasSubstr("\nwrong for N = 3,5; proved for N = 1-2,4\n"
                                 "N = 3: double_count at round 2, rank 2, block 0\n"));
  EXPECT_THAT(cxx.out, HasSubstr("\n  line 11: 0 -> 2: 0 +\n"));
}

TEST(ScheduleFunctions, SayWhatTheyMean) {
  // All members of a text's first line, and transfers of several blocks, on planes, with additions.
  const Captured captured = check(
      file_with(
          "whole.py",
          "print('for its author')\n"
          "collective = 'all_reduce'\nplanes = 2\nblocks = lambda n: 2 * n\nother_bits = True\n"
          "def schedule(n):\n"
          "  if n == 1: return []\n"
          "  here = range(2 * n)\n"
          "  return [[{'from': 0, 'to': 1, 'what': list(here), 'where_plane': 1},\n"
          "           {'from': 1, 'to': 0, 'what': list(here), 'act': 'reduce'}],\n"
          "          [{'from': 1, 'to': 1, 'what': list(here), 'what_plane': 1,\n"
          "            'act': 'reduce'}]]\n"),
      {"--ranks", "1,2"});
  EXPECT_EQ(captured.exit, 0) << captured.out << captured.err;
  const Captured rooted =
      check(file_with("rooted.py",
                      "collective = 'broadcast'\nroot = lambda n: n // 2\n"
                      "def schedule(n):\n"
                      "  return [[(n // 2, r, [0])] for r in range(n) if r != n // 2]\n"));
  EXPECT_EQ(rooted.exit, 0) << rooted.out << rooted.err;
}

TEST(ScheduleFunctions, ErrorsNameFileRanksAndLine) {
  const std::string head = "collective = 'all_gather'\ndef schedule(n):\n";
  const struct {
    std::string text, said;
  } kCases[] = {
      {"", "it.py, at N = 1: a name and a function are needed"},
      {head, "it.py, at N = 1: line 2: "},
      {head + "  return [[(0, 1, 0)]] if n == 2 else [[]] * (n - 3 and 1 // (n - 1))\n",
       "it.py, at N = 1: line 3: ZeroDivisionError: "},
      {head + "  yield [(0, 1.5, 0)]\n", "it.py, at N = 1: line 3: (0, 1.5, 0) is no transfer"},
      {head + "  yield [(0, 0, 0, '-')]\n", "it.py, at N = 1: line 3: (0, 0, 0, '-') is no tr"},
      {head + "  yield [(0, n, 0)]\n", "it.py, at N = 1: line 3: round 0, transfer 0: to is 1"},
      {head + "  return 5\n", "it.py, at N = 1: schedule(1) is 5"},
      {"collective = 'gather_all'\ndef schedule(n): return []\n", "it.py, at N = 1: collective"},
  };
  for (const auto& one : kCases) {
    const Captured captured = check(file_with("it.py", one.text));
    EXPECT_EQ(captured.exit, 2) << one.text;
    EXPECT_THAT(captured.err, HasSubstr(one.said)) << one.text;
  }
  const std::string cxx = "#include \"schedule_to_check.h\"\n#include <stdexcept>\n";
  const Captured broken =
      check(file_with("it.cc", cxx + "Schedule schedule(int n) { return n }\n"));
  EXPECT_EQ(broken.exit, 2);
  EXPECT_THAT(broken.err, HasSubstr("it.cc does not compile:\n"));
  EXPECT_THAT(broken.err, HasSubstr("it.cc:3:"));
  const Captured thrown =
      check(file_with("it.cc", cxx + "Schedule schedule(int n) {\n"
                                     "  if (n == 2) throw std::runtime_error(\"two\");\n"
                                     "  return {\"broadcast\", 1};\n}\n"),
            {"--ranks", "1,2,3"});
  EXPECT_EQ(thrown.exit, 2);
  EXPECT_THAT(thrown.err, HasSubstr("it.cc, at N = 2: two\n"));
  const Captured fallen =
      check(file_with("it.cc", cxx + "#include <csignal>\nSchedule schedule(int) {\n"
                                     "  std::raise(SIGKILL);\n  return {\"broadcast\", 1};\n}\n"));
  EXPECT_THAT(fallen.err, HasSubstr("it.cc, at N = 1: Killed\n"));
  const Captured other =
      check(file_with("it.cc", cxx + "Schedule schedule(int) { return {\"broadcast\", 1}; }\n"));
  EXPECT_EQ(other.exit, 2);
  EXPECT_THAT(other.err, HasSubstr("it.cc, at N = 2: the schedule is one of 1 rank\n"));
  EXPECT_EQ(check(testing::TempDir() + "/nowhere.py").exit, 3);
  EXPECT_EQ(check(file_with("it.txt", "broadcast 1\n"), {"--ranks", "3"}).exit, 2);
  EXPECT_EQ(check(file_with("it.py", kRing), {"--ranks", "0"}).exit, 2);
}

TEST(ScheduleFunctions, LeaveNothingBehind) {
  const auto temporary = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(testing::TempDir())) {
      names.insert(entry.path().filename());
    }
    return names;
  };
  const std::string file = file_with("ring.py", kRing);
  const auto before = temporary();
  setenv("TMPDIR", testing::TempDir().c_str(), 1);
  EXPECT_EQ(check(file, {"--ranks", "2"}).exit, 0);
  unsetenv("TMPDIR");
  EXPECT_EQ(temporary(), before);
}

// A signal ends a function that never returns, and its folder and its process are removed.
TEST(ScheduleFunctions, AreStoppedBySignals) {
  std::string folder = testing::TempDir() + "/stopped_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string started = folder + ".started";
  const std::string file = file_with(
      "endless.py", fmt::format("import os\n"
                                "collective = 'all_gather'\n"
                                "def schedule(n):\n"
                                "    with open('{0}.part', 'w') as f: f.write(str(os.getpid()))\n"
                                "    os.rename('{0}.part', '{0}')\n"
                                "    while True: pass\n",
                                started));
  setenv("TMPDIR", folder.c_str(), 1);
  std::jthread interrupts([&started](const std::stop_token& given_up) {
    while (!std::filesystem::exists(started)) {
      if (given_up.stop_requested()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(getpid(), SIGINT);
  });
  const Captured run = check(file, {"--ranks", "2"});
  interrupts.request_stop();
  interrupts.join();
  unsetenv("TMPDIR");
  EXPECT_EQ(run.exit, 130);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "rankine check: interrupted\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  expect_gone(started);
  const InterruptGuard forgets;  // clears the signal for the tests that follow
}

// A folder to run in, and limits that no test reaches by accident.
const std::string kHere = testing::TempDir();
constexpr std::size_t kPlenty = std::size_t{4} << 30;
ProgramLimits limits_of(int seconds, std::size_t bytes = 1000, std::size_t memory = kPlenty) {
  return {std::chrono::seconds{seconds}, bytes, memory};
}
Result<ProgramEnd> run_shell(const std::string& text, const ProgramLimits& limits) {
  return run_program({.words = {"sh", "-c", text}, .folder = kHere}, limits);
}

TEST(RunProgram, HasLimits) {
  const auto run = [](std::vector<std::string> words, const ProgramLimits& limits) {
    return run_program({.words = std::move(words), .folder = kHere}, limits).status();
  };
  EXPECT_THAT(run({"sleep", "100"}, limits_of(1)).text(), HasSubstr("within 1 s"));
  EXPECT_THAT(run({"yes"}, limits_of(60)).text(), HasSubstr("more than 1000 bytes"));
  EXPECT_EQ(run({"no_such_program"}, limits_of(60)).code(), Code::system);
  EXPECT_THAT(run({"no_such_program"}, limits_of(60)).text(),
              HasSubstr("'no_such_program' cannot be run: No such file"));
  const auto hungry =
      run_program({.words = {"python3", "-c", "x = bytearray(1 << 30)"}, .folder = kHere},
                  limits_of(600, 10000, std::size_t{256} << 20));
  ASSERT_TRUE(hungry.ok()) << hungry.status().text();
  EXPECT_THAT(hungry->err, HasSubstr("MemoryError"));
}

// A program that closes its output must still be waited for.
TEST(RunProgram, EndsWithoutOutputToWaitFor) {
  EXPECT_THAT(run_shell("exec >&- 2>&-; sleep 1000", limits_of(1)).status().text(),
              HasSubstr("within 1 s"));
  const auto soon = run_shell("echo out; exec >&- 2>&-; exit 3", limits_of(600));
  ASSERT_TRUE(soon.ok()) << soon.status().text();
  EXPECT_EQ(soon->out, "out\n");
  EXPECT_EQ(soon->failure, "exit status 3");
}

TEST(RunProgram, EndsWithAllOfItsProcesses) {
  const std::string child = kHere + "/child", escaped = kHere + "/escaped";
  const std::string sleepers = "sleep 1000 & echo $! > " + child + "; setsid sh -c 'echo $$ > " +
                               escaped + "; exec sleep 1000' & until [ -s " + escaped +
                               " ]; do :; done; ";
  // The sleepers hold the output open.
  const auto left = run_shell(sleepers + "echo out", limits_of(600));
  ASSERT_TRUE(left.ok()) << left.status().text();
  EXPECT_EQ(left->out, "out\n");
  expect_gone(child);
  expect_gone(escaped);
  std::filesystem::remove(child);
  std::filesystem::remove(escaped);
  EXPECT_FALSE(run_shell(sleepers + "yes", limits_of(600)).ok());
  expect_gone(child);
  expect_gone(escaped);
}

TEST(RunProgram, HasNoVariableButThePathAndNoFileOfOurs) {
  const ScopedEnv secret("SECRET_TOKEN", "x");
  std::FILE* const file = std::fopen("/dev/null", "r");
  ASSERT_NE(file, nullptr);
  fcntl(fileno(file), F_SETFD, 0);  // would be inherited by default
  const auto run = run_program({.words = {"env"}, .folder = kHere}, limits_of(600, 10000));
  EXPECT_EQ(run->out, fmt::format("PATH={}\n", getenv("PATH")));
  const auto open =
      run_shell("test -e /proc/self/fd/" + std::to_string(fileno(file)) + " && echo open; true",
                limits_of(600));
  EXPECT_THAT(open->out, testing::Not(HasSubstr("open")));
  std::fclose(file);
}

TEST(RunProgram, EndsWithASignal) {
  {
    const InterruptGuard guard;
    raise(SIGINT);
    EXPECT_EQ(run_shell("sleep 100", limits_of(5)).status().code(), Code::aborted);
  }
  const InterruptGuard forgets;
}

TEST(RunProgram, TellsWhatItSaidAndHowItEnded) {
  const auto both = run_shell("echo out; echo err >&2; cat; exit 3", limits_of(60));
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->out, "out\n");
  EXPECT_EQ(both->err, "err\n");
  EXPECT_EQ(both->failure, "exit status 3");
  EXPECT_EQ(run_shell("exit 0", limits_of(60))->failure, "");
}

TEST(ScheduleFunctions, HaveLimits) {
  const std::string sleeps =
      "import os, time\n"
      "collective = 'all_gather'\n"
      "def schedule(n):\n"
      "  os.close(1); os.close(2)\n"
      "  time.sleep(1000)\n";
  const Captured late = check(file_with("late.py", sleeps), {"--seconds", "1"});
  EXPECT_EQ(late.exit, 2);
  EXPECT_THAT(late.err, HasSubstr("late.py, at N = 1: no end within 1 s; --seconds sets its time"));
  const Captured large = check(file_with("large.py",
                                         "collective = 'all_gather'\n"
                                         "def schedule(n): return bytearray(1 << 30)\n"),
                               {"--memory", "256M"});
  EXPECT_EQ(large.exit, 2);
  EXPECT_THAT(large.err, HasSubstr("MemoryError"));
  EXPECT_THAT(large.err, HasSubstr("it has 256 MiB, and --memory sets how much"));
  const std::string text = file_with("it.txt", "broadcast 1\n");
  EXPECT_THAT(check(text, {"--seconds", "3"}).err, HasSubstr("--seconds is given"));
  EXPECT_THAT(check(text, {"--memory", "1G"}).err, HasSubstr("--memory is given"));
  EXPECT_THAT(check(text, {"--memory", "1M"}).err, HasSubstr("--memory is '1M'; allowed are 16M"));
  EXPECT_EQ(check(text, {"--seconds", "0"}).exit, 2);
}

// Relative names refer to the user's folder; files that the function writes go to a temporary
// folder.
TEST(ScheduleFunctions, RunInATemporaryFolder) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(testing::TempDir());
  file_with("writes.py", "open('left_behind', 'w').write('x')\n" + std::string(kRing));
  const Captured run = check("writes.py", {"--ranks", "2"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_FALSE(std::filesystem::exists("left_behind"));
  std::filesystem::current_path(before);
}

TEST(ScheduleFunctions, HelpWarnsThatTheyAreProgramsOfTheUser) {
  EXPECT_THAT(run_captured({"check", "--help"}).out,
              HasSubstr("runs as a program with your rights"));
}

TEST(ScheduleFunctions, SayWhereTheyHaveNoRoom) {
  const std::string file = file_with("ring.py", kRing);
  const char* const before = std::getenv("TMPDIR");
  const std::string restored = before != nullptr ? before : "";
  ASSERT_EQ(setenv("TMPDIR", "/nonexistent", 1), 0);
  const Captured run = check(file);
  before != nullptr ? setenv("TMPDIR", restored.c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_EQ(run.exit, 3);
  EXPECT_THAT(run.err, HasSubstr("TMPDIR is '/nonexistent'"));
}

}  // namespace

// Schedules as users write them: valid texts, the form of written ones, and refusals.

namespace {

std::vector<std::vector<std::string>> texts(const Schedule& schedule) {
  std::vector<std::vector<std::string>> out;
  for (int k = 0; k < schedule.rounds; ++k) {
    out.emplace_back();
    for_each_transfer(schedule, k,
                      [&](const Transfer& t) { out.back().push_back(transfer_text(t)); });
  }
  return out;
}

// Every entry of the catalogue, at powers of two and three and at other numbers.
TEST(WrittenSchedule, OfEveryAlgorithmIsReadBack) {
  int lines = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int ranks : {1, 2, 6, 8, 9}) {
      Params params;
      params.ranks = ranks;
      if (has_root(entry.collective)) params.root = ranks - 1;
      if (entry.refusal(params)) continue;
      params = resolved(params);
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      const std::string text = schedule_text(schedule, goal);
      const auto read = read_schedule(text);
      ASSERT_TRUE(read.ok()) << entry.name << ": " << read.status().text() << "\n" << text;
      EXPECT_EQ(read->goal.collective, goal.collective);
      EXPECT_EQ(read->goal.root, goal.root);
      EXPECT_EQ(read->goal.same_bits, goal.same_bits);
      const Schedule again = read->schedule();
      EXPECT_EQ(texts(again), texts(schedule)) << entry.name;
      EXPECT_FALSE(verify(again, read->goal)) << entry.name << " among " << ranks;
      ++lines;
    }
  }
  EXPECT_GT(lines, 300);
}

TEST(WrittenSchedule, AsJsonIsWhatThePlayerHas) {
  for (const char* name : {"ring", "trivance", "direct_one_shot_push", "halving_doubling"}) {
    const nlohmann::json asked = {
        {"ask", "play"},
        {"question",
         {{"collective", "all_reduce"}, {"algorithm", name}, {"ranks", 9}, {"bytes", 9}}}};
    const PageAnswer played = answer_page(asked.dump());
    const auto read = read_schedule(played.json);
    ASSERT_TRUE(read.ok()) << read.status().text();
    Params params;
    params.ranks = 9;
    EXPECT_EQ(texts(read->schedule()),
              texts(find_algorithm(Collective::all_reduce, name)->make(resolved(params))));
  }
}

TEST(WrittenSchedule, HasRemarksEmptyLinesAndShortForms) {
  const auto read = read_schedule(
      "\xef\xbb\xbf# mine\n\n all_reduce 4 blocks 6\tplanes 2 # six\r\nround\n0 <-> 1: 0..2,5 "
      "+\nround 1\n"
      "2 -> 2: 3 on 1 to 0 +\n0 -> 1..3: 4 on 1\nround");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(texts(read->schedule()),
            (std::vector<std::vector<std::string>>{{"0 -> 1: 0..2,5 +", "1 -> 0: 0..2,5 +"},
                                                   {"2 -> 2: 3 on 1 to 0 +", "0 -> 1..3: 4 on 1"},
                                                   {}}));
  EXPECT_EQ(read->rounds[0][1].line, 5);
  EXPECT_EQ(read->rounds[1][0].line, 7);
}

TEST(WrittenSchedule, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"", "the schedule is empty"},
      {"# nothing\n\n", "the schedule is empty"},
      {"all_gahter 4", "line 1: the collective is 'all_gahter'"},
      {"all_gather", "line 1: the number of ranks is missing"},
      {"all_gather 0", "line 1: the number of ranks is '0'"},
      {"all_gather 1000000", "line 1: the number of ranks is '1000000'"},
      {"all_gather 4 root 1", "line 1: root is given; all_gather has no root"},
      {"all_gather 4 blocks 6", "line 1: blocks is 6; allowed are multiples of 4"},
      {"all_gather 4 blocks 0", "line 1: blocks is 0"},
      {"all_gather 4 blocks", "line 1: blocks needs a number"},
      {"all_gather 4 bloks 8", "did you mean 'blocks'"},
      {"all_gather 4 other_bits", "line 1: other_bits is given to all_gather"},
      {"all_to_all 4096", "has 16777216 blocks; allowed are"},
      {"broadcast 4 root 4", "line 1: root is 4; allowed are 0 to 3"},
      {"all_gather 4 planes 0", "line 1: planes is 0"},
      {"all_gather 4\n0 -> 1: 0", "line 2: a transfer before the first round"},
      {"all_gather 4\nround 1", "line 2: round is '1'"},
      {"all_gather 4\nround 0 a", "line 2: 'a' is one word too many"},
      {"all_gather 4\nround\n0 -> 4: 0", "line 3: a receiver is '4'"},
      {"all_gather 4\nround\n-1 -> 0: 0", "line 3: a sender is '-1'"},
      {"all_gather 4\nround\n0 -> 1: 4", "line 3: a block is '4'"},
      {"all_gather 4\nround\n0 -> 1: 3..2", "line 3: a block is '2'"},
      {"all_gather 4\nround\n0 -> 1: 0,", "line 3: a block is ''"},
      {"all_gather 4\nround\n0 -> 1 0",
       "line 3: '0 -> 1 0' has no colon after the receiver; write "
       "'0 -> 1: 0'"},
      {"all_gather 4\nround\nsend 0 1", "line 3: 'send' is no transfer"},
      {"all_gather 4\nround\n0 -> 1: 0 on 1", "line 3: a plane is '1'"},
      {"all_gather 4\nround\n0 -> 1: 0 + +", "line 3: '+' after the blocks"},
      {"all_gather 4\nround\n0 -> 1: 0 to", "line 3: 'to' after the blocks"},
      {"all_reduce 4096 blocks 1048576\nround\n0 -> 0..4095: 0..1048575", "too many"},
      {"{", "the schedule is not JSON"},
      {"{}", "collective is null"},
      {R"({"collective": 7})", "collective is 7"},
      {R"({"collective": "barrier", "ranks": 1e3})", "ranks is 1000.0"},
      {R"({"collective": "barrier", "ranks": 2})", "transfers is null"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [7]})", "round 0 is 7"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [[7]]})",
       "round 0, transfer 0: a transfer is 7"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [[{"from": 0}]]})", "to is missing"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [[{"from": 0, "to": [], "what": 0}]]})",
       "to is []"},
      {R"({"collective": "barrier", "ranks": 2,
           "transfers": [[{"from": 0, "to": 1, "what": 0, "act": "add"}]]})",
       "act is \"add\""},
  };
  for (const auto& [text, error] : kCases) {
    const auto read = read_schedule(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), Code::invalid_argument);
    const bool found = read.status().text().find(error) != std::string::npos ||
                       (std::string(error) == "too many" &&
                        read.status().text().find("at most") != std::string::npos);
    EXPECT_TRUE(found) << text << "\n" << read.status().text();
  }
}

}  // namespace
}  // namespace rankine::tools
