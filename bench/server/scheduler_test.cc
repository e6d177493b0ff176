// Tests Line (handing an end over to a process that was not forked; here another thread) and
// Scheduler.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/server/service.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

using std::chrono::seconds;

// A socket's path, which must be short: the test's temporary folder may be too long.
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
  EXPECT_FALSE(ours.hear(heard));  // no copy is left
  std::filesystem::remove(path());
}

TEST(Line, NobodyWhoCollectsItIsAnError) {
  std::filesystem::remove(path());
  auto [ours, theirs] = Line::make();
  EXPECT_THROW(theirs.hand_over(path(), std::chrono::milliseconds(20)), Error);
  EXPECT_TRUE(theirs.say(1));  // the caller still owns its end
  // The path is too long for a socket.
  EXPECT_THROW(Line::collect(std::string(200, 'x'), seconds(1)), Error);
  std::filesystem::remove(path());
  EXPECT_THROW(Line::collect(path(), std::chrono::milliseconds(20)), Error);
}

}  // namespace

namespace {

Request request(int id, int prompt, int wanted) {
  Request r{.id = id, .wanted = wanted, .prompt_tokens = prompt};
  std::iota(r.prompt, r.prompt + prompt, 1000 * id);
  return r;
}

// The number of tokens of each piece of a step.
std::vector<int> sizes(const Batch& batch) {
  std::vector<int> all;
  for (const Piece& piece : batch.all()) all.push_back(piece.tokens);
  return all;
}

// One token for each piece with wants_next.
std::vector<int> some_tokens(const Batch& batch) {
  std::vector<int> tokens;
  for (const Piece& piece : batch.all()) {
    if (piece.wants_next) tokens.push_back(static_cast<int>(tokens.size()) + 7);
  }
  return tokens;
}

std::vector<Event> step(Scheduler& scheduler) {
  return scheduler.take(some_tokens(scheduler.next()));
}

TEST(Scheduler, TakesAPromptInPiecesThatFitAndThenTokenByToken) {
  Scheduler scheduler(2, 4);
  scheduler.add(request(5, 6, 2));
  Batch batch = scheduler.next();
  EXPECT_EQ(sizes(batch), std::vector{4});
  EXPECT_EQ(batch.token[3], 5003);
  EXPECT_FALSE(batch.piece[0].wants_next);
  EXPECT_TRUE(scheduler.take({}).empty());
  batch = scheduler.next();
  EXPECT_EQ(sizes(batch), std::vector{2});
  EXPECT_EQ(batch.piece[0].position, 4);
  EXPECT_TRUE(batch.piece[0].wants_next);
  const std::vector<Event> events = scheduler.take(std::vector{77});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].request, 5);
  EXPECT_EQ(events[0].token, 77);
  EXPECT_EQ(events[0].left, 1);
  batch = scheduler.next();
  EXPECT_EQ(sizes(batch), std::vector{1});
  EXPECT_EQ(batch.piece[0].position, 6);
  EXPECT_EQ(batch.token[0], 77);
  EXPECT_EQ(scheduler.take(std::vector{78}).at(0).left, 0);
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.next().pieces, 0);
}

TEST(Scheduler, AnswersComeBeforePrompts) {
  Scheduler scheduler(4, 4);
  scheduler.add(request(0, 2, 9));
  scheduler.add(request(1, 2, 9));
  step(scheduler);
  scheduler.add(request(2, 5, 9));
  scheduler.add(request(3, 5, 9));
  EXPECT_EQ(sizes(scheduler.next()), (std::vector{1, 1, 2}));
  scheduler.take(std::vector{7, 8});
  EXPECT_EQ(sizes(scheduler.next()), (std::vector{1, 1, 2})) << "the earliest prompt first";
  scheduler.take(std::vector{7, 8});
  EXPECT_EQ(sizes(scheduler.next()), (std::vector{1, 1, 1, 1}));
}

TEST(Scheduler, WhoIsThroughMakesRoomInTheNextStep) {
  Scheduler scheduler(1, 8);
  scheduler.add(request(0, 3, 1));
  scheduler.add(request(1, 2, 1));
  EXPECT_EQ(step(scheduler).at(0).request, 0);
  EXPECT_FALSE(scheduler.is_idle());
  EXPECT_EQ(step(scheduler).at(0).request, 1);
  EXPECT_TRUE(scheduler.is_idle());
}

// In every order of requests, each request is computed from position 0 on without a gap, in a place
// that no other request uses, and gets the number of tokens that it wants.
TEST(Scheduler, ServesEverybody) {
  Scheduler scheduler(3, 5);
  constexpr int kRequests = 40;
  int added = 0, steps = 0;
  std::map<int, int> got, position, owner;
  const auto wanted = [](int id) { return 1 + id * 7 % 5; };
  const auto prompt = [](int id) { return 1 + id * 5 % 13; };
  while (added < kRequests || !scheduler.is_idle()) {
    for (int i = 0; i < 2 && added < kRequests; ++i, ++added) {
      scheduler.add(request(added, prompt(added), wanted(added)));
    }
    const Batch batch = scheduler.next();
    ASSERT_LE(batch.tokens, 5);
    ASSERT_GT(batch.pieces, 0);
    std::set<int> places;
    for (const Piece& piece : batch.all()) {
      ASSERT_TRUE(places.insert(piece.sequence).second);
      if (piece.position == 0) position[piece.sequence] = 0;
      ASSERT_EQ(piece.position, position[piece.sequence]);
      position[piece.sequence] += piece.tokens;
    }
    for (const Event& event : scheduler.take(some_tokens(batch))) {
      EXPECT_EQ(event.left, wanted(event.request) - ++got[event.request]);
    }
    ASSERT_LT(++steps, 1000);
  }
  for (int id = 0; id < kRequests; ++id) EXPECT_EQ(got[id], wanted(id)) << id;
}

}  // namespace
}  // namespace rankine::server
