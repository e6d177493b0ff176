#include "engine/api/mpi/message_plan.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "tests/engine/api/mpi/lazy_network.h"
#include "tests/engine/run/random_call.h"

namespace rankine {
namespace {

// What lies in one memory for one plan. All-reduce and all-to-all know; of the others the plan is
// right both ways.
std::optional<std::ptrdiff_t> in_place_offset(const TestCall& call, Rank r) {
  const Image& image = call.before[static_cast<std::size_t>(r)];
  const bool knows = call.goal.collective == Collective::all_reduce ||
                     call.goal.collective == Collective::all_to_all;
  if (knows && image.input != image.output) return {};
  const auto offset =
      static_cast<std::ptrdiff_t>(image.input) - static_cast<std::ptrdiff_t>(image.output);
  return offset;
}

CallRules rules(int ranks, const Algorithm* algorithm = nullptr) {
  return {.ranks = ranks,
          .slot_payload = 0,
          .mailbox_capacity = 1 << 20,
          .ports = 0,  // mailboxes keep budgets, and these plans use none
          .algorithm = algorithm,
          .transport = Transport::mailbox};
}

// Who is on a node, and in a process of it: by rank.
struct Homes {
  std::vector<int> node, process;

  std::vector<Way> ways_of(Rank r) const {
    const auto self = static_cast<std::size_t>(r);
    std::vector<Way> ways;
    for (std::size_t i = 0; i < node.size(); ++i) {
      ways.push_back(node[i] != node[self]         ? Way::wire
                     : process[i] != process[self] ? Way::scratch
                                                   : Way::here);
    }
    return ways;
  }
};

Homes homes(Random& random, int ranks, int nodes, int processes) {
  Homes out;
  for (Rank r = 0; r < ranks; ++r) {
    out.node.push_back(random.below(nodes));
    out.process.push_back(random.below(processes));
  }
  return out;
}

struct Outcome {
  std::string wrong;  // or empty
  std::size_t messages = 0, bytes = 0, through_memory = 0;
};

// Without homes all goes over the wire.
Outcome run(const TestCall& call, Random& random, const Homes& at = {}) {
  std::vector<Image> images = call.before;
  std::vector<std::vector<std::byte>> scratch;
  std::vector<LazyNetwork::Player> players;
  for (Rank r = 0; r < call.goal.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    LazyNetwork::Player player;
    player.plan = message_plan(call.plan.rank[i], in_place_offset(call, r),
                               at.node.empty() ? std::vector<Way>() : at.ways_of(r));
    scratch.emplace_back(player.plan.scratch_bytes, std::byte{0xee});
    player.call.memory = {images[i].bytes.data() + images[i].input,
                          images[i].bytes.data() + images[i].output, scratch.back().data()};
    players.push_back(std::move(player));
  }
  LazyNetwork network(call.plan, std::move(players));
  std::string wrong = network.run(random);
  for (std::size_t r = 0; r < images.size() && wrong.empty(); ++r) {
    wrong = difference_between(images[r], call.after[r]);
    if (!wrong.empty()) wrong = "rank " + std::to_string(r) + ": " + wrong;
  }
  if (!wrong.empty()) wrong = call.text + ": " + wrong + "\n" + to_string(call.schedule);
  return {wrong, network.messages(), network.bytes(), network.through_memory()};
}

TEST(MessagePlan, RandomSchedulesMeanWhatTheySay) {
  Random random(20261123);
  for (int i = 0; i < 3000; ++i) {
    const TestCall call = random_call(random, rules(random.between(1, 6)));
    ASSERT_FALSE(call.before.empty()) << call.text;
    ASSERT_EQ(run(call, random).wrong, "");
  }
}

// Wherever the ranks are: each on its own, all in one process, and anything between.
TEST(MessagePlan, RandomSchedulesMeanTheSameThroughMemory) {
  Random random(20261124);
  std::size_t messages = 0, through_memory = 0;
  for (int i = 0; i < 6000; ++i) {
    const int ranks = random.between(2, 6);
    const TestCall call = random_call(random, rules(ranks));
    ASSERT_FALSE(call.before.empty()) << call.text;
    const Outcome outcome =
        run(call, random, homes(random, ranks, random.between(1, 3), random.between(1, 3)));
    ASSERT_EQ(outcome.wrong, "");
    messages += outcome.messages;
    through_memory += outcome.through_memory;
  }
  EXPECT_GT(through_memory, messages / 3);
  EXPECT_LT(through_memory, messages);
}

TEST(MessagePlan, EveryAlgorithmThroughMemory) {
  Random random(23);
  for (const Algorithm& algorithm : catalogue()) {
    for (const int ranks : {2, 3, 5, 8}) {
      Params params;
      params.ranks = ranks;
      if (algorithm.collective == Collective::barrier || algorithm.refusal(params)) continue;
      const TestCall call = random_call(random, rules(ranks, &algorithm));
      ASSERT_FALSE(call.before.empty()) << call.text;
      ASSERT_EQ(run(call, random, homes(random, ranks, 2, 2)).wrong, "") << algorithm.name;
    }
  }
}

// A message per round and pair of ranks between which a transfer of that round moves anything, and
// the bytes that the transfers state.
TEST(MessagePlan, SendsWhatTheScheduleStates) {
  Random random(22);
  for (const Algorithm& algorithm : catalogue()) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
      Params params;
      params.ranks = ranks;
      if (algorithm.collective == Collective::barrier || algorithm.refusal(params)) continue;
      const TestCall call = random_call(random, rules(ranks, &algorithm));
      ASSERT_FALSE(call.before.empty()) << call.text;
      const Outcome outcome = run(call, random);
      ASSERT_EQ(outcome.wrong, "");
      std::set<std::tuple<int, Rank, Rank>> messages;
      std::size_t bytes = 0;
      for (int k = 0; k < call.schedule.rounds; ++k) {
        for_each_transfer(call.schedule, k, [&](const Transfer& t) {
          std::size_t moved = 0;
          t.what.list.for_each(
              [&](Block b) { moved += call.layout.blocks[static_cast<std::size_t>(b)].bytes; });
          t.from.for_each([&](Rank from) {
            t.to.for_each([&](Rank to) {
              if (from == to || moved == 0) return;
              messages.emplace(k, from, to);
              bytes += moved;
            });
          });
        });
      }
      EXPECT_EQ(outcome.messages, messages.size()) << call.text;
      EXPECT_EQ(outcome.bytes, bytes) << call.text;
    }
  }
}

}  // namespace
}  // namespace rankine
