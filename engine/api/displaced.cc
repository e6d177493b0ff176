#include "engine/api/displaced.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include "engine/api/check.h"
#include "engine/api/typed_calls.h"
#include "engine/base/cache_line.h"

namespace rankine {
namespace {

constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

std::string name_of_list(bool out) { return out ? "displacements.out" : "displacements.in"; }

std::span<const std::size_t> list_of(const Call& call, bool out) {
  return out ? call.displacements->out : call.displacements->in;
}

// But for what the addresses say.
Status check_lists(const Call& call, int ranks) {
  if (call.collective != Collective::all_to_all) {
    return invalid_argument("displacements are given to " + std::string(name_of(call.collective)) +
                            "; they are for all_to_all");
  }
  Call bare = call;
  bare.displacements = nullptr;
  if (Status status = check_call(bare, ranks); !status.ok()) return status;
  for (const bool out : {false, true}) {
    const std::size_t size = list_of(call, out).size();
    if (size == 0 || size == static_cast<std::size_t>(ranks)) continue;
    return invalid_argument(name_of_list(out) + " has " + std::to_string(size) +
                            " entries; allowed are none or " + std::to_string(ranks));
  }
  return {};
}

}  // namespace

DisplacedCall::Side DisplacedCall::side_of(const Call& call, Rank rank, int ranks, bool out) {
  const std::span<const std::size_t> list = list_of(call, out);
  Side side;
  side.displaced = !list.empty();
  std::size_t next = 0;
  for (Rank other = 0; other < ranks; ++other) {
    const Rank from = out ? other : rank, to = out ? rank : other;
    const auto pair = static_cast<std::size_t>(from * ranks + to);
    const std::size_t bytes =
        (call.counts.empty() ? call.count : call.counts[pair]) * element_bytes(call);
    side.blocks.push_back({list.empty() ? next : list[static_cast<std::size_t>(other)], bytes});
    next += bytes;
  }
  return side;
}

Status DisplacedCall::check(const Side& side, bool out) {
  if (!side.displaced) return {};
  std::vector<std::size_t> order;  // of those that hold something
  for (std::size_t i = 0; i < side.blocks.size(); ++i) {
    const Block& block = side.blocks[i];
    if (block.bytes == 0) continue;
    if (block.at > kMost - block.bytes) {
      return invalid_argument(name_of_list(out) + "[" + std::to_string(i) + "] is " +
                              std::to_string(block.at) + "; allowed are 0 to " +
                              std::to_string(kMost - block.bytes));
    }
    order.push_back(i);
  }
  if (!out) return {};  // the same may go to several
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return side.blocks[a].at < side.blocks[b].at; });
  for (std::size_t k = 1; k < order.size(); ++k) {
    const Block &before = side.blocks[order[k - 1]], &after = side.blocks[order[k]];
    if (before.at + before.bytes <= after.at) continue;
    return invalid_argument(name_of_list(out) + "[" + std::to_string(order[k]) + "] is " +
                            std::to_string(after.at) + ", but " + std::to_string(before.bytes) +
                            " bytes from rank " + std::to_string(order[k - 1]) + " lie from " +
                            std::to_string(before.at) + " on; what is received may not overlap");
  }
  return {};
}

Result<Call> DisplacedCall::plain(const Call& call, Rank rank, int ranks) {
  if (Status status = check_lists(call, ranks); !status.ok()) return status;
  sent_ = side_of(call, rank, ranks, false);
  received_ = side_of(call, rank, ranks, true);
  in_ = static_cast<const std::byte*>(call.in);
  out_ = static_cast<std::byte*>(call.out);
  Call plain = call;
  plain.displacements = nullptr;
  plain.options.shared_payloads = false;  // blocks may be brought together in memory of ours
  std::size_t end = 0;
  for (Side* side : {&sent_, &received_}) {
    const bool out = side == &received_;
    if (Status status = check(*side, out); !status.ok()) return status;
    std::size_t bytes = 0;
    for (const Block& block : side->blocks) bytes += block.bytes;
    if (bytes > 0 && (out ? call.out : call.in) == nullptr) {
      return invalid_argument(std::string(out ? "out" : "in") + " is null; it has blocks of " +
                              std::to_string(bytes) + " bytes");
    }
    side->begin = end;
    // A line at least, so that the sides never look like one buffer.
    if (side->displaced) end += (bytes + kCacheLine) / kCacheLine * kCacheLine;
  }
  if (memory_.size() < end) memory_.resize(end);
  if (sent_.displaced) plain.in = memory_.data() + sent_.begin;
  if (received_.displaced) plain.out = memory_.data() + received_.begin;
  return plain;
}

void DisplacedCall::bring_together() noexcept {
  if (!sent_.displaced) return;
  std::byte* to = memory_.data() + sent_.begin;
  for (const Block& block : sent_.blocks) {
    if (block.bytes > 0) std::memcpy(to, in_ + block.at, block.bytes);
    to += block.bytes;
  }
}

void DisplacedCall::hand_out() const noexcept {
  if (!received_.displaced) return;
  const std::byte* from = memory_.data() + received_.begin;
  for (const Block& block : received_.blocks) {
    if (block.bytes > 0) std::memcpy(out_ + block.at, from, block.bytes);
    from += block.bytes;
  }
}

Status check_reach(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out) {
  if (Status status = check_lists(call, ranks); !status.ok()) return status;
  for (const bool is_out : {false, true}) {
    const auto side = DisplacedCall::side_of(call, rank, ranks, is_out);
    if (Status status = DisplacedCall::check(side, is_out); !status.ok()) return status;
    const std::size_t size = is_out ? out : in;
    for (std::size_t i = 0; i < side.blocks.size(); ++i) {
      const auto& block = side.blocks[i];
      if (block.bytes == 0 || block.at + block.bytes <= size) continue;
      return invalid_argument(std::string(is_out ? "out" : "in") + " has " + std::to_string(size) +
                              " bytes; the block " + (is_out ? "from" : "to") + " rank " +
                              std::to_string(i) + " ends at byte " +
                              std::to_string(block.at + block.bytes));
    }
  }
  return {};
}

}  // namespace rankine
