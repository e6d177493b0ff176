// Tests of the explorer, of all scenarios and memory orders with it, and of park.pml with Spin.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/budget.h"
#include "tests/engine/run/random.h"
#include "tests/models/explorer.h"

// The explorer on the classic litmus tests: it finds every outcome that C++ allows, and none that
// C++ forbids.

namespace rankine::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

// All results that play() returns over the executions.
std::set<std::string> outcomes(const std::function<std::string(Explorer&)>& play,
                               int preemptions = -1) {
  std::set<std::string> seen;
  Explorer explorer({.preemptions = preemptions});
  const Explorer::Outcome outcome = explorer.explore([&](Explorer& x) { seen.insert(play(x)); });
  EXPECT_EQ(outcome.fault, "");
  EXPECT_TRUE(outcome.exhausted);
  return seen;
}

std::string fault_of(const std::function<void(Explorer&)>& play) {
  Explorer explorer({});
  return explorer.explore(play).fault;
}

std::string both(int a, int b) { return std::to_string(a) + std::to_string(b); }
using Seen = std::set<std::string>;

Seen store_buffering(std::memory_order store, std::memory_order load) {
  return outcomes([&](Explorer& explorer) {
    Atomic<int> x{0}, y{0};
    int a = 0, b = 0;
    explorer.run({[&] {
                    x.store(1, store);
                    a = y.load(load);
                  },
                  [&] {
                    y.store(1, store);
                    b = x.load(load);
                  }});
    return both(a, b);
  });
}

TEST(Explorer, StoreBuffering) {
  EXPECT_EQ(store_buffering(kRelease, kAcquire), (Seen{"00", "01", "10", "11"}));
  EXPECT_EQ(store_buffering(kSeqCst, kSeqCst), (Seen{"01", "10", "11"}));
  EXPECT_EQ(store_buffering(kSeqCst, kAcquire), (Seen{"00", "01", "10", "11"}));
}

Seen message_passing(std::memory_order store, std::memory_order load) {
  return outcomes([&](Explorer& explorer) {
    Atomic<int> data{0}, flag{0};
    int a = 0, b = 0;
    explorer.run({[&] {
                    data.store(1, kRelaxed);
                    flag.store(1, store);
                  },
                  [&] {
                    a = flag.load(load);
                    b = data.load(kRelaxed);
                  }});
    return both(a, b);
  });
}

TEST(Explorer, MessagePassing) {
  EXPECT_EQ(message_passing(kRelease, kAcquire), (Seen{"00", "01", "11"}));
  EXPECT_EQ(message_passing(kRelaxed, kAcquire), (Seen{"00", "01", "10", "11"}));
  EXPECT_EQ(message_passing(kRelease, kRelaxed), (Seen{"00", "01", "10", "11"}));
}

TEST(Explorer, ReadsOfOneWordDoNotGoBack) {
  const auto seen = outcomes([](Explorer& explorer) {
    Atomic<int> x{0};
    int a = 0, b = 0;
    explorer.run({[&] {
                    x.store(1, kRelaxed);
                    x.store(2, kRelaxed);
                  },
                  [&] {
                    a = x.load(kRelaxed);
                    b = x.load(kRelaxed);
                  }});
    return both(a, b);
  });
  EXPECT_EQ(seen, (Seen{"00", "01", "02", "11", "12", "22"}));
}

// Independent readers may see two stores in different orders, unless all operations are seq_cst.
TEST(Explorer, IndependentReadsOfIndependentWrites) {
  const auto disagree = [](std::memory_order store, std::memory_order load) {
    return outcomes([&](Explorer& explorer) {
             Atomic<int> x{0}, y{0};
             int a = 0, b = 0, c = 0, d = 0;
             explorer.run({[&] { x.store(1, store); }, [&] { y.store(1, store); },
                           [&] {
                             a = x.load(load);
                             b = y.load(load);
                           },
                           [&] {
                             c = y.load(load);
                             d = x.load(load);
                           }});
             return both(a, b) + both(c, d);
           })
        .contains("1010");
  };
  EXPECT_TRUE(disagree(kRelease, kAcquire));
  EXPECT_FALSE(disagree(kSeqCst, kSeqCst));
}

