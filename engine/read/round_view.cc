#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "engine/read/draw.h"

namespace rankine {
namespace {

using Contributions = std::vector<Rank>;      // ascending
using Holdings = std::vector<Contributions>;  // contributions of one rank, by place

bool in_range(const std::vector<int>& indices, int n) {
  return std::all_of(indices.begin(), indices.end(), [n](int i) { return i >= 0 && i < n; });
}

bool is_complete(const Contributions& held, const Run& heard) {
  Rank next = heard.first;
  return static_cast<int>(held.size()) == heard.count &&
         std::all_of(held.begin(), held.end(), [&next](Rank r) { return r == next++; });
}

class Player {
 public:
  Player(const Schedule& schedule, const CollectiveSpec& goal)
      : schedule_(schedule), goal_(goal), held_(static_cast<std::size_t>(schedule.ranks)) {
    for (Rank r = 0; r < schedule.ranks; ++r) {
      held_[static_cast<std::size_t>(r)].resize(static_cast<std::size_t>(schedule.slots()));
      for (Block b = 0; b < schedule.blocks; ++b) {
        if (goal.initially_holds(r, b)) at(r, 0, b) = {r};
      }
    }
  }

  RoundView start() const {
    RoundView view;
    view.ranks = holdings({});
    return view;
  }

  RoundView play(int k) {
    RoundView view;
    view.round = k;
    view.phase = phase_of(k);
    for_each_transfer(schedule_, k, [&](const Transfer& t) {
      view.transfers.push_back({t.from.to_vector(), t.to.to_vector(), t.what.list.to_vector(),
                                t.where.list.to_vector(), t.what.plane, t.where.plane, t.kind});
    });
    const std::vector<Holdings> before = held_;
    std::set<std::pair<Rank, int>> written;
    for (const TransferView& t : view.transfers) {
      if (!is_playable(schedule_, t)) continue;
      for (const Rank from : t.from) {
        for (std::size_t i = 0; i < t.what.size(); ++i) {
          const Contributions& sent =
              before[static_cast<std::size_t>(from)]
                    [static_cast<std::size_t>(slot_of(schedule_, t.what[i], t.what_plane))];
          if (sent.empty()) continue;
          for (const Rank to : t.to) {
            deliver(sent, t.kind, at(to, t.where_plane, t.where[i]));
            written.insert({to, slot_of(schedule_, t.where[i], t.where_plane)});
          }
        }
      }
    }
    view.ranks = holdings(written);
    return view;
  }

 private:
  Contributions& at(Rank r, int plane, Block b) {
    return held_[static_cast<std::size_t>(r)]
                [static_cast<std::size_t>(slot_of(schedule_, b, plane))];
  }

  void deliver(const Contributions& sent, TransferKind kind, Contributions& place) const {
    if (kind == TransferKind::copy) {
      place = sent;
      return;
    }
    Contributions sum;
    if (is_idempotent(goal_.collective)) {
      std::set_union(place.begin(), place.end(), sent.begin(), sent.end(), std::back_inserter(sum));
    } else {
      std::merge(place.begin(), place.end(), sent.begin(), sent.end(), std::back_inserter(sum));
    }
    place = std::move(sum);
  }

  std::string phase_of(int k) const {
    for (const Phase& phase : schedule_.phases) {
      if (k < phase.rounds) return phase.name;
      k -= phase.rounds;
    }
    return "";
  }

  std::vector<std::vector<HoldingView>> holdings(
      const std::set<std::pair<Rank, int>>& written) const {
    std::vector<std::vector<HoldingView>> out(held_.size());
    for (Rank r = 0; r < schedule_.ranks; ++r) {
      for (int place = 0; place < schedule_.slots(); ++place) {
        const Contributions& held =
            held_[static_cast<std::size_t>(r)][static_cast<std::size_t>(place)];
        if (held.empty()) continue;
        const Block b = place % schedule_.blocks;
        const int plane = place / schedule_.blocks;
        out[static_cast<std::size_t>(r)].push_back(
            {b, plane, held, is_complete(held, goal_.contributors(r, b)),
             plane == 0 && goal_.must_hold(r, b), written.contains({r, place})});
      }
    }
    return out;
  }

