// A desk for many clients.
#include "bench/server/desk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/server/process_crew.h"
#include "bench/server/small_clients.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

TEST(Desk, AnswersEachClientItsOwn) {
  Desk desk(threads());
  EXPECT_EQ(told_by([&](const Request& request) { return desk.answer(request); }),
            told_by_service());
}

// Who waits when a rank is killed hears of it, and who asks then is answered by new ranks.
TEST(Desk, SaysThatRanksWereLost) {
  std::atomic<pid_t> rank{0};
  Desk desk([&](Line line, Line& clients) {
    auto crew = std::make_unique<ProcessCrew>(kSmallModel, 7, 2, std::move(line), clients);
    rank = crew->processes().back();
    return crew;
  });
  const Request request{.wanted = kMostWanted, .prompt_tokens = 2};
  // Nothing: the ranks were lost meanwhile.
  const auto told = [&]() -> std::vector<int> {
    try {
      return desk.answer(request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::rank_lost);
      return {};
    }
  };
  const std::vector<int> before = told();
  EXPECT_EQ(before.size(), std::size_t{kMostWanted});
  std::atomic<bool> was_lost{false};
  std::thread killer([&] {
    for (; !was_lost; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      kill(rank, SIGKILL);
    }
  });
  while (!was_lost) was_lost = told().empty();
  killer.join();
  std::vector<int> after;
  while (after.empty()) after = told();  // the last kill may have been of the new ranks
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace rankine::server
