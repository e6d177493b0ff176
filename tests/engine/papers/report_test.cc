// The report in all its forms: every row that is asked for, counts by kind, nothing unescaped.
#include "engine/papers/report.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace rankine::claims {
namespace {

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
    findings_[0].verdict = Verdict::fails;
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
  constexpr std::string_view kBegin = "Rows on a network of which nothing is executed: ";
  EXPECT_FALSE(has(printed(print_text), kBegin));
  findings_[0].unexecuted = Unexecuted::beyond_communicator;
  findings_[1].unexecuted = Unexecuted::beyond_model;
  for (const auto print : {print_text, print_markdown, print_html}) {
    EXPECT_TRUE(has(printed(print), std::string(kBegin) +
                                        "2; 1 of more ranks than a communicator takes, 1 beyond "
                                        "the model or the catalogue."))
        << printed(print);
  }
  const auto json = to_json(findings_, {});
  EXPECT_EQ(json.at("claims").at(0).at("unexecuted"), "beyond_communicator");
  EXPECT_EQ(json.at("counts").at("unexecuted").at("beyond_communicator"), 1);
  EXPECT_EQ(json.at("counts").at("unexecuted").at("beyond_model"), 1);
}

// Why nothing of a row is executed; of one that is, nothing is said.
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
  // The least case has five ranks, each of which hears of four blocks, or of eight.
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
  EXPECT_EQ(evaluate(paper, claim, runs, {}).unexecuted, Unexecuted::beyond_model);
}

TEST_F(Report, OnlyWhatIsAskedForIsShown) {
  for (const auto print : {print_text, print_markdown, print_html}) {
    EXPECT_TRUE(has(printed(print, {.verdict = Verdict::fails}), "does not hold, but where N = 2"));
    EXPECT_FALSE(has(printed(print, {.verdict = Verdict::holds}), "does not hold, but"));
    EXPECT_FALSE(has(printed(print, {.kind = Kind::definition}), "does not hold, but"));
  }
  EXPECT_EQ(to_json(findings_, {.kind = Kind::definition}).at("claims").size(), 1u);
}

TEST_F(Report, DocumentsEscapeWhatTheyQuote) {
  const std::string html = printed(print_html);
  EXPECT_TRUE(has(html, "<h2>A &lt;paper&gt;</h2>")) << html;
  EXPECT_TRUE(has(html, "<td>a|b &amp; &quot;c&quot; &lt; d</td>")) << html;
  EXPECT_TRUE(has(html, "</table>\n</body></html>\n")) << html;
  EXPECT_TRUE(has(printed(print_markdown), "| a\\|b & \"c\" \\< d |")) << printed(print_markdown);
}

TEST_F(Report, GoldenLinesTellKindVerdictAndCondition) {
  EXPECT_EQ(golden_line(findings_[0]), "test-a executed fails, but where N = 2");
  findings_[1].verdict = Verdict::conditional;
  findings_[1].condition = "N is odd";
  EXPECT_EQ(golden_line(findings_[1]), "test-b definition conditional: N is odd");
}

}  // namespace
}  // namespace rankine::claims
