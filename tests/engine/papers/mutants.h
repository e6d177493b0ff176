// Claims a little wrong: other algorithms, other numbers of ranks, other constants. A row that no
// mutant makes fail says nothing.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "engine/papers/claim.h"
#include "engine/papers/evaluate.h"
#include "engine/papers/runs.h"

namespace rankine::claims {

struct Mutant {
  std::string what;  // "of the run '': ranks 2"
  Claim claim;
};

inline std::string text_of(const std::vector<RunText>& runs) {
  std::string text;
  for (const RunText& run : runs) {
    text += (text.empty() ? "" : " | ") + (run.name.empty() ? "" : run.name + ": ") +
            run.collective + " " + run.algorithm;
    for (const auto& [option, value] : run.options) text += "; " + option + "=" + value;
  }
  return text;
}

// Each run with another number of ranks, and by every other algorithm of its collective: with all
// of its options, and with those only that every algorithm takes.
inline std::vector<Mutant> run_mutants(const Paper& paper, const Claim& claim) {
  std::vector<Mutant> out;
  const std::vector<RunText> runs = read_runs(claim.runs, paper.runs);
  const auto add = [&](std::size_t i, const std::string& what, const RunText& run) {
    std::vector<RunText> changed = runs;
    changed[i] = run;
    Claim mutant = claim;
    mutant.runs = text_of(changed);
    out.push_back({"run '" + runs[i].name + "': " + what, std::move(mutant)});
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const char* wrong : {"+1", "*2", "+2", "-1", "*3", "*9"}) {
      RunText run = runs[i];
      for (auto& [option, value] : run.options) {
        if (option == "ranks") value = "(" + value + ")" + wrong;
      }
      add(i, std::string("ranks") + wrong, run);
    }
    const auto collective = parse_collective(runs[i].collective);
    if (!collective) throw std::logic_error(claim.id + ": no such collective");
    for (const Algorithm& algorithm : catalogue()) {
      if (algorithm.collective != *collective || algorithm.name == runs[i].algorithm) continue;
      RunText run = runs[i];
      run.algorithm = algorithm.name;
      add(i, run.algorithm, run);
      std::erase_if(run.options, [](const auto& option) {
        return option.first != "ranks" &&
               (find_parameter(option.first) != nullptr || option.first == "dimensions");
      });
      if (run.options.size() < runs[i].options.size()) add(i, run.algorithm + ", plain", run);
    }
  }
  return out;
}

// What the paper states, by a millionth where it is exact, else by enough that nothing excuses it.
inline std::vector<Mutant> constant_mutants(const Claim& claim) {
  const bool exact = claim.printed.empty() && claim.relation == "=";
  std::vector<Mutant> out;
  for (const std::string wrong :
       {exact ? "*1000001/1000000" : "*5/2", exact ? "+1" : "/1000", "*1000"}) {
    Claim mutant = claim;
    std::string& text = claim.stated.empty() ? mutant.found : mutant.stated;
    text = "(" + text + ")" + wrong;
    out.push_back({wrong, std::move(mutant)});
  }
  return out;
}

// The run with each of those options, where it has them, a little wrong.
inline std::vector<RunText> with_wrong(const RunText& run,
                                       std::initializer_list<std::string_view> names,
                                       const std::string& wrong) {
  std::vector<RunText> out;
  for (std::size_t i = 0; i < run.options.size(); ++i) {
    if (std::find(names.begin(), names.end(), run.options[i].first) == names.end()) continue;
    out.push_back(run);
    out.back().options[i].second = "(" + run.options[i].second + ")" + wrong;
  }
  return out;
}
// Each price of the network.
inline std::vector<RunText> with_wrong_prices(const RunText& run) {
  std::vector<RunText> out = with_wrong(
      run, {"alpha", "beta", "far_alpha", "far_beta", "switch_alpha", "hop", "gamma"}, "*2+1");
  for (RunText& other : with_wrong(run, {"permute"}, "*0")) out.push_back(std::move(other));
  return out;
}
// Every other algorithm of its collective.
inline std::vector<RunText> by_others(const RunText& run) {
  std::vector<RunText> out;
  const auto collective = parse_collective(run.collective);
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != collective || algorithm.name == run.algorithm) continue;
    out.push_back(run);
    out.back().algorithm = algorithm.name;
  }
  return out;
}

// For rows that restate the model: the network is wrong, in its prices or by having many ports.
inline std::vector<Mutant> network_mutants(const Paper& paper, const Claim& claim) {
  std::vector<Mutant> out;
  const std::vector<RunText> runs = read_runs(claim.runs, paper.runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<RunText> mutants = with_wrong_prices(runs[i]);
    for (RunText& other : by_others(runs[i])) {
      other.options.emplace_back("ports", "64");
      mutants.push_back(std::move(other));
    }
    for (const RunText& mutant : mutants) {
      std::vector<RunText> changed = runs;
      changed[i] = mutant;
      Claim wrong = claim;
      wrong.runs = text_of(changed);
      out.push_back({"run '" + runs[i].name + "': " + wrong.runs, std::move(wrong)});
    }
  }
  return out;
}

// What ranks that execute a run may get wrong: prices, the number of ranks, the algorithm.
inline std::vector<RunText> execution_mutants(const RunText& run) {
  std::vector<RunText> out = with_wrong_prices(run);
  for (const auto& more :
       {with_wrong(run, {"ranks"}, "+1"), with_wrong(run, {"ranks"}, "*2"), by_others(run)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

// The first of them that does not hold anywhere in so many of its cases (0: all); none: its name is
// empty. Mutants that cannot be run are no mutants.
inline std::string killer_of(const Paper& paper, const std::vector<Mutant>& mutants, Runs& runs,
                             std::size_t cases) {
  for (const Mutant& mutant : mutants) {
    try {
      if (fails(paper, mutant.claim, runs, cases)) return mutant.what;
    } catch (const std::logic_error&) {
    }
  }
  return {};
}

}  // namespace rankine::claims
