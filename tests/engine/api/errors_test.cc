// Refused calls: the text names the argument, its value and the allowed values; no byte moves, and
// the communicator still works. The table of errors in DESIGN.md is tested too.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "numa/system_calls.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

constexpr std::size_t kRoom = 64;  // elements of the buffers of bad calls
constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

struct Buffers {
  std::vector<float> in = std::vector<float>(kRoom, 1.0F), out = std::vector<float>(kRoom, 2.0F);
};

struct BadCall {
  const char* name;
  void (*spoil)(Call&, Buffers&);
  std::vector<std::string> words;  // parts of the error text
};

void PrintTo(const BadCall& bad, std::ostream* out) { *out << bad.name; }

constexpr int kRanks = 3;

class Errors : public testing::TestWithParam<BadCall> {};

TEST_P(Errors, NameTheArgumentAndLeaveEverythingAsItWas) {
  auto team = Team::create({.ranks = kRanks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    Buffers buffers;
    Call call{.in = buffers.in.data(), .out = buffers.out.data(), .count = 10};
    GetParam().spoil(call, buffers);
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Status refused = me.call(call);
      EXPECT_EQ(name_of(refused.code()), name_of(Code::invalid_argument)) << refused.text();
      for (const std::string& word : GetParam().words) {
        EXPECT_NE(refused.text().find(word), std::string::npos)
            << "'" << word << "' is not in: " << refused.text();
      }
      EXPECT_EQ(buffers.in, std::vector<float>(kRoom, 1.0F));
      EXPECT_EQ(buffers.out, std::vector<float>(kRoom, 2.0F));
      const Status fine = me.all_reduce(std::span<const float>(buffers.in).first(5),
                                        std::span<float>(buffers.out).first(5));
      EXPECT_TRUE(fine.ok()) << fine.text();
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(buffers.out[i], 3.0F);
        buffers.out[i] = 2.0F;
      }
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

using testing::Values;

INSTANTIATE_TEST_SUITE_P(
    Arguments, Errors,
    Values(BadCall{"in is null",
                   [](Call& c, Buffers&) { c.in = nullptr; },
                   {"in is null", "40 bytes"}},
           BadCall{"out is null",
                   [](Call& c, Buffers&) { c.out = nullptr; },
                   {"out is null", "40 bytes"}},
           BadCall{"buffers overlap in part",
                   [](Call& c, Buffers& b) { c.in = b.out.data() + 3; },
                   {"overlap", "in (0x", "40 bytes", "in place"}},
           BadCall{"the input of an all-gather in another rank's block",
                   [](Call& c, Buffers& b) {
                     c.collective = Collective::all_gather;
                     c.in = b.out.data() + 5;
                   },
                   {"overlap", "120 bytes"}},
           BadCall{"the output of a reduce-scatter across blocks",
                   [](Call& c, Buffers& b) {
                     c.collective = Collective::reduce_scatter;
                     c.out = b.in.data() + 15;
                   },
                   {"overlap", "120 bytes"}},
           BadCall{"unknown algorithm",
                   [](Call& c, Buffers&) { c.options.algorithm = "sorcery"; },
                   {"algorithm is 'sorcery'", "all_reduce has", "ring", "direct_one_shot"}},
           BadCall{"an algorithm of another collective",
                   [](Call& c, Buffers&) {
                     c.collective = Collective::all_to_all;
                     c.options.algorithm = "direct_one_shot";
                   },
                   {"algorithm is 'direct_one_shot'", "all_to_all has"}},
           BadCall{"root too small",
                   [](Call& c, Buffers&) {
                     c.collective = Collective::broadcast;
                     c.root = -1;
                   },
                   {"root is -1", "0 to 2"}},
           BadCall{"root too large",
                   [](Call& c, Buffers&) {
                     c.collective = Collective::reduce;
                     c.root = kRanks;
                   },
                   {"root is 3", "0 to 2"}},
           BadCall{"peer too large",
                   [](Call& c, Buffers&) {
                     c.collective = Collective::send_recv;
                     c.peer = kRanks;
                   },
                   {"peer is 3", "0 to 2"}},
           BadCall{"no such type",
                   [](Call& c, Buffers&) { c.type = static_cast<DataType>(99); },
                   {"type is 99", "0 to 14"}},
           BadCall{"no such operation",
                   [](Call& c, Buffers&) { c.op = static_cast<ReduceOp>(77); },
                   {"operation is 77", "0 to 7"}},
           BadCall{"no such collective",
                   [](Call& c, Buffers&) { c.collective = static_cast<Collective>(200); },
                   {"collective is 200", "0 to 11"}},
           BadCall{"bits of floats",
                   [](Call& c, Buffers&) { c.op = ReduceOp::bxor; },
                   {"operation is bxor", "f32", "sum, prod, min, max and avg"}},
           BadCall{"bytes overflow",
                   [](Call& c, Buffers&) { c.count = kMost / 2; },
                   {"count is 9223372036854775807", "at most"}},
           BadCall{"bytes of all ranks overflow",
                   [](Call& c, Buffers&) {
                     c.collective = Collective::all_gather;
                     c.count = kMost / 16;
                   },
                   {"count is", "at most"}},
           BadCall{"no such transport",
                   [](Call& c, Buffers&) { c.options.transport = static_cast<Transport>(3); },
                   {"transport is 3", "0 to 2"}},
           BadCall{"a transport that would wrap to the default",
                   [](Call& c, Buffers&) { c.options.transport = static_cast<Transport>(255); },
                   {"transport is 255", "0 to 2"}},
           BadCall{"negative segments",
                   [](Call& c, Buffers&) { c.options.segments = -3; },
                   {"segments is -3", "0 (the default) and more"}},
           BadCall{"a negative group of an algorithm that takes none",
                   [](Call& c, Buffers&) {
                     c.options.algorithm = "ring";
                     c.options.group = -2;
                   },
                   {"group is -2", "0 (the default) and more"}},
           BadCall{"a negative deadline",
                   [](Call& c, Buffers&) { c.options.timeout = std::chrono::milliseconds(-5); },
                   {"timeout is -5 ms", "0"}},
           BadCall{"sizes of nothing",
                   [](Call& c, Buffers&) {
                     static const std::vector<int> kLevels = {2, 0};
                     c.options.levels = kLevels;
                   },
                   {"levels[1] is 0", "1 and more"}},
           BadCall{"too few counts",
                   [](Call& c, Buffers&) {
                     static const std::vector<std::size_t> kCounts = {1, 2};
                     c.collective = Collective::all_gather;
                     c.counts = kCounts;
                   },
                   {"counts has 2 entries", "all_gather", "3 ranks", "needs 3"}},
           BadCall{"counts overflow",
                   [](Call& c, Buffers&) {
                     static const std::vector<std::size_t> kCounts = {1, kMost / 8, 2};
                     c.collective = Collective::all_gather;
                     c.counts = kCounts;
                   },
                   {"counts[1] is"}}));

TEST(ErrorsOfNumbers, WhatAnAlgorithmCannotTakeIsNamed) {
  int refusals = 0;
  for (const int ranks : {3, 5, 6, 7}) {
    auto team = Team::create({.ranks = ranks});
    ASSERT_TRUE(team.ok()) << team.status().text();
    for (const Algorithm& algorithm : catalogue()) {
      Params params;
      params.ranks = ranks;
      CallOptions options{.algorithm = algorithm.name};
      if (algorithm.takes("group")) options.group = params.group = 4;
      if (algorithm.takes("segments")) options.segments = params.segments = 1 << 20;
      if (!algorithm.refusal(params)) continue;
      ++refusals;
      const Status status = (*team)->run([&](Member& me) {
        std::vector<float> in(400, 1.0F), out(400, 2.0F);
        const Status refused = me.call({.collective = algorithm.collective,
                                        .in = in.data(),
                                        .out = out.data(),
                                        .count = 8,
                                        .options = options});
        EXPECT_EQ(name_of(refused.code()), name_of(Code::invalid_argument)) << refused.text();
        EXPECT_NE(refused.text().find(algorithm.name), std::string::npos) << refused.text();
        const bool names_it =
            refused.text().find("group is 4") != std::string::npos ||
            refused.text().find("segments is 1048576") != std::string::npos ||
            refused.text().find("ranks is " + std::to_string(ranks)) != std::string::npos;
        EXPECT_TRUE(names_it) << refused.text();
        EXPECT_EQ(out, std::vector<float>(400, 2.0F));
        EXPECT_TRUE(me.all_reduce(std::span(in)).ok());
      });
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }
  EXPECT_GT(refusals, 0);
}

TEST(ErrorsOfNumbers, TypedCallsWantSizesThatAgree) {
  auto team = Team::create({.ranks = 3});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> ten(10), thirty(30), eleven(11);
    const std::span<const float> in(ten);
    const auto refused = [](const Status& result, const std::string& got,
                            const std::string& wanted) {
      EXPECT_EQ(name_of(result.code()), name_of(Code::invalid_argument));
      EXPECT_NE(result.text().find(got), std::string::npos) << result.text();
      EXPECT_NE(result.text().find(wanted), std::string::npos) << result.text();
    };
    refused(me.all_reduce(in, std::span(eleven)), "out has 11", "10");
    refused(me.all_gather(in, std::span(eleven)), "out has 11", "30");
    refused(me.reduce_scatter(in, std::span(eleven)), "in has 10", "33");
    refused(me.all_to_all(in, std::span(ten)), "in has 10", "9");
    refused(me.all_to_all(std::span<const float>(thirty), std::span(ten)), "out has 10", "30");
    if (me.rank() == 1) {
      refused(me.reduce(in, std::span(eleven), 1), "out has 11", "10");
      refused(me.gather(in, std::span(eleven), 1), "out has 11", "30");
      refused(me.scatter(in, std::span(eleven), 1), "in has 10", "33");
    }
    EXPECT_TRUE(me.all_gather(in, std::span(thirty)).ok());
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(ErrorsOfNumbers, CountsDoNotHideAnImpossibleCount) {
  Ranks all({.ranks = 2});
  const auto results = all.run([](Member& me) {
    const std::vector<std::size_t> counts = {2, 3};
    std::vector<float> in(3), out(5);
    const Call with_counts{
        .collective = Collective::all_gather, .in = in.data(), .out = out.data(), .counts = counts};
    Status fine = me.call(with_counts);
    EXPECT_TRUE(fine.ok()) << fine.text();
    Call impossible = with_counts;
    impossible.counts = {};
    impossible.count = kMost;
    EXPECT_EQ(name_of(me.call(impossible).code()), name_of(Code::invalid_argument));
    return me.call(with_counts);
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(ErrorsOfNumbers, NothingNeedsNoBuffers) {
  for (const Collective collective : all_collectives()) {
    if (collective == Collective::barrier) continue;
    for (const int ranks : {1, 2, 3}) {
      Ranks all({.ranks = ranks});
      const auto results =
          all.run([&](Member& me) { return me.call({.collective = collective, .count = 0}); });
      for (const Status& status : results) {
        EXPECT_TRUE(status.ok()) << name_of(collective) << ": " << status.text();
      }
    }
  }
}

TEST(ErrorsOfCommunicators, RanksTimeoutsAndJoining) {
  const auto text = [](const Status& status) {
    EXPECT_EQ(name_of(status.code()), name_of(Code::invalid_argument));
    return status.text();
  };
  EXPECT_EQ(text(Communicator::create({.ranks = 0}).status()), "ranks is 0; allowed are 1 to 1024");
  EXPECT_EQ(text(Communicator::create({.ranks = 1025}).status()),
            "ranks is 1025; allowed are 1 to 1024");
  const auto network = find_call_network("plain");
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(text(Communicator::create({.ranks = 4097, .network = *network}).status()),
            "ranks is 4097; allowed are 1 to 4096");
  EXPECT_EQ(text(Team::create({.ranks = -1}).status()), "ranks is -1; allowed are 1 to 1024");
  EXPECT_NE(
      text(Communicator::create({.ranks = 2, .timeout = std::chrono::milliseconds(0)}).status())
          .find("timeout is 0 ms"),
      std::string::npos);
  const std::vector<ArenaOptions> arenas(3);
  EXPECT_NE(
      text(Communicator::create({.ranks = 2, .arenas = arenas}).status()).find("arenas has 3"),
      std::string::npos);
  auto communicator = Communicator::create({.ranks = 2});
  ASSERT_TRUE(communicator.ok());
  EXPECT_NE(text((*communicator)->join(2).status()).find("rank is 2"), std::string::npos);
  EXPECT_NE(text((*communicator)->join(-1).status()).find("rank is -1"), std::string::npos);
  auto member = (*communicator)->join(1);
  ASSERT_TRUE(member.ok());
  EXPECT_NE(text((*communicator)->join(1).status()).find("joined"), std::string::npos);
}

TEST(ErrorsOfCommunicators, EveryOptionIsLookedAt) {
  std::vector<ArenaOptions> arenas(2);
  arenas[1].node = -7;
  const std::vector<int> levels = {2, 3};
  const WaitPolicy no_mode{.mode = static_cast<WaitPolicy::Mode>(9)};
  const auto refused = [](const auto& made, const std::string& words) {
    EXPECT_EQ(name_of(made.status().code()), name_of(Code::invalid_argument)) << words;
    EXPECT_NE(made.status().text().find(words), std::string::npos) << made.status().text();
  };
  const auto communicator = [&](const CommunicatorOptions& options, const std::string& words) {
    refused(Communicator::create(options), words);
  };
  communicator({.ranks = 2, .wait = no_mode}, "wait.mode is 9; allowed are 0 to 2");
  communicator({.ranks = 2, .wait = WaitPolicy{.yield_ns = -1}},
               "wait.yield_ns is -1; allowed are 0 and more");
  communicator({.ranks = 2, .wait = WaitPolicy{.spin_ns = -1}},
               "wait.spin_ns is -1; allowed are 0 and more");
  communicator({.ranks = 2, .arenas = arenas},
               "arenas[1].node is -7; allowed are -1 (any) and more");
  communicator({.ranks = 2, .timeout = std::chrono::milliseconds(-1)},
               "timeout is -1 ms; it must be positive");
  communicator({.ranks = 2, .levels = levels}, "levels is 2,3");
  using Kind = PlacementPolicy::Kind;
  const auto team = [&](const TeamOptions& options, const std::string& words) {
    refused(Team::create(options), words);
  };
  team({.ranks = 2, .wait = no_mode}, "wait.mode is 9");
  team({.ranks = 2, .timeout = std::chrono::milliseconds(0)}, "timeout is 0 ms");
  team({.ranks = 2, .placement = {.kind = static_cast<Kind>(9), .cpus = {}}},
       "kind is 9; allowed are 0 to 4");
  team({.ranks = 2, .placement = {.kind = Kind::scatter, .cpus = {0}}}, "CPUs 0 are listed");
}

TEST(ErrorsOfCommunicators, ARankThatThereIsNotHasNoMemory) {
  const auto communicator = Communicator::create({.ranks = 2}).value();
  EXPECT_GT(communicator->memory_of(1).lines.bytes, 0U);
  for (const Rank none : {-1, 2, 100'000, std::numeric_limits<Rank>::min()}) {
    const RankMemory memory = communicator->memory_of(none);
    EXPECT_EQ(memory.lines.bytes + memory.mailboxes.bytes + memory.scratch.bytes, 0U);
    EXPECT_TRUE(memory.lines.ranges.empty());
  }
}

TEST(ErrorsOfCommunicators, AnAbortNeverSaysThatThingsGoOn) {
  for (const Code code : {Code::invalid_argument, Code::ok, static_cast<Code>(77)}) {
    Ranks all({.ranks = 2});
    all.communicator().abort(Status(code, "enough"));
    for (const Status& status : all.run([](Member& me) { return me.barrier(); })) {
      EXPECT_EQ(name_of(status.code()), name_of(Code::aborted)) << static_cast<int>(code);
      EXPECT_EQ(status.text(), "enough");
    }
  }
}

TEST(ErrorsOfPlans, AQuestionIsCheckedLikeACall) {
  Ranks all({.ranks = 2});
  Member& me = *all.members()[0];
  const auto refused = [&](const CallOptions& options, const std::string& words) {
    const auto plan = me.plan_of({.count = 4, .options = options});
    EXPECT_EQ(name_of(plan.status().code()), name_of(Code::invalid_argument)) << words;
    EXPECT_NE(plan.status().text().find(words), std::string::npos) << plan.status().text();
  };
  refused({.timeout = std::chrono::milliseconds(-5)}, "timeout is -5 ms");
  refused({.transport = static_cast<Transport>(255)}, "transport is 255");
  refused({.segments = -1}, "segments is -1");
  EXPECT_TRUE(me.plan_of({.count = 4}).ok());
  const float factor = 2;
  const Call gathered{.collective = Collective::all_gather, .count = 4, .factor = &factor};
  EXPECT_NE(me.plan_of(gathered).status().text().find("factor is given to all_gather"),
            std::string::npos);
  // A call that has been planned before is checked as well.
  refused({.timeout = std::chrono::milliseconds(-5)}, "timeout is -5 ms");
  refused({.transport = static_cast<Transport>(255)}, "transport is 255");
}

TEST(ErrorsOfTeams, AnEmptyFunctionIsRefusedAndTheTeamGoesOn) {
  const auto team = Team::create({.ranks = 2}).value();
  EXPECT_EQ(name_of(team->run({}).code()), name_of(Code::invalid_argument));
  EXPECT_TRUE(team->run([](Member& me) { me.barrier().throw_if_error(); }).ok());
}

struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

TEST(ErrorsAsExceptions, MayHaveNoText) {
  const auto team = Team::create({.ranks = 2}).value();
  const Status status = team->run([](Member& me) {
    if (me.rank() == 1) throw Silent();
    me.barrier().throw_if_error();
  });
  EXPECT_EQ(name_of(status.code()), name_of(Code::remote_error));
  EXPECT_EQ(status.text(), "rank 1 threw: an exception without a text");
  EXPECT_THROW(std::rethrow_exception(team->thrown()), Silent);
}

TEST(NamesOfEnums, AreUnknownWhereThereAreNone) {
  EXPECT_EQ(name_of(static_cast<Transport>(3)), "unknown");
  EXPECT_EQ(name_of(static_cast<DataType>(kDataTypes + 1)), "unknown");
  EXPECT_EQ(name_of(static_cast<ReduceOp>(kReduceOps + 1)), "unknown");
  EXPECT_EQ(name_of(static_cast<Collective>(kCollectives)), "unknown");
}

TEST(ErrorsAsExceptions, HaveTheCodeAndTheText) {
  EXPECT_NO_THROW(Status().throw_if_error());
  try {
    Status(Code::timeout, "no answer").throw_if_error();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {  // callers may know only this class
    EXPECT_STREQ(error.what(), "timeout: no answer");
    EXPECT_EQ(dynamic_cast<const Error&>(error).code(), Code::timeout);
  }
}

TEST(ErrorsAsExceptions, ValuesOrWhyThereIsNone) {
  const Result<int> seven = 7;
  EXPECT_EQ(seven.value(), 7);
  EXPECT_EQ(*Result<std::unique_ptr<int>>(std::make_unique<int>(3)).value(), 3);
  Result<int> none = invalid_argument("x is 1");
  EXPECT_THROW(none.value(), Error);
  EXPECT_THROW(std::move(none).value(), Error);
  try {
    static_cast<void>(Communicator::create({.ranks = 0}).value());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_STREQ(error.what(), "invalid argument: ranks is 0; allowed are 1 to 1024");
  }
}

TEST(ErrorsAsExceptions, ThatLeaveATeamsFunctionEndTheTeam) {
  const auto team = Team::create({.ranks = kRanks}).value();
  const Status status = team->run([](Member& me) {
    std::vector<float> data(8, 1.0F);
    if (me.rank() == 1) {
      me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = "sorcery"}).throw_if_error();
    }
    me.all_reduce(std::span(data)).throw_if_error();
  });
  EXPECT_EQ(name_of(status.code()), name_of(Code::remote_error));
  EXPECT_NE(status.text().find("rank 1 threw: invalid argument: algorithm is 'sorcery'"),
            std::string::npos)
      << status.text();
  EXPECT_THROW(std::rethrow_exception(team->thrown()), Error);
}

}  // namespace

// The table of errors in DESIGN.md is the contract. The table must have every code with the text of
// status.h, and a communicator with the error must behave as the table states.

namespace {

using std::chrono_literals::operator""ms;

struct Row {
  std::string communicator, buffers;
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0;;) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string::npos) return parts;
    from = to + separator.size();
  }
}

// The rows of the table by code. A row may cover several codes.
std::map<std::string, Row> table() {
  std::map<std::string, Row> rows;
  std::ifstream design("engine/DESIGN.md");
  bool inside = false;
  for (std::string line; std::getline(design, line);) {
    if (line.starts_with("| code |")) inside = true;
    if (inside && line.empty()) break;
    if (!inside || line.starts_with("| code |") || line.starts_with("|---")) continue;
    const auto cells = split(line, " | ");
    if (cells.size() != 4) {
      ADD_FAILURE() << "four columns are wanted: " << line;
      continue;
    }
    for (const std::string& code : split(cells[0].substr(2), ", ")) {
      EXPECT_TRUE(rows.emplace(code, Row{cells[2], cells[3]}).second) << code << " stands twice";
    }
  }
  return rows;
}

std::string in_table(Code code) {
  std::string name(name_of(code));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::vector<Code> codes() {
  std::vector<Code> all;
  for (int i = 0; i < 256; ++i) {
    if (name_of(static_cast<Code>(i)) != "unknown") all.push_back(static_cast<Code>(i));
  }
  return all;
}

TEST(Contract, TheTableHasEveryCodeAndSaysWhatTheHeaderSays) {
  auto rows = table();
  EXPECT_EQ(codes().size(), static_cast<std::size_t>(Code::forked) + 1) << "the last one";
  for (const Code code : codes()) {
    if (code == Code::ok) continue;
    const auto found = rows.find(in_table(code));
    ASSERT_NE(found, rows.end()) << in_table(code) << " is missing";
    const auto& [communicator, buffers] = found->second;
    EXPECT_EQ(communicator.starts_with("goes on"), goes_on(code)) << communicator;
    EXPECT_EQ(communicator.starts_with("finished"), !goes_on(code)) << communicator;
    EXPECT_NE(buffers.starts_with("untouched"), buffers.starts_with("outputs undefined"))
        << buffers;
    rows.erase(found);
  }
  EXPECT_TRUE(rows.empty()) << rows.begin()->first << " is no code";
}

constexpr std::size_t kCount = 6'000;

// A rank's buffers, between guards.
struct Guarded {
  static constexpr std::size_t kGuard = 64;
  static constexpr std::uint32_t kMark = 0xdeadbeef;
  std::vector<std::uint32_t> in = std::vector<std::uint32_t>(kCount, 7);
  std::vector<std::uint32_t> whole = std::vector<std::uint32_t>(kCount + 2 * kGuard, kMark);

  Call call() {
    return {.in = in.data(),
            .out = whole.data() + kGuard,
            .count = kCount,
            .type = DataType::u32,
            .options = {.transport = Transport::mailbox}};  // needs mailbox memory
  }
  void expect(const Row& row) const {
    EXPECT_EQ(std::count(in.begin(), in.end(), 7u), static_cast<long>(kCount)) << "inputs";
    const auto marked = [this](std::size_t from, std::size_t count) {
      const auto first = whole.begin() + static_cast<long>(from);
      return std::count(first, first + static_cast<long>(count), kMark) == static_cast<long>(count);
    };
    EXPECT_TRUE(marked(0, kGuard) && marked(kGuard + kCount, kGuard)) << "past an end";
    if (row.buffers.starts_with("untouched")) {
      EXPECT_TRUE(marked(kGuard, kCount)) << "touched";
    }
  }
};

struct Case {
  Code code;
  // The last rank runs this instead of the call that all other ranks make.
  Status (*last_rank)(Member&, Ranks&, Guarded&);
};

void PrintTo(const Case& one, std::ostream* out) { *out << name_of(one.code); }

class Kept : public testing::TestWithParam<Case> {};

TEST_P(Kept, ByTheCommunicatorAndItsBuffers) {
  const Code code = GetParam().code;
  const Row row = table()[in_table(code)];
  Ranks all({.ranks = kRanks, .timeout = code == Code::timeout ? 200ms : 60'000ms});
  std::vector<Guarded> buffers(kRanks);
  // The seam is set before the ranks start and reset after they end, because it may not change
  // while threads use it.
  SystemCalls calls = real_system_calls();
  if (code == Code::out_of_memory) {
    calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
      errno = ENOMEM;
      return MAP_FAILED;
    };
  }
  std::optional<ScopedSystemCalls> scope(calls);
  const auto results = all.run([&](Member& me) {
    Guarded& mine = buffers[static_cast<std::size_t>(me.rank())];
    // If the error concerns only the caller, the other ranks make no call.
    if (me.rank() != kRanks - 1 && goes_on(code)) return Status(code, "");
    if (me.rank() != kRanks - 1) return me.call(mine.call());
    return GetParam().last_rank(me, all, mine);
  });
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(code)) << status.text();
  }
  scope.reset();
  for (const Guarded& mine : buffers) mine.expect(row);

  EXPECT_EQ(all.communicator().health().ok(), row.communicator.starts_with("goes on"));
  const auto next = all.run([](Member& me) { return me.barrier(); });
  for (std::size_t r = 0; r < next.size(); ++r) {
    if (all.members()[r] == nullptr) continue;
    EXPECT_EQ(name_of(next[r].code()), name_of(goes_on(code) ? Code::ok : code)) << next[r].text();
  }
  Ranks fresh({.ranks = kRanks});
  for (const Status& status : fresh.run([](Member& me) { return me.barrier(); })) {
    EXPECT_TRUE(status.ok()) << "a new one: " << status.text();
  }
}

Status when_over(const Communicator& communicator) {
  while (communicator.health().ok()) std::this_thread::yield();
  return communicator.health();
}

INSTANTIATE_TEST_SUITE_P(
    Codes, Kept,
    testing::Values(Case{Code::invalid_argument,
                         [](Member& me, Ranks&, Guarded& mine) {
                           Call call = mine.call();
                           call.options.algorithm = "sorcery";
                           return me.call(call);
                         }},
                    Case{Code::mismatch,
                         [](Member& me, Ranks&, Guarded& mine) {
                           Call call = mine.call();
                           call.op = ReduceOp::max;
                           return me.call(call);
                         }},
                    Case{Code::timeout, [](Member&, Ranks& all,
                                           Guarded&) { return when_over(all.communicator()); }},
                    Case{Code::rank_lost,
                         [](Member& me, Ranks& all, Guarded&) {
                           all.drop(me.rank());
                           return when_over(all.communicator());
                         }},
                    Case{Code::remote_error,
                         [](Member&, Ranks& all, Guarded&) {
                           all.communicator().abort(
                               Status(Code::remote_error, "rank 2 threw: out of luck"));
                           return all.communicator().health();
                         }},
                    Case{Code::aborted,
                         [](Member&, Ranks& all, Guarded&) {
                           all.communicator().abort("enough");
                           return all.communicator().health();
                         }},
                    Case{Code::out_of_memory, [](Member& me, Ranks&, Guarded& mine) {
                           return me.call(mine.call());  // all ranks call, and no rank gets memory
                         }}));

// plan_of() fails for lack of memory; the communicator can still make other calls.
TEST(Contract, AQuestionEndsNothing) {
  Ranks all({.ranks = kRanks});
  std::vector<Guarded> buffers(kRanks);
  const auto ask = [&](Member& me) {
    return me.plan_of(buffers[static_cast<std::size_t>(me.rank())].call()).status();
  };
  SystemCalls calls = real_system_calls();
  calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
    errno = ENOMEM;
    return MAP_FAILED;
  };
  std::optional<ScopedSystemCalls> scope(calls);
  for (const Status& status : all.run(ask))
    EXPECT_EQ(name_of(status.code()), name_of(Code::out_of_memory)) << status.text();
  EXPECT_TRUE(all.communicator().health().ok());
  scope.reset();
  for (const Status& status : all.run(ask)) EXPECT_TRUE(status.ok()) << status.text();
  for (const Status& status : all.run([&](Member& me) {
         return me.call(buffers[static_cast<std::size_t>(me.rank())].call());
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(Contract, AForkedChildIsToldAndItsParentGoesOn) {
  ASSERT_TRUE(table()["forked"].communicator.starts_with("finished in the child"));
  Ranks all({.ranks = 2});
  const pid_t child = fork();
  if (child == 0) {
    Guarded mine;
    const Status status = all.members()[0]->call(mine.call());
    mine.expect(table()["forked"]);
    _exit(status.code() == Code::forked && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const Status& each : all.run([](Member& me) { return me.barrier(); })) {
    EXPECT_TRUE(each.ok()) << each.text();
  }
}

}  // namespace
}  // namespace rankine
