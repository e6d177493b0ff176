// What one rank plays of a training step: of each axis one part, or, where the step is played by
// one thread alone, all parts one after the other. Sums over parts are added up part by part in
// both, so the bits are the same.
#pragma once

#include <span>

#include "engine/api/member.h"
#include "engine/tools/train/matrix.h"

namespace rankine::tools {

// The parts [first, first + count) of `of`. `group` are the ranks that play all of them between
// them, in the order of parts; nullptr: this one plays them all.
struct Share {
  int of = 1, first = 0, count = 1;
  Member* group = nullptr;

  bool is_alone() const { return group == nullptr || group->ranks() == 1; }
};

// Of a model that is laid over ranks as plan/mapping.h has it, without sp.
struct Places {
  Share tensor;       // tp: columns and rows of matrices, and heads
  Share stages;       // pp: layers
  Share data;         // dp x ep: the batch
  Share experts;      // ep: experts of a layer; their tokens come from these ranks
  Share expert_data;  // dp x ep: shards of the batch whose tokens come to the experts played here;
                      // the group are the ranks with the same experts
  Member* everybody = nullptr;
};

// The sum of all parts' vectors, of equal lengths, in the order of parts, on all ranks of the group
// and in each rank's first. Throws the call's error.
void add_up(const Share& share, std::span<const std::span<float>> parts);
// Of matrices that are kept in this type: where that is bf16, parts are rounded, added up in f32,
// and the sum is rounded once.
Matrix add_up(const Share& share, DataType type, std::vector<Matrix> parts);

}  // namespace rankine::tools
