// Ranks that execute message plans over a simulated network. The network behaves in every way that
// MPI permits and no implementation always shows: a send ends only after it has met its receive,
// data move at any moment between the match and the wait, and ranks run in any order. The receiver
// of data in memory reads the sender's memory before it reports that it is done. The test has one
// thread and seeded random numbers, so a failure is reproducible. The line through measured message
// times is tested too.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/message_plan.h"
#include "tests/engine/run/random.h"
#include "tests/engine/run/random_call.h"

namespace rankine {

class LazyNetwork {
 public:
  struct Player {
    MessagePlan plan;
    CallWork call;
    std::size_t at = 0;  // completed steps
    std::vector<int> message{};
    std::vector<std::vector<const std::byte*>> came{};  // by parcel: pieces through memory
    std::vector<const std::byte* const*> pieces{};
  };

  LazyNetwork(const Plan& plan, std::vector<Player> ranks) : plan_(plan), ranks_(std::move(ranks)) {
    for (Player& rank : ranks_) {
      rank.message.assign(rank.plan.parcels.size(), -1);
      rank.came.resize(rank.plan.parcels.size());
      rank.pieces.resize(rank.plan.parcels.size());
      rank.call.pieces = rank.pieces.data();
    }
    operands_.resize(static_cast<std::size_t>(plan.most_operands) + 1);
  }

  // Runs all ranks; returns an empty string, or the rank and step that are stuck.
  std::string run(Random& random) {
    std::vector<int> going;
    for (std::size_t r = 0; r < ranks_.size(); ++r) going.push_back(static_cast<int>(r));
    int stuck = 0;
    while (!going.empty()) {
      const int pick = random.below(static_cast<int>(going.size()));
      const int rank = going[static_cast<std::size_t>(pick)];
      if (ranks_[static_cast<std::size_t>(rank)].at ==
          ranks_[static_cast<std::size_t>(rank)].plan.steps.size()) {
        going.erase(going.begin() + pick);
        continue;
      }
      if (step(rank, random)) {
        stuck = 0;
      } else if (++stuck > 1000 * static_cast<int>(going.size())) {
        return "rank " + std::to_string(rank) + " is stuck at step " +
               std::to_string(ranks_[static_cast<std::size_t>(rank)].at);
      }
    }
    return unmatched();
  }

  // The numbers of sent messages, of sent bytes, and of messages that went through memory.
  std::size_t messages() const { return sent_; }
  std::size_t bytes() const { return sent_bytes_; }
  std::size_t through_memory() const { return through_memory_; }

 private:
  struct End {
    int rank = -1, parcel = 0;
  };
  struct Message {
    End from, to;
    bool moved = false;
    bool done = false;              // through memory: the receiver is done
    std::vector<std::byte> data{};  // small data, sent with the word
    bool met() const { return from.rank >= 0 && to.rank >= 0; }
  };
  using Between = std::tuple<int, int, int>;  // from, to, round

  const Parcel& parcel(End end) const {
    return ranks_[static_cast<std::size_t>(end.rank)]
        .plan.parcels[static_cast<std::size_t>(end.parcel)];
  }

  bool step(int r, Random& random) {
    Player& rank = ranks_[static_cast<std::size_t>(r)];
    const MessageStep& step = rank.plan.steps[rank.at];
    if (step.kind == MessageStep::Kind::wait) {
      const bool by_wire = parcel({r, step.index}).way == Way::wire;
      if (by_wire ? !wait_for_wire({r, step.index}) : !wait_for_memory({r, step.index})) {
        return false;
      }
    } else if (step.kind == MessageStep::Kind::done) {
      message_of({r, step.index}).done = true;
    } else if (step.kind == MessageStep::Kind::start) {
      start({r, step.index}, random);
    } else {
      std::string why;
      do_work(rank.plan, plan_, step.index, rank.call, operands_, why);
    }
    ++rank.at;
    return true;
  }

  int& number_of(End end) {
    return ranks_[static_cast<std::size_t>(end.rank)].message[static_cast<std::size_t>(end.parcel)];
  }
  Message& message_of(End end) { return messages_[static_cast<std::size_t>(number_of(end))]; }

  bool wait_for_wire(End end) {
    if (number_of(end) < 0 || !message_of(end).met()) return false;
    move(message_of(end));
    return true;
  }

  bool wait_for_memory(End end) {
    const Parcel& what = parcel(end);
    if (what.sends) return what.with_the_word() || message_of(end).done;
    const int found = oldest_without(end);
    if (found < 0) return false;
    number_of(end) = found;
    Message& message = message_of(end);
    message.to = end;
    message.moved = true;
    Player& self = ranks_[static_cast<std::size_t>(end.rank)];
    const Player& peer = ranks_[static_cast<std::size_t>(message.from.rank)];
    const Parcel& sent = parcel(message.from);
    if (sent.way != what.way || sent.pieces.size() != what.pieces.size()) {
      wrong_ = "two ends of a message do not go the same way in the same pieces";
      return true;
    }
    auto& came = self.came[static_cast<std::size_t>(end.parcel)];
    std::size_t begin = 0;
    for (std::size_t i = 0; i < what.pieces.size(); ++i) {
      const Piece& piece = sent.pieces[i];
      if (piece.bytes != what.pieces[i].bytes) wrong_ = "a piece has another length at its end";
      const bool shown = what.with_the_word() || piece.memory == Memory::scratch;
      if (what.way == Way::scratch && !shown) wrong_ = "what is sent is not shown";
      came.push_back(what.with_the_word() ? message.data.data() + begin : address(peer, piece));
      begin += piece.bytes;
    }
    self.pieces[static_cast<std::size_t>(end.parcel)] = came.data();
    store_pieces(self.plan, plan_, end.parcel, self.call);
    return true;
  }

