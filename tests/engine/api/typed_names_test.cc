// Names as people type them mean what the catalogue has, and nothing else.
#include "engine/api/typed_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace rankine {
namespace {

using enum Collective;

std::string upper_without(std::string_view name, char separator) {
  std::string out;
  for (const char c : name) {
    if (c != separator) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

TEST(TypedNames, EveryNameIsFoundHoweverItIsWritten) {
  for (const Algorithm& line : catalogue()) {
    std::string dashes(line.name);
    std::replace(dashes.begin(), dashes.end(), '_', '-');
    for (const std::string& typed :
         {std::string(line.name), dashes, upper_without(line.name, '_')}) {
      EXPECT_EQ(find_typed_algorithm(line.collective, typed), &line) << typed;
    }
    EXPECT_EQ(find_typed_collective(upper_without(name_of(line.collective), '_')), line.collective);
  }
  EXPECT_EQ(find_typed_collective("all reduce"), all_reduce);
  EXPECT_EQ(find_typed_collective("all_reduced"), std::nullopt);
  EXPECT_EQ(find_typed_collective(""), std::nullopt);
}

TEST(TypedNames, AliasesStandForOtherNames) {
  EXPECT_EQ(find_typed_algorithm(all_reduce, "Tree"), find_algorithm(all_reduce, "double_tree"));
  EXPECT_EQ(find_typed_algorithm(all_gather, "NVLS"), find_algorithm(all_gather, "switch"));
  EXPECT_EQ(find_typed_algorithm(all_gather, "tree"), nullptr);
  EXPECT_EQ(find_typed_algorithm(all_reduce, "trees"), nullptr);
}

TEST(TypedNames, ANameAloneIsThatOfAllThatHaveIt) {
  const auto lines = find_typed_algorithms("Tree");
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  for (const Algorithm* line : lines) EXPECT_EQ(line->name, "double_tree");
  const auto having =
      std::count_if(catalogue().begin(), catalogue().end(),
                    [](const Algorithm& line) { return line.name == "double_tree"; });
  EXPECT_EQ(static_cast<std::ptrdiff_t>(lines.size()), having);
  EXPECT_TRUE(find_typed_algorithms("no such").empty());
}

}  // namespace
}  // namespace rankine
