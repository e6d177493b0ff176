// Wire carries a rank's messages to and from the ranks of other nodes over MPI. The interpreter
// uses mailboxes for all peers; the mailboxes between this rank and far ranks are the wire's. While
// the rank waits, the wire moves their messages.
//
// All messages of a round to one rank are one MPI message, a parcel: the fingerprint of the call,
// then the data. (A parcel of one long message is contiguous, and has a hash of the fingerprint in
// its tag.) MPI sends the data from their places, so a parcel of several places is a derived
// datatype; the credit for its slots comes when MPI has sent it. A parcel is received in staging
// memory, in two halves that rounds use in turn, and the slots of its messages get addresses there.
// A long message that is only stored is received at its destination instead, once the rank waits in
// that round: then no earlier round uses the destination any more, and no other part of the round
// does. All numbers travel as bytes, so all ranks must use the same number formats. Parcels of more
// than most_bytes travel in parts, one after another under the same tag, and so arrive in order.
//
// Deadlock is impossible: a rank sends all parcels of a round before it waits for a message of that
// round (lower_mailbox.cc), and posts the receptions of a round and of the next one without
// waiting.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/api/communicator_state.h"
#include "engine/api/mpi/member.h"
#include "engine/api/threads.h"
#include "engine/base/memory.h"
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"
#include "engine/run/wait.h"

namespace rankine::mpi {

class Process;

// One rank's wire. The rank's thread makes calls; the thread that calls MPI for the rank, the same
// or another one, moves the messages.
class Wire final : public YieldCallback, public PlanRunner {
 public:
  Wire(Process& process, Rank rank, const WireOptions& options, std::size_t most_bytes);
  // After a failed call: requires that the calling thread may call MPI.
  ~Wire() override;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // --- the rank's thread -------------------------------------------------------------------------
  void make_room(const Plan& plan, RankState& state) override;
  bool run(const Plan& plan, RankState& state) noexcept override;
  // Called in waits by a thread that calls MPI.
  void wait_for(const WaitTarget& awaited) noexcept override;
  void give_way(int turn) noexcept override;
  const Sent& sent() const { return sent_; }
  // After a call that has failed: a rank that has sent a message of another call; -1: not known.
  Rank other_caller() const { return other_caller_; }

  // --- the thread that calls MPI -----------------------------------------------------------------
  // Sends and receives what it can, without waiting.
  void move() noexcept;
  // After a failed call: afterwards no reception writes to memory.
  void cancel() noexcept;

 private:
  // The data of one mailbox slot.
  struct Message {
    std::size_t bytes = 0;
    bool by_address = false;
    int next = -1;  // of the parcel
  };
  struct Parcel {
    Rank peer = 0;
    int round = 0;
    std::uint32_t number = 0, count = 0;  // of its first message, in this call; of messages
    int first = -1, last = -1;            // messages
    std::size_t bytes = 0;
    int next = -1;  // the next parcel to or from that peer
    // Receptions: the number of the round among rounds with receptions, and the place in staging.
    int turn = 0;
    std::size_t place = 0;
    // Receptions of one message that is only stored: its destination, and the number of waits for
    // credit before the store. is_direct: it is received there.
    bool is_direct = false;
    Memory memory = Memory::output;
    std::size_t offset = 0;
    int credits = 0;
    int parts = 0;         // parts in flight
    bool is_done = false;  // all parts have been sent or received
    bool is_first = true;  // all former parcels to that peer have been credited
  };
  // Both mailboxes between this rank and a far one.
  struct Peer {
    Mailbox out, in;
    Counter out_credit, in_credit;
    std::uint32_t out_base = 0, in_base = 0;  // numbers of the call's first messages
    std::unique_ptr<std::byte[]> out_slots, in_slots;
    int last_sent = -1, last_received = -1;  // parcels, while a plan is read
  };
  struct Piece {
    std::byte* begin;
    std::size_t bytes;
  };
  // A part in flight.
  struct Part {
    bool sends;
    int parcel;
    int bytes;
  };

  bool is_far(Rank r) const { return options_.are_far(rank_, r); }
  Peer& peer(Rank r) { return *peers_[static_cast<std::size_t>(r)]; }
  void read(const RankPlan& plan);
  Parcel& add(bool sends, Rank far, const Op& op, std::uint32_t number, bool by_address);
  void lay_out();
  void provide(Mailbox& box, Counter& credit, std::unique_ptr<std::byte[]>& slots,
               std::uint32_t count, std::size_t stride, std::uint32_t base);
  void connect(const RankPlan& plan, RankState& state);
  void advance_far_ranks(const Plan& plan, RankState& state) noexcept;
  bool flush(int rounds, RankState& state) noexcept;
  // The owner of over_ in waits.
  Rank last_peer() const { return sends_.empty() ? rank_ : sends_.back().peer; }

  Rank sender_of_another_call() noexcept;
  std::size_t head_of(const Parcel& parcel) const;
  int tag_of(const Parcel& parcel, Rank from, Rank to) const;
  static bool is_posted(const Peer& peer, const Parcel& parcel);
  static bool is_used(const Peer& peer, const Parcel& parcel);
  bool may_receive(const Parcel& parcel);
  std::byte* place_of(const Parcel& parcel) const;
  Status start_send(int index);
  Status start_part(int index, std::size_t bytes);
  Status start_receive(int index);
  Status test();
  Status finish(const Part& part, const MPI_Status& status);
  void credit(Parcel& parcel);
  void deliver(const Parcel& parcel);
  Status misfit(const Parcel& parcel, const char* what) const;
  Status step();

  Process& process_;
  const Rank rank_;
  const int thread_;
  const WireOptions& options_;
  const std::size_t most_bytes_;
  const std::size_t slot_stride_;
  Idling idling_;
  const bool moves_;  // this rank's thread calls MPI
  Sent sent_, of_call_;
  Rank other_caller_ = -1;
  RankControl* rank_control_ = nullptr;  // from the first call on
  std::uint64_t fingerprint_ = 0;        // of the call

  // The plan of the call, and memory for it. Written between calls only.
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; far ones
  std::vector<int> near_rounds_;              // by rank, while a plan is read
  std::vector<Parcel> sends_, receives_;
  std::vector<Message> messages_;
  HugeVector<std::byte> staging_;
  std::byte* staged_ = nullptr;  // in staging_, at a cache line
  std::size_t half_bytes_[2] = {};
  RankState* state_ = nullptr;
  // The latest round in which the rank has waited for a far message, and its waits for credit
  // before.
  int reached_round_ = -1, reached_credits_ = 0;

  // The state of the call: of the thread that calls MPI.
  std::uint32_t moved_ = 0;  // calls
  std::size_t next_send_ = 0, next_receive_ = 0, used_ = 0, open_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;
  std::vector<Piece> pieces_, part_;

  Counter begun_, over_;            // calls; run() pairs with move()
  Atomic<bool> has_failed_{false};  // run() pairs with move()
};

}  // namespace rankine::mpi
