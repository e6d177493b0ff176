#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "engine/api/mpi/member_state.h"
#include "engine/api/mpi/process.h"
#include "engine/base/memory.h"
#include "engine/run/fingerprint.h"

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

// Splits the parcel's bytes every most_bytes bytes: both ends split alike.
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
        // MPI reports an inactive request as complete, so it is skipped.
        int over = 0;
        MPI_Request_get_status(requests_[i], &over, MPI_STATUS_IGNORE);
        if (over == 0) {
          MPI_Cancel(&requests_[i]);
          MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
        }
      }
      requests_[i] = MPI_REQUEST_NULL;  // freeing a pending send is legal but useless here
    }
  }
}

// Messages of a call over MPI. This thread calls MPI or, if only one thread of the process may,
// posts errands to that thread.

Status Member::State::post(const Errands::Errand& errand) {
  return wait_until(
      [&](bool& done) {
        done = process->errands_of(thread).post(errand);
        return Status();
      },
      [this] { return nobody_carries(); });
}

Status Member::State::nobody_carries() const {
  return make_error(Code::timeout, [&] {
    return no_answer() + " waits for rank " +
           std::to_string(process->homes().first_of(process->homes()[rank].process)) +
           "; the thread of that rank calls MPI for this one, but is in no call";
  });
}

Status Member::State::on_carrier(std::function<Status()> work) {
  if (calls_mpi()) return work();
  work_ = std::move(work);
  const auto do_it = [](void* of, int) noexcept {
    auto& self = *static_cast<State*>(of);
    try {
      self.done_with_ = self.work_();
    } catch (const std::bad_alloc&) {
      self.done_with_ =
          make_error(Code::out_of_memory, [] { return "no memory for the messages of a call"; });
    }
    return true;
  };
  if (Status status = post({do_it, this, 0}); !status.ok()) return status;
  Errands& errands = process->errands_of(thread);
  const std::uint32_t number = errands.number();
  Status status = wait_until(
      [&](bool& done) {
        done = errands.is_done(number);
        return Status();
      },
      [this] { return nobody_carries(); });
  return status.ok() ? done_with_ : status;
}

// If the buffers differ from the buffers of the previous call, makes the requests anew.
Status Member::State::bind_requests(Ready& ready, const Addresses& memory, int first_tag) {
  if (ready.bound != nullptr && ready.bound->memory() == memory) return {};
  return on_carrier([this, &ready, memory, first_tag] {
    ready.bound = nullptr;
    auto bound = BoundRequests::make(
        ready.messages, memory,
        {process->homes(), rank, process->comm(), options.most_message_bytes}, first_tag);
    if (!bound.ok()) return bound.status();
    ready.bound = std::move(*bound);
    return Status();
  });
}

Status Member::State::start_wire(Ready& ready, int parcel) {
  ++under_way_;
  if (calls_mpi()) return ready.bound->start(parcel);
  const auto start = [](void* of, int which) noexcept {
    auto& all = *static_cast<Ready*>(of);
    if (all.of_wire.ok()) all.of_wire = all.bound->start(which);
    return true;
  };
  return post({start, &ready, parcel});
}

Status Member::State::test_wire(Ready& ready, int parcel, bool& done) {
  if (calls_mpi()) return ready.bound->test(parcel, done);
  Errands& errands = process->errands_of(thread);
  const auto test = [](void* of, int which) noexcept {
    auto& all = *static_cast<Ready*>(of);
    bool over = false;
    if (all.of_wire.ok()) all.of_wire = all.bound->test(which, over);
    return over || !all.of_wire.ok();
  };
  if (!asked_) asked_ = errands.post({test, &ready, parcel});
  done = asked_ && errands.is_done(errands.number());
  if (!done) return {};
  asked_ = false;
  return ready.of_wire;
}

void Member::State::cancel_wire(Ready& ready) noexcept {
  if (ready.bound == nullptr) return;
  if (calls_mpi()) return ready.bound->cancel();
  // If the other thread makes no more calls, the errand never runs; no thread waits for it.
  process->errands_of(thread).post({[](void* of, int) noexcept {
                                      static_cast<Ready*>(of)->bound->cancel();
                                      return true;
                                    },
                                    &ready, 0});
}

