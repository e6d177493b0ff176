// What is read whole, and what is refused at once.
#include "engine/base/files.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/numa/temp_tree.h"

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

// Their sizes are said to be 0, or a page.
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
    EXPECT_EQ(file.error,
              "it has more than the " + std::to_string(limit) + " bytes that are allowed");
    EXPECT_EQ(file.text, "");
  }
  // A terabyte of nothing.
  std::filesystem::resize_file(tree.root() + "/file", std::uintmax_t{1} << 40);
  EXPECT_FALSE(read_small_file(tree.root() + "/file", 1 << 20).ok());
}

// None of these is waited for.
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

}  // namespace
}  // namespace rankine