// A read-modify-write continues the release sequence before it; a store does not.
TEST(Explorer, ReleaseSequences) {
  const auto seen = [](bool modify) {
    return outcomes([&](Explorer& explorer) {
             Atomic<int> data{0}, flag{0};
             int a = 0, b = 0;
             explorer.run({[&] {
                             data.store(1, kRelaxed);
                             flag.store(1, kRelease);
                           },
                           [&] {
                             if (flag.load(kRelaxed) != 1) return;
                             modify ? void(flag.fetch_add(1, kRelaxed)) : flag.store(2, kRelaxed);
                           },
                           [&] {
                             a = flag.load(kAcquire);
                             b = data.load(kRelaxed);
                           }});
             return both(a, b);
           })
        .contains("20");
  };
  EXPECT_FALSE(seen(true));
  EXPECT_TRUE(seen(false));
}

TEST(Explorer, ReadModifyWritesLoseNothing) {
  const auto seen = outcomes([](Explorer& explorer) {
    Atomic<int> x{0};
    const auto add = [&] { x.fetch_add(1, kRelaxed); };
    explorer.run({add, add, add});
    return std::to_string(x.load());
  });
  EXPECT_EQ(seen, Seen{"3"});
}

TEST(Explorer, LocksExcludeAndPublish) {
  EXPECT_EQ(fault_of([](Explorer& explorer) {
              Mutex mutex;
              int shared = 0;
              const auto add = [&] {
                mutex.lock();
                will_write(&shared, sizeof(shared));
                ++shared;
                mutex.unlock();
              };
              explorer.run({add, add, add});
              explorer.require(shared == 3, "lost");
            }),
            "");
}

TEST(Explorer, RacesOnPlainMemoryAreSeen) {
  const auto fault = [](std::memory_order store, std::memory_order load) {
    return fault_of([&](Explorer& explorer) {
      Atomic<int> flag{0};
      int data = 0;
      explorer.run({[&] {
                      will_write(&data, sizeof(data));
                      flag.store(1, store);
                    },
                    [&] {
                      if (flag.load(load) == 1) will_read(&data, sizeof(data));
                    }});
    });
  };
  EXPECT_EQ(fault(kRelease, kAcquire), "");
  EXPECT_NE(fault(kRelaxed, kAcquire), "");
  EXPECT_NE(fault(kRelease, kRelaxed), "");
}

// One side publishes and looks, and the other runs the barrier for both.
TEST(Explorer, BarrierEverywhere) {
  const auto seen = [](bool fence) {
    return outcomes([&](Explorer& explorer) {
      Atomic<int> x{0}, y{0};
      int a = 0, b = 0;
      explorer.run({[&] {
                      x.store(1, kRelaxed);
                      if (fence) compiler_fence();
                      a = y.load(kRelaxed);
                    },
                    [&] {
                      y.store(1, kRelaxed);
                      barrier_everywhere();
                      b = x.load(kRelaxed);
                    }});
      return both(a, b);
    });
  };
  EXPECT_EQ(seen(true), (Seen{"01", "10", "11"}));
  EXPECT_EQ(seen(false), (Seen{"00", "01", "10", "11"}));
}

TEST(Explorer, AFutexDoesNotSleepOnAnotherValueAndWakes) {
  EXPECT_EQ(fault_of([](Explorer& explorer) {
              Atomic<std::uint32_t> word{0};
              explorer.run({[&] { futex_wait(word, 0, 1'000'000'000'000); },
                            [&] {
                              word.store(1);
                              futex_wake_all(word);
                            }});
            }),
            "");
  EXPECT_NE(fault_of([](Explorer& explorer) {
              Atomic<std::uint32_t> word{0};
              explorer.run({[&] { futex_wait(word, 0, 1'000'000'000'000); },
                            [&] {
                              if (word.load() == 0) return;  // a path without a wake-up
                              futex_wake_all(word);
                            }});
            }),
            "");
}

