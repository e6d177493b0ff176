#include "engine/tools/plan/plan_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/units.h"
#include "engine/tools/menu.h"
#include "engine/tools/plan/measured_machine.h"
#include "engine/tools/plan/nearest.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

template <class Enum>
std::vector<std::string_view> names_of(std::size_t count) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(name_of(static_cast<Enum>(i)));
  return names;
}

// One of several names, by its place.
template <class Enum>
struct Named {
  std::vector<std::string_view> names;
  Result<Enum> operator()(std::string_view argument, std::string_view text) const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return static_cast<Enum>(i);
    }
    return unknown_name(argument, text, names);
  }
};

Result<std::optional<int>> read_count(std::string_view argument, std::string_view text) {
  const auto value = parse_whole(argument, text, 1, 1 << 24);
  if (!value.ok()) return value.status();
  return std::optional(*value);
}

// "dp,tp": these from the inside out, the others around them as ever.
Result<std::array<Axis, kAxes>> read_nested(std::string_view argument, std::string_view text) {
  std::array<Axis, kAxes> nested{};
  std::size_t n = 0;
  const auto has = [&](Axis axis) {
    return std::find(nested.begin(), nested.begin() + n, axis) != nested.begin() + n;
  };
  const auto read = Named<Axis>{names_of<Axis>(kAxes)};
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const auto axis = read(argument, rest.substr(0, end));
    if (!axis.ok()) return axis.status();
    if (has(*axis)) {
      return invalid_argument(
          fmt::format("{} is '{}'; {} stands there twice", argument, text, name_of(*axis)));
    }
    nested[n++] = *axis;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const Axis axis : kNested) {
    if (!has(axis)) nested[n++] = axis;
  }
  return nested;
}

Result<double> read_factor(std::string_view argument, std::string_view text) {
  const auto value = parse_decimal(argument, text);
  if (!value.ok()) return value.status();
  if (value->to_double() > 0) return value->to_double();
  return invalid_argument(fmt::format("{} is '{}'; it must be above 0", argument, text));
}

// Sequences of a step: as asked, or micro-batches as asked, or one.
Status set_batch(PlanArguments& a) {
  if (a.batch && a.micro_batches) {
    return invalid_argument(
        fmt::format("--micro-batches is {}; with --batch, which is {}, it follows by itself",
                    *a.micro_batches, *a.batch));
  }
  if (a.micro_batches) a.mapping.micro_batches = *a.micro_batches;
  if (!a.batch) return {};
  const int each = a.mapping.micro_batch * a.mapping.data_parallel();
  if (*a.batch % each != 0) {
    const int below = *a.batch / each * each;
    return invalid_argument(
        fmt::format("--batch is {}; {} replicas with micro-batches of {} take a multiple of {}: "
                    "the nearest {}",
                    *a.batch, a.mapping.data_parallel(), a.mapping.micro_batch, each,
                    nearest_of(below, below + each)));
  }
  a.mapping.micro_batches = *a.batch / each;
  return {};
}

}  // namespace

void set_model(PlanArguments& a) {
  if (a.sequence) a.model.sequence = *a.sequence;
  if (a.bytes) a.model.bytes = *a.bytes;
}

Status settle(PlanArguments& a) {
  set_model(a);
  if (Status s = check_model(a.model); !s.ok()) return s;
  if (Status s = set_batch(a); !s.ok()) return s;
  if (a.ranks && *a.ranks != a.mapping.ranks()) {
    const int others = a.mapping.ranks() / a.mapping[Axis::dp], below = *a.ranks / others;
    const auto with_dp = [&](std::int64_t dp) {
      return fmt::format("{} (dp {})", dp * others, dp);
    };
    const int above = below * others == *a.ranks ? 0 : below + 1;
    return invalid_argument(
        fmt::format("--ranks is {}; the axes multiply to {}; with another dp the nearest {}",
                    *a.ranks, a.mapping.ranks(), nearest_of(below, above, with_dp)));
  }
  if (Status s = check_mapping(a.model, a.mapping); !s.ok() || !a.is_here) return s;
  auto here = measure_machine();
  if (here.ok()) a.machine = std::move(*here);
  return here.status();
}

