// Tests of small files, whole files, replaced files, zeroed pages and deadlines.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/files.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

// Reading whole files: the files and sizes that are accepted, and those refused at once.

namespace rankine {
namespace {

TEST(SmallFile, IsReadWhole) {
  const TempTree tree;
  for (const std::size_t bytes : {0u, 1u, 65535u, 65536u, 65537u, 200'000u}) {
    const std::string text(bytes, 'x');
    tree.write("/file", text);
    for (const std::size_t limit : {bytes, bytes + 1, std::size_t{1} << 20}) {
      const SmallFile file = read_small_file(tree.root() + "/file", limit);
      EXPECT_EQ(file.error, "");
      EXPECT_TRUE(file.text == text) << bytes;
    }
  }
}

// Files of the kernel report a size of 0 or of a page.
TEST(SmallFile, MayBeTheKernels) {
  EXPECT_NE(read_small_file("/proc/self/status", 1 << 20).text.find("Name:"), std::string::npos);
  const std::string online = "/sys/devices/system/cpu/online";
  if (std::filesystem::exists(online)) {
    EXPECT_NE(read_small_file(online, 4096).text, "");
  }
}

TEST(SmallFile, IsRefusedAboveItsLimit) {
  const TempTree tree;
  tree.write("/file", std::string(100'000, 'x'));
  for (const std::size_t limit : {0u, 1u, 65536u, 99'999u}) {
    const SmallFile file = read_small_file(tree.root() + "/file", limit);
    EXPECT_EQ(file.error, "it has more than " + std::to_string(limit) + " bytes, the allowed size");
    EXPECT_EQ(file.text, "");
  }
  // A sparse file of a terabyte.
  std::filesystem::resize_file(tree.root() + "/file", std::uintmax_t{1} << 40);
  EXPECT_FALSE(read_small_file(tree.root() + "/file", 1 << 20).ok());
}

// The read does not wait for any of these files.
TEST(SmallFile, IsRefusedWhereItIsNoRegularFile) {
  const TempTree tree;
  const std::string pipe = tree.root() + "/pipe", link = tree.root() + "/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(symlink(pipe.c_str(), link.c_str()), 0);
  const std::string socket_path = tree.root() + "/socket";
  const int number = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(number);
  const auto error = [](const std::string& path) { return read_small_file(path, 1 << 20).error; };
  EXPECT_EQ(error(pipe), "it is a pipe, and no regular file");
  EXPECT_EQ(error(link), "it is a pipe, and no regular file");
  EXPECT_EQ(error(socket_path), "it is a socket, and no regular file");
  EXPECT_EQ(error(tree.root()), "it is a directory, and no regular file");
  EXPECT_EQ(error("/dev/zero"), "it is a character device, and no regular file");
}

TEST(SmallFile, SaysWhatIsMissing) {
  const TempTree tree;
  tree.write("/file", "x");
  for (const char* path : {"/none", "/none/file", "/file/below"}) {
    const SmallFile file = read_small_file(tree.root() + path, 10);
    EXPECT_TRUE(file.is_missing) << path;
    EXPECT_FALSE(file.ok()) << path;
  }
  EXPECT_FALSE(read_small_file(tree.root(), 10).is_missing);
  EXPECT_TRUE(read_small_file("", 10).is_missing);
}

// Readers find the new file whole, the old file whole, or none.

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

// A limit on the file size of one page stands for a full disk.
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

// Files that are replaced whole: links, permissions, devices, and the old contents after a failure.

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

// A reader that has the old file open reads it to its end, because the old file is not overwritten.
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

struct Entry {
  int number = 7;
  void* place = nullptr;
};

bool is_zero(const Entry& entry) { return entry.number == 0 && entry.place == nullptr; }

TEST(ZeroedPages, TakeMemoryWhereTheyAreWritten) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  ZeroedVector<Entry> table(1000 * page / sizeof(Entry));
  EXPECT_EQ(taken_bytes(table), 0U);
  table[table.size() / 2].number = 1;
  table[table.size() - 1].number = 2;
  EXPECT_EQ(taken_bytes(table), 2 * page);
  ZeroedVector<Entry> moved = std::move(table);
  EXPECT_EQ(taken_bytes(moved), 2 * page);
  EXPECT_EQ(moved[moved.size() / 2].number, 1);
  const ZeroedVector<Entry> small(3);
  EXPECT_EQ(taken_bytes(small), 3 * sizeof(Entry));
}

TEST(ZeroedPages, GrownATableHasWhatItHad) {
  ZeroedVector<Entry> table;
  for (int i = 0; i < 10'000; ++i) table.push_back({.number = i});
  table.resize(20'000);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(table[static_cast<std::size_t>(i)].number, i);
  ZeroedVector<Entry> fresh(5000);
  EXPECT_TRUE(is_zero(fresh[4999]));
}

// Durations at the end of the range, 63 bits of nanoseconds.

using std::chrono::milliseconds;

TEST(Deadline, DurationsAreExactOrForEver) {
  EXPECT_EQ(saturated_ns(milliseconds(0)), 0);
  EXPECT_EQ(saturated_ns(milliseconds(-5)), -5'000'000);
  EXPECT_EQ(saturated_ns(milliseconds(30'000)), 30'000'000'000);
  const milliseconds most(kForEverNs / 1'000'000);
  EXPECT_EQ(saturated_ns(most), kForEverNs / 1'000'000 * 1'000'000);
  EXPECT_EQ(saturated_ns(most + milliseconds(1)), kForEverNs);
  EXPECT_EQ(saturated_ns(milliseconds::max()), kForEverNs);
  EXPECT_LT(saturated_ns(milliseconds::min()), -kForEverNs / 2);
  EXPECT_EQ(saturated_ns(1.5e9), 1'500'000'000);
  EXPECT_EQ(saturated_ns(1e30), kForEverNs);
}

TEST(Deadline, LiesNeverBeforeNow) {
  EXPECT_EQ(deadline_after(17, 3), 20);
  EXPECT_EQ(deadline_after(17, -3), 14);
  EXPECT_EQ(deadline_after(17, kForEverNs), kForEverNs);
  EXPECT_EQ(deadline_after(17, kForEverNs - 17), kForEverNs);
  EXPECT_EQ(deadline_after(17, kForEverNs - 18), kForEverNs - 1);
  EXPECT_EQ(deadline_after(kForEverNs, 1), kForEverNs);
}

}  // namespace
}  // namespace rankine
