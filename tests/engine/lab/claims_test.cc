// Tests of claims: their cases, conditions, files, reports and verdicts.

#include <fmt/format.h>

#include <deque>

#include "engine/papers/claim.h"
#include "engine/papers/condition.h"
#include "engine/papers/evaluate.h"
#include "engine/papers/report.h"
#include "tests/budget.h"
#include "tests/testing.h"

// A claim's cases, as written and in their order.

namespace rankine::formulas {
namespace {

TEST(ParameterSets, ProductsInOrder) {
  const ParameterSets sets = parameter_sets("N=2..4; P=1,N; M=1000*min(N,P)");
  EXPECT_EQ(sets.order, (std::vector<std::string>{"N", "P", "M"}));
  ASSERT_EQ(sets.sets.size(), 6u);
  EXPECT_TRUE(equal(sets.sets[5].at("M"), 4000));
  EXPECT_TRUE(equal(sets.sets[4].at("P"), 1));
  EXPECT_EQ(parameter_sets("").sets.size(), 1u);
}

}  // namespace
}  // namespace rankine::formulas

// Conditions are found from cases alone.

namespace rankine::claims {
namespace {

std::string found(std::string_view sets, std::string_view truth) {
  const formulas::ParameterSets parameters = formulas::parameter_sets(sets);
  std::vector<bool> holds;
  for (const Letters& letters : parameters.sets) {
    holds.push_back(!equal(evaluate(truth, letters), 0));
  }
  return condition_of(parameters.order, parameters.sets, holds);
}

TEST(Condition, IsTheShortestThatTheCasesHave) {
  EXPECT_EQ(found("N=2..17", "pow2(N)"), "N is a power of two");
  EXPECT_EQ(found("N=2..30", "pow3(N)"), "N is a power of three");
  EXPECT_EQ(found("N=2..17", "mod(N,2)"), "N is odd");
  EXPECT_EQ(found("N=2..17; M=10,20", "N >= 5"), "N >= 5");
  EXPECT_EQ(found("N=2..17; M=10,20", "M = 10"), "M = 10");
  EXPECT_EQ(found("N=2..17; k=1..4", "and(pow2(N), k >= 2)"), "N is a power of two and k >= 2");
  EXPECT_EQ(found("N=2..17; k=1..4", "or(N = 2, k = 1)"), "N = 2 or k = 1");
  EXPECT_EQ(found("N=2..9; k=1", "or(N = 2, or(N = 4, N = 7))"), "N = 2; N = 4; N = 7");
}

// A paper's file: its rows are the ones that are judged, and errors name the mistake.

const std::string kHead = R"(
key = "test"
title = "A paper"
letters = "N ranks"
runs = "ranks=N"
sets = "$few"
own = "N = 4"
[names]
few = "N=2..5"
)";
const std::string kRow = R"(
[claim.test-row]
where = "1"
text = "so it is"
)";

std::string mistake(const std::string& rows) {
  try {
    read_paper(kHead + rows);
  } catch (const std::logic_error& wrong) {
    return wrong.what();
  }
  return "none";
}

TEST(Papers, ChecksHaveTwoSidesAndARelation) {
  using Parts = std::array<std::string, 3>;
  for (const auto& [check, parts] : {std::pair<std::string, Parts>("1 = N-1", {"1", "=", "N-1"}),
                                     {"f(a = b) >= c", {"f(a = b)", ">=", "c"}},
                                     {"2*N ~ sent/m within f(1)", {"2*N", "~ f(1)", "sent/m"}}}) {
    const Claim claim = read_paper(kHead + kRow + "check = \"" + check + "\"\n").claims[0];
    EXPECT_EQ((Parts{claim.stated, claim.relation, claim.found}), parts);
  }
}

