// Alpha and beta from times of messages, exact ones and such as busy machines give.
#include "engine/api/mpi/homes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rankine {
namespace {

constexpr double kAlpha = 25e-6, kBeta = 8e-9;

std::vector<TimedMessage> times_of(std::vector<std::size_t> lengths) {
  std::vector<TimedMessage> messages;
  for (const std::size_t bytes : lengths) {
    messages.push_back({bytes, kAlpha + kBeta * static_cast<double>(bytes - 8)});
  }
  return messages;
}

TEST(MessageLine, IsTheOneThatTimesLieOn) {
  const auto link = line_through(times_of({8, 1000, 64'000, 1'000'000}));
  ASSERT_TRUE(link.ok()) << link.status().text();
  EXPECT_NEAR(link->alpha.to_double(), kAlpha, 1e-15);
  EXPECT_NEAR(link->beta.to_double(), kBeta, 1e-15);
}

TEST(MessageLine, LooksAwayFromALengthThatWasHeldUp) {
  for (std::size_t held_up = 1; held_up < 4; ++held_up) {
    auto messages = times_of({8, 1000, 64'000, 1'000'000});
    messages[held_up].seconds *= 5;
    const auto link = line_through(messages);
    ASSERT_TRUE(link.ok()) << link.status().text();
    EXPECT_NEAR(link->beta.to_double(), kBeta, 1e-15) << held_up;
  }
}

TEST(MessageLine, RefusesTimesThatDoNotGrow) {
  auto messages = times_of({8, 1000, 64'000, 1'000'000});
  messages[0].seconds = 1;  // the short one was held up
  const auto link = line_through(messages);
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.status().code(), Code::invalid_argument);
  EXPECT_NE(link.status().text().find("8 B in 1.00 s, 1000 B in"), std::string::npos)
      << link.status().text();
  EXPECT_NE(link.status().text().find("model.beta is -"), std::string::npos)
      << link.status().text();
  messages[0].seconds = 0;
  EXPECT_FALSE(line_through(messages).ok());
}

}  // namespace
}  // namespace rankine
