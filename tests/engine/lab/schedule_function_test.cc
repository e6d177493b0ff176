// Tests of rankine check with functions, of the programs that it runs, and of written schedules.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "engine/cli/console.h"
#include "engine/cli/judge.h"
#include "engine/lab/page/answers.h"
#include "engine/read/verify.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

// rankine check of functions in Python and C++: it judges them for every N, and an error names the
// file, N and the line.

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr const char* kRing =
    "collective = 'all_gather'\n"
    "def schedule(n):\n"
    "    for k in range(n - 1):\n"
    "        yield [(r, (r + 1) % n, (r - k) % n) for r in range(n)]\n";

Captured check(const std::string& name, const std::string& text, const std::string& more = "") {
  return run_line("check " + file_with(name, text) + " " + more);
}

// Checks that the process with the number in `file` has ended.
void expect_gone(const std::string& file) {
  pid_t process = 0;
  std::ifstream(file) >> process;
  ASSERT_GT(process, 0) << file;
  EXPECT_EQ(kill(process, 0), -1) << file;
}

TEST(ScheduleFunctions, AreProvedForEveryNumberOfRanks) {
  const Captured all = check("ring.py", kRing);
  EXPECT_EQ(all.exit, 0) << all.err;
  EXPECT_TRUE(has(all.out, "\nproved for N = 1-17\n"));
  std::vector<int> ranks;
  for (const json& one :
       json_lines_of("check " + file_with("ring.py", kRing) + " --ranks 3,8..9 --json")) {
    ranks.push_back(one["ranks"]);
    EXPECT_TRUE(one["proved"]);
    // The verdict equals that of the schedule's text.
    const std::string text = output_of("show all_gather --algo ring --format text --ranks " +
                                       std::to_string(ranks.back()));
    EXPECT_EQ(one, json::parse(check("ring.txt", text, "--json").out));
  }
  EXPECT_EQ(ranks, (std::vector{3, 8, 9}));
}

TEST(ScheduleFunctions, AreWrongAtTheLineThatMakesTheTransfer) {
  std::string late = kRing;
  late.replace(late.find("(r - k)"), 7, "(r - 2 * k)");
  const Captured python = check("late.py", late, "--ranks 1..4");
  EXPECT_EQ(python.exit, 1) << python.err;
  EXPECT_TRUE(has(python.out,
                  "N = 3-4; proved for N = 1-2\nN = 3: not_there at round 1, rank 0, block 1\n"));
  EXPECT_TRUE(has(python.out, "\n  line 4: 0 -> 1: 1\n"));
  const Captured cxx = check("once.cc",
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
                             "}\n",
                             "--ranks 1..5");
  EXPECT_EQ(cxx.exit, 1) << cxx.err;
  EXPECT_TRUE(has(
      cxx.out, "N = 3,5; proved for N = 1-2,4\nN = 3: double_count at round 2, rank 2, block 0"));
  EXPECT_TRUE(has(cxx.out, "\n  line 11: 0 -> 2: 0 +\n"));
}

TEST(ScheduleFunctions, SayWhatTheyMean) {
  // All members of a text's first line, and transfers of several blocks, on planes, with additions.
  const Captured whole = check(
      "whole.py",
      "print('for its author')\n"
      "collective = 'all_reduce'\nplanes = 2\nblocks = lambda n: 2 * n\nother_bits = True\n"
      "def schedule(n):\n"
      "  if n == 1: return []\n"
      "  here = range(2 * n)\n"
      "  return [[{'from': 0, 'to': 1, 'what': list(here), 'where_plane': 1},\n"
      "           {'from': 1, 'to': 0, 'what': list(here), 'act': 'reduce'}],\n"
      "          [{'from': 1, 'to': 1, 'what': list(here), 'what_plane': 1, 'act': 'reduce'}]]\n",
      "--ranks 1,2");
  EXPECT_EQ(whole.exit, 0) << whole.out << whole.err;
  const Captured rooted = check("rooted.py",
                                "collective = 'broadcast'\nroot = lambda n: n // 2\n"
                                "def schedule(n):\n"
                                "  return [[(n // 2, r, [0])] for r in range(n) if r != n // 2]\n");
  EXPECT_EQ(rooted.exit, 0) << rooted.out << rooted.err;
}

