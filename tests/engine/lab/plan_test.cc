// Tests of the plan of a training step, and of rankine plan, rankine step and rankine buckets.

#include <nlohmann/json.hpp>

#include "engine/lab/planner/play_step.h"
#include "engine/lab/planner/step.h"
#include "engine/network/fabric.h"
#include "engine/read/count.h"
#include "tests/budget.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

// A training step's plan: published step times, and the consistency of sums.

namespace rankine::tools {
namespace {

Model model_of(std::string_view name) { return find_published_model(name)->model; }
Machine a100() { return find_known_machine("a100")->machine; }

StepPlan plan(const Model& model, const Mapping& mapping) {
  const Machine machine = a100();
  Prices prices(machine, mapping.ranks(), *find_menu("nccl"));
  auto result = plan_step(model, mapping, machine, prices);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

struct Published {
  std::string_view model;
  int pp, interleave, micro_batch, micro_batches;
  double full, split;  // seconds: full recompute; split norms and selective recompute
};
// Korthikanti et al., 2022, table 5; tp is 8.
constexpr Published kPublished[] = {
    {"gpt_22b", 1, 1, 4, 1, 1.42, 1.10},
    {"gpt_175b", 8, 3, 1, 64, 18.13, 13.75},
    {"gpt_530b", 35, 3, 1, 280, 49.05, 37.83},
    {"gpt_1t", 64, 1, 1, 512, 94.42, 71.49},
};

TEST(Step, TimesAreNearThePublishedOnes) {
  double sum = 0;
  for (const Published& row : kPublished) {
    for (const bool split : {false, true}) {
      Mapping mapping;
      mapping[Axis::tp] = 8;
      mapping[Axis::pp] = row.pp;
      mapping.interleave = row.interleave;
      mapping.micro_batch = row.micro_batch;
      mapping.micro_batches = row.micro_batches;
      mapping.splits_norms = split;
      mapping.recompute = split ? Recompute::selective : Recompute::full;
      const StepPlan step = plan(model_of(row.model), mapping);
      const double published = split ? row.split : row.full;
      const double off = step.seconds / published - 1;
      EXPECT_LT(std::abs(off), 0.0887) << row.model;  // Calculon's worst
      sum += std::abs(off);
    }
  }
  EXPECT_LT(sum / 8, 0.0365);  // Calculon's mean
}

// The bytes that a rank sends along these axes in a step, by the schedules of the planned
// collectives.
double sent_along(const StepPlan& step, const std::vector<Axis>& axes) {
  double sum = 0;
  for (const PlannedCollective& c : step.collectives) sum += c.along == axes ? c.sent() : 0;
  return sum;
}

// A layer has 2 all-reduces each way, or as many all-gathers and reduce-scatters, with an equal
// number of bytes.
TEST(Step, TrafficOfTensorParallelismIsCounted) {
  const Model model = model_of("gpt_22b");
  Mapping mapping;
  mapping[Axis::tp] = 8;
  mapping.micro_batches = 3;
  const double activation = 2.0 * model.sequence * model.hidden;
  for (const bool split : {false, true}) {
    mapping.splits_norms = split;
    const StepPlan step = plan(model, mapping);
    EXPECT_DOUBLE_EQ(sent_along(step, {Axis::tp}), 3 * model.layers * 8 * 7.0 / 8 * activation);
  }
}

// Parameters move there once, and gradients back once, per micro-batch: 3 P in all. The embedding
// moves only 2 P, because it stays from the forward pass to the backward pass.
TEST(Step, TrafficOfZeroIsCounted) {
  const Model model = model_of("llama3_8b");
  Mapping mapping;
  mapping[Axis::dp] = 8;
  mapping.gradient_bytes = 2;
  const double layers = 2 * static_cast<double>(model.layers * model.layer());
  const double embedding = 2 * 2 * static_cast<double>(model.embedding());
  const double all = layers + embedding;
  const struct {
    int zero;
    double formula;
  } kCases[] = {{0, 2 * all}, {1, 2 * all}, {2, 2 * all}, {3, 3 * layers + 2 * embedding}};
  for (const auto& [zero, formula] : kCases) {
    mapping.zero = zero;
    const double sent = sent_along(plan(model, mapping), {Axis::sp, Axis::ep, Axis::dp});
    EXPECT_NEAR(sent, formula * 7 / 8, 1e-6 * formula) << zero;
  }
}

// Each stage receives activations and gradients once for each of its parts.
TEST(Step, TrafficOfThePipelineIsCounted) {
  const Model model = model_of("gpt_22b");
  Mapping mapping;
  mapping[Axis::pp] = 4;
  mapping.micro_batches = 8;
  const double activation = 2.0 * model.sequence * model.hidden;
  for (const int parts : {1, 2, 3}) {
    mapping.interleave = parts;
    EXPECT_DOUBLE_EQ(sent_along(plan(model, mapping), {Axis::pp}), 2 * 8 * parts * activation);
  }
  mapping.interleave = 1;
  mapping.order = PipelineOrder::zbv;
  EXPECT_DOUBLE_EQ(sent_along(plan(model, mapping), {Axis::pp}), 2 * (2 * 8 * activation));
}

// Dispatch and combine, forward and backward; (Z - 1) / Z of the bytes cross to other ranks.
TEST(Step, TrafficOfExpertsIsCounted) {
  const Model model = model_of("mixtral_8x7b");
  const double all = 2.0 * model.sequence * model.hidden, calls = 4.0 * model.layers;
  for (const int ranks : {2, 4, 8}) {
    Mapping mapping;
    mapping[Axis::ep] = ranks;
    const double z = ranks, crosses = (z - 1) / z;
    const auto per_token = [&] {
      return sent_along(plan(model, mapping), {Axis::ep}) / (calls * all);
    };
    EXPECT_NEAR(per_token(), 2 * crosses, 1e-6) << ranks;
    mapping.sends_once = true;
    // In units of the tokens of all Z ranks together: (Z - 1) / Z (1 - ((Z - 1) / Z)^k).
    EXPECT_NEAR(per_token() / z, crosses * (1 - crosses * crosses), 1e-6) << ranks;
    mapping.sends_once = false;
    mapping.capacity = 1.25;
    EXPECT_NEAR(per_token(), 2 * 1.25 * crosses, 1e-6) << ranks;
  }
}

// The plan uses the slowest of the groups along an axis, because all ranks wait for it. One of four
// groups of three in nodes of eight lies in two nodes.
TEST(Step, AGroupInTwoNodesIsPlannedAsSuch) {
  Mapping mapping;
  mapping[Axis::tp] = 3;
  mapping[Axis::dp] = 2;
  const auto time_of_tp = [&] {
    const StepPlan step = plan(model_of("gpt2"), mapping);
    EXPECT_EQ(step.collectives.front().along, std::vector{Axis::tp});
    return step.collectives.front().price.seconds;
  };
  const double inside = time_of_tp();
  mapping[Axis::dp] = 4;
  EXPECT_GT(time_of_tp(), 2 * inside);
}

TEST(Step, HiddenGradientsCostOnlyTheirLastBucket) {
  Mapping mapping;
  mapping[Axis::dp] = 8;
  const StepPlan step = plan(model_of("llama3_8b"), mapping);
  ASSERT_EQ(step.collectives.size(), 1u);
  const PlannedCollective& gradients = step.collectives.front();
  EXPECT_NEAR(gradients.exposed(), gradients.price.seconds, 1e-12);
}

// Without hops, and with three passes of similar length, zbv has almost no bubble.
TEST(Step, OrdersWithWeightsApartWaitLess) {
  Mapping mapping;
  mapping[Axis::pp] = 4;
  mapping.micro_batches = 16;
  const auto bubble = [&](PipelineOrder order) {
    mapping.order = order;
    const StepPlan step = plan(model_of("gpt_22b"), mapping);
    return step.bubble() / step.seconds;
  };
  const double one_f_one_b = bubble(PipelineOrder::one_f_one_b);
  EXPECT_LT(bubble(PipelineOrder::zb1p), 0.7 * one_f_one_b);
  EXPECT_LT(bubble(PipelineOrder::zbv), 0.3 * one_f_one_b);
}

TEST(Step, OfOneRankHasNoCollective) {
  const StepPlan step = plan(model_of("llama3_8b"), Mapping{});
  EXPECT_TRUE(step.collectives.empty());
  EXPECT_NEAR(step.seconds, step.computing(), 1e-9);
}

TEST(Step, BadMappingsAreRefused) {
  const Machine machine = a100();
  Mapping mapping;
  mapping[Axis::tp] = 7;
  Prices prices(machine, 7, *find_menu("nccl"));
  EXPECT_TRUE(plan_step(model_of("llama3_8b"), mapping, machine, prices)
                  .status()
                  .text()
                  .starts_with("tp is 7"));
}

// rankine plan, rankine step and rankine buckets; tests/engine/cli/refusals.txt has their refusals.

using Json = nlohmann::ordered_json;

TEST(Plan, SumsAreThoseOfItsRows) {
  for (const std::string asked :
       {"llama3_8b --tp 2 --dp 4 --pp 2 --batch 64",
        "llama3_8b --tp 2 --sp 2 --dp 2 --pp 2 --batch 16 --zero 2 --split-norms",
        "mixtral_8x7b --tp 2 --sp 2 --ep 4 --dp 2 --pp 2 --batch 64 --zero 1",
        "mixtral_8x7b --tp 2 --sp 2 --ep 4 --dp 2 --pp 2 --batch 64 --zero 3"}) {
    const Json plan = json_of("plan " + asked + " --json");
    const auto number = [&plan](const char* name) { return plan[name].get<double>(); };
    double communicating = 0, hidden = 0, computing = 0;
    EXPECT_FALSE(plan["collectives"].empty()) << asked;
    for (const Json& row : plan["collectives"]) {
      EXPECT_GT(row["seconds"].get<double>(), 0) << asked;
      EXPECT_GE(row["hidden"].get<double>(), 0) << asked;
      EXPECT_GE(row["exposed"].get<double>(), -1e-12) << asked;
      communicating += row["seconds"].get<double>();
      hidden += row["hidden"].get<double>();
      EXPECT_NEAR(row["exposed"].get<double>() + row["hidden"].get<double>(),
                  row["seconds"].get<double>(), 1e-12);
    }
    for (const Json& row : plan["computations"]) {
      computing += row["times"].get<double>() * row["seconds_each"].get<double>();
    }
    EXPECT_NEAR(number("communicating"), communicating, 1e-12);
    EXPECT_NEAR(number("hidden"), hidden, 1e-12);
    EXPECT_NEAR(number("computing"), computing, 1e-9);
    EXPECT_NEAR(number("computing") + number("exposed") + number("bubble"), number("seconds"),
                1e-9);
    EXPECT_GT(number("bubble"), 0) << asked;
  }
  // The text is the same plan; the stage that ends last is the first, without logits.
  const std::string text = output_of(
      "plan gpt_175b --tp 8 --pp 8 --interleave 3 --batch 64 --split-norms --recompute selective "
      "--explain");
  EXPECT_TRUE(has(text, "45.6 GiB  2.718e+09 parameters x 18 B")) << text;
  EXPECT_TRUE(has(text, "reduce_scatter") && !has(text, "logits")) << text;
}

// The order of axes decides which groups lie inside a node.
TEST(Plan, AxesAreNestedAsAsked) {
  for (const auto& [nested, axis, ranks] : {std::tuple("", "tp", "[0, 1]"),
                                            {"", "dp", "[0, 2, 4, 6]"},
                                            {" --nested dp,pp", "dp", "[0, 1, 2, 3]"},
                                            {" --nested dp,pp", "pp", "[0, 4]"},
                                            {" --nested dp,pp", "tp", "[0, 8]"}}) {
    const Json plan = json_of(std::string("plan llama3_8b --tp 2 --dp 4 --pp 2 --json") + nested);
    for (const Json& row : plan["collectives"]) {
      if (row["along"] == axis) {
        EXPECT_EQ(row["ranks"], Json::parse(ranks)) << nested << axis;
      }
    }
  }
}

// Each collective's time equals the simulator's answer for it alone.
TEST(Plan, TimesAreTheSimulators) {
  const Json plan = json_of("plan llama3_8b --tp 8 --machine a100 --json");
  ASSERT_FALSE(plan["collectives"].empty());
  for (const Json& row : plan["collectives"]) {
    const Json asked = json_of("simulate " + row["collective"].get<std::string>() + " --algo " +
                               row["algorithm"].get<std::string>() +
                               " --ranks 8 --alpha 3800ns --bandwidth 221GB/s --json --bytes " +
                               std::to_string(row["bytes"].get<std::uint64_t>()));
    EXPECT_DOUBLE_EQ(asked["time"].get<double>(), row["seconds_each"].get<double>()) << row;
  }
}

TEST(Plan, TheSearchFindsNothingWorseThanWhatItCouldHave) {
  const std::string model = "plan llama3_8b --batch 32 --sequence 4096 --json ";
  const Json found = json_of(model + "--search --ranks 16")["best"];
  ASSERT_FALSE(found.empty());
  double before = 0;
  for (const Json& plan : found) {
    EXPECT_GE(plan["seconds"].get<double>(), before);
    before = plan["seconds"].get<double>();
    EXPECT_TRUE(plan["memory"]["fits"].get<bool>());
    EXPECT_EQ(plan["ranks"], 16);
    EXPECT_EQ(plan["batch"], 32);
  }
  for (const std::string other : {"--tp 8 --dp 2 --split-norms", "--tp 8 --pp 2 --split-norms",
                                  "--tp 4 --dp 4 --split-norms --recompute selective"}) {
    EXPECT_LE(found[0]["seconds"], json_of(model + other)["seconds"]) << other;
  }
}

// The survey's ten rows, each with the plan's ranks and bytes.
TEST(Plan, TheSurveysRowsAreSimulated) {
  const std::string asked = "plan mixtral_8x7b --tp 2 --sp 2 --ep 4 --dp 2 --pp 2 --json";
  const Json rows = json_of(asked + " --survey"), plan = json_of(asked);
  ASSERT_EQ(rows.size(), 10u);
  for (const Json& row : rows) {
    // One port: a rank receives from its two children in a tree one after the other.
    EXPECT_EQ(row["equal"].get<bool>(), row["claim"] != "lu-9-dp-double") << row;
    EXPECT_EQ(row["equal"].get<bool>(), row["stated"] == row["simulated"]) << row;
    if (row["claim"] == "lu-9-tp-ring" || row["claim"] == "lu-9-sp-ring" ||
        row["claim"] == "lu-9-pp") {  // equals the plan too, inside a node and between nodes
      EXPECT_DOUBLE_EQ(row["stated"].get<double>(), row["planned"].get<double>()) << row;
    }
    EXPECT_TRUE(std::any_of(plan["collectives"].begin(), plan["collectives"].end(),
                            [&](const Json& c) {
                              return c["bytes"] == row["bytes"] && c["along"] == row["along"] &&
                                     c["seconds_each"] == row["planned"];
                            }))
        << row;
  }
  const Json dp = json_of("plan gpt2 --dp 4 --survey --json");
  ASSERT_EQ(dp.size(), 10u);
  for (const Json& row : dp) EXPECT_EQ(row.contains("stated"), row["axis"] == "dp") << row;
  // If the plan has reduce-scatters instead of all-reduces, their bytes are the row's.
  EXPECT_EQ(
      json_of(
          "plan gpt2 --dp 4 --tp 2 --zero 1 --split-norms --survey --json")[0]
                                                                           ["collective_planned"],
      "reduce_scatter");
}

// A token reads all weights and all keys and values once; one sequence computes almost nothing.
TEST(Plan, ADecodeStepWaitsForMemory) {
  const Json plan = json_of("plan llama3_8b --decode --batch 1 --sequence 1024 --json");
  const double layers = 32.0 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336);
  const double head = 128256.0 * 4096;
  const double cache = 1024.0 * 2 * 1024 * 32;
  const double norms = 32 * (10 * 4096.0 + 1.5 * 3 * 14336);
  EXPECT_NEAR(plan["seconds"].get<double>(), 2 * (layers + head + cache + norms) / 1.4736e12, 1e-9);
  EXPECT_TRUE(plan["collectives"].empty());
  for (const Json& row : plan["computations"]) {
    if (row["for"] != "attention") continue;
    EXPECT_EQ(row["flops"], 4.0 * 1024 * 4096);  // scores and sums with all tokens
  }
  EXPECT_EQ(json_of("plan llama3_8b --decode --tp 8 --batch 4 --json")["collectives"].size(), 2u);
}

TEST(Plan, PicturesAndTracesHaveEveryPass) {
  const std::string svg = file_with("plan.svg", ""), trace = file_with("plan.json", "");
  output_of("plan llama3_8b --pp 4 --batch 8 --svg " + svg + " --trace " + trace);
  EXPECT_EQ(count_of(text_of(svg), "<title>"), 4u * 8 * 2);
  EXPECT_EQ(count_of(text_of(trace), "\"ph\":\"X\""), 4u * 8 * 2);
}

TEST(Plan, ThisMachineIsMeasured) {
  const Captured run = run_line("plan gpt2 --tp 2 --machine here --json");
  if (run.exit != 0) {  // other users of the cores may spoil the fit
    EXPECT_TRUE(has(run.err, "this machine")) << run.err;
    return;
  }
  const Json plan = Json::parse(run.out);
  // Loose limits: faster than a pocket calculator, slower than any core.
  for (const char* speed : {"flops_per_second", "memory_bytes_per_second"}) {
    EXPECT_GT(plan[speed], 1e6);
    EXPECT_LT(plan[speed], 1e13);
  }
  EXPECT_GT(plan["seconds"], 0);
}

// Threads, groups by axis, real data: the clock agrees with the plan. In the last mapping one of
// four groups of three in nodes of eight lies in two nodes, and all ranks wait for it.
TEST(Step, PlayedTimesAreThePlanned) {
  const std::string sizes = R"("layers": 4, "hidden": 256, "heads": 8, "feed_forward": 512,
      "vocabulary": 1000, "sequence": 96})";
  const std::string dense = file_with("dense.json", "{" + sizes);
  const std::string mixture = file_with("mixture.json", R"({"experts": 8, "top_k": 2, )" + sizes);
  for (const std::string& asked :
       {dense + " --tp 2 --dp 2 --pp 2 --split-norms --zero 1 --bucket 1M",
        dense + " --tp 4 --dp 3 --bucket 100K",
        dense + " --tp 4 --sp 2 --dp 4 --pp 2 --nested dp,pp --zero 1 --bucket 1M",
        dense + " --sp 2 --dp 2 --zero 3", mixture + " --ep 4 --dp 2 --zero 1 --bucket 1M",
        mixture + " --ep 4 --router-skew 1.5", std::string("gpt2 --tp 3 --dp 4 --thin 1K")}) {
    const Json played = json_of("step " + asked + " --json");
    EXPECT_GE(played["collectives"].size(), 2u);
    for (const Json& row : played["collectives"]) {
      EXPECT_TRUE(row["equal"].get<bool>()) << asked << ": " << row;
      EXPECT_EQ(row["wrong"], 0) << asked << ": " << row;
    }
  }
}

