// Bucket fusion: many small tensors as few large all-reduces, as data-parallel training does with
// its gradients. A call costs a fixed latency; tensors that share one share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/run/process_owned.h"

namespace rankine {

// Reduces tensors in place, packed into buckets of at most `bucket_bytes` in the order given. A
// tensor that is larger than a bucket is reduced where it is. One per rank; used by that rank's
// thread. All ranks give the same shapes in the same order, and buckets of the same size: where
// they do not, the first call that both make is a mismatch, before any tensor has been reduced.
class Buckets {
 public:
  static constexpr std::size_t kDefaultBytes = 25'000'000;  // PyTorch DDP's 25 MB

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

  std::size_t calls() const { return calls_; }  // all-reduces made so far

 private:
  struct Part {
    void* data;
    std::size_t count;
  };

  Status expect(std::size_t tensors);  // there is room for so many in parts_ then
  Status reduce_parts(DataType type, ReduceOp op, CallOptions options);
  Status reduce_bucket(std::span<const Part> parts, std::size_t count, DataType type, ReduceOp op,
                       const CallOptions& options);
  Status no_memory(std::size_t bytes);

  Member& member_;
  const std::size_t bucket_bytes_;
  const HomeProcess home_;
  std::vector<Part> parts_;
  std::vector<std::byte> bucket_;
  std::size_t calls_ = 0;
};

}  // namespace rankine
