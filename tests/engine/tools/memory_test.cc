#include "engine/tools/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;

class AvailableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void write(const std::string& file, const std::string& text) {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  AvailableMemory read() const { return available_memory(root_.string()); }

  fs::path root_;
};

TEST_F(AvailableMemoryTest, NobodyTells) {
  EXPECT_EQ(read().bytes, 9223372036854775807U);
  EXPECT_EQ(read().why, "unknown");
}

TEST_F(AvailableMemoryTest, TheKernelTells) {
  write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    400 kB\n");
  EXPECT_EQ(read().bytes, 400U * 1024);
}

TEST_F(AvailableMemoryTest, AContainerMayHaveLess) {
  write("proc/meminfo", "MemAvailable: 400 kB\n");
  write("sys/fs/cgroup/memory.max", "300000\n");
  write("sys/fs/cgroup/memory.current", "200000\n");
  EXPECT_EQ(read().bytes, 100'000U);
  write("sys/fs/cgroup/memory.stat", "anon 1000\ninactive_file 50000\n");
  EXPECT_EQ(read().bytes, 150'000U);
  EXPECT_NE(read().why.find("memory.max"), std::string::npos);
}

TEST_F(AvailableMemoryTest, NoLimitIsNone) {
  write("proc/meminfo", "MemAvailable: 400 kB\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().bytes, 400U * 1024);
}

TEST_F(AvailableMemoryTest, MoreUsedThanAllowedIsNothing) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(read().bytes, 0U);
}

TEST(AvailableMemory, OfThisMachineIsThere) { EXPECT_GT(available_memory().bytes, 1U << 20); }

}  // namespace
}  // namespace rankine::tools
