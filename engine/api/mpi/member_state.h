// A message plan's parcels as persistent requests of MPI, bound to one call's memory: made once,
// and started by every call with the same buffers.
//
// Data are sent from where they lie and received where they belong: a parcel of several pieces is a
// derived type. Everything travels as bytes, so ranks must hold numbers alike, and types that MPI
// does not have need none. What is longer than most_bytes goes in parts of so many, one after the
// other under the same tag, and so arrives in that order.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/api/environment.h"
#include "engine/api/member_state.h"
#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/message_plan.h"
#include "engine/api/mpi/node_mail.h"
#include "engine/api/mpi/process.h"
#include "engine/api/plans.h"
#include "engine/api/threads.h"
#include "engine/base/costs.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"
#include "engine/run/policy.h"
#include "engine/run/process.h"

namespace rankine::mpi {

// Used by one thread at a time. The plan, the memory and the communicator must outlive it.
class BoundRequests {
 public:
  // Where messages go: the ranks' processes by their numbers in `comm`, and ranks by tags: that of
  // a message is first_tag to first_tag + kTags - 1, by the round, times the threads that the two
  // processes' ranks may be on.
  struct Wire {
    const Homes& homes;
    Rank self = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    std::size_t most_bytes = 0;
  };
  static constexpr int kTags = 64;
  // How many tags such a communicator has for a call.
  static int tags_of_call(const Homes& homes) {
    return kTags * homes.most_threads() * homes.most_threads();
  }
  // Of those of the plan's parcels that go over the wire. Errors: MPI's.
  static Result<std::unique_ptr<BoundRequests>> make(const MessagePlan& plan,
                                                     const Addresses& memory, const Wire& wire,
                                                     int first_tag);
  // Nothing may be under way, or cancel() has said so.
  ~BoundRequests();
  BoundRequests(const BoundRequests&) = delete;
  BoundRequests& operator=(const BoundRequests&) = delete;

  const Addresses& memory() const { return memory_; }
  Status start(int parcel) noexcept;
  // Whether a parcel that was started is there, or its memory free again. Errors: MPI's; another
  // number of bytes than was to be received (mismatch).
  Status test(int parcel, bool& done) noexcept;
  // After an error: no reception writes any more. What was sent and is not over keeps its memory,
  // and is never asked for again.
  void cancel() noexcept;

 private:
  BoundRequests(const MessagePlan& plan, const Addresses& memory) : plan_(plan), memory_(memory) {}
  Status add(const Parcel& parcel, const Wire& wire, int first_tag);
  Status add_part(const Parcel& parcel, const std::vector<Piece>& pieces, std::size_t bytes,
                  const Wire& wire, int tag);
  Status misfit(int parcel, const char* what, std::size_t bytes) const noexcept;

  const MessagePlan& plan_;
  const Addresses memory_;
  std::vector<MPI_Request> requests_;
  std::vector<std::size_t> bytes_;  // by request
  std::vector<std::size_t> first_;  // by parcel: its requests; and one past all
  std::vector<MPI_Status> statuses_;
};

// One rank's side of a communicator over MPI: its plans, bound to buffers, its scratch, and how
// it waits. The inside of member.h, for its source files only.

// A plan, and its messages bound to the buffers of the latest call.
struct Ready {
  explicit Ready(const PlanKey& asked) : key(asked) {}

  const OwnedKey key;                        // of the call as it was made
  std::unique_ptr<const Prepared> prepared;  // of other ranks' plans nothing
  MessagePlan messages;
  std::unique_ptr<BoundRequests> bound;  // over the wire; nullptr: to nothing yet
  Status of_wire;                        // what went wrong where another thread calls MPI

  // Of parcels through memory: where their pieces are (CallWork::pieces), the room for that where
  // nobody else has it, and the number of each that is sent.
  std::vector<const std::byte* const*> pieces;
  std::vector<const std::byte*> addresses;
  std::vector<std::size_t> first_address;  // by parcel
  std::vector<std::uint32_t> number;       // by parcel
  std::size_t lists = 0;  // in scratch: addresses of pieces, for who reads them there
};

struct Member::State {
  // Beyond these all are made again.
  static constexpr std::size_t kMostPlans = 2048;

  State(const JoinOptions& options, const Environment& environment,
        std::shared_ptr<const CallClock> network, const WaitPolicy& waits,
        std::shared_ptr<Process> process, Rank rank, Within within, int tag_bases);
  ~State();

