#include "engine/tools/plan/plan.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/replace_file.h"
#include "engine/base/units.h"
#include "engine/tools/menu.h"
#include "engine/tools/plan/plan_report.h"
#include "engine/tools/plan/search.h"
#include "engine/tools/plan/step.h"
#include "engine/tools/plan/timeline.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct PlanArguments {
  Model model;
  Machine machine = known_machines().front().machine;
  Mapping mapping;
  std::optional<int> sequence, batch, micro_batches, ranks;
  const Menu* menu = find_menu("nccl");
  std::string svg, trace;
  bool search = false, decode = false, explain = false, json = false;
};

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
                    "the nearest are "
                    "{}{}",
                    *a.batch, a.mapping.data_parallel(), a.mapping.micro_batch, each,
                    below > 0 ? fmt::format("{} or ", below) : "", below + each));
  }
  a.mapping.micro_batches = *a.batch / each;
  return {};
}

Status write_pictures(const PlanArguments& a, const StepPlan& plan) {
  if (!a.svg.empty()) {
    if (Status s =
            of_option("--svg", replace_file(a.svg, timeline_svg(plan_title(plan), plan.pipeline)));
        !s.ok()) {
      return s;
    }
  }
  if (a.trace.empty()) return {};
  return of_option("--trace", replace_file(a.trace, timeline_trace(plan.pipeline)));
}

Status show(const PlanArguments& a, const StepPlan& plan, Console& console) {
  if (!a.json) console.out << plan_text(plan, a.explain);
  return write_pictures(a, plan);
}

Result<Exit> run_one(const PlanArguments& a, Console& console) {
  if (a.ranks && *a.ranks != a.mapping.ranks()) {
    return invalid_argument(
        fmt::format("--ranks is {}; the axes multiply to {}. Leave one of both out, or --search",
                    *a.ranks, a.mapping.ranks()));
  }
  Prices prices(a.machine, a.mapping.ranks(), *a.menu);
  const auto plan = plan_step(a.model, a.mapping, a.machine, prices);
  if (!plan.ok()) return plan.status();
  if (a.json) console.out << plan_json(*plan).dump() << "\n";
  if (Status s = show(a, *plan, console); !s.ok()) return s;
  return Exit::ok;
}

Result<Exit> run_decode(PlanArguments a, Console& console) {
  if (!a.svg.empty() || !a.trace.empty()) {
    return invalid_argument(
        fmt::format("{} is given; --decode has no timeline", a.svg.empty() ? "--trace" : "--svg"));
  }
  if (a.batch) {
    if (*a.batch % a.mapping.data_parallel() != 0) {
      return invalid_argument(fmt::format("--batch is {}; it must be a multiple of the {} replicas",
                                          *a.batch, a.mapping.data_parallel()));
    }
    a.mapping.micro_batch = *a.batch / a.mapping.data_parallel();
  }
  Prices prices(a.machine, a.mapping.ranks(), *a.menu);
  const auto plan = plan_decode(a.model, a.mapping, a.machine, prices);
  if (!plan.ok()) return plan.status();
  console.out << (a.json ? plan_json(*plan).dump() + "\n" : plan_text(*plan, a.explain));
  return Exit::ok;
}

std::string ranking(const std::vector<StepPlan>& best) {
  std::vector<std::vector<std::string>> rows = {{"", "mapping", "step", "", "memory", "loses by"}};
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Mapping& m = best[i].mapping;
    rows.push_back(
        {std::to_string(i + 1),
         fmt::format("{}; {} micro-batches of {}", describe(m), m.micro_batches, m.micro_batch),
         format_duration(best[i].seconds),
         fmt::format("{:.2f} x", best[i].seconds / best[0].seconds),
         format_bytes(best[i].memory.all()), i > 0 ? why_slower(best[i], best[0]) : ""});
  }
  return columns(rows, "rlrrrl");
}

Result<Exit> run_search(const PlanArguments& a, Console& console) {
  if (!a.ranks) return invalid_argument("--search needs --ranks: over how many");
  if (!a.batch) return invalid_argument("--search needs --batch: how many sequences a step has");
  constexpr std::size_t kShown = 8;
  const SearchQuestion question{.ranks = *a.ranks, .batch = *a.batch, .common = a.mapping};
  const auto found = search_mappings(a.model, a.machine, *a.menu, question, kShown);
  if (!found.ok()) return found.status();
  if (found->best.empty()) {
    return invalid_argument(
        fmt::format("none of {} mappings of {} over {} ranks fits into {}: the smallest needs {}",
                    found->too_large, a.model.name, *a.ranks, format_bytes(a.machine.memory_bytes),
                    format_bytes(found->least.all())));
  }
  if (a.json) {
    nlohmann::ordered_json out = {{"tried", found->tried}, {"too_large", found->too_large}};
    for (const StepPlan& plan : found->best) out["best"].push_back(plan_json(plan));
    console.out << out.dump() << "\n";
  } else {
    console.out << fmt::format(
                       "{} mappings tried, {} more do not fit into memory; of each set of axes the "
                       "best:\n\n",
                       found->tried, found->too_large)
                << ranking(found->best) << "\n";
  }
  if (Status s = show(a, found->best.front(), console); !s.ok()) return s;
  return Exit::ok;
}

