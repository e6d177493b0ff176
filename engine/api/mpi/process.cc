#include "engine/api/mpi/process.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/base/numbers.h"

namespace rankine::mpi {

Alarm::Alarm(MPI_Comm comm) noexcept : comm_(comm) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &ranks_);
  MPI_Irecv(&received_, sizeof(received_), MPI_BYTE, MPI_ANY_SOURCE, 0, comm_, &request_);
}

Alarm::~Alarm() {
  if (request_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request_);
  MPI_Wait(&request_, MPI_STATUS_IGNORE);
}

Status Alarm::heard() noexcept {
  int there = 0;
  MPI_Status status;
  if (request_ == MPI_REQUEST_NULL || MPI_Test(&request_, &there, &status) != MPI_SUCCESS ||
      there == 0) {
    return {};
  }
  return make_error(static_cast<Code>(received_.code), [&] {
    return std::string(received_.text, static_cast<std::size_t>(received_.length));
  });
}

void Alarm::raise(const Status& reason) noexcept {
  // Never freed: a receiver may have exited, and then its message never completes.
  auto* const message = new (std::nothrow) Message;
  if (message == nullptr) return;
  message->code = static_cast<int>(reason.code());
  const std::size_t length = std::min(reason.text().size(), kMostText);
  message->length = static_cast<int>(length);
  std::memcpy(message->text, reason.text().data(), length);
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(message, sizeof(Message), MPI_BYTE, r, 0, comm_, &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

bool all_say(MPI_Comm comm, bool yes) {
  int mine = yes ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
  return all != 0;
}

std::string common_name(MPI_Comm comm) {
  char name[48] = {};
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::uint64_t random[2];
  if (rank == 0 && getrandom(random, sizeof(random), 0) == sizeof(random)) {
    std::snprintf(name, sizeof(name), "mpi.%016llx%016llx",
                  static_cast<unsigned long long>(random[0]),
                  static_cast<unsigned long long>(random[1]));
  }
  MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
  return name;
}

Comms::Comms(Comms&& other) noexcept
    : data(std::exchange(other.data, MPI_COMM_NULL)),
      alarms(std::exchange(other.alarms, MPI_COMM_NULL)) {}

Comms::~Comms() {
  if (data != MPI_COMM_NULL) MPI_Comm_free(&data);
  if (alarms != MPI_COMM_NULL) MPI_Comm_free(&alarms);
}

Process::Process(Comms comms, RankLocations locations, int most_tag, Carriers carriers,
                 const WaitPolicy& policy, std::unique_ptr<Communicator> communicator)
    : comms_(std::move(comms)),
      locations_(std::move(locations)),
      most_tag_(most_tag),
      carriers_(carriers),
      policy_(policy),
      communicator_(std::move(communicator)),
      alarm_(comms_.alarms) {}

Process::~Process() {
  if (reason().ok()) return;
  comms_.leave();
  static_cast<void>(communicator_.release());  // MPI may still read its memory
}

void Process::add(Wire& wire) { threads_.emplace_back().wire = &wire; }

void Process::move(int thread) noexcept {
  if (!leads(thread)) return threads_[static_cast<std::size_t>(thread)].wire->move();
  for (const Thread& one : threads_) one.wire->move();
  // Pairs with end().
  if (untold_.load(std::memory_order_relaxed) &&
      untold_.exchange(false, std::memory_order_acquire)) {
    tell_others();
  }
}

void Process::end_call(int thread) noexcept {
  std::atomic<std::uint32_t>& calls = threads_[static_cast<std::size_t>(thread)].calls;
  // Pairs with others_have_ended().
  calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

std::uint32_t Process::calls_ended(int thread) const noexcept {
  // Called by `thread` itself, so relaxed suffices.
  return threads_[static_cast<std::size_t>(thread)].calls.load(std::memory_order_relaxed);
}

bool Process::others_have_ended(std::uint32_t calls) const noexcept {
  return std::all_of(threads_.begin() + 1, threads_.end(), [calls](const Thread& thread) {
    // Pairs with end_call().
    const std::uint32_t ended = thread.calls.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(ended - calls) >= 0;
  });
}

Status Process::reason() const noexcept {
  return over_.load(std::memory_order_acquire) ? reason_ : Status();  // pairs with set_reason()
}

bool Process::set_reason(const Status& why) noexcept {
  const std::lock_guard<std::mutex> lock(reason_mutex_);
  if (over_.load(std::memory_order_relaxed)) return false;  // written under this lock only
  reason_ = why;
  communicator_->abort(why);
  over_.store(true, std::memory_order_release);  // pairs with reason()
  return true;
}

Status Process::heard(int thread) noexcept {
  if (!over_.load(std::memory_order_relaxed) && calls_mpi(thread)) {
    // If another thread holds the lock, it hears the alarm.
    const std::unique_lock<std::mutex> lock(alarm_mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      if (const Status said = alarm_.heard(); !said.ok()) set_reason(said);
    }
  }
  return reason();
}

void Process::tell_others() noexcept {
  const std::lock_guard<std::mutex> lock(alarm_mutex_);
  alarm_.raise(reason());
}

Status Process::end(int thread, const Status& why) noexcept {
  if (set_reason(why)) {
    if (calls_mpi(thread)) {
      tell_others();
    } else {
      untold_.store(true, std::memory_order_release);  // pairs with move()
    }
  }
  return reason();
}

}  // namespace rankine::mpi
