// rankine simulate and rankine cost: their answers, line by line, and their refusals.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/rational.h"
#include "engine/base/units.h"
#include "engine/cli/question.h"
#include "engine/cli/simulate.h"
#include "engine/network/simulate.h"
#include "tests/engine/cli/tool_fixtures.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

Json answered(const std::string& request) {
  const BatchAnswer answer = answer_request(request, 1);
  EXPECT_TRUE(answer.ok) << answer.line;
  return Json::parse(answer.line);
}

std::string nested(std::size_t levels) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += "{\"a\":";
  return text + "1" + std::string(levels, '}');
}

TEST(Request, GivesTheRequestAndItsResult) {
  const Json line = answered(
      R"({"collective":"all_reduce","algorithm":"ring","ranks":8,"bytes":65536,"alpha":1e-06,)"
      R"("beta":1e-11,"ports":1,"segments":1,"root":0,"sync":"dataflow","params":{},"id":[7]})");
  // 14 messages of 8 KiB: 14 (1 us + 8192 / (100 GB/s)).
  EXPECT_EQ(line["time"].get<double>(),
            Rational(14 * (100'000 + 8'192), 100'000'000'000).to_double());
  EXPECT_EQ(line["collective"], "all_reduce");
  EXPECT_EQ(line["alpha"], 1e-6);
  EXPECT_EQ(line["id"], Json::array({7}));
  EXPECT_EQ(line["rounds"], 14);
  EXPECT_EQ(line["messages"], 112);
  EXPECT_EQ(line["sent_max"], 14 * 8192);
  EXPECT_EQ(line["received_max"], 14 * 8192);
  EXPECT_EQ(line["reduced_max"], 7 * 8192);
  EXPECT_EQ(line["sent"], Json(std::vector<int>(8, 14 * 8192)));
  EXPECT_EQ(line["partners_max"], 2);
  EXPECT_EQ(line["ports_needed"], 1);
  EXPECT_FALSE(line.contains("error"));
}

TEST(Request, TakesBlocksOfUnlikeSizes) {
  const std::string begin =
      R"({"collective":"reduce_scatter","algorithm":"circulant","ranks":5,"counts":[1000,"4K",0,5,2])";
  const Json line = answered(begin + "}");
  EXPECT_EQ(line["counts"], Json::parse(R"([1000,"4K",0,5,2])"));
  const auto refused = [](const std::string& request) { return answer_request(request, 1).line; };
  EXPECT_NE(refused(begin + R"(,"bytes":12})").find("bytes and counts"), std::string::npos);
  EXPECT_NE(refused(R"({"collective":"all_reduce","algorithm":"ring","ranks":5,"counts":[1,2]})")
                .find("counts has 2 entries; allowed for all_reduce among 5 ranks are 1"),
            std::string::npos);
}

// On a ring of four, three ranks send 100 kB each to rank 0, in a round each. Eq. (1) sees no
// shared link, and each neighbour needs 1 us after alpha and a hop. As flows the neighbours share
// links with the halves of the opposite rank's message: a link passes one and a half messages, from
// 1.1 us on.
TEST(Request, HasThreeFidelities) {
  Json request = {{"collective", "gather"},
                  {"algorithm", "linear"},
                  {"ranks", 4},
                  {"bytes", 400'000},
                  {"alpha", 1e-6},
                  {"beta", 1e-11},
                  {"wiring", "ring"},
                  {"ports", 3},
                  {"hop", 1e-7}};
  EXPECT_DOUBLE_EQ(answered(request.dump())["time"].get<double>(), 2.1e-6);
  request["fidelity"] = "eq1";
  EXPECT_DOUBLE_EQ(answered(request.dump())["time"].get<double>(), 2.1e-6);
  request["fidelity"] = "flow";
  EXPECT_NEAR(answered(request.dump())["time"].get<double>(), 2.6e-6, 1e-15);
  // From 1 us on, each neighbour's 100 kB take 1 us. Half of the opposite rank's message arrives
  // there after 0.5 us and a hop, and is sent from 2 us on.
  request["fidelity"] = "packet";
  EXPECT_EQ(answered(request.dump())["time"].get<double>(), 2.6e-6);
  request["mtu"] = 70'000;
  EXPECT_EQ(answered(request.dump())["time"].get<double>(), 2.6e-6);
}

// Doubles have the value of their shortest text: 1/(900 GB/s) with all 17 digits.
TEST(Request, ReadsDoublesByTheirShortestText) {
  Json request = {
      {"collective", "broadcast"},      {"algorithm", "chain"}, {"ranks", 4},   {"bytes", 999},
      {"alpha", 3.3000000000000002e-7}, {"beta", 1 / 900e9},    {"segments", 1}};
  const Json line = answered(request.dump());
  const Rational alpha(33, 100'000'000);
  const Rational beta(1'388'888'888'888'889, Int128{1'250'000'000'000} * 1'000'000'000'000'000);
  EXPECT_EQ(line["time"].get<double>(), (Rational(3) * (alpha + Rational(999) * beta)).to_double());
}

TEST(Request, HasIdealBlocks) {
  Json request = {{"collective", "all_reduce"},
                  {"algorithm", "ring"},
                  {"ranks", 3},
                  {"bytes", 100},
                  {"alpha", 0},
                  {"beta", 1e-9}};
  EXPECT_EQ(answered(request.dump())["time"], 4 * 34e-9);  // 34 33 33
  EXPECT_EQ(answered(request.dump())["sent_max"], 34 + 34 + 33 + 33);
  request["ideal_blocks"] = true;
  EXPECT_EQ(answered(request.dump())["time"].get<double>(),
            Rational(400, Int128{3} * 1'000'000'000).to_double());
  EXPECT_EQ(answered(request.dump())["sent_max"].get<double>(), Rational(400, 3).to_double());
}

TEST(Request, FindsTheBestSegments) {
  // L = 7, P* = sqrt(6 M beta / alpha) = sqrt(60) = 7.7; 7 * 8 < 60 <= 8 * 9.
  const Json line = answered(
      R"({"collective":"broadcast","algorithm":"chain","ranks":8,"bytes":1000000,)"
      R"("alpha":1e-6,"beta":1e-11,"segments":"auto","sync":"rounds","ideal_blocks":true})");
  EXPECT_EQ(line["segments"], 8);
  EXPECT_EQ(line["time"].get<double>(),
            (Rational(14) * (Rational(1, 1'000'000) + Rational(1, 800'000))).to_double());
}

TEST(Request, TakesNetworksAndParameters) {
  const Json preset = answered(
      R"({"collective":"all_reduce","algorithm":"switch","ranks":8,"bytes":0,"network":"switch"})");
  EXPECT_EQ(preset["time"], 300e-9);
  const Json object =
      answered(R"({"collective":"all_reduce","algorithm":"switch","ranks":8,"bytes":0,)"
               R"("network":{"preset":"switch","alpha_switch":"1us"}})");
  EXPECT_EQ(object["time"], 2e-6);
  const Json flags =
      answered(R"({"collective":"all_reduce","algorithm":"switch","ranks":8,"bytes":0,)"
               R"("multicast":true,"alu":true,"alpha_switch":5e-7})");
  EXPECT_EQ(flags["time"], 1e-6);
  const Json lowered = answered(
      R"({"collective":"broadcast","algorithm":"switch","ranks":5,"bytes":0,"lower":true})");
  EXPECT_EQ(lowered["time"], 4e-6);
  const Json grouped =
      answered(R"({"collective":"all_reduce","algorithm":"hierarchical","ranks":12,"bytes":1200,)"
               R"("params":{"group":4}})");
  EXPECT_EQ(grouped["rounds"], 3 + 4 + 3);
  const Json peer =
      answered(R"({"collective":"send_recv","algorithm":"direct","ranks":4,"bytes":8,"root":1,)"
               R"("params":{"peer":3}})");
  EXPECT_EQ(peer["sent"], Json::array({0, 8, 0, 0}));
  const Json next =
      answered(R"({"collective":"send_recv","algorithm":"direct","ranks":4,"bytes":8,"root":3})");
  EXPECT_EQ(next["messages"], 1);
}

// Every error names the member, its value and the allowed values; the other members of the request
// are repeated.
TEST(Request, SaysWhatIsWrong) {
  const auto request = [](const std::string& members) {
    return R"({"id":5,"collective":"all_reduce","algorithm":"ring","ranks":4,"bytes":64)" +
           members + "}";
  };
  const struct {
    std::string line;
    const char* error;
  } kCases[] = {
      {"{\"collective\": ", "the request is not JSON"},
      {"[1]", "the request is array; allowed are objects"},
      {"\"ring\"", "the request is string; allowed are objects"},
      {R"({})", "collective is missing"},
      {R"({"collective":7})", "collective is 7; allowed are texts"},
      {R"({"collective":"all_redcue"})", "did you mean 'all_reduce'?"},
      {R"({"collective":"broadcast"})", "algorithm is missing; broadcast has chain"},
      {R"({"collective":"all_reduce","algorithm":"rnig"})", "did you mean 'ring'?"},
      {R"({"collective":"all_reduce","algorithm":"all","ranks":2,"bytes":1})",
       "one name is allowed"},
      {R"({"collective":"all_reduce","algorithm":"ring"})", "ranks is missing"},
      {R"({"collective":"all_reduce","algorithm":"ring","ranks":4})", "bytes is missing"},
      {R"({"collective":"all_reduce","algorithm":"ring","ranks":0,"bytes":1})",
       "ranks is 0; allowed are whole numbers from 1 to 1048576"},
      {R"({"collective":"all_reduce","algorithm":"ring","ranks":2.5,"bytes":1})",
       "ranks is 2.5; allowed are whole numbers"},
      {R"({"collective":"all_reduce","algorithm":"ring","ranks":2,"bytes":-1})",
       "bytes is -1; allowed are whole numbers of bytes"},
      {R"({"collective":"all_reduce","algorithm":"ring","ranks":2,"bytes":1.5})",
       "bytes is 1.5; allowed are whole numbers of bytes"},
      {R"({"collective":"all_reduce","algorithm":"ring","ranks":2,"bytes":1e18})", "bytes is"},
      {request(R"(,"alpha":-1e-6)"), "alpha is -1e-06; allowed are times"},
      {request(R"(,"alpha":"1 m")"), "alpha is '1 m'; allowed are times"},
      {request(R"(,"alpha":1e-60)"), "alpha is '1e-60'; allowed are numbers with fewer digits"},
      {request(R"(,"beta":-1)"), "beta is -1; allowed are seconds per byte"},
      {request(R"(,"bandwidth":"0GB/s")"), "bandwidth is '0GB/s'; allowed are positive"},
      {request(R"(,"bandwidth":1e11,"beta":1e-11)"), "one of them is allowed"},
      {request(R"(,"ports":0)"), "ports is 0; allowed are whole numbers from 1"},
      {request(R"(,"segments":0)"),
       "segments is 0; allowed are whole numbers from 1 to 16384, and"},
      {request(R"(,"segments":"some")"), "segments is \"some\"; allowed are whole numbers"},
      {request(R"(,"root":4)"), "root is 4, which it does not take; it takes no parameter"},
      {R"({"id":5,"collective":"broadcast","algorithm":"linear","ranks":4,"bytes":64,"root":4})",
       "root is 4; allowed are 0 to 3"},
      {request(R"(,"fidelity":"fluid")"),
       "fidelity is \"fluid\"; allowed are \"eq1\", \"flow\" and \"packet\""},
      {request(R"(,"sync":"later")"), "sync is \"later\"; allowed are \"dataflow\" and \"rounds\""},
      {request(R"(,"params":[])"), "params is []; allowed are objects"},
      {request(R"(,"params":{"colour":1})"),
       "params has a member 'colour'; allowed are peer, group"},
      {request(R"(,"params":{"group":-1})"), "params.group is -1; allowed are whole numbers"},
      {request(R"(,"network":"ether")"), "network is 'ether', which is no preset and no file"},
      {request(R"(,"network":{"ports":0})"), "ports is 0"},
      {request(R"(,"lower":1)"), "lower is 1; allowed are true and false"},
      {request(R"(,"ideal_blocks":"yes")"), "ideal_blocks is \"yes\"; allowed are true and false"},
      {request(R"(,"group":4)"), "the request has a member 'group'; allowed are collective"},
      {request(R"(,"time":4)"), "the request has a member 'time'; allowed are collective"},
      {R"({"collective":"broadcast","algorithm":"switch","ranks":4,"bytes":1})",
       "has no multicast (lower the schedule"},
      {R"({"collective":"all_gather","algorithm":"pat","ranks":8,"bytes":1,"params":{"aggregation":3}})",
       "the aggregation must be a power of two"},
      {"{\"collective\":\"all_reduce\xff\"}", "the request is not JSON"},
      {request(",\"id\":" + nested(100'000)), "the request nests 100001 levels deep; allowed are"},
      {std::string(100'000, '['), "the request nests 100000 levels deep; allowed are up to 64"},
  };
  std::size_t number = 0;
  for (const auto& [line, error] : kCases) {
    const BatchAnswer answer = answer_request(line, ++number);
    EXPECT_FALSE(answer.ok) << line;
    const Json parsed = Json::parse(answer.line);
    ASSERT_TRUE(parsed.contains("error")) << line << ": " << answer.line;
    EXPECT_NE(parsed["error"].get<std::string>().find(error), std::string::npos)
        << line << ": " << parsed["error"];
    EXPECT_EQ(parsed["line"], number);
    EXPECT_FALSE(parsed.contains("time") && !line.empty() &&
                 line.find("time") == std::string::npos);
    if (line.starts_with("{\"id\":5") && line.size() < 1000) {
      EXPECT_EQ(parsed["id"], 5);
    }
  }
}

TEST(Batch, AnswersEveryLineInOrderAndGoesOnAfterBadOnes) {
  std::ostringstream in;
  constexpr int kLines = 2500;  // more than are read at once
  for (int i = 0; i < kLines; ++i) {
    if (i % 10 == 3) {
      in << "this is no request\n";
    } else if (i % 10 == 7) {
      in << "  \t\r\n";
    } else {
      in << R"({"collective":"broadcast","algorithm":"chain","bytes":8,"ranks":)" << 1 + i % 64
         << R"(,"id":)" << i << (i % 2 == 0 ? "}\r\n" : "}\n");
    }
  }
  std::istringstream lines(in.str());
  std::ostringstream out;
  EXPECT_EQ(answer_batch(lines, out), 250U);
  std::istringstream answers(out.str());
  std::string text;
  for (int i = 0; i < kLines; ++i) {
    if (i % 10 == 7) continue;
    ASSERT_TRUE(std::getline(answers, text)) << i;
    const Json line = Json::parse(text);
    if (i % 10 == 3) {
      EXPECT_EQ(line["line"], i + 1);
      EXPECT_TRUE(line.contains("error"));
    } else {
      EXPECT_EQ(line["id"], i);
      EXPECT_EQ(line["rounds"], i % 64);
    }
  }
  EXPECT_FALSE(std::getline(answers, text));
}

TEST(Batch, WorksFromAFileAndThroughTheTool) {
  const std::string path = ::testing::TempDir() + "/requests.jsonl";
  std::ofstream(path)
      << R"({"collective":"barrier","algorithm":"dissemination","ranks":5,"bytes":0})"
      << "\nnonsense\n";
  const Captured run = run_captured({"simulate", "--batch", path});
  std::remove(path.c_str());
  EXPECT_EQ(run.exit, 1) << run.err;
  EXPECT_NE(run.err.find("1 request could not be answered"), std::string::npos) << run.err;
  std::istringstream lines(run.out);
  std::string first, second;
  ASSERT_TRUE(std::getline(lines, first) && std::getline(lines, second));
  EXPECT_EQ(Json::parse(first)["rounds"], 3);
  EXPECT_TRUE(Json::parse(second).contains("error"));
  EXPECT_EQ(run_captured({"simulate", "--batch", "/no/such/file"}).exit, 3);
}

TEST(Simulate, RefusesWhatTakesMoreMemoryThanAllowed) {
  const std::vector<std::string> ask = {"simulate", "all_reduce", "--algo", "trivance", "--ranks",
                                        "6561",     "--network",  "ring",   "--memory"};
  std::vector<std::string> little = ask;
  little.push_back("100M");
  const Captured run = run_captured(little);
  EXPECT_EQ(run.exit, 3);
  EXPECT_NE(run.err.find("GiB or more; 100 MiB are allowed"), std::string::npos) << run.err;
}

TEST(Batch, LinesWithoutEndTakeBoundedMemory) {
  std::ostringstream in;
  in << std::string(40 << 20, '7') << "\n{}\n" << std::string(20 << 20, '[');
  std::istringstream lines(in.str());
  std::ostringstream out;
  EXPECT_EQ(answer_batch(lines, out), 3U);
  std::istringstream answers(out.str());
  std::string text;
  for (const char* says :
       {"has more than 16777216 bytes", "collective is missing", "has more than 16777216 bytes"}) {
    ASSERT_TRUE(std::getline(answers, text));
    EXPECT_NE(Json::parse(text)["error"].get<std::string>().find(says), std::string::npos) << text;
  }
}

std::string question(int id) {
  return R"({"collective":"broadcast","algorithm":"chain","ranks":4,"bytes":8,"id":)" +
         std::to_string(id) + "}\n";
}

// Answers arrive before the next question, and each line is answered when it is complete.
TEST(Batch, AnswersEachLineAsItComes) {
  ToolProcess tool({"simulate", "--batch", "-"});
  ASSERT_TRUE(tool.started());
  for (int id = 0; id < 5; ++id) {
    ASSERT_TRUE(tool.ask(question(id)));
    const Json answer = Json::parse(tool.line(), nullptr, false);
    ASSERT_TRUE(answer.is_object()) << id;
    EXPECT_EQ(answer["id"], id);
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
}

TEST(Batch, EndsWhereNobodyReads) {
  ToolProcess tool({"simulate", "--batch", "-"});
  ASSERT_TRUE(tool.ask(question(0)));
  EXPECT_NE(tool.line(), "");
  tool.close_out();
  ASSERT_TRUE(tool.ask(question(1)));  // and its standard input stays open
  EXPECT_EQ(tool.wait(), 3);
  EXPECT_EQ(tool.err(), "rankine simulate: standard output cannot be written: Broken pipe\n");
}

TEST(Batch, OfAFolderCannotBeRead) {
  const Captured folder = run_captured({"simulate", "--batch", "/"});
  EXPECT_EQ(folder.exit, 3);
  EXPECT_NE(folder.err.find("--batch is '/'"), std::string::npos) << folder.err;
}

TEST(Batch, AnswersEachOfAThousandQuestionsInOrder) {
  std::ostringstream in;
  int count = 0;
  std::vector<const Algorithm*> asked;
  while (count < 1000) {
    for (const Algorithm& entry : catalogue()) {
      if (++count > 1000) break;
      asked.push_back(&entry);
      Json question = {{"collective", name_of(entry.collective)},
                       {"algorithm", entry.name},
                       {"ranks", 1 + count * 7 % 64},
                       {"bytes", 1 + count * 4099},
                       {"alpha", 1e-6},
                       {"beta", 1e-11},
                       {"ports", 1 + count % 4},
                       {"sync", count % 2 == 0 ? "rounds" : "dataflow"},
                       {"network", "switch"}};
      if (entry.takes("segments")) question["segments"] = 1 + count % 16;
      in << question.dump() << "\n";
    }
  }
  std::istringstream lines(in.str());
  std::ostringstream out;
  answer_batch(lines, out);
  std::istringstream answers(out.str());
  std::size_t answered = 0, with_a_time = 0;
  for (std::string text; std::getline(answers, text); ++answered) {
    ASSERT_LT(answered, asked.size());
    const Json answer = Json::parse(text);
    // Lines refuse only the number of ranks of these questions, and name the algorithm.
    if (answer.contains("error")) {
      const std::string why = answer["error"];
      EXPECT_NE(why.find("'" + std::string(asked[answered]->name) + "'"), std::string::npos) << why;
      continue;
    }
    ++with_a_time;
    EXPECT_GE(answer["time"].get<double>(), 0);
    EXPECT_EQ(answer["algorithm"], asked[answered]->name);
  }
  EXPECT_EQ(answered, asked.size());
  EXPECT_GT(with_a_time, answered / 2);
}

TEST(Simulate, AnswersInTextAndJson) {
  const std::vector<std::string> question = {
      "simulate", "all_reduce", "--algo", "ring",        "--ranks", "8",       "--bytes",
      "64K",      "--alpha",    "1us",    "--bandwidth", "100GB/s", "--ports", "1"};
  const Captured text = run_captured(question);
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("all_reduce of 64 KiB among 8 ranks"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("15.15 us"), std::string::npos) << text.out;

  std::vector<std::string> as_json = question;
  as_json.insert(as_json.end(), {"--json", "--rounds"});
  const Captured run = run_captured(as_json);
  const Json line = Json::parse(run.out);
  EXPECT_EQ(line["time"].get<double>(),
            Rational(14 * (100'000 + 8'192), 100'000'000'000).to_double());
  EXPECT_EQ(line["round_end"].size(), 14U);
  EXPECT_EQ(line["round_end"].back(), line["time"]);
}

// A barrier's rounds cost latency only, in every subcommand.
TEST(Simulate, ABarrierMovesNothing) {
  const Json simulated =
      Json::parse(run_captured({"simulate", "barrier", "--algo", "dissemination", "--json"}).out);
  EXPECT_EQ(simulated["bytes"], 0);
  EXPECT_EQ(simulated["time"], 3e-6);
  const Json chosen =
      Json::parse(run_captured({"choose", "barrier", "--network", "plain", "--json"}).out);
  EXPECT_EQ(chosen["bytes"], 0);
  EXPECT_EQ(chosen["choice"]["algorithm"], "dissemination");
  EXPECT_EQ(run_captured({"choose", "barrier"}).out.find("barrier of 0 B among 8 ranks"), 0U);
  const std::string cost = run_captured({"cost", "barrier", "--algo", "dissemination"}).out;
  EXPECT_NE(cost.find("M = 0 B."), std::string::npos) << cost;
}

TEST(Simulate, NamesItsFidelity) {
  std::vector<std::string> question = {"simulate", "gather",  "--algo",  "linear",     "--ranks",
                                       "4",        "--bytes", "400000",  "--alpha",    "1us",
                                       "--wiring", "ring",    "--ports", "3",          "--hop",
                                       "100ns",    "--beta",  "1e-11",   "--fidelity", "flow"};
  const Captured text = run_captured(question);
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("fidelity flow"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("2.6 us"), std::string::npos) << text.out;
  question.insert(question.end(), {"--json", "--rounds"});
  const Json line = Json::parse(run_captured(question).out);
  EXPECT_EQ(line["fidelity"], "flow");
  EXPECT_NEAR(line["time"].get<double>(), 2.6e-6, 1e-15);
  // From 1.2 us on the neighbour's message has two thirds of the link: its other 0.9 us take 1.35
  // us.
  EXPECT_EQ(line["round_end"].size(), 3U);
  EXPECT_NEAR(line["round_end"][0].get<double>(), 2.55e-6, 1e-15);
  EXPECT_EQ(line["round_end"][1], line["time"]);

  question[question.size() - 3] = "packet";
  question.insert(question.end(), {"--mtu", "1000"});
  const Json packets = Json::parse(run_captured(question).out);
  EXPECT_EQ(packets["fidelity"], "packet");
  EXPECT_EQ(packets["mtu"], 1000);
  // The neighbours' messages were there first.
  EXPECT_EQ(packets["round_end"], Json::parse("[2.1e-6, 2.6e-6, 2.1e-6]"));
  question.erase(question.end() - 4, question.end() - 2);
  const Captured in_words = run_captured(question);
  EXPECT_NE(in_words.out.find("packets of 1000 B"), std::string::npos)
      << in_words.out << in_words.err;

  question.back() = "2K";
  EXPECT_EQ(run_captured(question).err, "");
  question.back() = "0";
  EXPECT_NE(run_captured(question).err.find("--mtu is '0'; allowed are 1 to 16M bytes"),
            std::string::npos);
  question.back() = "1000";
  question[question.size() - 3] = "flow";
  EXPECT_NE(run_captured(question).err.find("--mtu is 1000; packets need --fidelity packet"),
            std::string::npos);
}

TEST(Simulate, ComparesAllAlgorithms) {
  const Captured run = run_captured(
      {"simulate", "all_gather", "--algo", "all", "--ranks", "9", "--bytes", "1M", "--json"});
  EXPECT_EQ(run.exit, 0) << run.err;
  std::istringstream lines(run.out);
  std::string text;
  std::size_t count = 0;
  while (std::getline(lines, text)) {
    ++count;
    EXPECT_GT(Json::parse(text)["time"], 0);
  }
  EXPECT_GT(count, 5U);
  EXPECT_NE(run.err.find("left out: switch"), std::string::npos) << run.err;
}

TEST(Simulate, TimesAmongMoreAndMoreRanks) {
  const std::vector<std::string> question = {"simulate", "all_reduce", "--algo",  "ring",
                                             "--ranks",  "4",          "--bytes", "1M"};
  const auto with = [&question](std::vector<std::string> more) {
    more.insert(more.begin(), question.begin(), question.end());
    return run_captured(more);
  };
  const Captured text = with({"--ranks-to", "16"});
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 4) << text.out;
  const Captured json = with({"--ranks-to", "8", "--json"});
  EXPECT_EQ(json.out.find(R"({"algorithm":"ring","ranks":4,"time":)"), 0u) << json.out;
  EXPECT_NE(
      with({"--plot", "x.svg"}).err.find("--plot is 'x.svg'; it draws the times of --ranks-to"),
      std::string::npos);
  EXPECT_NE(with({"--most-steps", "1G"}).err.find("--most-steps is 1G; it limits --ranks-to"),
            std::string::npos);
  for (const std::string wrong : {"0", "5x", "-1", "99999999999999999999"}) {
    EXPECT_EQ(with({"--ranks-to", "16", "--most-steps", wrong}).err,
              "rankine simulate: --most-steps is '" + wrong +
                  "'; allowed are numbers of steps from 1 to 8388607T, such as 500M or 64G\n");
  }
  const Captured ends = with({"--ranks-to", "16", "--most-steps", "3K"});
  EXPECT_EQ(ends.exit, 0) << ends.err;
  EXPECT_EQ(
      ends.err,
      "rankine simulate: ring among 8 ranks and more is left out: that takes 4.0K steps or more; "
      "--most-steps allows 3K\n");
  EXPECT_NE(with({"--ranks-to", "8", "--rounds"}).err.find("--rounds"), std::string::npos);
  EXPECT_NE(
      with({"--ranks-to", "4"}).err.find("--ranks-to is 4; allowed are more than the 4 ranks"),
      std::string::npos);
  EXPECT_NE(with({"--goal", "x", "--ideal-blocks"}).err.find("leave out --ideal-blocks"),
            std::string::npos);
}

TEST(Simulate, NamesTheFlagItsValueAndWhatIsAllowed) {
  const auto error_of = [](std::vector<std::string> more, int exit = 2) {
    std::vector<std::string> arguments = {"simulate", "broadcast", "--algo",
                                          "switch",   "--ranks",   "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, exit) << run.out;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  const auto names = [](const std::string& error, std::initializer_list<const char*> parts) {
    for (const char* part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << error << " does not name " << part;
    }
  };
  names(error_of({}), {"network 'plain' has no multicast", "--lower"});
  names(error_of({"--alpha", "1 hour"}), {"--alpha", "1 hour", "1.5us"});
  names(error_of({"--bandwidth", "-4GB/s"}), {"--bandwidth", "-4GB/s", "positive"});
  names(error_of({"--bandwidth", "0GB/s"}), {"--bandwidth", "0GB/s", "positive"});
  names(error_of({"--beta", "-1"}), {"--beta", "-1", "not negative"});
  names(error_of({"--ports", "0"}), {"--ports", "0", "from 1"});
  names(error_of({"--network", "toroidal"}), {"--network", "toroidal", "scale_up"});
  names(error_of({"--segments", "few"}), {"--segments", "few", "auto"});
  names(error_of({"--sync", "loose"}), {"--sync", "loose", "dataflow"});
  names(error_of({"--fidelity", "fluid"}), {"--fidelity", "fluid", "eq1", "flow", "packet"});
  names(error_of({"--root", "4"}), {"root is 4", "0 to 3"});
  names(error_of({"--node-ranks", "2"}), {"--node-ranks", "2", "--between-alpha"});
  EXPECT_EQ(run_captured({"simulate"}).exit, 2);
  EXPECT_EQ(run_captured({"simulate", "all_reduce"}).exit, 2);
  const Captured lowered = run_captured(
      {"simulate", "broadcast", "--algo", "switch", "--ranks", "4", "--lower", "--json"});
  EXPECT_EQ(lowered.exit, 0) << lowered.err;
  EXPECT_EQ(Json::parse(lowered.out)["messages"], 3);
}

TEST(Cost, GivesTheCoefficientsOfClosedForms) {
  const auto cost_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cost");
    arguments.push_back("--json");
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    return run.exit == 0 ? Json::parse(run.out) : Json();
  };
  const Json ring = cost_of({"all_reduce", "--algo", "ring", "--ranks", "8", "--bytes", "800"});
  EXPECT_EQ(ring["rounds"], 14);
  for (const char* sync : {"dataflow", "rounds_sync", "critical_path"}) {
    EXPECT_EQ(ring[sync]["n_alpha"]["exact"], "14") << sync;
    EXPECT_EQ(ring[sync]["n_beta"]["exact"], "7/4") << sync;
    EXPECT_EQ(ring[sync]["n_beta"]["value"], 1.75) << sync;
  }
  EXPECT_EQ(ring["busiest"]["sent"], 1400.0);
  EXPECT_EQ(ring["busiest"]["reduced"], 700.0);
  EXPECT_EQ(ring["busiest"]["partners"], 2);
  EXPECT_EQ(ring["per_rank"].size(), 8U);
  EXPECT_EQ(ring["per_rank"][3]["sends_at_once"], 1);

  // (L + P - 1) and (L + P - 1) / P.
  const Json chain = cost_of({"broadcast", "--algo", "chain", "--ranks", "5", "--segments", "4"});
  EXPECT_EQ(chain["rounds_sync"]["n_alpha"]["exact"], "7");
  EXPECT_EQ(chain["rounds_sync"]["n_beta"]["exact"], "7/4");
  EXPECT_EQ(chain["critical_path"]["n_alpha"]["exact"], "4");
  EXPECT_EQ(chain["critical_path"]["n_beta"]["exact"], "1");

  const Json central = cost_of({"all_reduce", "--algo", "central", "--ranks", "9", "--ports", "3"});
  EXPECT_EQ(central["dataflow"]["n_alpha"]["exact"], "6");
  EXPECT_EQ(central["critical_path"]["n_alpha"]["exact"], "2");
  EXPECT_EQ(central["busiest"]["receives_at_once"], 8);

  const Json in_switch =
      cost_of({"all_reduce", "--algo", "switch", "--ranks", "72", "--network", "nvl72"});
  EXPECT_EQ(in_switch["dataflow"]["n_alpha"]["exact"], "2");
  EXPECT_EQ(in_switch["dataflow"]["n_beta"]["exact"], "1");

  const Captured text = run_captured({"cost", "all_reduce", "--algo", "ring", "--per-rank"});
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("rank 7"), std::string::npos) << text.out;
  EXPECT_EQ(run_captured({"cost", "all_reduce", "--algo", "ring,central"}).exit, 2);
}

// Recursive doubling among eight ranks with four segments needs three partners at once. show,
// simulate and cost report missing ports.
TEST(PortBudget, CaseAAndCaseBAreToldApart) {
  const std::vector<std::string> asked = {"all_reduce", "--algo", "recursive_doubling_pipelined",
                                          "--ranks",    "8",      "--segments",
                                          "4",          "--ports"};
  for (const char* subcommand : {"simulate", "cost", "show"}) {
    SCOPED_TRACE(subcommand);
    const auto with_ports = [&](const char* ports, bool json) {
      std::vector<std::string> arguments = {subcommand};
      arguments.insert(arguments.end(), asked.begin(), asked.end());
      arguments.emplace_back(ports);
      if (json) arguments.emplace_back("--json");
      const Captured captured = run_captured(arguments);
      EXPECT_EQ(captured.exit, 0) << captured.err;
      return captured.out;
    };
    EXPECT_NE(with_ports("1", false)
                  .find("recursive_doubling_pipelined needs 3 ports per rank, the network has 1: "
                        "rounds serialise (case B of the survey's C.4)\n"),
              std::string::npos);
    EXPECT_NE(with_ports("2", false).find("(case B"), std::string::npos);
    EXPECT_NE(with_ports("3", false)
                  .find("needs 3 ports per rank, the network has 3: rounds run as drawn (case A of "
                        "the survey's C.4)\n"),
              std::string::npos);
    for (const auto& [ports, serialises] : {std::pair{"2", true}, std::pair{"3", false}}) {
      const Json line = Json::parse(with_ports(ports, true));
      EXPECT_EQ(line["ports_needed"], 3);
      EXPECT_EQ(line["serialises"], serialises) << ports;
    }
  }
}

TEST(PortBudget, IsNotSpokenOfWhereOnePortWillDo) {
  for (const char* subcommand : {"simulate", "cost", "show"}) {
    const Captured ring = run_captured({subcommand, "all_reduce", "--algo", "ring"});
    EXPECT_EQ(ring.out.find("per rank"), std::string::npos) << ring.out;
  }
  // Of several algorithms, only those that need more ports than available are named. A drawing
  // knows no network.
  const Captured some = run_captured(
      {"simulate", "all_gather", "--algo", "direct,ring_mirrored", "--ranks", "4", "--ports", "2"});
  EXPECT_NE(some.out.find("direct needs 3 ports per rank, the network has 2"), std::string::npos);
  EXPECT_EQ(some.out.find("ring_mirrored needs"), std::string::npos) << some.out;
  const Captured drawn = run_captured({"show", "all_gather", "--algo", "direct"});
  EXPECT_NE(drawn.out.find("direct needs 3 ports per rank\n"), std::string::npos) << drawn.out;
}

}  // namespace

namespace {

QuestionArguments asked(const std::string& algorithms, int ranks) {
  QuestionArguments arguments;
  arguments.algorithm.collective = Collective::all_reduce;
  arguments.algorithm.algorithms = algorithms;
  arguments.algorithm.begin.ranks = ranks;
  arguments.bytes = 1'000'000;
  return arguments;
}

Result<Scaling> scaled(const std::string& algorithms, int from, int to) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  return scale(asked(algorithms, from), to, kMostScaledSteps, console);
}

TEST(Scaling, DoublesTheRanksUpToTheLastOne) {
  const auto scaling = scaled("ring,recursive_doubling", 16, 100);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->ranks, (std::vector<int>{16, 32, 64, 100}));
  ASSERT_EQ(scaling->curves.size(), 2u);
  EXPECT_EQ(scaling->curves[0].algorithm, "ring");
  ASSERT_EQ(scaling->curves[0].seconds.size(), 4u);
  for (const auto& [n, seconds] : scaling->curves[0].seconds) {
    // 2 (N - 1) (alpha + beta M / N), of 1 us and 100 GB/s.
    EXPECT_NEAR(seconds, 2 * (n - 1) * (1e-6 + 1e-5 / n), 1e-15) << n;
  }
  EXPECT_TRUE(scaling->notes.empty());
}

TEST(Scaling, ToAMillionRanks) {
  const auto scaling = scaled("ring", 16, 1'000'000);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->curves[0].seconds.size(), 17u);
  EXPECT_EQ(scaling->curves[0].seconds.back().first, 1'000'000);
}

TEST(Scaling, WhatCannotBeAnsweredIsLeftOutWithItsReason) {
  QuestionArguments arguments = asked("ring_2d,ring_tree", 16);
  arguments.algorithm.begin.group = 8;
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const auto scaling = scale(arguments, 25, kMostScaledSteps, console);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  ASSERT_EQ(scaling->curves.size(), 2u);
  EXPECT_EQ(scaling->curves[0].seconds.size(), 1u);
  EXPECT_EQ(scaling->curves[1].seconds.size(), 1u);
  ASSERT_EQ(scaling->notes.size(), 2u);
  EXPECT_NE(scaling->notes[0].find("ring_2d among 25 ranks is left out: "), std::string::npos)
      << scaling->notes[0];
}

// The steps of recursive doubling on a ring of links among N ranks. Each rank has its state, and
// the bytes of its cell and of the arrivals in a round. In each round it has one message, which
// reads one value and changes one, and the links to the partners 1, 2, 4 ... N / 2 away.
TEST(Scaling, ACurveEndsBeforeWhatTakesTooManySteps) {
  QuestionArguments arguments = asked("recursive_doubling", 16);
  arguments.network.network = "ring";
  constexpr std::uint64_t kOfRound = steps::kOfRank + steps::kOfTransfer + 2 * steps::kOfValue;
  constexpr std::uint64_t kOf128 =
      128 * (steps::kOfNote + steps::kOfByte * (8 + 40) + 7 * kOfRound + steps::kOfLink * 127);
  const auto most_ranks = [&](std::uint64_t most_steps) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err};
    const auto scaling = scale(arguments, 1 << 20, most_steps, console);
    EXPECT_TRUE(scaling.ok()) << scaling.status().text();
    if (!scaling.ok()) return 0;
    return scaling->curves.back().seconds.back().first;
  };
  EXPECT_EQ(most_ranks(kOf128), 128);
  EXPECT_EQ(most_ranks(kOf128 - 1), 64);
}

// Steps that grow fourfold are predicted, so the curve ends before the next number of ranks. Steps
// known in advance are refused at once.
TEST(Scaling, SaysHowManyStepsAreWanted) {
  QuestionArguments arguments = asked("swing", 16);
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  auto scaling = scale(arguments, 1024, std::uint64_t{1} << 25, console);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->curves[0].seconds.back().first, 128);
  EXPECT_NE(scaling->notes[0].find("swing among 256 ranks and more is left out: an estimate "
                                   "is "),
            std::string::npos)
      << scaling->notes[0];
  EXPECT_NE(scaling->notes[0].find(" steps; --most-steps allows 32M"), std::string::npos);

  // A chain among 4,096 ranks has 8,190 rounds, and each rank takes two steps per round before the
  // first message.
  arguments.algorithm.algorithms = "chain";
  arguments.algorithm.begin.ranks = 4096;
  scaling = scale(arguments, 5000, std::uint64_t{1} << 26, console);
  EXPECT_EQ(scaling.status().text(),
            "chain among 4096 ranks and more is left out: that takes 65M steps or more; "
            "--most-steps allows 64M");
}

TEST(Scaling, SaysWhereACurveEnds) {
  QuestionArguments arguments = asked("recursive_doubling", 16);
  arguments.network.network = "ring";
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const auto scaling = scale(arguments, 1 << 20, std::uint64_t{1} << 16, console);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->notes,
            (std::vector<std::string>{
                "recursive_doubling among 64 ranks and more is left out: that takes 102K steps or "
                "more; --most-steps allows 64K"}));
  EXPECT_EQ(out.str() + err.str(), "");
}

TEST(Scaling, WrongRanges) {
  EXPECT_EQ(scaled("ring", 16, 16).status().text(),
            "--ranks-to is 16; allowed are more than the 16 ranks of --ranks");
  EXPECT_NE(scaled("rnig", 16, 32).status().text().find("did you mean 'ring'?"), std::string::npos);
}

TEST(Scaling, TextJsonAndPicture) {
  const auto scaling = scaled("ring,recursive_doubling", 4, 8);
  ASSERT_TRUE(scaling.ok());
  const std::string text = to_text(table_of(*scaling));
  EXPECT_EQ(text.substr(0, 6), "ranks ");
  EXPECT_NE(text.find(format_duration(scaling->curves[0].seconds[1].second)), std::string::npos);
  EXPECT_NE(json_of(*scaling).find(R"({"algorithm":"ring","ranks":4,"time":)"), std::string::npos);
  const std::string svg = svg_of(*scaling, "all_reduce");
  EXPECT_NE(svg.find(">ranks</text>"), std::string::npos);
  EXPECT_NE(svg.find(">recursive_doubling</text>"), std::string::npos);
}

}  // namespace
}  // namespace rankine::tools
