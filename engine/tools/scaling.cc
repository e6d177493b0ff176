#include "engine/tools/scaling.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/units.h"
#include "engine/tools/answer.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/svg_plot.h"

namespace rankine::tools {
namespace {

// One algorithm among so many ranks.
Result<double> seconds_among(QuestionArguments arguments, const std::string& algorithm, int ranks) {
  arguments.algorithm.algorithms = algorithm;
  arguments.algorithm.take("ranks");
  arguments.algorithm.begin.ranks = ranks;
  auto question = question_of(arguments);
  if (!question.ok()) return question.status();
  question->options.ideal_blocks = true;
  question->options.most_transfers = kMostScaledMessages;
  const auto answered = answer(std::move(*question));
  if (!answered.ok()) return answered.status();
  return answered->seconds();
}

}  // namespace

Result<Scaling> scale(const QuestionArguments& arguments, int most, Console& console) {
  Scaling out;
  const auto params = read_params(arguments.algorithm);
  if (!params.ok()) return params.status();
  const int fewest = params->ranks;
  if (most <= fewest) {
    return invalid_argument(fmt::format(
        "--ranks-to is {}; allowed are more than the {} ranks of --ranks", most, fewest));
  }
  for (int n = fewest; n<most; n = n> most / 2 ? most : 2 * n) out.ranks.push_back(n);
  out.ranks.push_back(most);
  std::vector<std::string> left_out;
  const auto questions = questions_of(arguments, left_out);
  if (!questions.ok()) return questions.status();
  Progress progress(console);
  for (const Question& question : *questions) {
    ScalingCurve& curve = out.curves.emplace_back();
    curve.algorithm = question.algorithm->name;
    std::string missing;
    for (const int n : out.ranks) {
      if (progress.due()) progress.show(fmt::format("{}, {} ranks", curve.algorithm, n));
      const auto seconds = seconds_among(arguments, curve.algorithm, n);
      if (seconds.ok()) {
        curve.seconds.emplace_back(n, *seconds);
      } else if (missing.empty()) {
        missing = fmt::format("{} among {} is left out: {}", curve.algorithm, counted(n, "rank"),
                              seconds.status().text());
      }
    }
    if (!missing.empty()) out.notes.push_back(missing);
  }
  std::erase_if(out.curves, [](const ScalingCurve& curve) { return curve.seconds.empty(); });
  if (out.curves.empty()) return invalid_argument(out.notes.front());
  return out;
}

Table table_of(const Scaling& scaling) {
  Table table("ranks");
  for (const ScalingCurve& curve : scaling.curves) {
    table.columns.push_back(as::model_time(curve.algorithm, "", "-"));
  }
  for (const int n : scaling.ranks) {
    auto& row = table.add(n);
    for (const ScalingCurve& curve : scaling.curves) {
      row.emplace_back();
      for (const auto& [ranks, seconds] : curve.seconds) {
        if (ranks == n) row.back() = seconds;
      }
    }
  }
  return table;
}

std::string json_of(const Scaling& scaling) {
  std::string lines;
  for (const ScalingCurve& curve : scaling.curves) {
    for (const auto& [ranks, seconds] : curve.seconds) {
      const Json line = {{"algorithm", curve.algorithm}, {"ranks", ranks}, {"time", seconds}};
      lines += line.dump() + "\n";
    }
  }
  return lines;
}

std::string svg_of(const Scaling& scaling, const std::string& title) {
  constexpr double kMicroseconds = 1e6;
  Plot plot{.title = title, .y_label = "microseconds"};
  plot.log_y = true;
  plot.baseline = {};
  plot.x_label = "ranks";
  plot.log_x = true;
  for (const ScalingCurve& curve : scaling.curves) {
    PlotCurve& drawn = plot.curves.emplace_back();
    drawn.name = curve.algorithm;
    for (const auto& [ranks, seconds] : curve.seconds) {
      if (seconds > 0)
        drawn.points.push_back({static_cast<double>(ranks), seconds * kMicroseconds});
    }
  }
  fit_axes(plot);
  return to_svg(plot);
}

}  // namespace rankine::tools
