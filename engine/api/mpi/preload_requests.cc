#include "engine/api/mpi/preload_requests.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "engine/api/mpi/preload_communicators.h"
#include "engine/api/mpi/preload_report.h"

namespace rankine::mpi {
namespace {

using Shared = std::shared_ptr<StartedCollective>;

// Callbacks of MPI for the library's generalized requests.
int query(void* state, MPI_Status* status) {
  const StartedCollective& call = **static_cast<Shared*>(state);
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  return call.status.ok() ? MPI_SUCCESS : MPI_ERR_OTHER;
}
int release(void* state) {
  delete static_cast<Shared*>(state);
  return MPI_SUCCESS;
}
int leave_uncancelled(void*, int) { return MPI_SUCCESS; }

#ifdef OPEN_MPI

constexpr bool kMpiCallsUs = true;
int move_on_in_mpi() { return requests().move_on_in_mpi(); }
// An internal function of Open MPI, so it may be missing.
bool have_mpi_move_on() {
  using Register = int (*)(int (*)());
  const auto add = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "opal_progress_register"));
  return add != nullptr && add(move_on_in_mpi) == 0;
}

#else

constexpr bool kMpiCallsUs = false;

#endif

}  // namespace

Status Requests::begin() {
  const std::lock_guard lock(mutex_);
  if (begun_) return {};
#ifdef OPEN_MPI
  if (!have_mpi_move_on())
    return {Code::system, "this Open MPI has no opal_progress_register(), or refuses it"};
#else
  // Signals of the program go to the program's threads only.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started;
  try {
    helper_ = std::thread([this] { help(); });
  } catch (const std::system_error& error) {
    started = {Code::system, std::string("a thread to move calls on: ") + error.what()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started.ok()) return started;
#endif
  begun_ = true;
  return {};
}

void Requests::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (helper_.joinable()) helper_.join();
}

Status Requests::start(const std::function<Result<Request>()>& start_call, Shared call,
                       MPI_Request* handle) {
  {
    const std::lock_guard lock(mutex_);
    auto started = start_call();
    if (!started.ok()) return started.status();
    call->call = std::move(*started);
  }
  // The call completes only after it is in the list.
  int error = MPI_SUCCESS;
  if (call->prepared == nullptr) {
    error = make_handle(call);
    *handle = call->handle;
  }
  enter(std::move(call));
  if (error == MPI_SUCCESS) return {};
  return {Code::system, "MPI gives no request: error " + std::to_string(error)};
}

Status Requests::restart(Shared call) {
  // Relaxed: a thread waits for the call only after it is in flight again.
  call->is_complete.store(false, std::memory_order_relaxed);
  if (preload_settings().reports) call->began = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (Status status = call->call.start(); !status.ok()) return status;
  }
  enter(std::move(call));
  return {};
}

int Requests::make_handle(const Shared& call) {
  const int error =
      PMPI_Grequest_start(query, release, leave_uncancelled, new Shared(call), &call->handle);
  if (error == MPI_SUCCESS && !kMpiCallsUs) {
    const std::lock_guard lock(handles_mutex_);
    handles_.emplace(call->handle, call);
  }
  return error;
}

void Requests::enter(Shared call) {
  call->under_way->fetch_add(1, std::memory_order_relaxed);  // this thread is its first reader
  // Relaxed: if another thread has started a call, a waiting thread has synchronized with it.
  under_way_.fetch_add(1, std::memory_order_relaxed);
  if (call->yields) yields_.store(true, std::memory_order_relaxed);  // a hint: no pairing
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  changed_.notify_one();
}

// Requires the lock.
void Requests::step() noexcept {
  for (auto& call : calls_) {
    const auto is_over = call->call.test();
    if (is_over.ok() && !*is_over) continue;
    call->status = call->call.wait();
    if (!call->restarts) call->call = {};  // also needs the lock
    over_.push_back(std::move(call));
  }
  std::erase(calls_, nullptr);
}

int Requests::move_on() noexcept {
  // Relaxed: see enter().
  if (under_way_.load(std::memory_order_relaxed) == 0) return 0;
  Calls over;
  {
    thread_local bool moving = false;  // a failing call may wait, and then make MPI progress
    if (moving) return 0;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return 0;  // another thread makes progress
    moving = true;
    step();
    moving = false;
    over.swap(over_);
  }
  for (auto& call : over) {
    const std::shared_ptr<Prepared> prepared = call->prepared;  // destroyed after the call
    complete(*call);
    call = nullptr;
    under_way_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see enter()
  }
  return static_cast<int>(over.size());
}

int Requests::move_on_in_mpi() noexcept {
  if (under_way_.load(std::memory_order_relaxed) == 0) return 0;  // relaxed: see move_on()
  const int completed = move_on();
  if (completed == 0 && yields_.load(std::memory_order_relaxed)) sched_yield();  // a hint
  return completed;
}

void Requests::complete(StartedCollective& call) {
  if (call.status.ok()) {
    call.then();
    if (preload_settings().reports) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - call.began;
      report().taken(call.function, call.bytes, took.count(), call.form);
    }
  } else {
    std::fprintf(stderr, "rankine: %s of rank %d: %s: %s\n",
                 name_of(call.function, call.form).c_str(), call.rank,
                 std::string(rankine::name_of(call.status.code())).c_str(),
                 call.status.text().c_str());
  }
  if (!call.restarts) call.then = nullptr;  // frees the types that it holds
  if (call.handle != MPI_REQUEST_NULL) {
    if (!kMpiCallsUs) {  // MPI may reuse the handle after completion
      const std::lock_guard lock(handles_mutex_);
      handles_.erase(call.handle);
    }
    PMPI_Grequest_complete(call.handle);
  }
  // Release: pairs with waits for this call, and for its communicator's calls.
  call.is_complete.store(true, std::memory_order_release);
  call.under_way->fetch_sub(1, std::memory_order_release);
  // Last: afterwards the program may start the call again.
  if (const auto prepared = std::move(call.prepared))
    prepared_calls().complete(*prepared, call.status.ok());
}

Shared Requests::under_way(int count, const MPI_Request handles[]) {
  // Relaxed: see enter().
  if (under_way_.load(std::memory_order_relaxed) == 0 || handles == nullptr) return nullptr;
  const std::lock_guard lock(handles_mutex_);
  for (int i = 0; i < count; ++i) {
    if (const auto found = handles_.find(handles[i]); found != handles_.end()) return found->second;
  }
  return nullptr;
}

// While calls come often the thread only naps, so starts need not wake it.
void Requests::help() noexcept {
  using std::chrono::microseconds;
  constexpr microseconds kFirstNap{50}, kLongestNap{1000};
  constexpr int kNapsToSleep = 20;  // naps without work before it sleeps
  microseconds nap = kFirstNap;
  std::size_t before = 0;
  std::unique_lock lock(mutex_);
  for (int idle = 0; !ends_;) {
    if (calls_.empty() && ++idle > kNapsToSleep) {
      changed_.wait(lock, [this] { return ends_ || !calls_.empty(); });
      nap = kFirstNap;
    }
    if (!calls_.empty()) idle = 0;
    step();
    nap = calls_.size() == before ? std::min(2 * nap, kLongestNap) : kFirstNap;
    before = calls_.size();
    lock.unlock();
    std::this_thread::sleep_for(nap);
    lock.lock();
  }
}

Requests& requests() {
  static auto* all = new Requests;  // never destroyed: MPI may end after static objects
  return *all;
}

}  // namespace rankine::mpi