  const Schedule& schedule_;
  const CollectiveSpec& goal_;
  std::vector<Holdings> held_;
};

}  // namespace

bool is_playable(const Schedule& schedule, const TransferView& t) {
  return in_range(t.from, schedule.ranks) && in_range(t.to, schedule.ranks) &&
         in_range(t.what, schedule.blocks) && in_range(t.where, schedule.blocks) &&
         t.what.size() == t.where.size() && t.what_plane >= 0 && t.where_plane >= 0 &&
         t.what_plane < schedule.planes && t.where_plane < schedule.planes;
}

std::vector<RoundView> view_rounds(const Schedule& schedule, const CollectiveSpec& goal) {
  Player player(schedule, goal);
  std::vector<RoundView> views{player.start()};
  for (int k = 0; k < schedule.rounds; ++k) views.push_back(player.play(k));
  return views;
}

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
    // Evenly spaced, except the gap before the first one.
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

int parts_of(const CollectiveSpec& goal) {
  return goal.blocks / natural_blocks(goal.collective, goal.ranks);
}

bool is_all_to_all(const CollectiveSpec& goal) { return goal.collective == Collective::all_to_all; }

std::string routes_text(const std::vector<Block>& blocks, const CollectiveSpec& goal,
                        const Signs& signs) {
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
  // Sources with equal targets share an entry.
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

namespace {

Cell holding_cell(const HoldingView& holding, const CollectiveSpec& goal, const Signs& signs) {
  Cell cell{"", holding.written, holding.complete};
  const bool is_sum = goal.source_of(holding.block) < 0;
  // Complete prefixes are different sums, so the set is shown.
  if (holding.complete && !is_prefix(goal.collective)) {
    cell.text = is_sum ? "all" : std::string(signs.held);
  } else {
    cell.text = set_text(holding.contributions, goal.ranks, "+", signs);
  }
  return cell;
}

// One column per place; neighbouring blocks that look the same throughout share one.
std::vector<Column> place_columns(const Schedule& schedule, const CollectiveSpec& goal,
                                  const std::vector<RoundView>& views, const Signs& signs) {
  const std::vector<Cell> nothing(static_cast<std::size_t>(schedule.ranks),
                                  Cell{std::string(signs.nothing)});
  Column blank;
  blank.cells.assign(views.size(), nothing);
  std::vector<Column> all(static_cast<std::size_t>(schedule.slots()), blank);
  for (std::size_t v = 0; v < views.size(); ++v) {
    for (std::size_t r = 0; r < views[v].ranks.size(); ++r) {
      for (const HoldingView& holding : views[v].ranks[r]) {
        const int place = slot_of(schedule, holding.block, holding.plane);
        all[static_cast<std::size_t>(place)].cells[v][r] = holding_cell(holding, goal, signs);
      }
    }
  }
  std::vector<Column> columns;
  for (int plane = 0; plane < schedule.planes; ++plane) {
    const auto column_of = [&](Block b) -> Column& {
      return all[static_cast<std::size_t>(slot_of(schedule, b, plane))];
    };
    for (Block b = 0; b < schedule.blocks;) {
      std::vector<Block> shared{b};
      while (++b < schedule.blocks && column_of(b).cells == column_of(shared[0]).cells) {
        shared.push_back(b);
      }
      Column& column = column_of(shared[0]);
      if (plane > 0 && column.cells == blank.cells) continue;
      column.title = set_text(shared, schedule.blocks, ",", signs, primes(plane));
      columns.push_back(std::move(column));
    }
  }
  return columns;
}

// For an all-to-all: the sources of a rank's blocks, and the blocks that it has yet to send.
std::vector<Column> route_columns(const Schedule& schedule, const CollectiveSpec& goal,
                                  const std::vector<RoundView>& views, const Signs& signs) {
  const int parts = parts_of(goal);
  Column has{"has from", {}}, sends{"to send", {}};
  has.cells.resize(views.size());
  sends.cells.resize(views.size());
  std::vector<std::set<Block>> later(static_cast<std::size_t>(schedule.ranks));
  for (std::size_t v = views.size(); v-- > 0;) {
    for (std::size_t r = 0; r < views[v].ranks.size(); ++r) {
      std::map<Rank, int> arrived;
      Cell mine, rest;
      std::set<Block> in_hand;
      for (const HoldingView& holding : views[v].ranks[r]) {
        if (holding.needed && holding.complete) {
          ++arrived[goal.source_of(holding.block)];
          mine.written = mine.written || holding.written;
        }
        if (!later[r].contains(holding.block)) continue;
        in_hand.insert(holding.block);
        rest.written = rest.written || holding.written;
      }
      std::vector<Rank> sources;
      for (const auto& [source, count] : arrived) {
        if (count == parts) sources.push_back(source);
      }
      mine.complete = static_cast<int>(sources.size()) == schedule.ranks;
      mine.text = mine.complete     ? "all"
                  : sources.empty() ? std::string(signs.nothing)
                                    : set_text(sources, goal.ranks, ",", signs);
      rest.text = in_hand.empty() ? std::string(signs.nothing)
                                  : routes_text({in_hand.begin(), in_hand.end()}, goal, signs);
      has.cells[v].push_back(mine);
      sends.cells[v].push_back(rest);
    }
    for (const TransferView& t : views[v].transfers) {
      if (!is_playable(schedule, t)) continue;
      for (const Rank from : t.from) {
        later[static_cast<std::size_t>(from)].insert(t.what.begin(), t.what.end());
      }
    }
  }
  return {std::move(has), std::move(sends)};
}

}  // namespace

std::vector<Column> columns_of(const Schedule& schedule, const CollectiveSpec& goal,
                               const std::vector<RoundView>& views, const Signs& signs) {
  return is_all_to_all(goal) ? route_columns(schedule, goal, views, signs)
                             : place_columns(schedule, goal, views, signs);
}

}  // namespace rankine
