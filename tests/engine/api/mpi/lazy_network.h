// Ranks that have message plans, and a network between them that does what MPI may do and no
// implementation does every time: a send is over only when it has met its reception, data are moved
// at any moment from then until somebody has waited for them, and ranks go on in any order. What
// goes through memory is read there by its receiver until that says that it is done. One thread,
// and numbers of a seed: what goes wrong goes wrong again.
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

  // That were sent, and those of them that went through memory.
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
    bool done = false;              // through memory: it has been used
    std::vector<std::byte> data{};  // with the word
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
  // The oldest message that lacks this end, or -1.
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

}  // namespace rankine
