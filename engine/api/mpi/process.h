// What the ranks that one process plays have in common: the communicators of MPI, who of them calls
// it, the memory that they and their node's other ranks share, and whether all is over.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/api/mpi/alarm.h"
#include "engine/api/mpi/errands.h"
#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/node_memory.h"
#include "engine/base/cache_line.h"
#include "engine/base/huge_pages.h"
#include "engine/base/status.h"

namespace rankine::mpi {

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
