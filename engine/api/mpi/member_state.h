// Member::State is one rank's side of a communicator over MPI: plans, buffers, scratch and waiting.
// BoundRequests holds a message plan's parcels as persistent MPI requests. Only the source files of
// member.h include this file.
//
// BoundRequests binds the requests to one call's memory; later calls with the same buffers restart
// them. MPI sends data from their place and receives them at their destination: a parcel of several
// pieces is a derived datatype. All data travel as bytes, so all ranks must use the same number
// formats, and types unknown to MPI need no special handling. Data longer than most_bytes travel in
// parts, one after another under the same tag, and so arrive in order.
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

inline bool mpi_is_over() noexcept {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

// Used by one thread at a time. The plan, the memory and the communicator must outlive it.
class BoundRequests {
 public:
  // The MPI addresses of messages: processes by their numbers in `comm`, and ranks by tags. A
  // message's tag depends on its round and on the sending and receiving threads; it is between
  // first_tag and first_tag + tags_of_call() - 1.
  struct Wire {
    const Homes& homes;
    Rank self = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    std::size_t most_bytes = 0;
  };
  static constexpr int kTags = 64;
  // The number of tags that one call uses on such a communicator.
  static int tags_of_call(const Homes& homes) {
    return kTags * homes.most_threads() * homes.most_threads();
  }
  // Makes requests for those parcels of the plan that go over the wire. Errors: MPI's.
  static Result<std::unique_ptr<BoundRequests>> make(const MessagePlan& plan,
                                                     const Addresses& memory, const Wire& wire,
                                                     int first_tag);
  // Requires that no request is in flight, or that cancel() was called.
  ~BoundRequests();
  BoundRequests(const BoundRequests&) = delete;
  BoundRequests& operator=(const BoundRequests&) = delete;

  const Addresses& memory() const { return memory_; }
  Status start(int parcel) noexcept;
  // Sets `done` if a started parcel has arrived, or if a sent parcel's memory is free again.
  // Errors: MPI's; mismatch if the number of received bytes is wrong.
  Status test(int parcel, bool& done) noexcept;
  // Call after an error: afterwards no reception writes to memory. The memory of unfinished sends
  // must stay valid; their requests are never tested again.
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
  std::vector<std::size_t> first_;  // by parcel: its first request; one extra at the end
  std::vector<MPI_Status> statuses_;
};

// A plan, with its messages bound to the buffers of the latest call.
struct Ready {
  explicit Ready(const PlanKey& asked) : key(asked) {}

  const OwnedKey key;                        // describes the call as the caller made it
  std::unique_ptr<const CachedPlan> prepared;  // without the plans of other ranks
  MessagePlan messages;
  std::unique_ptr<BoundRequests> bound;  // messages over the wire; nullptr: not bound yet
  Status of_wire;                        // result of MPI calls by the leading thread

  // For parcels through memory: the addresses of their pieces (CallWork::pieces), storage for
  // addresses that are not stored elsewhere, and the mail number of each sent parcel.
  std::vector<const std::byte* const*> pieces;
  std::vector<const std::byte*> addresses;
  std::vector<std::size_t> first_address;  // by parcel
  std::vector<std::uint32_t> number;       // by parcel
  std::size_t lists = 0;  // offset in scratch of the address lists that other processes read
};

struct Member::State {
  // At this number of plans the cache is emptied.
  static constexpr std::size_t kMostPlans = 2048;

  State(const JoinOptions& options, const Environment& environment,
        std::shared_ptr<const CallClock> network, const WaitPolicy& waits,
        std::shared_ptr<Process> process, Rank rank, Within within, int tag_bases);
  ~State();

  // Makes a call, including the work for the process's other threads.
  Status whole_call(const Call& call);
  // Starts the call's timeout at its first long wait, or when planning begins.
  void begin_waiting(const CallOptions& of) noexcept;
  // Returns the call's plan; makes it if it is not cached.
  Result<Ready*> find(const Call& call);
  // Allocates the memory that the plan's calls need beside the caller's buffers.
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
  const std::vector<int> levels{};  // the network's levels
  const std::shared_ptr<const CallClock> network;
  const WaitPolicy policy;
  const std::vector<Way> ways;  // to each rank
  const int tag_bases;          // number of calls that tags can distinguish
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
  // Runs `work` on the thread that calls MPI, and waits for it. If this returns an error, `work`
  // may still run: it and everything that it refers to must stay valid.
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
  // Waits until look(done) sets `done`. After the call's timeout returns the error of late().
  template <class Look, class Late>
  Status wait_until(const Look& look, const Late& late);
  // Does pending work for other threads.
  void let_go_on() noexcept;
  // On the leading thread: waits until the process's other ranks have ended this call.
  Status wait_for_others();
  bool time_has_passed() noexcept;
  std::string no_answer() const;

  std::unordered_multimap<std::uint64_t, std::unique_ptr<Ready>> plans_;  // by hash of the key
  HugeVector<std::byte> scratch_;   // used if no other process reads the scratch
  HugeVector<std::byte> products_;  // inputs multiplied by the call's factors
  std::vector<void*> operands_;
  DisplacedCall displaced_;
  std::int64_t timeout_ns_ = 0, deadline_ns_ = 0;  // the current call's; 0: not set

  std::optional<NodeMail> mail_;
  std::vector<int> mail_numbers_;  // by rank; -1: rank without mail
  int mail_self_ = 0;
  std::uint32_t mark_ = 0;        // tag of the current call for messages through memory
  int under_way_ = 0;             // number of messages in flight over the wire
  bool asked_ = false;            // true while an errand of test_wire() is pending
  std::function<Status()> work_;  // the argument of on_carrier()
  Status done_with_;              // the result of work_
};

// wait_until(): how a rank over MPI waits for messages, for room, and for the thread that calls
// MPI.

template <class Look, class Late>
Status Member::State::wait_until(const Look& look, const Late& late) {
  bool done = false;
  for (std::uint32_t probe = 0; probe < policy.probes; ++probe) {
    Status status = look(done);
    if (done || !status.ok()) return status;
    pause_cpu();
  }
  // After the probes the rank naps: neither MPI messages nor messages through memory wake a
  // process.
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
