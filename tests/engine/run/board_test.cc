#include <sched.h>
#include <sys/resource.h>

#include "engine/run/fingerprint.h"
#include "engine/run/form_trials.h"
#include "engine/run/interpret.h"
#include "engine/run/machine.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "engine/run/policy.h"
#include "engine/run/process.h"
#include "engine/run/staging_stores.h"
#include "tests/engine/run/random.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using Counts = std::vector<std::size_t>;

CollectiveSpec goal_for(Collective collective, int ranks, int parts = 1) {
  return {collective, ranks, natural_blocks(collective, ranks) * parts, ranks - 1, 0};
}

TEST(Layout, BordersOnLinesCutNoLine) {
  for (const std::size_t element :
       {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    for (const std::size_t count : {1U, 15U, 16U, 17U, 64U, 1000U, 4096U}) {
      for (const int parts : {1, 2, 3, 7, 16}) {
        const Counts counts = {count};
        const Layout layout = make_layout(goal_for(Collective::all_reduce, 3, parts), counts,
                                          element, Borders::cache_lines);
        std::size_t end = 0;
        for (const BlockHome& block : layout.blocks) {
          EXPECT_EQ(block.input, end);
          EXPECT_EQ(block.output, end);
          if (block.bytes > 0) {
            EXPECT_EQ(block.input % 64, 0U);
          }
          end += block.bytes;
        }
        EXPECT_EQ(end, count * element);
        // Parts are whole cache lines where possible; the largest part has at most one line more
        // than the others.
        const std::size_t lines = (count * element + 63) / 64;
        const auto n = static_cast<std::size_t>(parts);
        EXPECT_LE(layout.blocks[0].bytes, (lines + n - 1) / n * 64);
      }
    }
  }
}

// For every collective, at each rank: the blocks of the input follow one another without gaps, and
// so do the blocks of the output. A block's offset is equal in all buffers.
TEST(Layout, BuffersHaveNoGapsAndNoOverlaps) {
  for (const Collective collective : all_collectives()) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const int parts : {1, 3}) {
        const CollectiveSpec goal = goal_for(collective, ranks, parts);
        Counts counts(static_cast<std::size_t>(natural_blocks(collective, ranks)));
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i * 5 % 7;
        const Layout layout = make_layout(goal, counts, 4, Borders::plain);
        ASSERT_EQ(layout.blocks.size(), static_cast<std::size_t>(goal.blocks));
        for (Rank r = 0; r < ranks; ++r) {
          std::size_t in = 0, out = 0;
          for (Block b = 0; b < goal.blocks; ++b) {
            const BlockHome& block = layout.blocks[static_cast<std::size_t>(b)];
            if (goal.initially_holds(r, b)) {
              EXPECT_EQ(block.input, in) << name_of(collective) << " rank " << r << " block " << b;
              in += block.bytes;
            }
            if (goal.must_hold(r, b)) {
              EXPECT_EQ(block.output, out)
                  << name_of(collective) << " rank " << r << " block " << b;
              out += block.bytes;
            }
          }
          EXPECT_EQ(input_bytes(layout, goal, r), in);
          EXPECT_EQ(output_bytes(layout, goal, r), out);
        }
      }
    }
  }
}

TEST(Fingerprint, FieldsCanBeReadBack) {
  for (const Collective collective : all_collectives()) {
    for (int type = 0; type < kDataTypes; ++type) {
      for (int op = 0; op < kReduceOps; ++op) {
        const Fingerprint print = with_call(
            make_fingerprint(collective, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                             op % 2 == 0, static_cast<Transport>(type % 3), 1000 + op, 100 + type,
                             12345),
            1027);
        EXPECT_EQ(print.collective(), collective);
        EXPECT_EQ(static_cast<int>(print.type()), type);
        EXPECT_EQ(static_cast<int>(print.op()), op);
        EXPECT_EQ(print.in_place(), op % 2 == 0);
        EXPECT_EQ(print.transport(), static_cast<Transport>(type % 3));
        EXPECT_EQ(print.root(), 1000 + op);
        EXPECT_EQ(print.algorithm(), 100 + type);
        EXPECT_EQ(print.call(), 3);
      }
    }
  }
}

