#include "engine/api/mpi/bound_requests.h"

#include <algorithm>
#include <limits>
#include <string>

#include "engine/api/mpi/mpi_error.h"

namespace rankine::mpi {

Result<std::unique_ptr<BoundRequests>> BoundRequests::make(const MessagePlan& plan,
                                                           const Addresses& memory,
                                                           const Wire& wire, int first_tag) {
  std::unique_ptr<BoundRequests> bound(new BoundRequests(plan, memory));
  std::size_t most_parts = 0;
  for (const Parcel& parcel : plan.parcels) {
    bound->first_.push_back(bound->requests_.size());
    if (parcel.way != Way::wire) continue;
    if (Status status = bound->add(parcel, wire, first_tag); !status.ok()) return status;
    most_parts = std::max(most_parts, bound->requests_.size() - bound->first_.back());
  }
  bound->first_.push_back(bound->requests_.size());
  bound->statuses_.resize(most_parts);
  return bound;
}

BoundRequests::~BoundRequests() {
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

// The parcel's bytes, cut after every most_bytes of them: where both ends cut.
Status BoundRequests::add(const Parcel& parcel, const Wire& wire, int first_tag) {
  const int threads = wire.homes.most_threads();
  const int self = wire.homes[wire.self].thread, peer = wire.homes[parcel.peer].thread;
  const int from = parcel.sends ? self : peer, to = parcel.sends ? peer : self;
  const int tag = first_tag + (parcel.round % kTags * threads + from) * threads + to;
  std::vector<Piece> pieces;
  std::size_t bytes = 0;
  for (Piece rest : parcel.pieces) {
    while (rest.bytes > 0) {
      Piece piece = rest;
      piece.bytes = std::min(rest.bytes, wire.most_bytes - bytes);
      pieces.push_back(piece);
      bytes += piece.bytes;
      rest.offset += piece.bytes;
      rest.bytes -= piece.bytes;
      if (bytes < wire.most_bytes) continue;
      if (Status status = add_part(parcel, pieces, bytes, wire, tag); !status.ok()) return status;
      pieces.clear();
      bytes = 0;
    }
  }
  return bytes > 0 ? add_part(parcel, pieces, bytes, wire, tag) : Status();
}

Status BoundRequests::add_part(const Parcel& parcel, const std::vector<Piece>& pieces,
                               std::size_t bytes, const Wire& wire, int tag) {
  const auto address = [this](const Piece& piece) {
    return memory_[static_cast<std::size_t>(piece.memory)] + piece.offset;
  };
  void* buffer = address(pieces.front());
  int count = static_cast<int>(bytes);
  MPI_Datatype type = MPI_BYTE;
  if (pieces.size() > 1) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (const Piece& piece : pieces) {
      MPI_Aint place = 0;
      MPI_Get_address(address(piece), &place);
      places.push_back(place);
      lengths.push_back(static_cast<int>(piece.bytes));
    }
    buffer = MPI_BOTTOM;
    count = 1;
    int code = MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(),
                                        places.data(), MPI_BYTE, &type);
    if (code == MPI_SUCCESS) code = MPI_Type_commit(&type);
    if (code != MPI_SUCCESS) return mpi_status("MPI_Type_create_hindexed", code);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int peer = wire.homes[parcel.peer].process;
  const int code = parcel.sends
                       ? MPI_Send_init(buffer, count, type, peer, tag, wire.comm, &request)
                       : MPI_Recv_init(buffer, count, type, peer, tag, wire.comm, &request);
  if (type != MPI_BYTE) MPI_Type_free(&type);  // the request keeps it
  if (code != MPI_SUCCESS)
    return mpi_status(parcel.sends ? "MPI_Send_init" : "MPI_Recv_init", code);
  requests_.push_back(request);
  bytes_.push_back(bytes);
  return {};
}

Status BoundRequests::start(int parcel) noexcept {
  const std::size_t first = first_[static_cast<std::size_t>(parcel)];
  const std::size_t end = first_[static_cast<std::size_t>(parcel) + 1];
  for (std::size_t i = first; i < end; ++i) {
    if (const int code = MPI_Start(&requests_[i]); code != MPI_SUCCESS) {
      return mpi_status("MPI_Start", code);
    }
  }
  return {};
}

Status BoundRequests::misfit(int parcel, const char* what, std::size_t bytes) const noexcept {
  return make_error(Code::mismatch, [&] {
    const Parcel& of = plan_.parcels[static_cast<std::size_t>(parcel)];
    return "rank " + std::to_string(of.peer) + " sent " + what + " the " + std::to_string(bytes) +
           " bytes that this rank expects of it in round " + std::to_string(of.round - 1) +
           ": their calls differ";
  });
}

Status BoundRequests::test(int parcel, bool& done) noexcept {
  const std::size_t first = first_[static_cast<std::size_t>(parcel)];
  const std::size_t parts = first_[static_cast<std::size_t>(parcel) + 1] - first;
  int flag = 0;
  int code = parts == 1
                 ? MPI_Test(&requests_[first], &flag, statuses_.data())
                 : MPI_Testall(static_cast<int>(parts), &requests_[first], &flag, statuses_.data());
  done = flag != 0;
  const bool sends = plan_.parcels[static_cast<std::size_t>(parcel)].sends;
  if (code != MPI_SUCCESS && parts > 1 && class_of(code) == MPI_ERR_IN_STATUS) {
    for (std::size_t i = 0; i < parts; ++i) {
      const int of_part = statuses_[i].MPI_ERROR;
      if (of_part != MPI_SUCCESS && of_part != MPI_ERR_PENDING) code = of_part;
    }
  }
  if (code != MPI_SUCCESS) {
    return class_of(code) == MPI_ERR_TRUNCATE ? misfit(parcel, "more than", bytes_[first])
                                              : mpi_status("MPI_Test", code);
  }
  if (!done || sends) return {};
  for (std::size_t i = 0; i < parts; ++i) {
    int got = 0;
    MPI_Get_count(&statuses_[i], MPI_BYTE, &got);
    if (static_cast<std::size_t>(got) != bytes_[first + i]) {
      return misfit(parcel, "less than", bytes_[first + i]);
    }
  }
  return {};
}

void BoundRequests::cancel() noexcept {
  for (std::size_t p = 0; p + 1 < first_.size(); ++p) {
    for (std::size_t i = first_[p]; i < first_[p + 1]; ++i) {
      if (!plan_.parcels[p].sends) {
        // One that is not under way is left alone by both.
        int over = 0;
        MPI_Request_get_status(requests_[i], &over, MPI_STATUS_IGNORE);
        if (over == 0) {
          MPI_Cancel(&requests_[i]);
          MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
        }
      }
      requests_[i] = MPI_REQUEST_NULL;  // freeing what was sent is no error, and of no use any more
    }
  }
}

}  // namespace rankine::mpi
