#include "engine/tools/scaling.h"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "engine/base/units.h"
#include "engine/tools/answer.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/svg_plot.h"

namespace rankine::tools {
namespace {

// One algorithm among so many ranks. `may_take`: of SimulateOptions.
Result<double> seconds_among(QuestionArguments arguments, const std::string& algorithm, int ranks,
                             std::function<Status(std::uint64_t)> may_take) {
  arguments.algorithm.algorithms = algorithm;
  arguments.algorithm.take("ranks");
  arguments.algorithm.begin.ranks = ranks;
  auto question = question_of(arguments);
  if (!question.ok()) return question.status();
  question->options.ideal_blocks = true;
  question->options.may_take = std::move(may_take);
  const auto answered = answer(std::move(*question));
  if (!answered.ok()) return answered.status();
  return answered->seconds();
}

}  // namespace

Result<Scaling> scale(const QuestionArguments& arguments, int most, std::uint64_t most_steps,
                      Console& console) {
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
    bool ends = false;  // among more ranks it would be more steps still
    for (const int n : out.ranks) {
      const auto tell = [&] {
        if (!progress.due()) return;
        progress.show(fmt::format("{} of {}: {}, {} ranks", out.curves.size(), questions->size(),
                                  curve.algorithm, n));
      };
      tell();
      const auto may_take = [&](std::uint64_t steps) -> Status {
        tell();
        ends = steps > most_steps;
        if (!ends) return {};
        return invalid_argument(fmt::format(
            "that takes more than the {} steps that --most-steps allows", format_size(most_steps)));
      };
      const auto seconds = seconds_among(arguments, curve.algorithm, n, may_take);
      if (seconds.ok()) {
        curve.seconds.emplace_back(n, *seconds);
      } else if (missing.empty() || ends) {
        missing += fmt::format("{}{} among {}{} is left out: {}", missing.empty() ? "" : "; ",
                               curve.algorithm, counted(n, "rank"), ends ? " and more" : "",
                               seconds.status().text());
      }
      if (ends) break;
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
