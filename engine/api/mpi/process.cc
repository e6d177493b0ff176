#include "engine/api/mpi/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/api/mpi/node_mail.h"
#include "engine/api/processes/arena.h"
#include "engine/base/numbers.h"
#include "numa/memory.h"

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

namespace {

Status of_system(const char* what, int error) {
  return make_error(Code::system, [&] {
    return "memory that the processes of a node share: " + std::string(what) + ": " +
           std::strerror(error);
  });
}

// Returns this process's error, or an error that another process has one.
Status agree(MPI_Comm node, const Status& mine) {
  int good = mine.ok() ? 1 : 0, all = 0;
  if (const int code = MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, node); code != MPI_SUCCESS)
    return mpi_status("MPI_Allreduce", code);
  if (!mine.ok() || all != 0) return mine;
  return make_error(Code::system, [] {
    return "memory that the processes of a node share: another process of the node has none";
  });
}

}  // namespace

NodeMemory::NodeMemory(std::size_t common, int parts)
    : common_bytes_(whole_pages(common)),
      part_bytes_((kProcessSpan - common_bytes_) / static_cast<std::size_t>(parts) / page_bytes() *
                  page_bytes()),
      taken_(std::make_unique<std::size_t[]>(static_cast<std::size_t>(parts))) {}

NodeMemory::~NodeMemory() {
  if (base_ != nullptr) munmap(base_, kProcessSpan);
}

// The first process makes the file; the others open it through /proc.
Status NodeMemory::open(MPI_Comm node) {
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  Status status;
  std::array<std::int64_t, 2> where = {getpid(), -1};
  if (rank == 0) {
    file_ = KeptFile(memfd_create("rankine", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file_.is_open()) status = of_system("memfd_create", errno);
    if (status.ok() && ftruncate(file_.number(), static_cast<off_t>(kProcessSpan)) != 0)
      status = of_system("ftruncate", errno);
    // With this seal no process can truncate the file, which would end the others by SIGBUS.
    if (status.ok() &&
        fcntl(file_.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      status = of_system("F_ADD_SEALS", errno);
    }
    if (status.ok())
      status = take_pages(file_, nullptr, 0, common_bytes_, "words between ranks of a node");
    where[1] = file_.number();
  }
  MPI_Bcast(where.data(), 2, MPI_INT64_T, 0, node);
  if (rank != 0 && where[1] >= 0) {
    const std::string path =
        "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
    file_ = KeptFile(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file_.is_open()) status = of_system(path.c_str(), errno);
  }
  status = agree(node, status);
  if (!status.ok()) return status;
  return map(node, splitmix(static_cast<std::uint64_t>(where[0])));
}

Status NodeMemory::map(MPI_Comm node, std::uint64_t seed) {
  ReservedBases bases;
  const ReservedBases::Set mine = bases.reserve(seed);
  std::array<std::uint64_t, ReservedBases::kBases / 64> words{}, common{};
  for (std::size_t i = 0; i < mine.size(); ++i) {
    words[i / 64] |= std::uint64_t{mine.test(i) ? 1U : 0U} << i % 64;
  }
  const int code = MPI_Allreduce(words.data(), common.data(), static_cast<int>(words.size()),
                                 MPI_UINT64_T, MPI_BAND, node);
  if (code != MPI_SUCCESS) return mpi_status("MPI_Allreduce", code);
  ReservedBases::Set all;
  for (std::size_t i = 0; i < all.size(); ++i) all.set(i, (common[i / 64] >> i % 64 & 1) != 0);
  base_ = bases.map(all, seed, file_.number());
  return agree(node,
               base_ != nullptr ? Status() : of_system("mmap", errno != 0 ? errno : EADDRINUSE));
}

Result<std::shared_ptr<NodeMemory>> NodeMemory::make(MPI_Comm node, std::size_t common, int parts) {
  std::shared_ptr<NodeMemory> made(new NodeMemory(common, parts));
  if (Status status = made->open(node); !status.ok()) return status;
  return made;
}

Result<std::byte*> NodeMemory::part(int which, std::size_t bytes) {
  const auto i = static_cast<std::size_t>(which);
  const std::size_t begin = common_bytes_ + i * part_bytes_;
  if (bytes > part_bytes_) {
    return make_error(Code::out_of_memory, [&] {
      return "a call needs " + std::to_string(bytes) + " bytes of memory that a node shares; a " +
             "rank may have " + std::to_string(part_bytes_);
    });
  }
  if (bytes > taken_[i]) {
    const std::size_t more = whole_pages(bytes - taken_[i]);
    Status status = take_pages(file_, base_ + begin + taken_[i], begin + taken_[i], more,
                               "memory that a node shares");
    if (!status.ok()) return status;
    taken_[i] += more;
  }
  return base_ + begin;
}

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
    // Aligned to a cache line.
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
      untold_.store(true, std::memory_order_release);  // pairs with serve()
    }
  }
  return reason();
}

}  // namespace rankine::mpi
