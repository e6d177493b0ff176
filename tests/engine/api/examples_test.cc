// The guide's programs, as a user would run them: at full speed, and unchanged on networks, where
// what they print is what the simulator says.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "tests/numa/scoped_env.h"

namespace rankine {
namespace {

// What the program prints, run in this process' environment.
std::string output_of(const std::string& program) {
  std::FILE* pipe = popen(program.c_str(), "r");
  if (pipe == nullptr) return "cannot be started";
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  return pclose(pipe) == 0 ? out : "failed: " + out;
}

std::string own_threads_on(const char* network) {
  const ScopedEnv variable("RANKINE_NETWORK", network);
  return output_of("engine/api/examples/own_threads");
}

std::string expected(double model_time) {
  char text[64];
  std::snprintf(text, sizeof text, "every element: 16\nmodel time: %.17g s\n", model_time);
  return text;
}

TEST(OwnThreads, AddUpAtFullSpeed) {
  EXPECT_EQ(output_of("engine/api/examples/own_threads"), expected(0));
}

TEST(OwnThreads, PrintTheSimulatorsTimesOnNetworks) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  for (const char* name : {"scale_up", "scale_out", R"({"preset": "torus", "dims": "4x4"})"}) {
    Params params;
    params.ranks = 16;
    const auto found = find_call_network(name);
    ASSERT_TRUE(found.ok()) << found.status().text();
    const auto wired = wire((*found)->fabric, ring, params);
    ASSERT_TRUE(wired.ok()) << wired.status().text();
    const Schedule schedule = ring.make(params);
    const auto simulated = simulate(schedule, goal_of(ring, params, schedule), *wired, 4 << 16);
    ASSERT_TRUE(simulated.ok()) << simulated.status().text();
    EXPECT_GT(simulated->seconds, 0);
    EXPECT_EQ(own_threads_on(name), expected(simulated->seconds)) << name;
  }
}

std::string program(const std::string& name) { return output_of("engine/api/examples/" + name); }

TEST(RingByMessages, AddsUp) {
  EXPECT_EQ(program("ring_by_messages"), "every element: 10, in 0 us of the model\n");
}

TEST(Groups, AddUpAlongTheirAxes) {
  EXPECT_EQ(program("groups"),
            "rank 0: activations 3, gradients 3\n"
            "rank 1: activations 3, gradients 5\n"
            "rank 2: activations 3, gradients 7\n"
            "rank 3: activations 12, gradients 3\n"
            "rank 4: activations 12, gradients 5\n"
            "rank 5: activations 12, gradients 7\n");
}

TEST(Overlap, HidesWorkBehindACall) {
  EXPECT_EQ(program("overlap"), "every element: 64; model time: 0 s\n");
  const ScopedEnv variable("RANKINE_NETWORK", "scale_out");
  // Three times a call that takes less than the work of a millisecond beside it.
  EXPECT_EQ(program("overlap"), "every element: 64; model time: 0.003 s\n");
}

TEST(Epilogue, FinishesRows) {
  EXPECT_EQ(program("epilogue"), "stream 2.5, quantised 127 of scale 0.0157, mean 4\n");
}

// Applications of the all-to-all.
TEST(Transpose, TurnsAMatrix) {
  EXPECT_EQ(program("transpose"),
            "96 of 96 elements are where they belong; 4 ranks have their rows back\n");
}

TEST(Fft, FindsTheWaves) { EXPECT_EQ(program("fft"), "wave 3: 1.000000\nwave 1000: 0.500000\n"); }

TEST(SampleSort, PutsKeysInOrder) {
  EXPECT_EQ(program("sample_sort"), "40000 keys, in order, no rank with many more than its part\n");
}

TEST(Experts, GetTheirTokensAndGiveThemBack) {
  EXPECT_EQ(program("experts"),
            "with counts: 40 of 40 tokens are back from their experts, 0 dropped, 0 padded\n"
            "with capacity: 24 of 40 tokens are back from their experts, 16 dropped, 24 padded\n");
}

TEST(Errors, SayWhatIsWrong) {
  EXPECT_EQ(program("errors"),
            "out has 2 elements; the other argument and 3 ranks ask for 1\n"
            "mismatch\n"
            "timeout: no answer within 100 ms\n");
}

}  // namespace
}  // namespace rankine