std::string known_text() {
  std::string text = "Models:\n";
  for (const PublishedModel& one : published_models()) {
    text += fmt::format("  {:13} {}\n", one.model.name, one.source);
  }
  text += "Machines:\n";
  for (const KnownMachine& one : known_machines()) {
    text += fmt::format("  {:13} {}\n", one.machine.name, one.source);
  }
  text +=
      fmt::format("  {:13} {}\n", kHere, "this one, measured in two seconds: a core for each rank");
  return text;
}

void add_plan_arguments(Command app, PlanArguments& a, const std::string& ranks_help) {
  add_argument(
      app, "model", a.model,
      [](std::string_view argument, std::string_view text) {
        return find_model(argument, std::string(text));
      },
      "MODEL", "a model named below, or a JSON file")
      .required();
  add_argument(
      app, "--machine", a.machine,
      [&a](std::string_view argument, std::string_view text) -> Result<Machine> {
        a.is_here = text == kHere;
        return a.is_here ? a.machine : find_machine(argument, std::string(text));
      },
      "MACHINE", "a machine named below, or a JSON file (a100)");
  constexpr std::string_view kAxisHelp[kAxes] = {
      "ranks that share every matrix (1)", "ranks that share every sequence (1)",
      "ranks that share the experts (1)", "ranks with a batch and all parameters of their own (1)",
      "pipeline stages (1)"};
  for (std::size_t i = 0; i < kAxes; ++i) {
    add_argument(app, fmt::format("--{}", name_of(static_cast<Axis>(i))), a.mapping.axes[i],
                 Whole{1, 1 << 20}, "N", std::string(kAxisHelp[i]));
  }
  add_argument(app, "--nested", a.mapping.nested, read_nested, "AXES",
               "from the inside out: what lies inside a node and what between (tp,sp,ep,dp,pp)");
  add_argument(app, "-t,--ranks", a.ranks, read_count, "N", ranks_help);
  add_argument(app, "--batch", a.batch, read_count, "N", "sequences of a step");
  add_argument(app, "--micro-batch", a.mapping.micro_batch, Whole{1, 1 << 20}, "N",
               "sequences that go through together (1)");
  add_argument(app, "--micro-batches", a.micro_batches, read_count, "N",
               "of a step, in place of --batch (1)");
  add_argument(app, "--sequence", a.sequence, read_count, "N", "tokens (the model's)");
  add_argument(app, "--bytes", a.bytes, read_count, "N",
               "of a parameter or an activation: 1, 2 or 4 (the model's)");
  app.add_flag(
      "--split-norms", a.mapping.splits_norms,
      "between its matrices tp splits the sequence: reduce-scatter and all-gather in place "
      "of all-reduce");
  add_argument(app, "--interleave", a.mapping.interleave, Whole{1, 1 << 10}, "N",
               "parts of the model per stage (1)");
  add_argument(app, "--order", a.mapping.order,
               Named<PipelineOrder>{names_of<PipelineOrder>(kPipelineOrders)}, "NAME",
               "of a stage's work: gpipe, 1f1b, zb1p, zb2p, zbv (1f1b)");
  add_argument(app, "--recompute", a.mapping.recompute,
               Named<Recompute>{names_of<Recompute>(kRecomputes)}, "NAME",
               "none, selective (attention), full (none)");
  add_argument(app, "--zero", a.mapping.zero, Whole{0, 3}, "N",
               "what dp splits: 1 optimizer, 2 gradients too, 3 parameters too (0)");
  add_argument(app, "--router-skew", a.mapping.router_skew, read_factor, "X",
               "tokens of the busiest rank along ep, over their mean (1)");
  add_argument(app, "--capacity", a.mapping.capacity, read_factor, "X",
               "rows that every expert takes, over the mean, padded and dropped (as many as come)");
  app.add_flag("--send-once", a.mapping.sends_once,
               "a token goes once to a rank, however many of its experts are there");
  add_argument(app, "--gradient-bytes", a.mapping.gradient_bytes, Whole{2, 4}, "N", "2 or 4 (4)");
  add_argument(app, "--bucket", a.mapping.bucket_bytes, parse_size, "SIZE",
               "gradients that go together (25M)");
  add_menu(app, a.menu);
}

}  // namespace rankine::tools
