#include "engine/api/buckets.h"

#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "engine/base/splitmix.h"

namespace rankine {
namespace {

// Whether there was memory for it: bad_alloc and length_error mean the same here.
template <class T>
bool resized(std::vector<T>& vector, std::size_t size) noexcept {
  try {
    vector.resize(size);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Buckets::~Buckets() {
  if (home_.is_this()) return;
  // A forked child: the rank's thread may have been at work on these, so nobody frees them.
  static_cast<void>(new (std::nothrow) auto(std::move(parts_)));
  static_cast<void>(new (std::nothrow) auto(std::move(bucket_)));
}

Status Buckets::no_memory(std::size_t bytes) {
  return member_.give_up(make_error(Code::out_of_memory, [&] {
    return "buckets of rank " + std::to_string(member_.rank()) + ": " + std::to_string(bytes) +
           " bytes";
  }));
}

Status Buckets::expect(std::size_t tensors) {
  return resized(parts_, tensors) ? Status() : no_memory(tensors * sizeof(Part));
}

Status Buckets::reduce_parts(DataType type, ReduceOp op, CallOptions options) {
  if (options.epilogue != nullptr) {
    return invalid_argument("epilogue is given to buckets, whose rows are of many tensors");
  }
  const std::size_t room = bucket_bytes_ / size_of(type);  // elements
  // Ranks whose tensors have other shapes must not meet in a bucket that happens to be as large.
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
  agree(parts_.size());
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

Status Buckets::reduce_bucket(std::span<const Part> parts, std::size_t count, DataType type,
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
  std::byte* at = bucket_.data();
  for (const Part& part : parts) {
    if (part.count > 0) std::memcpy(at, part.data, part.count * width);
    at += part.count * width;
  }
  Status status = reduce_at(bucket_.data());
  if (!status.ok()) return status;
  at = bucket_.data();
  for (const Part& part : parts) {
    if (part.count > 0) std::memcpy(part.data, at, part.count * width);
    at += part.count * width;
  }
  return {};
}

}  // namespace rankine
