// Refused calls and options: the text names the argument, its value and the allowed values; no byte
// moves, and the communicator still works. The table of errors in DESIGN.md is tested too.

#include <sys/mman.h>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "numa/system_calls.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr int kRanks = 3;

struct BadCall {
  Call call;
  std::vector<std::string> words;  // parts of the error text
};

// The one table of refused calls; the fault table has them for every collective (fault 10).
TEST(Errors, NameTheArgumentAndLeaveEverythingAsItWas) {
  using enum Collective;
  using std::chrono::milliseconds;
  const std::vector<float> ones(64, 1.0F);
  std::vector<float> unchanged(64, 2.0F);
  const float* const in = ones.data();
  float* const out = unchanged.data();
  const std::vector<int> levels = {2, 0};
  const std::vector<std::size_t> two = {1, 2}, many = {1, kMost / 8, 2};
  const auto with = [&](const CallOptions& options) {
    return Call{.in = in, .out = out, .count = 10, .options = options};
  };
  const BadCall bad_calls[] = {
      {{.out = out, .count = 10}, {"in is null", "40 bytes"}},
      {{.in = in, .count = 10}, {"out is null", "40 bytes"}},
      {{.in = out + 3, .out = out, .count = 10}, {"overlap", "in (0x", "40 bytes", "in place"}},
      // The input in another rank's block, and the output across blocks.
      {{.collective = all_gather, .in = out + 5, .out = out, .count = 10},
       {"overlap", "120 bytes"}},
      {{.collective = reduce_scatter, .in = out, .out = out + 15, .count = 10},
       {"overlap", "120 bytes"}},
      {with({.algorithm = "sorcery"}),
       {"algorithm is 'sorcery'", "all_reduce has", "ring", "direct_one_shot"}},
      {{.collective = all_to_all,
        .in = in,
        .out = out,
        .count = 3,
        .options = {.algorithm = "direct_one_shot"}},
       {"algorithm is 'direct_one_shot'", "all_to_all has"}},
      {{.collective = broadcast, .in = in, .out = out, .count = 10, .root = -1},
       {"root is -1", "0 to 2"}},
      {{.collective = reduce, .in = in, .out = out, .count = 10, .root = kRanks},
       {"root is 3", "0 to 2"}},
      {{.collective = send_recv, .in = in, .out = out, .count = 10, .peer = kRanks},
       {"peer is 3", "0 to 2"}},
      {{.in = in, .out = out, .count = 10, .type = static_cast<DataType>(99)},
       {"type is 99", "0 to 14"}},
      {{.in = in, .out = out, .count = 10, .op = static_cast<ReduceOp>(77)},
       {"operation is 77", "0 to 7"}},
      {{.collective = static_cast<Collective>(200), .in = in, .out = out, .count = 10},
       {"collective is 200", "0 to 11"}},
      {{.in = in, .out = out, .count = 10, .op = ReduceOp::bxor},
       {"operation is bxor", "f32", "sum, prod, min, max and avg"}},
      {{.in = in, .out = out, .count = kMost / 2},
       {"count is 9223372036854775807", "allowed are 0 to"}},
      {{.collective = all_gather, .in = in, .out = out, .count = kMost / 16},
       {"count is", "allowed are 0 to"}},
      {with({.transport = static_cast<Transport>(3)}), {"transport is 3", "0 to 2"}},
      {with({.transport = static_cast<Transport>(255)}), {"transport is 255", "0 to 2"}},
      {with({.segments = -3}), {"segments is -3", "0 (the default) and more"}},
      {with({.algorithm = "ring", .group = -2}), {"group is -2", "0 (the default) and more"}},
      {with({.timeout = milliseconds(-5)}), {"timeout is -5 ms", "0"}},
      {with({.levels = levels}), {"levels[1] is 0", "1 and more"}},
      {{.collective = all_gather, .in = in, .out = out, .counts = two},
       {"counts has 2 entries", "all_gather", "3 ranks"}},
      {{.collective = all_gather, .in = in, .out = out, .counts = many}, {"counts[1] is"}},
  };
  expect_team_succeeds({.ranks = kRanks}, [&](Member& me) {
    for (const auto& [call, words] : bad_calls) {
      for (int attempt = 0; attempt < 2; ++attempt) {
        expect_refused(me.call(call), words);
        std::vector<float> sum(5);
        me.all_reduce(std::span(in, 5), std::span(sum)).throw_if_error();
        EXPECT_EQ(sum, std::vector<float>(5, 3.0F));
      }
    }
  });
  EXPECT_EQ(ones, std::vector<float>(64, 1.0F));
  EXPECT_EQ(unchanged, std::vector<float>(64, 2.0F));
}

