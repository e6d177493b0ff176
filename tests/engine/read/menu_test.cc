// Menus: what is on them is in the catalogue, once each, and of every collective that they serve.
#include "engine/read/menu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace rankine {
namespace {

TEST(Menu, EveryLineIsOneOfTheCatalogue) {
  for (const Menu& menu : menus()) {
    std::set<std::pair<Collective, std::string_view>> seen;
    for (const Menu::Line& line : menu.lines) {
      const Algorithm* algorithm = find_algorithm(line.collective, line.algorithm);
      ASSERT_NE(algorithm, nullptr) << menu.name << ": " << line.algorithm;
      EXPECT_TRUE(menu.has(*algorithm));
      EXPECT_TRUE(seen.insert({line.collective, line.algorithm}).second)
          << menu.name << ": " << line.algorithm << " twice";
    }
  }
}

TEST(Menu, AllHasAllAndTheOthersDoNot) {
  const auto has_all = [](const Menu& menu) {
    return std::all_of(catalogue().begin(), catalogue().end(),
                       [&](const Algorithm& line) { return menu.has(line); });
  };
  ASSERT_NE(find_menu("all"), nullptr);
  for (const Menu& menu : menus()) EXPECT_EQ(has_all(menu), menu.name == "all") << menu.name;
  EXPECT_EQ(find_menu("openmpi"), nullptr);
  EXPECT_EQ(find_menu("nccl")->name, "nccl");
}

// A library has something for every collective, but NCCL no barrier and no scans, and those of
// MPICH (recursive doubling by exchanges) are none of the catalogue's.
TEST(Menu, EveryCollectiveIsServed) {
  for (const Menu& menu : menus()) {
    for (const Collective collective : all_collectives()) {
      const bool served = std::any_of(
          catalogue().begin(), catalogue().end(),
          [&](const Algorithm& line) { return line.collective == collective && menu.has(line); });
      const bool nccl_has_none = menu.name == "nccl" && collective == Collective::barrier;
      const bool none = nccl_has_none || (menu.name != "all" && is_prefix(collective));
      EXPECT_EQ(served, !none) << menu.name << ", " << name_of(collective);
    }
  }
}

}  // namespace
}  // namespace rankine
