// Tuning tables: written, read back, searched and refused, and choices by c_real.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using enum Collective;
using testing::HasSubstr;

const Hardware kHere{.cpu = "A 'fine' CPU",
                     .cores = 2,
                     .packages = 1,
                     .numa_nodes = 1,
                     .l3_groups = 1,
                     .l1d = 48 << 10,
                     .l2 = 1 << 20,
                     .l3 = 32 << 20,
                     .isa = "avx512_bf16",
                     .version = "0.1.0"};

TuningRow row(Collective collective, int ranks, std::size_t bytes, std::string_view name,
              double regret = 1) {
  const Algorithm* algorithm = find_algorithm(collective, name);
  EXPECT_NE(algorithm, nullptr) << name;
  return {collective, ranks, bytes, algorithm, regret};
}

TuningTable table() {
  return {kHere,
          "2026-11-21T22:00:00Z",
          {.alpha = 1e-7, .beta = 2.5e-11, .gamma = 1.25e-11},
          {row(all_reduce, 2, 65536, "direct_two_shot", 1.5), row(all_reduce, 2, 8, "ring"),
           row(broadcast, 3, 8, "linear"), row(all_reduce, 2, 1024, "direct_one_shot", 1.0625)},
          costs_with({{&Costs::pair_board_call_max_bytes, 8192}, {&Costs::spin_ns, 1}})};
}

std::string name_at(const TuningTable& t, Collective collective, int ranks, std::size_t bytes) {
  const TuningRow* found = t.find(collective, ranks, bytes);
  return found == nullptr ? "" : std::string(found->algorithm->name);
}

// The folder of this test.
std::string folder() {
  static const std::string path = [] {
    std::string made = testing::TempDir() + "/tuning_XXXXXX";
    return std::string(mkdtemp(made.data()));
  }();
  return path;
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = folder() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(Tuning, TheNearestMeasuredSizeAnswersOrNone) {
  const TuningTable t = table();
  struct Case {
    Collective collective;
    int ranks;
    std::size_t bytes;
    const char* name;  // "": not measured
  };
  for (const auto& [collective, ranks, bytes, name] : {
           Case{all_reduce, 2, 8, "ring"},
           Case{all_reduce, 2, 90, "ring"},  // the middle of 8 and 1024 is 90.5
           Case{all_reduce, 2, 91, "direct_one_shot"},
           Case{all_reduce, 2, 8191, "direct_one_shot"},
           Case{all_reduce, 2, 8193, "direct_two_shot"},
           Case{all_reduce, 2, 65536 * 16, "direct_two_shot"},
           Case{all_reduce, 2, 65536 * 16 + 1, ""},  // too far from any measured size
           Case{all_reduce, 3, 8, ""},
           Case{broadcast, 2, 8, ""},
           Case{broadcast, 3, 0, "linear"},  // 0 bytes count as 1
           Case{barrier, 2, 8, ""},
       }) {
    EXPECT_EQ(name_at(t, collective, ranks, bytes), name) << ranks << " ranks, " << bytes;
  }
  EXPECT_EQ(name_at(TuningTable(), all_reduce, 2, 8), "");
  // Of two rows for one size the last one counts.
  const TuningTable twice(kHere, "", {},
                          {row(all_reduce, 2, 8, "ring"), row(all_reduce, 2, 8, "central")});
  EXPECT_EQ(twice.rows().size(), 1u);
  EXPECT_EQ(name_at(twice, all_reduce, 2, 8), "central");
}

TEST(Tuning, EveryCostHasALineThatTablesRead) {
  for (const CostField& field : cost_fields()) {
    EXPECT_EQ(find_cost(field.name), &field);
    EXPECT_FALSE(field.decides.empty()) << field.name;
    Costs costs;
    EXPECT_EQ(misfit(costs), nullptr) << field.name;
    for (const std::size_t value : {field.least, field.most}) {
      costs.*field.value = value;
      const auto read = parse_tuning(to_json(TuningTable(kHere, "", {}, {}, costs)));
      ASSERT_TRUE(read.ok()) << field.name << ": " << read.status().text();
      EXPECT_EQ(read->costs(), costs) << field.name;
    }
    costs.*field.value = field.most + 1;
    EXPECT_EQ(misfit(costs), &field);
    const auto refused = parse_tuning(to_json(TuningTable(kHere, "", {}, {}, costs)));
    ASSERT_FALSE(refused.ok()) << field.name;
    EXPECT_THAT(refused.status().text(),
                HasSubstr("costs." + std::string(field.name) + " is " +
                          std::to_string(field.most + 1) + "; allowed are"));
  }
  const std::string text =
      to_json(TuningTable(kHere, "", {}, {}, costs_with({{&Costs::one_round_max_bytes, 7}})));
  std::string other = text;
  other.replace(other.find("one_round_max_bytes"), 19, "two_rounds");
  const auto refused = parse_tuning(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().text(),
              HasSubstr("costs has 'two_rounds'; allowed are one_round_max_bytes"));
}

TEST(Tuning, OldNamesOfCostsAreReadAndDeprecated) {
  const CapturedWarnings captured;
  std::string text = to_json(TuningTable(kHere, "", {}, {}, costs_with({{&Costs::spin_ns, 7}})));
  text.replace(text.find("spin_ns"), 7, "spin");
  const auto read = parse_tuning(text).value();
  EXPECT_EQ(read.costs(), costs_with({{&Costs::spin_ns, 7}}));
  ASSERT_EQ(captured.lines.size(), 1u);
  EXPECT_THAT(captured.lines[0].second,
              testing::AllOf(HasSubstr("'spin'"), HasSubstr("'spin_ns'")));
  EXPECT_EQ(find_old_cost("told"), find_cost("mailbox_fanout_max_bytes"));
  EXPECT_EQ(find_old_cost("spin_ns"), nullptr);
  text.replace(text.find("\"spin\""), 6, "\"spin_ns\": 7, \"spin\"");
  EXPECT_FALSE(parse_tuning(text).ok());
}

TEST(Costs, OldNamesOfFieldsAreTheFields) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  Costs costs;
  costs.told = 7;
  costs.spin = 8;
#pragma GCC diagnostic pop
  EXPECT_EQ(costs, costs_with({{&Costs::mailbox_fanout_max_bytes, 7}, {&Costs::spin_ns, 8}}));
}

