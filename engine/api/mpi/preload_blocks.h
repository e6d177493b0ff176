// MPI's basic types and predefined operations as the engine's.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/run/kernels/types.h"

namespace rankine::mpi {

// Nothing: a type of the program's, or one that the engine does not add up (MPI_SHORT,
// MPI_LONG_DOUBLE, MPI_INTEGER of another length than usual).
std::optional<DataType> data_type_of(MPI_Datatype type);
// Nothing: an operation of the program's, or one on pairs (MPI_MINLOC) or truth values (MPI_LAND).
std::optional<ReduceOp> reduce_op_of(MPI_Op op);

// Bytes that 64 bits cannot say, or nearly so.
inline constexpr std::size_t kTooLarge = std::numeric_limits<std::size_t>::max();
// a * b, at most kTooLarge.
inline std::size_t product(std::size_t a, std::size_t b) {
  std::size_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? kTooLarge : all;
}

// How elements of a type lie in memory.
struct Elements {
  std::size_t size = 0;  // bytes of one, without gaps
  MPI_Aint extent = 0;   // from one to the next
  bool is_plain = true;  // bytes side by side without gaps
};
Elements elements_of(MPI_Datatype type);

// What the parameters in preload_functions.h are in C, and how the library's own functions take
// them: one function for MPI_Bcast and MPI_Bcast_c, so ranks may mix the two in one call.

// A program's list of numbers of 4 or 8 bytes: counts, or displacements. The list stays the
// program's and outlives this.
class Numbers {
 public:
  Numbers() = default;
  template <class T>
  Numbers(const T* list) : list_(list), is_wide_(sizeof(T) == sizeof(std::int64_t)) {  // NOLINT
    static_assert(sizeof(T) == sizeof(std::int32_t) || sizeof(T) == sizeof(std::int64_t));
  }

  bool is_null() const { return list_ == nullptr; }
  std::int64_t operator[](int i) const {
    const auto at = static_cast<std::size_t>(i);
    if (is_wide_) return number<std::int64_t>(at);
    return number<std::int32_t>(at);
  }

 private:
  template <class T>
  T number(std::size_t i) const {
    T found;
    std::memcpy(&found, static_cast<const std::byte*>(list_) + i * sizeof(T), sizeof(T));
    return found;
  }

  const void* list_ = nullptr;
  bool is_wide_ = false;
};

struct SameParameters {
  using Buffer = void*;
  using ConstBuffer = const void*;
  using Type = MPI_Datatype;
  using Types = const MPI_Datatype*;
  using Op = MPI_Op;
  using Root = int;
};
struct WithInts : SameParameters {
  using Count = int;
  using Counts = const int*;
  using Places = const int*;
};
struct WithCounts : SameParameters {
  using Count = MPI_Count;
  using Counts = const MPI_Count*;
  using Places = const MPI_Aint*;
};
struct Either : SameParameters {
  using Count = std::int64_t;
  using Counts = Numbers;
  using Places = Numbers;
};

// A program's buffers as bytes side by side, whatever the types of their elements. Buffers stay the
// program's, and must outlive these.

// MPI packs and unpacks so many bytes at once, and so do we. A block of more is MPI's.
inline constexpr std::size_t kMostPacked = std::numeric_limits<int>::max();

// Some elements of any type.
struct Block {
  void* buffer = nullptr;
  std::size_t count = 0;
  MPI_Datatype type = MPI_BYTE;
  Elements elements{};

  std::size_t bytes() const { return product(count, elements.size); }
  // As bytes side by side, and back. No element may have more than kMostPacked.
  void pack(std::byte* to, MPI_Comm comm) const {
    if (bytes() == 0) return;
    if (elements.is_plain) {
      std::memcpy(to, buffer, bytes());
      return;
    }
    in_parts([&](void* part, int number, MPI_Datatype its_type, std::size_t at, int size) {
      int position = 0;
      MPI_Pack(part, number, its_type, to + at, size, &position, comm);
    });
  }
  void unpack(const std::byte* from, MPI_Comm comm) const {
    if (bytes() == 0) return;
    if (elements.is_plain) {
      std::memcpy(buffer, from, bytes());
      return;
    }
    in_parts([&](void* part, int number, MPI_Datatype its_type, std::size_t at, int size) {
      int position = 0;
      MPI_Unpack(from + at, size, &position, part, number, its_type, comm);
    });
  }