TEST(ErrorsOfNumbers, ThatAnAlgorithmCannotTakeAreNamed) {
  int refusals = 0;
  for (const int ranks : {3, 6}) {
    expect_team_succeeds({.ranks = ranks}, [&](Member& me) {
      for (const Algorithm& algorithm : catalogue()) {
        Params params{.ranks = ranks};
        CallOptions options{.algorithm = algorithm.name};
        if (algorithm.takes("group")) options.group = params.group = 4;
        if (algorithm.takes("segments")) options.segments = params.segments = 1 << 20;
        if (!algorithm.refusal(params)) continue;
        if (me.rank() == 0) ++refusals;
        std::vector<float> in(400, 1.0F), out(400, 2.0F);
        const Status refused = me.call({.collective = algorithm.collective,
                                        .in = in.data(),
                                        .out = out.data(),
                                        .count = 8,
                                        .options = options});
        expect_refused(refused, {std::string(algorithm.name)});
        const auto has = [&](const std::string& word) {
          return refused.text().find(word) != std::string::npos;
        };
        EXPECT_TRUE(has("group is 4") || has("segments is 1048576") ||
                    has("ranks is " + std::to_string(ranks)))
            << refused.text();
        EXPECT_EQ(out, std::vector<float>(400, 2.0F));
      }
      me.barrier().throw_if_error();
    });
  }
  EXPECT_GT(refusals, 0);
}

TEST(ErrorsOfNumbers, TypedCallsWantSizesThatAgree) {
  expect_team_succeeds({.ranks = 3}, [](Member& me) {
    std::vector<float> ten(10), thirty(30), eleven(11);
    const std::span<const float> in(ten);
    expect_refused(me.all_reduce(in, std::span(eleven)), {"out has 11", "10"});
    expect_refused(me.all_gather(in, std::span(eleven)), {"out has 11", "30"});
    expect_refused(me.reduce_scatter(in, std::span(eleven)), {"in has 10", "33"});
    expect_refused(me.all_to_all(in, std::span(ten)), {"in has 10", "9"});
    expect_refused(me.all_to_all(std::span<const float>(thirty), std::span(ten)),
                   {"out has 10", "30"});
    const std::vector<std::size_t> counts = {10, 10, 11};
    expect_refused(me.with_counts(Collective::all_gather, in, std::span(thirty), counts),
                   {me.rank() == 2 ? "in has 10" : "out has 30"});
    if (me.rank() == 1) {
      expect_refused(me.reduce(in, std::span(eleven), 1), {"out has 11", "10"});
      expect_refused(me.gather(in, std::span(eleven), 1), {"out has 11", "30"});
      expect_refused(me.scatter(in, std::span(eleven), 1), {"in has 10", "33"});
    }
    me.all_gather(in, std::span(thirty)).throw_if_error();
  });
}

TEST(ErrorsOfNumbers, NothingNeedsNoBuffers) {
  for (const int ranks : {1, 3}) {
    expect_ranks_succeed({.ranks = ranks}, [&](Member& me) {
      for (const Collective collective : all_collectives()) {
        if (collective == Collective::barrier) continue;
        if (Status status = me.call({.collective = collective}); !status.ok()) return status;
      }
      return Status();
    });
  }
}

// --- Options of communicators and teams

struct Refused {
  CommunicatorOptions options;
  std::string words;
};

