#include "engine/tools/plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/units.h"
#include "engine/tools/svg.h"

namespace rankine::tools {
namespace {

struct Look {
  std::string_view name, colour;
};
// Told apart by people who see no red or green as well.
constexpr Look kLooks[] = {{"forward", "#4477aa"}, {"backward", "#ccbb44"}, {"weights", "#66ccee"}};

const Look& look_of(Pass pass) { return kLooks[static_cast<std::size_t>(pass)]; }

}  // namespace

std::string timeline_svg(std::string_view title, const Pipeline& pipeline) {
  constexpr int kLeft = 70, kTop = 64, kWidth = 1100, kRow = 22;
  const double scale = kWidth / std::max(pipeline.end(), 1e-30);
  const int stages = static_cast<int>(pipeline.stages.size());
  std::string body =
      fmt::format("<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n", xml_text(title));
  int x = kLeft;
  for (const Look& look : kLooks) {
    body += fmt::format(
        "<rect x=\"{}\" y=\"32\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" y=\"44\">{}"
        "</text>\n",
        x, look.colour, x + 19, look.name);
    x += 100;
  }
  for (int s = 0; s < stages; ++s) {
    const int y = kTop + s * kRow;
    body += fmt::format("<text x=\"10\" y=\"{}\">stage {}</text>\n", y + 15, s);
    for (const Task& task : pipeline.stages[static_cast<std::size_t>(s)]) {
      const double left = kLeft + task.begin * scale, width = (task.end - task.begin) * scale;
      body += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"white\" "
          "stroke-width=\"0.4\"><title>{} of micro-batch {}{}, {} to {}</title></rect>\n",
          left, y, width, kRow - 3, look_of(task.pass).colour, look_of(task.pass).name,
          task.micro_batch, task.part > 0 ? fmt::format(", part {}", task.part) : "",
          format_duration(task.begin), format_duration(task.end));
      if (width >= 16) {
        body += fmt::format("<text x=\"{:.2f}\" y=\"{}\" font-size=\"10\">{}</text>\n", left + 3,
                            y + 14, task.micro_batch);
      }
    }
  }
  const int bottom = kTop + stages * kRow;
  body += fmt::format(
      "<text x=\"{}\" y=\"{}\">0</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
      kLeft, bottom + 16, kLeft + kWidth, bottom + 16, format_duration(pipeline.end()));
  return svg_picture(kLeft + kWidth + 20, bottom + 30, 12, body);
}

std::string timeline_trace(const Pipeline& pipeline) {
  using Json = nlohmann::ordered_json;
  constexpr double kMicroseconds = 1e6;
  Json events = Json::array();
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", s},
                      {"args", {{"name", fmt::format("stage {}", s)}}}});
    for (const Task& task : pipeline.stages[s]) {
      events.push_back({{"ph", "X"},
                        {"name", fmt::format("{} {}", look_of(task.pass).name, task.micro_batch)},
                        {"cat", look_of(task.pass).name},
                        {"pid", 0},
                        {"tid", s},
                        {"ts", task.begin * kMicroseconds},
                        {"dur", (task.end - task.begin) * kMicroseconds},
                        {"args", {{"micro_batch", task.micro_batch}, {"part", task.part}}}});
    }
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace rankine::tools