// Buffers of a fraction of M, on a network slower by the inverse factor: times are equal bit for
// bit.
TEST(Step, ThinnedBuffersTakeAsLong) {
  const std::string asked = "step gpt2 --tp 2 --pp 2 --sequence 64 --json";
  const Json whole = json_of(asked)["collectives"],
             thin = json_of(asked + " --thin 4K")["collectives"];
  ASSERT_EQ(whole.size(), thin.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i]["bytes_played"], whole[i]["bytes"]);
    EXPECT_EQ(thin[i]["bytes"], whole[i]["bytes"]);
    EXPECT_LE(thin[i]["bytes_played"], 4096);
    EXPECT_EQ(thin[i]["played"], whole[i]["played"]);
  }
}

// Chakra traces.

std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  return out + static_cast<char>(n);
}
std::string number(std::uint64_t field, std::uint64_t n) { return varint(field << 3) + varint(n); }
std::string bytes(std::uint64_t field, const std::string& text) {
  return varint(field << 3 | 2) + varint(text.size()) + text;
}
std::string message(const std::string& fields) { return varint(fields.size()) + fields; }
std::string attribute(const std::string& name, std::uint64_t kind, std::uint64_t n) {
  return bytes(10, bytes(1, name) + number(kind, n));
}
constexpr std::uint64_t kInt64 = 9, kBool = 27;

