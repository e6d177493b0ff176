#include "engine/read/drawing_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace rankine {

std::size_t width_of(std::string_view text) {  // code points: every sign here is one column wide
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string set_text(const std::vector<int>& indices, int n, std::string_view joint,
                     const Signs& signs, const std::string& suffix) {
  const auto number = [&](int i) { return std::to_string(i) + suffix; };
  const auto interval = [&](int first, int last, int count) {
    if (count == 1) return number(first);
    return number(first) + std::string(count == 2 ? joint : signs.range) + number(last);
  };
  const std::size_t size = indices.size();
  std::vector<std::pair<int, int>> runs;  // first, last
  bool repeats = false;
  for (const int i : indices) {
    repeats = repeats || (!runs.empty() && runs.back().second == i);
    if (!runs.empty() && runs.back().second + 1 == i) {
      runs.back().second = i;
    } else {
      runs.push_back({i, i});
    }
  }
  if (!repeats && runs.size() == 2 && runs[0].first == 0 && runs[1].second == n - 1) {
    return interval(runs[1].first, runs[0].second, static_cast<int>(size));
  }
  if (!repeats && runs.size() == size && size > 2) {
    // Evenly spaced, but for the gap before the first one.
    for (std::size_t start = 0; start < size; ++start) {
      const auto gap = [&](std::size_t i) {
        const int here = indices[(start + i) % size], next = indices[(start + i + 1) % size];
        return next > here ? next - here : next + n - here;
      };
      bool even = true;
      for (std::size_t i = 1; i + 1 < size; ++i) even = even && gap(i) == gap(0);
      if (even) {
        return interval(indices[start], indices[(start + size - 1) % size], 3) + "/" +
               std::to_string(gap(0));
      }
    }
  }
  std::string out;
  for (const auto& [first, last] : runs) {
    if (!out.empty()) out += joint;
    out += interval(first, last, last - first + 1);
  }
  return out;
}

std::string primes(int plane) {
  return std::string(static_cast<std::size_t>(std::max(0, plane)), '\'');
}

int parts_of(const Goal& goal) { return goal.blocks / natural_blocks(goal.collective, goal.ranks); }

bool is_all_to_all(const Goal& goal) { return goal.collective == Collective::all_to_all; }

std::string routes_text(const std::vector<Block>& blocks, const Goal& goal, const Signs& signs) {
  const int parts = parts_of(goal);
  std::map<std::pair<Rank, int>, std::vector<Rank>> targets;  // by source and part
  std::map<Block, int> whole;
  for (const Block b : blocks) ++whole[b / parts];
  for (const auto& [natural, held] : whole) {
    if (held == parts) targets[{natural / goal.ranks, -1}].push_back(natural % goal.ranks);
  }
  for (const Block b : blocks) {
    const int natural = b / parts;
    if (whole[natural] != parts)
      targets[{natural / goal.ranks, b % parts}].push_back(natural % goal.ranks);
  }
  // Sources whose blocks go to the same ranks share an entry.
  std::vector<std::pair<std::pair<std::vector<Rank>, int>, std::vector<Rank>>> entries;
  for (auto& [source, to] : targets) {
    std::sort(to.begin(), to.end());
    const std::pair key{to, source.second};
    const auto known = std::find_if(entries.begin(), entries.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (known == entries.end()) {
      entries.push_back({key, {source.first}});
    } else {
      known->second.push_back(source.first);
    }
  }
  std::string out;
  for (const auto& [key, sources] : entries) {
    if (!out.empty()) out += " ";
    out += fmt::format("{}>{}", set_text(sources, goal.ranks, ",", signs),
                       set_text(key.first, goal.ranks, ",", signs));
    if (key.second >= 0) out += fmt::format(".{}", key.second);
  }
  return out;
}

}  // namespace rankine
