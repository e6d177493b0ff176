// rankine train as a command: what it says, what it writes, and what it refuses.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/tool_process.h"

namespace rankine::tools {
namespace {

std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> all = {"train",    "--steps",    "3",       "--layers", "2",
                                  "--hidden", "16",         "--heads", "2",        "--feed-forward",
                                  "16",       "--sequence", "8"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string temporary(const std::string& name) {
  return std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
}

TEST(Train, ComparesWithOneThread) {
  const std::string file = temporary("loss.svg");
  const Captured run = run_captured(small({"--dp", "2", "--zero", "1", "--svg", file}));
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_NE(run.out.find("3 of 3 losses are one thread's, bit for bit"), std::string::npos)
      << run.out;
  std::ifstream in(file);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(svg.find("dp 2, ZeRO-1"), std::string::npos);
  EXPECT_NE(svg.find("in one piece"), std::string::npos);
}

TEST(Train, AnswersInJson) {
  const Captured run = run_captured(small({"--tp", "2", "--json"}));
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto answer = nlohmann::json::parse(run.out);
  EXPECT_EQ(answer["losses"].size(), 3u);
  EXPECT_EQ(answer["losses"], answer["one_thread"]);
  EXPECT_EQ(answer["equal_steps"], 3);
  const Captured alone = run_captured(small({"--tp", "2", "--json", "--no-compare"}));
  EXPECT_EQ(nlohmann::json::parse(alone.out)["losses"], answer["losses"]);
  EXPECT_FALSE(nlohmann::json::parse(alone.out).contains("one_thread"));
}

TEST(Train, KnowsItsTypes) {
  const Captured text = run_captured(small({"--dp", "2", "--type", "bf16"}));
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("parameters in bf16"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("bit for bit"), std::string::npos) << text.out;
  const Captured run =
      run_captured(small({"--zero", "3", "--dp", "2", "--type", "bf16", "--json"}));
  const auto bf16 = nlohmann::json::parse(run.out);
  EXPECT_EQ(bf16["type"], "bf16");
  EXPECT_EQ(bf16["equal_steps"], 3);
  const auto f32 = nlohmann::json::parse(run_captured(small({"--json"})).out);
  EXPECT_EQ(f32["type"], "f32");
  EXPECT_NE(f32["losses"], bf16["losses"]);
}

TEST(Train, FollowsSeedAndRate) {
  const auto losses = [](std::vector<std::string> more) {
    more.push_back("--json");
    const Captured run = run_captured(small(std::move(more)));
    EXPECT_EQ(run.exit, 0) << run.err;
    return nlohmann::json::parse(run.out)["losses"];
  };
  const auto plain = losses({});
  EXPECT_EQ(losses({"--seed", "1", "--lr", "0.003"}), plain);
  EXPECT_NE(losses({"--seed", "2"}), plain);
  const auto faster = losses({"--rate", "0.01"});
  EXPECT_EQ(faster[0], plain[0]);  // before the first update
  EXPECT_NE(faster[2], plain[2]);
}

// Losses that are no numbers any more are as equal as others, and are said to be none.
TEST(Train, SaysThatItDiverged) {
  const std::string file = temporary("diverged.svg");
  const Captured run =
      run_captured({"train", "--dp", "2", "--rate", "1", "--steps", "12", "--svg", file});
  EXPECT_EQ(run.exit, 0) << run.out;
  EXPECT_NE(run.out.find("no finite number any more"), std::string::npos) << run.out;
  std::ifstream in(file);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// Alone it takes what its computing does; among ranks at least that, and not all that is sent is
// waited for. The losses are what they are without a clock.
TEST(Train, RunsOnAModelledMachine) {
  const auto asked = [](std::vector<std::string> more) {
    const Captured run = run_captured(small(std::move(more)));
    EXPECT_EQ(run.exit, 0) << run.out << run.err;
    return nlohmann::json::parse(run.out);
  };
  const auto one = asked({"--machine", "a100", "--json"});
  const double alone = one["model_seconds_per_step"].get<double>();
  EXPECT_GT(alone, 0);
  EXPECT_NEAR(alone, one["planned_seconds_per_step"].get<double>(), 1e-9 * alone);
  const auto two = asked({"--tp", "2", "--machine", "a100", "--json"});
  EXPECT_EQ(two["losses"], asked({"--tp", "2", "--json", "--no-compare"})["losses"]);
  EXPECT_GT(two["model_seconds_per_step"].get<double>(), 0.9 * alone);
  const Captured text = run_captured(small({"--dp", "2", "--machine", "a100"}));
  EXPECT_NE(text.out.find("on a100 a step takes"), std::string::npos) << text.out;
}

TEST(Train, RefusesWhatCannotBe) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } kCases[] = {
      {{"--dp", "3"},
       "--batch is 16; 3 shards of 2 micro-batches take a multiple of 6: the nearest"},
      {{"--tp", "3"}, "tp is 3"},
      {{"--pp", "3", "--batch", "6"}, "pp is 3"},
      {{"--ep", "2"}, "ep is 2; the model has no experts"},
      {{"--zero", "2"}, "--zero is 2; allowed are 0, 1 and 3"},
      {{"--type", "f16"}, "--type is 'f16'"},
      {{"--blas", "/no/such/library.so"}, "--blas: /no/such/library.so: cannot open"},
      {{"--blas", "libc.so.6"}, "cblas_sgemm"},
      {{"--blas", "libc.so.6", "--type", "bf16"}, "products of bf16 are ours"},
      {{"--sequence", "30000"}, "--sequence is '30000'; allowed are whole numbers from 1 to 10000"},
      {{"--hidden", "65536", "--layers", "65536"}, "1 rank must have"},
      {{"--rate", "-1"}, "rate is '-1'; it must be a number above 0, at most 1"},
      {{"--dp", "4096", "--batch", "8192"}, "threads play at most"},
  };
  for (const auto& [arguments, says] : kCases) {
    const Captured run = run_captured(small(arguments));
    EXPECT_NE(run.exit, 0) << says;
    EXPECT_NE(run.err.find(says), std::string::npos) << run.err;
  }
  // Before anything is trained.
  const Captured nowhere = run_captured(small({"--svg", "/no/such/folder/x.svg"}));
  EXPECT_EQ(nowhere.exit, 3);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_NE(nowhere.err.find("--svg: '/no/such/folder/x.svg'"), std::string::npos) << nowhere.err;
}

TEST(Train, LeavesNothingWhenInterrupted) {
  const std::string folder = temporary("interrupted");
  std::filesystem::create_directory(folder);
  ToolProcess tool({"train", "--dp", "2", "--steps", "65536", "--svg", folder + "/loss.svg"});
  ASSERT_FALSE(tool.line().empty()) << tool.err();
  tool.signal(SIGINT);
  EXPECT_EQ(tool.wait(), 130);
  EXPECT_NE(tool.err().find("interrupted"), std::string::npos) << tool.err();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace rankine::tools