Result<Exit> run_plan(PlanArguments a, Console& console) {
  if (a.sequence) a.model.sequence = *a.sequence;
  if (a.search && a.decode)
    return invalid_argument("--search is of training steps; leave --decode out");
  if (a.search) return run_search(a, console);
  if (Status s = check_model(a.model); !s.ok()) return s;
  for (std::size_t i = 0; i < kAxes; ++i) {
    if (a.mapping.axes[i] < 1) return check_mapping(a.model, a.mapping);
  }
  if (a.decode) return run_decode(std::move(a), console);
  if (Status s = set_batch(a); !s.ok()) return s;
  return run_one(a, console);
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
  return text;
}

}  // namespace

Subcommand add_plan(Command tool) {
  auto owned = std::make_shared<PlanArguments>();
  PlanArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "plan", "what a training step of a model costs, mapped to ranks: collectives, time, memory");
  add_argument(
      app, "model", a.model,
      [](std::string_view argument, std::string_view text) {
        return find_model(argument, std::string(text));
      },
      "MODEL", "a model named below, or a JSON file")
      .required();
  add_argument(
      app, "--machine", a.machine,
      [](std::string_view argument, std::string_view text) {
        return find_machine(argument, std::string(text));
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
  add_argument(app, "--ranks", a.ranks, read_count, "N", "of all; with --search needed");
  add_argument(app, "--batch", a.batch, read_count, "N", "sequences of a step");
  add_argument(app, "--micro-batch", a.mapping.micro_batch, Whole{1, 1 << 20}, "N",
               "sequences that go through together (1)");
  add_argument(app, "--micro-batches", a.micro_batches, read_count, "N",
               "of a step, in place of --batch (1)");
  add_argument(app, "--sequence", a.sequence, read_count, "N", "tokens (the model's)");
  app.add_flag(
      "--split-norms", a.mapping.splits_norms,
      "between its matrices tp splits the sequence: reduce-scatter and all-gather in place "
      "of all-reduce");
  add_argument(app, "--interleave", a.mapping.interleave, Whole{1, 1 << 10}, "N",
               "parts of the model per stage (1)");
  add_argument(app, "--order", a.mapping.order,
               Named<PipelineOrder>{{"gpipe", "1f1b", "zb1p", "zb2p"}}, "NAME",
               "of a stage's work: gpipe, 1f1b, zb1p, zb2p (1f1b)");
  add_argument(app, "--recompute", a.mapping.recompute,
               Named<Recompute>{{"none", "selective", "full"}}, "NAME",
               "none, selective (attention), full (none)");
  add_argument(app, "--zero", a.mapping.zero, Whole{0, 3}, "N",
               "what dp splits: 1 optimizer, 2 gradients too, 3 parameters too (0)");
  add_argument(app, "--gradient-bytes", a.mapping.gradient_bytes, Whole{2, 4}, "N", "2 or 4 (4)");
  add_argument(app, "--bucket", a.mapping.bucket_bytes, parse_size, "SIZE",
               "gradients that go together (25M)");
  add_menu(app, a.menu);
  app.add_flag("--search", a.search, "try all mappings of --ranks, and show the best");
  app.add_flag("--decode", a.decode,
               "not a training step, but one token more of every sequence of the batch");
  app.add_flag("--explain", a.explain, "what every number is made of");
  app.add_flag("--json", a.json, "as JSON");
  add_text(app, "--svg", a.svg, "FILE", "write the pipeline's picture to this file");
  add_text(app, "--trace", a.trace, "FILE", "write it as trace events, for Perfetto");
  app.footer(
      "Examples:\n"
      "  rankine plan gpt_175b --tp 8 --pp 8 --interleave 3 --batch 64 --split-norms --recompute "
      "selective\n"
      "  rankine plan llama3_8b --search --ranks 64 --batch 128 --machine h100\n"
      "  rankine plan mixtral_8x7b --ep 8 --zero 1 --sequence 4096 --explain\n"
      "  rankine plan llama3_70b --tp 8 --decode --batch 32 --sequence 2048\n\n" +
      known_text());
  return {app, [owned](Console& console) { return run_plan(*owned, console); }};
}

}  // namespace rankine::tools
