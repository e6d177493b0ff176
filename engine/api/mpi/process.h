// What MPI says went wrong, as a Status.
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

// ok for MPI_SUCCESS; else Code::system, "MPI_Send_init: MPI_ERR_COMM: invalid communicator".
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

// How the ranks of a communicator tell one another that it has ended, while they wait for messages
// that will not come: each has one reception open for whoever raises the alarm first. On a
// communicator of its own, so that no other message is compared with it.

// Used by one thread at a time.
class Alarm {
 public:
  // `comm` stays the caller's, and is used for nothing else.
  explicit Alarm(MPI_Comm comm) noexcept;
  // Takes the reception back. What was raised may be under way for ever, so it stays in memory.
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // ok, or why another rank ended the communicator. Takes a look, and does not wait.
  Status heard() noexcept;
  // Tells all others, without waiting for them.
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

// Memory that the processes of one node share, at the same address in each of them: a file without
// a name, of which pages are taken as they are needed, and which goes with the last of them.

// Thread-safe, but for one part at a time.
class NodeMemory {
 public:
  // A call of all processes of `node`, which are on one machine: `common` bytes that all of them
  // use, and a part for each of `parts` ranks. Errors, on all of them alike: what the system
  // refuses.
  static Result<std::shared_ptr<NodeMemory>> make(MPI_Comm node, std::size_t common, int parts);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // Zeroed.
  std::byte* common() const { return base_; }
  // A part, which has room for so many bytes then. It stays where it is, and what is there stays.
  Result<std::byte*> part(int which, std::size_t bytes);
  std::size_t most_of_part() const { return part_bytes_; }

 private:
  NodeMemory(std::size_t common, int parts);
  Status open(MPI_Comm node);
  Status map(MPI_Comm node, std::uint64_t seed);

  const std::size_t common_bytes_;              // in whole pages
  const std::size_t part_bytes_;                // of address space
  const std::unique_ptr<std::size_t[]> taken_;  // by part
  KeptFile file_;
  std::byte* base_ = nullptr;
};

// What the ranks that one process plays have in common: the communicators of MPI, who of them calls
// it, the memory that they and their node's other ranks share, and whether all is over.

// Two of a communicator's own; freed where nobody has taken them.
struct Comms {
  MPI_Comm data = MPI_COMM_NULL, alarms = MPI_COMM_NULL;

  Comms() = default;
  Comms(Comms&& other) noexcept;
  Comms& operator=(Comms&&) = delete;
  ~Comms();
  // As it is, since messages may be under way on them.
  void leave() noexcept { data = alarms = MPI_COMM_NULL; }
};

class Process {
 public:
  // `memory` is the node's where its processes share some, else nullptr. Throws std::bad_alloc.
  Process(Comms comms, Homes homes, int number, Carriers carriers,
          std::shared_ptr<NodeMemory> memory);
  // Messages may be under way after an error: communicators stay then.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  MPI_Comm comm() const { return comms_.data; }
  const Homes& homes() const { return homes_; }

  // --- who calls MPI -----------------------------------------------------------------------------
  bool calls_mpi(int thread) const { return carriers_ == Carriers::each || thread == 0; }
  // Whether that thread does for all.
  bool leads(int thread) const {
    return carriers_ == Carriers::leader && thread == 0 && threads_.size() > 1;
  }
  Errands& errands_of(int thread) { return threads_[static_cast<std::size_t>(thread)].errands; }
  // What the others want, as far as it can be done now. By who leads.
  void serve() noexcept;
  // So many calls of that thread are over.
  void end_call(int thread) noexcept;
  std::uint32_t calls_ended(int thread) const noexcept;
  // Of the others; by who leads.
  bool others_have_ended(std::uint32_t calls) const noexcept;

  // --- memory ------------------------------------------------------------------------------------
  // The ranks that have mailboxes with each other, in order, and where these are.
  const std::vector<Rank>& mail_ranks() const { return mail_ranks_; }
  std::byte* mail() const { return mail_; }
  NodeMemory* memory() const { return memory_.get(); }

  // --- the end -----------------------------------------------------------------------------------
  // ok, or why the communicator has ended, as far as this process knows.
  Status reason() const noexcept;
  // The same, after a look for what other processes say.
  Status heard(int thread) noexcept;
  // Ends it for all, if it has not ended; returns why it has.
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
  std::mutex alarm_mutex_;  // of alarm_
  Alarm alarm_;
  std::mutex reason_mutex_;
  Status reason_;                    // stays as it is once over_ is true
  std::atomic<bool> over_{false};    // set_reason() with reason()
  std::atomic<bool> untold_{false};  // end() of who does not call MPI, with serve()
};

}  // namespace rankine::mpi
