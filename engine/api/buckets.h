// Buckets fuses many small tensors into few large all-reduces, as data-parallel training does with
// its gradients. A call costs a fixed latency; the tensors of one bucket share it.
//
//   Buckets buckets(me);
//   for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
//     backward(*layer);
//     buckets.add(std::span(layer->gradient)).throw_if_error();  // a full bucket starts at once
//   }
//   buckets.wait().throw_if_error();
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/request.h"
#include "engine/run/process.h"

namespace rankine {

// Buckets reduces tensors in place, packed in the given order into buckets of at most
// `bucket_bytes`. A tensor larger than a bucket is reduced directly. Each rank has one Buckets,
// used by that rank's thread. All ranks give the same shapes in the same order and the same bucket
// size; if they differ, the first call that both make is a mismatch, before any tensor is reduced.
class Buckets {
 public:
  static constexpr std::size_t kDefaultBytes = 25'000'000;  // PyTorch DDP's 25 MB
  struct Tensor {
    void* data = nullptr;
    std::size_t count = 0;  // elements
  };

  explicit Buckets(Member& member, std::size_t bucket_bytes = kDefaultBytes)
      : member_(member), bucket_bytes_(bucket_bytes) {}
  ~Buckets();

  // Replaces every tensor by the reduction of all ranks' tensors. Errors: those of Member::call().
  // invalid_argument (a tensor that is null) comes before any tensor is touched. out_of_memory,
  // also for a bucket, ends the communicator.
  template <class T>
  Status all_reduce(std::span<const std::span<T>> tensors, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {}) {
    Status status = expect(tensors.size());
    if (!status.ok()) return status;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      parts_[i] = {tensors[i].data(), tensors[i].size()};
    }
    return reduce_parts(data_type_of<T>, op, options);
  }
  // Untyped form.
  Status all_reduce(std::span<const Tensor> tensors, DataType type, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});

  // Adds one tensor as it becomes ready. The tensor waits in a bucket until that is full, or until
  // the next one does not fit, or has another type or operation. Then the bucket is started
  // (request.h) and progresses during every further add() and every other call that makes progress.
  // The tensor, and objects that the options point to, belong to Buckets until wait(). At most
  // kMostUnderWay buckets are in flight: a caller that fills one more waits for the oldest. Ranks
  // add the same shapes in the same order and flush at the same places. Errors: those of
  // Member::start(). invalid_argument leaves earlier tensors as they are. Errors that only the call
  // of a whole bucket can find, such as an unknown algorithm, are returned when the bucket is
  // started; its tensors then keep their values.
  template <class T>
  Status add(std::span<T> tensor, ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
    return add({tensor.data(), tensor.size()}, data_type_of<T>, op, options);
  }
  Status add(Tensor tensor, DataType type, ReduceOp op = ReduceOp::sum,
             const CallOptions& options = {});
  // Adds a tensor that this rank did not compute in this step, such as the gradient of a skipped
  // layer: the rank contributes zeros and receives the reduction of the other ranks. For sum and
  // avg.
  template <class T>
  Status add_unused(std::span<T> tensor, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {}) {
    return add_unused({tensor.data(), tensor.size()}, data_type_of<T>, op, options);
  }
  Status add_unused(Tensor tensor, DataType type, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});
  // Starts the bucket even if it is not full.
  Status flush();
  // Flushes, and waits until every added tensor is the reduction of all ranks' tensors. Returns the
  // first error.
  Status wait();
  // Waits for the first `tensors` tensors that were added since the last wait(); the others stay
  // under way, while a consumer begins with these. With buckets of one byte each tensor is a call:
  // the row blocks of a matrix, which is multiplied, summed and used block by block (overlap.py of
  // engine/api/python/examples). Flushes first if one of them waits in a bucket: then all ranks
  // make this call at the same place. Error: fewer tensors were added.
  Status wait_for(std::size_t tensors);
  static constexpr std::size_t kMostUnderWay = 4;

  std::size_t calls() const { return calls_; }  // all-reduces made so far
  // True if tensors were added and wait() has not returned since.
  bool holds_tensors() const { return !open_.parts.empty() || !under_way_.empty(); }

 private:
  // Tensors that one call reduces.
  struct Bucket {
    std::vector<Tensor> parts;
    std::size_t count = 0;  // elements
    std::uint64_t shape = 0;
    DataType type = DataType::f32;
    ReduceOp op = ReduceOp::sum;
    CallOptions options;
    std::vector<std::byte> packed;  // empty for a single tensor
    Request request;
  };

  // Puts the tensor into the bucket, for start_if_full().
  Status put(Tensor tensor, DataType type, ReduceOp op, const CallOptions& options);
  Status start_if_full();
  Status finish_oldest();

  Status expect(std::size_t tensors);  // reserves room for that many in parts_
  Status reduce_parts(DataType type, ReduceOp op, CallOptions options);
  Status reduce_bucket(std::span<const Tensor> parts, std::size_t count, DataType type, ReduceOp op,
                       const CallOptions& options);
  Status no_memory(std::size_t bytes);

  Member& member_;
  const std::size_t bucket_bytes_;
  const HomeProcess home_;
  std::vector<Tensor> parts_;
  std::vector<std::byte> bucket_;
  Bucket open_;
  std::deque<Bucket> under_way_;  // the oldest first
  std::size_t calls_ = 0;
  std::size_t added_ = 0, reduced_ = 0;  // tensors since the last wait()
};

}  // namespace rankine