// A computation, an all-reduce beside a second computation, an all-gather, a last computation, and
// a call of the host.
std::string chakra_file() {
  std::string text = message(bytes(1, "0.0.4"));
  const auto node = [&text](std::uint64_t id, std::uint64_t type, std::uint64_t micros,
                            const std::string& rest) {
    text += message((id > 0 ? number(1, id) : "") + number(3, type) + number(7, micros) + rest);
  };
  const auto collective = [](std::uint64_t type, std::uint64_t size) {
    return attribute("comm_type", kInt64, type) + attribute("comm_size", kInt64, size);
  };
  node(0, 4, 100, bytes(2, "first"));
  node(1, 7, 3, bytes(5, varint(0)) + collective(0, 1 << 20) + attribute("is_cpu_op", kBool, 0));
  node(2, 4, 50, number(5, 0));
  node(3, 7, 3, bytes(5, varint(2)) + collective(2, 1 << 16));
  node(4, 4, 10, bytes(5, varint(1) + varint(3)));
  node(300, 7, 5, attribute("is_cpu_op", kBool, 1));
  return file_with("trace.0.et", text);
}

TEST(Chakra, PlaysComputationsAndCollectivesInTheirOrder) {
  const Json step = json_of("step --chakra " + chakra_file() + " --ranks 4 --json");
  ASSERT_EQ(step["collectives"].size(), 2u);
  const Json &reduce = step["collectives"][0], &gather = step["collectives"][1];
  EXPECT_EQ(reduce["collective"], "all_reduce");
  EXPECT_EQ(reduce["bytes"], 1 << 20);
  EXPECT_EQ(gather["collective"], "all_gather");
  EXPECT_EQ(gather["bytes"], 4 << 16);  // every rank brings 64 KiB
  for (const Json& row : step["collectives"]) {
    EXPECT_TRUE(row["equal"].get<bool>()) << row;
    EXPECT_EQ(row["wrong"], 0) << row;
  }
  const double reducing = reduce["planned"], gathering = gather["planned"];
  EXPECT_NEAR(step["step"], std::max(150e-6, 100e-6 + reducing) + gathering + 10e-6, 1e-12);
  EXPECT_NEAR(step["hidden"], std::min(50e-6, reducing), 1e-12);
  EXPECT_NEAR(step["computing"], 160e-6, 1e-12);
  EXPECT_EQ(step["nodes"], 6);
  // The same trace as chakra_jsonizer writes it.
  const std::string json = R"({"version": "0.0.4"}{"name": "first", "type": "COMP_NODE",
    "durationMicros": "100"}{"id": "1", "type": "COMM_COLL_NODE", "dataDeps": ["0"], "attr": [
    {"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1048576"}]}
    {"id": "2", "type": "COMP_NODE", "dataDeps": ["0"], "durationMicros": "50"}
    {"id": "3", "type": "COMM_COLL_NODE", "dataDeps": ["2"], "attr": [
    {"name": "comm_type", "int64Val": "2"}, {"name": "comm_size", "int64Val": "65536"}]}
    {"id": "4", "type": "COMP_NODE", "dataDeps": ["1", "3"], "durationMicros": "10"}
    {"id": "300", "type": "COMM_COLL_NODE", "durationMicros": "5",
    "attr": [{"name": "is_cpu_op", "boolVal": true}]}
)";
  const Json same = json_of("step --chakra " + file_with("trace.json", json) + " --ranks 4 --json");
  EXPECT_EQ(same["step"], step["step"]);
  EXPECT_EQ(same["collectives"], step["collectives"]);
}

