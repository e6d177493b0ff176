// Whether ranks that talk through bounded mailboxes ever wait for one another for ever.
//
// Every ordered pair of ranks has a mailbox of a fixed capacity. A sender waits while it is full, a
// receiver while it is empty, and a rank does one thing after the other. That is a Kahn network:
// how far each rank gets does not depend on who is scheduled when, so replaying one order decides
// for all.
//
// A round is replayed at a time. Where it does not run to its end, the ranks that are left wait for
// each other in a circle (every send has its receive in the same round), and no later round frees
// them; where it does, all mailboxes are empty again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {

// In which order a rank works through its messages of one round.
enum class MessageOrder : unsigned char {
  sub_rounds,      // the j-th message of a pair in this round belongs to sub-round j / capacity; in
                   // every sub-round all sends in the order stated, then all receives
  sends_first,     // all sends in the order stated, then all receives
  receives_first,  // the other way round
  statement,       // sends and receives mixed, as stated
};

// Not thread-safe. Time and memory are linear in the messages of a round.
class MailboxReplay {
 public:
  // capacity: messages that a mailbox holds, at least 1.
  MailboxReplay(int ranks, int capacity, MessageOrder order);
  // Of one rank that stands for all, where everyone does the same (everyone.h) and all of them do
  // it at once. Not in the order of `statement`, in which they do not do the same: who is stated
  // first sends before it receives.
  MailboxReplay(const Everyone& all, int capacity, MessageOrder order);

  // The next message of the round, in the order stated; from != to.
  void add(Rank from, Rank to) {
    if (rotation_ != nullptr) to = rotation_->rotated(to, rotation_->back(from));
    messages_.push_back({rotation_ != nullptr ? 0 : from, to, 0, 0});
  }

  struct Circle {
    Rank rank;         // the lowest rank of it
    std::string text;  // "rank 0 waits to send to 1 (8 messages unread), rank 1 waits ..."
  };

  // Runs the messages added since the last call. After a circle the replay is of no more use.
  std::optional<Circle> end_round();

 private:
  struct Message {
    Rank from, to;
    std::uint32_t mailbox;
    std::uint32_t sub_round;
  };
  struct Mailbox {
    Rank from, to;
    std::uint32_t stated = 0;  // messages of this round
    std::uint32_t unread = 0;
    bool sender_waits = false, receiver_waits = false;
  };
  struct Action {
    std::uint32_t mailbox;
    bool is_send;
  };
  struct Program {
    std::vector<Action> actions;
    std::size_t next = 0;
  };

  std::uint32_t mailbox_of(Rank from, Rank to);
  void sort_into_sub_rounds(std::uint32_t sub_rounds);
  void write_programs();
  void push(Rank rank, std::uint32_t mailbox, bool is_send);
  void run(Rank rank);
  std::optional<Circle> circle() const;

  // Who does what is to be done there: all are one where one stands for all.
  Rank doer(Rank r) const { return rotation_ != nullptr ? 0 : r; }

  std::uint64_t ranks_;
  const Rotation* rotation_ = nullptr;  // where one rank stands for all
  std::uint32_t capacity_;
  MessageOrder order_;
  std::vector<Message> messages_, sorted_;
  std::vector<std::uint32_t> sub_round_ends_;
  std::vector<Mailbox> mailboxes_;    // of the pairs of this round
  std::vector<std::uint32_t> table_;  // hash table of 1 + index into mailboxes_, 0: free
  std::vector<Program> programs_;     // one per rank
  std::vector<Rank> busy_;            // ranks with a program
  std::vector<Rank> ready_;           // ranks that may have something to do
};

}  // namespace rankine
