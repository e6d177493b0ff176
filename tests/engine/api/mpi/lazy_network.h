// Ranks that have message plans, and a network between them that does what MPI may do and no
// implementation does every time: a send is over only when it has met its reception, data are moved
// at any moment from then until somebody has waited for them, and ranks go on in any order. One
// thread, and numbers of a seed: what goes wrong goes wrong again.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/api/mpi/message_plan.h"
#include "tests/engine/run/random.h"

namespace rankine {

class LazyNetwork {
 public:
  struct Player {
    MessagePlan plan;
    CallWork call;
    std::size_t at = 0;  // steps done
    std::vector<int> message{};
  };

  LazyNetwork(const Plan& plan, std::vector<Player> ranks) : plan_(plan), ranks_(std::move(ranks)) {
    for (Player& rank : ranks_) rank.message.assign(rank.plan.parcels.size(), -1);
    operands_.resize(static_cast<std::size_t>(plan.most_operands) + 1);
  }

  // Empty, or who is stuck where.
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

  // That were sent.
  std::size_t messages() const { return sent_; }
  std::size_t bytes() const { return sent_bytes_; }

 private:
  struct End {
    int rank = -1, parcel = 0;
  };
  struct Message {
    End from, to;
    bool moved = false;
    bool met() const { return from.rank >= 0 && to.rank >= 0; }
  };
  using Way = std::tuple<int, int, int>;  // from, to, round

  const Parcel& parcel(End end) const {
    return ranks_[static_cast<std::size_t>(end.rank)]
        .plan.parcels[static_cast<std::size_t>(end.parcel)];
  }

  bool step(int r, Random& random) {
    Player& rank = ranks_[static_cast<std::size_t>(r)];
    const MessageStep& step = rank.plan.steps[rank.at];
    if (step.kind == MessageStep::Kind::wait) {
      const int m = rank.message[static_cast<std::size_t>(step.index)];
      if (m < 0 || !messages_[static_cast<std::size_t>(m)].met()) return false;
      move(messages_[static_cast<std::size_t>(m)]);
    } else if (step.kind == MessageStep::Kind::start) {
      start({r, step.index}, random);
    } else {
      std::string why;
      do_work(rank.plan, plan_, step.index, rank.call, operands_, why);
    }
    ++rank.at;
    return true;
  }

  void start(End end, Random& random) {
    const Parcel& what = parcel(end);
    const Way way =
        what.sends ? Way{end.rank, what.peer, what.round} : Way{what.peer, end.rank, what.round};
    if (what.sends) {
      ++sent_;
      sent_bytes_ += what.bytes;
    }
    // The oldest that lacks this end.
    std::deque<int>& all = under_way_[way];
    int found = -1;
    for (const int m : all) {
      Message& message = messages_[static_cast<std::size_t>(m)];
      if (found < 0 && (what.sends ? message.from : message.to).rank < 0) found = m;
    }
    if (found < 0) {
      found = static_cast<int>(messages_.size());
      messages_.push_back({});
      all.push_back(found);
    }
    Message& message = messages_[static_cast<std::size_t>(found)];
    (what.sends ? message.from : message.to) = end;
    ranks_[static_cast<std::size_t>(end.rank)].message[static_cast<std::size_t>(end.parcel)] =
        found;
    if (message.met() && random.one_in(2)) move(message);
  }

  void move(Message& message) {
    if (message.moved) return;
    message.moved = true;
    std::vector<std::byte> data;
    const auto pieces = [&](End end, const auto& visit) {
      const Addresses& memory = ranks_[static_cast<std::size_t>(end.rank)].call.memory;
      for (const Piece& piece : parcel(end).pieces) {
        visit(memory[static_cast<std::size_t>(piece.memory)] + piece.offset, piece.bytes);
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
    }
    return wrong_;
  }

  const Plan& plan_;
  std::vector<Player> ranks_;
  std::vector<Message> messages_;
  std::map<Way, std::deque<int>> under_way_;
  std::vector<void*> operands_;
  std::size_t sent_ = 0, sent_bytes_ = 0;
  std::string wrong_;
};

}  // namespace rankine
