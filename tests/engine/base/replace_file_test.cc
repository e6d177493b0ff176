// Files that are replaced whole: links, permissions, devices, and what stays where it fails.
#include "engine/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rankine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ReplaceFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/replace_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  static std::string text(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(ReplaceFile, MakesAndReplaces) {
  ASSERT_TRUE(replace_file(path("a"), "one").ok());
  EXPECT_EQ(text(path("a")), "one");
  ASSERT_TRUE(replace_file(path("a"), "two, and longer").ok());
  EXPECT_EQ(text(path("a")), "two, and longer");
  ASSERT_TRUE(replace_file(path("a"), "").ok());
  EXPECT_EQ(text(path("a")), "");
  EXPECT_EQ(files(), 1u);
}

// Who has the old file open reads it to its end: it was not written to.
TEST_F(ReplaceFile, LeavesTheOldFileAlone) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  std::ifstream before(path("a"));
  ASSERT_TRUE(replace_file(path("a"), "new").ok());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(before), {}), "old");
}

TEST_F(ReplaceFile, KeepsLinksAndPermissions) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  fs::create_symlink("a", path("relative"));
  fs::create_symlink(path("relative"), path("absolute"));
  ASSERT_TRUE(replace_file(path("absolute"), "new").ok());
  EXPECT_EQ(text(path("a")), "new");
  EXPECT_TRUE(fs::is_symlink(path("absolute")) && fs::is_symlink(path("relative")));
  EXPECT_EQ(static_cast<int>(fs::status(path("a")).permissions()), 0640);
  fs::create_symlink("not_yet", path("dangling"));
  ASSERT_TRUE(replace_file(path("dangling"), "made").ok());
  EXPECT_EQ(text(path("not_yet")), "made");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
}

TEST_F(ReplaceFile, NewFilesHaveThePermissionsThatTheUmaskLeaves) {
  const mode_t before = umask(027);
  EXPECT_TRUE(replace_file(path("a"), "x").ok());
  umask(before);
  EXPECT_EQ(static_cast<int>(fs::status(path("a")).permissions()), 0640);
}

TEST_F(ReplaceFile, WritesToDevicesAndPipesAsTheyAre) {
  ASSERT_TRUE(replace_file("/dev/null", "x").ok());
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  EXPECT_TRUE(check_replaceable("/dev/null").ok());
  const Status full = replace_file("/dev/full", "x");
  EXPECT_EQ(full.code(), Code::system);
  EXPECT_EQ(full.text(), "'/dev/full' cannot be written: No space left on device");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(replace_file(path("pipe"), "through").ok());
  char got[16] = {};
  EXPECT_EQ(read(reader, got, sizeof(got)), 7);
  EXPECT_STREQ(got, "through");
  close(reader);
}

TEST_F(ReplaceFile, SaysWhatCannotBeWritten) {
  fs::create_symlink("circle", path("circle"));
  ASSERT_TRUE(replace_file(path("file"), "x").ok());
  const struct {
    std::string path;
    const char* why;
  } kCases[] = {{path("no/such/folder"), "No such file or directory"},
                {path("file") + "/below", "Not a directory"},
                {folder_.string(), "Is a directory"},
                {path("circle"), "Too many levels of symbolic links"},
                {"", "No such file or directory"}};
  for (const auto& [where, why] : kCases) {
    for (const Status& status : {check_replaceable(where), replace_file(where, "x")}) {
      EXPECT_EQ(status.code(), Code::system) << where;
      EXPECT_EQ(status.text(), "'" + where + "' cannot be written: " + why);
    }
  }
  EXPECT_EQ(files(), 2u);
}

// A limit on the size of files stands for a full disk.
TEST_F(ReplaceFile, WhereTheTextDoesNotFitTheOldOneStays) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = replace_file(path("a"), std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(status.text(), HasSubstr("cannot be written: File too large"));
  EXPECT_EQ(text(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReplaceFile, AskingLeavesNothingBehind) {
  EXPECT_TRUE(check_replaceable(path("a")).ok());
  EXPECT_EQ(files(), 0u);
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  EXPECT_TRUE(check_replaceable(path("a")).ok());
  EXPECT_EQ(text(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace rankine