// Few preemptions find most faults, but not all.
TEST(Explorer, BoundedPreemptions) {
  const auto lost = [](int preemptions) {
    return outcomes(
               [](Explorer& explorer) {
                 Atomic<int> x{0};
                 const auto add = [&] { x.store(x.load(kSeqCst) + 1, kSeqCst); };
                 explorer.run({add, add});
                 return std::to_string(x.load());
               },
               preemptions)
        .contains("1");
  };
  EXPECT_FALSE(lost(0));
  EXPECT_TRUE(lost(1));
  EXPECT_TRUE(lost(-1));
}

TEST(Explorer, WeakerOrders) {
  EXPECT_EQ(weaker(Kind::load, kSeqCst), std::vector{kAcquire});
  EXPECT_EQ(weaker(Kind::store, kSeqCst), std::vector{kRelease});
  EXPECT_EQ(weaker(Kind::read_modify_write, kSeqCst), std::vector{kAcqRel});
  EXPECT_EQ(weaker(Kind::read_modify_write, kAcqRel), (std::vector{kAcquire, kRelease}));
  EXPECT_EQ(weaker(Kind::load, kAcquire), std::vector{kRelaxed});
  EXPECT_TRUE(weaker(Kind::load, kRelaxed).empty());
}

// Explores every scenario on the production code to the end, and checks that the explorer sees each
// fault of the machine.

std::string lines(const std::vector<std::string>& turns) {
  std::string text;
  for (const std::string& turn : turns) text += "\n  " + turn;
  return text;
}

TEST(Explore, EveryScenarioHoldsInEveryExecution) {
  std::printf("%-58s %10s %10s\n", "scenario", "executions", "cut short");
  std::uint64_t executions = 0;
  for (const Scenario& scenario : scenarios()) {
    if (scenario.is_large && (!budget_is_all() || affordable(100) < 100)) continue;
    Explorer explorer(scenario.options());
    const Explorer::Outcome outcome = explorer.explore(scenario.play);
    EXPECT_EQ(outcome.fault, "") << scenario.name << lines(outcome.turns);
    EXPECT_TRUE(outcome.exhausted) << scenario.name;
    std::printf("%-58s %10lu %10lu\n", scenario.name.c_str(),
                static_cast<unsigned long>(outcome.executions),
                static_cast<unsigned long>(outcome.cut));
    executions += outcome.executions;
  }
  std::printf("%lu executions, all different\n", static_cast<unsigned long>(executions));
}

// Expects that some scenario fails.
void expect_fault(const char* what, const std::vector<Scenario>& among, Flaw flaw = Flaw::none) {
  std::string seen;
  for (const Scenario& scenario : among) {
    if (scenario.is_large) continue;
    Explorer::Options options = scenario.options();
    options.flaw = flaw;
    Explorer explorer(options);
    const Explorer::Outcome outcome = explorer.explore(scenario.play);
    if (outcome.fault.empty()) continue;
    seen =
        scenario.name + ", execution " + std::to_string(outcome.executions) + ": " + outcome.fault;
    break;
  }
  EXPECT_NE(seen, "") << what;
  std::printf("%s: %s\n", what, seen.c_str());
}

// The protocol needs these guarantees of the kernel and the compiler: without any one of them, some
// scenario fails.
TEST(Explore, EachFlawOfTheMachineIsSeen) {
  const struct {
    Flaw flaw;
    const char* name;
  } flaws[] = {{Flaw::no_barrier, "membarrier does nothing"},
               {Flaw::no_compiler_fence, "the compiler moves a load before a store"},
               {Flaw::sleeps_unseen, "futex_wait does not compare"},
               {Flaw::wakes_nobody, "futex_wake does nothing"}};
  for (const auto& [flaw, name] : flaws) expect_fault(name, scenarios(), flaw);
}

TEST(Explore, EachFlawOfGrowthIsSeen) {
  const struct {
    GrowthFlaw flaw;
    const char* name;
  } flaws[] = {
      {GrowthFlaw::admits_early, "a member admits the new rank before it has confirmed"},
      {GrowthFlaw::needs_no_admit, "the new rank does not wait until it is admitted"},
      {GrowthFlaw::goes_on_alone, "a member does not see that another one is missing"},
      {GrowthFlaw::tells_nobody, "a member that has failed does not end the larger communicator"},
      {GrowthFlaw::asks_no_ballot, "a member does not see that another one has given up"},
      {GrowthFlaw::asks_no_process, "nobody sees that a process has ended"},
      {GrowthFlaw::shares_seats, "a second process takes a seat"},
      {GrowthFlaw::shares_name, "a second file takes a name"}};
  for (const auto& [flaw, name] : flaws) expect_fault(name, growth_scenarios(flaw));
}