  // With what all threads of the process do for each other.
  Status whole_call(const Call& call);
  // The call's time runs from its first long wait, or from where its planning begins.
  void begin_waiting(const CallOptions& of) noexcept;
  // The call's plan, made now where there is none.
  Result<Ready*> find(const Call& call);
  // Has the memory that its calls take beside their buffers.
  Status make_room(const Ready& ready) { return memory_of(ready, {}).status(); }
  Status end_with(Status reason) noexcept;
  // "memory and MPI"
  std::string ways_in_words() const;

  const std::shared_ptr<Process> process;
  const Rank rank;
  const int thread;
  const JoinOptions options;
  const Environment forced;
  const Costs costs{};
  const std::vector<int> levels{};  // those of the network
  const std::shared_ptr<const CallClock> network;
  const WaitPolicy policy;
  const std::vector<Way> ways;  // to each rank
  const int tag_bases;          // so many calls can be told apart by their tags
  Sent sent;
  std::uint32_t barrier_in = 0, barrier_out = 0;

 private:
  // --- a call ------------------------------------------------------------------------------------
  Result<std::unique_ptr<Ready>> make(const PlanKey& key);
  Status call(const Call& call);
  Status run_displaced(const Call& call);
  Result<Call> multiplied(const Call& call);
  Status run(Ready& ready, const Call& call);
  Result<Addresses> memory_of(const Ready& ready, const Call& call);
  Status step(Ready& ready, const MessageStep& step, const CallWork& work);
  Status start(Ready& ready, int parcel, const CallWork& work);
  Status wait(Ready& ready, int parcel, const CallWork& work);
  Status late(const Ready& ready, int parcel) const;

  // --- over the wire -----------------------------------------------------------------------------
  bool calls_mpi() const { return process->calls_mpi(thread); }
  // On the thread that calls MPI, which this one waits for. `work` stays what it is, and so must
  // what it refers to, if this ends with an error.
  Status on_carrier(std::function<Status()> work);
  Status post(const Errands::Errand& errand);
  Status nobody_carries() const;
  Status bind_requests(Ready& ready, const Addresses& memory, int first_tag);
  Status start_wire(Ready& ready, int parcel);
  Status test_wire(Ready& ready, int parcel, bool& done);
  void cancel_wire(Ready& ready) noexcept;

  // --- through memory ----------------------------------------------------------------------------
  int on_mail(Rank r) const { return mail_numbers_[static_cast<std::size_t>(r)]; }
  void lay_out_pieces(Ready& ready);
  Status post_pieces(Ready& ready, int parcel, const CallWork& work);
  Status test_memory(Ready& ready, int parcel, bool& done) noexcept;
  void take_pieces(Ready& ready, int parcel, const std::byte* data) noexcept;

  // --- waiting -----------------------------------------------------------------------------------
  // Until look(done) says so. `late()`: what the error is when the call's time has passed.
  template <class Look, class Late>
  Status wait_until(const Look& look, const Late& late);
  // Lets others go on who need this thread.
  void let_go_on() noexcept;
  // Until the others here have ended this call; of the thread that calls MPI for them.
  Status wait_for_others();
  bool time_has_passed() noexcept;
  std::string no_answer() const;

  std::unordered_multimap<std::uint64_t, std::unique_ptr<Ready>> plans_;  // by their keys' hashes
  HugeVector<std::byte> scratch_;   // where no other process reads it
  HugeVector<std::byte> products_;  // of inputs with factors
  std::vector<void*> operands_;
  DisplacedCall displaced_;
  std::int64_t timeout_ns_ = 0, deadline_ns_ = 0;  // of the call at hand; 0: none yet

  std::optional<NodeMail> mail_;
  std::vector<int> mail_numbers_;  // by rank; -1: none
  int mail_self_ = 0;
  std::uint32_t mark_ = 0;        // of the call at hand, on messages through memory
  int under_way_ = 0;             // messages over the wire
  bool asked_ = false;            // whether test_wire() has an errand out
  std::function<Status()> work_;  // of on_carrier()
  Status done_with_;              // how that ended
};

// How a rank over MPI waits: for messages, for room, and for the thread that calls MPI. The inside
// of member_state.h, for its source files only.

template <class Look, class Late>
Status Member::State::wait_until(const Look& look, const Late& late) {
  bool done = false;
  for (std::uint32_t probe = 0; probe < policy.probes; ++probe) {
    Status status = look(done);
    if (done || !status.ok()) return status;
    pause_cpu();
  }
  // It naps in the end: no message of MPI's wakes a process, and none of memory's.
  Idling idling(policy, policy.probes);
  for (;;) {
    Status status = look(done);
    if (done || !status.ok()) return status;
    let_go_on();
    if (!idling.once()) continue;
    if (Status over = process->heard(thread); !over.ok()) return over;
    if (time_has_passed()) return late();
  }
}

}  // namespace rankine::mpi