TEST(Papers, AreWhatTheFileSays) {
  const Paper paper = read_paper(kHead + kRow + "stated = \"1\"\nsets = \"$few; P=1\"\n" + R"(
[claim.test-run]
text = "and so"
runs = "all_reduce ring"
found = "rounds"
own = "N = 3"
)");
  ASSERT_EQ(paper.claims.size(), 2u);
  EXPECT_EQ(paper.claims[0].sets, "N=2..5; P=1");
  EXPECT_EQ(paper.claims[0].own, "N = 4");
  EXPECT_EQ(paper.claims[0].kind, Kind::arithmetic);
  EXPECT_EQ(paper.claims[1].kind, Kind::executed);
  EXPECT_EQ(paper.claims[1].own, "N = 3");
  EXPECT_EQ(paper.claims[1].id, "test-run");
  EXPECT_EQ(paper.claims[1].where, "1");
  EXPECT_EQ(paper.claims[1].sets, "N=2..5");
  EXPECT_EQ(read_paper(kHead + kRow).claims[0].sets, "");  // nothing runs
}

TEST(Papers, RowsOfAListHaveItsFieldsAndTheirCells) {
  const Paper paper = read_paper(kHead + R"(
[[claims]]
where = "2"
runs = "all_reduce ring"
columns = ["text", "check", "why"]
row.test-second = ["more", "N = rounds"]
row.test-first = ["most", "1 = rounds", "because"]
)" + kRow);
  ASSERT_EQ(paper.claims.size(), 3u);
  EXPECT_EQ(paper.claims[0].id, "test-row");  // by its place
  EXPECT_EQ(paper.claims[1].id, "test-second");
  EXPECT_EQ(paper.claims[1].stated, "N");
  EXPECT_EQ(paper.claims[1].runs, "all_reduce ring");
  EXPECT_EQ(paper.claims[1].sets, "N=2..5");
  EXPECT_EQ(paper.claims[2].id, "test-first");
  EXPECT_EQ(paper.claims[2].where, "2");
  EXPECT_EQ(paper.claims[2].text, "most");
  EXPECT_EQ(paper.claims[1].why, "");
  EXPECT_EQ(paper.claims[2].why, "because");
}

// An agreement by chance is no proof: the row does not hold, but the report says where it agrees.
TEST(Papers, WhatAgreesByChanceDoesNotHold) {
  const std::string row = kRow + R"(
stated = "3"
found = "N-1"
sets = "N=2..5"
condition = "there are four ranks"
)";
  const Paper condition = read_paper(kHead + row + "when = \"N = 4\"\n");
  const Paper chance = read_paper(kHead + row + "but_where = \"N = 4\"\n");
  Runs runs;
  EXPECT_EQ(golden_line(judge(condition, condition.claims[0], runs)),
            "test-row arithmetic holds if there are four ranks");
  EXPECT_EQ(golden_line(judge(chance, chance.claims[0], runs)),
            "test-row arithmetic does not hold, but where there are four ranks");
}

TEST(Papers, RowsStandAtTheirPlace) {
  std::string rows;
  for (const char* where : {"Abstract; 9", "Table 1; B.1", "10.2", "2.4, note", "Appendix B", "B.2",
                            "Theorem 4.3", "Table 1"}) {
    rows += fmt::format("[claim.\"test-{}\"]\ntext = \"so\"\nwhere = \"{}\"\n", rows.size(), where);
  }
  const Paper paper = read_paper(kHead + rows);
  std::string order;
  for (const Claim& claim : paper.claims) order += claim.where + " | ";
  EXPECT_EQ(order,
            "Abstract; 9 | Table 1; B.1 | Table 1 | 2.4, note | Theorem 4.3 | 10.2 | Appendix B | "
            "B.2 | ");
  const Claim claim{.id = "a", .where = "2.4; C.5, table", .text = "b"};
  for (const char* place : {"2", "2.4", "C.5", "C", "Appendix C.5"}) {
    EXPECT_TRUE(is_at(claim, place)) << place;
  }
  for (const char* place : {"", "5", "C.5, t", "2.40", "table"})
    EXPECT_FALSE(is_at(claim, place)) << place;
}

// Two sides of a comparison have the same ports, unless the claim is about more ports.
TEST(Papers, BothSidesHaveTheSamePorts) {
  const std::set<std::string_view> about_ports = {"lu-c3-floor",
                                                  "chapter-bidirectional-utilisation"};
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      std::set<std::string> ports;
      for (const RunText& run : read_runs(claim.runs, paper.runs)) {
        const auto given = std::find_if(run.options.begin(), run.options.end(),
                                        [](const auto& option) { return option.first == "ports"; });
        ports.insert(given == run.options.end() ? "1" : given->second);
      }
      EXPECT_EQ(ports.size() > 1, about_ports.contains(claim.id)) << claim.id;
    }
  }
}

