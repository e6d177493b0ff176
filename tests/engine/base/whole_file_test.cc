// Readers find a file whole, the one before, or none.
#include "engine/base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "engine/base/files.h"
#include "tests/numa/temp_tree.h"

namespace rankine {
namespace {

std::string text_of(const std::string& path) { return read_small_file(path, 1 << 24).text; }

std::size_t files_in(const std::string& folder) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files += entry.exists() || entry.is_symlink() ? 1 : 0;
  }
  return files;
}

TEST(WholeFile, TakesItsPlaceWhenItIsFinished) {
  const TempTree tree;
  const std::string path = tree.root() + "/file";
  for (const char* before : {"", "first\n"}) {
    WholeFile file(path);
    file.append("first");
    file.append("\n");
    EXPECT_EQ(text_of(path), before);
    EXPECT_EQ(file.finish(), "");
    EXPECT_EQ(text_of(path), "first\n");
  }
  EXPECT_EQ(files_in(tree.root()), 1u);
}

TEST(WholeFile, TwoOfOneNameDoNotMix) {
  const TempTree tree;
  const std::string path = tree.root() + "/file";
  WholeFile one(path), other(path);
  one.append("one");
  other.append("other");
  EXPECT_EQ(one.finish(), "");
  EXPECT_EQ(text_of(path), "one");
  EXPECT_EQ(other.finish(), "");
  EXPECT_EQ(text_of(path), "other");
}

TEST(WholeFile, LeavesNothingWhereItIsNotFinished) {
  const TempTree tree;
  {
    WholeFile file(tree.root() + "/file");
    file.append("half");
  }
  EXPECT_EQ(files_in(tree.root()), 0u);
}

// A full disk, as a process can have it: no file may grow beyond a page.
TEST(WholeFile, KeepsWhatWasThereWhereThereIsNoRoom) {
  const TempTree tree;
  const std::string path = tree.root() + "/file";
  tree.write("/file", "before");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = limit;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  std::string error;
  {
    WholeFile file(path);
    for (int i = 0; i < 3; ++i) file.append(std::string(3000, 'x'));
    error = file.finish();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "File too large");
  EXPECT_EQ(text_of(path), "before");
  EXPECT_EQ(files_in(tree.root()), 1u);
}

TEST(WholeFile, ReplacesNothingThatIsNoRegularFile) {
  const TempTree tree;
  tree.write("/file", "the link's");
  const std::string pipe = tree.root() + "/pipe", link = tree.root() + "/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(symlink((tree.root() + "/file").c_str(), link.c_str()), 0);
  const auto error = [](const std::string& path) {
    WholeFile file(path);
    file.append("new");
    return file.finish();
  };
  EXPECT_EQ(error(pipe), "it is a pipe, and no regular file");
  EXPECT_EQ(error(link), "it is a symbolic link, and no regular file");
  EXPECT_EQ(error(tree.root()), "it is a directory, and no regular file");
  EXPECT_EQ(error("/dev/full"), "it is a character device, and no regular file");
  EXPECT_EQ(error(tree.root() + "/none/file"), "No such file or directory");
  EXPECT_EQ(error(tree.root() + "/file/below"), "Not a directory");
  EXPECT_EQ(error(""), "No such file or directory");
  EXPECT_EQ(text_of(tree.root() + "/file"), "the link's");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(files_in(tree.root()), 3u);
}

// Any name that a file may have.
TEST(WholeFile, MayHaveAnyName) {
  const TempTree tree;
  for (const std::string& name : {std::string(255, 'n'), std::string("\xff\xfe no UTF-8")}) {
    WholeFile file(tree.root() + "/" + name);
    file.append("text");
    EXPECT_EQ(file.finish(), "");
    EXPECT_EQ(text_of(tree.root() + "/" + name), "text");
  }
}

}  // namespace
}  // namespace rankine
