// Bucket fusion: many small tensors as few large all-reduces, as data-parallel training does with
// its gradients. A call costs a fixed latency; tensors that share one share it.
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

// Reduces tensors in place, packed into buckets of at most `bucket_bytes` in the order given. A
// tensor that is larger than a bucket is reduced where it is. One per rank; used by that rank's
// thread. All ranks give the same shapes in the same order, and buckets of the same size: where
// they do not, the first call that both make is a mismatch, before any tensor has been reduced.
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

  // Every tensor becomes the reduction of all ranks' tensors. Errors: those of Member::call(), of
  // which invalid_argument (a tensor that is null) comes before any tensor has been touched, and
  // out_of_memory, for a bucket too, ends the communicator.
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
  // The same untyped.
  Status all_reduce(std::span<const Tensor> tensors, DataType type, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});

  // The same with tensors one by one, as they become ready: each waits in a bucket until the next
  // one does not fit, is of another type or has another operation; then the bucket is started
  // (request.h) and goes on beside what this thread does, at every further add() and wherever else
  // it makes progress. The tensor, and what the options refer to, are Buckets' until wait(). At
  // most kMostUnderWay buckets are under way: whoever fills one more waits for the oldest. Ranks
  // add the same shapes in the same order, and flush at the same places. Errors: those of
  // Member::start(); invalid_argument leaves what was added as it is. What only a whole bucket's
  // call can tell, such as an algorithm that there is not, is said where the bucket is started: its
  // tensors then stay as they are.
  template <class T>
  Status add(std::span<T> tensor, ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
    return add({tensor.data(), tensor.size()}, data_type_of<T>, op, options);
  }
  Status add(Tensor tensor, DataType type, ReduceOp op = ReduceOp::sum,
             const CallOptions& options = {});
  // A tensor that this rank has nothing for in this step, such as the gradient of a layer that was
  // skipped: it brings zeros, and gets what the others bring. For sum and avg.
  template <class T>
  Status add_unused(std::span<T> tensor, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {}) {
    return add_unused({tensor.data(), tensor.size()}, data_type_of<T>, op, options);
  }
  Status add_unused(Tensor tensor, DataType type, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});
  // Starts the bucket that is not full.
  Status flush();
  // Flushes, and waits until every tensor added is the reduction of all ranks'. The first error.
  Status wait();
  static constexpr std::size_t kMostUnderWay = 4;

  std::size_t calls() const { return calls_; }  // all-reduces made so far
  // Whether tensors have been added and not been waited for.
  bool holds_tensors() const { return !open_.parts.empty() || !under_way_.empty(); }

 private:
  // Tensors that go together.
  struct Bucket {
    std::vector<Tensor> parts;
    std::size_t count = 0;  // elements
    std::uint64_t shape = 0;
    DataType type = DataType::f32;
    ReduceOp op = ReduceOp::sum;
    CallOptions options;
    std::vector<std::byte> packed;  // not of one tensor alone
    Request request;
  };

  Status finish_oldest();

  Status expect(std::size_t tensors);  // there is room for so many in parts_ then
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
};

}  // namespace rankine
