#include "engine/api/buckets.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/base/numbers.h"

namespace rankine {
namespace {

// False if there is not enough memory: bad_alloc and length_error mean the same here.
template <class T>
bool resized(std::vector<T>& vector, std::size_t size) noexcept {
  try {
    vector.resize(size);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// pack() copies the tensors one after the other; unpack() copies them back.
void pack(std::span<const Buckets::Tensor> parts, std::size_t width, std::byte* at) {
  for (const Buckets::Tensor& part : parts) {
    if (part.count > 0) std::memcpy(at, part.data, part.count * width);
    at += part.count * width;
  }
}
void unpack(std::span<const Buckets::Tensor> parts, std::size_t width, const std::byte* at) {
  for (const Buckets::Tensor& part : parts) {
    if (part.count > 0) std::memcpy(part.data, at, part.count * width);
    at += part.count * width;
  }
}

Status epilogue_given() {
  return invalid_argument(
      "epilogue is given; allowed in buckets is none, because a bucket holds rows of many tensors");
}

}  // namespace

Buckets::~Buckets() {
  if (home_.is_this()) return;
  // In a forked child: the rank's thread may have been changing these members, so they are leaked.
  static_cast<void>(new (std::nothrow) auto(std::move(parts_)));
  static_cast<void>(new (std::nothrow) auto(std::move(bucket_)));
  static_cast<void>(new (std::nothrow) auto(std::move(open_)));
  static_cast<void>(new (std::nothrow) auto(std::move(under_way_)));
}

Status Buckets::add_unused(Tensor tensor, DataType type, ReduceOp op, const CallOptions& options) {
  if (op != ReduceOp::sum && op != ReduceOp::avg) {
    return invalid_argument("op is " + std::string(name_of(op)) +
                            "; allowed for unused tensors are sum and avg");
  }
  Status status = put(tensor, type, op, options);
  if (!status.ok()) return status;
  if (tensor.count > 0) std::memset(tensor.data, 0, tensor.count * size_of(type));
  return start_if_full();
}

Status Buckets::add(Tensor tensor, DataType type, ReduceOp op, const CallOptions& options) {
  Status status = put(tensor, type, op, options);
  return status.ok() ? start_if_full() : status;
}

Status Buckets::start_if_full() {
  return open_.count < bucket_bytes_ / size_of(open_.type) ? Status() : flush();
}

Status Buckets::put(Tensor part, DataType type, ReduceOp op, const CallOptions& options) try {
  if (options.epilogue != nullptr) return epilogue_given();
  if (part.data == nullptr && part.count > 0) {
    return make_error(Code::invalid_argument, [&] {
      return "tensor is null; " + std::to_string(part.count) + " elements are needed";
    });
  }
  // Check now; otherwise the caller that adds the next tensor would get the error.
  Status wrong = check_call({.count = part.count, .type = type, .op = op, .options = options},
                            member_.ranks());
  if (!wrong.ok()) return wrong;
  const std::size_t room = bucket_bytes_ / size_of(type);  // elements
  const bool fits = open_.count <= room && part.count <= room - open_.count;
  if (!open_.parts.empty() && (!fits || type != open_.type || op != open_.op)) {
    if (Status status = flush(); !status.ok()) return status;
  } else if (Status status = member_.progress(); !status.ok()) {
    return status;
  }
  open_.parts.push_back(part);
  open_.count += part.count;
  open_.shape = mixed(mixed(open_.shape, room), part.count);
  open_.type = type;
  open_.op = op;
  open_.options = options;
  ++added_;
  return {};
} catch (const std::exception&) {
  return no_memory(sizeof(Tensor));
}

Status Buckets::flush() try {
  if (open_.parts.empty()) return {};
  Bucket bucket = std::exchange(open_, {});
  const std::size_t width = size_of(bucket.type);
  void* data = bucket.parts.front().data;
  if (bucket.parts.size() > 1) {
    if (!resized(bucket.packed, bucket.count * width)) return no_memory(bucket.count * width);
    pack(bucket.parts, width, bucket.packed.data());
    data = bucket.packed.data();
  }
  // Ranks with tensors of other shapes must not meet in a bucket that happens to have this size.
  bucket.options.tag = mixed(bucket.options.tag, bucket.shape);
  ++calls_;
  auto request = member_.start({.collective = Collective::all_reduce,
                                .in = data,
                                .out = data,
                                .count = bucket.count,
                                .type = bucket.type,
                                .op = bucket.op,
                                .options = bucket.options});
  if (!request.ok()) return request.status();
  bucket.request = std::move(*request);
  under_way_.push_back(std::move(bucket));
  return under_way_.size() > kMostUnderWay ? finish_oldest() : Status();
} catch (const std::exception&) {
  return no_memory(sizeof(Bucket));
}

Status Buckets::finish_oldest() {
  Bucket bucket = std::move(under_way_.front());
  under_way_.pop_front();
  reduced_ += bucket.parts.size();
  Status status = bucket.request.wait();
  if (status.ok() && bucket.parts.size() > 1) {
    unpack(bucket.parts, size_of(bucket.type), bucket.packed.data());
  }
  return status;
}

Status Buckets::wait() {
  Status first = flush();
  while (!under_way_.empty()) {
    Status status = finish_oldest();
    if (first.ok()) first = std::move(status);
  }
  added_ = reduced_ = 0;
  return first;
}

Status Buckets::wait_for(std::size_t tensors) {
  if (tensors > added_) {
    return invalid_argument("tensors is " + std::to_string(tensors) + "; allowed are up to " +
                            std::to_string(added_) + ", which were added since the last wait()");
  }
  Status first;
  if (tensors > added_ - open_.parts.size()) first = flush();
  while (first.ok() && reduced_ < tensors && !under_way_.empty()) first = finish_oldest();
  return first;
}

Status Buckets::no_memory(std::size_t bytes) {
  return member_.give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for buckets of rank " + std::to_string(member_.rank()) + ": " +
           std::to_string(bytes) + " bytes";
  }));
}