TEST(Choose, CostsDecideAndAreNamed) {
  const Choice before = choose(all_reduce, 2, 20'000, Buffers::apart, nullptr, {});
  EXPECT_EQ(before.algorithm->name, "direct_two_shot");
  const Choice after = choose(all_reduce, 2, 20'000, Buffers::apart, nullptr,
                              costs_with({{&Costs::pair_board_call_max_bytes, 20'000}}));
  EXPECT_EQ(after.algorithm->name, "direct_one_shot");
  EXPECT_THAT(after.by, testing::ElementsAre(&Costs::direct_max_ranks, &Costs::pair_board_bytes,
                                             &Costs::pair_board_call_max_bytes));
  EXPECT_EQ(after.by, before.by);
  const TuningTable t = table();
  const Choice from_table = choose(all_reduce, 2, 8, Buffers::apart, &t, {});
  EXPECT_EQ(from_table.algorithm->name, "ring");
  EXPECT_TRUE(from_table.by.empty());
}

TEST(Choose, FollowsTheTableAndElseTheDefault) {
  const TuningTable t = table();
  const auto name = [](Collective c, int ranks, std::size_t bytes, const TuningTable* from) {
    return choose(c, ranks, bytes, Buffers::apart, from, {}).algorithm->name;
  };
  EXPECT_EQ(name(all_reduce, 2, 8, &t), "ring");
  EXPECT_EQ(name(all_reduce, 2, 8, nullptr), "direct_one_shot");
  EXPECT_EQ(name(all_reduce, 3, 8, &t), "direct_one_shot");
  EXPECT_EQ(name(all_reduce, 2, std::size_t{1} << 30, &t), "direct_two_shot");
  EXPECT_EQ(name(broadcast, 3, 8, &t), "linear");
  // The rows were measured with buffers apart.
  EXPECT_EQ(choose(all_reduce, 2, 8, Buffers::in_place, &t, {}).algorithm->name, "direct_one_shot");
  for (const Collective c : all_collectives()) {
    EXPECT_EQ(choose(c, 5, 4096, Buffers::apart, &t, {}).algorithm, &default_algorithm(c, 5, 4096))
        << name_of(c);
  }
}

TEST(Choose, TheDefaultGoesByRanksAndBytes) {
  const auto name = [](Collective c, int ranks, std::size_t bytes) {
    return default_algorithm(c, ranks, bytes).name;
  };
  EXPECT_EQ(name(all_reduce, 2, 16 << 10), "direct_one_shot");
  EXPECT_EQ(name(all_reduce, 2, (16 << 10) + 1), "direct_two_shot");
  const auto staged = [](int ranks, std::size_t bytes) {
    return default_algorithm(all_reduce, ranks, bytes, Buffers::apart, staged_costs({})).name;
  };
  EXPECT_EQ(staged(2, 64 << 10), "direct_one_shot");
  EXPECT_EQ(staged(2, (64 << 10) + 1), "direct_two_shot");
  EXPECT_EQ(name(all_reduce, 8, 8 << 10), "direct_one_shot");  // the input is read in place
  EXPECT_EQ(staged(8, 4 << 10), "direct_one_shot");
  EXPECT_EQ(staged(8, (4 << 10) + 1), "direct_two_shot");
  EXPECT_EQ(name(all_reduce, 3, 512 << 10), "direct_two_shot");
  EXPECT_EQ(name(broadcast, 16, 1 << 20), "linear");
  EXPECT_EQ(name(broadcast, 17, 64 << 10), "linear");
  EXPECT_EQ(name(broadcast, 17, (64 << 10) + 1), "direct_two_shot");
  EXPECT_EQ(name(Collective::reduce, 2, 64 << 10), "linear");
  EXPECT_EQ(name(Collective::reduce, 2, (64 << 10) + 1), "direct_two_shot");
  EXPECT_EQ(name(Collective::reduce, 8, 1280), "linear");
  EXPECT_EQ(name(Collective::reduce, 8, 1281), "direct_two_shot");
  const Costs shared = shared_core_costs({});
  const auto in_crowds = [&shared](std::size_t bytes) {
    return default_algorithm(Collective::reduce, 8, bytes, Buffers::apart, shared).name;
  };
  EXPECT_EQ(in_crowds(64 << 10), "linear");
  EXPECT_EQ(in_crowds((64 << 10) + 1), "direct_two_shot");
  EXPECT_EQ(name(all_to_all, 8, 1 << 20), "direct");
  EXPECT_EQ(name(barrier, 8, 0), "dissemination");
  for (const Collective c : all_collectives()) {
    for (int n = 1; n <= 20; ++n) {
      for (const std::size_t bytes : {0, 8, 4096, 1 << 20}) {
        EXPECT_EQ(default_algorithm(c, n, bytes).refusal({.ranks = n}), std::nullopt);
      }
    }
  }
}

TEST(Tuning, SuitsOnlyTheHardwareThatItWasMadeOn) {
  EXPECT_EQ(difference(kHere, kHere), std::nullopt);
  EXPECT_EQ(difference(read_hardware(), read_hardware()), std::nullopt);
  const auto expect_other = [](auto Hardware::*member, const auto& value, std::string_view name) {
    Hardware other = kHere;
    other.*member = value;
    const std::string text = difference(kHere, other).value_or("nothing");
    EXPECT_TRUE(text.starts_with(std::string(name) + " is ")) << text;
  };
  expect_other(&Hardware::cpu, "Another", "cpu");
  expect_other(&Hardware::cores, 16, "cores");
  expect_other(&Hardware::packages, 2, "packages");
  expect_other(&Hardware::numa_nodes, 4, "numa_nodes");
  expect_other(&Hardware::l3_groups, 8, "l3_groups");
  expect_other(&Hardware::l1d, 0u, "l1d");
  expect_other(&Hardware::l2, 0u, "l2");
  expect_other(&Hardware::l3, 0u, "l3");
  expect_other(&Hardware::isa, "avx2", "isa");
  expect_other(&Hardware::version, "9", "version");
}

TEST(LoadTuning, WhatDoesNotIsNotUsedWithOneWarning) {
  struct Case {
    TuningFile file;
    Hardware here;
    const char* says;  // nullptr: no warning
  };
  Hardware larger = kHere;
  larger.cores = 16;
  const std::string good = written("good.json", to_json(table()));
  const std::string pipe = folder() + "/pipe", huge = written("huge.json", "{}");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 36);
  const std::vector<Case> cases = {
      {{written("half.json", to_json(table()).substr(0, 300)), false}, kHere, "is damaged"},
      {{good, false}, larger, "cores is 2 there and 16 here"},
      {{good, true}, larger, "made on another machine"},
      {{folder() + "/none.json", true}, kHere, "RANKINE_TUNING is "},
      {{folder() + "/none.json", false}, kHere, nullptr},
      {{}, kHere, nullptr},
      // The loader neither blocks on these files nor reads them to the end.
      {{pipe, true}, kHere, "it is a pipe, and no regular file"},
      {{"/dev/zero", true}, kHere, "it is a character device, and no regular file"},
      {{folder(), true}, kHere, "it is a directory, and no regular file"},
      {{folder(), false}, kHere, "it is a directory, and no regular file"},
      {{huge, true}, kHere, "it has more than 16777216 bytes, the allowed size"},
  };
  for (const Case& one : cases) {
    CapturedWarnings captured;
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(load_tuning(one.file, one.here).has_value()) << one.file.path;
    }
    ASSERT_EQ(captured.lines.size(), one.says != nullptr ? 1u : 0u) << one.file.path;
    if (one.says != nullptr) {
      EXPECT_THAT(captured.lines[0].second, HasSubstr(one.says));
    }
  }
}

TEST(SaveTuning, MakesFoldersAndReplacesAnEarlierFile) {
  const std::string path = folder() + "/deep/er/tuning.json";
  EXPECT_TRUE(prepare_tuning_file(path).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder() + "/deep/er"));
  ASSERT_TRUE(save_tuning(TuningTable(kHere, "", {}, {}), path).ok());
  ASSERT_TRUE(save_tuning(table(), path).ok());
  CapturedWarnings captured;
  const auto loaded = load_tuning({path, true}, kHere);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->rows(), table().rows());
  EXPECT_TRUE(captured.lines.empty());
  using Files = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Files(folder() + "/deep/er"), Files()), 1) << "no other file is left";
  const std::string below_a_file = written("file", "") + "/tuning.json";
  EXPECT_EQ(save_tuning(table(), below_a_file).code(), Code::system);
  EXPECT_THAT(prepare_tuning_file(below_a_file).text(),
              HasSubstr("'" + below_a_file + "' cannot be written: Not a directory"));
}