TEST(Papers, UsefulFindingsAreRowsThatDoNotSimplyHold) {
  std::ifstream file("tests/golden/claims.txt");
  const std::string golden(std::istreambuf_iterator<char>(file), {});
  for (const Paper& paper : papers()) {
    const std::string row = "\n" + paper.key + "-";
    std::size_t rows = 0;
    for (auto at = golden.find(row); at != golden.npos; at = golden.find(row, at + 1)) ++rows;
    EXPECT_EQ(paper.useful.size(), std::min<std::size_t>(rows, 5)) << paper.key;
    for (const std::string& id : paper.useful) {
      EXPECT_NE(golden.find("\n" + id + " "), golden.npos) << id;
    }
  }
}

TEST(Papers, MistakesAreNamed) {
  EXPECT_EQ(mistake(kRow), "none");
  for (const auto& [rows, name] :
       {std::pair(kRow + "sets = \"$many\"\n", "many"),
        {kRow + "statd = \"1\"\n", "'test-row'"},
        {kRow + "stated = 1\n", "'stated'"},
        {kRow + "stated = \"1\"\ncheck = \"1 = N\"\n", "check"},
        {kRow + "check = \"N-1\"\n", "check is 'N-1'"},
        {kRow + "check = \"1 ~ N\"\n", "check is"},
        {kRow + "check = \"1 = N within 2\"\n", "check is"},
        {kRow + "check = \"= N\"\n", "check is"},
        {"[claim.x]\nwhere = \"1\"\n", "'text'"},
        {"[claim.x]\ntext = \"so\"\n", "'where'"},
        {kRow + kRow, "line"},
        {"[[claim]]\ntext = \"so\"\n", "[claim.ID]"},
        {"[claims]\nrow.x = []\n", "[[claims]]"},
        {"[[claims]]\ncolumns = [\"text\"]\n", "row.ID"},
        {"[[claims]]\ncolumns = [\"text\"]\nrow.x = [\"a\", \"b\"]\n", "'x'"},
        {"[[claims]]\ntext = \"so\"\ncolumns = [\"text\"]\nrow.x = [\"so\"]\n", "'x'"},
        {kRow + "[[claims]]\ncolumns = [\"text\"]\nrow.test-row = [\"so\"]\n", "twice"},
        {kRow + "when = \"N = 4\"\n", "condition"},
        {kRow + "when = \"N = 4\"\nbut_where = \"N = 5\"\n", "but_where"},
        {kRow + "kind = \"arithmetic\"\n", "'test-row'"},
        {"[statement.x]\nmeasure = \"speed\"\n", ""},
        {"[row.x]\n", ""},
        {"[claim\n", ""}}) {
    EXPECT_NE(mistake(rows), "none") << rows;
    EXPECT_NE(mistake(rows).find(name), std::string::npos) << rows << mistake(rows);
  }
  EXPECT_THROW(read_paper("claim = 3\n" + kHead), std::logic_error);
}

TEST(Papers, AllFilesCanBeRead) {
  EXPECT_EQ(papers().size(), 6u);
  EXPECT_EQ(find_paper("nobody"), nullptr);
  ASSERT_NE(find_paper("trivance"), nullptr);
  EXPECT_GT(find_paper("trivance")->statements.size(), 40u);
}

// The report in all its forms: it has every requested row, counts by kind, and escapes all text.

class Report : public testing::Test {
 protected:
  Report() {
    paper_ = {.key = "test", .title = "A <paper>", .letters = "N ranks", .runs = ""};
    paper_.claims = {{.id = "test-a", .where = "1", .text = "a|b & \"c\" < d"},
                     {.id = "test-b", .where = "2", .text = "b", .kind = Kind::definition}};
    for (const Claim& claim : paper_.claims) {
      Finding finding;
      finding.paper = &paper_;
      finding.claim = &claim;
      findings_.push_back(finding);
    }
    findings_[0].verdict = Verdict::does_not_hold;
    findings_[0].exception = "N = 2";
    findings_[1].verdict = Verdict::holds;
  }
  std::string printed(void (*print)(std::ostream&, const std::vector<Finding>&, const Filter&),
                      const Filter& filter = {}) const {
    std::ostringstream out;
    print(out, findings_, filter);
    return out.str();
  }
  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  Paper paper_;
  std::vector<Finding> findings_;
};

