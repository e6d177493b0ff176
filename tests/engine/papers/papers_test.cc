// A paper's file: what stands in it is what is judged, and a mistake is named.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "engine/papers/claim.h"

namespace rankine::claims {
namespace {

const std::string kHead = R"(
key = "test"
title = "A paper"
letters = "N ranks"
runs = "ranks=N"
own = "N = 4"
[names]
few = "N=2..5"
)";
const std::string kRow = R"(
[[claim]]
id = "test-row"
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

TEST(Papers, AreWhatTheFileSays) {
  const Paper paper = read_paper(kHead + kRow + "stated = \"1\"\nsets = \"$few; P=1\"\n" + R"(
[[claim]]
id = "test-run"
where = "2"
text = "and so"
runs = "all_reduce ring"
found = "rounds"
own = "N = 3"
)");
  ASSERT_EQ(paper.claims.size(), 2u);
  EXPECT_EQ(paper.claims[0].sets, "N=2..5; P=1");
  EXPECT_EQ(paper.claims[0].own, "N = 4");
  EXPECT_EQ(paper.claims[0].kind, Kind::arithmetic);
  EXPECT_EQ(paper.claims[0].relation, "=");
  EXPECT_EQ(paper.claims[1].kind, Kind::executed);
  EXPECT_EQ(paper.claims[1].own, "N = 3");
}

TEST(Papers, MistakesAreNamed) {
  EXPECT_EQ(mistake(kRow), "none");
  EXPECT_EQ(mistake(kRow + "sets = \"$many\"\n"), "claim 'test-row': no name is called 'many'");
  EXPECT_EQ(mistake(kRow + "statd = \"1\"\n"),
            "claim 'test-row': it has fields that no such row has");
  EXPECT_EQ(mistake(kRow + "stated = 1\n"), "claim 'test-row': 'stated' is no text");
  EXPECT_EQ(mistake("[[claim]]\nid = \"x\"\nwhere = \"1\"\n"), "claim 'x': 'text' is missing");
  EXPECT_EQ(mistake(kRow + "when = \"N = 4\"\n"),
            "claim 'test-row': when and condition say the same and belong together");
  EXPECT_NE(mistake(kRow + "kind = \"arithmetic\"\n"), "none");
  EXPECT_NE(mistake("[[statement]]\nid = \"x\"\nmeasure = \"speed\"\n"), "none");
  EXPECT_NE(mistake("[[row]]\nid = \"x\"\n"), "none");
  EXPECT_THROW(read_paper("claim = 3\n" + kHead), std::logic_error);
  EXPECT_NE(mistake("[[claim\n"), "none");
}

TEST(Papers, AllFilesCanBeRead) {
  EXPECT_EQ(papers().size(), 5u);
  EXPECT_EQ(find_paper("nobody"), nullptr);
  ASSERT_NE(find_paper("trivance"), nullptr);
  EXPECT_GT(find_paper("trivance")->statements.size(), 40u);
}

}  // namespace
}  // namespace rankine::claims
