// Menus: what is on them is in the catalogue, once each, and of every collective that they serve.
#include "engine/read/count.h"

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
  EXPECT_EQ(find_menu("cray"), nullptr);
  EXPECT_EQ(find_menu("nccl")->name, "nccl");
}

// A library has something for every collective, but NCCL no barrier and no scans, UCC no scans and
// no messages between two, and the scans of MPICH (recursive doubling by exchanges) are none of the
// catalogue's.
TEST(Menu, EveryCollectiveIsServed) {
  for (const Menu& menu : menus()) {
    for (const Collective collective : all_collectives()) {
      const bool served = std::any_of(
          catalogue().begin(), catalogue().end(),
          [&](const Algorithm& line) { return line.collective == collective && menu.has(line); });
      const bool has_scans = menu.name == "all" || menu.name == "openmpi";
      const bool none = (menu.name == "nccl" && collective == Collective::barrier) ||
                        (menu.name == "ucc" && collective == Collective::send_recv) ||
                        (!has_scans && is_prefix(collective));
      EXPECT_EQ(served, !none) << menu.name << ", " << name_of(collective);
    }
  }
}

}  // namespace
}  // namespace rankine
