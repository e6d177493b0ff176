// Converts MPI arguments for the preload library: basic types and predefined operations to the
// engine's, counts of either width to Numbers, and program buffers of any datatype to contiguous
// bytes.
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

// Empty for a derived type, and for a type that the engine does not reduce (MPI_SHORT,
// MPI_LONG_DOUBLE, MPI_INTEGER of an unusual length).
std::optional<DataType> data_type_of(MPI_Datatype type);
// Empty for a user operation, and for operations on pairs (MPI_MINLOC) or on truth values
// (MPI_LAND).
std::optional<ReduceOp> reduce_op_of(MPI_Op op);

// The largest size; also stands for all sizes above it.
inline constexpr std::size_t kTooLarge = std::numeric_limits<std::size_t>::max();
// Returns a * b, at most kTooLarge.
inline std::size_t product(std::size_t a, std::size_t b) {
  std::size_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? kTooLarge : all;
}

// The layout of elements of a type in memory.
struct Elements {
  std::size_t size = 0;  // bytes of one element without gaps
  MPI_Aint extent = 0;   // distance between elements
  bool is_plain = true;  // contiguous bytes without gaps
};
Elements elements_of(MPI_Datatype type);

// The C types of the parameters in RANKINE_FUNCTIONS (preload_report.h), and the types of the
// library's own functions, which serve both MPI_Bcast and MPI_Bcast_c, so ranks may mix the two in
// one call.

// A program's list of 4-byte or 8-byte numbers: counts or displacements. The program owns the list,
// which must outlive this object.
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

// A program's buffers as contiguous bytes, for elements of any type. The program owns the buffers,
// which must outlive these objects.

// The largest block to pack: MPI packs and unpacks at most this many bytes at once. Calls with
// larger blocks are passed on to MPI.
inline constexpr std::size_t kMostPacked = std::numeric_limits<int>::max();

// Elements of any type.
struct Block {
  void* buffer = nullptr;
  std::size_t count = 0;
  MPI_Datatype type = MPI_BYTE;
  Elements elements{};

  std::size_t bytes() const { return product(count, elements.size); }
  // Copy the elements to and from contiguous bytes. One element may have at most kMostPacked bytes.
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
  // Calls `use` for parts with a size that fits in an int: address, number of elements, their type,
  // offset in bytes of the part, and its size in bytes.
  template <class Use>
  void in_parts(const Use& use) const {
    auto* begin = static_cast<std::byte*>(buffer);
    MPI_Datatype its_type = type;
    // MPICH packs nothing if the buffer is MPI_BOTTOM, so build a type that is relative to the
    // first byte.
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

// A duplicate of a type; the program's MPI_Type_free does not affect it.
struct TypeOfOurs {
  explicit TypeOfOurs(MPI_Datatype of) { MPI_Type_dup(of, &type); }
  ~TypeOfOurs() { MPI_Type_free(&type); }
  TypeOfOurs(const TypeOfOurs&) = delete;
  TypeOfOurs& operator=(const TypeOfOurs&) = delete;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// A block as contiguous bytes: packed into `room`, which has that many bytes and must outlive this
// object, or, if `room` is nullptr, at its own place.
class Bytes {
 public:
  Bytes(const Block& block, std::byte* room, MPI_Comm comm)
      : block_(block), comm_(comm), room_(room) {}
  // Keeps a duplicate of the type, which the program may free. Pointers returned by to_send() and
  // to_receive() stay valid.
  Bytes kept() && {
    if (room_ != nullptr && !block_.elements.is_plain)
      kept_ = std::make_shared<const TypeOfOurs>(block_.type);
    if (kept_) block_.type = kept_->type;
    return std::move(*this);
  }
  MPI_Datatype type() const { return block_.type; }
  bool is_packed() const { return room_ != nullptr; }
  std::size_t size() const { return block_.bytes(); }
  // Returns the bytes to send.
  const void* to_send() const {
    if (room_ == nullptr) return block_.buffer;
    block_.pack(room_, comm_);
    return room_;
  }
  // Returns the place to receive into; received() then unpacks the bytes into the block.
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

// If the blocks are contiguous and in rank order, returns their begin; otherwise, or if all are
// empty, nullptr.
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

// The blocks of one rank's buffer, by the rank at the other end.
class Blocks {
 public:
  // One block, for `peer` only.
  static Blocks for_one(const void* buffer, std::int64_t count, MPI_Datatype type, Rank peer) {
    Blocks made(buffer);
    made.peer_ = peer;
    made.count_ = count;
    made.set(type);
    made.wrong_ |= count < 0;
    return made;
  }
  static Blocks none() { return for_one(nullptr, 0, MPI_BYTE, 0); }
  // One block per rank; `places` count elements of `type`.
  static Blocks in_elements(const void* buffer, Numbers counts, Numbers places, MPI_Datatype type) {
    Blocks made(buffer, counts, places);
    made.set(type);
    return made;
  }
  // One block per rank, each with its type; `places` count bytes. The list of types must outlive
  // this object.
  static Blocks in_bytes(const void* buffer, Numbers counts, Numbers places,
                         const std::vector<MPI_Datatype>& types) {
    Blocks made(buffer, counts, places);
    made.types_ = types.data();
    made.wrong_ |= types.empty();
    return made;
  }
  // Leaves out one rank's block: a root's own block stays in place.
  Blocks but_for(Rank peer) const {
    Blocks made = *this;
    made.left_out_ = peer;
    return made;
  }

  // Empty if MPI has an error for the program's arguments.
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
  const MPI_Datatype* types_ = nullptr;  // nullptr: all blocks have type_
  MPI_Datatype type_ = MPI_BYTE;
  Elements elements_{};
  std::int64_t count_ = 0;  // used if counts_ is null
  Rank peer_ = 0, left_out_ = -1;
  bool wrong_;
};

}  // namespace rankine::mpi
