// Process holds the state that the ranks of one process share in a communicator over MPI:
// communicators, the thread that calls MPI, shared memory, and the end of the communicator (Alarm).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/node_mail.h"
#include "engine/api/processes/identity.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"

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

// Memory that the processes of one node share, at the same address in each of them: an unnamed
// file. Its pages are allocated on demand, and it is freed with the last process.

// Thread-safe if each part is used by one thread at a time.
class NodeMemory {
 public:
  // Collective over the processes of `node`, which are on one machine. Makes `common` bytes that
  // all of them use, and one part for each of `parts` ranks. Errors, on all processes alike: the
  // system's.
  static Result<std::shared_ptr<NodeMemory>> make(MPI_Comm node, std::size_t common, int parts);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // Zeroed memory.
  std::byte* common() const { return base_; }
  // Grows a part to at least `bytes` bytes and returns its address. The address and the contents
  // stay the same.
  Result<std::byte*> part(int which, std::size_t bytes);
  std::size_t most_of_part() const { return part_bytes_; }

 private:
  NodeMemory(std::size_t common, int parts);
  Status open(MPI_Comm node);
  Status map(MPI_Comm node, std::uint64_t seed);

  const std::size_t common_bytes_;              // in whole pages
  const std::size_t part_bytes_;                // address space per part
  const std::unique_ptr<std::size_t[]> taken_;  // bytes in use, by part
  KeptFile file_;
  std::byte* base_ = nullptr;
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

class Process {
 public:
  // `memory` is the node's shared memory, or nullptr if the node has none. Throws std::bad_alloc.
  Process(Comms comms, Homes homes, int number, Carriers carriers,
          std::shared_ptr<NodeMemory> memory);
  // After an error messages may be in flight; then the communicators are not freed.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  MPI_Comm comm() const { return comms_.data; }
  const Homes& homes() const { return homes_; }

  // --- the thread that calls MPI -----------------------------------------------------------------
  bool calls_mpi(int thread) const { return carriers_ == Carriers::each || thread == 0; }
  // Returns true if `thread` calls MPI for the other threads.
  bool leads(int thread) const {
    return carriers_ == Carriers::leader && thread == 0 && threads_.size() > 1;
  }
  Errands& errands_of(int thread) { return threads_[static_cast<std::size_t>(thread)].errands; }
  // Runs the other threads' pending errands, without waiting. Called by the leading thread.
  void serve() noexcept;
  // Counts one finished call of `thread`.
  void end_call(int thread) noexcept;
  std::uint32_t calls_ended(int thread) const noexcept;
  // Returns true if all other threads have finished `calls` calls. Called by the leading thread.
  bool others_have_ended(std::uint32_t calls) const noexcept;

  // --- memory ------------------------------------------------------------------------------------
  // The ranks that exchange mail, in order, and the memory of the mail.
  const std::vector<Rank>& mail_ranks() const { return mail_ranks_; }
  std::byte* mail() const { return mail_; }
  NodeMemory* memory() const { return memory_.get(); }

  // --- the end -----------------------------------------------------------------------------------
  // ok, or the reason why the communicator has ended, as far as this process knows.
  Status reason() const noexcept;
  // As reason(), after a check for alarms of other processes.
  Status heard(int thread) noexcept;
  // Ends the communicator on all ranks unless it has ended already; returns the reason of its end.
  Status end(int thread, const Status& why) noexcept;

 private:
  struct Thread {
    Errands errands;
    alignas(kCacheLine) std::atomic<std::uint32_t> calls{0};
  };
  bool set_reason(const Status& why) noexcept;
  void tell_others() noexcept;

  Comms comms_;
  const Homes homes_;
  const Carriers carriers_;
  const std::shared_ptr<NodeMemory> memory_;
  std::vector<Rank> mail_ranks_;
  HugeVector<std::byte> own_mail_;
  std::byte* mail_ = nullptr;
  std::deque<Thread> threads_;
  std::mutex alarm_mutex_;  // guards alarm_
  Alarm alarm_;
  std::mutex reason_mutex_;
  Status reason_;                    // constant once over_ is true
  std::atomic<bool> over_{false};    // set_reason() pairs with reason()
  std::atomic<bool> untold_{false};  // end() on a thread that may not call MPI pairs with serve()
};

}  // namespace rankine::mpi