// Every collective of the schema, on real data.
TEST(Chakra, HasEveryCollective) {
  std::string json = "{}";
  for (int type = 0; type < 9; ++type) {
    json += R"({"id": ")" + std::to_string(type) + R"(", "type": 7, "attr": [
      {"name": "comm_type", "int64Val": ")" +
            std::to_string(type) + R"("},
      {"name": "comm_size", "int64Val": "3000"}]})";
  }
  const Json step =
      json_of("step --chakra " + file_with("all.json", json) + " --ranks 3 --menu all --json");
  ASSERT_EQ(step["collectives"].size(), 8u);  // both kinds of reduce-scatter are one
  for (const Json& row : step["collectives"]) {
    EXPECT_TRUE(row["equal"].get<bool>()) << row;
    EXPECT_EQ(row["wrong"], 0) << row;
  }
}

TEST(Chakra, RefusesOtherFilesWithPlaceAndReason) {
  const std::string node = R"({"version": "1"}{"id": "7", "type": "COMM_COLL_NODE", "attr": [)";
  const std::string all_reduce = R"({"name": "comm_type", "int64Val": "0"})";
  const std::string size = R"({"name": "comm_size", "int64Val": "8"})";
  const std::string whole = node + all_reduce + "," + size;
  const std::pair<std::string, std::string> kRefused[] = {
      {message("x"), "has no nodes"},
      {message("") + "\x05\x08", "message 2 at byte 1"},
      {message("") + message("\x08"), "message 2 at byte 1"},
      {message("") + message(bytes(10, "\x0b")), "message 2 at byte 1"},
      {"\x1f\x8b", "gunzip"},
      {"{}\n{\"workload_graph\": []}", "line 2: workload_graph"},
      {"{}\n\n{\"id\": ", "line 3: "},
      {"{}{\"id\": \"x\"}", "id is \"x\""},
      {"{}{\"id\": 1, \"type\": \"COMM_SEND_NODE\"}", "node 1: type is COMM_SEND_NODE (5)"},
      {"{}{\"id\": 1, \"type\": 9}", "node 1: type is unknown (9)"},
      {"{}{\"id\": 1}", "node 1: type is INVALID_NODE"},
      {node + size + "]}", "node 7: comm_type is missing"},
      {node + all_reduce + "]}", "node 7: comm_size is missing"},
      {node + size + R"(, {"name": "comm_type", "int64Val": "9"}]})", "comm_type is 9; allowed"},
      {node + all_reduce + R"(, {"name": "comm_size", "int64Val": "-8"}]})", "comm_size is 1844"},
      {whole + R"(], "dataDeps": ["8"]})", "node 7: data_deps has 8"},
      {whole + R"(], "dataDeps": ["7"]})", "node 7 waits for ever"},
      {whole + R"(]}{"id": "7", "type": "COMP_NODE"})", "node 7 is there twice"},
      {whole + R"(]}{"id": "8", "type": 7, "attr": [{"name": "pg_name", "stringVal": "b"},)" +
           all_reduce + "," + size + "]}",
       "node 8: pg_name is 'b'"},
      {R"({}{"id": "1", "type": "COMP_NODE", "attr": [{"name": "num_ops", "int64Val": "5"}]})",
       "num_ops is 5"}};
  for (const auto& [text, reason] : kRefused) {
    const std::string file = file_with("refused.et", text);
    const Captured run = run_line("step --chakra " + file + " --ranks 2");
    EXPECT_EQ(run.exit, 2) << reason;
    EXPECT_TRUE(has(run.err, reason) && has(run.err, "--chakra '" + file + "'")) << run.err;
  }
}

