#include "engine/read/drawing_columns.h"

#include <map>
#include <set>
#include <utility>

namespace rankine {
namespace {

Cell holding_cell(const HoldingView& holding, const Goal& goal, const Signs& signs) {
  Cell cell{"", holding.written, holding.complete};
  const bool is_sum = goal.source_of(holding.block) < 0;
  // Prefixes are complete as different sums: these are told.
  if (holding.complete && !is_prefix(goal.collective)) {
    cell.text = is_sum ? "all" : std::string(signs.held);
  } else {
    cell.text = set_text(holding.contributions, goal.ranks, "+", signs);
  }
  return cell;
}

// One column per place; neighbouring blocks that look the same throughout share one.
std::vector<Column> place_columns(const Schedule& schedule, const Goal& goal,
                                  const std::vector<RoundView>& views, const Signs& signs) {
  const std::vector<Cell> nothing(static_cast<std::size_t>(schedule.ranks),
                                  Cell{std::string(signs.nothing)});
  Column blank;
  blank.cells.assign(views.size(), nothing);
  std::vector<Column> all(static_cast<std::size_t>(schedule.places()), blank);
  for (std::size_t v = 0; v < views.size(); ++v) {
    for (std::size_t r = 0; r < views[v].ranks.size(); ++r) {
      for (const HoldingView& holding : views[v].ranks[r]) {
        const int place = place_of(schedule, holding.block, holding.plane);
        all[static_cast<std::size_t>(place)].cells[v][r] = holding_cell(holding, goal, signs);
      }
    }
  }
  std::vector<Column> columns;
  for (int plane = 0; plane < schedule.planes; ++plane) {
    const auto column_of = [&](Block b) -> Column& {
      return all[static_cast<std::size_t>(place_of(schedule, b, plane))];
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

// All-to-all: from whom a rank has its blocks, and which blocks it has yet to send.
std::vector<Column> route_columns(const Schedule& schedule, const Goal& goal,
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

std::vector<Column> columns_of(const Schedule& schedule, const Goal& goal,
                               const std::vector<RoundView>& views, const Signs& signs) {
  return is_all_to_all(goal) ? route_columns(schedule, goal, views, signs)
                             : place_columns(schedule, goal, views, signs);
}

}  // namespace rankine
