// Slightly wrong claims: other algorithms, other numbers of ranks, other constants. A row that no
// mutant makes fail is meaningless.

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "engine/papers/claim.h"
#include "engine/papers/evaluate.h"
#include "engine/papers/figures.h"
#include "engine/papers/profiles.h"
#include "engine/papers/report.h"
#include "engine/papers/runs.h"
#include "engine/papers/statements.h"
#include "tests/budget.h"
#include "tests/testing.h"

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

// Each run with another number of ranks, and with every other algorithm of its collective: once
// with all options, once with only the options that every algorithm takes.
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

// The paper's constant, changed by a millionth if it is exact, else by a factor beyond every
// tolerance.
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

// Copies of the run, each with one of the options slightly wrong.
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
// One copy of the run per price of the network.
inline std::vector<RunText> with_wrong_prices(const RunText& run) {
  std::vector<RunText> out = with_wrong(
      run, {"alpha", "beta", "far_alpha", "far_beta", "switch_alpha", "hop", "gamma"}, "*2+1");
  for (RunText& other : with_wrong(run, {"permute"}, "*0")) out.push_back(std::move(other));
  return out;
}
// One copy of the run per other algorithm of its collective.
inline std::vector<RunText> with_other_runs(const RunText& run) {
  std::vector<RunText> out;
  const auto collective = parse_collective(run.collective);
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != collective || algorithm.name == run.algorithm) continue;
    out.push_back(run);
    out.back().algorithm = algorithm.name;
  }
  return out;
}

