// A line whose end is handed to a process that nobody forked from the one that made it; here, to
// another thread, which shares nothing of it.
#include "bench/server/line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "engine/base/status.h"

namespace rankine::server {
namespace {

using std::chrono::seconds;

// Of a socket, whose name is short: the folder of a test's own files may have too long a one.
std::string path() { return "/tmp/rankine_line_test_" + std::to_string(getpid()); }

TEST(Line, IsHandedOverToWhoCollectsIt) {
  std::filesystem::remove(path());
  auto [ours, theirs] = Line::make();
  int heard = 0;
  std::thread other([&] {
    const Line collected = Line::collect(path(), seconds(20));
    EXPECT_TRUE(collected.hear(heard));
    EXPECT_TRUE(collected.say(heard + 1));
  });
  theirs.hand_over(path(), seconds(20));
  EXPECT_TRUE(ours.say(41));
  other.join();
  EXPECT_EQ(heard, 41);
  EXPECT_TRUE(ours.hear(heard));
  EXPECT_EQ(heard, 42);
  EXPECT_FALSE(ours.hear(heard));  // nobody has kept a copy
  std::filesystem::remove(path());
}

TEST(Line, NobodyWhoCollectsItIsAnError) {
  std::filesystem::remove(path());
  auto [ours, theirs] = Line::make();
  EXPECT_THROW(theirs.hand_over(path(), std::chrono::milliseconds(20)), Error);
  EXPECT_TRUE(theirs.say(1));  // it is whose it was
  EXPECT_THROW(Line::collect(std::string(200, 'x'), seconds(1)), Error);  // no name of a socket
  std::filesystem::remove(path());
  EXPECT_THROW(Line::collect(path(), std::chrono::milliseconds(20)), Error);
}

}  // namespace
}  // namespace rankine::server