// Weakens every memory order in the production code that the scenarios execute, one at a time. Each
// such mutant must fail in some scenario, or the table below must give the reason that the order
// may not be needed. The list of orders comes from the executions and is compared with the source
// text, so that no order is forgotten.

const std::vector<std::string> kSources = {
    "engine/run/rank_control.h",   "engine/run/rank_control.cc", "engine/run/wait.h",
    "engine/run/wait.cc",          "engine/run/mailbox.h",       "engine/run/walk.h",
    "engine/run/interpret_some.cc"};

// Orders whose weakening passes every scenario, with the reason. `text` is on the line.
struct Justified {
  std::string_view file, text;
  std::memory_order to;
  std::string_view why;
};
const std::vector<Justified> kJustified = {};

std::string plain(std::string file) {
  if (file.starts_with("./")) file.erase(0, 2);
  return file;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct Source {
  std::map<std::string, std::vector<std::string>> files;
  Source() {
    for (const std::string& file : kSources) files[file] = lines_of(file);
  }
  std::string line(const Use& use) const {
    const auto found = files.find(plain(use.file));
    if (found == files.end() || use.line > found->second.size()) return {};
    const std::string& text = found->second[use.line - 1];
    return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
  }
};

std::string place(const Use& use) { return plain(use.file) + ":" + std::to_string(use.line); }

// A scenario of the unchanged code, explored to the end: the uses in it, and the number of
// executions.
struct Explored {
  Scenario scenario;
  std::set<Use> uses;
  std::uint64_t executions = 0;
};

// The shortest first, because the first scenario that fails kills a mutant.
const std::vector<Explored>& explored() {
  static const std::vector<Explored> all = [] {
    std::vector<Explored> out;
    for (Scenario& scenario : scenarios()) {
      if (scenario.is_large) continue;
      Explorer explorer(scenario.options());
      const Explorer::Outcome outcome = explorer.explore(scenario.play);
      EXPECT_TRUE(outcome.fault.empty() && outcome.exhausted) << scenario.name;
      Explored one{std::move(scenario), {}, outcome.executions + outcome.cut};
      for (const auto& [use, times] : explorer.uses()) one.uses.insert(use);
      out.push_back(std::move(one));
    }
    std::ranges::stable_sort(out, {}, &Explored::executions);
    return out;
  }();
  return all;
}

std::set<Use> all_uses() {
  std::set<Use> uses;
  for (const Explored& one : explored()) uses.insert(one.uses.begin(), one.uses.end());
  return uses;
}

TEST(MemoryOrders, EachIsNeededOrJustified) {
  const Source source;
  std::set<const Justified*> used;
  int mutants = 0, killed = 0;
  for (const Use& use : all_uses()) {
    if (!source.files.contains(plain(use.file))) continue;
    for (const std::memory_order to : weaker(use.kind, use.order)) {
      ++mutants;
      std::string verdict;
      for (const auto& [scenario, uses, executions] : explored()) {
        // A scenario without this use would repeat its unchanged exploration.
        if (!uses.contains(use)) continue;
        Explorer::Options options = scenario.options();
        options.weakened = use;
        options.weakened_to = to;
        Explorer explorer(options);
        const Explorer::Outcome outcome = explorer.explore(scenario.play);
        if (outcome.fault.empty()) continue;
        verdict = "killed by '" + scenario.name + "', execution " +
                  std::to_string(outcome.executions) + ": " + outcome.fault;
        ++killed;
        break;
      }
      const std::string line = source.line(use);
      const Justified* reason = nullptr;
      for (const Justified& justified : kJustified) {
        if (plain(use.file) == justified.file && line.find(justified.text) != std::string::npos &&
            to == justified.to) {
          reason = &justified;
        }
      }
      if (reason != nullptr) used.insert(reason);
      const std::string mutant =
          place(use) + " " + name_of(use.order) + " -> " + name_of(to) + "  " + line;
      EXPECT_EQ(verdict.empty(), reason != nullptr)
          << mutant << "\n"
          << (verdict.empty() ? "survives every scenario" : "is justified, but " + verdict);
      if (verdict.empty() && reason != nullptr) verdict = "lives: " + std::string(reason->why);
      std::printf("%s\n    %s\n", mutant.c_str(), verdict.c_str());
    }
  }
  for (const Justified& justified : kJustified) {
    EXPECT_TRUE(used.contains(&justified)) << "no such mutant: " << justified.text;
  }
  std::printf("%d mutants, %d killed, %d justified\n", mutants, killed, mutants - killed);
}

// Every order in the source text was tried.
TEST(MemoryOrders, NoneIsLeftOut) {
  const Source source;
  std::set<std::pair<std::string, unsigned>> tried;
  for (const Use& use : all_uses()) tried.insert({plain(use.file), use.line});
  const std::regex order("memory_order_(acquire|release|acq_rel|seq_cst)");
  for (const auto& [file, lines] : source.files) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_search(lines[i], order)) continue;
      // The call may begin on an earlier line.
      bool found = false;
      for (unsigned back = 0; back < 3 && back <= i; ++back) {
        found = found || tried.contains({file, static_cast<unsigned>(i + 1 - back)});
      }
      EXPECT_TRUE(found) << file << ":" << i + 1 << " is in no scenario: " << lines[i];
    }
  }
}

}  // namespace
}  // namespace rankine::model

