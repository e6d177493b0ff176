#include "engine/api/mpi/process.h"

#include <algorithm>
#include <utility>

#include "engine/api/mpi/node_mail.h"

namespace rankine::mpi {

Comms::Comms(Comms&& other) noexcept
    : data(std::exchange(other.data, MPI_COMM_NULL)),
      alarms(std::exchange(other.alarms, MPI_COMM_NULL)) {}

Comms::~Comms() {
  if (data != MPI_COMM_NULL) MPI_Comm_free(&data);
  if (alarms != MPI_COMM_NULL) MPI_Comm_free(&alarms);
}

Process::Process(Comms comms, Homes homes, int number, Carriers carriers,
                 std::shared_ptr<NodeMemory> memory)
    : comms_(std::move(comms)),
      homes_(std::move(homes)),
      carriers_(carriers),
      memory_(std::move(memory)),
      alarm_(comms_.alarms) {
  const std::vector<Rank> here = homes_.in_process(number);
  mail_ranks_ = memory_ != nullptr ? homes_.on_node(homes_[here.front()].node) : here;
  if (memory_ != nullptr) {
    mail_ = memory_->common();
  } else if (here.size() > 1) {
    // Aligned as the largest lines are.
    own_mail_.resize(NodeMail::bytes(static_cast<int>(here.size())) + kCacheLine);
    const auto begin = reinterpret_cast<std::uintptr_t>(own_mail_.data());
    mail_ = own_mail_.data() + (kCacheLine - begin % kCacheLine) % kCacheLine;
  }
  for (std::size_t t = 0; t < here.size(); ++t) threads_.emplace_back();
}

Process::~Process() {
  if (!reason().ok()) comms_.leave();
}

void Process::serve() noexcept {
  for (Thread& thread : threads_) thread.errands.serve();
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
  // Of the calling thread.
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
  if (over_.load(std::memory_order_relaxed)) return false;  // stored under this lock only
  reason_ = why;
  over_.store(true, std::memory_order_release);  // pairs with reason()
  return true;
}

Status Process::heard(int thread) noexcept {
  if (!over_.load(std::memory_order_relaxed) && calls_mpi(thread)) {
    // Another thread that is at it will hear the same.
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
      untold_.store(true, std::memory_order_release);  // pairs with serve()
    }
  }
  return reason();
}

}  // namespace rankine::mpi