TEST(ScheduleFunctions, ErrorsNameFileRanksAndLine) {
  const std::string head = "collective = 'all_gather'\ndef schedule(n):\n";
  const std::string cxx = "#include \"schedule_to_check.h\"\nSchedule schedule(int n) {";
  const struct {
    std::string name, text, more, said;
  } cases[] = {
      {"it.py", "", "", "it.py, at N = 1: "},
      {"it.py", head, "", "it.py, at N = 1: line 2: "},
      {"it.py", head + "  return 1 // (n - 1)\n", "", "at N = 1: line 3: ZeroDivisionError: "},
      {"it.py", head + "  yield [(0, 1.5, 0)]\n", "", "at N = 1: line 3: (0, 1.5, 0)"},
      {"it.py", head + "  yield [(0, 0, 0, '-')]\n", "", "at N = 1: line 3: (0, 0, 0, '-')"},
      {"it.py", head + "  yield [(0, n, 0)]\n", "", "line 3: round 0, transfer 0: to is 1"},
      {"it.py", head + "  return 5\n", "", "it.py, at N = 1: schedule(1) is 5"},
      {"it.py", "collective = 'gather_all'\ndef schedule(n): return []\n", "", "at N = 1: coll"},
      {"it.cc", cxx + " return n }\n", "", "it.cc:2:"},
      {"it.cc",
       "#include <stdexcept>\n" + cxx +
           " if (n == 2) throw std::runtime_error(\"two\"); return {\"broadcast\", 1}; }",
       "--ranks 1,2,3", "it.cc, at N = 2: two\n"},
      {"it.cc",
       "#include <csignal>\n" + cxx + " std::raise(SIGKILL + 0 * n); return {\"broadcast\", 1}; }",
       "", "it.cc, at N = 1: Killed\n"},
      {"it.cc", cxx + " return {\"broadcast\", n * 0 + 1}; }", "", "it.cc, at N = 2: "},
      {"it.txt", "broadcast 1\n", "--ranks 3", "--ranks"},
      {"it.txt", "broadcast 1\n", "--seconds 3", "--seconds"},
      {"it.txt", "broadcast 1\n", "--memory 1G", "--memory"},
      {"it.txt", "broadcast 1\n", "--memory 1M", "--memory is '1M'"},
      {"it.py", kRing, "--seconds 0", "--seconds is '0'"},
      {"it.py", kRing, "--ranks 0", "--ranks is '0'"},
      {"late.py", head + "  import os, time\n  os.close(1); os.close(2)\n  time.sleep(1000)\n",
       "--seconds 1", "late.py, at N = 1: no end within 1 s"},
      {"large.py", head + "  return bytearray(1 << 30)\n", "--memory 256M", "MemoryError"},
  };
  for (const auto& [name, text, more, said] : cases) {
    const Captured run = check(name, text, more);
    EXPECT_EQ(run.exit, 2) << text << more;
    EXPECT_TRUE(has(run.err, said)) << text << "\n" << run.err;
  }
  EXPECT_EQ(run_line("check /nowhere.py").exit, 3);
}

// Relative names refer to the user's folder; files that the function writes go to a temporary
// folder, and nothing stays there.
TEST(ScheduleFunctions, LeaveNothingBehind) {
  const std::string folder = new_folder();
  const auto before = fs::current_path();
  file_with("writes.py", "open('left_behind', 'w').write('x')\n" + std::string(kRing));
  fs::current_path(testing::TempDir());
  {
    const ScopedEnv temporary("TMPDIR", folder.c_str());
    output_of("check writes.py --ranks 2");
  }
  EXPECT_FALSE(fs::exists("left_behind"));
  EXPECT_TRUE(fs::is_empty(folder));
  const ScopedEnv nowhere("TMPDIR", "/nonexistent");
  const Captured run = run_line("check writes.py");
  fs::current_path(before);
  EXPECT_EQ(run.exit, 3);
  EXPECT_TRUE(has(run.err, "TMPDIR is '/nonexistent'")) << run.err;
}

