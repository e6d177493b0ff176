#include "engine/base/parallel.h"

#include <unistd.h>

#include "engine/base/child_process.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// Fails if an index is taken twice, left out, or lies past the end.
TEST(ParallelFor, MakesEachCallOnce) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    parallel_for(count, [&](std::size_t i) { ++calls.at(i); });
    for (const auto& made : calls) EXPECT_EQ(made, 1);
  }
}

// Never ends if the loop starts no thread.
TEST(ParallelFor, UsesEachCore) {
  const int cores = usable_cores();
  std::latch all(cores);
  parallel_for(static_cast<std::size_t>(cores), [&](std::size_t) { all.arrive_and_wait(); });
}

// Fails if a loop inside a loop takes cores without counting.
TEST(ParallelFor, SharesCoresAmongLoops) {
  std::atomic<int> now{0}, most{0};
  parallel_for(4, [&](std::size_t) {
    parallel_for(4, [&](std::size_t) {
      const int here = ++now;
      for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      --now;
    });
  });
  EXPECT_LE(most, usable_cores());
}

// Fails if the limit is ignored, or the order of the calls is another.
TEST(ParallelFor, OneThreadIsTheCaller) {
  const auto caller = std::this_thread::get_id();
  std::vector<std::size_t> order;
  parallel_for(
      5,
      [&](std::size_t i) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // for other threads, if any
        order.push_back(i);
      },
      1);
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

// Fails if an exception is lost, ends the program, or lets further calls begin.
TEST(ParallelFor, AnExceptionEndsTheLoop) {
  std::atomic<int> calls{0};
  const auto body = [&](std::size_t i) {
    ++calls;
    if (i == 3) throw std::runtime_error("three");
  };
  EXPECT_THROW(parallel_for(1000, body, 1), std::runtime_error);
  EXPECT_EQ(calls, 4);
  EXPECT_THROW(parallel_for(1000, body), std::runtime_error);
  parallel_for(2, [&](std::size_t) { ++calls; });  // later loops work
}

// Never ends if two of the four come one after the other.
TEST(OnThreads, RunsAllAtOnceBesideTheDirector) {
  std::latch all(4);
  on_threads(
      3, [&](int) { all.arrive_and_wait(); }, [&] { all.arrive_and_wait(); });
}

TEST(ChildProcess, TellsHowItEnded) {
  EXPECT_EQ(describe_end(ChildProcess([] { return 7; }).wait()), "exit 7");
  EXPECT_EQ(describe_end(ChildProcess([]() -> int { throw std::logic_error("no"); }).wait()),
            "exit 1");
  EXPECT_EQ(describe_end(ChildProcess([] { return raise(SIGKILL); }).wait()), "signal 9 (Killed)");
  EXPECT_EQ(describe_end(start_program({"/no/such/program"}, {}).wait()), "exit 127");
  std::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(describe_end(start_program({"sh", "-c", "kill -s PIPE $$"}, {}).wait()),
            "signal 13 (Broken pipe)");
  std::signal(SIGPIPE, SIG_DFL);
}

// Fails if the wait blocks or forgets, if a forked copy of the handle kills, or if none does.
TEST(ChildProcess, RunsAsLongAsItsHandleInTheParent) {
  const auto pauses = [] { return pause(); };
  ChildProcess child(pauses);
  EXPECT_EQ(child.wait(std::chrono::milliseconds(1)), std::nullopt);
  EXPECT_EQ(ChildProcess([&] {
              child = {};
              return 0;
            }).wait(),
            0);
  EXPECT_EQ(child.wait(std::chrono::milliseconds(50)), std::nullopt);  // killed ones end by then
  EXPECT_EQ(child.end(), SIGKILL);
  EXPECT_EQ(child.wait(), SIGKILL);
  const pid_t id = ChildProcess(pauses).id();
  EXPECT_NE(kill(id, 0), 0);
}

}  // namespace
}  // namespace rankine
