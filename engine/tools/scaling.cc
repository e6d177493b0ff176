#include "engine/tools/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
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

// Of the steps that one algorithm took among more and more ranks: what they come to among twice as
// many.
class Growth {
 public:
  void took(int ranks, std::uint64_t steps) {
    if (!seen_.empty() && seen_.back().ranks * 2 != ranks) seen_.clear();
    seen_.push_back({ranks, static_cast<double>(steps)});
  }
  // By the lesser of the last two factors; nothing before there are two.
  std::optional<double> guess(int ranks) const {
    if (seen_.size() < 3 || seen_.back().ranks * 2 != ranks) return std::nullopt;
    const auto factor = [this](std::size_t back) {
      const std::size_t at = seen_.size() - back;
      return seen_[at].steps / seen_[at - 1].steps;
    };
    return seen_.back().steps * std::min(factor(1), factor(2));
  }

 private:
  struct Seen {
    int ranks;
    double steps;
  };
  std::vector<Seen> seen_;
};

// "4G" of 2^32, in the units of parse_size(); rounded.
std::string about(double steps) {
  constexpr std::string_view kLetters = "KMGT";
  std::size_t unit = 0;
  for (; steps >= 1024 && unit < kLetters.size(); ++unit) steps /= 1024;
  const std::string_view letter = unit == 0 ? "" : kLetters.substr(unit - 1, 1);
  return fmt::format("{:.{}f}{}", steps, steps < 10 && unit > 0 ? 1 : 0, letter);
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
    Growth growth;
    for (const int n : out.ranks) {
      const auto tell = [&] {
        if (!progress.due()) return;
        progress.show(fmt::format("{} of {}: {}, {} ranks", out.curves.size(), questions->size(),
                                  curve.algorithm, n));
      };
      tell();
      std::uint64_t taken = 0;
      const auto may_take = [&](std::uint64_t steps) -> Status {
        tell();
        taken = steps;
        ends = steps > most_steps;
        if (!ends) return {};
        return invalid_argument(fmt::format("that takes {} steps or more; --most-steps allows {}",
                                            about(static_cast<double>(steps)),
                                            format_size(most_steps)));
      };
      const auto answered = [&]() -> Result<double> {
        const auto guess = growth.guess(n);
        ends = guess && *guess > static_cast<double>(most_steps);
        if (!ends) return seconds_among(arguments, curve.algorithm, n, may_take);
        return invalid_argument(
            fmt::format("as they have grown that takes some {} steps; --most-steps allows {}",
                        about(*guess), format_size(most_steps)));
      };
      const auto seconds = answered();
      if (seconds.ok()) {
        growth.took(n, taken);
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
  fade_all_but_least(plot);
  fit_axes(plot);
  return to_svg(plot);
}

}  // namespace rankine::tools
