// Ranks that share what they may not are told so, on every transport, in their first call of a kind
// and in later ones; what they may share works.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

constexpr int kRanks = 5;

// Under the thread sanitizer ranks may not store to the same memory before they find out, as they
// do where they have met before.
#if defined(__SANITIZE_THREAD__)
constexpr bool kMayRace = false;
#else
constexpr bool kMayRace = true;
#endif

struct How {
  Collective collective = Collective::all_reduce;
  std::string_view algorithm = "";
  Transport transport = Transport::direct;
  std::size_t count = 4;
  bool met_before = false;  // by a good call of the same kind
};

void PrintTo(const How& how, std::ostream* out) {
  *out << name_of(how.collective) << " " << (how.algorithm.empty() ? "chosen" : how.algorithm)
       << ", " << name_of(how.transport) << ", count " << how.count
       << (how.met_before ? ", later" : ", first");
}

// Buffers of one rank: as large as any collective here needs them.
struct Own {
  std::vector<std::int32_t> in, out;
  explicit Own(std::size_t count) : in(count * kRanks, 1), out(count * kRanks, 0) {}
};

class Sharing : public testing::TestWithParam<How> {
 protected:
  // What `change` makes of the ranks' own buffers is called, after good calls if that is asked for.
  // All ranks that do not succeed are told the same mismatch.
  template <class Change>
  std::vector<Status> call(const Change& change) {
    const How& how = GetParam();
    std::vector<Own> own(kRanks, Own(how.count));
    Ranks all({.ranks = kRanks, .timeout = std::chrono::milliseconds(60'000), .tuned = false});
    const auto results = all.run([&](Member& me) {
      Own& mine = own[static_cast<std::size_t>(me.rank())];
      Call call{.collective = how.collective,
                .in = mine.in.data(),
                .out = mine.out.data(),
                .count = how.count,
                .type = DataType::i32,
                .options = {.algorithm = how.algorithm, .transport = how.transport}};
      // Others may be in the next call already, and end it, while this rank is in a good one still.
      for (int i = how.met_before ? 2 : 0; i > 0; --i) {
        if (const Status status = me.call(call); !status.ok()) return status;
      }
      change(me.rank(), call, own);
      const Status status = me.call(call);
      if (status.ok() && wanted != 0) {
        const auto* const out = static_cast<const std::int32_t*>(call.out);
        for (std::size_t i = 0; i < how.count; ++i) EXPECT_EQ(out[i], wanted) << me.rank();
      }
      return status;
    });
    std::string text;
    for (const Status& status : results) {
      if (status.ok()) continue;
      EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
      EXPECT_NE(status.text().find("overlap; what a rank gets must lie apart"), std::string::npos)
          << status.text();
      if (text.empty()) text = status.text();
      EXPECT_EQ(status.text(), text);
    }
    EXPECT_EQ(name_of(all.communicator().health().code()), name_of(Code::mismatch));
    return results;
  }
  // In a first call all ranks; later these, and whoever else had to wait for them.
  void expect_told(const std::vector<Status>& results, const std::vector<Rank>& later) {
    for (Rank r = 0; r < kRanks; ++r) {
      const bool surely =
          !GetParam().met_before || std::find(later.begin(), later.end(), r) != later.end();
      EXPECT_FALSE(surely && results[static_cast<std::size_t>(r)].ok()) << "rank " << r;
    }
  }

  std::int32_t wanted = 0;  // in the outputs of ranks that succeed; 0: anything
};

const std::vector<Rank> kAll = {0, 1, 2, 3, 4};

// Collectives in which everybody needs something of everybody.
class AllHearFromAll : public Sharing {};

TEST_P(AllHearFromAll, OneOutputForAll) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results =
      call([](Rank, Call& call, std::vector<Own>& own) { call.out = own[0].out.data(); });
  expect_told(results, kAll);
}

TEST_P(AllHearFromAll, OneBufferInPlaceForAll) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    // Where ranks have a block of it, each at its own.
    std::int32_t* const all = own[0].out.data();
    std::int32_t* const block = all + static_cast<std::size_t>(r) * call.count;
    call.in = call.collective == Collective::all_gather ? block : all;
    call.out = call.collective == Collective::reduce_scatter ? block : all;
  });
  // In a small reduce-scatter rank 0, whose output begins where all inputs do, hears of no such
  // output; the others hear of its.
  expect_told(results, {1, 2, 3, 4});
}

