#include "bench/rivals/plots.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "bench/rivals/batch.h"
#include "engine/tools/svg_plot.h"

namespace rankine::rivals {
namespace {

using nlohmann::json;
using tools::Plot;
using tools::PlotCurve;

// What lies above is cut off: on a machine that was busy meanwhile, ratios may be in the thousands.
constexpr double kHighestRatio = 50;

struct Range {
  double low = std::numeric_limits<double>::max();
  double high = 0;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// One curve of a protocol's rows; read(row) may have nothing.
PlotCurve curve(const json& rows, std::string_view protocol, std::string name,
                const std::function<std::optional<double>(const json&)>& read) {
  PlotCurve result{std::move(name)};
  for (const json& row : rows) {
    if (row.at("protocol") != protocol) continue;
    if (const auto y = read(row); y && *y > 0)
      result.points.push_back({row.at("size"), *y, !row.value("steady", true)});
  }
  return result;
}

std::vector<PlotCurve> times(const json& document, std::string_view protocol) {
  std::vector<PlotCurve> curves;
  const json& context = document.at("context");
  // Rankine and the limit first, so that they always have the same colours.
  std::vector<std::string> names = {our_name(document)};
  for (const std::string name : context.at("order"))
    if (name != names[0]) names.push_back(name);
  const auto time_of = [&](const std::string& name) {
    return [name](const json& row) -> std::optional<double> {
      if (!row.contains("contenders") || !row.at("contenders").contains(name)) return {};
      return row.at("contenders").at(name).at("median_us").get<double>();
    };
  };
  curves.push_back(curve(document.at("rows"), protocol, names[0], time_of(names[0])));
  curves.push_back(
      curve(document.at("rows"), protocol, "limit", [](const json& row) -> std::optional<double> {
        if (!row.contains("limit")) return {};
        return row.at("limit").at("us").get<double>();
      }));
  for (std::size_t i = 1; i < names.size(); ++i)
    curves.push_back(curve(document.at("rows"), protocol, names[i], time_of(names[i])));
  return curves;
}

std::vector<PlotCurve> ratios(const json& document, std::string_view protocol) {
  std::vector<PlotCurve> curves;
  const std::pair<const char*, const char*> kShown[] = {{"rankine/expert", "rankine / best expert"},
                                                        {"rankine/mpi", "rankine / best MPI"},
                                                        {"rankine/limit", "rankine / limit"}};
  for (const auto& [title, name] : kShown) {
    const std::string key = title;
    curves.push_back(
        curve(document.at("rows"), protocol, name, [&](const json& row) -> std::optional<double> {
          if (!row.contains("ratios") || !row.at("ratios").contains(key)) return {};
          return row.at("ratios").at(key).get<double>();
        }));
  }
  return curves;
}

void drop_empty(std::vector<std::vector<PlotCurve>*> same) {
  // A curve stays where any protocol has it, so that colours agree.
  for (std::size_t i = same.front()->size(); i-- > 0;) {
    const bool empty = std::all_of(same.begin(), same.end(),
                                   [&](auto* curves) { return (*curves)[i].points.empty(); });
    if (!empty) continue;
    for (auto* curves : same) curves->erase(curves->begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

std::string subject(const json& document) {
  const json& context = document.at("context");
  std::string text = context.at("collective");
  if (context.value("in_place", false)) text += " in place";
  text += ", " + std::to_string(context.at("ranks").get<int>()) +
          (context.value("processes", false) ? " processes" : " ranks");
  if (context.value("crowded", false))
    text += " on " + std::to_string(context.at("cpus").size()) + " cores";
  return text;
}

std::string our_name(const json& document) {
  return document.at("context").value("processes", false) ? "rankine_processes" : "rankine";
}

std::string plot_svg(const json& document) {
  std::vector<std::string_view> protocols;
  Range sizes;
  for (const json& row : document.at("rows")) {
    sizes.take(row.at("size"));
    for (const std::string_view name : kProtocolNames) {
      if (row.at("protocol") == name &&
          std::find(protocols.begin(), protocols.end(), name) == protocols.end())
        protocols.push_back(name);
    }
  }
  if (protocols.empty()) return tools::to_svg(Plot{.title = subject(document) + ": no rows"});
  if (sizes.low == sizes.high) sizes.high *= 2;

  std::vector<std::vector<Plot>> rows(2);
  for (std::size_t kind = 0; kind < 2; ++kind) {
    std::vector<std::vector<PlotCurve>> all;
    for (const std::string_view protocol : protocols)
      all.push_back(kind == 0 ? times(document, protocol) : ratios(document, protocol));
    std::vector<std::vector<PlotCurve>*> same;
    for (auto& curves : all) same.push_back(&curves);
    drop_empty(same);
    Range y;
    for (const auto& curves : all) {
      for (const PlotCurve& one : curves) {
        for (const tools::PlotPoint& point : one.points) y.take(point.y);
      }
    }
    if (kind == 1) y.take(1);
    if (y.high <= 0) y = {0.1, 10};
    for (std::size_t i = 0; i < protocols.size(); ++i) {
      Plot plot;
      plot.title = kind == 0 ? subject(document) + ", " + std::string(protocols[i])
                             : "Rankine's time over others', " + std::string(protocols[i]);
      plot.y_label = kind == 0 ? "us per call" : "ratio; below 1 Rankine is faster";
      plot.bytes_low = sizes.low;
      plot.bytes_high = sizes.high;
      plot.y_low = y.low / 1.3;
      plot.y_high = kind == 0 ? y.high * 1.3 : std::min(y.high * 1.3, kHighestRatio);
      plot.log_y = true;
      plot.baseline.reset();
      if (kind == 1) plot.baseline = 1;
      plot.legend = i + 1 == protocols.size();
      plot.curves = std::move(all[i]);
      rows[kind].push_back(std::move(plot));
    }
  }
  return tools::grid_to_svg(rows);
}

}  // namespace rankine::rivals
