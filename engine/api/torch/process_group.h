// The ranks of a process group find each other through PyTorch's store, which all of them reach.
//
// Each says on which machine it is. Rank 0 hears all, and answers with the name of a communicator
// that no other has, or with why there can be none; so ranks on two machines, which would wait for
// each other in two folders /dev/shm, are told at once, all of them.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>

#include <chrono>
#include <memory>

#include "engine/api/communicator.h"

namespace rankine::torch_backend {

// The communicator of that group, whose store it is alone; its calls have that timeout, and so has
// the meeting. Errors: those of Communicator::create, ranks on several machines (mismatch), and
// whatever the store throws.
Result<std::unique_ptr<Communicator>> meet(c10d::Store& store, Rank rank, int ranks,
                                           std::chrono::milliseconds timeout);

}  // namespace rankine::torch_backend

// A process group of torch.distributed whose ranks are processes of one machine:
//
//   import rankine.torch
//   torch.distributed.init_process_group("rankine")
//
// The ranks meet through the group's store (meet.h), and calls are the engine's, made by whoever
// waits for them or by a thread of the group's (call_queue.h). Tensors are dense, on the CPU and
// contiguous; of a list of tensors per rank there is one. Other arguments that are wrong throw
// where the call is submitted, as RuntimeError in Python; what a call fails with later is told by
// its Work and its Future: a rank that is lost with its process, a deadline that has passed, and
// who waits for whom. After that all calls fail with the same, and a new group can be made.
//
// A call's timeout is that of its options, else the group's. Results are the same bits on all
// ranks. Between two ranks messages are received in the order in which they are sent: tags must
// agree in that order, and choose no message.
//
// Written for PyTorch 1.13, where a backend is a ProcessGroup, and for 2.x, where it is a Backend
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

  // Waits until all ranks have come, no longer than the timeout. Throws what meet() fails with.
  ProcessGroup(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout);
  // Until all calls that were submitted are over.
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "rankine"; }

  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(Tensors& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override;
  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  // Tensors of a list may differ in size from rank to rank, alike on all ranks.
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
  // Sizes are rows of dimension 0; none: equal ones.
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_sizes,
                     std::vector<std::int64_t>& input_sizes,
                     const c10d::AllToAllOptions& options) override;
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;

  Work send(Tensors& tensors, int to, int tag) override;
  Work recv(Tensors& tensors, int from, int tag) override;

  Work barrier(const c10d::BarrierOptions& options) override;
  // Waits for it, and says who is waited for where the timeout passes.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // How many collectives this rank has submitted, the same on all ranks where they agree.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return submitted_.load(); }

 private:
  Work submit(const GroupCall::Kind& kind, Tensors results, GroupCall::Run run);
  // One call of the engine's.
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