  static std::byte* address(const Player& of, const Piece& piece) {
    return of.call.memory[static_cast<std::size_t>(piece.memory)] + piece.offset;
  }
  Between between(End end) const {
    const Parcel& what = parcel(end);
    return what.sends ? Between{end.rank, what.peer, what.round}
                      : Between{what.peer, end.rank, what.round};
  }
  // The oldest message without this end, or -1.
  int oldest_without(End end) {
    for (const int m : under_way_[between(end)]) {
      const Message& message = messages_[static_cast<std::size_t>(m)];
      if ((parcel(end).sends ? message.from : message.to).rank < 0) return m;
    }
    return -1;
  }

  void start(End end, Random& random) {
    const Parcel& what = parcel(end);
    if (what.sends) {
      ++sent_;
      sent_bytes_ += what.bytes;
      if (what.way != Way::wire) ++through_memory_;
    }
    int found = oldest_without(end);
    if (found < 0) {
      found = static_cast<int>(messages_.size());
      messages_.push_back({});
      under_way_[between(end)].push_back(found);
    }
    number_of(end) = found;
    Message& message = message_of(end);
    (what.sends ? message.from : message.to) = end;
    if (what.with_the_word()) {
      for (const Piece& piece : what.pieces) {
        const std::byte* const at = address(ranks_[static_cast<std::size_t>(end.rank)], piece);
        message.data.insert(message.data.end(), at, at + piece.bytes);
      }
    }
    if (message.met() && random.one_in(2)) move(message);
  }

  void move(Message& message) {
    if (message.moved) return;
    message.moved = true;
    std::vector<std::byte> data;
    const auto pieces = [&](End end, const auto& visit) {
      for (const Piece& piece : parcel(end).pieces) {
        visit(address(ranks_[static_cast<std::size_t>(end.rank)], piece), piece.bytes);
      }
    };
    pieces(message.from,
           [&](const std::byte* at, std::size_t n) { data.insert(data.end(), at, at + n); });
    std::size_t taken = 0;
    pieces(message.to, [&](std::byte* at, std::size_t n) {
      if (taken + n <= data.size()) std::memcpy(at, data.data() + taken, n);
      taken += n;
    });
    if (taken != data.size()) {
      wrong_ = "a message of " + std::to_string(data.size()) + " bytes is received as " +
               std::to_string(taken);
    }
  }

  std::string unmatched() const {
    for (const Message& message : messages_) {
      if (!message.met()) return "a message has only one end";
      const Parcel& sent = parcel(message.from);
      if (sent.way != Way::wire && !message.done) return "nobody is told that a message was used";
    }
    return wrong_;
  }

  const Plan& plan_;
  std::vector<Player> ranks_;
  std::deque<Message> messages_;
  std::map<Between, std::deque<int>> under_way_;
  std::vector<void*> operands_;
  std::size_t sent_ = 0, sent_bytes_ = 0, through_memory_ = 0;
  std::string wrong_;
};

// Alpha and beta from message times: exact times, and times as of a busy machine.

namespace {

constexpr double kAlpha = 25e-6, kBeta = 8e-9;

std::vector<TimedMessage> times_of(std::vector<std::size_t> lengths) {
  std::vector<TimedMessage> messages;
  for (const std::size_t bytes : lengths) {
    messages.push_back({bytes, kAlpha + kBeta * static_cast<double>(bytes - 8)});
  }
  return messages;
}

TEST(MessageLine, IsTheOneThatTimesLieOn) {
  const auto link = line_through(times_of({8, 1000, 64'000, 1'000'000}));
  ASSERT_TRUE(link.ok()) << link.status().text();
  EXPECT_NEAR(link->alpha.to_double(), kAlpha, 1e-15);
  EXPECT_NEAR(link->beta.to_double(), kBeta, 1e-15);
}

TEST(MessageLine, LooksAwayFromALengthThatWasHeldUp) {
  for (std::size_t held_up = 1; held_up < 4; ++held_up) {
    auto messages = times_of({8, 1000, 64'000, 1'000'000});
    messages[held_up].seconds *= 5;
    const auto link = line_through(messages);
    ASSERT_TRUE(link.ok()) << link.status().text();
    EXPECT_NEAR(link->beta.to_double(), kBeta, 1e-15) << held_up;
  }
}

TEST(MessageLine, RefusesTimesThatDoNotGrow) {
  auto messages = times_of({8, 1000, 64'000, 1'000'000});
  messages[0].seconds = 1;  // the short message was delayed
  const auto link = line_through(messages);
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.status().code(), Code::invalid_argument);
  EXPECT_NE(link.status().text().find("8 B in 1.00 s, 1000 B in"), std::string::npos)
      << link.status().text();
  EXPECT_NE(link.status().text().find("model.beta is -"), std::string::npos)
      << link.status().text();
  messages[0].seconds = 0;
  EXPECT_FALSE(line_through(messages).ok());
}

}  // namespace

namespace {

// The distance from output to input if both are in one memory for one plan. Only all-reduce and
// all-to-all need to know whether the call is in place; for other collectives the plan is right
// both ways.
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
          .ports = 0,  // budgets exist in mailboxes only
          .algorithm = algorithm,
          .transport = Transport::mailbox};
}

// The node of each rank, and its process.
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
  std::string wrong;  // empty if all is right
  std::size_t messages = 0, bytes = 0, through_memory = 0;
};

// Without homes all data go over the wire.
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

// Ranks in all arrangements: each on a separate node, all in one process, and mixtures.
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

// The numbers must be one message per round and per pair of ranks that exchanges data in the round,
// and the bytes of the schedule's transfers.
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