// Messages between ranks that reach the same memory: a mail slot carries the data, or the address
// of the pieces.

void Member::State::lay_out_pieces(Ready& ready) {
  std::size_t addresses = 0;
  for (const Parcel& parcel : ready.messages.parcels) {
    ready.first_address.push_back(addresses);
    if (parcel.way != Way::wire) addresses += parcel.pieces.size();
  }
  ready.addresses.resize(addresses);
  ready.pieces.resize(ready.messages.parcels.size());
  ready.number.resize(ready.messages.parcels.size());
  ready.lists = whole_lines(ready.messages.scratch_bytes);
}

// The slot carries the data, the address of a single piece, or the address of a list of piece
// addresses.
Status Member::State::post_pieces(Ready& ready, int parcel, const CallWork& work) {
  const auto index = static_cast<std::size_t>(parcel);
  const Parcel& of = ready.messages.parcels[index];
  const int peer = on_mail(of.peer);
  std::byte* word = nullptr;
  Status status = wait_until(
      [&](bool& done) {
        done = (word = mail_->room(peer)) != nullptr;
        return Status();
      },
      [&] { return late(ready, parcel); });
  if (!status.ok()) return status;
  const auto address = [&work](const Piece& piece) {
    return work.memory[static_cast<std::size_t>(piece.memory)] + piece.offset;
  };
  if (of.with_the_word()) {
    for (const Piece& piece : of.pieces) {
      std::memcpy(word, address(piece), piece.bytes);
      word += piece.bytes;
    }
  } else {
    std::byte* where = address(of.pieces.front());
    if (of.pieces.size() > 1) {
      where = work.memory[static_cast<std::size_t>(Memory::scratch)] + ready.lists +
              ready.first_address[index] * sizeof(std::byte*);
      auto* const list = reinterpret_cast<const std::byte**>(where);
      for (std::size_t i = 0; i < of.pieces.size(); ++i) list[i] = address(of.pieces[i]);
    }
    std::memcpy(word, &where, sizeof(where));
  }
  ready.number[index] = mail_->post(peer, mark_ + static_cast<std::uint32_t>(of.round));
  return {};
}

Status Member::State::test_memory(Ready& ready, int parcel, bool& done) noexcept {
  const auto index = static_cast<std::size_t>(parcel);
  const Parcel& of = ready.messages.parcels[index];
  const int peer = on_mail(of.peer);
  if (of.sends) {
    done = of.with_the_word() || mail_->is_used(peer, ready.number[index]);
    return {};
  }
  const NodeMail::Message message = mail_->next(peer);
  if (message.data == nullptr) return {};
  if (message.tag != mark_ + static_cast<std::uint32_t>(of.round)) {
    return make_error(Code::mismatch, [&] {
      return "rank " + std::to_string(of.peer) + " has sent a message of another call than " +
             describe(ready.prepared->fingerprint) + " by " + ready.prepared->algorithm +
             ", in which rank " + std::to_string(rank) + " waits for it in round " +
             std::to_string(of.round - 1);
    });
  }
  take_pieces(ready, parcel, message.data);
  done = true;
  return {};
}

void Member::State::take_pieces(Ready& ready, int parcel, const std::byte* data) noexcept {
  const auto index = static_cast<std::size_t>(parcel);
  const Parcel& of = ready.messages.parcels[index];
  const std::byte** const own = ready.addresses.data() + ready.first_address[index];
  ready.pieces[index] = own;
  if (of.with_the_word()) {
    for (std::size_t i = 0; i < of.pieces.size(); ++i) {
      own[i] = data;
      data += of.pieces[i].bytes;
    }
    return;
  }
  const std::byte* where = nullptr;
  std::memcpy(&where, data, sizeof(where));
  if (of.pieces.size() > 1) {
    ready.pieces[index] = reinterpret_cast<const std::byte* const*>(where);
  } else {
    own[0] = where;
  }
}

}  // namespace rankine::mpi
