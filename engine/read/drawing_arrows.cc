#include "engine/read/drawing_arrows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace rankine {
namespace {

std::vector<int> sorted(std::vector<int> indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::string blocks_text(const std::vector<Block>& blocks, int plane, const Goal& goal,
                        const Signs& signs) {
  if (is_all_to_all(goal)) return routes_text(blocks, goal, signs) + primes(plane);
  return set_text(sorted(blocks), goal.blocks, ",", signs, primes(plane));
}

// All-to-all's block that goes straight from where it starts to where it is needed needs no name.
bool is_own_route(const TransferView& t, const Goal& goal) {
  const int parts = parts_of(goal);
  if (!is_all_to_all(goal) || t.from.size() != 1 || t.to.size() != 1 || t.act != Act::copy ||
      t.what_plane != 0 || t.where_plane != 0 || static_cast<int>(t.what.size()) != parts) {
    return false;
  }
  return std::all_of(t.what.begin(), t.what.end(), [&](Block b) {
    return goal.source_of(b) == t.from[0] && goal.target_of(b) == t.to[0];
  });
}

Arrow arrow_of(const TransferView& t, const Goal& goal, const Signs& signs) {
  Arrow arrow{t.from, t.to, "", t.from.size() > 1 || t.to.size() > 1, false, false};
  arrow.is_local = t.from == t.to && t.from.size() == 1;
  const std::string what = blocks_text(t.what, t.what_plane, goal, signs);
  const std::string where = blocks_text(t.where, t.where_plane, goal, signs);
  const bool adds = t.act == Act::reduce;
  if (arrow.is_local) {
    arrow.label = fmt::format("{} {} {}", where, adds ? "+=" : "=", what);
  } else if (!is_own_route(t, goal)) {
    arrow.label = (adds ? "+" : "") + what + (what == where ? "" : ":" + where);
  }
  return arrow;
}

using End = std::vector<Rank> Arrow::*;
constexpr End kFrom = &Arrow::from, kTo = &Arrow::to;

// Messages that are the same at the one end become one with all that they have at the other.
std::vector<Arrow> merged(const std::vector<Arrow>& in, End same, End other) {
  std::vector<Arrow> out;
  std::map<std::pair<std::vector<Rank>, std::string>, std::size_t> known;
  for (const Arrow& arrow : in) {
    const bool is_message = !arrow.is_switched && !arrow.is_local;
    if (is_message && (arrow.*same).size() == 1 && (arrow.*other).size() == 1) {
      const auto [at, is_new] = known.insert({{arrow.*same, arrow.label}, out.size()});
      if (!is_new) {
        (out[at->second].*other).push_back((arrow.*other)[0]);
        continue;
      }
    }
    out.push_back(arrow);
  }
  return out;
}

}  // namespace

std::vector<Arrow> arrows_of(const RoundView& view, const Goal& goal, const Signs& signs) {
  std::vector<Arrow> arrows;
  for (const TransferView& t : view.transfers) arrows.push_back(arrow_of(t, goal, signs));
  const bool adds = std::any_of(arrows.begin(), arrows.end(),
                                [](const Arrow& arrow) { return arrow.label.starts_with('+'); });
  std::vector<Arrow> fans = adds ? merged(merged(arrows, kTo, kFrom), kFrom, kTo)
                                 : merged(merged(arrows, kFrom, kTo), kTo, kFrom);

  std::vector<Arrow> out;
  std::map<std::tuple<Rank, Rank, std::string>, std::size_t> singles;
  std::map<std::string, std::size_t> local;
  for (Arrow& arrow : fans) {
    if (arrow.is_local) {
      const auto [at, is_new] = local.insert({arrow.label, out.size()});
      if (!is_new) {
        out[at->second].from.push_back(arrow.from[0]);
        continue;
      }
    } else if (arrow.from.size() == 1 && arrow.to.size() == 1) {
      const auto back = singles.find({arrow.to[0], arrow.from[0], arrow.label});
      if (back != singles.end() && !out[back->second].is_swap) {
        out[back->second].is_swap = true;
        continue;
      }
      singles.insert({{arrow.from[0], arrow.to[0], arrow.label}, out.size()});
    }
    out.push_back(std::move(arrow));
  }
  std::stable_sort(out.begin(), out.end(), [](const Arrow& a, const Arrow& b) {
    const auto key = [](const Arrow& arrow) {
      return arrow.from.size() > 1 ? arrow.to[0] : arrow.from[0];
    };
    return std::pair(a.is_local, key(a)) < std::pair(b.is_local, key(b));
  });
  return out;
}

std::string arrow_text(const Arrow& arrow, int ranks, const Signs& signs) {
  const auto group = [&](const std::vector<Rank>& members) {
    return set_text(sorted(members), ranks, ",", signs);
  };
  if (arrow.is_local) return fmt::format("at {}: {}", group(arrow.from), arrow.label);
  const std::string_view shaft = arrow.is_switched ? signs.switched : signs.wire;
  const std::string_view end = arrow.is_switched ? signs.switched_end : signs.wire_end;
  return fmt::format("{} {}{}{} {}", group(arrow.from), arrow.is_swap ? signs.swap_begin : shaft,
                     arrow.label, end, group(arrow.to));
}

}  // namespace rankine
