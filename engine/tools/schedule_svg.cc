#include "engine/tools/schedule_svg.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "engine/read/draw.h"
#include "engine/tools/svg.h"

namespace rankine::tools {
namespace {

constexpr int kLeft = 90, kTop = 70, kColumn = 90, kMargin = 40;

int x_of(Rank r) { return kLeft + r * kColumn; }

// "3", "0..3", "0,2,5", and no more than there is room for.
std::string blocks_text(std::vector<Block> blocks) {
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  if (blocks.size() > 1 &&
      blocks.back() - blocks.front() + 1 == static_cast<Block>(blocks.size())) {
    return fmt::format("{}..{}", blocks.front(), blocks.back());
  }
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, blocks.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", blocks[i]);
  }
  return blocks.size() > kShown ? text + ",.." : text;
}

using Arrows = std::map<std::tuple<Rank, Rank, Act>, std::vector<Block>>;

Arrows arrows_of(const RoundView& view) {
  Arrows arrows;
  for (const TransferView& transfer : view.transfers) {
    for (const Rank from : transfer.from) {
      for (const Rank to : transfer.to) {
        auto& blocks = arrows[{from, to, transfer.act}];
        blocks.insert(blocks.end(), transfer.what.begin(), transfer.what.end());
      }
    }
  }
  return arrows;
}

// Places for words, none over another.
class Labels {
 public:
  bool take(int x, int y, int width) {
    constexpr int kLine = 12, kBetween = 10;
    for (const auto& [other_x, other_y, other_width] : taken_) {
      if (std::abs(x - other_x) < (width + other_width) / 2 + kBetween &&
          std::abs(y - other_y) < kLine) {
        return false;
      }
    }
    taken_.emplace_back(x, y, width);
    return true;
  }

 private:
  std::vector<std::tuple<int, int, int>> taken_;
};

// Where a round is drawn. Rounds in which many send to many are taller, for the words' sake.
struct Band {
  int top, height;
};

int height_of(const std::vector<RoundView>& rounds, int ranks) {
  constexpr int kUsual = 70, kTallest = 300, kOfAnArrow = 4;
  std::size_t most = 0;
  for (const RoundView& view : rounds) most = std::max(most, arrows_of(view).size());
  const int arrows = static_cast<int>(std::min<std::size_t>(most, kTallest));
  return arrows <= 2 * ranks ? kUsual : std::clamp(kOfAnArrow * arrows, kUsual, kTallest);
}

std::string arrow(Rank from, Rank to, Act act, const std::vector<Block>& blocks, Band band,
                  Labels& labels) {
  const bool adds = act == Act::reduce;
  const char* colour = adds ? "#d55e00" : "#0072b2";
  const std::string label = fmt::format("{}{}", adds ? "+" : "", blocks_text(blocks));
  if (from == to) {  // local work
    return fmt::format(
        "<circle cx=\"{0}\" cy=\"{1}\" r=\"5\" fill=\"{2}\"/>\n"
        "<text x=\"{3}\" y=\"{1}\" fill=\"{2}\">{4}</text>\n",
        x_of(from), band.top + band.height / 2, colour, x_of(from) + 8, xml_text(label));
  }
  const int x1 = x_of(from), x2 = x_of(to), y1 = band.top + 8, y2 = band.top + band.height - 8;
  int x = 0, y = 0;
  // Nearer to the sender, so that the two ways of an exchange do not meet; else where there is
  // room.
  for (const int percent : {30, 20, 40, 60, 75, 50, 85, 30}) {
    x = x1 + (x2 - x1) * percent / 100;
    y = y1 + (y2 - y1) * percent / 100;
    if (labels.take(x, y, text_width(label))) break;
  }
  return fmt::format(
      "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{3}\" stroke=\"{4}\" "
      "stroke-width=\"1.5\" marker-end=\"url(#{5})\"/>\n"
      "<text x=\"{6}\" y=\"{7}\" fill=\"{4}\" text-anchor=\"middle\" stroke=\"white\" "
      "stroke-width=\"3\" paint-order=\"stroke\">{8}</text>\n",
      x1, y1, x2, y2, colour, adds ? "adds" : "copies", x, y, xml_text(label));
}

std::string arrow_head(const char* name, const char* colour) {
  return fmt::format(
      "<marker id=\"{}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" "
      "fill=\"{}\"/></marker>\n",
      name, colour);
}

}  // namespace

std::string schedule_svg(std::string_view title, const Schedule& schedule, const Goal& goal,
                         int first, int count) {
  const std::vector<RoundView> rounds = view_rounds(schedule, goal);
  const int row = height_of(rounds, schedule.ranks);
  const int height = kTop + count * row + kMargin;
  std::string body =
      "<defs>\n" + arrow_head("copies", "#0072b2") + arrow_head("adds", "#d55e00") + "</defs>\n";
  body += fmt::format("<text x=\"20\" y=\"24\" font-size=\"15\">{}</text>\n", xml_text(title));
  for (Rank r = 0; r < schedule.ranks; ++r) {
    body += fmt::format(
        "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">rank {2}</text>\n"
        "<line x1=\"{0}\" y1=\"{3}\" x2=\"{0}\" y2=\"{4}\" stroke=\"#bbbbbb\"/>\n",
        x_of(r), kTop - 12, r, kTop, kTop + count * row);
  }
  for (const RoundView& view : rounds) {
    if (view.round < first || view.round >= first + count) continue;
    const Band band{kTop + (view.round - first) * row, row};
    body +=
        fmt::format("<text x=\"10\" y=\"{}\">round {}</text>\n", band.top + row / 2, view.round);
    body += fmt::format("<line x1=\"10\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#eeeeee\"/>\n",
                        band.top, x_of(schedule.ranks - 1) + kMargin);
    Labels labels;
    for (const auto& [ends, blocks] : arrows_of(view)) {
      const auto& [from, to, act] = ends;
      body += arrow(from, to, act, blocks, band, labels);
    }
  }
  const int words = 40 + 8 * static_cast<int>(title.size());
  return svg_picture(std::max(words, x_of(schedule.ranks - 1) + kColumn), height, 12, body);
}

}  // namespace rankine::tools
