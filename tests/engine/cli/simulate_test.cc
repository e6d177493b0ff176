// rankine simulate and rankine network: batches, properties of answers, scaling, traces, networks.
// answers.txt and refusals.txt have single answers and refusals.

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "engine/cli/arguments.h"
#include "engine/cli/perf.h"
#include "engine/cli/question.h"
#include "engine/cli/simulate.h"
#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "engine/network/simulate.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

// The answers to lines, and how many were not answered.
std::pair<std::vector<Json>, std::size_t> batch(const std::string& text) {
  std::istringstream in(text);
  std::ostringstream out;
  const std::size_t wrong = answer_batch(in, out);
  std::vector<Json> answers;
  for (const std::string& line : lines_of(out.str())) answers.push_back(Json::parse(line));
  return {answers, wrong};
}

// Requests that nest deeper than allowed, and lines without an end, take bounded memory.
TEST(Batch, RefusesWhatIsTooLarge) {
  std::string nested = "{\"collective\":\"barrier\",\"id\":";
  for (int i = 0; i < 100'000; ++i) nested += "{\"a\":";
  nested += "1" + std::string(100'001, '}');
  const auto [answers, wrong] =
      batch(nested + "\n" + std::string(100'000, '[') + "\n" + std::string(40 << 20, '7') +
            "\n{}\n" + std::string(20 << 20, '['));
  EXPECT_EQ(wrong, 5U);
  const char* parts[] = {"100001 levels", "100000 levels", "16777216", "collective", "16777216"};
  ASSERT_EQ(answers.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(has(answers[i]["error"].get<std::string>(), parts[i])) << answers[i];
    EXPECT_EQ(answers[i]["line"], i + 1);
  }
}

TEST(Batch, AnswersEveryLineInOrderAndGoesOnAfterBadOnes) {
  std::string in;
  constexpr int kLines = 2500;  // more than are read at once
  for (int i = 0; i < kLines; ++i) {
    if (i % 10 == 3) {
      in += "this is no request\n";
    } else if (i % 10 == 7) {
      in += "  \t\r\n";
    } else {
      in += R"({"collective":"broadcast","algorithm":"chain","bytes":8,"ranks":)" +
            std::to_string(1 + i % 64) + R"(,"id":)" + std::to_string(i) +
            (i % 2 == 0 ? "}\r\n" : "}\n");
    }
  }
  const auto [answers, wrong] = batch(in);
  EXPECT_EQ(wrong, 250U);
  std::size_t at = 0;
  for (int i = 0; i < kLines; ++i) {
    if (i % 10 == 7) continue;
    const Json& line = answers.at(at++);
    if (i % 10 == 3) {
      EXPECT_EQ(line["line"], i + 1);
      EXPECT_TRUE(line.contains("error"));
    } else {
      EXPECT_EQ(line["id"], i);
      EXPECT_EQ(line["rounds"], i % 64);
    }
  }
  EXPECT_EQ(at, answers.size());
}

// A batch asks the whole catalogue. Lines refuse only the number of ranks, and name the algorithm.
TEST(Batch, AsksEveryAlgorithm) {
  std::string in;
  std::vector<std::string> names;
  for (int count = 0; names.size() < 1000;) {
    for (const Algorithm& entry : catalogue()) {
      ++count;
      Json question = {{"collective", name_of(entry.collective)},
                       {"algorithm", entry.name},
                       {"ranks", 1 + count * 7 % 64},
                       {"bytes", 1 + count * 4099},
                       {"ports", 1 + count % 4},
                       {"sync", count % 2 == 0 ? "rounds" : "dataflow"},
                       {"network", "switch"}};
      if (entry.takes("segments")) question["segments"] = 1 + count % 16;
      in += question.dump() + "\n";
      names.emplace_back(entry.name);
    }
  }
  const auto [answers, wrong] = batch(in);
  ASSERT_EQ(answers.size(), names.size());
  EXPECT_LT(wrong, names.size() / 2);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(answers[i]["algorithm"], names[i]);
    if (answers[i].contains("error")) {
      EXPECT_TRUE(has(answers[i]["error"].get<std::string>(), "'" + names[i] + "'")) << answers[i];
    } else {
      EXPECT_GE(answers[i]["time"].get<double>(), 0);
    }
  }
}

std::string question(int id) {
  return R"({"collective":"broadcast","algorithm":"chain","ranks":4,"bytes":8,"id":)" +
         std::to_string(id) + "}\n";
}

TEST(Batch, OfAFileEndsWithAnErrorWhereOneIsInIt) {
  const Captured run =
      run_line("simulate --batch " + file_with("requests.jsonl", question(3) + "nonsense\n"));
  EXPECT_EQ(run.exit, 1) << run.err;
  EXPECT_TRUE(has(run.err, "1 request"));
  ASSERT_EQ(lines_of(run.out).size(), 2U);
  EXPECT_EQ(Json::parse(lines_of(run.out)[0])["id"], 3);
  EXPECT_TRUE(Json::parse(lines_of(run.out)[1]).contains("error"));
}

// Answers arrive before the next question, and each line is answered when it is complete.
TEST(Batch, AnswersEachLineAsItComesUntilNobodyReads) {
  ToolProcess tool({"simulate", "--batch", "-"});
  for (int id = 0; id < 5; ++id) {
    ASSERT_TRUE(tool.ask(question(id)));
    EXPECT_EQ(Json::parse(tool.line(), nullptr, false)["id"], id);
  }
  ASSERT_TRUE(tool.ask(question(5) + question(6) + "\n" + question(7).substr(0, 20)));
  for (const int id : {5, 6}) EXPECT_EQ(Json::parse(tool.line())["id"], id);
  ASSERT_TRUE(tool.ask(question(7).substr(20)));
  EXPECT_EQ(Json::parse(tool.line())["id"], 7);
  ASSERT_TRUE(tool.ask("nonsense"));  // the last line needs no end
  tool.close_in();
  EXPECT_EQ(Json::parse(tool.line())["line"], 10);
  EXPECT_EQ(tool.line(), "");
  EXPECT_EQ(tool.wait(), 1);

  ToolProcess unread({"simulate", "--batch", "-"});
  ASSERT_TRUE(unread.ask(question(0)));
  EXPECT_NE(unread.line(), "");
  unread.close_out();
  ASSERT_TRUE(unread.ask(question(1)));  // and its standard input stays open
  EXPECT_EQ(unread.wait(), 3);
  EXPECT_TRUE(has(unread.err(), "Broken pipe"));
}

TEST(Simulate, ComparesAlgorithmsWithTheFastestFirst) {
  const Captured run = run_line("simulate all_gather --algo all --ranks 9 --bytes 1M --json");
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_TRUE(has(run.err, "left out: switch")) << run.err;
  EXPECT_GT(lines_of(run.out).size(), 5U);
  const std::string text = output_of(
      "simulate all_reduce --algo ring,recursive_doubling,halving_doubling --ranks 16 --bytes 1M "
      "--network scale_out");
  const std::size_t first = text.find("* halving_doubling");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_LT(first, text.find("  ring "));
  EXPECT_LT(text.find("  ring "), text.find("  recursive_doubling "));
  EXPECT_TRUE(has(text, "  " + std::string(20, '#') + "  "));  // the slowest
}

// The reduced bytes of a push count its additions at the place of the stores, as many as in the
// pull.
TEST(Simulate, PushesSayWhatTheyAdd) {
  for (const std::string name : {"direct_one_shot", "direct_two_shot"}) {
    const auto reduced = [](const std::string& algorithm) {
      const std::string question = " all_reduce --ranks 4 --json --algo " + algorithm;
      const Json cost = json_of("cost" + question)["busiest"]["reduced"];
      EXPECT_EQ(json_of("simulate" + question)["reduced_max"].get<double>() > 0,
                cost.get<double>() > 0);
      return std::pair(cost, json_of("simulate" + question)["reduced_max"]);
    };
    EXPECT_GT(reduced(name).first.get<double>(), 0);
    EXPECT_EQ(reduced(name + "_push"), reduced(name));
  }
}

// StragglAR's formula, from the arrival of the last rank on: N - 2 + log2 N messages of M / (N -
// 1); a ring begins then. Catches a late rank that others do not wait for, or wait for too early.
TEST(Simulate, LetsTheLastRankBeLate) {
  const double late = 300e-6, alpha = 1e-6, beta = 1e-11, bytes = 7 << 20;
  const std::string question =
      "simulate all_reduce --algo stragglar,ring --ranks 8 --bytes 7M --sync ";
  for (const std::string sync : {"dataflow", "rounds"}) {
    for (const Json& one : json_lines_of(question + sync + " --late 300us --json")) {
      EXPECT_EQ(one["late"], late);
      const bool ring = one["algorithm"] == "ring";
      // With a barrier between rounds no rank begins before the last one.
      const int messages = ring ? 14 : sync == "rounds" ? 9 + 6 : 9;
      const double time = late + messages * (alpha + bytes / (ring ? 8 : 7) * beta);
      EXPECT_NEAR(one["time"].get<double>(), time, 1e-12) << one;
    }
  }
  EXPECT_TRUE(has(output_of(question + "rounds --late 300us"), "the last rank 300 us late"));
}

// OptCC's steady state on a network whose rank `slow` has half of its bandwidth, and a segment to
// fill it; a ring takes twice its time. Catches a rank of the ring that waits, and another slow
// rank.
TEST(Simulate, LetsOneRankBeSlow) {
  const double bytes = 7 << 20, beta = 1e-11;
  for (const std::string slow : {"0", "5"}) {
    const std::string network = file_with("slow.json", R"({"alpha": 0, "bandwidth": "100GB/s",)"
                                                       R"( "odd": [{"at": )" +
                                                           slow + R"(, "bandwidth": "50GB/s"}]})");
    const auto time = [&](const std::string& algorithm) {
      return json_of("simulate all_reduce --ranks 8 --bytes 7M --json --network " + network +
                     " --algo " + algorithm)["time"]
          .get<double>();
    };
    for (const int segments : {1, 2, 16}) {
      EXPECT_NEAR(time("optcc --root " + slow + " --segments " + std::to_string(segments)),
                  2 * (1 + 1.0 / segments) * bytes * beta, 1e-12);
    }
    EXPECT_GT(time("optcc --segments 16 --root 3"), 2.5 * bytes * beta);
    EXPECT_NEAR(time("ring --sync rounds"), 2 * 7 / 4.0 * bytes * beta, 1e-12);
  }
}

TEST(Simulate, SaysWherePortsAreMissing) {
  const auto budget = [](const std::string& line) { return has(output_of(line), " per rank"); };
  for (const std::string subcommand : {"simulate", "cost", "show"}) {
    EXPECT_FALSE(budget(subcommand + " all_reduce --algo ring"));
    const std::string more =
        " all_reduce --algo recursive_doubling_pipelined --segments 4 --ports ";
    EXPECT_TRUE(budget(subcommand + more + "1"));
    EXPECT_TRUE(budget(subcommand + more + "3"));
  }
  const std::string some =
      output_of("simulate all_gather --algo direct,ring_mirrored --ranks 4 --ports 2");
  EXPECT_TRUE(has(some, "direct needs 3 ports"));
  EXPECT_FALSE(has(some, "ring_mirrored needs"));
}

TEST(Trace, HasEachMessageAtBothEnds) {
  const std::string file = file_with("trace.json", "");
  const std::string line =
      "simulate all_reduce --algo ring --ranks 4 --bytes 4000 --wiring ring --alpha 1us ";
  output_of(line + "--trace " + file);
  std::size_t sent = 0, received = 0;
  double end = 0;
  const Json trace = Json::parse(text_of(file));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const Json& of = event["args"];
    const bool sends = event["tid"].get<int>() % 2 == 0;
    (sends ? sent : received) += 1;
    EXPECT_EQ(event["pid"], sends ? of["from"] : of["to"]);
    EXPECT_EQ(of["bytes"], 1000.0);
    EXPECT_EQ(of["links"].size(), 1U);
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(sent, 24U);
  EXPECT_EQ(received, 24U);
  EXPECT_NEAR(end, json_of(line + "--json")["time"].get<double>() * 1e6, 1e-9);
  const std::string svg = file_with("trace.svg", "");
  output_of("simulate broadcast --algo binomial_near --ranks 8 --trace " + svg);
  EXPECT_EQ(count_of(text_of(svg), "<title>"), 7U);
  EXPECT_EQ(count_of(text_of(svg), ">rank "), 8U);
}

// Times among more and more ranks.

QuestionArguments asked(const std::string& algorithms, int ranks, const std::string& network = {}) {
  QuestionArguments arguments;
  arguments.algorithm.collective = Collective::all_reduce;
  arguments.algorithm.algorithms = algorithms;
  arguments.algorithm.begin.ranks = ranks;
  arguments.bytes = 1'000'000;
  arguments.network.network = network;
  return arguments;
}

Result<Scaling> scaled(const QuestionArguments& arguments, int to,
                       std::uint64_t most_steps = kMostScaledSteps) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  auto scaling = scale(arguments, to, most_steps, console);
  EXPECT_EQ(out.str() + err.str(), "");
  return scaling;
}

TEST(Scaling, DoublesTheRanksUpToTheLastOne) {
  const auto scaling = scaled(asked("ring,recursive_doubling", 16), 100).value();
  EXPECT_EQ(scaling.ranks, (std::vector<int>{16, 32, 64, 100}));
  ASSERT_EQ(scaling.curves.size(), 2u);
  EXPECT_EQ(scaling.curves[0].algorithm, "ring");
  ASSERT_EQ(scaling.curves[0].seconds.size(), 4u);
  for (const auto& [n, seconds] : scaling.curves[0].seconds) {
    // 2 (N - 1) (alpha + beta M / N), of 1 us and 100 GB/s.
    EXPECT_NEAR(seconds, 2 * (n - 1) * (1e-6 + 1e-5 / n), 1e-15) << n;
  }
  EXPECT_TRUE(scaling.notes.empty());
  EXPECT_EQ(to_text(table_of(scaling)).substr(0, 6), "ranks ");
  EXPECT_TRUE(has(json_of(scaling), R"({"algorithm":"ring","ranks":16,"time":)"));
  EXPECT_TRUE(has(svg_of(scaling, "all_reduce"), ">recursive_doubling</text>"));
  const auto million = scaled(asked("ring", 16), 1'000'000).value();
  EXPECT_EQ(million.curves[0].seconds.size(), 17u);
  EXPECT_EQ(million.curves[0].seconds.back().first, 1'000'000);
}

TEST(Scaling, LeavesOutWhatCannotBeAnswered) {
  QuestionArguments arguments = asked("ring_2d,ring_tree", 16);
  arguments.algorithm.begin.group = 8;
  const auto scaling = scaled(arguments, 25).value();
  for (const auto& curve : scaling.curves) EXPECT_EQ(curve.seconds.size(), 1u);
  ASSERT_EQ(scaling.notes.size(), 2u);
  EXPECT_TRUE(has(scaling.notes[0], "ring_2d among 25 ranks")) << scaling.notes[0];
}

// The steps of recursive doubling on a ring of links among N ranks. Each rank has its state, and
// the bytes of its cell and of the arrivals in a round. In each round it has one message, which
// reads one value and changes one, and the links to the partners 1, 2, 4 ... N / 2 away.
TEST(Scaling, ACurveEndsBeforeWhatTakesTooManySteps) {
  constexpr std::uint64_t kOfRound = steps::kOfRank + steps::kOfTransfer + 2 * steps::kOfValue;
  constexpr std::uint64_t kOf128 =
      128 * (steps::kOfNote + steps::kOfByte * (8 + 40) + 7 * kOfRound + steps::kOfLink * 127);
  for (const auto& [most_steps, ranks] : {std::pair(kOf128, 128), std::pair(kOf128 - 1, 64)}) {
    const auto scaling =
        scaled(asked("recursive_doubling", 16, "ring"), 1 << 20, most_steps).value();
    EXPECT_EQ(scaling.curves.back().seconds.back().first, ranks);
  }
  // Steps that grow fourfold are predicted, so the curve ends before the next number of ranks.
  auto scaling = scaled(asked("swing", 16), 1024, std::uint64_t{1} << 25).value();
  EXPECT_EQ(scaling.curves[0].seconds.back().first, 128);
  EXPECT_TRUE(has(scaling.notes[0], "swing among 256 ranks") && has(scaling.notes[0], "32M"));
  // Steps known in advance are refused at once: a chain among 4,096 ranks has 8,190 rounds, and
  // each rank takes two steps per round before the first message.
  const Status refused = scaled(asked("chain", 4096), 5000, std::uint64_t{1} << 26).status();
  EXPECT_TRUE(has(refused.text(), "chain among 4096 ranks") && has(refused.text(), "64M"))
      << refused.text();
}

// Networks of the command line.

TEST(CallNetworks, SettingsBelongToTheNetworkBeforeThem) {
  const auto read = read_call_networks("--network", "scale_up,scale_out,sync=rounds,torus").value();
  ASSERT_EQ(read.size(), 3U);
  const char* const names[] = {"scale_up", "scale_out,sync=rounds", "torus"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].name, names[i]);
    EXPECT_EQ(read[i].network->sync, i == 1 ? Sync::rounds : Sync::dataflow) << names[i];
  }
  EXPECT_EQ(read[1].network->fabric.name, "scale_out");
  const auto content = read_call_networks("--network", R"({"name": "mine", "ports": 3})").value();
  EXPECT_EQ(content.front().name, "mine");
  EXPECT_EQ(content.front().network->fabric.ports, 3);
}