Status Buckets::expect(std::size_t tensors) {
  return resized(parts_, tensors) ? Status() : no_memory(tensors * sizeof(Tensor));
}

Status Buckets::all_reduce(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                           const CallOptions& options) {
  if (Status status = expect(tensors.size()); !status.ok()) return status;
  std::copy(tensors.begin(), tensors.end(), parts_.begin());
  return reduce_parts(type, op, options);
}

Status Buckets::reduce_parts(DataType type, ReduceOp op, CallOptions options) {
  if (options.epilogue != nullptr) return epilogue_given();
  const std::size_t room = bucket_bytes_ / size_of(type);  // elements
  // Ranks with tensors of other shapes must not meet in a bucket that happens to have this size.
  const auto agree = [&](std::uint64_t n) { options.tag = mixed(options.tag, n); };
  agree(room);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].data == nullptr && parts_[i].count > 0) {
      return make_error(Code::invalid_argument, [&] {
        return "tensors[" + std::to_string(i) + "] is null; " + std::to_string(parts_[i].count) +
               " elements are needed";
      });
    }
    agree(parts_[i].count);
  }
  std::size_t first = 0, filled = 0;
  for (std::size_t i = 0; i <= parts_.size(); ++i) {
    const bool full =
        i == parts_.size() || parts_[i].count > room || filled > room - parts_[i].count;
    if (full && i > first) {
      Status status =
          reduce_bucket(std::span(parts_).subspan(first, i - first), filled, type, op, options);
      if (!status.ok()) return status;
      first = i;
      filled = 0;
    }
    if (i < parts_.size()) filled += parts_[i].count;
  }
  return {};
}

Status Buckets::reduce_bucket(std::span<const Tensor> parts, std::size_t count, DataType type,
                              ReduceOp op, const CallOptions& options) {
  ++calls_;
  const auto reduce_at = [&](void* data) {
    return member_.call({.collective = Collective::all_reduce,
                         .in = data,
                         .out = data,
                         .count = count,
                         .type = type,
                         .op = op,
                         .options = options});
  };
  if (parts.size() == 1) return reduce_at(parts[0].data);
  const std::size_t width = size_of(type);
  if (bucket_.size() < count * width && !resized(bucket_, count * width)) {
    return no_memory(count * width);
  }
  pack(parts, width, bucket_.data());
  if (Status status = reduce_at(bucket_.data()); !status.ok()) return status;
  unpack(parts, width, bucket_.data());
  return {};
}

}  // namespace rankine
