#include "numa/memory.h"

#include <gtest/gtest.h>

#include "tests/numa/temp_tree.h"

namespace rankine {
namespace {

constexpr char kSize[] = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
constexpr char kEnabled[] = "/sys/kernel/mm/transparent_hugepage/enabled";

TEST(Pages, HugePageSize) {
  TempTree tree;
  EXPECT_EQ(huge_page_bytes(tree.root()), 2u << 20) << "no file";
  tree.write(kSize, "33554432\n");
  EXPECT_EQ(huge_page_bytes(tree.root()), 32u << 20);
  for (const char* nonsense : {"0\n", "x\n", "3000000\n", "1024\n"}) {
    tree.write(kSize, nonsense);
    EXPECT_EQ(huge_page_bytes(tree.root()), 2u << 20) << nonsense;
  }
}

TEST(Pages, SwitchedOff) {
  TempTree tree;
  EXPECT_FALSE(huge_pages_switched_off(tree.root())) << "no word of the kernel";
  tree.write(kEnabled, "always [madvise] never\n");
  EXPECT_FALSE(huge_pages_switched_off(tree.root()));
  tree.write(kEnabled, "[always] madvise never\n");
  EXPECT_FALSE(huge_pages_switched_off(tree.root()));
  tree.write(kEnabled, "always madvise [never]\n");
  EXPECT_TRUE(huge_pages_switched_off(tree.root()));
}

TEST(Pages, ThisMachine) {
  EXPECT_GE(page_bytes(), 4096u);
  EXPECT_GT(huge_page_bytes(), page_bytes());
}

}  // namespace
}  // namespace rankine
