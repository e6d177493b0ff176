// What distinguishes one plan from another: every field of a call on which its plan depends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/call.h"

namespace rankine {

// A view: names and lists are the caller's.
struct PlanKey {
  std::size_t count = 0;
  std::string_view algorithm{};  // empty: the engine chooses
  Rank root = 0, peer = 0;
  int segments = 0, group = 0;
  Collective collective = Collective::all_reduce;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::int16_t transport = -1;  // -1: the engine chooses
  bool in_place = false;        // where it makes a difference to the plan
  std::span<const std::size_t> counts{};
  std::span<const int> dims{}, skips{}, levels{};

  bool operator==(const PlanKey& other) const noexcept {
    return count == other.count && root == other.root && peer == other.peer &&
           segments == other.segments && group == other.group && collective == other.collective &&
           type == other.type && op == other.op && transport == other.transport &&
           in_place == other.in_place && algorithm == other.algorithm &&
           same(counts, other.counts) && same(dims, other.dims) && same(skips, other.skips) &&
           same(levels, other.levels);
  }

  // Of every field. Most calls have no lists, and scalars are mixed side by side.
  std::uint64_t hash() const noexcept {
    const std::uint64_t kinds =
        static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(type) << 8 |
        static_cast<std::uint64_t>(op) << 16 |
        static_cast<std::uint64_t>(static_cast<std::uint16_t>(transport)) << 24 |
        static_cast<std::uint64_t>(in_place) << 40;
    const std::uint64_t ranks = packed(root, peer), ways = packed(segments, group);
    std::uint64_t h = count * 0x9e3779b97f4a7c15u ^ kinds * 0xd6e8feb86659fd93u ^
                      ranks * 0xbf58476d1ce4e5b9u ^ ways * 0x94d049bb133111ebu;
    if (!algorithm.empty()) h = mixed(h, std::hash<std::string_view>{}(algorithm));
    if (has_lists()) {
      h = with_list(h, counts);
      h = with_list(h, dims);
      h = with_list(h, skips);
      h = with_list(h, levels);
    }
    return h ^ h >> 32;
  }

 private:
  bool has_lists() const noexcept {
    return !counts.empty() || !dims.empty() || !skips.empty() || !levels.empty();
  }
  static std::uint64_t packed(int a, int b) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }
  static std::uint64_t mixed(std::uint64_t h, std::uint64_t next) noexcept {
    h = (h ^ next) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
  }
  template <class T>
  static std::uint64_t with_list(std::uint64_t h, std::span<const T> list) noexcept {
    h = mixed(h, list.size());
    for (const T n : list) h = mixed(h, static_cast<std::uint64_t>(n));
    return h;
  }
  template <class T>
  static bool same(std::span<const T> a, std::span<const T> b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }
};

// The key of such a call. Arguments that a collective does not take make no difference.
inline PlanKey key_of(const Call& call) noexcept {
  const bool knows_in_place =
      call.collective == Collective::all_reduce || call.collective == Collective::all_to_all;
  PlanKey key{.count = call.count,
              .algorithm = call.options.algorithm,
              .root = call.root != 0 && has_root(call.collective) ? call.root : 0,
              .peer = call.collective == Collective::send_recv ? call.peer : 0,
              .segments = call.options.segments,
              .group = call.options.group,
              .collective = call.collective,
              .type = call.type,
              .op = call.op,
              .in_place = knows_in_place && call.in == call.out && call.in != nullptr,
              .counts = call.counts,
              .dims = call.options.dims,
              .skips = call.options.skips,
              .levels = call.options.levels};
  if (call.options.transport) key.transport = static_cast<std::int16_t>(*call.options.transport);
  return key;
}

// A key with names and lists of its own.
class OwnedKey {
 public:
  explicit OwnedKey(const PlanKey& key)
      : algorithm_(key.algorithm),
        counts_(key.counts.begin(), key.counts.end()),
        dims_(key.dims.begin(), key.dims.end()),
        skips_(key.skips.begin(), key.skips.end()),
        levels_(key.levels.begin(), key.levels.end()),
        hash_(key.hash()),
        view_(key) {
    view_.algorithm = algorithm_;
    view_.counts = counts_;
    view_.dims = dims_;
    view_.skips = skips_;
    view_.levels = levels_;
  }
  OwnedKey(const OwnedKey&) = delete;
  OwnedKey& operator=(const OwnedKey&) = delete;

  const PlanKey& view() const noexcept { return view_; }
  std::uint64_t hash() const noexcept { return hash_; }
  std::size_t bytes() const noexcept {  // beyond its own size
    return algorithm_.capacity() + counts_.capacity() * sizeof(std::size_t) +
           (dims_.capacity() + skips_.capacity() + levels_.capacity()) * sizeof(int);
  }

 private:
  const std::string algorithm_;
  const std::vector<std::size_t> counts_;
  const std::vector<int> dims_, skips_, levels_;
  const std::uint64_t hash_;
  PlanKey view_;
};

}  // namespace rankine