// The chapter's exercise 4: 1000 tensors of 1 MB, 8 ranks, 10 us, 100 GB/s. Behind a backward pass,
// the number of buckets with the least waiting is near the formula's.
TEST(Buckets, GainWhatTheChapterSays) {
  const Json rows = json_of("buckets --alpha 10us --bandwidth 100GB/s --play --json");
  for (const Json& row : rows) {
    const double seconds = row["seconds"].get<double>();
    EXPECT_NEAR(row["seconds_each"].get<double>(), row["formula_each"].get<double>(), 1e-9);
    EXPECT_NEAR(row["played"].get<double>(), seconds, 1e-12 * seconds);
    EXPECT_TRUE(row["tensors"] != 1 || std::abs(seconds - 157.5e-3) < 1e-6) << row;
    EXPECT_TRUE(row["tensors"] != 25 || std::abs(seconds - 23.1e-3) < 1e-6) << row;
    EXPECT_TRUE(row["tensors"] != 25 || row["calls"] == 40) << row;
  }
  EXPECT_EQ(rows.back()["calls"], 1);
  const Json behind =
      json_of("buckets --alpha 10us --bandwidth 10GB/s --backward 20ms --tensors 1024 --json");
  const auto least =
      std::min_element(behind.begin(), behind.end(), [](const Json& a, const Json& b) {
        return a["exposed"].get<double>() < b["exposed"].get<double>();
      });
  const double calls = (*least)["calls"].get<double>(), formula = std::sqrt(20e-3 / 140e-6);
  EXPECT_GT(calls, formula / 2);
  EXPECT_LT(calls, formula * 2);
}