TEST_F(Report, CountsAreByKind) {
  const std::string text = printed(print_text);
  EXPECT_TRUE(has(text, "1 executed: 1 does not hold\n")) << text;
  EXPECT_TRUE(has(text, "1 definition: 1 holds\n")) << text;
  EXPECT_TRUE(has(text, "2 claims.")) << text;
  const auto json = to_json(findings_, {});
  EXPECT_EQ(json.at("counts").at("kinds").at("executed").at("holds"), 0);
  EXPECT_EQ(json.at("counts").at("kinds").at("definition").at("holds"), 1);
}

TEST_F(Report, RowsOfWhichNothingIsExecutedAreCountedByTheirReasons) {
  constexpr std::string_view kBegin = "Network rows without an executed run: ";
  EXPECT_FALSE(has(printed(print_text), kBegin));
  findings_[0].unexecuted = Unexecuted::beyond_communicator;
  findings_[1].unexecuted = Unexecuted::not_reproduced;
  for (const auto print : {print_text, print_markdown, print_html}) {
    EXPECT_TRUE(has(printed(print), std::string(kBegin) +
                                        "2; 1 above a communicator's limit of ranks, 1 beyond "
                                        "the model or the catalogue."))
        << printed(print);
  }
  const auto json = to_json(findings_, {});
  EXPECT_EQ(json.at("claims").at(0).at("unexecuted"), "beyond_communicator");
  EXPECT_EQ(json.at("counts").at("unexecuted").at("beyond_communicator"), 1);
  EXPECT_EQ(json.at("counts").at("unexecuted").at("not_reproduced"), 1);
}

// A row that is not executed has the reason; an executed row has none.
TEST(Unexecuted, IsToldOfARowThatNobodyExecutes) {
  Claim claim{.id = "test",
              .where = "here",
              .text = "ring",
              .stated = "N-1",
              .runs = "a: reduce_scatter ring | b: all_reduce ring",
              .found = "a.rounds",
              .sets = "alpha=1; BW=1; M=1024; N=5,6"};
  const Paper& paper = *find_paper("lu");
  Runs runs;
  // The smallest case has five ranks; each receives four blocks in one run and eight in the other.
  const auto least_of = [](std::uint64_t moves) {
    return EvaluateOptions{.most_ranks = 4, .most_moves_of_least = moves};
  };
  EXPECT_EQ(evaluate(paper, claim, runs, least_of(40)).executed, 2);
  EXPECT_EQ(evaluate(paper, claim, runs, least_of(39)).executed, 1);
  const Finding least = evaluate(paper, claim, runs, least_of(19));  // no run is as small
  EXPECT_EQ(least.unexecuted, Unexecuted::no);
  EXPECT_EQ(least.executed, 1);
  EXPECT_EQ(evaluate(paper, claim, runs, {.most_ranks = 5}).executed, 2);
  EXPECT_EQ(evaluate(paper, claim, runs, {.most_ranks = 6}).executed, 4);
  EXPECT_EQ(evaluate(paper, claim, runs, {.execute = false}).unexecuted, Unexecuted::no);
  claim.sets = "alpha=1; BW=1; M=1024; N=4097";
  EXPECT_EQ(evaluate(paper, claim, runs, {}).unexecuted, Unexecuted::beyond_communicator);
  claim.runs = "a: reduce_scatter perpetual_motion";
  EXPECT_EQ(evaluate(paper, claim, runs, {}).unexecuted, Unexecuted::not_reproduced);
}

TEST_F(Report, OnlyWhatIsAskedForIsShown) {
  for (const auto print : {print_text, print_markdown, print_html}) {
    EXPECT_TRUE(
        has(printed(print, {.verdict = Verdict::does_not_hold}), "does not hold, but where N = 2"));
    EXPECT_FALSE(has(printed(print, {.verdict = Verdict::holds}), "does not hold, but"));
    EXPECT_FALSE(has(printed(print, {.kind = Kind::definition}), "does not hold, but"));
  }
  EXPECT_EQ(to_json(findings_, {.kind = Kind::definition}).at("claims").size(), 1u);
}