INSTANTIATE_TEST_SUITE_P(
    Calls, AllHearFromAll, testing::ValuesIn([] {
      std::vector<How> all;
      for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                          Collective::all_gather, Collective::all_to_all}) {
        for (const bool met_before : {false, true}) {
          for (const Transport transport :
               {Transport::direct, Transport::mailbox, Transport::board}) {
            all.push_back({collective, "", transport, 4, met_before});
          }
          // Beyond what slots hold: data go by address.
          all.push_back({collective, "", Transport::direct, 20'000, met_before});
          all.push_back({collective, "", Transport::mailbox, 20'000, met_before});
        }
      }
      for (const std::string_view algorithm : {"ring", "recursive_doubling", "double_tree"}) {
        for (const Transport transport : {Transport::direct, Transport::mailbox}) {
          all.push_back({Collective::all_reduce, algorithm, transport, 64, false});
          all.push_back({Collective::all_reduce, algorithm, transport, 64, true});
        }
      }
      return all;
    }()));

// Ranks 1 and 3 share; only they, who hear from one another.
class TwoThatTalk : public Sharing {};

TEST_P(TwoThatTalk, OneOutput) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  wanted = kRanks;
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    if (r == 3) call.out = own[1].out.data();
  });
  expect_told(results, {1, 3});
}

TEST_P(TwoThatTalk, TheInputOfAnother) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  // Later rank 3 may have its sum, there, while the others have not yet heard rank 1: before that
  // is told, they add up what it stored.
  if (!GetParam().met_before) wanted = kRanks;
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    if (r == 3) call.out = own[1].in.data();
  });
  expect_told(results, {1});
}

INSTANTIATE_TEST_SUITE_P(
    Calls, TwoThatTalk,
    testing::Values(
        How{.transport = Transport::board}, How{.transport = Transport::mailbox},
        How{.transport = Transport::direct}, How{.count = 9'000},
        How{.transport = Transport::board, .met_before = true},
        How{.algorithm = "direct_one_shot", .transport = Transport::mailbox, .met_before = true},
        How{.algorithm = "direct_one_shot", .met_before = true},
        How{.algorithm = "direct_two_shot", .count = 9'000, .met_before = true}));

// Overlaps in part, and of ranks that never hear from one another: in the first call in any case.
class AnyTwo : public Sharing {};

TEST_P(AnyTwo, InPart) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    // One element of the last rank's output is the first one's.
    if (r == 0) call.out = own[2].out.data() + call.count - 1;
    if (r == 2) call.out = own[2].out.data();
  });
  expect_told(results, {0, 2});
}

TEST_P(AnyTwo, InputInPart) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    if (r == 0) call.out = own[2].in.data() + call.count - 1;
  });
  expect_told(results, {0, 2});
}

