#include "engine/read/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/base/units.h"

namespace rankine {
namespace {

std::vector<int> sorted(std::vector<int> indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::string blocks_text(const std::vector<Block>& blocks, int plane, const CollectiveSpec& goal,
                        const Signs& signs) {
  if (is_all_to_all(goal)) return routes_text(blocks, goal, signs) + primes(plane);
  return set_text(sorted(blocks), goal.blocks, ",", signs, primes(plane));
}

// True for a block of an all-to-all that goes straight from its source to its target: it needs no
// label.
bool is_own_route(const TransferView& t, const CollectiveSpec& goal) {
  const int parts = parts_of(goal);
  if (!is_all_to_all(goal) || t.from.size() != 1 || t.to.size() != 1 ||
      t.kind != TransferKind::copy || t.what_plane != 0 || t.where_plane != 0 ||
      static_cast<int>(t.what.size()) != parts) {
    return false;
  }
  return std::all_of(t.what.begin(), t.what.end(), [&](Block b) {
    return goal.source_of(b) == t.from[0] && goal.target_of(b) == t.to[0];
  });
}

Arrow arrow_of(const TransferView& t, const CollectiveSpec& goal, const Signs& signs) {
  Arrow arrow{t.from, t.to, "", t.from.size() > 1 || t.to.size() > 1, false, false};
  arrow.is_local = t.from == t.to && t.from.size() == 1;
  const std::string what = blocks_text(t.what, t.what_plane, goal, signs);
  const std::string where = blocks_text(t.where, t.where_plane, goal, signs);
  const bool adds = t.kind == TransferKind::reduce;
  if (arrow.is_local) {
    arrow.label = fmt::format("{} {} {}", where, adds ? "+=" : "=", what);
  } else if (!is_own_route(t, goal)) {
    arrow.label = (adds ? "+" : "") + what + (what == where ? "" : ":" + where);
  }
  return arrow;
}

using End = std::vector<Rank> Arrow::*;
constexpr End kFrom = &Arrow::from, kTo = &Arrow::to;

// Merges messages that are equal at one end into one with all ranks of the other end.
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

std::vector<Arrow> arrows_of(const RoundView& view, const CollectiveSpec& goal,
                             const Signs& signs) {
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

namespace {

enum class Paint : unsigned char { plain, title, faint, fresh, complete };
constexpr std::array<std::string_view, 5> kPaints = {"", "\x1b[1m", "\x1b[2m", "\x1b[33m",
                                                     "\x1b[32m"};

// The items of the legend, in its order.
enum class Noted : unsigned char {
  copy,
  add,
  route,
  swap,
  switched,
  plane,
  between_planes,
  local,
  written,
  held,
  sum,
  all
};
constexpr std::size_t kNoted = 12;

class Page {
 public:
  Page(const Schedule& schedule, const CollectiveSpec& goal, const DrawOptions& options)
      : schedule_(schedule),
        goal_(goal),
        options_(options),
        signs_(options.utf8 ? kUtf8 : kAscii),
        views_(view_rounds(schedule, goal)) {}

  std::string text() {
    title();
    if (options_.states) {
      columns_ = columns_of(schedule_, goal_, views_, signs_);
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
    const std::string begin =
        fmt::format("  round {:<{}}", view.round, digits(schedule_.rounds - 1));
    std::vector<std::string> items;
    for (const Arrow& arrow : arrows_of(view, goal_, signs_)) {
      note(arrow);
      items.push_back(arrow_text(arrow, schedule_.ranks, signs_));
    }
    if (items.empty()) items.push_back("nothing");
    for (const std::string& row : rows_of(items, begin)) line(row);
  }
  // Puts items side by side, as many as a row has room for. The first row begins with `begin`,
  // others with as many blanks.
  std::vector<std::string> rows_of(const std::vector<std::string>& items,
                                   const std::string& begin) const {
    std::vector<std::string> rows{begin};
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0 &&
          width_of(rows.back()) + 3 + width_of(items[i]) > static_cast<std::size_t>(options_.width))
        rows.emplace_back(begin.size(), ' ');
      rows.back() += (rows.back().empty() ? "" : "   ") + items[i];
    }
    return rows;
  }

  void note(Noted noted, bool is_there) {
    if (is_there) noted_.insert(noted);
  }
  void note(const Arrow& arrow) {
    note(Noted::local, arrow.is_local);
    if (arrow.is_local) return;
    const bool is_route = arrow.label.empty(), adds = arrow.label.starts_with('+');
    note(Noted::route, is_route);
    note(Noted::add, adds);
    note(Noted::copy, !is_route && !adds);
    note(Noted::swap, arrow.is_swap);
    note(Noted::switched, arrow.is_switched);
    const bool has_plane = arrow.label.find(':') != std::string::npos;
    note(Noted::plane, has_plane);
    note(Noted::between_planes, has_plane);
  }

  // Sets the widths of cells and panels, and the number of panels side by side.
  void measure() {
    std::size_t widest = 0;
    for (Column& column : columns_) {
      column.width = width_of(column.title);
      note(Noted::plane, column.title.find('\'') != std::string::npos);
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
    // no gap: the column of the `written` sign separates enough
    if (label_width_ + panel_width(all) > space) gap_ = 0;
    panels_ = 1;
    while (panels_ < views_.size() &&
           label_width_ + (panels_ + 1) * (panel_width(all) + kBetweenPanels) <=
               space + kBetweenPanels) {
      ++panels_;
    }
    // A round wider than the page is cut into several stripes, one below the other. A panel begins
    // with a blank; the gap behind its last column is not printed.
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
  // Columns [begin, end).
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
    // Puts a line: a label, then for each view the text of of_view(row, v), as wide as a panel.
    const auto put = [&](std::string row, const auto& of_view) {
      for (std::size_t v = first; v < last; ++v) {
        if (v > first) row += painted(rule, Paint::faint);
        of_view(row, v);
      }
      line(row);
    };
    // As put(), for the stripe's columns: of_column(column, v) returns a sign and a text, painted.
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
  // The cell's sign and text; notes them for the legend.
  std::string painted_cell(const Cell& cell, std::size_t width) {
    const Paint paint = cell.text == signs_.nothing ? Paint::faint
                        : cell.complete             ? Paint::complete
                        : cell.written              ? Paint::fresh
                                                    : Paint::plain;
    note(Noted::written, cell.written);
    note(Noted::all, cell.text == "all");
    note(Noted::sum, !is_all_to_all(goal_) && cell.text.find(signs_.range) != std::string::npos);
    note(Noted::held, cell.text == signs_.held);
    return painted(std::string(cell.written ? signs_.written : " ") + padded(cell.text, width),
                   paint);
  }

  void legend() {
    const auto arrow = [&](std::string_view label) {
      return fmt::format("{}{}{}", signs_.wire, label, signs_.wire_end);
    };
    const std::array<std::string, kNoted> texts = {
        arrow("b") + " copies block b",
        arrow("+b") + " adds block b",
        "r " + arrow("") + " s moves block r>s",
        fmt::format("{}{} both ways", signs_.swap_begin, signs_.wire_end),
        fmt::format("{}{} through a switch", signs_.switched, signs_.switched_end),
        "b' block b of scratch plane 1",
        "b:b' from b to b'",
        "at r: local work",
        fmt::format("{} written in this round", signs_.written),
        fmt::format("{} held", signs_.held),
        fmt::format("0{}3 sum over ranks 0 to 3", signs_.range),
        "all: complete"};
    std::vector<std::string> items;
    for (const Noted noted : noted_) items.push_back(texts[static_cast<std::size_t>(noted)]);
    if (items.empty()) return;
    line("");
    for (const std::string& row : rows_of(items, "")) line(painted(row, Paint::faint));
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
  const CollectiveSpec& goal_;
  const DrawOptions& options_;
  const Signs& signs_;
  const std::vector<RoundView> views_;
  std::vector<Column> columns_;
  std::vector<Stripe> stripes_;
  std::size_t label_width_ = 0, gap_ = 1, panels_ = 1;
  std::set<Noted> noted_;
  std::string out_;
};

}  // namespace

std::string draw(const Schedule& schedule, const CollectiveSpec& goal, const DrawOptions& options) {
  return Page(schedule, goal, options).text();
}

}  // namespace rankine