// For rows that restate the model: a wrong network, by its prices or by many ports.
inline std::vector<Mutant> network_mutants(const Paper& paper, const Claim& claim) {
  std::vector<Mutant> out;
  const std::vector<RunText> runs = read_runs(claim.runs, paper.runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<RunText> mutants = with_wrong_prices(runs[i]);
    for (RunText& other : with_other_runs(runs[i])) {
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

// Mistakes of ranks that execute a run: prices, the number of ranks, the algorithm.
inline std::vector<RunText> execution_mutants(const RunText& run) {
  std::vector<RunText> out = with_wrong_prices(run);
  for (const auto& more :
       {with_wrong(run, {"ranks"}, "+1"), with_wrong(run, {"ranks"}, "*2"), with_other_runs(run)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

// True if the row agrees with most mutants in some cases: it holds under a condition, or its sides
// are truth values that are both stated ("then and only then").
inline bool agrees_by_nature(const Finding& row) {
  std::set<std::string> stated;
  for (const Case& c : row.cases) stated.insert(to_string(c.stated));
  return row.verdict == Verdict::holds_if || stated == std::set<std::string>{"0", "1"};
}

// The name of the first mutant that holds in none of `cases` of its cases (0: all); for a row that
// agrees by nature, the first one with another verdict or condition in the same cases is enough.
// Empty if there is no such mutant. A mutant that cannot run does not count.
inline std::string killer_of(const Finding& row, const std::vector<Mutant>& mutants, Runs& runs,
                             std::size_t cases) {
  const bool by_nature = agrees_by_nature(row);
  const Finding right = by_nature ? judge(*row.paper, *row.claim, runs, cases) : row;
  for (const Mutant& mutant : mutants) {
    try {
      if (fails(*row.paper, mutant.claim, runs, cases)) return mutant.what;
      if (!by_nature) continue;
      const Finding wrong = judge(*row.paper, mutant.claim, runs, cases);
      if (wrong.verdict != Verdict::not_reproduced && wrong.skipped == right.skipped &&
          golden_line(wrong) != golden_line(right)) {
        return mutant.what;
      }
    } catch (const std::logic_error&) {
    }
  }
  return {};
}

// No row of the report is worded so that it cannot fail: each row that holds in some cases fails
// with some other algorithm, number of ranks or network.

namespace {

constexpr std::size_t kCases = 12;

bool holds_somewhere(const Finding& finding) {
  return finding.verdict == Verdict::holds || finding.verdict == Verdict::holds_if;
}

// All rows, evaluated in all their cases.
const std::vector<Finding>& all_rows() {
  static const std::vector<Finding> rows = find_out({}, {.execute = false});
  return rows;
}

// The rows whose mutants a test tries.
std::vector<Finding> some_rows(const char* test) {
  const Sample sample(test, 8);
  std::vector<Finding> some;
  for (std::size_t i = 0; i < all_rows().size(); ++i) {
    if (sample.has(i)) some.push_back(all_rows()[i]);
  }
  return some;
}

// A number of the row's cases that includes some in which it holds, so a mutant that fails in all
// of them has failed.
std::size_t cases_of(const Finding& row, Runs& runs) {
  const EvaluateOptions some{.execute = false, .most_cases = kCases};
  return holds_somewhere(evaluate(*row.paper, *row.claim, runs, some)) ? kCases : 0;
}

// fails(), which tries mutants, stops at the first deciding case; its result equals the report's.
TEST(Mutants, FailWhereAReportSaysSo) {
  Runs runs;
  int failing = 0, others = 0;
  for (const Finding& row : all_rows()) {
    if (row.claim->reproduced) continue;  // those rows have one case
    const bool is_failing = row.verdict == Verdict::does_not_hold;
    EXPECT_EQ(fails(*row.paper, *row.claim, runs), is_failing) << row.claim->id;
    ++(is_failing ? failing : others);
    if (row.verdict != Verdict::holds) continue;
    Claim degenerate = *row.claim;  // degenerate everywhere: no case decides
    degenerate.degenerate = "1";
    EXPECT_FALSE(fails(*row.paper, degenerate, runs, kCases)) << row.claim->id;
  }
  EXPECT_GT(failing, 0);
  EXPECT_GT(others, failing);
}

// Definitions hold for every algorithm that keeps to the model, so some of them fail only on
// another network.
TEST(Mutants, OfTheRunsFail) {
  Runs runs;
  for (const Finding& row : some_rows("mutants of runs")) {
    const Claim& claim = *row.claim;
    if (claim.runs.empty() || !holds_somewhere(row)) continue;
    std::vector<Mutant> mutants = run_mutants(*row.paper, claim);
    if (claim.kind == Kind::definition) {
      std::vector<Mutant> more = network_mutants(*row.paper, claim);
      std::move(more.begin(), more.end(), std::back_inserter(mutants));
    }
    EXPECT_NE(killer_of(row, mutants, runs, cases_of(row, runs)), "")
        << claim.id << " holds whatever is run";
  }
}

TEST(Mutants, OfTheConstantsFail) {
  Runs runs;
  for (const Finding& row : some_rows("mutants of constants")) {
    if (row.claim->reproduced || !holds_somewhere(row)) continue;
    EXPECT_NE(killer_of(row, constant_mutants(*row.claim), runs, cases_of(row, runs)), "")
        << row.claim->id << " holds whatever it states";
  }
}

// The claim with its stated value 5 % higher, and 5 % lower; none for an inequality.
std::vector<Claim> five_percent_mutants(const Claim& claim) {
  std::vector<Claim> out;
  const bool equality = claim.relation == "=" || claim.relation.starts_with("~ ");
  if (!equality || (claim.stated.empty() && claim.printed.empty())) return out;
  const auto times = [](std::string& side, const std::string& factor) {
    if (!side.empty()) side = "(" + side + ")*" + factor;
  };
  for (const auto& [up, down] : {std::pair("21/20", "20/21"), std::pair("19/20", "20/19")}) {
    out.push_back(claim);
    if (claim.printed.empty()) {
      times(out.back().stated, up);
    } else {  // what must round to the printed number changes instead
      times(out.back().stated, down);
      times(out.back().found, down);
    }
  }
  return out;
}

// A tolerance is small enough to notice a stated value that is wrong by 5 %, in one direction at
// least.
TEST(Mutants, OfStatedValuesByFivePercentAreNoticed) {
  Runs runs;
  const auto agreeing = [](const Finding& row) {
    return std::count_if(row.cases.begin(), row.cases.end(),
                         [](const Case& c) { return c.agrees; });
  };
  for (const Finding& row : some_rows("mutants by 5 %")) {
    if (row.claim->reproduced || !holds_somewhere(row)) continue;
    const std::vector<Claim> mutants = five_percent_mutants(*row.claim);
    const bool noticed = std::any_of(mutants.begin(), mutants.end(), [&](const Claim& mutant) {
      return agreeing(judge(*row.paper, mutant, runs)) < agreeing(row);
    });
    EXPECT_TRUE(mutants.empty() || noticed) << row.claim->id << " allows 5 % either way";
  }
}

// A test here checks every row that holds in some cases: figures by their test, the other rows by
// their constants and, if they have runs, by their runs. The remaining rows have shown that they
// can fail.
TEST(Mutants, AreOfEveryRowThatHoldsSomewhere) {
  std::set<std::string_view> figures;
  for (const reproduce::Statement& statement : reproduce::statements()) {
    figures.insert(statement.id);
  }
  int rows = 0;
  for (const Finding& row : all_rows()) {
    if (!holds_somewhere(row)) continue;
    ++rows;
    if (row.claim->reproduced) {
      EXPECT_TRUE(figures.contains(row.claim->id)) << row.claim->id;
    } else {
      EXPECT_FALSE(row.cases.empty()) << row.claim->id << " is tried nowhere";
    }
    const bool is_formula =
        row.claim->kind == Kind::arithmetic || row.claim->kind == Kind::own_formula;
    EXPECT_TRUE(is_formula || row.claim->reproduced || !row.claim->runs.empty())
        << row.claim->id << " is no formula and runs nothing";
  }
  EXPECT_GT(rows, 400);
}

// Ranks that execute anything other than a row's runs are detected, for each run of every row.
TEST(Mutants, OfWhatRanksExecuteAreFaults) {
  constexpr int kMostRanks = 16;
  constexpr std::uint64_t kMostMoves = 4096;
  Runs runs;
  const std::vector<Finding> some = some_rows("mutants of execution");
  std::size_t rows = 0;
  for (const Finding& row : some) {
    const std::vector<RunText> texts = read_runs(row.claim->runs, row.paper->runs);
    // The last case that is small enough, as in a report.
    const auto is_small = [&](const RunText& run, const Case& c) {
      return runs.ranks_of(run, c.letters) <= kMostRanks &&
             runs.moves_of(run, c.letters) <= kMostMoves;
    };
    const auto of = std::find_if(row.cases.rbegin(), row.cases.rend(), [&](const Case& c) {
      return std::any_of(texts.begin(), texts.end(),
                         [&](const RunText& run) { return is_small(run, c); });
    });
    if (texts.empty() || of == row.cases.rend()) continue;
    ++rows;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!is_small(texts[i], *of)) continue;
      LiveRun live{texts[i], of->letters};
      EXPECT_EQ(runs.execute({&live, 1}).front().fault, "") << row.claim->id;
      bool found_out = false;
      for (const RunText& mutant : execution_mutants(texts[i])) {
        try {
          live.made = mutant;
          found_out = !runs.execute({&live, 1}).front().fault.empty();
        } catch (const std::logic_error&) {  // a mutant that cannot run
        } catch (const NotDefined&) {
        }
        if (found_out) break;
      }
      EXPECT_TRUE(found_out) << row.claim->id << ", run '" << texts[i].name
                             << "': its time is right whatever ranks execute";
    }
  }
  EXPECT_GT(rows, some.size() / 5);
}

// Mutants of the figures: another algorithm in Trivance's place, or links of another speed.
std::vector<std::vector<reproduce::Panel>> mutated(const std::vector<reproduce::Panel>& panels) {
  std::vector<std::vector<reproduce::Panel>> out;
  for (const reproduce::Contender& contender : reproduce::contenders()) {
    std::vector<reproduce::Panel> changed = panels;
    for (reproduce::Panel& panel : changed) {
      const reproduce::Curve* curve = panel.find(contender.name);
      if (curve == nullptr || curve->bandwidth == nullptr) continue;
      panel.curves.back().bandwidth = curve->bandwidth;
      if (curve->latency != nullptr) panel.curves.back().latency = curve->latency;
    }
    out.push_back(std::move(changed));
  }
  for (const int times : {100, 10'000}) {
    std::vector<reproduce::Panel> changed = panels;
    for (reproduce::Panel& panel : changed) panel.spec.gigabits *= times;
    out.push_back(std::move(changed));
  }
  // Each panel with the curves of the next, which exchanges rings and tori.
  std::vector<reproduce::Panel> changed = panels;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    changed[i].curves = panels[(i + 5) % panels.size()].curves;
  }
  out.push_back(std::move(changed));
  return out;
}

TEST(Mutants, OfTheFiguresFail) {
  reproduce::Profiles profiles;
  const std::vector<reproduce::Panel> panels = reproduce::panels(profiles);
  const auto mutants = mutated(panels);
  for (const reproduce::Statement& statement : reproduce::statements()) {
    if (!outcome_of(statement, panels).agrees) continue;
    bool killed = false;
    for (const auto& mutant : mutants) {
      try {
        killed = killed || !outcome_of(statement, mutant).agrees;
      } catch (const std::logic_error&) {  // the mutant lacks a curve
      }
    }
    EXPECT_TRUE(killed) << statement.id << " holds whatever the figures show";
  }
}

// Statements that hold only in another fidelity are tested in that fidelity.
TEST(Mutants, OfTheFiguresByFlowAndPacketFail) {
  reproduce::Profiles profiles;
  std::vector<reproduce::Panel> panels = reproduce::panels(profiles);
  const std::vector<reproduce::Panel> by_eq_1 = panels;
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::packet}) {
    reproduce::Carriage carriage(fidelity, profiles);
    for (reproduce::Panel& panel : panels) panel.carriage = &carriage;
    const auto mutants = mutated(panels);
    for (const reproduce::Statement& statement : reproduce::statements()) {
      if (outcome_of(statement, by_eq_1).agrees || !outcome_of(statement, panels).agrees) continue;
      bool killed = false;
      for (const auto& mutant : mutants) {
        killed = killed || !outcome_of(statement, mutant).agrees;
      }
      EXPECT_TRUE(killed) << statement.id << " holds whatever is carried";
    }
  }
}

}  // namespace
}  // namespace rankine::claims
