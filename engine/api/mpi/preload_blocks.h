// A program's buffers as bytes side by side, whatever the types of their elements. Buffers stay the
// program's, and must outlive these.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/api/mpi/preload_kinds.h"

namespace rankine::mpi {

// Some elements of any type.
struct Block {
  void* buffer = nullptr;
  std::size_t count = 0;
  MPI_Datatype type = MPI_BYTE;
  Elements elements{};

  std::size_t bytes() const { return count * elements.size; }
  // As bytes side by side, and back.
  void pack(std::byte* to, MPI_Comm comm) const {
    if (bytes() == 0) return;
    if (elements.is_plain) {
      std::memcpy(to, buffer, bytes());
      return;
    }
    int at = 0;
    const int size = static_cast<int>(bytes());
    MPI_Pack(buffer, static_cast<int>(count), type, to, size, &at, comm);
  }
  void unpack(const std::byte* from, MPI_Comm comm) const {
    if (bytes() == 0) return;
    if (elements.is_plain) {
      std::memcpy(buffer, from, bytes());
      return;
    }
    int at = 0;
    const int size = static_cast<int>(bytes());
    MPI_Unpack(from, size, &at, buffer, static_cast<int>(count), type, comm);
  }
};

// The same type, which the program does not free.
struct TypeOfOurs {
  explicit TypeOfOurs(MPI_Datatype of) { MPI_Type_dup(of, &type); }
  ~TypeOfOurs() { MPI_Type_free(&type); }
  TypeOfOurs(const TypeOfOurs&) = delete;
  TypeOfOurs& operator=(const TypeOfOurs&) = delete;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// A block as bytes side by side: itself, or packed.
class Bytes {
 public:
  Bytes(const void* buffer, std::size_t count, MPI_Datatype type, MPI_Comm comm)
      : block_{const_cast<void*>(buffer), count, type, elements_of(type)}, comm_(comm) {
    if (!block_.elements.is_plain) packed_.resize(size());
  }
  // The same bytes, of a type that the program may free meanwhile. What to_send() and to_receive()
  // have said stays so.
  Bytes kept() && {
    if (!packed_.empty()) kept_ = std::make_shared<const TypeOfOurs>(block_.type);
    if (kept_) block_.type = kept_->type;
    return std::move(*this);
  }
  MPI_Datatype type() const { return block_.type; }
  bool is_packed() const { return !block_.elements.is_plain; }
  std::size_t size() const { return block_.bytes(); }
  // What is to be sent.
  const void* to_send() {
    if (packed_.empty()) return block_.buffer;
    block_.pack(packed_.data(), comm_);
    return packed_.data();
  }
  // Where to receive; and what was received goes to its places.
  void* to_receive() { return packed_.empty() ? block_.buffer : packed_.data(); }
  void received() {
    if (!packed_.empty()) block_.unpack(packed_.data(), comm_);
  }

 private:
  Block block_;
  MPI_Comm comm_;
  std::vector<std::byte> packed_;
  std::shared_ptr<const TypeOfOurs> kept_;
};

// The blocks of one rank's buffer, by the rank that they go to or come from.
class Blocks {
 public:
  // One for `peer` only.
  static Blocks for_one(const void* buffer, int count, MPI_Datatype type, Rank peer) {
    Blocks made(buffer);
    made.peer_ = peer;
    made.count_ = count;
    made.set(type);
    made.wrong_ |= count < 0;
    return made;
  }
  static Blocks none() { return for_one(nullptr, 0, MPI_BYTE, 0); }
  // One for each, at so many elements from the beginning.
  static Blocks in_elements(const void* buffer, const int* counts, const int* places,
                            MPI_Datatype type) {
    Blocks made(buffer, counts, places);
    made.set(type);
    return made;
  }
  // The same, each of a type of its own, at so many bytes. The list of types must outlive this.
  static Blocks in_bytes(const void* buffer, const int* counts, const int* places,
                         const std::vector<MPI_Datatype>& types) {
    Blocks made(buffer, counts, places);
    made.types_ = types.data();
    made.wrong_ |= types.empty();
    return made;
  }
  // A root's own block stays where it is.
  Blocks but_for(Rank peer) const {
    Blocks made = *this;
    made.left_out_ = peer;
    return made;
  }

  // Nothing where the program gave what MPI has an error for.
  std::optional<Block> of(Rank peer) const {
    if (wrong_) return {};
    if (counts_ == nullptr) return peer == peer_ ? block(count_, 0) : Block{};
    if (peer == left_out_) return Block{};
    if (counts_[peer] < 0) return {};
    if (types_ == nullptr) return block(counts_[peer], elements_.extent * places_[peer]);
    if (types_[peer] == MPI_DATATYPE_NULL) return {};
    Block found = block(counts_[peer], places_[peer]);
    found.type = types_[peer];
    found.elements = elements_of(found.type);
    return found;
  }

 private:
  explicit Blocks(const void* buffer)
      : buffer_(static_cast<std::byte*>(const_cast<void*>(buffer))),
        wrong_(buffer == MPI_IN_PLACE) {}
  Blocks(const void* buffer, const int* counts, const int* places) : Blocks(buffer) {
    counts_ = counts;
    places_ = places;
    wrong_ |= counts == nullptr || places == nullptr;
  }
  void set(MPI_Datatype type) {
    wrong_ |= type == MPI_DATATYPE_NULL;
    if (wrong_) return;
    type_ = type;
    elements_ = elements_of(type);
  }
  Block block(int count, MPI_Aint place) const {
    return {buffer_ + place, static_cast<std::size_t>(count), type_, elements_};
  }

  std::byte* buffer_;
  const int *counts_ = nullptr, *places_ = nullptr;
  const MPI_Datatype* types_ = nullptr;  // or all are of type_
  MPI_Datatype type_ = MPI_BYTE;
  Elements elements_{};
  int count_ = 0;  // without counts_
  Rank peer_ = 0, left_out_ = -1;
  bool wrong_;
};

}  // namespace rankine::mpi
