// Tests of gradients, of rankine train, and of products by a BLAS.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/lab/train/layer.h"
#include "engine/lab/train/matrix.h"
#include "tests/engine/cli/tool_fixtures.h"

// Gradients of backward passes equal the numerical derivative of the loss.

namespace rankine::tools {
namespace {

Matrix some(int rows, int cols, std::uint64_t seed) {
  Matrix m(rows, cols);
  for (float& x : m.values) {
    x = static_cast<float>(splitmix(seed += kSplitMixStep) >> 40) / static_cast<float>(1 << 23) - 1;
  }
  return m;
}

// A loss for any function: the sum of the elements with these weights.
double weighed(const Matrix& m, const Matrix& weights) {
  return std::inner_product(m.values.begin(), m.values.end(), weights.values.begin(), 0.0);
}

// Checks that by_x is the derivative of the weighed f(x), element by element.
void expect_gradient(Matrix x, const Matrix& weights, const Matrix& by_x,
                     const std::function<Matrix(const Matrix&)>& f) {
  constexpr float kStep = 1e-2F;
  constexpr double kBound = 5e-3;  // rounding of f32 over the step, and the second derivative
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const float before = x.values[i];
    x.values[i] = before + kStep;
    const double above = weighed(f(x), weights);
    x.values[i] = before - kStep;
    const double below = weighed(f(x), weights);
    x.values[i] = before;
    EXPECT_NEAR(static_cast<double>(by_x.values[i]), (above - below) / (2 * double{kStep}), kBound)
        << "element " << i;
  }
}

TEST(Matrices, MultiplyByTheDefinition) {
  const Matrix a = some(3, 5, 1), b = some(5, 4, 2);
  const Matrix c = product(a, b);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 5; ++k) sum += a.row(i)[k] * b.row(k)[j];
      EXPECT_EQ(c.row(i)[j], sum);
    }
  }
  EXPECT_EQ(product_with_transposed(a, some(2, 5, 3)).row(2)[1],
            product(a,
                    [] {
                      const Matrix t = some(2, 5, 3);
                      Matrix back(5, 2);
                      for (int i = 0; i < 5; ++i) {
                        for (int j = 0; j < 2; ++j) back.row(i)[j] = t.row(j)[i];
                      }
                      return back;
                    }())
                .row(2)[1]);
  std::vector<float> sum(5 * 4, 1.0F);
  const Matrix d = some(3, 4, 4);
  add_transposed_product(a, d, sum);
  float expected = 1;
  for (int k = 0; k < 3; ++k) expected += a.row(k)[2] * d.row(k)[3];
  EXPECT_EQ(sum[2 * 4 + 3], expected);
}

// A product in parts of its columns has equal bits.
TEST(Matrices, HaveTheSameBitsInParts) {
  const Matrix a = some(7, 33, 1), b = some(33, 29, 2);
  const Matrix whole = product(a, b);
  for (const int cols : {1, 2, 3, 5, 8, 16, 17}) {
    Matrix part(33, cols);
    for (int k = 0; k < 33; ++k) {
      for (int j = 0; j < cols; ++j) part.row(k)[j] = b.row(k)[j + 4];
    }
    const Matrix c = product(a, part);
    for (int i = 0; i < 7; ++i) {
      for (int j = 0; j < cols; ++j) EXPECT_EQ(c.row(i)[j], whole.row(i)[j + 4]) << cols;
    }
  }
}

// bf16 products follow the definition with every instruction set, for whole blocks and with a
// further odd row and column.
TEST(Matrices, OfBf16AreAddedUpByRisingIndex) {
  for (const auto& [rows, depth, cols] :
       {std::array{3, 8, 16}, {2, 7, 5}, {1, 1, 1}, {4, 33, 131}}) {
    const KeptMatrix a(DataType::bf16, some(rows, depth, 1)),
        b(DataType::bf16, some(depth, cols, 2));
    const Matrix begin = some(rows, cols, 3), exact_a = a.matrix(), exact_b = b.matrix();
    for (const Isa isa : {Isa::portable, hardware_isa()}) {
      Matrix c = begin;
      add_bf16_product(a.values.as<BFloat16>().data(), b.values.as<BFloat16>().data(), rows, depth,
                       cols, c.values.data(), isa);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
          float sum = begin.row(i)[j];
          for (int k = 0; k < depth; ++k) sum += exact_a.row(i)[k] * exact_b.row(k)[j];
          EXPECT_EQ(c.row(i)[j], sum) << name_of(isa) << " " << i << ", " << j;
        }
      }
    }
  }
}

