#include "engine/api/buckets.h"

#include <cstring>
#include <new>
#include <utility>

namespace rankine {

Buckets::~Buckets() {
  if (home_.is_this()) return;
  // A forked child: the rank's thread may have been at work on these, so nobody frees them.
  static_cast<void>(new (std::nothrow) auto(std::move(parts_)));
  static_cast<void>(new (std::nothrow) auto(std::move(bucket_)));
}

Status Buckets::reduce_parts(DataType type, ReduceOp op, const CallOptions& options) {
  const std::size_t room = bucket_bytes_ / size_of(type);  // elements
  std::size_t first = 0, filled = 0;
  for (std::size_t i = 0; i <= parts_.size(); ++i) {
    const bool full = i == parts_.size() || filled + parts_[i].count > room;
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
  if (bucket_.size() < count * width) bucket_.resize(count * width);
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