TEST(Fingerprint, CountsDiffer) {
  std::set<int> hashes;
  for (std::uint64_t count = 0; count < 1000; ++count) {
    hashes.insert(make_fingerprint(Collective::all_reduce, DataType::f32, ReduceOp::sum, false,
                                   Transport::direct, 0, 0, count)
                      .count_hash());
  }
  EXPECT_GE(hashes.size(), 998U);  // hashes have a million values
}

TEST(Fingerprint, TheFirstFieldThatDiffersIsNamed) {
  constexpr auto kF32 = DataType::f32;
  constexpr auto kSum = ReduceOp::sum;
  constexpr auto kDirect = Transport::direct;
  using enum Collective;
  const auto base = make_fingerprint(all_reduce, kF32, kSum, false, kDirect, 0, 0, 1);
  // clang-format off
  const std::tuple<Fingerprint, std::uint64_t, const char*> cases[] = {
      {make_fingerprint(all_gather, kF32, kSum, false, kDirect, 0, 0, 1), 10, "collective is all_reduce at rank 2 and all_gather at rank 5"},
      {with_call(base, 7), 10, "number of the call (modulo 256) is 0 at rank 2 and 7 at rank 5"},
      {make_fingerprint(all_reduce, kF32, kSum, false, kDirect, 0, 0, 2), 11, "count is 10 at rank 2 and 11 at rank 5"},
      {make_fingerprint(all_reduce, DataType::u8, kSum, false, kDirect, 0, 0, 1), 10, "type is f32 at rank 2 and u8 at rank 5"},
      {make_fingerprint(all_reduce, kF32, ReduceOp::max, false, kDirect, 0, 0, 1), 10, "operation is sum at rank 2 and max at rank 5"},
      {make_fingerprint(all_reduce, kF32, kSum, false, kDirect, 3, 0, 1), 10, "root is 0 at rank 2 and 3 at rank 5"},
      {make_fingerprint(all_reduce, kF32, kSum, true, kDirect, 0, 0, 1), 10, "in place is no at rank 2 and yes at rank 5"},
      {make_fingerprint(all_reduce, kF32, kSum, false, kDirect, 0, 1, 1), 10, "algorithm is ring at rank 2 and chain at rank 5"},
      {make_fingerprint(all_reduce, kF32, kSum, false, Transport::mailbox, 0, 0, 1), 10, "transport is direct at rank 2 and mailbox at rank 5"},
      {make_fingerprint(all_reduce, kF32, kSum, false, kDirect, 0, 0, 2), 10, "a count, a parameter, the order, the rows of an epilogue or the tag"},
      {with_tag(base, 1), 10, "a count, a parameter, the order, the rows of an epilogue or the tag"},
  };
  // clang-format on
  for (const auto& [other, count, text] : cases) {
    const std::string told = difference({base, 2, 10, "ring"}, {other, 5, count, "chain"});
    EXPECT_EQ(told.find(text), 0U) << told;
  }
  EXPECT_EQ(with_tag(base, 0), base);
}

// Two ranks on one thread, op by op: the test decides the progress of each rank.

class Pair {
 public:
  explicit Pair(std::uint32_t first) {
    for (std::size_t r = 0; r < 2; ++r) {
      const Board board = board_of(2, r, kCacheLine, [&](std::size_t of) { return lines_[of]; });
      for (const std::uint32_t n : {0U, 1U}) (new (&board.half(n)) PostHeader)->flag.store(first);
      for (RankState& state : states_) state.boards.push_back(board);
    }
    for (std::size_t r = 0; r < 2; ++r) {
      RankState& state = states_[r];
      state.waiter = {.rank_control = &rank_control_, .rank = static_cast<Rank>(r)};
      state.posts = first;
      state.memory.resize(8);
      state.operands.resize(2);  // the operands and the target of an op
      state.memory_of(r, Memory::input) = reinterpret_cast<std::byte*>(&input_[r]);
      state.memory_of(r, Memory::output) = reinterpret_cast<std::byte*>(&output_[r]);
    }
  }

