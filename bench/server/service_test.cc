// Tests Service and Desk among threads: every request gets its answer, equal for each library and
// every mix of requests.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/server/crews.h"
#include "bench/server/service.h"
#include "bench/server/small_clients.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

std::vector<std::vector<int>> tokens(const Record& record) {
  std::vector<std::vector<int>> all;
  for (const Answer& answer : record.answers) all.push_back(answer.tokens);
  return all;
}

Record played(Library library, int ranks, double rate) {
  Service service([=](Line line, Line&) {
    return hire_threads(kSmallModel, 7, ranks, library, std::move(line));
  });
  Load load = kSmallLoad;
  load.rate = rate;
  return play(service, load, [](const Record&) {});
}

TEST(Service, AnswersEverybodyAlikeHoweverTheyAreBatched) {
  const auto requests = requests_of(kSmallLoad);
  const Record crowded = played(Library::rankine, 2, 1e6);
  ASSERT_EQ(crowded.answers.size(), requests.size());
  EXPECT_TRUE(crowded.losses.empty());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Answer& answer = crowded.answers[i];
    EXPECT_TRUE(answer.is_done);
    EXPECT_EQ(answer.tokens.size(), static_cast<std::size_t>(requests[i].second.wanted)) << i;
    EXPECT_LE(answer.due, answer.first);
    EXPECT_LE(answer.first, answer.last);
  }
  EXPECT_GT(crowded.step_seconds, crowded.sum_seconds);
  EXPECT_GT(crowded.sum_seconds, 0);
  EXPECT_EQ(tokens(played(Library::rankine, 2, 200)), tokens(crowded));
  EXPECT_EQ(tokens(played(Library::barrier, 2, 1e6)), tokens(crowded));
  EXPECT_EQ(tokens(played(Library::rankine, 1, 1e6)), tokens(crowded));
}

TEST(Service, EndsWhereNothingWasAsked) {
  Service service([](Line line, Line&) {
    return hire_threads(kSmallModel, 7, 2, Library::rankine, std::move(line));
  });
  EXPECT_FALSE(service.next(std::chrono::milliseconds(0)).has_value());
}

TEST(Load, ComesAsOftenAsItSaysAndIsTheSameAgain) {
  Load load = kSmallLoad;
  load.requests = 10'000;
  load.rate = 50;
  load.prompt = {3, 5};
  const auto requests = requests_of(load);
  EXPECT_NEAR(requests.back().first, 200, 10);
  std::vector<int> lengths(6);
  for (const auto& [due, request] : requests) {
    ASSERT_GE(request.prompt_tokens, 3);
    ASSERT_LE(request.prompt_tokens, 5);
    ++lengths[static_cast<std::size_t>(request.prompt_tokens)];
  }
  for (const int length : {3, 4, 5}) EXPECT_GT(lengths[static_cast<std::size_t>(length)], 3000);
  EXPECT_EQ(requests_of(load)[77].first, requests[77].first);
  EXPECT_EQ(requests_of(load)[77].second.prompt[2], requests[77].second.prompt[2]);
}

}  // namespace

namespace {

TEST(Desk, AnswersEachClientItsOwn) {
  Desk desk(threads());
  EXPECT_EQ(told_by([&](const Request& request) { return desk.answer(request); }),
            told_by_service());
}

// A client that waits during a kill gets an error; a later client gets an answer from new ranks.
TEST(Desk, SaysThatRanksWereLost) {
  std::atomic<pid_t> rank{0};
  Desk desk([&](Line line, Line& clients) {
    auto crew = std::make_unique<ProcessCrew>(kSmallModel, 7, 2, std::move(line), clients);
    rank = crew->processes().back();
    return crew;
  });
  const Request request{.wanted = kMostWanted, .prompt_tokens = 2};
  // An empty answer means that the ranks were lost.
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
  while (after.empty()) after = told();  // the last kill may have hit the new ranks
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace rankine::server