TEST(ErrorsOfCommunicators, EveryOptionIsLookedAt) {
  using std::chrono::milliseconds;
  std::vector<ArenaOptions> arenas(2), three(3);
  arenas[1].node = -7;
  const std::vector<int> levels = {2, 3}, too_large = {2, 16};
  const WaitPolicy no_mode{.mode = static_cast<WaitPolicy::Mode>(9)};
  const auto network = find_call_network("plain").value();
  for (const auto& [options, words] : std::vector<Refused>{
           {{.ranks = 0}, "ranks is 0; allowed are 1 to 1024"},
           {{.ranks = 1025}, "ranks is 1025; allowed are 1 to 1024"},
           {{.ranks = 4097, .network = network}, "ranks is 4097; allowed are 1 to 4096"},
           {{.ranks = 2, .arenas = three}, "arenas has 3"},
           {{.ranks = 2, .arenas = arenas}, "arenas[1].node is -7; allowed are -1 (any) and more"},
           {{.ranks = 2, .timeout = milliseconds(0)}, "timeout is 0 ms"},
           {{.ranks = 2, .timeout = milliseconds(-1)}, "timeout is -1 ms"},
           {{.ranks = 2, .wait = no_mode}, "wait.mode is 9; allowed are 0 to 2"},
           {{.ranks = 2, .wait = WaitPolicy{.yield_ns = -1}},
            "wait.yield_ns is -1; allowed are 0 and more"},
           {{.ranks = 2, .wait = WaitPolicy{.spin_ns = -1}},
            "wait.spin_ns is -1; allowed are 0 and more"},
           {{.ranks = 2, .levels = levels}, "levels is 2,3"},
           {{.ranks = 8, .levels = too_large}, "allowed are sizes of groups from 1 to 8"},
           {{.ranks = 2, .order = static_cast<Order>(6)}, "order is 6; allowed are 0 to 5"},
           {{.ranks = 2, .plan_bytes = 0}, "plan_bytes is 0"},
           {{.ranks = 1, .progress_core = -1}, "progress_core is -1; allowed are 0 and more"},
           {{.ranks = 1, .progress_core = 1'000'000},
            "progress_core is 1000000: thread not pinned to CPU"},
           {{.ranks = 2, .ports = -1}, "ports is -1; allowed are 0 (no budget) and more"},
           {{.ranks = 2, .network = network, .ports = 1}, "ports is 1, and network has its own"},
       }) {
    expect_refused(Communicator::create(options).status(), {words});
  }
  using Kind = PlacementPolicy::Kind;
  const auto team = [&](const TeamOptions& options, const std::string& words) {
    expect_refused(Team::create(options).status(), {words});
  };
  team({.ranks = -1}, "ranks is -1; allowed are 1 to 1024");
  team({.ranks = 2, .timeout = milliseconds(0)}, "timeout is 0 ms");
  team({.ranks = 2, .wait = no_mode}, "wait.mode is 9");
  team({.ranks = 2, .placement = {.kind = static_cast<Kind>(9), .cpus = {}}},
       "kind is 9; allowed are 0 to 4");
  team({.ranks = 2, .placement = {.kind = Kind::scatter, .cpus = {0}}}, "CPUs 0 are listed");
  team({.ranks = 1, .progress_core = -1}, "progress_core is -1");
}

