#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/api/call.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_call.h"
#include "engine/run/kernels/types.h"

namespace rankine::mpi {
namespace {

// Programs pass the same datatypes again and again, and predefined datatypes never change: each
// thread caches the last one. (preload_communicators.cc explains the TLS model.)
template <class Found>
struct Last {
  MPI_Datatype type{};
  std::optional<Found> found{};
};
[[gnu::tls_model("initial-exec")]] thread_local Last<DataType> last_data_type;
[[gnu::tls_model("initial-exec")]] thread_local Last<Elements> last_elements;

// Also for types larger than an int can express. kTooLarge: larger than an MPI_Count can express.
std::size_t bytes_of_one(MPI_Datatype type) {
  MPI_Count size = 0;
#if MPI_VERSION >= 4
  MPI_Type_size_c(type, &size);
#else
  MPI_Type_size_x(type, &size);
#endif
  return size == MPI_UNDEFINED ? kTooLarge : static_cast<std::size_t>(size);
}

std::optional<DataType> look_up(MPI_Datatype type) {
  using enum DataType;
  static_assert(sizeof(long) == 8);
  // clang-format off
  const std::pair<MPI_Datatype, DataType> known[] = {
      {MPI_FLOAT, f32}, {MPI_DOUBLE, f64}, {MPI_INT, i32}, {MPI_UNSIGNED, u32}, {MPI_LONG, i64},
      {MPI_UNSIGNED_LONG, u64}, {MPI_LONG_LONG, i64}, {MPI_UNSIGNED_LONG_LONG, u64},
      {MPI_SIGNED_CHAR, i8}, {MPI_UNSIGNED_CHAR, u8}, {MPI_INT8_T, i8}, {MPI_UINT8_T, u8},
      {MPI_INT32_T, i32}, {MPI_UINT32_T, u32}, {MPI_INT64_T, i64}, {MPI_UINT64_T, u64},
      {MPI_AINT, i64}, {MPI_OFFSET, i64}, {MPI_COUNT, i64}, {MPI_C_FLOAT_COMPLEX, c64},
      {MPI_C_DOUBLE_COMPLEX, c128}, {MPI_REAL, f32}, {MPI_DOUBLE_PRECISION, f64},
      {MPI_INTEGER, i32}, {MPI_COMPLEX, c64}, {MPI_DOUBLE_COMPLEX, c128}, {MPI_REAL4, f32},
      {MPI_REAL8, f64}, {MPI_INTEGER1, i8}, {MPI_INTEGER4, i32}, {MPI_INTEGER8, i64},
      {MPI_COMPLEX8, c64}, {MPI_COMPLEX16, c128},
  };
  // clang-format on
  for (const auto& [theirs, ours] : known) {
    if (theirs != type || theirs == MPI_DATATYPE_NULL) continue;
    // Under the standard ABI the length of Fortran's types is set by the code that starts MPI.
    if (bytes_of_one(type) == size_of(ours)) return ours;
    break;
  }
  return {};
}

}  // namespace

std::optional<DataType> data_type_of(MPI_Datatype type) {
  if (last_data_type.found && last_data_type.type == type) return last_data_type.found;
  const auto found = look_up(type);
  if (found) last_data_type = {type, found};
  return found;
}

std::optional<ReduceOp> reduce_op_of(MPI_Op op) {
  using enum ReduceOp;
  const std::pair<MPI_Op, ReduceOp> known[] = {
      {MPI_SUM, sum},   {MPI_PROD, prod}, {MPI_MIN, min},   {MPI_MAX, max},
      {MPI_BAND, band}, {MPI_BOR, bor},   {MPI_BXOR, bxor},
  };
  for (const auto& [theirs, ours] : known) {
    if (theirs == op) return ours;
  }
  return {};
}

Elements elements_of(MPI_Datatype type) {
  if (last_elements.found && last_elements.type == type) return *last_elements.found;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Aint begin = 0, extent = 0;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  MPI_Type_get_extent(type, &begin, &extent);
  const std::size_t size = bytes_of_one(type);
  const bool is_named = combiner == MPI_COMBINER_NAMED;
  const Elements found{size, extent,
                       is_named && begin == 0 && static_cast<std::size_t>(extent) == size};
  if (is_named) last_elements = {type, found};
  return found;
}

namespace {

std::size_t of(std::int64_t n) { return static_cast<std::size_t>(n); }
const void* at(const void* buffer, std::size_t bytes) {
  return static_cast<const std::byte*>(buffer) + bytes;
}

// A reduction; in place if `in` is MPI_IN_PLACE.
int reduction(InterceptedCall& call, Collective collective, const void* in, void* out,
              std::int64_t count, MPI_Datatype type, MPI_Op op, int root) {
  call.root(root).reduces(collective, count, type, op);
  const std::size_t bytes = product(of(count), size_of(call.kind));
  Call reduced{.collective = collective,
               .count = of(count),
               .type = call.kind,
               .op = call.operation,
               .root = root};
  if (!call.is_taken(reduced, bytes)) return call.pass();
  reduced.in = in == MPI_IN_PLACE ? out : call.apart_from(out, in, bytes);
  reduced.out = out;
  return call.run(std::move(reduced), bytes);
}

// A reduction to blocks with `counts`; in place, the rank's block is stored at the begin of `out`.
int reduce_blocks(InterceptedCall& call, const void* in, void* out, Numbers counts,
                  std::int64_t equal, MPI_Datatype type, MPI_Op op) {
  call.unless(counts.is_null() && equal < 0).reduces(Collective::reduce_scatter, 0, type, op);
  std::vector<std::size_t> sizes;
  for (int r = 0; call && r < call.ranks; ++r) {
    const std::int64_t size = counts.is_null() ? equal : counts[r];
    call.unless(size < 0);
    sizes.push_back(of(size));
  }
  Call blocks{.collective = Collective::reduce_scatter,
              .type = call.kind,
              .op = call.operation,
              .counts = sizes};
  const std::size_t largest = sizes.empty() ? 0 : *std::ranges::max_element(sizes);
  if (!call.is_taken(blocks, product(largest, size_of(call.kind)))) return call.pass();
  const auto own = sizes.begin() + call.rank;
  const std::size_t mine = *own * size_of(call.kind);
  blocks.in = in;
  blocks.out = out;
  if (in != MPI_IN_PLACE) return call.run(std::move(blocks), mine);
  // The engine leaves a rank's block at the block's offset.
  const std::size_t before = std::accumulate(sizes.begin(), own, std::size_t{0});
  void* const block = static_cast<std::byte*>(out) + before * size_of(call.kind);
  blocks.in = out;
  blocks.out = block;
  return call.run(std::move(blocks), mine, [out, block, mine] {
    if (mine > 0) std::memmove(out, block, mine);
  });
}

// One of the program's two buffers, as `blocks` blocks of `count` elements.
struct Side {
  void* buffer;
  std::int64_t count;
  MPI_Datatype type;
  int blocks;  // 0: not significant on this rank, so ignore the other fields
};
Side side(const void* buffer, std::int64_t count, MPI_Datatype type, int blocks) {
  return {const_cast<void*>(buffer), count, type, blocks};
}

// Moves blocks of equal size. Side `one` may be in place, inside `all`, which has a block per rank.
int move_blocks(InterceptedCall& call, Collective collective, const Side& one, const Side& all,
                bool one_sends, int root) {
  const bool in_place = one.buffer == MPI_IN_PLACE;
  if (all.blocks > 0) call.moves(all.count, all.type);
  if (!in_place) call.moves(one.count, one.type);
  if (!call) return call.pass();
  // All elements of a side; an empty block if the side is absent.
  const auto elements = [&call](const Side& side, bool is_there) {
    if (!is_there) return Block{};
    return call.block(side.buffer, product(of(side.count), of(side.blocks)), side.type);
  };
  const Block of_one = elements(one, !in_place), of_all = elements(all, all.blocks > 0);
  const auto bytes_of = [](const Side& side, const Block& of_side) {
    return product(of(side.count), of_side.elements.size);
  };
  const std::size_t block = all.blocks > 0 ? bytes_of(all, of_all) : bytes_of(one, of_one);
  Call moved{.collective = collective, .count = block, .type = DataType::u8, .root = root};
  if (!call.is_taken(moved, block)) return call.pass();
  if (!in_place && bytes_of(one, of_one) != block) {
    return call.end(invalid_argument(
        "a block of one buffer has " + std::to_string(bytes_of(one, of_one)) +
        " bytes; allowed are " + std::to_string(block) + ", as in the other buffer"));
  }
  const Bytes every = call.bytes(of_all), mine = call.bytes(of_one);
  const std::size_t place = one.blocks == 1 ? block * of(call.rank) : 0;
  if (one_sends) {
    moved.out = every.to_receive();
    moved.in = in_place ? at(every.to_send(), place) : mine.to_send();
    if (!in_place && collective == Collective::all_to_all)
      moved.in = call.apart_from(moved.out, moved.in, block * of(one.blocks));
  } else {
    moved.in = every.to_send();
    moved.out = in_place ? const_cast<void*>(at(moved.in, place)) : mine.to_receive();
  }
  const std::size_t reported = has_root(collective) ? block : every.size();
  return call.run(std::move(moved), reported,
                  [in_place, one_sends, mine = call.kept(mine), every = call.kept(every)] {
                    if (one_sends) every.received();
                    if (!one_sends && !in_place) mine.received();
                  });
}

}  // namespace

int allreduce(InterceptedCall& call, const void* in, void* out, std::int64_t count,
              MPI_Datatype type, MPI_Op op) {
  return reduction(call, Collective::all_reduce, in, out, count, type, op, 0);
}

int reduce(InterceptedCall& call, const void* in, void* out, std::int64_t count, MPI_Datatype type,
           MPI_Op op, int root) {
  return reduction(call, Collective::reduce, in, out, count, type, op, root);
}

int scan(InterceptedCall& call, const void* in, void* out, std::int64_t count, MPI_Datatype type,
         MPI_Op op) {
  return reduction(call, Collective::scan, in, out, count, type, op, 0);
}

int exscan(InterceptedCall& call, const void* in, void* out, std::int64_t count, MPI_Datatype type,
           MPI_Op op) {
  return reduction(call, Collective::exscan, in, out, count, type, op, 0);
}

int reduce_scatter(InterceptedCall& call, const void* in, void* out, Numbers counts,
                   MPI_Datatype type, MPI_Op op) {
  call.unless(counts.is_null());
  return reduce_blocks(call, in, out, counts, 0, type, op);
}

int reduce_scatter_block(InterceptedCall& call, const void* in, void* out, std::int64_t count,
                         MPI_Datatype type, MPI_Op op) {
  return reduce_blocks(call, in, out, {}, count, type, op);
}

int bcast(InterceptedCall& call, void* buffer, std::int64_t count, MPI_Datatype type, int root) {
  call.root(root).moves(count, type);
  if (!call) return call.pass();
  const Block elements = call.block(buffer, of(count), type);
  const std::size_t bytes = elements.bytes();
  Call broadcast{
      .collective = Collective::broadcast, .count = bytes, .type = DataType::u8, .root = root};
  if (!call.is_taken(broadcast, bytes)) return call.pass();
  const Bytes data = call.bytes(elements);
  const bool sends = call.rank == root;
  broadcast.in = sends ? data.to_send() : data.to_receive();
  broadcast.out = data.to_receive();
  return call.run(std::move(broadcast), bytes, [sends, data = call.kept(data)] {
    if (!sends) data.received();
  });
}

int allgather(InterceptedCall& call, const void* in, std::int64_t in_count, MPI_Datatype in_type,
              void* out, std::int64_t out_count, MPI_Datatype out_type) {
  return move_blocks(call, Collective::all_gather, side(in, in_count, in_type, 1),
                     side(out, out_count, out_type, call.ranks), true, 0);
}

int alltoall(InterceptedCall& call, const void* in, std::int64_t in_count, MPI_Datatype in_type,
             void* out, std::int64_t out_count, MPI_Datatype out_type) {
  return move_blocks(call, Collective::all_to_all, side(in, in_count, in_type, call.ranks),
                     side(out, out_count, out_type, call.ranks), true, 0);
}

int gather(InterceptedCall& call, const void* in, std::int64_t in_count, MPI_Datatype in_type,
           void* out, std::int64_t out_count, MPI_Datatype out_type, int root) {
  call.root(root);
  return move_blocks(call, Collective::gather, side(in, in_count, in_type, 1),
                     side(out, out_count, out_type, call.rank == root ? call.ranks : 0), true,
                     root);
}

int scatter(InterceptedCall& call, const void* in, std::int64_t in_count, MPI_Datatype in_type,
            void* out, std::int64_t out_count, MPI_Datatype out_type, int root) {
  call.root(root);
  return move_blocks(call, Collective::scatter, side(out, out_count, out_type, 1),
                     side(in, in_count, in_type, call.rank == root ? call.ranks : 0), false, root);
}

int allgatherv(InterceptedCall& call, const void* in, std::int64_t in_count, MPI_Datatype in_type,
               void* out, Numbers counts, Numbers places, MPI_Datatype out_type) {
  const bool in_place = in == MPI_IN_PLACE;
  call.unless(counts.is_null() || places.is_null()).moves(0, out_type);
  if (!in_place) call.moves(in_count, in_type);
  for (int r = 0; call && r < call.ranks; ++r) call.unless(counts[r] < 0);
  if (!call) return call.pass();
  const Block any = call.block(out, 0, out_type);
  std::vector<Block> blocks;
  std::vector<std::size_t> sizes;
  std::size_t largest = 0;
  for (int r = 0; r < call.ranks; ++r) {
    Block block = any;
    block.buffer = static_cast<std::byte*>(out) + any.elements.extent * places[r];
    block.count = of(counts[r]);
    sizes.push_back(block.bytes());
    largest = std::max(largest, block.bytes());
    blocks.push_back(block);
  }
  Call all{.collective = Collective::all_gather, .type = DataType::u8, .counts = sizes};
  if (!call.is_taken(all, largest)) return call.pass();
  const std::size_t own = sizes[of(call.rank)];
  const Block sent = in_place ? blocks[of(call.rank)] : call.block(in, of(in_count), in_type);
  if (sent.bytes() != own) {
    return call.end(invalid_argument("this rank sends " + std::to_string(sent.bytes()) +
                                     " bytes and receives " + std::to_string(own) +
                                     " of itself; allowed are equal numbers"));
  }
  const std::size_t total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  // Each rank chooses the places of its blocks. If they are not contiguous, the library receives
  // into its own memory and unpacks the blocks afterwards.
  std::byte* gathered = side_by_side(blocks);
  const bool hands_out = gathered == nullptr;
  if (hands_out) gathered = call.room(total);
  const Bytes mine = call.bytes(sent);
  all.in = mine.to_send();
  all.out = gathered;
  if (!hands_out) blocks.clear();
  std::vector<Bytes> received;
  for (const Block& block : blocks) {
    received.push_back(call.kept(Bytes(block, gathered, call.comm())));
    gathered += block.bytes();
  }
  return call.run(std::move(all), total, [mine = call.kept(mine), received = std::move(received)] {
    for (const Bytes& block : received) block.received();
  });
}

int alltoallv(InterceptedCall& call, const void* in, Numbers in_counts, Numbers in_places,
              MPI_Datatype in_type, void* out, Numbers out_counts, Numbers out_places,
              MPI_Datatype out_type) {
  if (!call) return call.pass();
  const Blocks to = Blocks::in_elements(out, out_counts, out_places, call.type(out_type));
  if (in == MPI_IN_PLACE) return call.post(0, to, to);
  return call.post(0, Blocks::in_elements(in, in_counts, in_places, call.type(in_type)), to);
}

int alltoallw(InterceptedCall& call, const void* in, Numbers in_counts, Numbers in_places,
              const MPI_Datatype* in_types, void* out, Numbers out_counts, Numbers out_places,
              const MPI_Datatype* out_types) {
  if (!call) return call.pass();
  const std::vector<MPI_Datatype> to_types = call.types(out_types);
  const Blocks to = Blocks::in_bytes(out, out_counts, out_places, to_types);
  if (in == MPI_IN_PLACE) return call.post(0, to, to);
  const std::vector<MPI_Datatype> from_types = call.types(in_types);
  return call.post(0, Blocks::in_bytes(in, in_counts, in_places, from_types), to);
}

int gatherv(InterceptedCall& call, const void* in, std::int64_t in_count, MPI_Datatype in_type,
            void* out, Numbers counts, Numbers places, MPI_Datatype out_type, int root) {
  if (!call) return call.pass();
  const bool at_root = call.rank == root, in_place = at_root && in == MPI_IN_PLACE;
  const Blocks to =
      at_root ? Blocks::in_elements(out, counts, places, call.type(out_type)) : Blocks::none();
  if (in_place) return call.post(root, Blocks::none(), to.but_for(root));
  return call.post(root, Blocks::for_one(in, in_count, call.type(in_type), root), to);
}

int scatterv(InterceptedCall& call, const void* in, Numbers counts, Numbers places,
             MPI_Datatype in_type, void* out, std::int64_t out_count, MPI_Datatype out_type,
             int root) {
  if (!call) return call.pass();
  const bool at_root = call.rank == root, in_place = at_root && out == MPI_IN_PLACE;
  const Blocks from =
      at_root ? Blocks::in_elements(in, counts, places, call.type(in_type)) : Blocks::none();
  if (in_place) return call.post(root, from.but_for(root), Blocks::none());
  return call.post(root, from, Blocks::for_one(out, out_count, call.type(out_type), root));
}

int barrier(InterceptedCall& call) {
  // 1: a barrier moves no bytes, but must not count as an empty call.
  if (!call.is_taken({.collective = Collective::barrier}, 1)) return call.pass();
  return call.run({.collective = Collective::barrier}, 0);
}

}  // namespace rankine::mpi
