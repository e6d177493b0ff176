// Process holds the state that the ranks of one process share in a communicator over MPI:
// communicators, the thread that calls MPI, and the end of the communicator (Alarm). Member::State
// has the state of one rank.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/communicator_state.h"
#include "engine/api/environment.h"
#include "engine/api/member.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/rank_locations.h"
#include "engine/api/threads.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"
#include "engine/run/policy.h"
#include "engine/run/rank_control.h"
#include "engine/run/wait.h"

namespace rankine::mpi {

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

// ok for MPI_SUCCESS; otherwise Code::system, "MPI_Send_init: MPI_ERR_COMM: invalid communicator".
inline Status mpi_status(std::string_view function, int code) noexcept {
  if (code == MPI_SUCCESS) return {};
  return make_error(Code::system, [&] {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return std::string(function) + ": " + std::string(text, static_cast<std::size_t>(length));
  });
}

inline int class_of(int code) noexcept {
  int error_class = MPI_ERR_OTHER;
  MPI_Error_class(code, &error_class);
  return error_class;
}

inline bool mpi_is_over() noexcept {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

// Alarm tells the ranks of a communicator that it has ended, while they wait for messages that will
// not arrive: each rank keeps one reception open for the first alarm. It uses a separate
// communicator, so no other message can match.

// Used by one thread at a time.
class Alarm {
 public:
  // `comm` belongs to the caller, and must have no other use.
  explicit Alarm(MPI_Comm comm) noexcept;
  // Cancels the reception. A raised alarm may remain in flight forever, so its memory is never
  // freed.
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Returns ok, or the reason why another rank ended the communicator. Does not block.
  Status heard() noexcept;
  // Tells all other ranks. Does not block.
  void raise(const Status& reason) noexcept;

 private:
  static constexpr std::size_t kMostText = 240;
  struct Message {
    int code = 0;
    int length = 0;
    char text[kMostText] = {};
  };

  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
  Message received_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Two private communicators; the destructor frees them unless leave() was called.
struct Comms {
  MPI_Comm data = MPI_COMM_NULL, alarms = MPI_COMM_NULL;

  Comms() = default;
  Comms(Comms&& other) noexcept;
  Comms& operator=(Comms&&) = delete;
  ~Comms();
  // Keeps the communicators allocated, because messages may be in flight on them.
  void leave() noexcept { data = alarms = MPI_COMM_NULL; }
};

// True if all ranks say yes. Collective.
bool all_say(MPI_Comm comm, bool yes);
// A unique name, equal on all ranks; empty if rank 0 gets no random numbers from the system.
// Collective.
std::string common_name(MPI_Comm comm);

class Process {
 public:
  // `communicator` has the calls of this process's ranks. Throws std::bad_alloc.
  Process(Comms comms, RankLocations locations, int most_tag, Carriers carriers,
          const WaitPolicy& policy, std::unique_ptr<Communicator> communicator);
  // After an error messages may be in flight; then the communicators are not freed.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  MPI_Comm comm() const { return comms_.data; }
  const RankLocations& locations() const { return locations_; }
  const WaitPolicy& policy() const { return policy_; }
  Communicator& communicator() { return *communicator_; }
  // The tag of messages from one rank to another; `hash` is 0 or a tag_hash().
  int tag_of(Rank from, Rank to, int hash) const {
    const int threads = locations_.most_threads();
    return (hash * threads + locations_[from].thread) * threads + locations_[to].thread;
  }
  // From 1 on; 0 if MPI has too few tags.
  int tag_hash(std::uint64_t fingerprint) const {
    const int threads = locations_.most_threads();
    const auto hashes = static_cast<std::uint64_t>(most_tag_ / (threads * threads));
    return hashes < 2 ? 0 : 1 + static_cast<int>(splitmix(fingerprint) % (hashes - 1));
  }

  // --- the thread that calls MPI -----------------------------------------------------------------
  // The wires of this process's threads, in order; made before the first call.
  void add(Wire& wire);
  bool calls_mpi(int thread) const { return carriers_ == Carriers::each || thread == 0; }
  // Returns true if `thread` calls MPI for the other threads.
  bool leads(int thread) const {
    return carriers_ == Carriers::leader && thread == 0 && threads_.size() > 1;
  }
  // Moves the messages of `thread`, which calls MPI, and of the threads that it leads.
  void move(int thread) noexcept;
  // Counts one finished call of `thread`.
  void end_call(int thread) noexcept;
  std::uint32_t calls_ended(int thread) const noexcept;
  // Returns true if all other threads have finished `calls` calls. Called by the leading thread.
  bool others_have_ended(std::uint32_t calls) const noexcept;

  // --- the end -----------------------------------------------------------------------------------
  // ok, or the reason why the communicator has ended, as far as this process knows.
  Status reason() const noexcept;
  // As reason(), after a check for alarms of other processes.
  Status heard(int thread) noexcept;
  // Ends the communicator on all ranks unless it has ended already; returns the reason of its end.
  Status end(int thread, const Status& why) noexcept;

 private:
  struct Thread {
    Wire* wire = nullptr;
    alignas(kCacheLine) std::atomic<std::uint32_t> calls{0};
  };
  bool set_reason(const Status& why) noexcept;
  void tell_others() noexcept;

  Comms comms_;
  const RankLocations locations_;
  const int most_tag_;
  const Carriers carriers_;
  const WaitPolicy policy_;
  std::unique_ptr<Communicator> communicator_;
  std::deque<Thread> threads_;
  std::mutex alarm_mutex_;  // guards alarm_
  Alarm alarm_;
  std::mutex reason_mutex_;
  Status reason_;                    // constant once over_ is true
  std::atomic<bool> over_{false};    // set_reason() pairs with reason()
  std::atomic<bool> untold_{false};  // end() on a thread that may not call MPI pairs with move()
};

// Member::State is one rank: its member of the process's communicator, and its wire.
struct Member::State {
  State(std::shared_ptr<Process> process_, Rank rank_, const JoinOptions& options,
        const Environment& environment, std::shared_ptr<const WireOptions> wire_options,
        std::unique_ptr<rankine::Member> member_);
  // After an error MPI may still read this rank's memory, which is then not freed.
  ~State();

  // Makes a call, including the work for the process's other threads.
  Status call(const Call& call);
  // The call for the engine: the nodes become its groups if it has none.
  Result<Call> on_nodes(const Call& call) const;
  // "memory and MPI"
  std::string ways_in_words() const;

  const std::shared_ptr<Process> process;
  const Rank rank;
  const int thread;
  const std::chrono::milliseconds timeout;
  const Environment forced;
  const std::shared_ptr<const WireOptions> nodes;
  std::unique_ptr<Wire> wire;
  std::unique_ptr<rankine::Member> member;  // destroyed before its wire
  std::uint32_t barrier_in = 0, barrier_out = 0;

 private:
  Status wait_for_others(const Call& call);
};

}  // namespace rankine::mpi
