// What the engine is told of tensors, and which tensors it takes: dense ones on the CPU without
// gaps, since it moves and reduces plain memory. What it does not take is thrown as c10::Error (in
// Python RuntimeError), with the argument, what it is and what is allowed.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/member.h"
#include "engine/run/kernels/types.h"

namespace rankine::torch_backend {

// A tensor's elements as they are moved. A type that the engine does not know, such as int16, goes
// as bytes.
struct Elements {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::u8;
};

// `argument` is what the caller has called it: "tensors[0]".
Elements elements_of(const at::Tensor& tensor, std::string_view argument);

// The same of what is reduced: of a type that the engine adds up.
Elements summands_of(const at::Tensor& tensor, std::string_view argument);
// SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR; no PREMUL_SUM.
ReduceOp operation_of(const c10d::ReduceOp& op);

// The one tensor of a list, or list of lists: groups of processes have one per rank.
const at::Tensor& only(const std::vector<at::Tensor>& tensors, std::string_view argument);
const std::vector<at::Tensor>& only(const std::vector<std::vector<at::Tensor>>& lists,
                                    std::string_view argument);
// No tensors but at the root.
void none_away_from_root(bool is_empty, std::string_view argument);

// Tensors of one type, one for each rank, as one vector: where they lie, if they do one after the
// other, else a copy of it.
class Row {
 public:
  // Of that many tensors, of the type of `like`. Throws what is not so.
  Row(std::vector<at::Tensor> parts, std::size_t ranks, const at::Tensor& like,
      std::string_view argument);

  void* data() const { return whole_.data; }
  // Elements of each, and whether all have as many.
  const std::vector<std::size_t>& counts() const { return counts_; }
  bool is_even() const { return is_even_; }

  // Where it is a copy: what the tensors hold, or back to them.
  void bring_together() const;
  void hand_out() const;

 private:
  std::vector<at::Tensor> parts_;
  std::vector<std::size_t> counts_;
  bool is_even_ = true;
  Elements whole_;
  at::Tensor copy_;  // of them all; none where they lie one after the other
};

// An all-to-all in which each rank knows only what it sends and receives itself, as PyTorch's do;
// the engine's ranks know all counts before they begin.

// Elements that this rank sends to each one, and receives from each one, block after block.
struct OwnCounts {
  std::vector<std::size_t> sent, received;
};

// `call` has no counts. Ranks first tell each other theirs. Throws an Error; what two ranks
// disagree on is invalid_argument on all of them, names both, and the communicator goes on.
void all_to_all(Member& me, Call call, const OwnCounts& own);

}  // namespace rankine::torch_backend
