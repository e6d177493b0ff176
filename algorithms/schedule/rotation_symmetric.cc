#include "algorithms/schedule/rotation_symmetric.h"

#include <stdexcept>
#include <string>

namespace rankine {
namespace {

int product(const std::vector<int>& sizes) {
  int out = 1;
  for (const int size : sizes) out *= size;
  return out;
}

}  // namespace

Rotation::Rotation(std::vector<int> dims, int blocks, Moves moves)
    : dims_(std::move(dims)), ranks_(product(dims_)), blocks_(blocks), moves_(moves) {
  const int owners = moves == Moves::nothing     ? 1
                     : moves == Moves::with_rank ? ranks_
                                                 : ranks_ * ranks_;
  if (dims_.empty() || blocks % owners != 0) {
    throw std::logic_error("a turn of " + std::to_string(ranks_) + " ranks cannot move " +
                           std::to_string(blocks) + " blocks");
  }
  share_ = blocks / owners;
}

Rank Rotation::rotated_on_torus(Rank r, Rank by) const {
  Rank out = 0;
  for (int stride = 1, d = static_cast<int>(dims_.size()); d-- > 0;) {
    const int size = dims_[static_cast<std::size_t>(d)];
    out += (r / stride + by / stride) % size * stride;
    stride *= size;
  }
  return out;
}

Rank Rotation::back(Rank by) const {
  Rank out = 0;
  for (int stride = 1, d = static_cast<int>(dims_.size()); d-- > 0;) {
    const int size = dims_[static_cast<std::size_t>(d)];
    out += (size - by / stride % size) % size * stride;
    stride *= size;
  }
  return out;
}

Block Rotation::block_rotated(Block b, Rank by) const {
  const int owner = b / share_, within = b % share_;
  if (moves_ == Moves::with_rank) return rotated(owner, by) * share_ + within;
  const Rank source = rotated(owner / ranks_, by), destination = rotated(owner % ranks_, by);
  return (source * ranks_ + destination) * share_ + within;
}

IndexList Rotation::rotated(const IndexList& blocks, Rank by) const {
  if (by == 0 || moves_ == Moves::nothing) return blocks;
  if (blocks.size() == 1) return IndexList(block_rotated(blocks.front(), by));
  IndexList out;
  if (moves_ == Moves::with_rank && dims_.size() == 1) {
    for (int i = 0; i < blocks.runs(); ++i) {
      const Run& run = blocks.run(i);
      out.append(Run{run.first + by * share_, run.count, run.stride});
    }
    return out.modulo(blocks_);
  }
  blocks.for_each([&](Block b) { out.append(Run{block_rotated(b, by), 1, 1}); });
  return out;
}

Transfer Rotation::rotated(const Transfer& t, Rank by) const {
  return {rotated(t.from.front(), by),
          rotated(t.to.front(), by),
          {rotated(t.what.list, by), t.what.plane},
          {rotated(t.where.list, by), t.where.plane},
          t.kind};
}

std::size_t Rotation::dimension_between(Rank from, Rank to) const {
  for (int stride = ranks_, d = 0; d < static_cast<int>(dims_.size()); ++d) {
    const int size = dims_[static_cast<std::size_t>(d)];
    stride /= size;
    if (from / stride % size != to / stride % size) return static_cast<std::size_t>(d);
  }
  return 0;
}

void RotationSymmetric::operator()(int k, Send send) const {
  for_each_transfer(*part_, k, [&](const Transfer& t) {
    if (t.from.size() != 1 || t.to.size() != 1) {
      throw std::logic_error("rotation_symmetric: a transfer of a switch is not one rank's part");
    }
    rotation_.for_each_rank(rotation_.dimension_between(t.from.front(), t.to.front()),
                            [&](Rank r) { send.exactly(rotation_.rotated(t, r)); });
  });
}

Schedule rotation_symmetric(Schedule part, Rotation rotation) {
  Schedule out = part;
  out.round = RotationSymmetric(std::move(part), std::move(rotation));
  return out;
}

Schedule rotation_symmetric(Schedule part, Moves moves) {
  Rotation rotation({part.ranks}, part.blocks, moves);
  return rotation_symmetric(std::move(part), std::move(rotation));
}

const RotationSymmetric* symmetry_of(const Schedule& schedule) {
  const RotationSymmetric* found = schedule.round.target<RotationSymmetric>();
  if (found == nullptr) return nullptr;
  const Schedule& part = found->part();
  const bool same = part.ranks == schedule.ranks && part.blocks == schedule.blocks &&
                    part.rounds == schedule.rounds && part.planes == schedule.planes;
  return same ? found : nullptr;
}

const RotationSymmetric* symmetry_for(const Schedule& schedule, const CollectiveSpec& goal) {
  const RotationSymmetric* found = symmetry_of(schedule);
  if (found == nullptr || goal.ranks != schedule.ranks || goal.blocks != schedule.blocks) {
    return nullptr;
  }
  const Moves moves = found->rotation().moves();
  switch (goal.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
      return found;  // every rank has all blocks, and needs all
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return moves == Moves::with_rank ? found : nullptr;
    case Collective::all_to_all:
      return moves == Moves::with_pair ? found : nullptr;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::send_recv:
    case Collective::scan:
    case Collective::exscan:
      return nullptr;
  }
  return nullptr;
}

}  // namespace rankine
