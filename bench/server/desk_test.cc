// A desk for many clients, and the same over HTTP where cpp-httplib is installed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/server/desk.h"
#include "bench/server/http_front.h"
#include "bench/server/process_crew.h"
#include "bench/server/small_model.h"
#include "bench/server/thread_crew.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

using Tokens = std::vector<std::vector<int>>;

Hire threads() {
  return [](Line line, Line&) {
    return hire_threads(kSmallModel, 7, 2, Library::rankine, std::move(line));
  };
}

// What a service says to whom it knows by number.
Tokens told_by_service() {
  Service service(threads());
  Tokens all;
  for (const Answer& answer : play(service, kSmallLoad, [](const Record&) {}).answers) {
    all.push_back(answer.tokens);
  }
  return all;
}

// All requests at once, each on a thread of its own.
template <class Ask>
Tokens told_by(const Ask& ask) {
  const auto requests = requests_of(kSmallLoad);
  Tokens all(requests.size());
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    clients.emplace_back([&, i] { all[i] = ask(requests[i].second); });
  }
  for (std::thread& client : clients) client.join();
  return all;
}

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

class Http : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_http()) GTEST_SKIP() << "cpp-httplib is not installed";
  }
};

TEST_F(Http, AnswersAsTheServiceDoes) {
  Desk desk(threads());
  const HttpFront front(desk, kSmallModel.vocabulary);
  EXPECT_EQ(told_by([&](const Request& request) { return ask_over_http(front.port(), request); }),
            told_by_service());
}

TEST_F(Http, RefusesWhatIsNoRequest) {
  Desk desk(threads());
  const HttpFront front(desk, kSmallModel.vocabulary);
  const auto refusal = [&](const Request& request) -> std::string {
    try {
      ask_over_http(front.port(), request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({.wanted = 3}).find("the prompt's length is 0"), std::string::npos);
  EXPECT_NE(refusal({.prompt_tokens = 1}).find("max_tokens is 0; allowed are whole numbers from 1"),
            std::string::npos);
  Request beyond{.wanted = 1, .prompt_tokens = 1};
  beyond.prompt[0] = kSmallModel.vocabulary;
  EXPECT_NE(refusal(beyond).find("a token is 240; allowed are whole numbers from 0 to 239"),
            std::string::npos);
  EXPECT_THROW(HttpFront(desk, kSmallModel.vocabulary, front.port()), Error);  // it is taken
}

// Without the library nothing is pretended.
TEST(HttpFront, SaysWhereThereIsNoLibrary) {
  if (has_http()) GTEST_SKIP() << "cpp-httplib is installed";
  Desk desk(threads());
  EXPECT_THROW(HttpFront(desk, kSmallModel.vocabulary), Error);
}

}  // namespace
}  // namespace rankine::server
