// Tests of models over ranks, and of the orders of pipelines.

#include <regex>

#include "engine/lab/planner/layer_work.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/pipeline.h"
#include "tests/testing.h"

// A model over ranks: parameters, memory to the published digits, groups, and refusals.

namespace rankine::tools {
namespace {

constexpr double kGiB = 1 << 30;

Model model_of(std::string_view name) { return find_published_model(name)->model; }

// The value rounded to `digits` decimals, as in print.
double printed(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

TEST(Model, ParametersAreAsPublished) {
  // In billions, as in the models' names.
  const struct {
    std::string_view name;
    double all, active;
  } kNamed[] = {
      {"gpt2", 0.1, 0.1},         {"gpt_22b", 22.1, 22.1},       {"gpt_175b", 174.6, 174.6},
      {"gpt_530b", 529.5, 529.5}, {"gpt_1t", 1007.9, 1007.9},    {"llama3_8b", 8.0, 8.0},
      {"llama3_70b", 70.6, 70.6}, {"llama3_405b", 405.8, 405.8}, {"mixtral_8x7b", 46.7, 12.9}};
  for (const auto& [name, all, active] : kNamed) {
    EXPECT_EQ(printed(static_cast<double>(model_of(name).all()) / 1e9, 1), all) << name;
    EXPECT_EQ(printed(static_cast<double>(model_of(name).active()) / 1e9, 1), active) << name;
  }
}

struct Published {
  std::string_view model;
  int pp, interleave, micro_batch, micro_batches;
  double state, plain, split;  // GiB
};
// Korthikanti et al., 2022; tp is 8.
constexpr Published kPublished[] = {
    {"gpt_22b", 1, 1, 4, 1, 45.5625, 59.25, 9.5625},
    {"gpt_175b", 8, 3, 1, 64, 45.5625, 66.84375, 12.3516},
    {"gpt_530b", 35, 3, 1, 280, 31.640625, 114.0234, 23.0762},
    {"gpt_1t", 64, 1, 1, 512, 32.958984, 131.25, 26.5625},
};

Mapping mapping_of(const Published& row) {
  Mapping mapping;
  mapping[Axis::tp] = 8;
  mapping[Axis::pp] = row.pp;
  mapping.interleave = row.interleave;
  mapping.micro_batch = row.micro_batch;
  mapping.micro_batches = row.micro_batches;
  return mapping;
}

TEST(Memory, IsAsPublished) {
  for (const Published& row : kPublished) {
    const Model model = model_of(row.model);
    Mapping mapping = mapping_of(row);
    const Memory plain = memory_of(model, mapping);
    EXPECT_EQ(printed(plain.layer_state / kGiB, 6), printed(row.state, 6)) << row.model;
    EXPECT_EQ(printed(plain.activations / kGiB, 4), printed(row.plain, 4)) << row.model;
    mapping.splits_norms = true;
    mapping.recompute = Recompute::selective;
    EXPECT_EQ(printed(memory_of(model, mapping).activations / kGiB, 4), printed(row.split, 4))
        << row.model;
  }
}

// In units of s b h, by the formulas of the paper.
TEST(Memory, OfALayerFollowsTheFormulas) {
  const Model model = model_of("gpt_175b");
  const double unit = 2048.0 * 12288, t = 8, scores = 5.0 * 96 * 2048 / (12288 * t);
  const struct {
    bool splits;
    Recompute recompute;
    double formula;
  } kCases[] = {{false, Recompute::none, 10 + 24 / t + scores},
                {true, Recompute::none, 34 / t + scores},
                {false, Recompute::selective, 10 + 24 / t},
                {true, Recompute::selective, 34 / t},
                {false, Recompute::full, 2}};
  for (const auto& [splits, recompute, formula] : kCases) {
    Mapping mapping;
    mapping[Axis::tp] = 8;
    mapping.splits_norms = splits;
    mapping.recompute = recompute;
    EXPECT_DOUBLE_EQ(memory_of(model, mapping).activations_per_layer, formula * unit);
  }
}

// Rajbhandari et al., ZeRO: with 2 bytes of gradient and k = 12.
TEST(Memory, OfZeroFollowsTheFormulas) {
  Mapping mapping;
  mapping.gradient_bytes = 2;
  const double k = 12, n = 64;
  const double formulas[] = {4 + k, 4 + k / n, 2 + (2 + k) / n, (4 + k) / n};
  for (int zero = 0; zero <= 3; ++zero) {
    mapping.zero = zero;
    EXPECT_DOUBLE_EQ(state_bytes(Model{}, mapping, 64), formulas[zero]) << zero;
  }
  mapping.gradient_bytes = 4;  // Megatron's distributed optimizer
  mapping.zero = 0;
  EXPECT_DOUBLE_EQ(state_bytes(Model{}, mapping, 64), 18);
  mapping.zero = 1;
  EXPECT_DOUBLE_EQ(state_bytes(Model{}, mapping, 64), 6 + 12 / n);
}

// In f32 no parameter needs a copy; masks stay one byte.
TEST(Memory, FollowsTheBytesOfAnElement) {
  Model model = model_of("gpt_22b");
  const Memory two = memory_of(model, Mapping{});
  model.bytes = 4;
  const Memory four = memory_of(model, Mapping{});
  EXPECT_DOUBLE_EQ(two.layer_state, 18 * two.layer_parameters);
  EXPECT_DOUBLE_EQ(four.layer_state, 16 * four.layer_parameters);
  const double masks = 2048.0 * 6144 * (2 + 64 * 2048.0 / 6144);
  EXPECT_DOUBLE_EQ(four.activations_per_layer - masks, 2 * (two.activations_per_layer - masks));
}

TEST(Memory, ExpertsAreSplitAlongTheirAxisOnly) {
  const Model model = model_of("mixtral_8x7b");
  Mapping mapping;
  const double whole = memory_of(model, mapping).layer_parameters;
  EXPECT_DOUBLE_EQ(whole, static_cast<double>(model.layers * model.layer()));
  mapping[Axis::ep] = 8;
  const double experts =
      static_cast<double>(model.layers) * 8 * static_cast<double>(model.expert());
  EXPECT_DOUBLE_EQ(memory_of(model, mapping).layer_parameters, whole - experts * 7 / 8);
}

TEST(Mapping, GroupsAreNumberedFromTheInsideOut) {
  Mapping mapping;
  mapping[Axis::tp] = 2;
  mapping[Axis::ep] = 3;
  mapping[Axis::dp] = 2;
  mapping[Axis::pp] = 2;
  const auto group = [&](std::vector<Axis> axes) { return group_of(mapping, axes); };
  EXPECT_EQ(group({Axis::tp}), (std::vector<Rank>{0, 1}));
  EXPECT_EQ(group({Axis::ep}), (std::vector<Rank>{0, 2, 4}));
  EXPECT_EQ(group({Axis::dp}), (std::vector<Rank>{0, 6}));
  EXPECT_EQ(group({Axis::pp}), (std::vector<Rank>{0, 12}));
  EXPECT_EQ(group({Axis::ep, Axis::dp}), (std::vector<Rank>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(mapping.ranks(), 24);
  const std::vector<std::vector<Rank>> all = groups_of(mapping, std::vector{Axis::ep, Axis::pp});
  EXPECT_EQ(all, (std::vector<std::vector<Rank>>{{0, 2, 4, 12, 14, 16},
                                                 {1, 3, 5, 13, 15, 17},
                                                 {6, 8, 10, 18, 20, 22},
                                                 {7, 9, 11, 19, 21, 23}}));
}

// A refusal names the nearest valid values, and these are accepted.
TEST(Mapping, TheNearestWork) {
  const std::regex neighbours("(\\w+) is .*the nearest (?:is|are) (\\d+)(?: or (\\d+))?");
  int refused = 0;
  for (const PublishedModel& one : published_models()) {
    for (const bool splits : {false, true}) {
      for (const PipelineOrder order : {PipelineOrder::one_f_one_b, PipelineOrder::zbv}) {
        if (order == PipelineOrder::zbv && one.model.layers % 2 != 0) continue;
        for (const Axis axis : {Axis::tp, Axis::sp, Axis::ep, Axis::pp}) {
          for (int value = 1; value < 140; ++value) {
            Mapping mapping;
            mapping.splits_norms = splits;
            mapping.order = order;
            mapping[axis] = value;
            const std::string text = check_mapping(one.model, mapping).text();
            std::smatch found;
            if (!std::regex_search(text, found, neighbours)) continue;
            ASSERT_EQ(found[1].str(), name_of(axis)) << text;
            ++refused;
            for (const std::size_t group : {2U, 3U}) {
              if (!found[group].matched) continue;
              mapping[axis] = std::stoi(found[group]);
              EXPECT_TRUE(check_mapping(one.model, mapping).ok()) << one.model.name << ": " << text;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

// The plan uses the rank to which the router sends most, because the other ranks wait for it.
TEST(LayerWork, TheBusiestRankIsPlanned) {
  const Model mixture = model_of("mixtral_8x7b");
  Mapping even;
  even[Axis::ep] = 8;
  Mapping skewed = even;
  skewed.router_skew = 2.5;
  const LayerWork before = layer_work(mixture, even), after = layer_work(mixture, skewed);
  ASSERT_EQ(before.exchanges.size(), after.exchanges.size());
  for (std::size_t i = 0; i < before.exchanges.size(); ++i) {
    const bool routed = before.exchanges[i].collective == Collective::all_to_all;
    EXPECT_DOUBLE_EQ(after.exchanges[i].bytes, before.exchanges[i].bytes * (routed ? 2.5 : 1));
  }
  const double tokens = mixture.sequence;
  for (std::size_t i = 0; i < before.computations.size(); ++i) {
    const Computation &one = before.computations[i], &other = after.computations[i];
    if (one.what == "feed-forward" && one.phase == Phase::forward) {
      const double experts = 2 * tokens * static_cast<double>(mixture.expert()) * mixture.top_k;
      EXPECT_NEAR(other.flops - one.flops, 1.5 * experts, 1e-9 * experts);
    } else if (one.what == "attention") {
      EXPECT_DOUBLE_EQ(other.flops, one.flops);
    }
  }
  EXPECT_GT(memory_of(mixture, skewed).activations_per_layer,
            memory_of(mixture, even).activations_per_layer);
}

// Counted from the lists, in bytes of activations s b h.
TEST(LayerWork, TrafficIsAsStated) {
  const Model gpt = model_of("gpt_175b");
  Mapping mapping;
  mapping[Axis::tp] = 8;
  const double activation = 2.0 * 2048 * 12288;
  const auto count = [&](Phase phase, Collective collective) {
    int found = 0;
    for (const Exchange& e : layer_work(gpt, mapping).exchanges) {
      if (e.phase != phase || e.collective != collective || e.along != std::vector{Axis::tp})
        continue;
      EXPECT_EQ(e.bytes, activation);
      ++found;
    }
    return found;
  };
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    EXPECT_EQ(count(phase, Collective::all_reduce), 2);
    EXPECT_EQ(count(phase, Collective::all_gather), 0);
  }
  mapping.splits_norms = true;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    EXPECT_EQ(count(phase, Collective::all_reduce), 0);
    EXPECT_EQ(count(phase, Collective::all_gather), 2);
    EXPECT_EQ(count(phase, Collective::reduce_scatter), 2);
  }
  mapping.recompute = Recompute::full;
  EXPECT_EQ(count(Phase::recompute, Collective::all_gather), 2);
}

// Dispatch and combine, top 2, 2 bytes. Less is sent if a token goes only once to a rank: with Z
// ranks a rank receives a token with probability 1 - ((Z - 1) / Z)^k, and (Z - 1) / Z of the tokens
// come from other ranks. A capacity pads and drops: E C rows with an integer C.
TEST(LayerWork, TokensAreSentToTheirExpertsAndBack) {
  const Model model = model_of("mixtral_8x7b");
  Mapping mapping;
  mapping[Axis::ep] = 8;
  double sent = 0;
  for (const Exchange& e : layer_work(model, mapping).exchanges) {
    const bool routed = e.collective == Collective::all_to_all && e.phase == Phase::forward;
    sent += routed ? e.bytes : 0;
  }
  EXPECT_EQ(sent, 2.0 * 2 * 32768 * 4096 * 2);
  const double computed = expert_rows(model, mapping).computed;
  EXPECT_EQ(expert_rows(model, mapping).sent, 2);
  mapping.sends_once = true;
  EXPECT_EQ(expert_rows(model, mapping).computed, computed);
  EXPECT_DOUBLE_EQ(expert_rows(model, mapping).sent, 8 * (1 - 0.875 * 0.875));
  mapping.sends_once = false;
  for (const auto& [capacity, rows] :
       {std::pair(1.25, 8 * (32768 * 2 * 1.25 / 8)), std::pair(1.0001, 8.0 * 8193)}) {
    mapping.capacity = capacity;
    EXPECT_DOUBLE_EQ(expert_rows(model, mapping).sent * 32768, rows);
    EXPECT_DOUBLE_EQ(expert_rows(model, mapping).computed * 32768, rows);
  }
}

// 6 flops per parameter and token plus attention: 72 B L s h^2 (1 + s / 6h) in total.
TEST(LayerWork, FlopsAreAsPublished) {
  const Model gpt = model_of("gpt_175b");
  double flops = 0;
  for (const Computation& c : layer_work(gpt, Mapping{}).computations) flops += c.flops;
  const double h = 12288, s = 2048;
  EXPECT_DOUBLE_EQ(flops, 72 * s * h * h * (1 + s / (6 * h)));
}

TEST(Model, FilesAreReadAndWhatIsWrongIsNamed) {
  const auto model =
      parse_model(
          R"({"layers": 2, "hidden": 64, "heads": 4, "feed_forward": 256, "vocabulary": 100, "sequence": 16})",
          "tiny")
          .value();
  EXPECT_EQ(model.kv_heads, 4);
  const auto refusal = [](std::string_view text) { return parse_model(text, "x").status().text(); };
  EXPECT_TRUE(refusal(R"({"preset": "llama3_8b", "heads": 5})").starts_with("heads is 5"));
  EXPECT_TRUE(refusal(R"({"preset": "llama3_8b", "layers": -1})").starts_with("layers is -1"));
  EXPECT_TRUE(refusal(R"({"preset": "llama3_8b", "experts": 4})").starts_with("top_k is 0"));
}

// Orders of a pipeline's work: their bubbles equal the papers', and no task begins early.

// Forward takes 1 and backward 2. In orders with a separate weights pass, backward and weights take
// 1 each.
Pipeline unit(PipelineOrder order, int stages, int parts, int micro_batches, double hop = 0) {
  const bool apart = has_weights_apart(order);
  return play(
      {.order = order,
       .stages = stages,
       .parts = parts,
       .micro_batches = micro_batches,
       .seconds = [=](Pass pass, int,
                      int) { return (pass == Pass::backward && !apart ? 2.0 : 1.0) / parts; },
       .hop_seconds = hop});
}

TEST(Pipeline, BubblesAreThoseOfThePapers) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {2 * p, 4 * p, 64 * p}) {
      const double ideal = 3.0 * m;
      const double bubble = (p - 1) / static_cast<double>(m);
      EXPECT_DOUBLE_EQ(unit(PipelineOrder::gpipe, p, 1, m).most_idle() / ideal, bubble);
      EXPECT_DOUBLE_EQ(unit(PipelineOrder::one_f_one_b, p, 1, m).most_idle() / ideal, bubble);
      EXPECT_NEAR(unit(PipelineOrder::zb1p, p, 1, m).most_idle() / ideal, bubble / 3, 1e-12)
          << p << " " << m;
      EXPECT_NEAR(unit(PipelineOrder::zb2p, p, 1, m).most_idle(), 0, 1e-9) << p << " " << m;
      EXPECT_NEAR(unit(PipelineOrder::zbv, p, 2, m).most_idle(), 0, 1e-9) << p << " " << m;
      for (const int v : {2, 3, 5}) {
        if (p == 1) continue;
        EXPECT_NEAR(unit(PipelineOrder::one_f_one_b, p, v, m).most_idle() / ideal, bubble / v,
                    1e-12)
            << p << " " << m << " " << v;
      }
    }
  }
}

TEST(Pipeline, EveryTaskIsDoneOnceAndNothingBeginsBeforeWhatItNeeds) {
  for (const auto& [order, parts, m] :
       {std::tuple{PipelineOrder::gpipe, 1, 8},
        {PipelineOrder::one_f_one_b, 2, 8},
        {PipelineOrder::zb1p, 1, 8},
        {PipelineOrder::zb2p, 1, 8},
        {PipelineOrder::zbv, 2, 8},
        {PipelineOrder::zbv, 2, 3}}) {  // too few to fill the pipeline
    const int stages = 4;
    const double hop = 0.25;
    const Pipeline pipeline = unit(order, stages, parts, m, hop);
    std::map<std::tuple<Pass, int, int>, Task> tasks;  // pass, chunk, micro-batch
    for (int s = 0; s < stages; ++s) {
      double free = 0;
      for (const Task& task : pipeline.stages[static_cast<std::size_t>(s)]) {
        EXPECT_GE(task.begin, free);
        free = task.end;
        EXPECT_TRUE(tasks
                        .emplace(std::tuple(task.pass, part_number(order, stages, s, task.part),
                                            task.micro_batch),
                                 task)
                        .second);
      }
    }
    const bool apart = has_weights_apart(order);
    // The two chunks in the middle of a V are on one stage.
    const auto hop_to = [&, of = order](int chunk) {
      return of == PipelineOrder::zbv && chunk == stages ? 0.0 : hop;
    };
    const int chunks = stages * parts;
    EXPECT_EQ(tasks.size(), static_cast<std::size_t>(chunks * m * (apart ? 3 : 2)));
    for (const auto& [key, task] : tasks) {
      const auto& [pass, chunk, batch] = key;
      if (pass == Pass::forward && chunk > 0) {
        EXPECT_GE(task.begin, tasks.at({pass, chunk - 1, batch}).end + hop_to(chunk));
      } else if (pass == Pass::backward) {
        const bool last = chunk == chunks - 1;
        EXPECT_GE(task.begin, last ? tasks.at({Pass::forward, chunk, batch}).end
                                   : tasks.at({pass, chunk + 1, batch}).end + hop_to(chunk + 1));
      } else if (pass == Pass::weights) {
        EXPECT_GE(task.begin, tasks.at({Pass::backward, chunk, batch}).end);
      }
    }
  }
}

// The kept micro-batches equal those that memory has room for.
TEST(Pipeline, KeepsAsManyMicroBatchesAsStated) {
  const auto most_kept = [](PipelineOrder order) {
    const int parts = order == PipelineOrder::zbv ? 2 : 1;
    const Pipeline pipeline = unit(order, 4, parts, 32);
    int kept = 0, most = 0;
    for (const Task& task : pipeline.stages[0]) {
      kept += task.pass == Pass::forward ? 1 : 0;
      kept -= task.pass == (has_weights_apart(order) ? Pass::weights : Pass::backward) ? 1 : 0;
      most = std::max(most, kept);
    }
    return static_cast<double>(most) / parts;
  };
  EXPECT_EQ(most_kept(PipelineOrder::gpipe), 32);
  EXPECT_EQ(most_kept(PipelineOrder::one_f_one_b), 4);
  EXPECT_EQ(most_kept(PipelineOrder::zb1p), 4);
  EXPECT_EQ(most_kept(PipelineOrder::zb2p), 7);
  EXPECT_EQ(most_kept(PipelineOrder::zbv), 4);
}

}  // namespace
}  // namespace rankine::tools
