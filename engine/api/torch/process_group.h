// ProcessGroup is a process group of torch.distributed: its ranks are processes of one machine.
// meet() connects the ranks through PyTorch's store, which all of them reach.
//
// Each rank writes its machine to the store. Rank 0 reads all of them, and answers with an unused
// communicator name, or with the reason why no communicator is possible. So ranks on two machines,
// which would wait for each other in two different /dev/shm folders, get an error at once on all
// ranks.
#pragma once

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>

#include "engine/api/communicator.h"

namespace rankine::torch_backend {

// Returns the group's communicator. No other group uses the store. `timeout` applies to the meeting
// and to the communicator's calls. Errors: those of Communicator::create; mismatch if the ranks are
// on several machines. Throws any exception of the store.
Result<std::unique_ptr<Communicator>> meet(c10d::Store& store, Rank rank, int ranks,
                                           std::chrono::milliseconds timeout);

}  // namespace rankine::torch_backend

// A process group of torch.distributed: its ranks are processes of one machine:
//
//   import rankine.torch
//   torch.distributed.init_process_group("rankine")
//
// The ranks meet through the group's store (meet()). The engine executes the calls, on a waiting
// thread or on the group's own thread (call_queue.h). Tensors are dense, contiguous and on the CPU;
// a list of tensors per rank has one element. An invalid argument throws when the call is submitted
// (RuntimeError in Python). Later errors come through the call's Work and its Future: the death of
// a rank's process, or a missed deadline (the text names the waiting and the missing rank). After
// such an error all calls fail with the same error; the program can create a new group.
//
// A call's timeout is the timeout of its options if set, otherwise the group's. Results have the
// same bits on all ranks. Between two ranks, messages are received in the order in which they were
// sent: tags must agree in that order, and do not select a message.
//
// PyTorch 1.13 and 2.x are supported: in 1.13 a backend is a ProcessGroup, in 2.x it is a Backend
// with the same functions.

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/torch/call_queue.h"
#include "engine/api/torch/tensors.h"

namespace rankine::torch_backend {

#if TORCH_VERSION_MAJOR >= 2
using GroupBase = c10d::Backend;
#else
using GroupBase = c10d::ProcessGroup;
#endif

class ProcessGroup final : public GroupBase {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using Work = c10::intrusive_ptr<c10d::Work>;

  // Waits until all ranks have arrived, at most for the timeout. Throws the error of meet().
  ProcessGroup(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout);
  // Waits until all submitted calls are over.
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "rankine"; }

  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(Tensors& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override;
  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  // The tensors of a list may differ in size between ranks; all ranks must pass the same sizes.
  Work allgather(TensorLists& outputs, Tensors& inputs,
                 const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override;
  // outputs[r][i] = inputs[i] of rank r.
  Work allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions& options) override;
  Work reduce_scatter(Tensors& outputs, TensorLists& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
#if TORCH_VERSION_MAJOR >= 2
  Work allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options) override;
  Work reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::ReduceScatterOptions& options) override;
#endif
  Work gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  Work scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  // Sizes count rows of dimension 0. An empty list means equal sizes.
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_sizes,
                     std::vector<std::int64_t>& input_sizes,
                     const c10d::AllToAllOptions& options) override;
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;

  Work send(Tensors& tensors, int to, int tag) override;
  Work recv(Tensors& tensors, int from, int tag) override;

  Work barrier(const c10d::BarrierOptions& options) override;
  // Waits for the barrier. If the timeout passes, the error names a missing rank.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // The number of collectives that this rank has submitted. It is equal on all ranks if they make
  // the same calls.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return submitted_.load(); }

 private:
  Work submit(const GroupCall::Kind& kind, Tensors results, GroupCall::Run run);
  // Submits one engine call.
  Work submit(const GroupCall::Kind& kind, Tensors results, const Call& call);
  Work submit(const GroupCall::Kind& kind, at::Tensor& tensor, int peer, int tag, bool sends);
  Work gather_all(const GroupCall::Kind& kind, Tensors outputs, Tensors inputs,
                  std::chrono::milliseconds timeout);
  Work scatter_sums(const GroupCall::Kind& kind, Tensors outputs, Tensors inputs,
                    const c10d::ReduceScatterOptions& options);
  Work sum_all(const GroupCall::Kind& kind, Tensors tensors, const c10d::AllreduceOptions& options);
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }

  std::shared_ptr<CallQueue> queue_;
  std::atomic<std::uint64_t> submitted_{0};
};

}  // namespace rankine::torch_backend