TEST(ErrorsOfCommunicators, ARankJoinsOnceAndOnlyKnownRanksHaveMemory) {
  const auto communicator = Communicator::create({.ranks = 2}).value();
  const auto member = communicator->join(1).value();
  expect_refused(communicator->join(1).status(), {"joined"});
  for (const Rank none : {-1, 2, 100'000, std::numeric_limits<Rank>::min()}) {
    expect_refused(communicator->join(none).status(), {"rank is " + std::to_string(none)});
    const RankMemory memory = communicator->memory_of(none);
    EXPECT_EQ(memory.lines.bytes + memory.mailboxes.bytes + memory.scratch.bytes, 0U);
    EXPECT_TRUE(memory.lines.ranges.empty());
  }
}

TEST(ErrorsOfCommunicators, AnAbortNeverSaysThatThingsGoOn) {
  for (const Code code : {Code::invalid_argument, Code::ok, static_cast<Code>(77)}) {
    Ranks all({.ranks = 2});
    all.communicator().abort(Status(code, "enough"));
    expect_all(all.run([](Member& me) { return me.barrier(); }), Code::aborted, {"enough"});
  }
}

TEST(ErrorsOfPlans, AQuestionIsCheckedLikeACall) {
  Ranks all({.ranks = 2});
  Member& me = *all.members()[0];
  const float factor = 2;
  for (int twice = 0; twice < 2; ++twice) {  // also if a good call has been planned before
    for (const auto& [options, words] : std::vector<std::pair<CallOptions, std::string>>{
             {{.timeout = std::chrono::milliseconds(-5)}, "timeout is -5 ms"},
             {{.transport = static_cast<Transport>(255)}, "transport is 255"},
             {{.segments = -1}, "segments is -1"}}) {
      expect_refused(me.plan_of({.count = 4, .options = options}).status(), {words});
    }
    expect_refused(
        me.plan_of({.collective = Collective::all_gather, .count = 4, .factor = &factor}).status(),
        {"factor is given to all_gather"});
    EXPECT_TRUE(me.plan_of({.count = 4}).ok());
  }
}

// --- Exceptions

struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

TEST(ErrorsAsExceptions, ThatLeaveATeamsFunctionEndTheTeam) {
  const auto expect_thrown = [](const auto& thrown, const std::string& text) {
    const auto team = Team::create({.ranks = 2}).value();
    EXPECT_EQ(name_of(team->run({}).code()), name_of(Code::invalid_argument)) << "no function";
    const Status status = team->run([&](Member& me) {
      if (me.rank() == 1) throw thrown;
      me.barrier().throw_if_error();
    });
    EXPECT_EQ(name_of(status.code()), name_of(Code::remote_error));
    EXPECT_EQ(status.text(), text);
    EXPECT_THROW(std::rethrow_exception(team->thrown()), std::decay_t<decltype(thrown)>);
    EXPECT_EQ(team->run([](Member&) {}).text(), text);
  };
  expect_thrown(Silent(), "rank 1 threw: an exception without a text");
  expect_thrown(Error(Code::invalid_argument, "x is 1"), "rank 1 threw: invalid argument: x is 1");
}

TEST(ErrorsAsExceptions, HaveTheCodeAndTheText) {
  EXPECT_NO_THROW(Status().throw_if_error());
  EXPECT_EQ(*Result<std::unique_ptr<int>>(std::make_unique<int>(3)).value(), 3);
  EXPECT_THROW(static_cast<void>(Result<int>(invalid_argument("x is 1")).value()), Error);
  try {
    static_cast<void>(Communicator::create({.ranks = 0}).value());
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {  // callers may know only this class
    EXPECT_STREQ(error.what(), "invalid argument: ranks is 0; allowed are 1 to 1024");
    EXPECT_EQ(dynamic_cast<const Error&>(error).code(), Code::invalid_argument);
  }
}

// The table of errors in DESIGN.md is the contract. The table must have every code with the text of
// status.h, and a communicator with the error must behave as the table states.

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

// A call that needs mailbox memory.
const CollectiveCase kCall{.ranks = kRanks,
                           .count = 6'000,
                           .type = DataType::u32,
                           .options = {.transport = Transport::mailbox}};

// A failed call leaves the buffers as the row says.
void expect_kept(const CaseBuffers& buffers, const Row& row) {
  EXPECT_EQ(
      row.buffers.starts_with("untouched") ? buffers.check_untouched() : buffers.check_around(),
      "");
}

std::vector<CaseBuffers> filled_buffers() {
  std::vector<CaseBuffers> buffers(kRanks);
  for (Rank r = 0; r < kRanks; ++r) buffers[static_cast<std::size_t>(r)].fill(kCall, r);
  return buffers;
}

SystemCalls calls_without_memory() {
  SystemCalls calls = real_system_calls();
  calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
    errno = ENOMEM;
    return MAP_FAILED;
  };
  return calls;
}

struct Case {
  Code code;
  // The last rank runs this instead of the call that all other ranks make.
  Status (*last_rank)(Member&, Ranks&, CaseBuffers&);
};

void PrintTo(const Case& one, std::ostream* out) { *out << name_of(one.code); }

class Kept : public testing::TestWithParam<Case> {};

TEST_P(Kept, ByTheCommunicatorAndItsBuffers) {
  const Code code = GetParam().code;
  const Row row = table()[in_table(code)];
  Ranks all({.ranks = kRanks, .timeout = code == Code::timeout ? 200ms : 60'000ms});
  std::vector<CaseBuffers> buffers = filled_buffers();
  // The seam is set before the ranks start and reset after they end, because it may not change
  // while threads use it.
  std::optional<ScopedSystemCalls> scope;
  if (code == Code::out_of_memory) scope.emplace(calls_without_memory());
  const auto results = all.run([&](Member& me) {
    CaseBuffers& mine = buffers[static_cast<std::size_t>(me.rank())];
    // If the error concerns only the caller, the other ranks make no call.
    if (me.rank() != kRanks - 1 && goes_on(code)) return Status(code, "");
    if (me.rank() != kRanks - 1) return me.call(call_of(kCall, mine));
    return GetParam().last_rank(me, all, mine);
  });
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(code)) << status.text();
  }
  scope.reset();
  for (const CaseBuffers& mine : buffers) expect_kept(mine, row);

  EXPECT_EQ(all.communicator().health().ok(), row.communicator.starts_with("goes on"));
  const auto next = all.run([](Member& me) { return me.barrier(); });
  for (std::size_t r = 0; r < next.size(); ++r) {
    if (all.members()[r] == nullptr) continue;
    EXPECT_EQ(name_of(next[r].code()), name_of(goes_on(code) ? Code::ok : code)) << next[r].text();
  }
  expect_ranks_succeed({.ranks = kRanks}, [](Member& me) { return me.barrier(); });
}

INSTANTIATE_TEST_SUITE_P(
    Codes, Kept,
    testing::Values(Case{Code::invalid_argument,
                         [](Member& me, Ranks&, CaseBuffers& mine) {
                           Call call = call_of(kCall, mine);
                           call.options.algorithm = "sorcery";
                           return me.call(call);
                         }},
                    Case{Code::mismatch,
                         [](Member& me, Ranks&, CaseBuffers& mine) {
                           Call call = call_of(kCall, mine);
                           call.op = ReduceOp::max;
                           return me.call(call);
                         }},
                    Case{Code::timeout, [](Member&, Ranks& all,
                                           CaseBuffers&) { return when_over(all.communicator()); }},
                    Case{Code::rank_lost,
                         [](Member& me, Ranks& all, CaseBuffers&) {
                           all.drop(me.rank());
                           return when_over(all.communicator());
                         }},
                    Case{Code::remote_error,
                         [](Member&, Ranks& all, CaseBuffers&) {
                           all.communicator().abort(
                               Status(Code::remote_error, "rank 2 threw: out of luck"));
                           return all.communicator().health();
                         }},
                    Case{Code::aborted,
                         [](Member&, Ranks& all, CaseBuffers&) {
                           all.communicator().abort("enough");
                           return all.communicator().health();
                         }},
                    Case{Code::out_of_memory, [](Member& me, Ranks&, CaseBuffers& mine) {
                           return me.call(
                               call_of(kCall, mine));  // all ranks call, and no rank gets memory
                         }}));

// plan_of() fails for lack of memory; the communicator can still make other calls.
TEST(Contract, AQuestionEndsNothing) {
  Ranks all({.ranks = kRanks});
  std::vector<CaseBuffers> buffers = filled_buffers();
  const auto call = [&](Member& me) {
    return call_of(kCall, buffers[static_cast<std::size_t>(me.rank())]);
  };
  const auto ask = [&](Member& me) { return me.plan_of(call(me)).status(); };
  {
    const ScopedSystemCalls scope(calls_without_memory());
    for (const Status& status : all.run(ask)) {
      EXPECT_EQ(name_of(status.code()), name_of(Code::out_of_memory)) << status.text();
    }
  }
  EXPECT_TRUE(all.communicator().health().ok());
  expect_ok(all.run(ask));
  expect_ok(all.run([&](Member& me) { return me.call(call(me)); }));
}

TEST(Contract, AForkedChildIsToldAndItsParentGoesOn) {
  ASSERT_TRUE(table()["forked"].communicator.starts_with("finished in the child"));
  Ranks all({.ranks = 2});
  const auto team = Team::create({.ranks = 2}).value();
  EXPECT_EQ(testing_processes::run_in_child([&] {
              CaseBuffers mine = std::move(filled_buffers().front());
              const Status status = all.members()[0]->call(call_of(kCall, mine));
              expect_kept(mine, table()["forked"]);
              const bool told =
                  status.code() == Code::forked &&
                  all.members()[1]->barrier().code() == Code::forked &&
                  all.members()[0]->plan_of(call_of(kCall, mine)).status().code() == Code::forked &&
                  team->run([](Member&) {}).code() == Code::forked;
              return told && !testing::Test::HasFailure() ? 0 : 1;
            }),
            "exit 0");
  expect_ok(all.run([](Member& me) { return me.barrier(); }));
  EXPECT_TRUE(team->run([](Member& me) { me.barrier().throw_if_error(); }).ok());
}

}  // namespace
}  // namespace rankine
