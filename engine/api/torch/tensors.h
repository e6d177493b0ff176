// The functions here check PyTorch tensors and describe them to the engine. They accept dense,
// contiguous tensors on the CPU, because the engine moves and reduces plain memory. For any other
// tensor they throw c10::Error (RuntimeError in Python) with the argument, its value and the
// allowed values. all_to_all() exchanges blocks when each rank knows only its own counts.
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

// A tensor's elements as the engine moves them. If the engine has no such type (int16, for
// example), the elements are described as bytes.
struct Elements {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::u8;
};

// `argument` is the caller's name for the tensor: "tensors[0]".
Elements elements_of(const at::Tensor& tensor, std::string_view argument);

// As elements_of(), for a tensor to reduce. Throws for a type that the engine does not reduce.
Elements summands_of(const at::Tensor& tensor, std::string_view argument);
// Allowed: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR. Throws for PREMUL_SUM.
ReduceOp operation_of(const c10d::ReduceOp& op);

// Returns the single element of a list, or of a list of lists: this backend plays one rank per
// process. Throws if the list has another length.
const at::Tensor& only(const std::vector<at::Tensor>& tensors, std::string_view argument);
const std::vector<at::Tensor>& only(const std::vector<std::vector<at::Tensor>>& lists,
                                    std::string_view argument);
// Throws if a rank other than the root passes tensors.
void none_away_from_root(bool is_empty, std::string_view argument);

// Tensors of one type, one per rank, as one vector. If they lie one after another in memory, the
// vector is that memory; otherwise it is a copy.
class Row {
 public:
  // Throws unless `parts` has `ranks` tensors, each of the type of `like`.
  Row(std::vector<at::Tensor> parts, std::size_t ranks, const at::Tensor& like,
      std::string_view argument);

  void* data() const { return whole_.data; }
  // The number of elements of each tensor, and whether all these numbers are equal.
  const std::vector<std::size_t>& counts() const { return counts_; }
  bool is_even() const { return is_even_; }

  // Copy the tensors into the vector, and the vector into the tensors. No effect without a copy.
  void pack_rows() const;
  void unpack_rows() const;

 private:
  std::vector<at::Tensor> parts_;
  std::vector<std::size_t> counts_;
  bool is_even_ = true;
  Elements whole_;
  at::Tensor copy_;  // of all tensors; undefined if they lie one after another
};

// In PyTorch's all-to-all each rank knows only the counts that it sends and receives; the engine's
// all-to-all needs all counts on all ranks before it begins.

// The number of elements that this rank sends to each rank, and receives from each rank. Blocks lie
// one after another in memory.
struct OwnCounts {
  std::vector<std::size_t> sent, received;
};

// Gathers all ranks' counts, then runs `call`; its own counts are ignored. Throws an Error. If
// two ranks disagree on a count, all ranks throw invalid_argument, which names both ranks, and the
// communicator stays usable.
void all_to_all(Member& me, Call call, const OwnCounts& own);

}  // namespace rankine::torch_backend
