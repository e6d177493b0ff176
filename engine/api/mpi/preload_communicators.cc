#include "engine/api/mpi/preload_communicators.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "engine/api/mpi/preload_presence.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_requests.h"

namespace rankine::mpi {

// MPI_Comm_dup would copy the program's attributes.
CommOfOurs::CommOfOurs(MPI_Comm of) {
  int rank = 0;
  PMPI_Comm_rank(of, &rank);
  PMPI_Comm_split(of, 0, rank, &comm);
}
// If the program has freed its communicator earlier, each rank comes here after it has freed its
// prepared calls. MPI_Comm_free does not wait for other ranks in either MPI.
CommOfOurs::~CommOfOurs() {
  if (comm != MPI_COMM_NULL) PMPI_Comm_free(&comm);
}

std::shared_ptr<Channel> Channels::find(Passed* why) {
  *why = Passed::not_waited_for;
  if (by_messages_) return nullptr;
  prepared_calls().sweep();
  std::uint64_t free_here = 0, free = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].use_count() == 1) free_here |= std::uint64_t{1} << i;
  }
  PMPI_Allreduce(&free_here, &free, 1, MPI_UINT64_T, MPI_BAND, on_->comm);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if ((free >> i & 1) != 0) return all_[i];
  }
  *why = Passed::refused;
  if (all_.size() == kMost) return nullptr;
  auto backend = make_backend(on_->comm, false);
  if (!backend.ok()) {
    std::fprintf(stderr, "rankine: a call that is made ready is left to MPI: %s\n",
                 backend.status().text().c_str());
    return nullptr;
  }
  if (!(*backend)->is_over_memory()) {
    by_messages_ = true;
    *why = Passed::not_waited_for;
    return nullptr;
  }
  return all_.emplace_back(std::make_shared<Channel>(Channel{on_, std::move(*backend)}));
}

void Prepared::keep(MPI_Datatype type) {
  int integers = 0, addresses = 0, parts = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &parts, &combiner);
  if (combiner == MPI_COMBINER_NAMED || types.contains(type)) return;
  types.emplace(type, std::make_unique<const TypeOfOurs>(type));
}
MPI_Datatype Prepared::ours(MPI_Datatype type) const {
  const auto found = types.find(type);
  return found == types.end() ? type : found->second->type;
}

// Requires the lock. Returns an MPI error code.
int PreparedCalls::begin() {
  if (self_ != MPI_COMM_NULL) return MPI_SUCCESS;
  const int error = PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &self_);
  if (error != MPI_SUCCESS) return error;
  // Report errors as for requests without a communicator.
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  PMPI_Comm_set_errhandler(self_, handler);
  const bool is_mpis = handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_RETURN;
  return is_mpis ? MPI_SUCCESS : PMPI_Errhandler_free(&handler);
}

Status PreparedCalls::add(const std::shared_ptr<Prepared>& call, MPI_Request* handle) {
  const std::lock_guard lock(mutex_);
  int error = begin();
  if (tags_.empty()) tags_.push_back(tags_made_++);
  call->tag = tags_.back();
  if (error == MPI_SUCCESS)
    error = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, call->tag, self_, &call->handle);
  if (error != MPI_SUCCESS)
    return {Code::system, "MPI gives no persistent request: error " + std::to_string(error)};
  tags_.pop_back();
  calls_.emplace(call->handle, call);
  known_.store(calls_.size(), std::memory_order_release);  // pairs with find()
  *handle = call->handle;
  return {};
}