TEST_F(Report, BeginsWithThePaperAndItsMostUsefulFindings) {
  paper_.useful = {"test-a"};
  const Page page = first_page(findings_);
  ASSERT_EQ(page.size(), 4u);
  EXPECT_EQ(page[1].second, (std::vector<std::string>{"A <paper>: 1 holds, 1 does not hold"}));
  EXPECT_TRUE(has(page[3].second.at(0), "test-a [1] ")) << page[3].second.at(0);
  for (const auto print : {print_text, print_markdown, print_html}) {
    EXPECT_TRUE(has(printed(print), "How to read a row")) << printed(print);
  }
}

TEST(Rows, HaveTheirUnitAndTheirTolerance) {
  const Paper& paper = *find_paper("lu");
  Runs runs;
  const auto row = [&](Claim claim) {
    static std::deque<Claim> claims;
    claims.push_back(std::move(claim));
    claims.back().sets = "alpha=1; BW=1; M=1024; N=4";
    return report_row(judge(paper, claims.back(), runs));
  };
  const ReportRow time = row({.id = "a",
                              .where = "1",
                              .text = "b",
                              .stated = "2055",
                              .runs = "all_reduce ring",
                              .found = "time",
                              .relation = "~ stated/100"});
  EXPECT_EQ(time.relation, "=, within 1 %");
  EXPECT_TRUE(time.shown.ends_with("stated 2055 s, found 1542 s (within 20.55 s)  <- differ"))
      << time.shown;
  const ReportRow bytes = row({.id = "a",
                               .where = "1",
                               .text = "b",
                               .printed = "1.5 KB",
                               .runs = "all_reduce ring",
                               .found = "sent"});
  EXPECT_EQ(bytes.relation, "rounds to, within 50 B");
  EXPECT_TRUE(bytes.shown.ends_with("stated 1.5 KB, found 1536 B (within 50 B)")) << bytes.shown;
  const ReportRow ratio = row({.id = "a",
                               .where = "1",
                               .text = "b",
                               .stated = "6",
                               .runs = "all_reduce ring",
                               .found = "time/alpha"});
  EXPECT_TRUE(ratio.shown.ends_with("stated 6, found 1542  <- differ")) << ratio.shown;
}

TEST_F(Report, DocumentsEscapeWhatTheyQuote) {
  const std::string html = printed(print_html);
  EXPECT_TRUE(has(html, "<h2>A &lt;paper&gt;</h2>")) << html;
  EXPECT_TRUE(has(html, "<td>a|b &amp; &quot;c&quot; &lt; d</td>")) << html;
  EXPECT_TRUE(has(html, "</table>\n</body></html>\n")) << html;
  EXPECT_TRUE(has(printed(print_markdown), "| a\\|b & \"c\" \\< d |")) << printed(print_markdown);
}

TEST_F(Report, GoldenLinesTellKindVerdictAndCondition) {
  EXPECT_EQ(golden_line(findings_[0]), "test-a executed does not hold, but where N = 2");
  findings_[1].verdict = Verdict::holds_if;
  findings_[1].condition = "N is odd";
  EXPECT_EQ(golden_line(findings_[1]), "test-b definition holds if N is odd");
}

// Evaluates every claim and compares the verdicts with the golden list, which has the rows that do
// not simply hold. mutants_test.cc tests wrong claims.
//
// After an intended change (a new algorithm, another network model), write the file anew with
// RANKINE_TEST_GOLDEN_OUT=$PWD/tests/golden/claims.txt and RANKINE_TEST_BUDGET=all.

TEST(Claims, IdsAreUniqueAndNamedAfterTheirPaper) {
  std::set<std::string_view> ids;
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      EXPECT_TRUE(ids.insert(claim.id).second) << claim.id << " is there twice";
      EXPECT_TRUE(claim.id.starts_with(std::string(paper.key) + "-")) << claim.id;
      EXPECT_FALSE(claim.where.empty() || claim.text.empty()) << claim.id;
    }
  }
}