  // The first half of a call.
  bool post(std::size_t r, std::uint64_t word) {
    input_[r] = word;
    RankState& state = states_[r];
    ++state.waiter.call;
    state.waiter.fingerprint = state.waiter.call;
    past_[r] = state.call_history;
    return play(r, {{.code = OpCode::post, .operands = 1, .offset = kPostHeader, .bytes = 8}, {}},
                {{.rank = static_cast<std::uint16_t>(r), .memory = Memory::input}});
  }
  // The second half of a call; returns the word that the peer posted in it.
  std::uint64_t read(std::size_t r) {
    states_[r].call_history = past_[r];  // counts calls, not halves of calls
    const auto peer = static_cast<std::uint16_t>(1 - r);
    const bool read = play(r,
                           {{.code = OpCode::wait_post, .peer = peer},
                            {.code = OpCode::fold, .operands = 1, .bytes = 8},
                            {}},
                           {{.rank = peer, .memory = Memory::board, .offset = kPostHeader}});
    return read ? output_[r] : ~std::uint64_t{0};
  }
  RankState& state(std::size_t r) { return states_[r]; }
  RankControl& rank_control() { return rank_control_; }

 private:
  bool play(std::size_t r, std::vector<Op> ops, std::vector<Operand> operands) {
    Plan plan;
    plan.transport = Transport::board;
    plan.ranks = 2;
    plan.rank.resize(2);
    plan.rank[r].ops = std::move(ops);
    plan.rank[r].operands = std::move(operands);
    return interpret(plan, states_[r]);
  }

  RankControl rank_control_{2, {.mode = WaitPolicy::Mode::park, .probes = 0}, 1'000'000};
  alignas(kCacheLine) std::byte lines_[2][kCacheLine]{};
  std::array<std::uint64_t, 2> input_{}, output_{};
  std::array<std::uint32_t, 2> past_{};
  std::array<RankState, 2> states_;
};

TEST(Board, AnotherCallOrAnotherPastIsReported) {
  Pair other_call(0);
  ASSERT_TRUE(other_call.post(0, 1));
  ASSERT_TRUE(other_call.post(1, 2));
  other_call.state(0).waiter.fingerprint = 99;
  EXPECT_EQ(other_call.read(0), ~std::uint64_t{0});
  EXPECT_EQ(other_call.rank_control().reason().code(), Code::mismatch);
  Pair pair(0);
  pair.state(1).call_history = 5U << 16;  // a call that only rank 1 made
  ASSERT_TRUE(pair.post(0, 1));
  ASSERT_TRUE(pair.post(1, 2));
  EXPECT_EQ(pair.read(0), ~std::uint64_t{0});
  EXPECT_EQ(pair.rank_control().reason().text(),
            "rank 0 and rank 1 make the same call, but made different ones before");
}

// Ranks agree on the better kind of stores for staging: past the caches, or into them.

// The times of a machine: nanoseconds per byte to store past the caches or into them, and to fetch
// the byte then.
struct Machine {
  double store_past, store_into, fetch_past, fetch_into;
};

// Ranks that make their calls one after the other. In a call every rank stores and fetches, or the
// first rank stores and the others fetch.
class Ranks {
 public:
  explicit Ranks(std::size_t n) : stores_(n), told_(n) {}

  struct Call {
    std::size_t bytes = 1000;
    bool from_one = false;
    double interrupted = 1;  // the call takes this many times as long
  };
  // Makes `times` calls. Returns the number of calls in which the last rank's stores go past the
  // caches.
  int call(const Machine& machine, int times, const Call& made) {
    int past = 0;
    for (int i = 0; i < times; ++i) {
      for (std::size_t r = 0; r < stores_.size(); ++r) {
        stores_[r].begin_call(
            static_cast<Rank>(r), static_cast<int>(stores_.size()),
            [this](Rank of) -> StagingTimes& { return told_[static_cast<std::size_t>(of)]; });
      }
      for (std::size_t r = 0; r < stores_.size(); ++r) {
        const std::size_t from = made.from_one ? 0 : (r + 1) % stores_.size();
        const bool fetches_past = stores_[from].past_caches();
        if (!made.from_one || r == 0)
          add(r, true, stores_[r].past_caches() ? machine.store_past : machine.store_into, made);
        if (!made.from_one || r > 0)
          add(r, false, fetches_past ? machine.fetch_past : machine.fetch_into, made);
      }
      past += stores_.back().past_caches() ? 1 : 0;
      timed_ += stores_.back().is_timed() ? 1 : 0;
    }
    return past;
  }
  int call(const Machine& machine, int times) { return call(machine, times, Call{}); }
  int timed() const { return timed_; }

