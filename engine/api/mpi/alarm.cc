#include "engine/api/mpi/alarm.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

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
  // Whoever is told may be gone, and its message never be over.
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

}  // namespace rankine::mpi