// One test, because each shard of the binary would evaluate the claims anew.
TEST(Claims, VerdictsAreThoseOfTheGoldenListAndExplained) {
  const Sample sample("claims", 5);
  const auto findings =
      find_out({.keeps = [&](std::size_t number) { return sample.has(number); }}, {});
  std::ifstream file("tests/golden/claims.txt");
  const std::string golden(std::istreambuf_iterator<char>(file), {});
  std::string rows;
  int holding = 0;
  for (const Finding& finding : findings) {
    const std::string& id = finding.claim->id;
    const std::string line = golden_line(finding) + "\n";
    const bool holds = finding.verdict == Verdict::holds;
    holding += holds ? 1 : 0;
    if (!holds) rows += line;
    EXPECT_EQ(golden.find("\n" + line) != golden.npos, !holds) << line;
    if (holds) {
      EXPECT_EQ(golden.find("\n" + id + " "), golden.npos) << line;
    }

    // Live ranks take the time of the simulation to the last tick.
    EXPECT_EQ(finding.fault, "") << id;
    const bool on_a_network = !finding.claim->runs.empty() || finding.claim->reproduced;
    EXPECT_EQ(finding.executed > 0, on_a_network) << id;
    EXPECT_EQ(finding.unexecuted, Unexecuted::no) << id;

    if (finding.verdict == Verdict::holds) continue;
    EXPECT_FALSE(finding.claim->why.empty() && finding.reason.empty()) << id;
    if (finding.verdict == Verdict::holds_if) {
      EXPECT_NE(finding.condition, "") << id;
    }
    // The condition in the row's text must equal the one found; otherwise the report would
    // contradict it.
    if (!finding.claim->condition.empty()) {
      const std::string& found =
          finding.verdict == Verdict::holds_if ? finding.condition : finding.exception;
      EXPECT_EQ(found, finding.claim->condition) << id;
    }
  }
  EXPECT_GE(findings.size(), 80U);
  if (!budget_is_all()) return;
  rows = std::to_string(holding) + " rows hold; these do not, or not always:\n" + rows;
  if (const char* out = std::getenv("RANKINE_TEST_GOLDEN_OUT")) std::ofstream(out) << rows;
  EXPECT_EQ(rows, golden);
  EXPECT_GT(totals_of(findings).executed, 700);
}

TEST(Claims, KindsFollowFromWhatARowLooksAt) {
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      if (!claim.needs.empty() || claim.reproduced) continue;
      const bool runs = !claim.runs.empty();
      EXPECT_EQ(claim.kind == Kind::arithmetic && runs, false) << claim.id;
      EXPECT_EQ(claim.kind == Kind::executed && !runs, false) << claim.id;
    }
  }
}

Finding found_of(const std::string& stated, const std::string& runs, const std::string& cases,
                 const std::string& degenerate = "", const std::string& own = "") {
  static std::deque<Claim> claims;  // findings refer to them
  claims.push_back({.id = "test",
                    .where = "here",
                    .text = "a text",
                    .stated = stated,
                    .runs = runs,
                    .found = "rounds",
                    .sets = "alpha=1; BW=1; M=1024; N=" + cases,
                    .own = own,
                    .degenerate = degenerate});
  Runs all;
  return evaluate(*find_paper("lu"), claims.back(), all, {.execute = false});
}

TEST(Claims, HoldFailOrHoldUnderACondition) {
  const char* ring = "reduce_scatter ring";
  // A row that only a degenerate case meets does not hold; "x" is a letter that the sets lack.
  EXPECT_EQ(found_of("clog2(N)", ring, "2,4..9", "N = 2").verdict, Verdict::does_not_hold);
  EXPECT_EQ(found_of("clog2(N)", ring, "2,4..9", "N = 2").exception, "N = 2");
  EXPECT_EQ(found_of("clog2(N)", ring, "2,4..9", "x = 2").verdict, Verdict::holds_if);
  const Finding own = found_of("N-1", ring, "2..9", "", "N = 5");
  ASSERT_NE(own.own(), nullptr);
  EXPECT_EQ(to_string(own.own()->found), "4");
  const Finding some = found_of("clog2(N)", "all_reduce recursive_doubling", "2..20");
  EXPECT_EQ(some.verdict, Verdict::holds_if);
  EXPECT_EQ(some.condition, "N is a power of two");
  EXPECT_EQ(found_of("1", "all_reduce perpetual_motion", "4").verdict, Verdict::not_reproduced);
}

