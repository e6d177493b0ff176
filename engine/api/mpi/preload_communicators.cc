#include "engine/api/mpi/preload_communicators.h"

#include <cstdio>
#include <utility>

#include "engine/api/mpi/guarded.h"
#include "engine/api/mpi/preload_presence.h"
#include "engine/api/mpi/preload_settings.h"

namespace rankine::mpi {
namespace {

// What a thread knows. The library is there when the program starts, so this is found without a
// call, as a program's own.
struct Thread {
  int inside = 0;
  // Its last communicator, as long as none has gone since.
  MPI_Comm comm{};
  Attached* attached = nullptr;
  std::uint64_t gone = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local Thread thread;

// A communicator that is made for a call or two is not worth a backend: its first calls are MPI's.
// All ranks count alike, since all make the same calls.
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
    std::list<Attached> gone;  // its end waits for other ranks: after the lock
    const std::lock_guard lock(mine.mutex_);
    // Another communicator may have its handle next. Pairs with find().
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
  static auto* all = new Communicators;  // MPI may end after static objects have
  return *all;
}

}  // namespace rankine::mpi