 private:
  // `use` gets elements whose bytes an int can say: where they are, how many, their type, how many
  // bytes are before them, and their bytes.
  template <class Use>
  void in_parts(const Use& use) const {
    auto* begin = static_cast<std::byte*>(buffer);
    MPI_Datatype its_type = type;
    // Addresses in the type: MPICH packs nothing from MPI_BOTTOM.
    if (buffer == MPI_BOTTOM) {
      MPI_Aint first = 0, extent = 0;
      const int one = 1;
      MPI_Type_get_true_extent(type, &first, &extent);
      begin += first;
      const MPI_Aint back = -first;
      MPI_Type_create_hindexed(1, &one, &back, type, &its_type);
      MPI_Type_commit(&its_type);
    }
    const std::size_t most = kMostPacked / elements.size;
    for (std::size_t done = 0; done < count;) {
      const std::size_t number = std::min(most, count - done);
      use(begin + elements.extent * static_cast<MPI_Aint>(done), static_cast<int>(number), its_type,
          done * elements.size, static_cast<int>(number * elements.size));
      done += number;
    }
    if (its_type != type) MPI_Type_free(&its_type);
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

// A block as bytes side by side: in `room`, which has that many bytes and outlives this, or, where
// that is nullptr, where it is.
class Bytes {
 public:
  Bytes(const Block& block, std::byte* room, MPI_Comm comm)
      : block_(block), comm_(comm), room_(room) {}
  // The same bytes, of a type that the program may free meanwhile. What to_send() and to_receive()
  // have said stays so.
  Bytes kept() && {
    if (room_ != nullptr && !block_.elements.is_plain)
      kept_ = std::make_shared<const TypeOfOurs>(block_.type);
    if (kept_) block_.type = kept_->type;
    return std::move(*this);
  }
  MPI_Datatype type() const { return block_.type; }
  bool is_packed() const { return room_ != nullptr; }
  std::size_t size() const { return block_.bytes(); }
  // What is to be sent.
  const void* to_send() const {
    if (room_ == nullptr) return block_.buffer;
    block_.pack(room_, comm_);
    return room_;
  }
  // Where to receive; and what was received goes to its places.
  void* to_receive() const { return room_ == nullptr ? block_.buffer : room_; }
  void received() const {
    if (room_ != nullptr) block_.unpack(room_, comm_);
  }

 private:
  Block block_;
  MPI_Comm comm_;
  std::byte* room_;
  std::shared_ptr<const TypeOfOurs> kept_;
};

// Where these blocks begin if they lie in the order of ranks, one after another, as bytes side by
// side; nullptr: they lie otherwise, or have no bytes.
inline std::byte* side_by_side(std::span<const Block> blocks) {
  std::byte *begin = nullptr, *next = nullptr;
  for (const Block& block : blocks) {
    if (block.bytes() == 0) continue;
    auto* const at = static_cast<std::byte*>(block.buffer);
    if (!block.elements.is_plain || (begin != nullptr && at != next)) return nullptr;
    if (begin == nullptr) begin = at;
    next = at + block.bytes();
  }
  return begin;
}

// The blocks of one rank's buffer, by the rank that they go to or come from.
class Blocks {
 public:
  // One for `peer` only.
  static Blocks for_one(const void* buffer, std::int64_t count, MPI_Datatype type, Rank peer) {
    Blocks made(buffer);
    made.peer_ = peer;
    made.count_ = count;
    made.set(type);
    made.wrong_ |= count < 0;
    return made;
  }
  static Blocks none() { return for_one(nullptr, 0, MPI_BYTE, 0); }
  // One for each, at so many elements from the beginning.
  static Blocks in_elements(const void* buffer, Numbers counts, Numbers places,
                            MPI_Datatype type) {
    Blocks made(buffer, counts, places);
    made.set(type);
    return made;
  }
  // The same, each of a type of its own, at so many bytes. The list of types must outlive this.
  static Blocks in_bytes(const void* buffer, Numbers counts, Numbers places,
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
    if (counts_.is_null()) return peer == peer_ ? block(count_, 0) : Block{};
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
  Blocks(const void* buffer, Numbers counts, Numbers places) : Blocks(buffer) {
    counts_ = counts;
    places_ = places;
    wrong_ |= counts.is_null() || places.is_null();
  }
  void set(MPI_Datatype type) {
    wrong_ |= type == MPI_DATATYPE_NULL;
    if (wrong_) return;
    type_ = type;
    elements_ = elements_of(type);
  }
  Block block(std::int64_t count, MPI_Aint place) const {
    return {buffer_ + place, static_cast<std::size_t>(count), type_, elements_};
  }

  std::byte* buffer_;
  Numbers counts_, places_;
  const MPI_Datatype* types_ = nullptr;  // or all are of type_
  MPI_Datatype type_ = MPI_BYTE;
  Elements elements_{};
  std::int64_t count_ = 0;  // without counts_
  Rank peer_ = 0, left_out_ = -1;
  bool wrong_;
};

}  // namespace rankine::mpi
