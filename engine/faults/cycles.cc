// Cycles: a rank's process is killed, those that are left go on without it, and another process
// takes its place; time and again, in the same processes and under the same name.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/processes/name.h"
#include "engine/faults/fatal_signals.h"
#include "engine/faults/plays.h"
#include "engine/faults/process_stage.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

// What this process has that a communicator may leave behind.
struct Holdings {
  std::size_t descriptors = 0, threads = 0, shared_mappings = 0;
  std::size_t address_space = 0;  // in spans of a communicator's

  static Holdings now() {
    const auto entries = [](const char* folder) {
      std::size_t count = 0;
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        count += entry.path().empty() ? 0 : 1;
      }
      return count;
    };
    Holdings out{.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
    std::ifstream mappings("/proc/self/maps");
    for (std::string line; std::getline(mappings, line);) {
      if (line.find(kSharedFolder) != std::string::npos) ++out.shared_mappings;
    }
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    constexpr std::size_t kSpan = std::size_t{1} << 34;  // half of what a communicator reserves
    out.address_space = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / kSpan;
    return out;
  }
  bool operator==(const Holdings&) const = default;
};

std::string to_string(const Holdings& held) {
  return std::to_string(held.descriptors) + " descriptors, " + std::to_string(held.threads) +
         " threads, " + std::to_string(held.shared_mappings) + " shared mappings, " +
         std::to_string(held.address_space) + " spans of address space";
}

// One cycle as a case of its own: another collective and algorithm each time, where the case names
// none.
FaultCase cycle_of(const FaultCase& test, int number) {
  FaultCase one = test;
  Dice dice(test.seed + static_cast<std::uint64_t>(number));
  one.seed = dice.next() % 1'000'000'000;
  if (one.algorithm != nullptr) return one;
  std::vector<const Algorithm*> lines;
  for (const Algorithm& line : catalogue()) {
    if (!line.refusal({.ranks = test.ranks})) lines.push_back(&line);
  }
  one.algorithm = lines[static_cast<std::size_t>(dice.below(static_cast<int>(lines.size())))];
  one.collective = one.algorithm->collective;
  return one;
}

}  // namespace

void play_cycles(const FaultCase& test, Tally& tally) {
  ProcessStage stage(test.ranks);
  // Lives through all of it.
  const Rank witness = test.ranks - 1;
  // Of the process of one rank, in this act.
  Tally mine;
  FaultCase one;
  std::unique_ptr<Scene> scene;
  std::optional<Holdings> at_first;
  const auto first = [&](Rank r) {
    one = cycle_of(test, stage.act());
    Dice dice(one.seed);
    const CollectiveCase call = good_call(one, dice);
    const Rank victim = dice.below(test.ranks - 1);
    const auto signals = fatal_signals();
    const int signal = signals[static_cast<std::size_t>(stage.act()) % signals.size()];
    const int delay_us = dice.below(2'000);  // from before they meet on
    const auto begin_to_end = [&](Rank rank) {
      if (rank != victim || rank == witness) return;
      scene->judge().mark_fault();
      scene->goes(rank);
      if (!send_me_soon(signal, delay_us)) raise(SIGKILL);  // then it comes now
    };
    // Who is killed before it has come is waited for until the deadline.
    const Promise promise{.timeout = kShort, .documented = {Code::rank_lost, Code::timeout}};
    mine = {};
    scene = std::make_unique<Scene>(
        one, promise, mine, SceneOptions{.before_they_meet = begin_to_end, .stage = &stage});
    scene->play_rank(r, [&](Seat& seat) {
      while (seat.call(call) && seat.call(meeting(one, one.ranks))) {
      }
    });
  };
  const auto report = [&] {
    ProcessStage::Report out{mine, scene->judge().text()};
    scene.reset();
    const Holdings held = Holdings::now();
    if (!at_first) at_first = held;
    if (held != *at_first) {
      ++out.tally.undocumented;
      out.tally.remark(to_string(one) + ": a process has " + to_string(held) +
                       "; after its first cycle it had " + to_string(*at_first));
    }
    return out;
  };
  const auto reports =
      stage.run({.first = first,
                 .afresh = [&](Rank r, int ranks) { scene->begin_afresh(r, ranks); },
                 .report = report,
                 .acts = test.cycles},
                to_string(test), tally);
  for (const ProcessStage::Report& one_report : reports) tally += one_report.tally;
}

}  // namespace rankine::faults