INSTANTIATE_TEST_SUITE_P(
    Calls, AnyTwo,
    testing::Values(How{.transport = Transport::board}, How{.transport = Transport::mailbox},
                    How{.transport = Transport::direct}, How{.count = 9'000},
                    How{.algorithm = "ring", .count = 40},
                    How{.algorithm = "ring", .transport = Transport::mailbox, .count = 40},
                    How{.algorithm = "direct_two_shot", .count = 9'000, .met_before = true}));

TEST(Sharing, IsFoundInTheFirstCallAfterAQuestion) {
  std::vector<std::int32_t> out(4);
  std::vector<std::vector<std::int32_t>> in(kRanks, std::vector<std::int32_t>(4, 1));
  Ranks all({.ranks = kRanks, .tuned = false});
  for (const Status& status : all.run([&](Member& me) {
         const Rank r = me.rank();
         // Neighbours in the ring of five are 0 and 1, 3 and 4, but not 0 and 2.
         std::vector<std::int32_t> mine(4);
         const Call call{.in = in[static_cast<std::size_t>(r)].data(),
                         .out = r == 0 || r == 2 ? out.data() : mine.data(),
                         .count = 4,
                         .type = DataType::i32,
                         .options = {.algorithm = "ring"}};
         EXPECT_TRUE(me.plan_of(call).ok());
         return me.call(call);
       })) {
    EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
    EXPECT_NE(status.text().find("overlap"), std::string::npos) << status.text();
  }
}

// --- what is allowed

// Calls three times with what `call_of` says, and expects success.
template <class CallOf>
void expect_success(int ranks, const CallOf& call_of) {
  Ranks all({.ranks = ranks, .tuned = false});
  for (const Status& status : all.run([&](Member& me) {
         for (int i = 0; i < 3; ++i) me.call(call_of(me.rank())).throw_if_error();
         return Status();
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(NotSharing, OneInputForAll) {
  const std::vector<std::int32_t> in(300 * kRanks, 3);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                      Collective::all_gather, Collective::all_to_all}) {
    for (const std::size_t count : {1, 300}) {
      for (const auto transport : {std::optional<Transport>(), std::optional(Transport::mailbox),
                                   std::optional(Transport::direct)}) {
        std::vector<std::vector<std::int32_t>> out(kRanks,
                                                   std::vector<std::int32_t>(count * kRanks));
        expect_success(kRanks, [&](Rank r) {
          return Call{.collective = collective,
                      .in = in.data(),
                      .out = out[static_cast<std::size_t>(r)].data(),
                      .count = count,
                      .type = DataType::i32,
                      .options = {.transport = transport}};
        });
        EXPECT_EQ(out[2][0], reduces(collective) ? 3 * kRanks : 3);
      }
    }
  }
}

TEST(NotSharing, OutputsSideBySide) {
  // Element by element of one line, and blocks of one vector.
  for (const std::size_t count : {1, 5, 3'000}) {
    for (const auto transport : {std::optional<Transport>(), std::optional(Transport::mailbox),
                                 std::optional(Transport::direct)}) {
      std::vector<std::int32_t> both(2 * kRanks * count, 1);
      expect_success(kRanks, [&](Rank r) {
        const auto at = static_cast<std::size_t>(r) * 2 * count;
        return Call{.in = both.data() + at,
                    .out = both.data() + at + count,
                    .count = count,
                    .type = DataType::i32,
                    .options = {.transport = transport}};
      });
      EXPECT_EQ(both[count], kRanks);
    }
  }
}

TEST(NotSharing, BuffersThatACallDoesNotUse) {
  for (const std::size_t count : {1, 3'000}) {
    std::vector<std::int32_t> dummy(count * kRanks), result(count * kRanks), in(count * kRanks, 1);
    // Where nothing is to be had `out` may be anything, also somebody's input or output.
    for (const Collective collective : {Collective::reduce, Collective::gather}) {
      for (std::int32_t* const unused : {dummy.data(), in.data(), result.data()}) {
        expect_success(kRanks, [&](Rank r) {
          return Call{.collective = collective,
                      .in = in.data(),
                      .out = r == 1 ? result.data() : unused,
                      .count = count,
                      .type = DataType::i32,
                      .root = 1};
        });
      }
    }
    std::vector<std::vector<std::int32_t>> out(kRanks, std::vector<std::int32_t>(count));
    expect_success(kRanks, [&](Rank r) {
      return Call{.collective = Collective::scatter,
                  .in = r == 1 ? in.data() : out[1].data(),  // not used elsewhere
                  .out = out[static_cast<std::size_t>(r)].data(),
                  .count = count,
                  .type = DataType::i32,
                  .root = 1};
    });
    // Those between whom nothing is sent.
    expect_success(kRanks, [&](Rank r) {
      auto* const data = r == 0 || r == 3 ? out[static_cast<std::size_t>(r)].data() : dummy.data();
      return Call{.collective = Collective::send_recv,
                  .in = data,
                  .out = data,
                  .count = count,
                  .type = DataType::i32,
                  .root = 0,
                  .peer = 3};
    });
  }
  // Nothing at all, at one address.
  std::int32_t word = 0;
  expect_success(kRanks, [&](Rank) {
    return Call{.in = &word, .out = &word, .count = 0, .type = DataType::i32};
  });
}

TEST(NotSharing, MemoryThatARankHasGivenBack) {
  // The root of a small broadcast has gone on when the last rank comes with the same memory.
  std::vector<std::int32_t> memory(2, 7), others(2);
  Ranks all({.ranks = 2, .tuned = false});
  for (int i = 0; i < 3; ++i) {
    for (const Rank r : {0, 1}) {  // one after the other
      if (r == 1) std::fill(memory.begin(), memory.end(), 0);
      const Status status = all.members()[static_cast<std::size_t>(r)]->broadcast(
          std::span(memory), 0, {.transport = Transport::mailbox});
      EXPECT_TRUE(status.ok()) << status.text();
    }
    EXPECT_EQ(memory[1], 7);
  }
}

}  // namespace
}  // namespace rankine
