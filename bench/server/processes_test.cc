// Tests a server on forked ranks. If a rank is killed during requests, waiting clients
// get an error and the server starts new ranks.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "bench/server/crews.h"
#include "bench/server/service.h"
#include "bench/server/small_clients.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

using std::chrono::milliseconds;

class ServerOfProcesses : public testing::TestWithParam<int> {};

TEST_P(ServerOfProcesses, LosesARankAndBeginsAnew) {
  const int killed = GetParam();
  const ProcessCrew* crew = nullptr;
  int crews = 0;
  Service service([&](Line line, Line& clients) {
    auto hired = std::make_unique<ProcessCrew>(kSmallModel, 7, 2, std::move(line), clients);
    crew = hired.get();
    ++crews;
    return hired;
  });
  const Record before = play(service, kSmallLoad, [](const Record&) {});
  EXPECT_TRUE(before.losses.empty());

  Request request{.id = 0, .wanted = kMostWanted, .prompt_tokens = 2};
  service.submit(request);
  auto event = service.next(milliseconds(20'000));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->left, kMostWanted - 1);
  ASSERT_EQ(kill(crew->processes()[static_cast<std::size_t>(killed)], SIGKILL), 0);
  do {
    event = service.next(milliseconds(20'000));
    ASSERT_TRUE(event.has_value());
  } while (event->request != Event::kLost);
  const std::string why = event->why.data();
  EXPECT_NE(why.find("rank lost"), std::string::npos) << why;
  EXPECT_NE(why.find("rank " + std::to_string(killed) + " is still needed"), std::string::npos)
      << why;
  EXPECT_EQ(crews, 2);

  const Record after = play(service, kSmallLoad, [](const Record&) {});
  EXPECT_TRUE(after.losses.empty());
  for (std::size_t i = 0; i < after.answers.size(); ++i) {
    EXPECT_EQ(after.answers[i].tokens, before.answers[i].tokens) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ServerOfProcesses, testing::Values(0, 1));

// Checks the error text if gloo is not installed.
TEST(Processes, OfGlooAnswerAsThoseOfRankineDo) {
  const auto played = [](const auto& make) {
    Service service([&](Line line, Line& clients) {
      return std::make_unique<ProcessCrew>(kSmallModel, 7, 2, std::move(line), clients, make());
    });
    return play(service, kSmallLoad, [](const Record&) {});
  };
  Record gloo;
  try {
    gloo = played([] { return make_gloo(2); });
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "system: gloo: not installed: libgloo-dev");
    GTEST_SKIP() << error.what();
  }
  EXPECT_TRUE(gloo.losses.empty());
  const Record ours = played(make_rankine);
  for (std::size_t i = 0; i < ours.answers.size(); ++i) {
    EXPECT_EQ(gloo.answers[i].tokens, ours.answers[i].tokens) << i;
  }
}

TEST(Processes, EndByThemselvesWhenTheClientsHangUp) {
  auto [clients, line] = Line::make();
  const ProcessCrew crew(kSmallModel, 7, 2, std::move(line), clients);
  clients.hang_up();
  for (const pid_t process : crew.processes()) {
    int status = -1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST(Processes, AreMissedWhenAllAreGone) {
  const ProcessCrew* crew = nullptr;
  Service service([&](Line line, Line& clients) {
    auto hired = std::make_unique<ProcessCrew>(kSmallModel, 7, 2, std::move(line), clients);
    crew = hired.get();
    return hired;
  });
  for (const pid_t process : crew->processes()) kill(process, SIGKILL);
  const auto event = service.next(milliseconds(20'000));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->request, Event::kLost);
}

}  // namespace
}  // namespace rankine::server