// A signal ends a function that never returns, and its folder and its process are removed.
TEST(ScheduleFunctions, AreStoppedBySignals) {
  const std::string folder = new_folder(), started = folder + ".started";
  const ScopedEnv temporary("TMPDIR", folder.c_str());
  std::jthread interrupts([&started](const std::stop_token& given_up) {
    while (!fs::exists(started)) {
      if (given_up.stop_requested()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(getpid(), SIGINT);
  });
  const Captured run =
      check("endless.py",
            fmt::format("import os\n"
                        "collective = 'all_gather'\n"
                        "def schedule(n):\n"
                        "    with open('{0}.part', 'w') as f: f.write(str(os.getpid()))\n"
                        "    os.rename('{0}.part', '{0}')\n"
                        "    while True: pass\n",
                        started),
            "--ranks 2");
  interrupts.request_stop();
  interrupts.join();
  EXPECT_EQ(run.exit, 130);
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(fs::is_empty(folder));
  expect_gone(started);
  const InterruptGuard forgets;  // clears the signal for the tests that follow
}

// The programs that rankine check runs, with limits that no test reaches by accident.

const std::string kHere = testing::TempDir();

Result<ProgramEnd> run(std::vector<std::string> words, int seconds = 600,
                       std::size_t bytes = 10'000, std::size_t memory = std::size_t{4} << 30) {
  return run_program({.words = std::move(words), .folder = kHere},
                     {std::chrono::seconds{seconds}, bytes, memory});
}
Result<ProgramEnd> run_sh(const std::string& text, int seconds = 600) {
  return run({"sh", "-c", text}, seconds);
}

TEST(RunProgram, HasLimits) {
  EXPECT_TRUE(has(run({"sleep", "100"}, 1).status().text(), "1 s"));
  EXPECT_TRUE(has(run({"yes"}, 60, 1000).status().text(), "1000 bytes"));
  EXPECT_EQ(run({"no_such_program"}).status().code(), Code::system);
  const auto hungry =
      run({"python3", "-c", "x = bytearray(1 << 30)"}, 600, 10'000, std::size_t{256} << 20).value();
  EXPECT_TRUE(has(hungry.err, "MemoryError"));
  // A program that closes its output must still be waited for.
  EXPECT_TRUE(has(run_sh("exec >&- 2>&-; sleep 1000", 1).status().text(), "1 s"));
}

TEST(RunProgram, TellsWhatItSaidAndHowItEnded) {
  for (const auto& [text, out, err, failure] :
       {std::tuple("echo out; echo err >&2; cat; exit 3", "out\n", "err\n", "exit status 3"),
        {"echo out; exec >&- 2>&-; exit 3", "out\n", "", "exit status 3"},
        {"exit 0", "", "", ""}}) {
    const auto end = run_sh(text).value();
    EXPECT_EQ(end.out, out);
    EXPECT_EQ(end.err, err);
    EXPECT_EQ(end.failure, failure);
  }
  {
    const InterruptGuard guard;
    raise(SIGINT);
    EXPECT_EQ(run_sh("sleep 100", 5).status().code(), Code::aborted);
  }
  const InterruptGuard forgets;
}

TEST(RunProgram, EndsWithAllOfItsProcesses) {
  const std::string child = kHere + "/child", escaped = kHere + "/escaped";
  const std::string sleepers = "sleep 1000 & echo $! > " + child + "; setsid sh -c 'echo $$ > " +
                               escaped + "; exec sleep 1000' & until [ -s " + escaped +
                               " ]; do :; done; ";
  // The sleepers hold the output open.
  for (const bool is_endless : {false, true}) {
    const auto end = run_sh(sleepers + (is_endless ? "yes" : "echo out"));
    EXPECT_EQ(end.ok(), !is_endless);
    if (end.ok()) {
      EXPECT_EQ(end->out, "out\n");
    }
    expect_gone(child);
    expect_gone(escaped);
    fs::remove(child);
    fs::remove(escaped);
  }
}

TEST(RunProgram, HasNoVariableButThePathAndNoFileOfOurs) {
  const ScopedEnv secret("SECRET_TOKEN", "x");
  std::FILE* const file = std::fopen("/dev/null", "r");
  ASSERT_NE(file, nullptr);
  fcntl(fileno(file), F_SETFD, 0);  // would be inherited by default
  EXPECT_EQ(run({"env"})->out, fmt::format("PATH={}\n", getenv("PATH")));
  EXPECT_EQ(run_sh(fmt::format("test -e /proc/self/fd/{} && echo open; true", fileno(file)))->out,
            "");
  std::fclose(file);
}

// Schedules as users write them; tests/engine/cli/refusals.txt has their mistakes.

std::vector<std::vector<std::string>> texts(const Schedule& schedule) {
  std::vector<std::vector<std::string>> out;
  for (int k = 0; k < schedule.rounds; ++k) {
    out.emplace_back();
    for_each_transfer(schedule, k,
                      [&](const Transfer& t) { out.back().push_back(transfer_text(t)); });
  }
  return out;
}

TEST(WrittenSchedule, AsJsonIsWhatThePlayerHas) {
  for (const char* name : {"ring", "trivance", "direct_one_shot_push", "halving_doubling"}) {
    const PageAnswer played = answer_page(fmt::format(
        R"({{"ask":"play","question":{{"collective":"all_reduce","algorithm":"{}","ranks":9,"bytes":9}}}})",
        name));
    const auto read = read_schedule(played.json).value();
    const Params params = resolved({.ranks = 9});
    EXPECT_EQ(texts(read.schedule()),
              texts(find_algorithm(Collective::all_reduce, name)->make(params)));
  }
}

TEST(WrittenSchedule, HasRemarksEmptyLinesAndShortForms) {
  const auto read =
      read_schedule(
          "\xef\xbb\xbf# mine\n\n all_reduce 4 blocks 6\tplanes 2 # six\r\nround\n0 <-> 1: 0..2,5 "
          "+\nround 1\n"
          "2 -> 2: 3 on 1 to 0 +\n0 -> 1..3: 4 on 1\nround")
          .value();
  EXPECT_EQ(texts(read.schedule()),
            (std::vector<std::vector<std::string>>{{"0 -> 1: 0..2,5 +", "1 -> 0: 0..2,5 +"},
                                                   {"2 -> 2: 3 on 1 to 0 +", "0 -> 1..3: 4 on 1"},
                                                   {}}));
  EXPECT_EQ(read.rounds[0][1].line, 5);
  EXPECT_EQ(read.rounds[1][0].line, 7);
}

}  // namespace
}  // namespace rankine::tools
