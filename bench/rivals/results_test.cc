// Tests documents, and the tables and verdicts that report.py makes of them.
#include "bench/rivals/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/files.h"

namespace rankine::rivals {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

struct Named final : Contender {
  using Contender::Contender;
  bool takes(Collective, std::size_t) const override { return true; }
  Measured run(const Batch&) override { return {}; }
};

Contenders everybody() {
  Contenders all;
  all.push_back(std::make_unique<Named>("expert_push", kExpert));
  all.push_back(std::make_unique<Named>("inference_shm", kServer));
  all.push_back(std::make_unique<Named>("rankine", kRankine));
  all.push_back(std::make_unique<Named>("openmpi_ucx", kMpi));
  all.push_back(std::make_unique<Named>("mpich", kMpi));
  all.back()->missing = "not installed: mpich";
  return all;
}

// Times of the five contenders in us; a time of zero: did not run.
Row row_of(std::size_t bytes, Protocol protocol, const std::vector<double>& us, double limit,
           bool steady = true) {
  Row row;
  row.bytes = bytes;
  row.protocol = protocol;
  row.ping_pong_ns = {20, steady ? 22.0 : 200.0};
  for (const double time : us) {
    row.cells.emplace_back();
    if (time <= 0) continue;
    row.cells.back().us.assign(3, time);
    if (protocol == Protocol::warm) continue;
    row.cells.back().percentiles.assign(3, {time, 2 * time, 3 * time, 4 * time, 5 * time});
    row.cells.back().percentiles[1].back() = 9 * time;
  }
  Limit one;
  one.way = "two-shot";
  one.us = limit;
  row.limits.assign(3, one);
  return row;
}

json document_of(Collective collective, int ranks, const std::vector<Row>& rows) {
  Plan plan;
  plan.collective = collective;
  Setup setup;
  setup.ranks = ranks;
  setup.cpus = {0, 1};
  setup.crowded = ranks > 2;
  LevelRates level;
  level.level = "L2";
  level.bytes = 512 << 10;
  level.add = 123;
  const json machine = {{"cpu", "Some CPU"},     {"kernel", "Linux 6"},
                        {"summary", "2 cores"},  {"cores", "2"},
                        {"l1d_bytes", 48 << 10}, {"l2_bytes", 1 << 20},
                        {"l3_bytes", 32 << 20},  {"time", "2026-11-21T00:00:00Z"}};
  const Contenders all = everybody();
  json document = {{"context", context_json(plan, setup, all, {level}, machine)},
                   {"rows", json::array()}};
  for (const Row& row : rows) document["rows"].push_back(row_json(row, all));
  return document;
}

// Expert, server, rankine, MPI.
json small_document(Collective collective = Collective::all_reduce, int ranks = 2) {
  return document_of(collective, ranks,
                     {row_of(8, Protocol::warm, {2, 3, 1, 4, 0}, 0.5),
                      row_of(8, Protocol::fresh, {2, 3, 1, 4, 0}, 0.5),
                      row_of(65536, Protocol::fresh, {10, 8, 16, 64, 0}, 4),
                      row_of(131072, Protocol::fresh, {10, 8, 160, 64, 0}, 4, false)});
}

TEST(Document, ComparesTheBestOfEachSide) {
  const json document = small_document();
  const json& row = document.at("rows")[2];
  EXPECT_EQ(row.at("ratios").at("rankine/mpi"), 0.25);
  EXPECT_EQ(row.at("ratios").at("rankine/library"), 2);
  EXPECT_EQ(row.at("against").at("rankine/library"), "inference_shm");
  EXPECT_EQ(row.at("ratios").at("rankine/expert"), 1.6);
  EXPECT_EQ(row.at("ratios").at("rankine/limit"), 4);
  EXPECT_FALSE(row.at("ratios").contains("rankine/chain"));
  EXPECT_EQ(row.at("limit").at("way"), "two-shot");
  EXPECT_EQ(document.at("context").at("contenders").at("mpich").at("missing"),
            "not installed: mpich");
}

// Server, MPI, rankine_processes, rankine_shared.
json processes_document() {
  Plan plan;
  Setup setup;
  setup.ranks = 2;
  setup.cpus = {0, 1};
  setup.processes = true;
  Contenders all;
  all.push_back(std::make_unique<Named>("vllm_shm", kServer));
  all.push_back(std::make_unique<Named>("mpich", kMpi));
  all.push_back(std::make_unique<Named>("rankine_processes", kRankine));
  all.push_back(std::make_unique<Named>("rankine_shared", kRegistered));
  json document = {
      {"context", context_json(plan, setup, all, {}, small_document()["context"]["machine"])},
      {"rows", json::array()}};
  for (const auto& times : {std::vector<double>{8, 4, 2, 1}, std::vector<double>{8, 16, 4, 1}})
    document["rows"].push_back(row_json(row_of(4096, Protocol::fresh, times, 0.5), all));
  return document;
}

struct Report {
  std::string markdown, rows;
};

// report.py of these documents.
Report report_of(const std::vector<std::pair<std::string, json>>& documents, int exit = 0) {
  std::string folder = testing::TempDir() + "/report_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  const std::string results = folder + "/results", markdown = folder + "/RESULTS.md";
  EXPECT_EQ(std::system(("mkdir " + results).c_str()), 0);
  json all = json::object();
  for (const auto& [name, document] : documents) all[name] = document;
  EXPECT_TRUE(replace_file(results + "/results.json", all.dump()).ok());
  const std::string command = "python3 bench/rivals/report.py --results " + results +
                              "/results.json --markdown " + markdown + " 2> " + folder + "/errors";
  const auto text_of = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), exit) << text_of(folder + "/errors");
  if (exit != 0) return {text_of(folder + "/errors"), {}};
  return {text_of(markdown), text_of(results + "/rows.csv")};
}

