#include "engine/api/order.h"

#include <algorithm>
#include <bit>

#include "engine/api/check.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

constexpr std::string_view kNames[kOrders] = {"coherent", "repeatable", "by_rank", "size_invariant",
                                              "group_invariant"};

// A part of the vectors at a time, so that what nodes hold stays in the first-level cache.
constexpr std::size_t kPart = 2048;  // bytes

struct Group {
  ReduceKernel fold;
  std::size_t element_bytes;
  std::span<const void* const> srcs;

  // The node over those sources, of so many elements from `at` (bytes) on, into `to`.
  void node(std::size_t first, std::size_t sources, std::size_t at, std::size_t elements,
            void* to) const noexcept {
    if (sources == 1) return copy_bytes(to, leaf(first, at), elements * element_bytes);
    const std::size_t half = std::bit_ceil(sources) / 2;
    alignas(64) std::byte low[kPart], high[kPart];
    const void* both[2] = {leaf(first, at), leaf(first + half, at)};
    if (half > 1) {
      node(first, half, at, elements, low);
      both[0] = low;
    }
    if (sources - half > 1) {
      node(first + half, sources - half, at, elements, high);
      both[1] = high;
    }
    fold(to, both, 2, elements, 0);
  }
  const void* leaf(std::size_t source, std::size_t at) const noexcept {
    return static_cast<const std::byte*>(srcs[source]) + at;
  }
};

}  // namespace

std::string_view name_of(Order order) {
  const auto i = static_cast<std::size_t>(order);
  return i < kOrders ? kNames[i] : "unknown";
}

std::optional<Order> parse_order(std::string_view text) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found == std::end(kNames)) return {};
  return static_cast<Order>(found - std::begin(kNames));
}

std::string to_string(const OrderSet& orders) {
  std::string text;
  for (int i = 0; i < kOrders; ++i) {
    const auto order = static_cast<Order>(i);
    if (!orders.has(order)) continue;
    if (!text.empty()) text += ", ";
    text += name_of(order);
  }
  return text;
}

Status reduce_group(DataType type, ReduceOp op, std::span<const void* const> srcs, void* dst,
                    std::size_t count) {
  if (srcs.empty()) return invalid_argument("srcs is empty; allowed are 1 contribution and more");
  if (Status status = check_call({.count = count, .type = type, .op = op}, 1); !status.ok()) {
    return status;
  }
  if (op == ReduceOp::avg) {
    return invalid_argument("operation is avg; the order group_invariant has sums, not averages");
  }
  const bool is_null =
      count > 0 && (dst == nullptr || std::find(srcs.begin(), srcs.end(), nullptr) != srcs.end());
  if (is_null) return invalid_argument("dst or one of srcs is null");
  const Group group{find_reduce(type, op), size_of(type), srcs};
  const std::size_t most = kPart / group.element_bytes;
  for (std::size_t i = 0; i < count; i += most) {
    const std::size_t at = i * group.element_bytes;
    group.node(0, srcs.size(), at, std::min(most, count - i), static_cast<std::byte*>(dst) + at);
  }
  return {};
}

}  // namespace rankine
