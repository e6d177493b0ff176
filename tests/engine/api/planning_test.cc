// Planning: plans are made once, shared by all ranks, and kept within bounds; a call keeps its
// deadline while it is planned; machine levels reach the algorithms; and boards work together with
// other calls.

#include "algorithms/catalogue.h"
#include "algorithms/ring.h"
#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/team.h"
#include "engine/api/tuning/choose.h"
#include "engine/run/interpret.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/run/random.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

TEST(PlanCache, APlanIsMadeOnceForAllRanks) {
  auto team = Team::create({.ranks = 4}).value();
  const Status status = team->run([](Member& me) {
    std::vector<std::uint32_t> data(100);
    for (int i = 0; i < 10; ++i) {
      me.all_reduce(std::span(data)).throw_if_error();
      me.all_reduce(std::span(data), ReduceOp::max).throw_if_error();
      me.all_reduce(std::span(data).first(99)).throw_if_error();
      me.broadcast(std::span(data), 2).throw_if_error();
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(team->communicator().cached_plans(), 4U);
}

// The calls need more plans than the cache keeps, some calls recur, and the ranks keep different
// plans.
TEST(PlanCache, StaysWithinBoundsAndForgetsNothingThatMatters) {
  auto team = Team::create({.ranks = 2}).value();
  Communicator& communicator = team->communicator();
  std::size_t most = 0;
  const Status status = team->run([&](Member& me) {
    std::vector<std::uint32_t> data(12'000);
    for (std::size_t count = 1; count <= 10'000; ++count) {
      for (const std::size_t n : {count, std::size_t{7}}) {
        for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint32_t>(i + n);
        me.all_reduce(std::span(data).first(n)).throw_if_error();
        for (std::size_t i = 0; i < n; i += 97) {
          if (data[i] != 2 * static_cast<std::uint32_t>(i + n)) {
            throw std::runtime_error("count " + std::to_string(n));
          }
        }
      }
      if (me.rank() == 0) most = std::max(most, communicator.cached_plans());
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_LE(most, 2048U);
  EXPECT_GT(most, 1000U);
  EXPECT_LT(communicator.memory_bytes(), std::size_t{64} << 20);
}

// Two calls that differ in any one field have different plans; the test changes one field after the
// other.
TEST(PlanCache, CallsThatDifferInOneFieldHavePlansOfTheirOwn) {
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 12;
  std::vector<std::size_t> counts = {3, 3, 3, 3}, others = {2, 4, 3, 3};
  const std::vector<int> dims = {2, 2}, skips = {2, 1}, levels = {2};
  const Call plain{.count = kCount, .options = {.algorithm = "ring"}};
  std::vector<Call> calls(1, plain);
  const auto but = [&](auto change) {
    calls.push_back(plain);
    change(calls.back());
  };
  but([](Call& c) { c.count = kCount + 1; });
  but([](Call& c) { c.type = DataType::i32; });
  but([](Call& c) { c.op = ReduceOp::max; });
  but([](Call& c) { c.options.algorithm = "chain_tree"; });
  but([](Call& c) { c.options.algorithm = "double_tree"; });
  but([](Call& c) { c.options = {.algorithm = "double_tree", .segments = 2}; });
  but([](Call& c) { c.options = {.algorithm = "two_level", .group = 1}; });
  but([](Call& c) { c.options = {.algorithm = "two_level", .group = 2}; });
  but([](Call& c) { c.options.transport = Transport::mailbox; });
  but([&](Call& c) { c.options = {.algorithm = "bucket", .dims = dims}; });
  but([&](Call& c) { c.options = {.algorithm = "circulant", .skips = skips}; });
  but([&](Call& c) { c.options = {.algorithm = "level_tree", .levels = levels}; });
  but([](Call& c) { c = {.collective = Collective::broadcast, .count = kCount, .root = 0}; });
  but([](Call& c) { c = {.collective = Collective::broadcast, .count = kCount, .root = 1}; });
  but([](Call& c) { c = {.collective = Collective::send_recv, .count = kCount, .peer = 1}; });
  but([](Call& c) { c = {.collective = Collective::send_recv, .count = kCount, .peer = 2}; });
  but([&](Call& c) { c = {.collective = Collective::all_gather, .counts = counts}; });
  but([&](Call& c) { c = {.collective = Collective::all_gather, .counts = others}; });
  std::erase_if(calls, [](const Call& c) {
    return !c.options.algorithm.empty() &&
           find_algorithm(c.collective, c.options.algorithm) == nullptr;
  });
  auto communicator = Communicator::create({.ranks = kRanks, .tuned = false}).value();
  const auto member = communicator->join(0).value();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto plan = member->plan_of(calls[i]);
      ASSERT_TRUE(plan.ok()) << i << ": " << plan.status().text();
      EXPECT_EQ(communicator->cached_plans(), round == 0 ? i + 1 : calls.size()) << "call " << i;
    }
  }
  EXPECT_EQ(communicator->cached_plans(), calls.size());
  // In place counts as a field, and lists are compared by their elements.
  float data[kCount];
  Call in_place = plain;
  in_place.in = in_place.out = data;
  ASSERT_TRUE(member->plan_of(in_place).ok());
  EXPECT_EQ(communicator->cached_plans(), calls.size() + 1);
  const std::vector<std::size_t> same = counts;
  ASSERT_TRUE(member->plan_of({.collective = Collective::all_gather, .counts = same}).ok());
  EXPECT_EQ(communicator->cached_plans(), calls.size() + 1);
}

// Ranks look plans up while other ranks plan and drop plans: every found plan is complete.
TEST(PlanCache, IsReadWhileItForgets) {
  expect_team_succeeds({.ranks = 4}, [](Member& me) {
    // Every rank asks for its shapes in a different order, without waiting for other ranks.
    for (int i = 0; i < 6000; ++i) {
      const auto count = static_cast<std::size_t>(1 + (i * (2 * me.rank() + 1)) % 6000);
      me.plan_of({.collective = Collective::broadcast, .count = count}).status().throw_if_error();
    }
  });
}

// A call keeps its deadline while it is planned, and a plan keeps its memory limit.

using std::chrono_literals::operator""ms;

// Planning takes much longer than the deadlines here: 1.5 million operations.
constexpr int kRanks = 24;
constexpr std::size_t kCount = std::size_t{1} << 20;
CallOptions long_to_plan(std::chrono::milliseconds timeout = 0ms) {
  return {.algorithm = "double_tree", .segments = 16384, .timeout = timeout};
}

TEST(Planning, EndsWithTheDeadlineOrAnAbort) {
  enum Way { deadline, abort };
  for (const Way way : {deadline, abort}) {
    Ranks all({.ranks = kRanks, .timeout = 60'000ms, .plan_bytes = std::size_t{64} << 30});
    std::vector<std::vector<float>> data(kRanks, std::vector<float>(kCount));
    std::thread stranger([&] {
      if (way != abort) return;
      std::this_thread::sleep_for(100ms);
      all.communicator().abort("enough");
    });
    const auto results = all.run([&](Member& me) {
      return me.all_reduce(std::span(data[static_cast<std::size_t>(me.rank())]), ReduceOp::sum,
                           long_to_plan(way == deadline ? 20ms : 0ms));
    });
    stranger.join();
    expect_all(results, way == abort ? Code::aborted : Code::timeout,
               {way == abort ? "enough" : "planning its call"});
    EXPECT_EQ(all.communicator().cached_plans(), 0u) << "planning went on to its end";
  }
  // A question of one rank.
  Ranks all({.ranks = kRanks, .timeout = 20ms, .plan_bytes = std::size_t{64} << 30});
  const Status asked =
      all.members()[0]->plan_of({.count = kCount, .options = long_to_plan()}).status();
  EXPECT_EQ(asked.code(), Code::timeout);
  EXPECT_NE(asked.text().find("planning its call"), std::string::npos) << asked.text();
  EXPECT_EQ(all.communicator().cached_plans(), 0u) << "planning went on to its end";
}

TEST(Planning, ACallThatNeedsTooMuchMemoryIsRefusedAndTheCommunicatorGoesOn) {
  constexpr int kFew = 4;
  Ranks all({.ranks = kFew, .plan_bytes = std::size_t{1} << 20});
  std::vector<std::vector<float>> data(kFew, std::vector<float>(100'000, 1.0F));
  const auto call = [&](const CallOptions& options) {
    return all.run([&](Member& me) {
      return me.all_reduce(std::span(data[static_cast<std::size_t>(me.rank())]), ReduceOp::sum,
                           options);
    });
  };
  const auto refused = call({.algorithm = "chain", .segments = 1000});
  expect_all(refused, Code::invalid_argument,
             {"all_reduce among 4 ranks by chain with 1000 segments: to plan 6000 moves of a block "
              "may take 6 MiB; allowed are 1 MiB"});
  for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(100'000, 1.0F));
  // The algorithm that the text names works, and so does the engine's choice.
  const std::string rest = refused[0].text().substr(refused[0].text().find("least is ") + 9);
  const std::string least = rest.substr(0, rest.find_first_of(" ,"));
  expect_ok(call({.algorithm = least}));
  expect_ok(call({}));
  for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(100'000, 16.0F));
}

// The communicator's levels reach the algorithms that need them.

// Counts the rounds; each rank observes all rounds.
class Rounds : public RoundObserver {
 public:
  bool before_round(int) noexcept override {
    ++count;
    return true;
  }
  int count = 0;
};

// Returns the number of rounds of an all-reduce, whose sum must be right.
int rounds_of(std::span<const int> levels, const CallOptions& options, int ranks = 8) {
  Ranks all({.ranks = ranks, .levels = levels});
  std::vector<Rounds> rounds(static_cast<std::size_t>(ranks));
  expect_ok(all.run([&](Member& me) {
    const std::int32_t in = 1 << me.rank();
    std::int32_t out = 0;
    const Call call{.in = &in, .out = &out, .count = 1, .type = DataType::i32, .options = options};
    const Status status = me.call(call, rounds[static_cast<std::size_t>(me.rank())]);
    EXPECT_EQ(out, (1 << ranks) - 1);
    return status;
  }));
  return rounds.front().count;
}

TEST(Levels, TheCommunicatorsAreUsedWhereTheCallNamesNone) {
  constexpr int kMachine[] = {2, 4}, kOther[] = {4};
  const CallOptions tree{.algorithm = "level_tree"};
  EXPECT_EQ(rounds_of({}, tree), 4);  // default groups of 2
  EXPECT_EQ(rounds_of(kMachine, tree), 6);
  EXPECT_EQ(rounds_of(kMachine, {.algorithm = "level_tree", .levels = kOther}), 4);
}

TEST(Levels, TheOutermostIsTheGroup) {
  constexpr int kMachine[] = {2, 6}, kUneven[] = {4};
  EXPECT_EQ(rounds_of({}, {.algorithm = "hierarchical"}, 12), 10);  // 4 groups of 3: 2 + 6 + 2
  EXPECT_EQ(rounds_of(kMachine, {.algorithm = "hierarchical"}, 12), 12);  // 2 of 6: 5 + 2 + 5
  EXPECT_EQ(rounds_of(kMachine, {.algorithm = "hierarchical", .group = 3}, 12), 10);
  // ring_2d refuses groups of 4 at 6 ranks, so its default of 2 stays.
  EXPECT_EQ(rounds_of(kUneven, {.algorithm = "ring_2d"}, 6), 6);
}

// Two communicators at once have different schedules of one name.
TEST(GivenAlgorithms, BelongToTheirCommunicator) {
  const auto team_with = [](const CollectiveSpec& goal, const Schedule& schedule, int ranks = 3) {
    return Team::create({.ranks = ranks, .algorithms = {given_algorithm("mine", goal, schedule)}})
        .value();
  };
  const Schedule chain = chain_broadcast(3, 1, 1), ring = ring_all_reduce(3);
  const CollectiveSpec from_one{Collective::broadcast, 3, chain.blocks, 1};
  const auto one = team_with(from_one, chain);
  const auto other = team_with({Collective::all_reduce, 3, ring.blocks}, ring);
  const auto four = team_with(from_one, chain, 4);
  const auto text_of = [](Team& team, Collective collective, Rank root) {
    std::vector<std::string> texts(4);
    const Status status = team.run([&](Member& me) {
      std::vector<float> data(10, static_cast<float>(me.rank() + 1));
      const Call call{.collective = collective,
                      .in = data.data(),
                      .out = data.data(),
                      .count = data.size(),
                      .root = root,
                      .options = {.algorithm = "mine"}};
      const Status called = me.call(call);
      texts[static_cast<std::size_t>(me.rank())] =
          called.ok() ? me.plan_of(call).value() : called.text();
      const float expected = collective == Collective::broadcast ? static_cast<float>(root + 1) : 6;
      if (called.ok()) {
        EXPECT_EQ(data, std::vector<float>(10, expected)) << "rank " << me.rank();
      }
    });
    EXPECT_TRUE(status.ok()) << status.text();
    return texts.front();
  };
  EXPECT_TRUE(text_of(*one, Collective::broadcast, 1).starts_with("mine, "));
  EXPECT_EQ(text_of(*one, Collective::broadcast, 2),
            "broadcast 'mine': root is 2; its schedule is for 1");
  EXPECT_TRUE(text_of(*other, Collective::all_reduce, 0).starts_with("mine, "));
  EXPECT_TRUE(text_of(*other, Collective::broadcast, 1).starts_with("algorithm is 'mine'; "));
  EXPECT_EQ(text_of(*four, Collective::broadcast, 1),
            "broadcast 'mine': ranks is 4; its schedule is for 3");
}

// Boards from outside: which calls use them, calls of all transports in turn, and calls that
// disagree.

using Words = std::vector<std::uint32_t>;
constexpr std::chrono::milliseconds kLong{120'000};

std::uint32_t sum_of_ranks(int ranks) {
  return static_cast<std::uint32_t>(ranks * (ranks - 1) / 2);
}

Status reduce_words(Member& me, std::size_t count, std::uint32_t salt, bool in_place) {
  Words in(count, static_cast<std::uint32_t>(me.rank()) + salt), out(count);
  const Status status = in_place
                            ? me.all_reduce(std::span(in))
                            : me.all_reduce(std::span<const std::uint32_t>(in), std::span(out));
  const auto n = static_cast<std::uint32_t>(me.ranks());
  if (status.ok()) {
    EXPECT_EQ(in_place ? in : out, Words(count, sum_of_ranks(me.ranks()) + n * salt))
        << "rank " << me.rank() << ", " << count << " words";
  }
  return status;
}

TEST(Board, SmallCallsInWhichAllHearFromAllTakeIt) {
  for (const int ranks : {2, 4}) {
    Ranks all({.ranks = ranks, .tuned = false});
    Words data(8), wide(8 * static_cast<std::size_t>(ranks));
    const auto transport_of = [&](Collective collective, std::size_t count) {
      const Call call{.collective = collective,
                      .in = data.data(),
                      .out = wide.data(),
                      .count = count,
                      .type = DataType::u32};
      const std::string plan = all.members()[0]->plan_of(call).value();
      const std::size_t begin = plan.find(' ') + 1;
      return plan.substr(begin, plan.find(", by trials") - begin);
    };
    for (const Collective hears_all : {Collective::all_reduce, Collective::all_gather,
                                       Collective::reduce_scatter, Collective::all_to_all}) {
      EXPECT_EQ(transport_of(hears_all, 8), "board transport");
    }
    EXPECT_EQ(transport_of(Collective::broadcast, 8), "mailbox transport");
    EXPECT_EQ(transport_of(Collective::all_reduce, 1 << 20), "direct transport");
  }
}

// Above two ranks, the largest vector of direct_one_shot goes by boards, unless ranks with separate
// cores may read it at its address.
TEST(Board, HoldsWhatOneShotTakes) {
  const Costs own, shared = shared_core_costs({}), staged = staged_costs({});
  for (const int ranks : {3, 4, 8, 16, 17, 32, 33, 64, 256}) {
    for (const auto& [costs, buffers] : {std::pair(own, Buffers::in_place),
                                         {shared, Buffers::in_place},
                                         {shared, Buffers::apart},
                                         {staged, Buffers::in_place},
                                         {staged, Buffers::apart}}) {
      const auto name = [&](std::size_t bytes) {
        return default_algorithm(Collective::all_reduce, ranks, bytes, buffers, costs).name;
      };
      std::size_t most = 8;
      while (name(most + 8) == "direct_one_shot") most += 8;
      EXPECT_LE(most, board_bytes(ranks, costs)) << ranks << " ranks";
      EXPECT_GE(most, 16U) << ranks << " ranks";
      EXPECT_EQ(name(most + 8), "direct_two_shot");
    }
    EXPECT_EQ(default_algorithm(Collective::all_reduce, ranks,
                                own.one_shot_read_max_total_bytes / static_cast<std::size_t>(ranks),
                                Buffers::apart, own)
                  .name,
              "direct_one_shot");
  }
}

// Posts, calls in which some ranks wait for no rank, and calls by address and in slots, of any
// size, in place or apart, across the wrap of all counters.
TEST(Board, TakesTurnsWithAllOtherCalls) {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const std::uint32_t first : {0U, 0U - 21U, 0x80000000U - 21U}) {
      const FirstCount near_the_wrap(first);
      Ranks all({.ranks = ranks, .timeout = kLong, .tuned = false});
      const auto results = all.run([&](Member& me) -> Status {
        Random random(static_cast<std::uint64_t>(ranks) * 1000 + first % 1000);
        for (int i = 0; i < 300; ++i) {
          Status status;
          const auto salt = static_cast<std::uint32_t>(i);
          switch (random.below(5)) {
            case 0: {  // a root that waits for no rank, or only for some
              const Rank root = random.below(ranks);
              Words data(random.one_in(3) ? 3'000U : 5U,
                         me.rank() == root ? salt : ~std::uint32_t{0});
              status = me.broadcast(std::span(data), root);
              EXPECT_EQ(data, Words(data.size(), salt));
              break;
            }
            case 1: {
              const auto n = static_cast<std::size_t>(ranks);
              Words in(static_cast<std::size_t>(random.between(1, 20))), out(in.size() * n);
              std::fill(in.begin(), in.end(), static_cast<std::uint32_t>(me.rank()));
              status = me.all_gather(std::span<const std::uint32_t>(in), std::span(out));
              for (std::size_t q = 0; q < n; ++q) EXPECT_EQ(out[q * in.size()], q);
              break;
            }
            case 2:
              status = me.barrier();
              break;
            default:
              status = reduce_words(me,
                                    static_cast<std::size_t>(random.pick(std::vector<int>{
                                        1, 2, 12, 13, 100, 256, 257, 1'000, 5'000})),
                                    salt, random.one_in(2));
          }
          if (!status.ok()) return status;
        }
        return {};
      });
      expect_ok(results);
    }
  }
}

// Slower ranks may still read the post of a rank that has left a run; the rank must continue at its
// position.
TEST(Board, RunsOfATeamFollowOneAnother) {
  const auto team = Team::create({.ranks = 4, .timeout = kLong, .tuned = false}).value();
  for (std::uint32_t run = 0; run < 200; ++run) {
    const Status status = team->run([&](Member& me) {
      for (std::uint32_t i = 0; i < 1 + run % 3; ++i) {
        reduce_words(me, 1 + run % 40, run + i, run % 2 == 0).throw_if_error();
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
  }
}

// A mismatch that touches no board is found in the next post, which carries a hash of the past
// calls.
TEST(Board, WhatWentWrongUnnoticedIsFoundOutInTheNextPost) {
  Ranks ranks({.ranks = 3, .timeout = kLong, .tuned = false});
  expect_all(ranks.run([](Member& me) -> Status {
    Words word(1);
    // Rank 0 sends to rank 1; rank 2 takes part in nothing, whatever peer it passes.
    const Status status = me.send_recv(std::span(word), 0, me.rank() == 2 ? 0 : 1);
    if (!status.ok()) return status;
    return reduce_words(me, 4, 0, true);
  }),
             Code::mismatch);
}

TEST(Board, WhatDoesNotFitIsRefusedWhereItIsAskedFor) {
  expect_ranks_succeed({.ranks = 2, .timeout = kLong, .tuned = false}, [](Member& me) {
    Words data(40'000);
    expect_refused(me.all_reduce(std::span(data), ReduceOp::sum, {.transport = Transport::board}),
                   {"board"});
    return reduce_words(me, 4, 1, true);  // the communicator still works
  });
}

// Ranks measure several forms of a call (engine/run/form_trials.h).

std::string plan_of(const Call& call, int ranks = 2) {
  Ranks all({.ranks = ranks, .tuned = false});
  return all.members()[0]->plan_of(call).value();
}

// A call of M bytes.
Call call_of(Collective collective, int ranks, std::size_t bytes) {
  const auto blocks = static_cast<std::size_t>(natural_blocks(collective, ranks));
  const auto n = static_cast<std::size_t>(ranks);
  return {.collective = collective, .count = blocks == 1 ? bytes : bytes / n, .type = DataType::u8};
}

TEST(Trials, HaveTheseForms) {
  if (costs_among(2, {}) != Costs()) GTEST_SKIP() << "ranks that share a core have other forms";
  constexpr std::size_t k = 1024;
  const auto reduce_of = [](std::size_t bytes, bool in_place, const CallOptions& options = {}) {
    std::vector<std::byte> in(bytes), out(bytes);
    Call call = call_of(Collective::all_reduce, 2, bytes);
    call.in = in_place ? out.data() : in.data();
    call.out = out.data();
    call.options = options;
    return plan_of(call);
  };
  const std::string board = ", board transport", direct = ", direct transport",
                    one_shot = "direct_one_shot", two_shot = "direct_two_shot",
                    or_else = ", by trials also ";
  const auto by_trials = [&](const std::string& others) { return or_else + others; };
  const auto or_stages = [&](const std::string& others, const std::string& algorithm) {
    return or_else + others + " or stages (" + algorithm + ")";
  };
  const std::string reads = "reads (direct_one_shot)", stores = "stores (direct_two_shot)",
                    claims = "claims (direct_two_shot)", streams = "streams (direct_two_shot)",
                    posts = "posts (direct_one_shot)";
  EXPECT_EQ(reduce_of(512, false), one_shot + board);
  EXPECT_EQ(reduce_of(k, false), one_shot + board + by_trials(reads + " or " + stores));
  EXPECT_EQ(reduce_of(8 * k, false),
            one_shot + board + or_stages(reads + " or " + stores + " or " + claims, two_shot));
  EXPECT_EQ(reduce_of(64 * k, false),
            two_shot + direct + or_stages(posts + " or " + reads + " or " + stores, two_shot));
  EXPECT_EQ(reduce_of(128 * k, false),
            two_shot + direct + or_stages(reads + " or " + stores, two_shot));
  EXPECT_EQ(reduce_of(4 * k * k, false),
            two_shot + direct + or_stages(reads + " or " + stores + " or " + streams, two_shot));
  EXPECT_EQ(reduce_of(8 * k, true),
            one_shot + board + or_stages("reads (direct_two_shot) or " + stores, two_shot));
  EXPECT_EQ(reduce_of(64 * k, true),
            two_shot + direct + or_stages(posts + " or reads (direct_two_shot)", two_shot));
  EXPECT_EQ(reduce_of(128 * k * k, false), two_shot + direct);
  // A call that names something gets it.
  EXPECT_EQ(reduce_of(8192, false, {.transport = Transport::board}), one_shot + board);
  EXPECT_EQ(reduce_of(8192, false, {.algorithm = "direct_one_shot"}), one_shot + board);
  const std::string moved = " or stores (direct) or claims (direct)";
  for (const Collective collective : {Collective::all_gather, Collective::all_to_all}) {
    EXPECT_EQ(plan_of(call_of(collective, 2, 16 * k)),
              "direct" + board + or_stages("reads (direct)" + moved, "direct"));
    EXPECT_EQ(plan_of(call_of(collective, 2, 128 * k)),
              "direct" + direct + or_stages("posts (direct)" + moved, "direct"));
  }
  EXPECT_EQ(plan_of(call_of(Collective::reduce_scatter, 2, 16 * k)),
            "direct" + board + or_stages("reads (direct)", "direct"));
  EXPECT_EQ(plan_of(call_of(Collective::reduce_scatter, 2, 4 * k * k)),
            "direct" + direct + or_stages("streams (direct)", "direct"));
  EXPECT_EQ(plan_of(call_of(Collective::broadcast, 2, 2 * k)),
            "linear, mailbox transport" + by_trials("reads (linear) or stores (linear)"));
  EXPECT_EQ(plan_of(call_of(Collective::broadcast, 2, 64 * k)),
            "linear" + direct +
                or_stages("posts (linear) or reads (linear) or stores (linear)", "linear"));
  EXPECT_EQ(plan_of(call_of(Collective::reduce, 2, 2 * k)),
            "linear, mailbox transport" + by_trials("reads (linear) or " + stores));
  EXPECT_EQ(
      plan_of(call_of(Collective::reduce, 2, 16 * k)),
      "linear" + direct + or_stages("posts (linear) or " + stores + " or " + claims, "linear"));
  EXPECT_NE(plan_of(call_of(Collective::all_to_all, 4, 8 * k), 4).find(or_else), std::string::npos);
  EXPECT_EQ(plan_of(call_of(Collective::all_gather, 17, 16 * k), 17).find(or_else),
            std::string::npos);
  EXPECT_EQ(plan_of(call_of(Collective::gather, 2, 8192)).find(or_else), std::string::npos);
  const ScopedEnv off("RANKINE_TRIALS", "0");
  EXPECT_EQ(reduce_of(8192, false), one_shot + board);
}

// The first calls take both forms in turn.
template <class T>
void expect_equal_bits(int ranks) {
  const CommunicatorOptions options{.ranks = ranks, .timeout = kLong, .tuned = false};
  expect_ranks_succeed(options, [&](Member& me) -> Status {
    for (const TrialKind& kind : kTrialKinds) {
      for (const std::size_t bytes : {2'000U, 16'388U, 100'000U, 3'000'000U}) {
        Call call = call_of(kind.collective, ranks, bytes / sizeof(T));
        call.type = data_type_of<T>;
        call.root = ranks - 1;
        Random random(7 + static_cast<std::uint64_t>(me.rank()));
        std::vector<T> in(call.count * static_cast<std::size_t>(ranks)), out(in.size()), first;
        for (T& x : in) x = static_cast<T>(static_cast<float>(random.below(1 << 20)) / 977.0F);
        call.in = kind.in_place ? out.data() : in.data();
        call.out = out.data();
        const std::uint32_t calls = trial_pace(*trial_class(kind, bytes)).concludes(kForms);
        for (std::uint32_t i = 0; i < calls; ++i) {
          std::copy(in.begin(), in.end(), out.begin());
          me.call(call).throw_if_error();
          if (first.empty()) first = out;
          EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size() * sizeof(T)), 0)
              << me.plan_of(call).value() << ": " << name_of(kind.collective) << " of " << bytes
              << " bytes, call " << i << (kind.in_place ? " in place" : "");
        }
      }
    }
    return {};
  });
}

TEST(Trials, FormsHaveEqualBits) {
  for (const int ranks : {2, 4}) {
    expect_equal_bits<float>(ranks);
    expect_equal_bits<BFloat16>(ranks);
  }
  const ScopedEnv off("RANKINE_TRIALS", "0");
  expect_equal_bits<float>(2);
}

// Rank 1 is missing in a call of either form. The flight record has a trial that is over.
TEST(Trials, AFailureInATrialIsAFailureLikeAnyOther) {
  for (const auto& [calls, aborts] : {std::pair(3, false), {3, true}, {60, false}, {160, true}}) {
    Ranks all({.ranks = 2, .timeout = kLong, .tuned = false});
    const auto results = all.run([&, many = calls, by_abort = aborts](Member& me) {
      Words in(1'000), out(1'000);
      const auto call = [&](std::chrono::milliseconds timeout) {
        return me.all_reduce(std::span<const std::uint32_t>(in), std::span(out), ReduceOp::sum,
                             {.timeout = timeout});
      };
      for (int i = 0; i < many; ++i) call(kLong).throw_if_error();
      if (me.rank() == 0) return call(by_abort ? kLong : 50ms);
      if (by_abort) {
        wait_until_waiting(all.communicator(), 0);
        all.communicator().abort("enough");
      }
      while (all.communicator().health().ok()) std::this_thread::yield();
      return call(kLong);
    });
    expect_all(results, aborts ? Code::aborted : Code::timeout,
               {aborts ? "enough" : "all_reduce u32 sum"});
    EXPECT_EQ(all.communicator().flight_record().find("\"posts\"") != std::string::npos,
              calls == 160);
  }
}

}  // namespace
}  // namespace rankine
