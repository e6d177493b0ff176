// Which cases a selection has, and how one is played.
#include <algorithm>
#include <exception>

#include "engine/faults/fault.h"
#include "engine/faults/plays.h"

namespace rankine::faults {
namespace {

// Of the case's place in the whole table, so that a selection's cases are those of the whole run.
std::uint64_t seed_of(const FaultCase& test, std::uint64_t seed, int repetition) {
  std::uint64_t hash = seed * 0x100000001b3u;
  const auto mix = [&hash](std::uint64_t n) {
    hash = (hash ^ n) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  mix(static_cast<std::uint64_t>(test.fault->number));
  mix(static_cast<std::uint64_t>(test.collective));
  if (test.algorithm != nullptr) {
    mix(static_cast<std::uint64_t>(test.algorithm - catalogue().data()) + 1);
  }
  mix(static_cast<std::uint64_t>(test.ranks));
  mix(static_cast<std::uint64_t>(repetition));
  if (test.processes) mix(1);
  return hash % 1'000'000'000;  // to be written down
}

bool is_in(const auto& list, const auto& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::string to_string(const FaultCase& test) {
  std::string text = std::to_string(test.fault->number) + " " + std::string(test.fault->name) +
                     ": " + std::string(name_of(test.collective));
  if (test.algorithm != nullptr) text += " " + std::string(test.algorithm->name);
  return text + " among " + std::to_string(test.ranks) +
         (test.processes ? " processes" : " ranks") + ", seed " + std::to_string(test.seed);
}

std::vector<FaultCase> cases_of(const Selection& selection) {
  std::vector<FaultCase> cases;
  std::vector<int> all_ranks = selection.ranks;
  if (all_ranks.empty() && selection.processes) {
    all_ranks.assign(std::begin(kProcessRanks), std::end(kProcessRanks));
  } else if (all_ranks.empty()) {
    all_ranks.assign(std::begin(kRanks), std::end(kRanks));
  }
  for (const Fault& fault : faults()) {
    if (!is_in(selection.faults, &fault) || !is_played(fault, selection.processes)) continue;
    std::vector<FaultCase> of_fault;
    const auto add = [&](Collective collective, const Algorithm* line, int ranks) {
      FaultCase test{&fault, collective, line, ranks, 0, selection.processes};
      const bool in_cycles = fault.play == play_cycles && selection.cycles > 0;
      const int parts = in_cycles ? (selection.cycles + kMostCycles - 1) / kMostCycles : 1;
      for (int i = 0; i < selection.repeat * parts; ++i) {
        test.seed = seed_of(test, selection.seed, i);
        if (in_cycles)
          test.cycles = std::min(kMostCycles, selection.cycles - i % parts * kMostCycles);
        of_fault.push_back(test);
      }
    };
    for (const int ranks : all_ranks) {
      std::vector<Collective> collectives;
      for (const Collective collective : all_collectives()) {
        if (is_in(selection.collectives, collective) &&
            (fault.applies == nullptr || fault.applies(collective))) {
          collectives.push_back(collective);
        }
      }
      // What depends on the number of ranks alone is tried with one collective, another each time.
      if (fault.grain == Grain::ranks && !collectives.empty()) {
        add(collectives[static_cast<std::size_t>(ranks) % collectives.size()], nullptr, ranks);
        continue;
      }
      for (const Collective collective : collectives) {
        if (fault.grain == Grain::collective) {
          add(collective, nullptr, ranks);
          continue;
        }
        for (const Algorithm& line : catalogue()) {
          if (line.collective == collective && is_in(selection.algorithms, &line) &&
              !line.refusal({.ranks = ranks})) {
            add(collective, &line, ranks);
          }
        }
      }
    }
    if (selection.sample > 1) {
      // Those with the lowest hash: the same ones whatever else is selected.
      const auto order = [](const FaultCase& a, const FaultCase& b) { return a.seed < b.seed; };
      const std::size_t keep =
          std::max<std::size_t>(1, of_fault.size() / static_cast<std::size_t>(selection.sample));
      std::sort(of_fault.begin(), of_fault.end(), order);
      of_fault.resize(std::min(of_fault.size(), keep));
    }
    cases.insert(cases.end(), of_fault.begin(), of_fault.end());
  }
  return cases;
}

Tally play(const FaultCase& test) {
  Tally tally;
  tally.cases = 1;
  try {
    test.fault->play(test, tally);
  } catch (const std::exception& error) {
    ++tally.undocumented;
    tally.remark(to_string(test) + ": threw " + error.what());
  }
  return tally;
}

}  // namespace rankine::faults