// Every preset at up to 64 ranks: the plan's time of each collective equals the clocks of threads
// that play it, to the last tick. Exposed and hidden time add up to the communication.
//
// Models and times are of full size. Buffers are thinned (play_step.h), because no machine has the
// memory for 405 billion parameters 64 times.

constexpr int kMostRanks = 64;
constexpr std::uint64_t kMostBytes = 1024;

// All known machines, and the first machine with the network of every preset.
std::vector<Machine> machines() {
  std::vector<Machine> all;
  for (const KnownMachine& known : known_machines()) all.push_back(known.machine);
  for (const Regime& regime : regimes()) {
    Machine machine = all.front();
    machine.name = "a100 on " + std::string(regime.name);
    machine.network = regime.fabric;
    all.push_back(std::move(machine));
  }
  return all;
}

// Common uses of up to 64 ranks: each axis alone, and axes together.
std::vector<Mapping> mappings(const Model& model) {
  std::vector<Mapping> all;
  const auto add = [&](std::array<int, kAxes> axes, auto change) {
    Mapping mapping;
    mapping.axes = axes;
    mapping.micro_batches = 4 * mapping[Axis::pp];
    change(mapping);
    if (check_mapping(model, mapping).ok()) all.push_back(mapping);
  };
  const auto plain = [](Mapping&) {};
  const auto split = [](Mapping& m) {
    m.splits_norms = true;
    m.zero = 1;
  };
  add({1, 1, 1, 64, 1}, plain);
  add({1, 1, 1, 16, 1}, [](Mapping& m) { m.zero = 3; });
  add({4, 1, 1, 4, 3}, plain);
  add({8, 1, 1, 8, 1}, split);
  add({8, 1, 1, 2, 2}, [&](Mapping& m) {
    split(m);
    m.interleave = 2;
  });
  add({2, 4, 1, 2, 1}, [](Mapping& m) { m.zero = 2; });
  add({1, 1, 8, 4, 2}, split);
  add({2, 1, 4, 1, 1}, [](Mapping& m) { m.router_skew = 1.5; });
  add({2, 1, 1, 1, 2}, [](Mapping& m) { m.order = PipelineOrder::zbv; });
  return all;
}