TEST(Runs, RanksAreWiredAsTheTextSays) {
  Runs runs;
  const auto value = [&runs](std::string_view text, std::string_view quantity) {
    const auto found = runs.quantity(read_runs(text, "bytes=900; alpha=1; beta=0"), {}, quantity);
    return found ? to_string(*found) : "nothing";
  };
  // 2 (1/3 + 1/9) (1 + 1/3): appendix B.2 of Trivance.
  EXPECT_EQ(value("all_reduce trivance; ranks=81; dims=9x9; wiring=torus", "delay"), "32/27");
  EXPECT_EQ(value("all_reduce trivance; ranks=81; dimensions=2; wiring=torus", "delay"), "32/27");
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9; wiring=ring", "delay"), "4");
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9", "ring_load"), "4");
  EXPECT_EQ(value("all_reduce bruck_ternary; ranks=9; wiring=ring; routing=one_way", "delay"), "4");
  // Two rounds: to neighbours, and over three links.
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9; wiring=ring; hop=1/2", "time"), "4");
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9; wiring=ring; hop=1/2", "n_alpha"), "2");
  EXPECT_THROW(value("all_reduce ring; ranks=4; wiring=star", "time"), std::logic_error);
  EXPECT_THROW(value("all_reduce ring; ranks=4; wiring=ring; routing=any", "time"),
               std::logic_error);
  EXPECT_THROW(value("all_reduce trivance; ranks=8; dims=3x3; wiring=torus", "time"), NotDefined);
}

TEST(Claims, StatementsOfTheEvaluationAreThoseOfReproduce) {
  const auto findings = find_out({.paper = "trivance", .id = "trivance-6.1"}, {.execute = false});
  ASSERT_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    EXPECT_TRUE(finding.claim->reproduced) << finding.claim->id;
    EXPECT_FALSE(finding.said.empty() || finding.measured.empty()) << finding.claim->id;
    // Each way to compute the figures has a result, and the verdict follows from them.
    ASSERT_EQ(finding.again.size(), static_cast<std::size_t>(reproduce::kBy)) << finding.claim->id;
    const auto carried = std::span(finding.again).first(3);
    const auto found = std::count_if(carried.begin(), carried.end(),
                                     [](const Finding::Again& by) { return by.agrees; });
    EXPECT_EQ(finding.verdict == Verdict::holds, found == 3) << finding.claim->id;
    EXPECT_EQ(finding.verdict == Verdict::holds_if,
              found % 3 != 0 || (found == 0 && finding.again[3].agrees))
        << finding.claim->id;
  }
}

TEST(Printed, RoundsToItsLastDigit) {
  const auto holds = [](std::string_view printed, std::string_view value) {
    const Printed number = read_printed(printed);
    const Value difference = evaluate(value, Letters{}) - number.value;
    const Value distance = less(difference, 0) ? Value() - difference : difference;
    return !less(number.tolerance, distance);
  };
  EXPECT_TRUE(holds("35.3 MB", "35.25e6"));
  EXPECT_FALSE(holds("35.3 MB", "35.36e6"));
  EXPECT_TRUE(holds("~280 ms", "0.2846"));
  EXPECT_TRUE(holds("~12 %", "0.126"));
  EXPECT_FALSE(holds("12 %", "0.126"));
  EXPECT_FALSE(holds("~12 %", "0.131"));
  EXPECT_FALSE(holds("280 ms", "0.2846"));
  EXPECT_TRUE(holds("3.9x", "3.94"));
  EXPECT_TRUE(holds("25 %", "0.25"));
  EXPECT_TRUE(holds("9", "9"));
  EXPECT_FALSE(holds("9", "9.1"));
  EXPECT_THROW(read_printed("many"), std::logic_error);
}

}  // namespace
}  // namespace rankine::claims