// If one factor is bf16, the other is rounded to bf16 first.
TEST(Matrices, RoundWhatMeetsBf16) {
  const Matrix a = some(3, 6, 1), b = some(6, 4, 2);
  const KeptMatrix rounded_a(DataType::bf16, a), rounded_b(DataType::bf16, b);
  const Matrix expected = product(rounded_a.matrix(), rounded_b.matrix());
  EXPECT_EQ(product(rounded_a, rounded_b).values, expected.values);
  EXPECT_EQ(product(a, rounded_b).values, expected.values);
  EXPECT_EQ(product(rounded_a, b).values, expected.values);
  EXPECT_NE(product(a, b).values, expected.values);
}

TEST(Gradients, OfNorms) {
  const Matrix x = some(3, 8, 1), weights = some(3, 8, 2);
  const Matrix gains = some(1, 8, 3);
  std::vector<float> scales, by_gains(8);
  normed(x, gains.values, scales);
  const Matrix by_x = normed_backward(x, gains.values, scales, weights, by_gains);
  expect_gradient(x, weights, by_x, [&](const Matrix& changed) {
    std::vector<float> unused;
    return normed(changed, gains.values, unused);
  });
  Matrix by(1, 8);
  by.values = by_gains;
  expect_gradient(gains, weights, by, [&](const Matrix& changed) {
    std::vector<float> unused;
    return normed(x, changed.values, unused);
  });
}

TEST(Gradients, OfSilu) {
  const Matrix x = some(2, 9, 1), weights = some(2, 9, 2);
  expect_gradient(x, weights, silu_backward(x, weights), silu);
}

TEST(Gradients, OfAttention) {
  const Attention attention{2, 3, 4};
  const Matrix x = some(8, 18, 1), by = some(8, 6, 2);
  std::vector<KeptMatrix> weights;
  attention.forward(x, weights);
  expect_gradient(x, by, attention.backward(x, weights, by), [&](const Matrix& changed) {
    std::vector<KeptMatrix> unused;
    return attention.forward(changed, unused);
  });
}

// A whole layer, with one feed-forward part and with experts.
TEST(Gradients, OfLayers) {
  for (const int experts : {0, 3}) {
    const Model model{.layers = 1,
                      .hidden = 6,
                      .heads = 2,
                      .kv_heads = 2,
                      .feed_forward = 5,
                      .experts = experts,
                      .top_k = experts > 0 ? 1 : 0,
                      .vocabulary = 4,
                      .sequence = 4,
                      .bytes = 4};
    Layer layer(model, Places{}, 0, 7);
    const Matrix x = some(8, 6, 1), weights = some(8, 6, 2);
    Layer::Saved saved;
    layer.forward(x, saved);
    const Matrix by_x = layer.backward(weights, 0, saved);
    expect_gradient(x, weights, by_x, [&](const Matrix& changed) {
      Layer::Saved unused;
      return layer.forward(changed, unused);
    });
  }
}

}  // namespace

// rankine train as a command: its output, its files and its refusals.

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

// Losses that are not finite compare as equal, and the text says that they are not finite.
TEST(Train, SaysThatItDiverged) {
  const std::string file = temporary("diverged.svg");
  const Captured run =
      run_captured({"train", "--dp", "2", "--rate", "1", "--steps", "12", "--svg", file});
  EXPECT_EQ(run.exit, 0) << run.out;
  EXPECT_NE(run.out.find("not finite any more"), std::string::npos) << run.out;
  std::ifstream in(file);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// One rank takes the time of its computing; several ranks take at least that, and hide part of the
// communication. The losses equal those without a clock.
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
  // Fails before any training.
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

// Products by a BLAS of the machine. If none is installed, only the error for a missing library is
// tested.

namespace {

TEST(Blas, IsMissedByName) {
  const auto missing = Blas::open("libnoneofthiskind.so");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().text().find("libnoneofthiskind.so"), std::string::npos);
  const auto other = Blas::open("libc.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().text().find("cblas_sgemm"), std::string::npos);
}

// This test is the last one, because the BLAS stays in use.
TEST(Blas, MultipliesAsWeDo) {
  const auto blas = Blas::open("libblas.so.3");
  if (!blas.ok()) GTEST_SKIP() << blas.status().text();
  Matrix a(5, 37), b(37, 11);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < b.values.size(); ++i) b.values[i] = std::cos(static_cast<float>(i));
  const Matrix ours = product(a, b);
  std::vector<float> our_sum(37 * 11, 1.0F), their_sum = our_sum;
  add_transposed_product(a, ours, our_sum);
  ASSERT_EQ(blas_in_use(), nullptr);
  use_blas(*blas);
  ASSERT_NE(blas_in_use(), nullptr);
  const Matrix theirs = product(a, b);
  for (std::size_t i = 0; i < ours.values.size(); ++i) {
    EXPECT_NEAR(theirs.values[i], ours.values[i], 1e-5F);
  }
  add_transposed_product(a, ours, their_sum);
  for (std::size_t i = 0; i < our_sum.size(); ++i) EXPECT_NEAR(their_sum[i], our_sum[i], 1e-4F);
}

}  // namespace
}  // namespace rankine::tools