// Checks that exposed and hidden time add up to the communication, and that computing, exposed time
// and bubble add up to the step.
void expect_sums(const StepPlan& plan, const std::string& what) {
  double exposed = 0, hidden = 0, all = 0;
  for (const PlannedCollective& c : plan.collectives) {
    EXPECT_GE(c.hidden, 0) << what << ": " << c.what;
    EXPECT_GE(c.exposed(), -1e-12 * c.seconds()) << what << ": " << c.what;
    EXPECT_GT(c.price.seconds, 0) << what << ": " << c.what;
    exposed += c.exposed();
    hidden += c.hidden;
    all += c.times * c.price.seconds;
  }
  EXPECT_NEAR(exposed + hidden, all, 1e-12 * all) << what;
  EXPECT_NEAR(plan.computing() + exposed + plan.bubble(), plan.seconds, 1e-9 * plan.seconds)
      << what;
}

void expect_played_as_planned(const StepPlan& plan, const std::string& what) {
  const auto played = play_collectives(plan, {.most_bytes = kMostBytes});
  ASSERT_TRUE(played.ok()) << what << ": " << played.status().text();
  ASSERT_FALSE(played->empty());
  for (const PlayedCollective& c : *played) {
    EXPECT_EQ(c.seconds, c.planned.price.seconds)
        << what << ": " << c.planned.what << ", " << c.planned.price.algorithm->name << ", "
        << c.planned.price.bytes << " bytes";
    EXPECT_EQ(c.wrong, 0) << what << ": " << c.planned.what;
    EXPECT_LE(c.bytes, std::max(kMostBytes, c.planned.price.sent)) << what;
  }
}

