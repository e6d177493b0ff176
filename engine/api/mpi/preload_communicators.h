// The program's communicators, each with who carries its calls.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>

#include "engine/api/mpi/preload_backend.h"
#include "engine/api/mpi/preload_prepared.h"
#include "engine/api/mpi/preload_report.h"

namespace rankine::mpi {

// Calls of MPI that the engine itself makes, on this thread while there is one of these, are not
// taken.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_now();
};

// A communicator's backend is its attribute, so it goes when the communicator does.
struct Attached {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  bool is_ours = false;  // all its processes have this library (preload_presence.h)
  int calls = 0;         // of collective functions so far, while there is no backend
  bool made = false;     // the backend, if one could be, on all ranks alike
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Channels> channels;  // of calls that are made ready, once there are any

  std::string_view name() const {
    if (backend == nullptr) return {};
    return backend->name();
  }
};

// This process's; thread-safe.
class Communicators {
 public:
  // nullptr: an intercommunicator.
  Attached* find(MPI_Comm comm);
  // Its next call begins, of all ranks where that makes the backend: a call that waits for them.
  // Whether there is one now, or cannot be.
  static bool begin_call(Attached& attached, Form form);
  // Before MPI ends. In one order on all ranks, whose lists may have another: who has posted calls
  // waits for the others.
  void forget_all();

 private:
  Attached& attached_to(MPI_Comm comm);
  static void make(Attached& attached);
  static int forget(MPI_Comm comm, int keyval, void* attribute, void* self);

  std::mutex mutex_;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::list<Attached> all_;
  std::atomic<std::uint64_t> gone_{0};  // communicators
};

Communicators& communicators();

}  // namespace rankine::mpi