 private:
  void add(std::size_t rank, bool stores, double ns_per_byte, const Call& made) {
    if (!stores_[rank].is_timed()) return;
    const double ns = made.interrupted * ns_per_byte * static_cast<double>(made.bytes);
    stores_[rank].add(stores, made.bytes, static_cast<std::int64_t>(ns));
  }

  std::vector<StagingStores> stores_;
  std::vector<StagingTimes> told_;
  int timed_ = 0;
};

constexpr Machine kNear{
    .store_past = 0.1, .store_into = 0.05, .fetch_past = 0.1, .fetch_into = 0.02};
constexpr Machine kFar{.store_past = 0.1, .store_into = 0.3, .fetch_past = 0.1, .fetch_into = 0.2};

TEST(StagingStores, PastTheCachesWhereCoresAreFarAndIntoThemWhereTheyAreNear) {
  for (const std::size_t n : {1U, 2U, 8U}) {
    Ranks far(n);
    EXPECT_GE(far.call(kFar, 25'600), 25'600 - 4 * 105);
    EXPECT_LE(far.timed(), 6 * 105);
    Ranks near(n);
    EXPECT_LE(near.call(kNear, 32), 20);  // soon
    EXPECT_LE(near.call(kNear, 25'600), 4 * 105);
  }
}

// The gain of the readers outweighs the loss of the writer, and the writer cannot measure the gain.
TEST(StagingStores, FollowWhatAllFindTogether) {
  constexpr Machine kDearToStore{
      .store_past = 0.1, .store_into = 0.12, .fetch_past = 0.1, .fetch_into = 0.05};
  constexpr Machine kDearerToStore{
      .store_past = 0.1, .store_into = 0.2, .fetch_past = 0.1, .fetch_into = 0.05};
  for (const std::size_t n : {2U, 8U}) {
    Ranks gain(n);
    gain.call(kDearToStore, 32, {.from_one = true});
    EXPECT_LE(gain.call(kDearToStore, 256, {.from_one = true}), 12);
    Ranks lose(n);
    lose.call(kDearerToStore, 32, {.from_one = true});
    EXPECT_GE(lose.call(kDearerToStore, 256, {.from_one = true}), 244);
  }
}

TEST(StagingStores, FollowCoresThatMove) {
  Ranks ranks(3);
  for (int i = 0; i < 3; ++i) {
    ranks.call(kNear, 512);
    EXPECT_LE(ranks.call(kNear, 1280), 24);
    ranks.call(kFar, 512);
    EXPECT_GE(ranks.call(kFar, 1280), 1280 - 24);
  }
}

TEST(StagingStores, WhatIsHardlySoonerDoneStaysAsItIs) {
  const auto sooner = [](double share) {
    return Machine{.store_past = 1, .store_into = share, .fetch_past = 1, .fetch_into = share};
  };
  Ranks hardly(2);
  EXPECT_GE(hardly.call(sooner(0.96), 25'600), 25'600 - 4 * 105);
  Ranks well(2);
  EXPECT_LE(well.call(sooner(0.94), 25'600), 20 + 4 * 105);
}

TEST(StagingStores, OneInterruptionProvesNothing) {
  Ranks ranks(2);
  for (int i = 0; i < 2560; ++i)  // every other timed call is interrupted
    ranks.call(kFar, 1, {.interrupted = i % 2 == 0 ? 100.0 : 1.0});
  EXPECT_GE(ranks.call(kFar, 128), 124);
}

// Short calls take longer per byte with either kind of stores.
TEST(StagingStores, OnlyCallsOfAboutOneSizeAreCompared) {
  constexpr Machine kShort{
      .store_past = 0.4, .store_into = 1.2, .fetch_past = 0.4, .fetch_into = 1};
  Ranks far(2);
  int past = 0;
  for (int i = 0; i < 25'600; ++i) {
    // Alternates three long and three short calls, so that three are often compared with three
    // others.
    past += i / 3 % 2 == 0 ? far.call(kShort, 1) : far.call(kFar, 1, {.bytes = 100'000});
  }
  EXPECT_GE(past, 25'600 - 4 * 105);
  Ranks near(2);
  for (std::size_t i = 0; i < 1000; ++i) near.call(kNear, 1, {.bytes = 1000 + i % 10 * 100});
  EXPECT_LE(near.call(kNear, 1280), 24);
}

// Ranks choose among the forms of a call by trials.

using Times = std::array<std::int64_t, kForms>;  // of each form; 0: the plan lacks it
using FormCounts = std::array<int, kForms>;      // calls in each form

// Ranks that make calls of a class, on clocks of the test. No form makes them wait: each runs ahead
// to the end of a trial.
class TrialRanks {
 public:
  explicit TrialRanks(std::size_t ranks = 2) : ranks_(ranks), published_(ranks) {}

  // Makes `calls` calls that take rank r times[r], or times[0] if there is only that, for the
  // greatest size of the class, and a part of it for a part of the size. Every call has one form
  // on all ranks.
  FormCounts call(int calls, const std::vector<Times>& times, std::uint16_t of = kClass,
                  double part = 1) {
    TrialOf trial{
        .trial_class = of,
        .bytes = static_cast<std::uint32_t>(part * (kTrialLeastBytes << of % kTrialSizes))};
    for (std::size_t i = 0; i < kForms; ++i)
      if (times[0][i] > 0) trial.forms = static_cast<std::uint8_t>(trial.forms | 1U << i);
    for (One& rank : ranks_) rank.forms.clear();
    const auto is_done = [&](const One& rank) { return rank.forms.size() == std::size_t(calls); };
    while (!std::all_of(ranks_.begin(), ranks_.end(), is_done)) {
      const std::size_t r = turn_++ % ranks_.size();
      One& rank = ranks_[r];
      while (!is_done(rank) && begin(r, trial)) {
        const auto form = static_cast<std::size_t>(rank.trials.form(trial));
        rank.forms.push_back(form);
        const std::int64_t ns = times[times.size() == 1 ? 0 : r][form];
        rank.now += static_cast<std::int64_t>(part * static_cast<double>(ns));
        rank.trials.end_call([&] { return rank.now; });
        rank.now += idle[form];
        ++rank.number;
      }
    }
    for (const One& rank : ranks_) EXPECT_EQ(rank.forms, ranks_[0].forms);
    FormCounts counts{};
    for (const std::size_t form : ranks_[0].forms) ++counts[form];
    return counts;
  }
  // At the end of the rank's last trial.
  FormFigures figures(std::size_t r) const { return ranks_[r].figures; }

  static constexpr std::uint16_t kClass = kTrialSizes + 11;  // of 256 KiB
  Times idle{};                                              // between calls, by form

 private:
  struct One {
    FormTrials trials;
    std::uint64_t number = 1;
    std::int64_t now = 0;
    std::vector<std::size_t> forms;
    FormFigures figures;
  };

  // False: the rank waits for another one.
  bool begin(std::size_t r, const TrialOf& of) {
    FormTrials& trials = ranks_[r].trials;
    const auto publish = [&](std::uint32_t exchange) { published_[r].exchanges.store(exchange); };
    if (!trials.begin_call(
            of, ranks_[r].number, published_[r], [&] { return ranks_[r].now; }, publish)) {
      return true;
    }
    for (const FormTimes& other : published_) {
      if (!reached(other.exchanges.load(), trials.exchange())) return false;
    }
    ranks_[r].figures = trials.conclude(
        of, static_cast<int>(ranks_.size()),
        [&](Rank q) -> FormTimes& { return published_[static_cast<std::size_t>(q)]; });
    return true;
  }

  std::vector<One> ranks_;
  std::vector<FormTimes> published_;
  std::size_t turn_ = 0;
};

constexpr TrialPace kPace = trial_pace(TrialRanks::kClass);
constexpr int kTrial = static_cast<int>(kPace.of_form()), kLeast = static_cast<int>(kPace.least);

TEST(FormTrials, EachFormIsTriedAndTheFastestOneIsTaken) {
  for (const std::size_t n : {2U, 4U, 7U}) {
    TrialRanks ranks(n);
    const std::vector<Times> reads{{200, 100, 0, 300}}, posts{{80, 100, 0, 300}};
    EXPECT_EQ(ranks.call(kTrial, reads), (FormCounts{kTrial}));
    EXPECT_EQ(ranks.call(kTrial, reads), (FormCounts{0, kTrial}));
    EXPECT_EQ(ranks.call(kTrial, reads), (FormCounts{0, 0, 0, kTrial}));
    EXPECT_EQ(ranks.call(kLeast - 3 * kTrial, reads), (FormCounts{0, kLeast - 3 * kTrial}));
    EXPECT_EQ(ranks.figures(1).form, Form::reads);
    EXPECT_EQ(ranks.figures(1).took_ns, (std::array<std::uint32_t, kForms>{200, 100, 0, 300}));
    // Callers change their habits: the form follows after the next trial, and trials get rare.
    EXPECT_GE(ranks.call(kLeast, posts)[0], kLeast - 2 * kTrial);
    EXPECT_LE(ranks.call(64 * 1024, posts)[1], 20 * kTrial);
    EXPECT_GE(ranks.call(64 * 1024, posts)[1], 3 * kTrial);
    // Another class has its own choice.
    EXPECT_EQ(ranks.call(kTrial, reads, 10), (FormCounts{kTrial}));
    EXPECT_EQ(ranks.call(kTrial, reads, 10), (FormCounts{0, kTrial}));
  }
}

// A form may leave work to its callers: that counts, but less than the calls.
TEST(FormTrials, CallsCountMoreThanTheTimeBetween) {
  for (const auto& [idle, wins] : {std::pair(20, true), {100, false}}) {
    TrialRanks ranks;
    ranks.idle[1] = idle;
    ranks.call(2 * kTrial, {{100, 75}});
    EXPECT_EQ(ranks.call(20, {{100, 75}})[1], wins ? 20 : 0) << idle;
  }
}

TEST(FormTrials, MuchSlowerFormsAreTriedLessOften) {
  TrialRanks ranks;
  ranks.call(64 * 1024, {{100, 850}});
  EXPECT_LE(ranks.call(64 * 1024, {{100, 850}})[1], 6 * kTrial);
}

// call() compares the forms of all ranks: ranks that believed their own figures would part.
TEST(FormTrials, RanksWithOtherFiguresDecideAlike) {
  TrialRanks ranks;
  ranks.call(kLeast, {{100, 50}, {60, 58}});
  EXPECT_GE(ranks.call(kLeast, {{100, 50}, {60, 58}})[1],
            kLeast - kTrial);  // the longest time counts
  ranks.call(2048, {{100, 50}, {90, 140}});
  EXPECT_LE(ranks.call(64, {{100, 50}, {90, 140}})[1], kTrial);
  for (const std::size_t n : {2U, 5U}) {
    TrialRanks all(n);
    Random random(n);
    for (int i = 0; i < 20'000; ++i) {
      std::vector<Times> times(n);
      const unsigned forms = 1 + random.below(15);
      for (Times& t : times) {
        for (std::size_t f = 0; f < kForms; ++f)
          t[f] = (forms | 1) >> f & 1 ? 1 + std::int64_t{random.below(512)} : 0;
      }
      all.call(1 + random.below(3), times, static_cast<std::uint16_t>(random.below(3)));
    }
  }
}

TEST(FormTrials, SmallGainsMustRepeatAndInterruptionsChangeNothing) {
  TrialRanks ranks;
  EXPECT_EQ(ranks.call(kLeast, {{100, 90}})[1], kTrial);  // a gain by chance
  EXPECT_LE(ranks.call(1024, {{100, 101}})[1], 5 * kTrial);
  for (int i = 0; i < 4096; ++i) {  // a stretch of three is interrupted
    const std::int64_t ns = i % 16 == 0 ? 1'000'000 : 100;
    ranks.call(1, {{ns, 110}});
  }
  EXPECT_LE(ranks.call(1024, {{100, 110}})[1], 2 * kTrial);
  EXPECT_LE(ranks.call(8192, {{100, 98}})[1], 9 * kTrial);
  ranks.call(16'384, {{100, 94}});
  EXPECT_GE(ranks.call(2048, {{100, 94}})[1], 2048 - 4 * kTrial);
}

// Without that, the next trial might be thousands of calls away.
TEST(FormTrials, CallsThatTakeAnotherTimeStartATrial) {
  for (const std::uint16_t of : {TrialRanks::kClass, std::uint16_t{TrialRanks::kClass + 5}}) {
    TrialRanks ranks;
    ranks.call(64 * 1024, {{100, 120, 130}}, of);
    EXPECT_GE(ranks.call(400, {{200, 160, 130}}, of)[2], 400 - 128 - 3 * kTrial);
    ranks.call(64 * 1024, {{200, 160, 130}}, of);
    EXPECT_GE(ranks.call(400, {{100, 60, 50}}, of)[2], 400 - 3 * kTrial);
    // Trials in vain make ranks less easily surprised.
    int tried = 0;
    for (int i = 0; i < 100; ++i) {
      const std::int64_t slower = i % 2 == 0 ? 60 : 0;
      tried += ranks.call(1024, {{100 + slower, 60 + slower, 50 + slower}}, of)[1];
    }
    EXPECT_LE(tried, 60 * kTrial);
  }
}

TEST(FormTrials, ASizeSeenSeldomTakesTheFormOfSimilarSizes) {
  constexpr std::uint16_t kClass = TrialRanks::kClass, kOtherKind = kTrialSizes - 1;
  const std::vector<Times> reads{{200, 100}};
  TrialRanks ranks;
  ranks.call(kLeast, reads);
  EXPECT_EQ(ranks.call(20, reads, kClass + 1), (FormCounts{0, 20}));
  EXPECT_EQ(ranks.call(3, reads, kClass + 5), (FormCounts{3}));
  ranks.call(1024, reads, kTrialSizes);
  EXPECT_EQ(ranks.call(3, reads, kOtherKind), (FormCounts{3}));
}

// Calls of a class differ in size by up to two: only the time for equal sizes counts.
TEST(FormTrials, SizesOfAClassAreCompared) {
  TrialRanks ranks;
  Random random(3);
  const auto call = [&](int calls, const std::vector<Times>& times) {
    FormCounts counts{};
    for (int i = 0; i < calls; ++i) {
      const double part = 0.5 + random.below(512) / 1024.0;
      const FormCounts one = ranks.call(1, times, TrialRanks::kClass, part);
      for (std::size_t f = 0; f < kForms; ++f) counts[f] += one[f];
    }
    return counts;
  };
  call(1024, {{100'000, 94'000}});
  EXPECT_GE(call(4096, {{100'000, 94'000}})[1], 4096 - 12 * kTrial);
  EXPECT_GE(call(4096, {{100'000, 102'000}})[1], 4096 - 12 * kTrial);
}

// The turns of a waiting thread, on a clock of the test.

using Mode = WaitPolicy::Mode;

constexpr std::int64_t kBegin = 1'000'000'000;

// "probe 4, yield 16, look 1, sleep": the turns with the length of each run of equal turns, up to a
// sleep or `most` turns. Each look is `look_ns` after the one before.
std::string turns(const WaitPolicy& policy, std::int64_t look_ns, int most, std::uint32_t probed) {
  SpinBudget patience(policy, probed);
  std::int64_t now = kBegin;
  std::string text, last;
  int in_a_row = 0;
  const auto end_row = [&] {
    if (in_a_row > 0) text += last + " " + std::to_string(in_a_row) + ", ";
    in_a_row = 0;
  };
  for (int i = 0; i < most; ++i) {
    std::string name;
    switch (patience.next()) {
      case SpinBudget::Turn::probe:
        name = "probe";
        break;
      case SpinBudget::Turn::yield:
        name = "yield";
        break;
      case SpinBudget::Turn::look:
        name = "look";
        patience.looked(now);
        now += look_ns;
        break;
      case SpinBudget::Turn::sleep:
        end_row();
        EXPECT_EQ(patience.next(), SpinBudget::Turn::sleep);  // from then on
        return text + "sleep";
    }
    if (name != last) end_row();
    last = name;
    ++in_a_row;
  }
  end_row();
  return text + "...";
}

// Yields are not timed before a look, because other threads decide the length of each. A thread
// that spins for less than kAloneNs never yields. Probes are not timed: only looks end a long wait.
TEST(SpinBudget, TakesTurns) {
  constexpr Mode kPark = Mode::park, kYield = Mode::yield, kSpin = Mode::spin;
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  static_assert(WaitPolicy::kAloneNs == 50'000);
  // clang-format off
  const struct {
    WaitPolicy policy;
    std::int64_t look_ns;
    int most;
    std::uint32_t probed;
    const char* turns;
  } cases[] = {
      {{.mode = kPark, .probes = 3}, 1, 9, 0, "probe 3, sleep"},
      {{.mode = kPark, .probes = 3}, 1, 9, 2, "probe 1, sleep"},
      {{.mode = kPark, .probes = 3}, 1, 9, 64, "sleep"},
      {{.mode = kYield, .probes = 4, .yield_ns = 0}, 1, 999, 0, "probe 4, yield 16, look 1, sleep"},
      {{.mode = kYield, .probes = 0, .yield_ns = 100}, 50, 999, 0, "yield 16, look 1, yield 16, look 1, yield 16, look 1, sleep"},
      {{.mode = kSpin, .probes = 64, .spin_ns = 100'000}, 25'000, 999, 0,
       "probe 164, look 1, probe 100, look 1, probe 100, look 1, yield 1, probe 99, look 1, yield 1, probe 99, look 1, sleep"},
      {{.mode = kSpin, .probes = 0, .spin_ns = 2'000}, 1'000, 999, 0, "probe 100, look 1, probe 100, look 1, probe 100, look 1, sleep"},
      {{.mode = kPark, .probes = kMost}, kForEverNs / 100, 250, 0, "probe 100, look 1, probe 100, look 1, probe 48, ..."},
      {{.mode = kYield, .probes = 0, .yield_ns = kForEverNs}, 1'000'000'000, 40, 0, "yield 16, look 1, yield 16, look 1, yield 6, ..."},
      {{.mode = kSpin, .probes = 150, .spin_ns = 10}, 1'000'000'000, 999, 0, "probe 100, look 1, probe 150, look 1, probe 100, look 1, sleep"},
  };
  // clang-format on
  for (const auto& c : cases) EXPECT_EQ(turns(c.policy, c.look_ns, c.most, c.probed), c.turns);
}

// A thread that gives its core away has a short slice afterwards; its other scheduling values do
// not change.

// Returns f()'s result on a new thread, with the slice that new threads have.
template <class F>
std::int64_t on_new_thread(const F& f) {
  std::int64_t result = 0;
  std::thread([&] { result = f(); }).join();
  return result;
}

TEST(TimeSlice, IsShortAfterAYieldAndNothingElseChanges) {
  const std::int64_t usual = on_new_thread(time_slice_ns);
  if (usual == 0) GTEST_SKIP() << "this kernel does not tell a thread's slice";
  if (usual <= kShortSliceNs) GTEST_SKIP() << "slices are short here from the start";
  EXPECT_EQ(on_new_thread([] {
              yield_cpu();
              EXPECT_EQ(time_slice_ns(), kShortSliceNs);
              return on_new_thread(time_slice_ns);
            }),
            kShortSliceNs)
      << "a thread inherits it";
  EXPECT_EQ(on_new_thread(time_slice_ns), usual) << "of others it remains";
  // Any thread may raise its nice value, but not lower it.
  const int nicer = std::min(getpriority(PRIO_PROCESS, 0) + 1, 19);
  EXPECT_EQ(on_new_thread([nicer] {
              EXPECT_EQ(setpriority(PRIO_PROCESS, 0, nicer), 0);
              shorten_time_slice();
              EXPECT_EQ(time_slice_ns(), kShortSliceNs);
              return getpriority(PRIO_PROCESS, 0);
            }),
            nicer);
  // A thread of another policy, such as one that only uses idle cores, has no share to get early.
  EXPECT_EQ(on_new_thread([] {
              const sched_param none{};
              EXPECT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
              EXPECT_EQ(time_slice_ns(), 0);
              shorten_time_slice();
              return sched_getscheduler(0);
            }),
            SCHED_IDLE);
}

}  // namespace
}  // namespace rankine
