// Tests contenders with ranks in processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/rivals/protocol.h"
#include "bench/rivals/right_everywhere.h"
#include "bench/rivals/rival.h"

namespace rankine::rivals {
namespace {

using testing::HasSubstr;

Setup setup_of(int ranks) { return make_setup(ranks, kMaxFloats * sizeof(float), true); }

using Make = std::unique_ptr<Rival> (*)(const Setup&);
struct Case {
  Make make;
  int others;  // collectives beside all-reduce, times sizes, that it takes
};
constexpr Case kCases[] = {
    {make_expert_one_shot, 5 * 6},   {make_expert_ll, 0},
    {make_inference_shm, 7},         {make_vllm_shm, 7},
    {make_rankine_processes, 5 * 7}, {make_rankine_shared, 5 * 7},
};

// Only the small sizes: each call of Gloo takes longer than all calls of another contender.
TEST(Gloo, IsRightWhereItIsInstalled) {
  rivals::Setup setup = setup_of(3);
  ProcessContender gloo(make_gloo(setup), setup);
  gloo.await();
  if (!gloo.missing.empty()) {
    EXPECT_EQ(gloo.missing, "not installed: libgloo-dev");
    GTEST_SKIP() << gloo.missing;
  }
  std::uint32_t seed = 0;
  for (int c = 0; c < kCollectives; ++c) {
    Batch batch;
    batch.collective = static_cast<Collective>(c);
    EXPECT_EQ(gloo.takes(batch.collective, 8), batch.collective != Collective::reduce_scatter);
    for (const std::size_t count : {0, 1, 17, 1031}) {
      batch.bytes = count * sizeof(float);
      if (gloo.takes(batch.collective, batch.bytes)) expect_right(gloo, batch, seed);
    }
  }
}

TEST(Ucc, IsRightWhereItIsInstalled) {
  for (const int ranks : {1, 2, 3, 5}) {
    const rivals::Setup setup = setup_of(ranks);
    ProcessContender ucc(make_ucc(setup), setup);
    ucc.await();
    if (!ucc.missing.empty()) {
      EXPECT_EQ(ucc.missing, "not installed: UCC, at UCC_HOME or where pkg-config knows it");
      GTEST_SKIP() << ucc.missing;
    }
    expect_right_all_reduces(ucc);
    EXPECT_EQ(expect_right_other_collectives(ucc), 5 * 7) << ranks;
  }
}

class ProcessesTest : public testing::TestWithParam<int> {};

TEST_P(ProcessesTest, EveryRivalIsRightInWhateverItTakes) {
  const rivals::Setup setup = setup_of(GetParam());
  for (const Case& one : kCases) {
    ProcessContender contender(one.make(setup), setup);
    contender.await();
    ASSERT_EQ(contender.missing, "") << contender.name;
    EXPECT_EQ(contender.ranks().size(), static_cast<std::size_t>(setup.ranks));
    expect_right_all_reduces(contender);
    EXPECT_EQ(expect_right_other_collectives(contender), one.others) << contender.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ProcessesTest, testing::Values(1, 2, 3, 5));

// Mutations: a later piece from the first piece's input, or in a place that ranks still read.
TEST(Servers, MoveLargeVectorsInPieces) {
  std::uint32_t seed = 0;
  for (const auto& [make, mib] : {std::pair<Make, std::size_t>(make_vllm_shm, 4),
                                  std::pair<Make, std::size_t>(make_inference_shm, 32)}) {
    Batch batch;
    batch.bytes = (mib << 20) + 17 * sizeof(float);
    const rivals::Setup setup = make_setup(3, batch.bytes, true);
    ProcessContender contender(make(setup), setup);
    contender.await();
    expect_right(contender, batch, seed);
  }
}

// A correct rival with one fault, in a rank's process.
struct Odd final : Rival {
  enum class What { wrong_element, dies, ends_early, cannot_start };
  Odd(What its_what, const Setup& setup)
      : Rival("odd", Family::kOther), what(its_what), honest(make_inference_shm(setup)) {}
  void start(int rank) override {
    if (what == What::cannot_start && rank == 1) throw std::runtime_error("no seat left");
  }
  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
    if (what == What::dies && rank == 1) raise(SIGKILL);
    if (what == What::ends_early && rank == 1) _exit(7);
    honest->call(collective, rank, in, out, count);
    if (what == What::wrong_element && rank == 1) out[count / 2] += 1;
  }
  const What what;
  std::unique_ptr<Rival> honest;
};

Batch some_batch() {
  Batch batch;
  batch.bytes = 4000;
  batch.protocol = Protocol::fresh;
  return batch;
}

TEST(ProcessContender, FindsOneWrongElement) {
  const rivals::Setup setup = setup_of(2);
  ProcessContender odd(std::make_unique<Odd>(Odd::What::wrong_element, setup), setup);
  odd.await();
  const Measured measured = odd.run(some_batch());
  EXPECT_EQ(measured.wrong, 1u);
  EXPECT_GT(measured.us, 0);
}

TEST(ProcessContender, SaysWhichRankDiedAndEndsTheOthers) {
  const rivals::Setup setup = setup_of(3);
  for (const auto& [what, words] :
       {std::pair(Odd::What::dies, "rank 1 ended with signal 9 (Killed)"),
        std::pair(Odd::What::ends_early, "rank 1 ended with exit 7")}) {
    ProcessContender odd(std::make_unique<Odd>(what, setup), setup);
    odd.await();
    ASSERT_EQ(odd.missing, "");
    const std::vector<pid_t> ranks = odd.ranks();
    ASSERT_EQ(ranks.size(), 3u);
    odd.run(some_batch());
    EXPECT_THAT(odd.missing, HasSubstr(words));
    EXPECT_THAT(odd.missing, HasSubstr("failed at 4000 B"));
    for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0) << "rank is still there";
  }
}

TEST(ProcessContender, SaysWhyARankCannotTakePart) {
  const rivals::Setup setup = setup_of(2);
  ProcessContender odd(std::make_unique<Odd>(Odd::What::cannot_start, setup), setup);
  odd.await();
  EXPECT_THAT(odd.missing, HasSubstr("no seat left"));
  EXPECT_TRUE(odd.ranks().empty());
}

TEST(ProcessContender, LeavesNothingBehind) {
  pid_t rank = 0;
  {
    const rivals::Setup setup = setup_of(2);
    ProcessContender contender(make_rankine_shared(setup), setup);
    contender.await();
    ASSERT_EQ(contender.missing, "");
    rank = contender.ranks().front();
    EXPECT_EQ(kill(rank, 0), 0);
  }
  EXPECT_NE(kill(rank, 0), 0);
  const std::string ours = "rankine.rankine_rivals_" + std::to_string(getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr(ours)));
}

}  // namespace
}  // namespace rankine::rivals
