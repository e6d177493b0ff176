#include "engine/api/mpi/preload_collectives.h"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/api/call.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/run/kernels/types.h"

namespace rankine::mpi {
namespace {

std::size_t of(int n) { return static_cast<std::size_t>(n); }
const void* at(const void* buffer, std::size_t bytes) {
  return static_cast<const std::byte*>(buffer) + bytes;
}

// A reduction, which is in place where `in` says so.
int reduction(Taking& call, Collective collective, const void* in, void* out, int count,
              MPI_Datatype type, MPI_Op op, int root) {
  call.root(root).reduces(collective, count, type, op);
  if (!call) return call.pass();
  return call.run({.collective = collective,
                   .in = in == MPI_IN_PLACE ? out : in,
                   .out = out,
                   .count = of(count),
                   .type = call.kind,
                   .op = call.operation,
                   .root = root},
                  of(count) * size_of(call.kind));
}

// Blocks of a reduction, of those counts; in place they come out at the beginning of `out`.
int reduce_blocks(Taking& call, const void* in, void* out, const int* counts, int equal,
                  MPI_Datatype type, MPI_Op op) {
  call.unless(counts == nullptr && equal < 0).reduces(Collective::reduce_scatter, 0, type, op);
  std::vector<std::size_t> sizes;
  for (int r = 0; call && r < call.ranks; ++r) {
    const int size = counts == nullptr ? equal : counts[r];
    call.unless(size < 0);
    sizes.push_back(of(size));
  }
  if (!call) return call.pass();
  const std::size_t mine = sizes[of(call.rank)] * size_of(call.kind);
  std::vector<std::byte> block(in == MPI_IN_PLACE ? mine : 0);
  Call blocks{.collective = Collective::reduce_scatter,
              .in = in == MPI_IN_PLACE ? out : in,
              .out = in == MPI_IN_PLACE ? block.data() : out,
              .type = call.kind,
              .op = call.operation,
              .counts = sizes};
  return call.run(std::move(blocks), mine, [out, block = std::move(block)] {
    if (!block.empty()) std::memcpy(out, block.data(), block.size());
  });
}

// One of a program's two buffers, as so many blocks of `count` elements.
struct Side {
  void* buffer;
  int count;
  MPI_Datatype type;
  int blocks;  // 0: of which this rank has none, so what is said of it means nothing
};
Side side(const void* buffer, int count, MPI_Datatype type, int blocks) {
  return {const_cast<void*>(buffer), count, type, blocks};
}

// Blocks of one size. The one side may be in place, in the other, which has a block for each rank.
int move_blocks(Taking& call, Collective collective, const Side& one, const Side& all,
                bool one_sends, int root) {
  const bool in_place = one.buffer == MPI_IN_PLACE;
  if (all.blocks > 0) call.moves(all.count, all.type);
  if (!in_place) call.moves(one.count, one.type);
  if (!call) return call.pass();
  const auto bytes_of = [&call](const Side& side, bool is_there) {
    return call.bytes(side.buffer, is_there ? of(side.count) * of(side.blocks) : 0,
                      is_there ? side.type : MPI_BYTE);
  };
  Bytes every = bytes_of(all, all.blocks > 0), mine = bytes_of(one, !in_place);
  const std::size_t block = all.blocks > 0 ? every.size() / of(all.blocks) : mine.size();
  if (!in_place && mine.size() != block * of(one.blocks)) return call.unless(true).pass();
  const std::size_t place = one.blocks == 1 ? block * of(call.rank) : 0;
  Call moved{.collective = collective, .count = block, .type = DataType::u8, .root = root};
  if (one_sends) {
    moved.in = in_place ? at(every.to_send(), place) : mine.to_send();
    moved.out = every.to_receive();
  } else {
    moved.in = every.to_send();
    moved.out = in_place ? const_cast<void*>(at(moved.in, place)) : mine.to_receive();
  }
  const std::size_t reported = has_root(collective) ? block : every.size();
  return call.run(std::move(moved), reported,
                  [in_place, one_sends, mine = call.kept(std::move(mine)),
                   every = call.kept(std::move(every))]() mutable {
                    if (one_sends) every.received();
                    if (!one_sends && !in_place) mine.received();
                  });
}

}  // namespace

int allreduce(Taking& call, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op) {
  return reduction(call, Collective::all_reduce, in, out, count, type, op, 0);
}

int reduce(Taking& call, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
           int root) {
  return reduction(call, Collective::reduce, in, out, count, type, op, root);
}

int scan(Taking& call, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op) {
  return reduction(call, Collective::scan, in, out, count, type, op, 0);
}

int exscan(Taking& call, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op) {
  return reduction(call, Collective::exscan, in, out, count, type, op, 0);
}

int reduce_scatter(Taking& call, const void* in, void* out, const int* counts, MPI_Datatype type,
                   MPI_Op op) {
  return reduce_blocks(call, in, out, counts, 0, type, op);
}

int reduce_scatter_block(Taking& call, const void* in, void* out, int count, MPI_Datatype type,
                         MPI_Op op) {
  return reduce_blocks(call, in, out, nullptr, count, type, op);
}

int bcast(Taking& call, void* buffer, int count, MPI_Datatype type, int root) {
  call.root(root).moves(count, type);
  if (!call) return call.pass();
  Bytes data = call.bytes(buffer, of(count), type);
  void* const memory = data.to_receive();
  const bool sends = call.rank == root;
  const std::size_t bytes = data.size();
  Call broadcast{.collective = Collective::broadcast,
                 .in = sends ? data.to_send() : memory,
                 .out = memory,
                 .count = bytes,
                 .type = DataType::u8,
                 .root = root};
  return call.run(std::move(broadcast), bytes,
                  [sends, data = call.kept(std::move(data))]() mutable {
                    if (!sends) data.received();
                  });
}

int allgather(Taking& call, const void* in, int in_count, MPI_Datatype in_type, void* out,
              int out_count, MPI_Datatype out_type) {
  return move_blocks(call, Collective::all_gather, side(in, in_count, in_type, 1),
                     side(out, out_count, out_type, call.ranks), true, 0);
}

int alltoall(Taking& call, const void* in, int in_count, MPI_Datatype in_type, void* out,
             int out_count, MPI_Datatype out_type) {
  return move_blocks(call, Collective::all_to_all, side(in, in_count, in_type, call.ranks),
                     side(out, out_count, out_type, call.ranks), true, 0);
}

int gather(Taking& call, const void* in, int in_count, MPI_Datatype in_type, void* out,
           int out_count, MPI_Datatype out_type, int root) {
  call.root(root);
  return move_blocks(call, Collective::gather, side(in, in_count, in_type, 1),
                     side(out, out_count, out_type, call.rank == root ? call.ranks : 0), true,
                     root);
}

int scatter(Taking& call, const void* in, int in_count, MPI_Datatype in_type, void* out,
            int out_count, MPI_Datatype out_type, int root) {
  call.root(root);
  return move_blocks(call, Collective::scatter, side(out, out_count, out_type, 1),
                     side(in, in_count, in_type, call.rank == root ? call.ranks : 0), false, root);
}

int allgatherv(Taking& call, const void* in, int in_count, MPI_Datatype in_type, void* out,
               const int* counts, const int* places, MPI_Datatype out_type) {
  const bool in_place = in == MPI_IN_PLACE;
  call.moves(0, out_type);
  if (!in_place) call.moves(in_count, in_type);
  for (int r = 0; call && r < call.ranks; ++r) call.unless(counts[r] < 0);
  if (!call) return call.pass();
  // Where blocks lie is each rank's own affair: what is gathered is handed out afterwards.
  const MPI_Aint extent = elements_of(call.type(out_type)).extent;
  std::vector<Bytes> blocks;
  std::vector<std::size_t> sizes;
  std::size_t total = 0;
  for (int r = 0; r < call.ranks; ++r) {
    blocks.push_back(
        call.bytes(static_cast<std::byte*>(out) + extent * places[r], of(counts[r]), out_type));
    sizes.push_back(blocks.back().size());
    total += sizes.back();
  }
  std::vector<std::byte> gathered(total);
  Bytes mine = call.bytes(in, in_place ? 0 : of(in_count), in_place ? MPI_BYTE : in_type);
  if (!in_place && mine.size() != sizes[of(call.rank)]) return call.unless(true).pass();
  Call all{.collective = Collective::all_gather,
           .in = in_place ? blocks[of(call.rank)].to_send() : mine.to_send(),
           .out = gathered.data(),
           .type = DataType::u8,
           .counts = sizes};
  for (Bytes& block : blocks) block = call.kept(std::move(block));
  return call.run(std::move(all), total,
                  [mine = call.kept(std::move(mine)), blocks = std::move(blocks),
                   gathered = std::move(gathered)]() mutable {
                    std::size_t next = 0;
                    for (Bytes& block : blocks) {
                      std::memcpy(block.to_receive(), gathered.data() + next, block.size());
                      block.received();
                      next += block.size();
                    }
                  });
}

int alltoallv(Taking& call, const void* in, const int* in_counts, const int* in_places,
              MPI_Datatype in_type, void* out, const int* out_counts, const int* out_places,
              MPI_Datatype out_type) {
  if (!call) return call.pass();
  const Blocks to = Blocks::in_elements(out, out_counts, out_places, call.type(out_type));
  if (in == MPI_IN_PLACE) return call.post(0, to, to);
  return call.post(0, Blocks::in_elements(in, in_counts, in_places, call.type(in_type)), to);
}

int alltoallw(Taking& call, const void* in, const int* in_counts, const int* in_places,
              const MPI_Datatype* in_types, void* out, const int* out_counts, const int* out_places,
              const MPI_Datatype* out_types) {
  if (!call) return call.pass();
  const std::vector<MPI_Datatype> to_types = call.types(out_types);
  const Blocks to = Blocks::in_bytes(out, out_counts, out_places, to_types);
  if (in == MPI_IN_PLACE) return call.post(0, to, to);
  const std::vector<MPI_Datatype> from_types = call.types(in_types);
  return call.post(0, Blocks::in_bytes(in, in_counts, in_places, from_types), to);
}

int gatherv(Taking& call, const void* in, int in_count, MPI_Datatype in_type, void* out,
            const int* counts, const int* places, MPI_Datatype out_type, int root) {
  if (!call) return call.pass();
  const bool at_root = call.rank == root, in_place = at_root && in == MPI_IN_PLACE;
  const Blocks to =
      at_root ? Blocks::in_elements(out, counts, places, call.type(out_type)) : Blocks::none();
  if (in_place) return call.post(root, Blocks::none(), to.but_for(root));
  return call.post(root, Blocks::for_one(in, in_count, call.type(in_type), root), to);
}

int scatterv(Taking& call, const void* in, const int* counts, const int* places,
             MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type, int root) {
  if (!call) return call.pass();
  const bool at_root = call.rank == root, in_place = at_root && out == MPI_IN_PLACE;
  const Blocks from =
      at_root ? Blocks::in_elements(in, counts, places, call.type(in_type)) : Blocks::none();
  if (in_place) return call.post(root, from.but_for(root), Blocks::none());
  return call.post(root, from, Blocks::for_one(out, out_count, call.type(out_type), root));
}

int barrier(Taking& call) {
  if (!call) return call.pass();
  return call.run({.collective = Collective::barrier}, 0);
}

}  // namespace rankine::mpi
