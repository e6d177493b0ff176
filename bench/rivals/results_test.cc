// Tests documents, ratios, verdicts and the report.
#include "bench/rivals/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/rivals/document.h"

namespace rankine::rivals {
namespace {

using nlohmann::json;
using testing::ElementsAre;
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
    if (time > 0) row.cells.back().us.assign(3, time);
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

TEST(Results, OfProcessesStandBesideThoseOfThreads) {
  const std::vector<Source> sources = {{"threads", small_document()},
                                       {"processes", processes_document()}};
  const std::string text = results_markdown(sources, "results"), rows = rows_csv(sources);
  EXPECT_THAT(text, HasSubstr("| all_reduce, 2 ranks | 0.50 | 0.33 | 2.00 | 0.89 |"));
  EXPECT_THAT(text, HasSubstr("| all_reduce, 2 processes | - | - | - | - | 0.50 |"));
  EXPECT_THAT(rows, HasSubstr(",rankine (us),rankine_shared (us),best expert,"));
  EXPECT_THAT(rows, HasSubstr(",2.000 ±0%,1.000 ±0%,-,4.000 ±0% mpich,0.500,"));
  EXPECT_THAT(rows, HasSubstr(",4.000 ±0%,1.000 ±0%,-,8.000 ±0% vllm_shm,0.500,"));
  const auto reached = [](const std::vector<Source>& all, const std::string& target) {
    for (const Verdict& verdict : verdicts(all))
      if (verdict.target == target) return verdict.reached;
    ADD_FAILURE() << target;
    return std::optional<double>();
  };
  const std::string worst = "best library, worst size";
  const std::string of_processes = "all-reduce, N = 2 processes, fresh, ";
  EXPECT_EQ(reached(sources, of_processes + "private buffers: " + worst), 0.5);
  EXPECT_EQ(reached(sources, of_processes + "shared: " + worst), 0.25);
  // The verdicts of the threads come from the documents of threads.
  const std::string of_threads = "all-reduce, N = 2, fresh, out of place: " + worst;
  EXPECT_EQ(reached(sources, of_threads), reached({sources[0]}, of_threads));
  EXPECT_EQ(reached({sources[1]}, of_threads), std::nullopt);
  EXPECT_EQ(reached({sources[0]}, of_processes + "shared: " + worst), std::nullopt);
}

TEST(Results, TheLimitInPlaceOfSharedPayloads) {
  const Ratios limits = limit_ratios_of(processes_document(), "fresh", "shared/library");
  ASSERT_EQ(limits.values.size(), 2u);
  EXPECT_DOUBLE_EQ(limits.values[0], 0.5 / 4);
  EXPECT_DOUBLE_EQ(limits.values[1], 0.5 / 8);
}

TEST(Results, LeaveUnsteadyRowsOut) {
  const Ratios ratios = ratios_of(small_document(), "fresh", "rankine/mpi");
  EXPECT_THAT(ratios.values, ElementsAre(0.25, 0.25));
  EXPECT_THAT(ratios.sizes, ElementsAre(8u, 65536u));
  EXPECT_EQ(ratios.unsteady, 1);
  const Ratios large = ratios_of(small_document(), "fresh", "rankine/limit", 32768);
  EXPECT_THAT(large.values, ElementsAre(4.0));
  const Ratios expert = ratios_of(small_document(), "fresh", "rankine/expert");  // 0.5 and 1.6
  EXPECT_DOUBLE_EQ(expert.geometric_mean(), std::sqrt(0.8));
  EXPECT_EQ(expert.worst(), 1u);
}

TEST(Results, TellWhatTheLimitWouldReach) {
  // The best library takes 3 and 8 us (the server): 0.5/3 and 4/8.
  const Ratios limits = limit_ratios_of(small_document(), "fresh", "rankine/library");
  ASSERT_EQ(limits.values.size(), 2u);
  EXPECT_DOUBLE_EQ(limits.values[0], 0.5 / 3);
  EXPECT_DOUBLE_EQ(limits.values[1], 0.5);
  EXPECT_EQ(limits.unsteady, 1);
  EXPECT_THAT(limit_ratios_of(small_document(), "fresh", "rankine/library", 32768).values,
              ElementsAre(0.5));
  json no_limit = small_document();
  no_limit["rows"][1]["ratios"].erase("rankine/limit");
  EXPECT_THAT(limit_ratios_of(no_limit, "fresh", "rankine/library").values, ElementsAre(0.5));
  EXPECT_EQ(ratios_of(no_limit, "fresh", "rankine/library").values.size(), 2u);
}

Verdict verdict_named(const std::vector<Verdict>& all, const std::string& part) {
  Verdict found;
  int times = 0;
  for (const Verdict& verdict : all) {
    if (verdict.target.find(part) == std::string::npos) continue;
    found = verdict;
    ++times;
  }
  EXPECT_EQ(times, 1) << part;
  return found;
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
  const std::vector<Source> sources = {{"all_reduce_n2", small_document()},
                                       {"broadcast_n2", small_document(Collective::broadcast)},
                                       {"all_reduce_n4", small_document(Collective::all_reduce, 4)},
                                       {"mailbox", mailbox}};
  const std::vector<Verdict> all = verdicts(sources);
  const Verdict expert = verdict_named(all, "out of place: best expert, worst");
  EXPECT_EQ(expert.reached, 1.6);
  EXPECT_EQ(expert.allowed, 1.05);
  EXPECT_FALSE(expert.met());
  EXPECT_EQ(expert.remark, "at 64 KiB; 1 of 2 sizes within; 1 unsteady row left out");
  EXPECT_EQ(verdict_named(all, "out of place: best library, worst").reached, 2);
  EXPECT_EQ(verdict_named(all, "out of place: limit from 32 KiB").reached, 4);
  // A single size gets no value at the limit: if a library is faster there, the limit is wrong.
  EXPECT_FALSE(verdict_named(all, "out of place: best library, worst").at_limit.has_value());
  const Verdict library = verdict_named(all, "out of place: best library, geometric mean");
  EXPECT_DOUBLE_EQ(*library.at_limit, std::sqrt(0.5 / 3 * 0.5));  // 0.29; allowed is 0.4
  EXPECT_FALSE(library.beyond_limit());
  EXPECT_FALSE(verdict_named(all, ", in place: best library, geometric").at_limit.has_value());
  EXPECT_FALSE(
      verdict_named(all, "N = 4 sharing cores, fresh: better MPI, geometric mean").at_limit);
  EXPECT_FALSE(
      verdict_named(all, ", in place: best expert, geometric mean").met());  // not measured
  EXPECT_TRUE(verdict_named(all, "broadcast, N = 2, warm: better MPI, geometric mean").met());
  EXPECT_FALSE(verdict_named(all, "all_gather, N = 2, warm: better MPI, geometric mean")
                   .reached.has_value());
  EXPECT_TRUE(verdict_named(all, "N = 4 sharing cores, fresh: better MPI, geometric mean").met());
  EXPECT_FALSE(verdict_named(all, "N = 4 sharing cores, fresh: best expert").met());
  EXPECT_EQ(verdict_named(all, "one-way latency").reached, 1.1);
  EXPECT_TRUE(verdict_named(all, "one-way latency").met());
  EXPECT_DOUBLE_EQ(*verdict_named(all, "throughput").reached, 1.2);  // moodycamel's is higher
  EXPECT_FALSE(verdict_named(all, "throughput").met());

  const std::string text = results_markdown(sources, "results");
  for (const char* part :
       {"# Results\n", "Some CPU", "Linux 6", "2026-11-21T00:00:00Z",
        "mpich: missing: not installed", "| L2 | 512 KiB | 0 | 123 |", "[Notes](results/notes.md)",
        "![all_reduce, 2 ranks](results/all_reduce_n2.png)", "[rows.csv](results/rows.csv)",
        "| all_reduce, 2 ranks | 0.50 | 0.33 | 2.00 | 0.89 | 0.82 | 2.83 |",
        "best library | 2.00 (1) **not met**; at 64 KiB", "| 0.82 (0.4) **not met**; limit 0.29 |",
        "| mailbox | 22.0 ±1% | 1.10 | 50.0 ±2% |", "**not met**", "not measured"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const std::string rows = rows_csv(sources);
  for (const char* part :
       {"call,picture,protocol,size,steady,",
        "\"all_reduce, 2 ranks\",all_reduce_n2,fresh,64 KiB,yes,20,22,16.0 ±0%,-,10.0 ±0% "
        "expert_push,8.000 ±0% inference_shm,4.000,1.60,2.00,4.00,-,-,-,-\n",
        "fresh,128 KiB,no,20,200,"}) {
    EXPECT_THAT(rows, HasSubstr(part));
  }
}

TEST(Results, SayWhereTheMachineIsInTheWay) {
  // Half of the best library's 8 us is more than the allowed 0.4.
  const json document = document_of(Collective::all_reduce, 2,
                                    {row_of(65536, Protocol::fresh, {10, 8, 16, 64, 0}, 4)});
  const Verdict verdict =
      verdict_named(verdicts({{"x", document}}), "out of place: best library, geometric mean");
  EXPECT_DOUBLE_EQ(*verdict.at_limit, 0.5);
  EXPECT_TRUE(verdict.beyond_limit());
  EXPECT_THAT(results_markdown({{"x", document}}, "results"),
              HasSubstr("| 2.00 (0.4) **not met**, nor at the limit 0.50 |"));
}

TEST(Results, ShowYardsticks) {
  json document = small_document();
  EXPECT_THAT(rows_csv({{"x", document}}), Not(HasSubstr(",1.75,")));
  document["rows"][0]["ratios"]["rankine/exchange"] = 1.75;
  EXPECT_THAT(rows_csv({{"x", document}}), HasSubstr(",2.00,1.75,-,-,-\n"));
}

TEST(Results, ShowWrongElements) {
  json document = small_document();
  EXPECT_THAT(rows_csv({{"x", document}}), Not(HasSubstr("WRONG")));
  document["rows"][0]["contenders"]["rankine"]["wrong"] = 1;
  EXPECT_THAT(rows_csv({{"x", document}}), HasSubstr(",WRONG,"));
}

}  // namespace
}  // namespace rankine::rivals