class Presets : public testing::TestWithParam<std::string> {};

// Plans every mapping on every machine. Plays all mappings on the first machine, and four, which
// differ from model to model, on each other machine and network preset. Mappings that gather
// parameters among more than 32 threads take many seconds on few cores, so they are played on the
// first machine only.
TEST_P(Presets, ArePlayedAsTheyArePlanned) {
  const Model model = find_published_model(GetParam())->model;
  const std::vector<Mapping> mapped = mappings(model);
  ASSERT_GE(mapped.size(), 3u);
  const std::vector<Machine> all = machines();
  std::size_t turn = model.name.size();
  const Sample sample("presets", 9);
  std::uint64_t number = model.name.size();
  for (std::size_t n = 0; n < all.size(); ++n, turn += 2) {
    for (std::size_t m = 0; m < mapped.size(); ++m) {
      const Machine& machine = all[n];
      const Mapping& mapping = mapped[m];
      ASSERT_LE(mapping.ranks(), kMostRanks);
      if (!sample.has(number++)) continue;
      if (!wired_for(machine.network, mapping.ranks()).ok()) continue;  // 48 in a hypercube
      Prices prices(machine, mapping.ranks(), *find_menu("nccl"));
      const auto plan = plan_step(model, mapping, machine, prices);
      const std::string what = model.name + ", " + describe(mapping) + ", " + machine.name;
      ASSERT_TRUE(plan.ok()) << what << ": " << plan.status().text();
      expect_sums(*plan, what);
      const bool is_slow = mapping.ranks() > 32 && mapping.zero > 0;
      const bool has_turn = !is_slow && (turn + m) % mapped.size() < 4;
      if (n == 0 || has_turn) expect_played_as_planned(*plan, what);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const PublishedModel& one : published_models()) all.push_back(one.model.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, Presets, testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace rankine::tools
