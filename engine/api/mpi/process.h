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
#include "engine/api/environment.h"
#include "engine/api/member.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/rank_locations.h"
#include "engine/api/mpi/wire.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/run/policy.h"

namespace rankine::mpi {

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