TEST(Results, OfProcessesStandBesideThoseOfThreads) {
  const auto [text, rows] =
      report_of({{"threads", small_document()}, {"processes", processes_document()}});
  EXPECT_THAT(rows, HasSubstr(",rankine (us),rankine_shared (us),best expert,"));
  EXPECT_THAT(rows, HasSubstr(",2.000 ±0%,1.000 ±0%,-,4.000 ±0% mpich,0.500,"));
  EXPECT_THAT(rows, HasSubstr(",4.000 ±0%,1.000 ±0%,-,8.000 ±0% vllm_shm,0.500,"));
  // At the limit, shared payloads would take 0.5/4 and 0.5/8 of the library's time.
  for (const char* part : {"| all_reduce, 2 ranks | 0.50 | 0.33 | 2.00 | 0.89 |",
                           "| all_reduce, 2 processes | - | - | - | - | 0.50 |",
                           "private buffers, fresh | best library | 0.50 (1.05) met; at 4 KiB | "
                           "0.50 (0.6) met; limit 0.09 |",
                           "fresh, shared | best library | 0.25 (1) met; at 4 KiB | 0.18 (0.4) "
                           "met; limit 0.09 |"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  // The verdicts of the threads come from the documents of threads.
  const std::string of_threads = "out of place | best expert | 1.60 (1.05)";
  EXPECT_THAT(text, HasSubstr(of_threads));
  EXPECT_THAT(report_of({{"threads", small_document()}}).markdown, HasSubstr(of_threads));
  EXPECT_THAT(report_of({{"processes", processes_document()}}).markdown,
              HasSubstr("out of place | best expert | not measured (1.05) |"));
}

TEST(Results, JudgeEveryTarget) {
  json mailbox = {{"machine", small_document().at("context").at("machine")},
                  {"bare_line_ns", {20.0, 21.0}},
                  {"repeats", 0},
                  {"steady", true}};
  for (const auto& [name, ratio, rate] :
       {std::tuple("mailbox", 1.1, 50.0), std::tuple("boost_spsc_queue", 1.5, 40.0),
        std::tuple("moodycamel_rwq", 1.6, 60.0)}) {
    mailbox["channels"].push_back({{"name", name},
                                   {"latency_ns", 20 * ratio},
                                   {"latency_ratio", ratio},
                                   {"latency_spread", 0.01},
                                   {"million_messages_per_s", rate},
                                   {"throughput_spread", 0.02}});
  }
  const auto [text, rows] = report_of({{"all_reduce_n2", small_document()},
                                       {"broadcast_n2", small_document(Collective::broadcast)},
                                       {"all_reduce_n4", small_document(Collective::all_reduce, 4)},
                                       {"mailbox", mailbox}});
  // Fresh and steady rows: over expert 0.5 and 1.6, library (the server) 1/3 and 2, MPI 0.25 twice.
  // At the limit: over expert 0.25 and 0.4, library 0.5/3 and 4/8. A single size gets no value at
  // the limit: if a library is faster there, the limit is wrong. Nor do ranks that share cores.
  for (const char* part :
       {"# Results\n",
        "Some CPU",
        "Linux 6",
        "2026-11-21T00:00:00Z",
        "mpich: missing: not installed",
        "| L2 | 512 KiB | 0 | 123 |",
        "[Notes](results/notes.md)",
        "![all_reduce, 2 ranks](results/all_reduce_n2.png)",
        "[rows.csv](results/rows.csv)",
        "| all_reduce, 2 ranks | 0.50 | 0.33 | 2.00 | 0.89 | 0.82 | 2.83 |",
        "| all-reduce, N = 2, fresh, out of place | best expert | 1.60 (1.05) **not met**; at 64 "
        "KiB; 1 of 2 sizes within; 1 unsteady row left out | 0.89 (0.85) **not met**; limit 0.32 "
        "|\n|  | limit from 32 KiB | 4.00 (1.5) "
        "**not met**; at 64 KiB; 0 of 1 sizes within; 1 unsteady row left out |  |\n|  | limit "
        "from 1 KiB | 4.00 (3) **not met**;",
        "| all-reduce, N = 2, fresh, in place | best expert | not measured (1.05) | not measured "
        "(0.85) |\n|  | best library | not measured (1.05) | not measured (0.5) |",
        "| broadcast, N = 2, fresh | best library | 2.00 (1.05) **not met**; at 64 KiB; 1 of 2 "
        "sizes within; 1 unsteady row left out | 0.82 (0.5) **not met**; limit 0.29 |",
        "| all_gather, N = 2, warm | best library | not measured (1.05) | not measured (0.5) |",
        "| all_gather, N = 2 processes, private buffers, warm | best library | not measured (1.05) "
        "| not measured (0.6) |",
        "| all_reduce, 2 ranks | 64 KiB | rankine | 16.0 | 32.0 | 48.0 | 64.0 | 144 |",
        "| all-reduce, N = 4 sharing cores, fresh | better MPI | 0.25 (1) met; at 8 B; 1 unsteady "
        "row left out | 0.25 (0.333) met |\n|  | best expert | 1.60 (1) **not met**;",
        "| mailbox | one-way latency over the bare line's | 1.10 (1.2) met |  |",
        "the better queue's throughput over its own | 1.20 (1) **not met** |  |",  // moodycamel's
        "| mailbox | 22.0 ±1% | 1.10 | 50.0 ±2% |"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (const char* part :
       {"call,picture,protocol,size,steady,",
        "\"all_reduce, 2 ranks\",all_reduce_n2,fresh,64 KiB,yes,20,22,16.0 ±0%,-,10.0 ±0% "
        "expert_push,8.000 ±0% inference_shm,4.000,1.60,2.00,4.00,-,-,-,-,"
        "16.0 32.0 48.0 64.0 144,8.000 16.0 24.0 32.0 72.0\n",
        "fresh,128 KiB,no,20,200,"}) {
    EXPECT_THAT(rows, HasSubstr(part));
  }
}

TEST(Results, SayWhereTheMachineIsInTheWay) {
  // Three quarters of the best library's 8 us are more than the allowed 0.5. A row without limit
  // has none.
  json document = document_of(Collective::all_reduce, 2,
                              {row_of(8, Protocol::fresh, {8, 8, 16, 64, 0}, 6),
                               row_of(65536, Protocol::fresh, {10, 8, 16, 64, 0}, 6)});
  document["rows"][0]["ratios"].erase("rankine/limit");
  EXPECT_THAT(report_of({{"x", document}}).markdown,
              HasSubstr("| 2.00 (0.5) **not met**, nor at the limit 0.75 |"));
}

TEST(Results, ShowYardsticksAndWrongElements) {
  json document = small_document();
  const std::string rows = report_of({{"x", document}}).rows;
  EXPECT_THAT(rows, Not(HasSubstr(",1.75,")));
  EXPECT_THAT(rows, Not(HasSubstr("WRONG")));
  document["rows"][0]["ratios"]["rankine/exchange"] = 1.75;
  document["rows"][1]["contenders"]["rankine"]["wrong"] = 1;
  const std::string changed = report_of({{"x", document}}).rows;
  EXPECT_THAT(changed, HasSubstr(",2.00,1.75,-,-,-,-,-\n"));
  EXPECT_THAT(changed, HasSubstr(",WRONG,"));
}

TEST(Results, RefuseOtherDocuments) {
  EXPECT_THAT(report_of({{"x", json::array()}}, 2).markdown,
              HasSubstr("allowed are files of documents of rivals or mailbox by name"));
  EXPECT_THAT(report_of({}, 2).markdown, HasSubstr("which has no document"));
  json document = small_document();
  document["rows"][0].erase("steady");
  EXPECT_THAT(report_of({{"x", document}}, 2).markdown, HasSubstr("lacks the field 'steady'"));
}

}  // namespace
}  // namespace rankine::rivals