// Spin checks park.pml: the protocol holds, and fails without any one of its parts.

namespace rankine {
namespace {

bool runs(const std::string& command) {
  const int status = std::system(command.c_str());
  return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Variant {
  std::string switches;
  bool holds;
};
void PrintTo(const Variant& v, std::ostream* out) { *out << "spin -a " << v.switches; }

class Park : public testing::TestWithParam<Variant> {};

TEST_P(Park, HoldsOrFailsAsItShould) {
  if (!runs("test -x /usr/bin/spin")) {
    GTEST_SKIP() << "Spin is not installed (Debian's package spin)";
  }
  const auto model = std::filesystem::absolute("tests/models/park.pml");
  ASSERT_TRUE(std::filesystem::exists(model));
  std::string name = (std::filesystem::path(testing::TempDir()) / "park.XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path folder(name);
  const std::string in = "cd '" + folder.string() + "' && ";
  ASSERT_TRUE(runs(in + "/usr/bin/spin -a " + GetParam().switches + " '" + model.string() +
                   "' > spin.log 2>&1"))
      << read(folder / "spin.log");
  ASSERT_TRUE(runs(in + "cc -O1 -w -o pan pan.c > cc.log 2>&1")) << read(folder / "cc.log");
  // -a -f: acceptance cycles under weak fairness, so also "comes back at last".
  ASSERT_TRUE(runs(in + "./pan -a -f -m100000 > pan.log 2>&1"));
  const std::string log = read(folder / "pan.log");
  EXPECT_EQ(log.find("max search depth too small"), std::string::npos);
  EXPECT_EQ(log.find("errors: 0") != std::string::npos, GetParam().holds) << log;
  const std::size_t states = log.find("states, stored");
  ASSERT_NE(states, std::string::npos) << log;
  const std::size_t line = log.rfind('\n', states) + 1;
  std::printf("%s: %s,%s\n", GetParam().switches.c_str(),
              GetParam().holds ? "holds" : "fails, as it should",
              log.substr(line, log.find('\n', states) - line).c_str());
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Protocol, Park,
    testing::Values(Variant{"", true}, Variant{"-DMEMBARRIER", true}, Variant{"-DWITH_ABORT", true},
                    Variant{"-DWITH_ABORT -DMEMBARRIER", true}, Variant{"-DNO_BARRIER", false},
                    Variant{"-DMEMBARRIER -DNO_BARRIER", false}, Variant{"-DNO_RECHECK", false},
                    Variant{"-DMEMBARRIER -DNO_RECHECK", false},
                    Variant{"-DWITH_ABORT -DNO_RECHECK", false},
                    Variant{"-DWITH_ABORT -DABORT_APART", false}));

}  // namespace
}  // namespace rankine
