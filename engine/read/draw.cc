#include "engine/read/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/base/units.h"

namespace rankine {
namespace {

// -------------------------------------------------------------------------------------------------
// Views: the schedule, executed over lists of contributions

using Contributions = std::vector<Rank>;      // ascending
using Holdings = std::vector<Contributions>;  // of one rank, by place

bool in_range(const std::vector<int>& indices, int n) {
  return std::all_of(indices.begin(), indices.end(), [n](int i) { return i >= 0 && i < n; });
}

// A transfer that names what does not exist is drawn and does nothing.
bool is_playable(const Schedule& schedule, const TransferView& t) {
  return in_range(t.from, schedule.ranks) && in_range(t.to, schedule.ranks) &&
         in_range(t.what, schedule.blocks) && in_range(t.where, schedule.blocks) &&
         t.what.size() == t.where.size() && t.what_plane >= 0 && t.where_plane >= 0 &&
         t.what_plane < schedule.planes && t.where_plane < schedule.planes;
}

bool is_complete(const Contributions& held, const Run& heard) {
  Rank next = heard.first;
  return static_cast<int>(held.size()) == heard.count &&
         std::all_of(held.begin(), held.end(), [&next](Rank r) { return r == next++; });
}

class Player {
 public:
  Player(const Schedule& schedule, const Goal& goal)
      : schedule_(schedule), goal_(goal), held_(static_cast<std::size_t>(schedule.ranks)) {
    for (Rank r = 0; r < schedule.ranks; ++r) {
      held_[static_cast<std::size_t>(r)].resize(static_cast<std::size_t>(schedule.places()));
      for (Block b = 0; b < schedule.blocks; ++b) {
        if (goal.starts(r, b)) at(r, 0, b) = {r};
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
                                t.where.list.to_vector(), t.what.plane, t.where.plane, t.act});
    });
    const std::vector<Holdings> before = held_;
    std::set<std::pair<Rank, int>> written;
    for (const TransferView& t : view.transfers) {
      if (!is_playable(schedule_, t)) continue;
      for (const Rank from : t.from) {
        for (std::size_t i = 0; i < t.what.size(); ++i) {
          const Contributions& sent =
              before[static_cast<std::size_t>(from)]
                    [static_cast<std::size_t>(place_of(schedule_, t.what[i], t.what_plane))];
          if (sent.empty()) continue;
          for (const Rank to : t.to) {
            deliver(sent, t.act, at(to, t.where_plane, t.where[i]));
            written.insert({to, place_of(schedule_, t.where[i], t.where_plane)});
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
                [static_cast<std::size_t>(place_of(schedule_, b, plane))];
  }

  void deliver(const Contributions& sent, Act act, Contributions& place) const {
    if (act == Act::copy) {
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
      for (int place = 0; place < schedule_.places(); ++place) {
        const Contributions& held =
            held_[static_cast<std::size_t>(r)][static_cast<std::size_t>(place)];
        if (held.empty()) continue;
        const Block b = place % schedule_.blocks;
        const int plane = place / schedule_.blocks;
        out[static_cast<std::size_t>(r)].push_back(
            {b, plane, held, is_complete(held, goal_.heard_by(r, b)),
             plane == 0 && goal_.needs(r, b), written.contains({r, place})});
      }
    }
    return out;
  }

  const Schedule& schedule_;
  const Goal& goal_;
  std::vector<Holdings> held_;
};

// -------------------------------------------------------------------------------------------------
// Words: sets of numbers as short texts

// The signs that a drawing is made of.
struct Signs {
  std::string_view nothing, held, written, range, rule;
  std::string_view wire, wire_end, swap_begin;  // 0 -1-> 2, 0 <-1-> 2
  std::string_view switched, switched_end;      // 0 =1=> 2,3
};
constexpr Signs kAscii = {".", "o", "*", "..", "|", "-", "->", "<-", "=", "=>"};
constexpr Signs kUtf8 = {"·", "●", "▸", "‥", "│", "─", "→", "←", "═", "⇒"};

std::size_t width_of(std::string_view text) {  // code points: every sign here is one column wide
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// 0..3, 6..1 (over the end of n), 0..6/2 (every second), 0..2+5; "+" stands for the joint.
// `indices` is ascending; `suffix` follows every number.
std::string set_text(const std::vector<int>& indices, int n, std::string_view joint,
                     const Signs& signs, const std::string& suffix = "") {
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

std::vector<int> sorted(std::vector<int> indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::string primes(int plane) {
  return std::string(static_cast<std::size_t>(std::max(0, plane)), '\'');
}

// How many neighbours each of the collective's blocks is split into.
int parts_of(const Goal& goal) { return goal.blocks / natural_blocks(goal.collective, goal.ranks); }

bool is_all_to_all(const Goal& goal) { return goal.collective == Collective::all_to_all; }

// 0>1..3 2>1: all-to-all's blocks by source; parts of a block as 0>1.0.
std::string routes_text(const std::vector<Block>& blocks, const Goal& goal, const Signs& signs,
                        std::string_view joint) {
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
    if (!out.empty()) out += joint;
    out += fmt::format("{}>{}", set_text(sources, goal.ranks, ",", signs),
                       set_text(key.first, goal.ranks, ",", signs));
    if (key.second >= 0) out += fmt::format(".{}", key.second);
  }
  return out;
}

// -------------------------------------------------------------------------------------------------
// Arrows: the transfers of a round

// What is drawn as one arrow: a transfer, or several messages alike.
struct Arrow {
  std::vector<Rank> from, to;
  std::string label;
  bool is_switched = false;  // one transfer with several senders or receivers
  bool is_swap = false;      // the same both ways
  bool is_local = false;
};

std::string blocks_text(const std::vector<Block>& blocks, int plane, const Goal& goal,
                        const Signs& signs) {
  if (is_all_to_all(goal)) return routes_text(blocks, goal, signs, " ") + primes(plane);
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

// Messages that differ in the receiver only become one arrow, then those that differ in the sender
// only, then pairs that exchange the same.
std::vector<Arrow> merged(const std::vector<Arrow>& arrows) {
  const auto merge_by = [](const std::vector<Arrow>& in, bool by_sender) {
    std::vector<Arrow> out;
    std::map<std::pair<std::vector<Rank>, std::string>, std::size_t> known;
    for (const Arrow& arrow : in) {
      const bool is_message = !arrow.is_switched && !arrow.is_local;
      const std::vector<Rank>& kept = by_sender ? arrow.from : arrow.to;
      const std::vector<Rank>& other = by_sender ? arrow.to : arrow.from;
      if (is_message && kept.size() == 1 && other.size() == 1) {
        const auto [at, is_new] = known.insert({{kept, arrow.label}, out.size()});
        if (!is_new) {
          std::vector<Rank>& into = by_sender ? out[at->second].to : out[at->second].from;
          into.push_back(other[0]);
          continue;
        }
      }
      out.push_back(arrow);
    }
    return out;
  };
  const bool adds = std::any_of(arrows.begin(), arrows.end(),
                                [](const Arrow& arrow) { return arrow.label.starts_with('+'); });
  std::vector<Arrow> fans = merge_by(merge_by(arrows, !adds), adds);

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
  // By sender; what several send, by receiver.
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

// -------------------------------------------------------------------------------------------------
// Tables: what the ranks hold after a round

struct Cell {
  std::string text;
  bool written = false, complete = false;
  bool operator==(const Cell&) const = default;
};
struct Column {
  std::string title;
  std::vector<std::vector<Cell>> cells;  // by view, then rank
  std::size_t width = 0;                 // of the widest text or title
};

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
                                  : routes_text({in_hand.begin(), in_hand.end()}, goal, signs, " ");
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

// -------------------------------------------------------------------------------------------------
// The page

enum class Paint : unsigned char { plain, title, faint, fresh, complete };
constexpr std::array<std::string_view, 5> kPaints = {"", "\x1b[1m", "\x1b[2m", "\x1b[33m",
                                                     "\x1b[32m"};

class Page {
 public:
  Page(const Schedule& schedule, const Goal& goal, const DrawOptions& options)
      : schedule_(schedule),
        goal_(goal),
        options_(options),
        signs_(options.utf8 ? kUtf8 : kAscii),
        views_(view_rounds(schedule, goal)) {}

  std::string text() {
    title();
    if (options_.states) {
      columns_ = is_all_to_all(goal_) ? route_columns(schedule_, goal_, views_, signs_)
                                      : place_columns(schedule_, goal_, views_, signs_);
      measure();
    }
    // A strip: rounds of one phase side by side, as many as fit. The start goes with the first
    // phase.
    for (std::size_t first = 0; first < views_.size();) {
      std::size_t last = first + 1;
      const std::string& name = views_[std::min(first == 0 ? 1 : first, views_.size() - 1)].phase;
      while (last < views_.size() && views_[last].phase == name) ++last;
      if (!name.empty()) {
        line("");
        line(painted(name, Paint::title));
      }
      const std::size_t strips = options_.states ? (last - first + panels_ - 1) / panels_ : 1;
      for (std::size_t strip = 0; strip < strips; ++strip) {
        const std::size_t size = (last - first + strips - strip - 1) / (strips - strip);
        draw_strip(first, first + size, strip > 0 || name.empty());
        first += size;
      }
    }
    legend();
    return std::move(out_);
  }

 private:
  void title() {
    std::string text =
        fmt::format("{}: {}, {}, {}", name_of(goal_.collective), counted(schedule_.ranks, "rank"),
                    counted(schedule_.blocks, "block"), counted(schedule_.rounds, "round"));
    if (has_root(goal_.collective)) text += fmt::format(", root {}", goal_.root);
    if (goal_.collective == Collective::send_recv) text += fmt::format(", peer {}", goal_.peer);
    line(painted(text, Paint::title));
  }

  void draw_strip(std::size_t first, std::size_t last, bool set_off) {
    if (set_off) line("");
    for (std::size_t v = std::max<std::size_t>(first, 1); v < last; ++v) arrows(views_[v]);
    if (!options_.states) return;
    if (last > 1) line("");
    tables(first, last);
  }

  void arrows(const RoundView& view) {
    std::vector<Arrow> all;
    for (const TransferView& t : view.transfers) all.push_back(arrow_of(t, goal_, signs_));
    std::string row = fmt::format("  round {:<{}}", view.round, digits(schedule_.rounds - 1));
    const std::string indent(row.size(), ' ');
    bool begun = false;
    for (const Arrow& arrow : merged(all)) {
      note(arrow);
      const std::string item = arrow_text(arrow, schedule_.ranks, signs_);
      if (begun && width_of(row) + 3 + width_of(item) > static_cast<std::size_t>(options_.width)) {
        line(row);
        row = indent;
      }
      row += "   " + item;
      begun = true;
    }
    line(begun ? row : row + "   nothing");
  }

  void note(const Arrow& arrow) {
    if (arrow.is_local) {
      legend_local_ = true;
      return;
    }
    if (arrow.label.empty()) {
      legend_route_ = true;
    } else if (arrow.label[0] == '+') {
      legend_add_ = true;
    } else {
      legend_copy_ = true;
    }
    legend_swap_ = legend_swap_ || arrow.is_swap;
    legend_switch_ = legend_switch_ || arrow.is_switched;
    legend_plane_ = legend_plane_ || arrow.label.find(':') != std::string::npos;
  }

  // Widths: of cells, of panels, and how many panels go side by side.
  void measure() {
    std::size_t widest = 0;
    for (Column& column : columns_) {
      column.width = width_of(column.title);
      for (const auto& view : column.cells) {
        for (const Cell& cell : view) column.width = std::max(column.width, width_of(cell.text));
      }
      widest = std::max(widest, column.width);
    }
    if (!is_all_to_all(goal_)) {
      for (Column& column : columns_) column.width = widest;
    }
    label_width_ = 7 + static_cast<std::size_t>(digits(schedule_.ranks - 1));  // "  rank 3"
    const std::size_t space = static_cast<std::size_t>(std::max(options_.width, 0));
    gap_ = 1;
    const Stripe all{0, columns_.size()};
    if (label_width_ + panel_width(all) > space) gap_ = 0;  // the column for `written` must do
    panels_ = 1;
    while (panels_ < views_.size() &&
           label_width_ + (panels_ + 1) * (panel_width(all) + kBetweenPanels) <=
               space + kBetweenPanels) {
      ++panels_;
    }
    // A round that is wider than the page comes in several stripes, one below the other. A panel
    // begins with a blank; the gap behind its last column is not printed.
    stripes_.clear();
    for (std::size_t begin = 0; begin < columns_.size(); begin = stripes_.back().end) {
      Stripe stripe{begin, begin + 1};
      while (stripe.end < columns_.size() &&
             label_width_ + 1 + panel_width({begin, stripe.end + 1}) - gap_ <= space) {
        ++stripe.end;
      }
      stripes_.push_back(stripe);
    }
  }
  static constexpr std::size_t kBetweenPanels = 3;
  // Columns from one to before the other.
  struct Stripe {
    std::size_t begin, end;
  };
  std::size_t panel_width(Stripe stripe) const {
    std::size_t width = 0;
    for (std::size_t c = stripe.begin; c < stripe.end; ++c) width += 1 + columns_[c].width + gap_;
    return std::max(width, 2 + 6 + static_cast<std::size_t>(digits(schedule_.rounds - 1)));
  }

  void tables(std::size_t first, std::size_t last) {
    for (const Stripe& stripe : stripes_) tables(first, last, stripe);
  }
  void tables(std::size_t first, std::size_t last, Stripe stripe) {
    const std::size_t panel = panel_width(stripe);
    const std::string rule = fmt::format(" {}", signs_.rule);
    // A line: a label, then of each view what of_view(row, v) adds, which is as wide as a panel.
    const auto put = [&](std::string row, const auto& of_view) {
      for (std::size_t v = first; v < last; ++v) {
        if (v > first) row += painted(rule, Paint::faint);
        of_view(row, v);
      }
      line(row);
    };
    // The same of the stripe's columns: of_column(column, v) is a sign and a text, painted.
    const auto put_columns = [&](std::string row, const auto& of_column) {
      put(std::move(row), [&](std::string& text, std::size_t v) {
        text += " ";
        std::size_t used = 0;
        for (std::size_t c = stripe.begin; c < stripe.end; ++c) {
          text += of_column(columns_[c], v);
          text.append(gap_, ' ');
          used += 1 + columns_[c].width + gap_;
        }
        text.append(panel - used, ' ');
      });
    };
    const std::string no_label(label_width_, ' ');
    put(no_label, [&](std::string& text, std::size_t v) {
      const std::string name = v == 0 ? "start" : fmt::format("round {}", views_[v].round);
      text += painted("  " + name, Paint::title) + std::string(panel - 1 - name.size(), ' ');
    });
    if (columns_.size() > 1) {
      put_columns(no_label, [&](const Column& column, std::size_t) {
        return painted(" " + padded(column.title, column.width), Paint::faint);
      });
    }
    for (std::size_t r = 0; r < static_cast<std::size_t>(schedule_.ranks); ++r) {
      put_columns(fmt::format("  rank {:<{}}", r, digits(schedule_.ranks - 1)),
                  [&](const Column& column, std::size_t v) {
                    return painted_cell(column.cells[v][r], column.width);
                  });
    }
  }
  // Its sign and its text; the legend is told what there was.
  std::string painted_cell(const Cell& cell, std::size_t width) {
    const Paint paint = cell.text == signs_.nothing ? Paint::faint
                        : cell.complete             ? Paint::complete
                        : cell.written              ? Paint::fresh
                                                    : Paint::plain;
    legend_written_ = legend_written_ || cell.written;
    legend_all_ = legend_all_ || cell.text == "all";
    legend_sum_ =
        legend_sum_ || (!is_all_to_all(goal_) && cell.text.find(signs_.range) != std::string::npos);
    legend_held_ = legend_held_ || cell.text == signs_.held;
    return painted(std::string(cell.written ? signs_.written : " ") + padded(cell.text, width),
                   paint);
  }

  void legend() {
    std::vector<std::string> items;
    const auto arrow = [&](std::string_view begin, std::string_view label, std::string_view end) {
      return fmt::format("{}{}{}", begin, label, end);
    };
    if (legend_copy_) items.push_back(arrow(signs_.wire, "b", signs_.wire_end) + " copies block b");
    if (legend_add_) items.push_back(arrow(signs_.wire, "+b", signs_.wire_end) + " adds block b");
    if (legend_route_) {
      items.push_back("r " + arrow(signs_.wire, "", signs_.wire_end) + " s moves block r>s");
    }
    if (legend_swap_) items.push_back(arrow(signs_.swap_begin, "", signs_.wire_end) + " both ways");
    if (legend_switch_) {
      items.push_back(arrow(signs_.switched, "", signs_.switched_end) + " through a switch");
    }
    if (legend_plane_ || columns_have_planes()) items.push_back("b' block b of scratch plane 1");
    if (legend_plane_) items.push_back("b:b' from b to b'");
    if (legend_local_) items.push_back("at r: local work");
    if (legend_written_) items.push_back(fmt::format("{} written in this round", signs_.written));
    if (legend_held_) items.push_back(fmt::format("{} held", signs_.held));
    if (legend_sum_) items.push_back(fmt::format("0{}3 sum over ranks 0 to 3", signs_.range));
    if (legend_all_) items.push_back("all: complete");
    if (items.empty()) return;
    line("");
    std::string row;
    for (const std::string& item : items) {
      if (!row.empty() &&
          width_of(row) + 3 + width_of(item) > static_cast<std::size_t>(options_.width)) {
        line(painted(row, Paint::faint));
        row.clear();
      }
      row += (row.empty() ? "" : "   ") + item;
    }
    line(painted(row, Paint::faint));
  }
  bool columns_have_planes() const {
    return std::any_of(columns_.begin(), columns_.end(), [](const Column& column) {
      return column.title.find('\'') != std::string::npos;
    });
  }

  static int digits(int n) { return static_cast<int>(std::to_string(std::max(n, 0)).size()); }
  static std::string padded(const std::string& text, std::size_t width) {
    return text + std::string(width - std::min(width, width_of(text)), ' ');
  }
  std::string painted(const std::string& text, Paint paint) const {
    const std::size_t end = text.find_last_not_of(' ') + 1;  // trailing spaces stay unpainted
    if (!options_.colour || paint == Paint::plain || end == 0) return text;
    return fmt::format("{}{}\x1b[0m{}", kPaints[static_cast<std::size_t>(paint)],
                       text.substr(0, end), text.substr(end));
  }
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }

  const Schedule& schedule_;
  const Goal& goal_;
  const DrawOptions& options_;
  const Signs& signs_;
  const std::vector<RoundView> views_;
  std::vector<Column> columns_;
  std::vector<Stripe> stripes_;
  std::size_t label_width_ = 0, gap_ = 1, panels_ = 1;
  bool legend_copy_ = false, legend_add_ = false, legend_route_ = false, legend_swap_ = false;
  bool legend_switch_ = false, legend_plane_ = false, legend_local_ = false;
  bool legend_written_ = false, legend_held_ = false, legend_all_ = false;
  bool legend_sum_ = false;
  std::string out_;
};

}  // namespace

std::vector<RoundView> view_rounds(const Schedule& schedule, const Goal& goal) {
  Player player(schedule, goal);
  std::vector<RoundView> views{player.start()};
  for (int k = 0; k < schedule.rounds; ++k) views.push_back(player.play(k));
  return views;
}

std::string draw(const Schedule& schedule, const Goal& goal, const DrawOptions& options) {
  return Page(schedule, goal, options).text();
}

}  // namespace rankine