TEST(TuningFile, IsWhereTheEnvironmentSays) {
  const auto with = [](const char* tuning, const char* cache, const char* home) {
    for (const auto& [name, value] :
         {std::pair("RANKINE_TUNING", tuning), std::pair("XDG_CACHE_HOME", cache),
          std::pair("HOME", home)}) {
      value != nullptr ? setenv(name, value, 1) : unsetenv(name);
    }
    const TuningFile file = tuning_file();
    return file.path + (file.named ? " named" : "");
  };
  EXPECT_EQ(with("off", "/c", "/h"), "");
  EXPECT_EQ(with("t.json", "/c", "/h"), "t.json named");
  EXPECT_EQ(with(nullptr, "/c", "/h"), "/c/rankine/tuning.json");
  EXPECT_EQ(with("", "relative", "/h"), "/h/.cache/rankine/tuning.json");
  EXPECT_EQ(with(nullptr, nullptr, "/h"), "/h/.cache/rankine/tuning.json");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

// c_real in tables: written, read back and refused, and the resulting choices for made-up values,
// computed by hand.

// A message of 1000 bytes takes 1 us of alpha and 1 us of bytes.
const CostModel kModel{.alpha = 1e-6, .beta = 1e-9, .gamma = 0};

MeasuredCReal among(int ranks, Collective collective, std::string_view name, CReal c_real) {
  return {collective, ranks, find_algorithm(collective, name), c_real};
}

TuningTable table(std::vector<MeasuredCReal> c_real, std::vector<TuningRow> rows = {}) {
  return {{}, "2026-11-22T16:04:04Z", kModel, std::move(rows), {}, std::move(c_real)};
}

Choice broadcast_among(int ranks, const TuningTable& by) {
  return choose(broadcast, ranks, 1000, Buffers::apart, &by, {});
}

double seconds_of(std::string_view name, int ranks, std::size_t bytes) {
  const auto fabric = machine_fabric(kModel);
  const auto one = predict_on_threads(*find_algorithm(broadcast, name), ranks, bytes, *fabric);
  EXPECT_TRUE(one.ok() && one->ok());
  return one->seconds;
}

TEST(MachineModel, IsANetworkOfOnePort) {
  EXPECT_DOUBLE_EQ(seconds_of("linear", 4, 1000), 3 * 2e-6);  // one after the other
  EXPECT_DOUBLE_EQ(seconds_of("binomial_near", 4, 1000), 2 * 2e-6);
  EXPECT_DOUBLE_EQ(seconds_of("binomial_near", 4, 0), 2 * 1e-6);
  CostModel adding = kModel;
  adding.gamma = 2.5e-10;
  const Algorithm& linear = *find_algorithm(Collective::reduce, "linear");
  const auto reduced = predict_on_threads(linear, 2, 1000, *machine_fabric(adding));
  EXPECT_DOUBLE_EQ(reduced->seconds, 2.25e-6);
}

TEST(MachineModel, RefusesWhatNoMachineCosts) {
  const auto refusal = [](const CostModel& model) {
    const auto fabric = machine_fabric(model);
    EXPECT_FALSE(fabric.ok());
    return fabric.status().text();
  };
  EXPECT_EQ(refusal({.alpha = -1e-7, .beta = 1e-9}),
            "model.alpha is -1e-07; allowed are numbers above 0 to 1");
  EXPECT_EQ(refusal({.alpha = 2, .beta = 1e-9}),
            "model.alpha is 2; allowed are numbers above 0 to 1");
  EXPECT_EQ(refusal({.alpha = 1e-7, .beta = 0}),
            "model.beta is 0; allowed are numbers above 0 to 1");
  EXPECT_EQ(refusal({.alpha = 1e-7, .beta = 1e-9, .gamma = -1e-12}),
            "model.gamma is -1e-12; allowed are numbers from 0 to 1");
  EXPECT_THAT(refusal({.alpha = std::nan(""), .beta = 1e-9}), HasSubstr("model.alpha is nan"));
}

TuningTable whole_table() {
  return {kHere,
          "2026-11-21T22:00:00Z",
          kModel,
          {row(all_reduce, 2, 8, "ring"), row(broadcast, 3, 8, "linear", 1.5)},
          costs_with({{&Costs::pair_board_call_max_bytes, 8192}, {&Costs::spin_ns, 1}}),
          {among(4, broadcast, "linear", {.latency = 0.25, .bandwidth = 1.5}),
           among(2, broadcast, "binomial_near", {.latency = 1e-3, .bandwidth = 1e3})}};
}

TEST(Tuning, ComesBackAsItWasWritten) {
  const TuningTable t = whole_table();
  const auto read = parse_tuning(to_json(t)).value();
  EXPECT_EQ(read.hardware(), kHere);
  EXPECT_EQ(read.made(), t.made());
  EXPECT_EQ(read.model().alpha, kModel.alpha);
  EXPECT_EQ(read.model().beta, kModel.beta);
  EXPECT_EQ(read.model().gamma, kModel.gamma);
  EXPECT_EQ(read.rows(), t.rows());
  EXPECT_EQ(read.costs(), t.costs());
  EXPECT_EQ(read.c_real(), t.c_real());
  ASSERT_EQ(read.c_real().size(), 2u);
  EXPECT_EQ(read.c_real()[0].ranks, 2);  // sorted
  // Of two for one algorithm the last one counts.
  const TuningTable twice =
      table({among(4, broadcast, "linear", {1, 1}), among(4, broadcast, "linear", {2, 3})});
  ASSERT_EQ(twice.c_real().size(), 1u);
  EXPECT_EQ(twice.c_real()[0].c_real, (CReal{2, 3}));
}

TEST(Tuning, WhatIsDamagedIsNamedWithWhatIsAllowed) {
  const std::string good = to_json(whole_table());
  const auto with = [&good](const std::string& part, const std::string& instead) {
    std::string text = good;
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), instead);
  };
  const std::string allowed = "; allowed are numbers from 0.001 to 1000";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is not JSON"},
      {good.substr(0, good.size() / 2), "is not JSON"},
      {"[]", "cannot use"},
      {"{}", "rankine_tuning"},
      {std::string(100'000, '['), "nests 100000 levels deep; allowed are up to 64"},
      {with("\"rankine_tuning\": 1", "\"rankine_tuning\": 2"), "rankine_tuning is 2; allowed is 1"},
      {with("\"algorithm\": \"ring\"", "\"algorithm\": \"rong\""),
       "algorithm is 'rong'; all_reduce has ring"},
      {with("\"collective\": \"all_reduce\"", "\"collective\": \"all_reuse\""),
       "collective is 'all_reuse'"},
      {with("\"l3\": 33554432,", ""), "'l3' not found"},
      {with("\"alpha\":", "\"omega\":"), "'alpha' not found"},
      {with("\"alpha\": 1e-06", "\"alpha\": -1.0"),
       "model.alpha is -1; allowed are numbers above 0 to 1"},
      {with("\"latency\": 0.25", "\"latency\": -0.25"), "c_real 2: latency is -0.25" + allowed},
      {with("\"latency\": 0.25", "\"latency\": 0"), "c_real 2: latency is 0" + allowed},
      {with("\"bandwidth\": 1.5", "\"bandwidth\": 1000.5"),
       "c_real 2: bandwidth is 1000.5" + allowed},
      {with("\"bandwidth\": 1.5", "\"bandwidth\": \"1.5\""),
       "c_real 2: bandwidth is \"1.5\"" + allowed},
      {with("\"bandwidth\": 1.5", "\"b\": 1.5"), "'bandwidth' not found"},
      {with("\"ranks\": 4", "\"ranks\": 0"), "c_real 2: "},
      {with("\"ranks\": 2", "\"ranks\": \"two\""), "type must be number"},
  };
  for (const auto& [text, says] : cases) {
    const auto read = parse_tuning(text);
    ASSERT_FALSE(read.ok()) << says;
    EXPECT_THAT(read.status().text(), HasSubstr(says));
  }
  // Tables without c_real, in the format of old tables, do not use the model.
  EXPECT_TRUE(parse_tuning(with("\"c_real\"", "\"others\"")).ok());
  std::string unused = to_json(table({}));
  EXPECT_TRUE(
      parse_tuning(unused.replace(unused.find("\"alpha\": 1e-06"), 14, "\"alpha\": -1.0")).ok());
}

TEST(CReal, TheNearestNumberOfRanksAnswers) {
  const TuningTable t =
      table({among(2, broadcast, "linear", {1, 1}), among(8, broadcast, "linear", {2, 2}),
             among(8, broadcast, "chain", {2, 2}), among(5, all_reduce, "ring", {3, 3})});
  const auto ranks_near = [&t](Collective collective, int ranks) {
    const auto found = t.c_real_near(collective, ranks);
    return found.empty() ? 0 : found.front().ranks;
  };
  EXPECT_EQ(ranks_near(broadcast, 1), 2);
  EXPECT_EQ(ranks_near(broadcast, 4), 2);  // 2 and 8 are near; the smaller one wins
  EXPECT_EQ(ranks_near(broadcast, 5), 8);
  EXPECT_EQ(ranks_near(broadcast, 1000), 8);
  EXPECT_EQ(ranks_near(all_reduce, 2), 5);
  EXPECT_EQ(ranks_near(all_gather, 2), 0);
  EXPECT_EQ(t.c_real_near(broadcast, 9).size(), 2u);
  EXPECT_EQ(t.c_real_near(broadcast, 2).size(), 1u);
}

// By the model linear takes 6 us and binomial_near 4 us, each with half of the time in alphas; the
// default is linear.
TEST(ChooseByCReal, TheProductsDecide) {
  const auto name = [](CReal linear, CReal binomial) {
    return broadcast_among(4, table({among(4, broadcast, "linear", linear),
                                     among(4, broadcast, "binomial_near", binomial)}))
        .algorithm->name;
  };
  EXPECT_EQ(name({2, 4}, {1, 3}), "binomial_near");  // 6 x 3 against 4 x 2
  EXPECT_EQ(name({1, 1}, {1, 3}), "linear");         // 6 against 8
  EXPECT_EQ(name({1, 1}, {0.1, 1.9}),
            "binomial_near");  // 6 against 4: the mean of the factors is 1
  EXPECT_EQ(name({1, 1}, {1.1, 1.1}), "binomial_near");  // 6 > 1.3 x 4.4
  EXPECT_EQ(name({1, 1}, {1.2, 1.2}), "linear");         // 6 < 1.3 x 4.8
}

TEST(ChooseByCReal, SaysItsReasonsUnlessARowWasMeasured) {
  const std::vector<MeasuredCReal> both = {among(4, broadcast, "linear", {2, 4}),
                                           among(4, broadcast, "binomial_near", {1, 3})};
  const Choice choice = broadcast_among(4, table(both));
  EXPECT_TRUE(choice.by_c_real);
  EXPECT_EQ(choice.row, nullptr);
  ASSERT_EQ(choice.by_model.size(), 2u);
  EXPECT_EQ(choice.by_model[0].algorithm->name, "binomial_near");
  EXPECT_DOUBLE_EQ(*choice.by_model[0].c_real, 2);
  EXPECT_DOUBLE_EQ(choice.by_model[0].expected(), 8e-6);
  EXPECT_DOUBLE_EQ(*choice.by_model[1].c_real, 3);
  EXPECT_DOUBLE_EQ(choice.by_model[1].expected(), 18e-6);
  const Algorithm* chain = find_algorithm(broadcast, "chain");
  const Choice measured = broadcast_among(4, table(both, {{broadcast, 4, 1000, chain, 1}}));
  EXPECT_EQ(measured.algorithm, chain);
  EXPECT_TRUE(measured.by_model.empty());
}

TEST(ChooseByCReal, IsSilentWhereNothingCanBeCompared) {
  const std::vector<MeasuredCReal> both = {among(4, broadcast, "linear", {9, 9}),
                                           among(4, broadcast, "binomial_near", {1, 1})};
  EXPECT_EQ(broadcast_among(8, table(both)).algorithm->name, "binomial_near");
  EXPECT_EQ(broadcast_among(2, table(both)).algorithm->name, "binomial_near");
  const Choice far = broadcast_among(9, table(both));  // more than twice as many
  EXPECT_EQ(far.algorithm->name, "linear");
  EXPECT_TRUE(far.by_model.empty());
  const Choice alone = broadcast_among(4, table({among(4, broadcast, "binomial_near", {1, 1})}));
  EXPECT_EQ(alone.algorithm->name, "linear");  // linear has no c_real
  EXPECT_EQ(alone.by_model.size(), 1u);
  EXPECT_FALSE(alone.by_c_real);
  // No all-reduce in place was measured.
  const TuningTable t = table({among(4, all_reduce, "direct_one_shot", {9, 9}),
                               among(4, all_reduce, "direct_two_shot", {9, 9}),
                               among(4, all_reduce, "ring", {0.01, 0.01})});
  EXPECT_EQ(choose(all_reduce, 4, 1000, Buffers::apart, &t, {}).algorithm->name, "ring");
  EXPECT_EQ(choose(all_reduce, 4, 1000, Buffers::in_place, &t, {}).algorithm->name,
            "direct_one_shot");
}

}  // namespace
}  // namespace rankine