TEST(NetworkCommand, PrintsPresetsAsFilesAndChecksFiles) {
  for (const Regime& regime : regimes()) {
    const auto read = parse_network(output_of("network " + std::string(regime.name)), "x").value();
    EXPECT_EQ(read, regime.fabric) << regime.name;
    EXPECT_TRUE(has(output_of("network"), regime.source));
  }
  const std::string path = file_with("n.json", R"({"wiring": "mesh", "dims": "4x2"})");
  const Json filled = json_of("network " + path + " --ranks 8");
  EXPECT_EQ(filled["name"], path);
  EXPECT_EQ(filled["ports"], 3);
  EXPECT_TRUE(has(run_line("network " + path + " --ranks 9").err, "dims is 4x2"));
  file_with("n.json", R"({"ports": 0})");
  EXPECT_TRUE(has(run_line("network " + path).err, path + "': ports is 0"));
  const ScopedEnv columns("COLUMNS", "2000");  // no line of the help is broken
  for (const NetworkMember& row : network_members()) {
    EXPECT_TRUE(json_of("network --schema")["properties"].contains(std::string(row.name)));
    EXPECT_TRUE(has(output_of("network --help"), row.help)) << row.name;
  }
}

TEST(Wiring, ReachesEverySubcommand) {
  for (const char* line :
       {"simulate all_reduce --algo ring --ranks 8 --network torus --dims 2x4 --rounds",
        "choose all_reduce --ranks 8 --network torus --dims 2x4",
        "perf all_reduce --algo ring -b 8 -e 8 -n 1 --network torus --dims 2x4"}) {
    EXPECT_TRUE(has(output_of(line), "torus 2x4")) << line;
  }
  const Json best = json_of("choose all_reduce --network torus --dims 2x4 --json")["choice"];
  EXPECT_EQ(json_of("simulate all_reduce --network torus --bytes 1M --dims 2x4 --json --algo " +
                    best["algorithm"].get<std::string>())["time"],
            best["time"]);
  output_of("map all_reduce --ranks 7,12 --network torus --minbytes 1M --maxbytes 1M");
  output_of("show all_reduce --algo bucket --ranks 4 --dims 2x2");
}

}  // namespace
}  // namespace rankine::tools
