// How the ranks of a communicator tell one another that it has ended, while they wait for messages
// that will not come: each has one reception open for whoever raises the alarm first. On a
// communicator of its own, so that no other message is compared with it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "engine/base/status.h"

namespace rankine::mpi {

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

}  // namespace rankine::mpi