std::shared_ptr<Prepared> PreparedCalls::find(MPI_Request handle) {
  // Acquire: pairs with the release in add() and free(). If another thread has made the handle, it
  // has passed the handle to this thread with its own synchronization.
  if (known_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(handle);
  return found == calls_.end() ? nullptr : found->second;
}

int PreparedCalls::start(MPI_Request* request) {
  const auto call = request == nullptr ? nullptr : find(*request);
  // Open MPI does not check this, and would give the program another request, which never
  // completes. Acquire: pairs with complete().
  if (call != nullptr && call->is_under_way.load(std::memory_order_acquire)) {
    std::fprintf(stderr,
                 "rankine: MPI_Start of rank %d: the request is under way; wait for it before it "
                 "is started again\n",
                 call->rank);
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
  }
  const int error = PMPI_Start(request);
  if (call == nullptr || error != MPI_SUCCESS) return error;
  under_way_.fetch_add(1, std::memory_order_relaxed);  // read by this thread or synchronized ones
  call->is_under_way.store(true, std::memory_order_relaxed);
  const int not_started = call->again == nullptr ? call->start(call) : restart(call);
  if (not_started != MPI_SUCCESS) complete(*call, false);
  return not_started;
}

int PreparedCalls::restart(const std::shared_ptr<Prepared>& call) {
  call->again->prepared = call;
  const Status status = requests().restart(call->again);
  if (status.ok()) return MPI_SUCCESS;
  std::fprintf(stderr, "rankine: %s of rank %d: %s: %s\n",
               name_of(call->again->function, Form::prepared).c_str(), call->rank,
               std::string(rankine::name_of(status.code())).c_str(), status.text().c_str());
  call->again->prepared = nullptr;
  PMPI_Comm_call_errhandler(call->channel->on->comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

int PreparedCalls::free(MPI_Request* request) {
  if (request != nullptr && known_.load(std::memory_order_acquire) > 0) {  // pairs with add()
    const std::lock_guard lock(mutex_);
    if (const auto found = calls_.find(*request); found != calls_.end()) {
      freed_.push_back(std::move(found->second));
      calls_.erase(found);
      known_.store(calls_.size(), std::memory_order_release);  // pairs with find()
    }
  }
  // MPI keeps a request in flight until its completion.
  const int error = PMPI_Request_free(request);
  sweep();
  return error;
}

void PreparedCalls::complete(Prepared& call, bool is_well) {
  // Before the completion, because after it the program may start the call again. Release: pairs
  // with under_way() and sweep().
  call.is_under_way.store(false, std::memory_order_release);
  under_way_.fetch_sub(1, std::memory_order_release);
  // On failure sends more than is received: the program's wait gets an MPI error.
  static const char too_long = 0;
  MPI_Request sent = MPI_REQUEST_NULL;
  PMPI_Isend(&too_long, is_well ? 0 : 1, MPI_BYTE, 0, call.tag, self_, &sent);
  PMPI_Request_free(&sent);
}

std::shared_ptr<Prepared> PreparedCalls::under_way(int count, const MPI_Request requests[]) {
  // Acquire, here and below: pairs with complete().
  if (under_way_.load(std::memory_order_acquire) == 0 || requests == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < count; ++i) {
    const auto found = calls_.find(requests[i]);
    if (found == calls_.end()) continue;
    if (found->second->is_under_way.load(std::memory_order_acquire)) return found->second;
  }
  return nullptr;
}

void PreparedCalls::sweep() {
  std::vector<std::shared_ptr<Prepared>> over;  // destroyed after the lock: may call MPI
  const std::lock_guard lock(mutex_);
  for (auto& call : freed_) {
    // The StartedCollective refers to the call until it is over. Acquire: pairs with complete().
    if (call->is_under_way.load(std::memory_order_acquire) || call.use_count() > 1) continue;
    tags_.push_back(call->tag);
    over.push_back(std::move(call));
  }
  std::erase(freed_, nullptr);
}

void PreparedCalls::end() {
  decltype(calls_) left;
  decltype(freed_) freed;
  {
    const std::lock_guard lock(mutex_);
    left.swap(calls_);
    freed.swap(freed_);
    known_.store(0, std::memory_order_release);  // pairs with find()
  }
  left.clear();
  freed.clear();
  if (self_ != MPI_COMM_NULL) PMPI_Comm_free(&self_);
}

PreparedCalls& prepared_calls() {
  static auto* all = new PreparedCalls;  // never destroyed: MPI may end after static objects
  return *all;
}

}  // namespace rankine::mpi

using namespace rankine::mpi;

extern "C" {

int MPI_Start(MPI_Request* request) {
  return guarded(MPI_COMM_WORLD, [&] { return prepared_calls().start(request); });
}

int MPI_Startall(int count, MPI_Request requests[]) {
  return guarded(MPI_COMM_WORLD, [&] {
    // If no request is prepared here, or arguments are invalid, call MPI directly.
    bool ours = false;
    for (int i = 0; requests != nullptr && i < count && !ours; ++i)
      ours = prepared_calls().find(requests[i]) != nullptr;
    if (!ours) return PMPI_Startall(count, requests);
    for (int i = 0; i < count; ++i) {
      if (const int error = MPI_Start(&requests[i]); error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
  });
}

int MPI_Request_free(MPI_Request* request) {
  return guarded(MPI_COMM_WORLD, [&] { return prepared_calls().free(request); });
}
}

namespace rankine::mpi {
namespace {

// Per-thread state. The library is loaded at program start, so the initial-exec TLS model finds
// this without a call, as for the program's own variables.
struct Thread {
  int inside = 0;
  // The thread's last communicator; valid while no communicator has been freed since.
  MPI_Comm comm{};
  Attached* attached = nullptr;
  std::uint64_t gone = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local Thread thread;

// The first calls on a communicator are passed on to MPI, because a backend for one or two calls is
// not worth its cost. All ranks make the same calls, so their counts agree.
constexpr int kFirstCalls = 3;

}  // namespace

Inside::Inside() { ++thread.inside; }
Inside::~Inside() { --thread.inside; }
bool Inside::is_now() { return thread.inside > 0; }

Attached* Communicators::find(MPI_Comm comm) {
  const std::uint64_t gone = gone_.load(std::memory_order_acquire);  // pairs with forget()
  if (thread.comm == comm && thread.gone == gone && thread.attached != nullptr)
    return thread.attached;
  const Inside now;
  int is_inter = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0) return nullptr;
  thread.comm = comm;
  thread.attached = &attached_to(comm);
  thread.gone = gone;
  return thread.attached;
}

bool Communicators::begin_call(Attached& attached, Form form) {
  if (attached.made) return true;
  if (attached.calls <= kFirstCalls) return false;
  if (form != Form::waited_for) return false;
  const Inside now;
  make(attached);
  return true;
}

void Communicators::forget_all() {
  const Inside now;
  all_.sort([](const Attached& a, const Attached& b) { return a.name() < b.name(); });
  while (!all_.empty()) MPI_Comm_delete_attr(all_.front().comm, keyval_);
  if (keyval_ != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&keyval_);
}

Attached& Communicators::attached_to(MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  if (keyval_ == MPI_KEYVAL_INVALID) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval_, this);
  }
  Attached* attached = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&attached), &found);
  if (found == 0) {
    attached = &all_.emplace_back();
    attached->comm = comm;
    MPI_Comm_rank(comm, &attached->rank);
    MPI_Comm_size(comm, &attached->ranks);
    attached->is_ours = presence().all_have_it(comm);
    MPI_Comm_set_attr(comm, keyval_, attached);
  }
  return *attached;
}

void Communicators::make(Attached& attached) {
  attached.made = true;
  auto backend = make_backend(attached.comm, preload_settings().messages);
  if (backend.ok()) {
    attached.backend = std::move(*backend);
    report().communicator(attached.backend->is_over_memory());
    return;
  }
  std::fprintf(stderr, "rankine: a communicator is left to MPI: %s\n",
               backend.status().text().c_str());
}

int Communicators::forget(MPI_Comm, int, void* attribute, void* self) {
  return guarded(MPI_COMM_NULL, [&] {
    const Inside now;
    auto& mine = *static_cast<Communicators*>(self);
    std::list<Attached> gone;  // destroyed after the lock: a backend's end waits for other ranks
    const std::lock_guard lock(mine.mutex_);
    // A new communicator may reuse the handle. Pairs with find().
    mine.gone_.fetch_add(1, std::memory_order_release);
    for (auto at = mine.all_.begin(); at != mine.all_.end(); ++at) {
      if (&*at != attribute) continue;
      gone.splice(gone.end(), mine.all_, at);
      break;
    }
    return MPI_SUCCESS;
  });
}

Communicators& communicators() {
  static auto* all = new Communicators;  // never destroyed: MPI may end after static objects
  return *all;
}

}  // namespace rankine::mpi
