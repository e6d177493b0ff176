#include "engine/tools/train/train_report.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/units.h"
#include "engine/tools/svg_plot.h"
#include "engine/tools/table.h"

namespace rankine::tools {

std::string title_of(const Training& training) {
  const Mapping& m = training.mapping;
  return fmt::format("{} parameters{}, {} of {} a step, {}: {} of {}\n", training.model.all(),
                     training.model.bytes == 2 ? " in bf16" : "", training.mapping.batch(),
                     counted(training.model.sequence, "character"), describe(m),
                     counted(m.micro_batches, "micro-batch", "micro-batches"), m.micro_batch);
}

std::string text_of(const Outcome& o) {
  const bool parts = o.parts.has_value();
  Table table("step", As("{:.6f}")("loss"), As("{:.6f}")("one thread").when(parts),
              as::text("").when(parts), As("{:.6f}")("in one piece").when(parts));
  const std::size_t steps = o.ranks.losses.size();
  constexpr std::size_t kRows = 10;
  for (std::size_t i = 0; i < steps; ++i) {
    if (i != 0 && (i + 1) * kRows / steps == i * kRows / steps) continue;
    auto& row = table.add(i + 1, o.ranks.losses[i]);
    if (parts)
      row.insert(row.end(),
                 {o.parts->losses[i], o.is_equal(i) ? "equal" : "DIFFERENT", o.whole->losses[i]});
  }
  std::string text = fmt::format("\n{}\n{} in {}", to_text(table), counted(steps, "step"),
                                 format_duration(o.ranks.seconds));
  text += o.parts ? "" : "\n";
  if (o.parts) {
    text += fmt::format(
        "; one thread takes {}\n{} of {} losses are one thread's, {}; in one "
        "piece they differ by at most {:.1e}\n",
        format_duration(o.parts->seconds), o.equal_steps(), steps,
        o.bound == 0 ? "bit for bit" : fmt::format("but for {:g}", o.bound),
        o.largest_difference());
  }
  if (o.diverged()) text += "the loss is no finite number any more: try a lower --rate\n";
  if (!o.plan) return text;
  return text +
         fmt::format("on {} a step takes {}; planned {}: {} computing, {} exposed, {} bubble\n",
                     o.plan->machine.name, format_duration(o.model_step()),
                     format_duration(o.plan->seconds), format_duration(o.plan->computing()),
                     format_duration(o.plan->exposed()), format_duration(o.plan->bubble()));
}

nlohmann::ordered_json json_of(const Training& training, const Outcome& o) {
  nlohmann::ordered_json out = {
      {"ranks", training.mapping.ranks()},  {"mapping", describe(training.mapping)},
      {"parameters", training.model.all()}, {"type", training.model.bytes == 2 ? "bf16" : "f32"},
      {"losses", o.ranks.losses},           {"seconds", o.ranks.seconds}};
  if (o.plan) {
    out["machine"] = o.plan->machine.name;
    out["model_seconds_per_step"] = o.model_step();
    out["planned_seconds_per_step"] = o.plan->seconds;
  }
  if (o.parts) {
    out["one_thread"] = o.parts->losses;
    out["one_piece"] = o.whole->losses;
    out["equal_steps"] = o.equal_steps();
  }
  return out;
}

std::string svg_of(const Training& training, const Outcome& o) {
  Plot plot{.title = fmt::format("Loss while training, {}", describe(training.mapping)),
            .y_label = "nats per character",
            .baseline = {},
            .x_label = "step"};
  const auto add = [&](std::string name, const Curve& curve) {
    PlotCurve& drawn = plot.curves.emplace_back(PlotCurve{.name = std::move(name)});
    for (std::size_t i = 0; i < curve.losses.size(); ++i) {
      if (!std::isfinite(curve.losses[i])) continue;
      drawn.points.push_back({.bytes = static_cast<double>(i + 1), .y = curve.losses[i]});
    }
  };
  if (o.whole) add("in one piece", *o.whole);
  add(describe(training.mapping), o.ranks);
  fit_axes(plot);
  return to_svg(plot);
}

}  // namespace rankine::tools
