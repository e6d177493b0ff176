#include "engine/tools/plan/plan.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/units.h"
#include "engine/tools/plan/decode.h"
#include "engine/tools/plan/plan_arguments.h"
#include "engine/tools/plan/plan_report.h"
#include "engine/tools/plan/search.h"
#include "engine/tools/plan/step.h"
#include "engine/tools/plan/survey.h"
#include "engine/tools/plan/timeline.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct PlanOptions {
  PlanArguments asked;
  std::string svg, trace;
  bool search = false, decode = false, survey = false, explain = false, json = false, csv = false;
};

Status write_pictures(const PlanOptions& a, const StepPlan& plan) {
  if (!a.svg.empty()) {
    if (Status s =
            write_picture("--svg", a.svg, timeline_svg(plan_title(plan), plan.pipeline));
        !s.ok()) {
      return s;
    }
  }
  if (a.trace.empty()) return {};
  return of_option("--trace", replace_file(a.trace, timeline_trace(plan.pipeline)));
}

template <class Plan>
std::string written(const PlanOptions& a, const Plan& plan) {
  return a.json  ? plan_json(plan).dump() + "\n"
         : a.csv ? to_csv(collectives_table(plan.mapping, plan.collectives))
                 : plan_text(plan, a.explain);
}

Result<Exit> run_one(const PlanOptions& a, Console& console) {
  Prices prices(a.asked.machine, a.asked.mapping.ranks(), *a.asked.menu);
  const auto plan = plan_step(a.asked.model, a.asked.mapping, a.asked.machine, prices);
  if (!plan.ok()) return plan.status();
  if (a.survey) {
    const std::vector<SurveyRow> rows = survey_rows(*plan);
    const Table table = survey_table(*plan, rows);
    console.out << (a.json ? to_json(table).dump() + "\n" : a.csv ? to_csv(table) : to_text(table));
    if (Status s = write_pictures(a, *plan); !s.ok()) return s;
    return Exit::ok;
  }
  console.out << written(a, *plan);
  if (Status s = write_pictures(a, *plan); !s.ok()) return s;
  return Exit::ok;
}

Result<Exit> run_decode(PlanOptions a, Console& console) {
  if (!a.svg.empty() || !a.trace.empty()) {
    return invalid_argument(
        fmt::format("{} is given; --decode has no timeline", a.svg.empty() ? "--trace" : "--svg"));
  }
  if (a.asked.batch) {
    if (*a.asked.batch % a.asked.mapping.data_parallel() != 0) {
      return invalid_argument(fmt::format("--batch is {}; it must be a multiple of the {} replicas",
                                          *a.asked.batch, a.asked.mapping.data_parallel()));
    }
    a.asked.mapping.micro_batch = *a.asked.batch / a.asked.mapping.data_parallel();
    a.asked.batch.reset();
  }
  if (Status s = settle(a.asked); !s.ok()) return s;
  Prices prices(a.asked.machine, a.asked.mapping.ranks(), *a.asked.menu);
  const auto plan = plan_decode(a.asked.model, a.asked.mapping, a.asked.machine, prices);
  if (!plan.ok()) return plan.status();
  console.out << written(a, *plan);
  return Exit::ok;
}

Table ranking(const std::vector<StepPlan>& best) {
  Table table(as::number("", "rank"), as::text("mapping"), as::model_time("step", "seconds"),
              As("{:.2f} x")("", "times_the_best"), as::bytes("memory", "bytes"),
              as::text("loses by"));
  for (const StepPlan& plan : best) {
    const Mapping& m = plan.mapping;
    table.add(table.rows.size() + 1,
              fmt::format("{}; {} of {}", describe(m),
                          counted(m.micro_batches, "micro-batch", "micro-batches"), m.micro_batch),
              plan.seconds, plan.seconds / best[0].seconds, plan.memory.all(),
              &plan != best.data() ? why_slower(plan, best[0]) : "");
  }
  return table;
}

Result<Exit> run_search(const PlanOptions& a, Console& console) {
  if (!a.asked.ranks) return invalid_argument("--search needs --ranks: over how many");
  if (!a.asked.batch)
    return invalid_argument("--search needs --batch: how many sequences a step has");
  constexpr std::size_t kShown = 8;
  const SearchQuestion question{
      .ranks = *a.asked.ranks, .batch = *a.asked.batch, .common = a.asked.mapping};
  const auto found =
      search_mappings(a.asked.model, a.asked.machine, *a.asked.menu, question, kShown);
  if (!found.ok()) return found.status();
  if (found->best.empty()) {
    return invalid_argument(fmt::format(
        "none of {} of {} over {} fits into {}: the smallest needs {}",
        counted(found->too_large, "mapping"), a.asked.model.name, counted(*a.asked.ranks, "rank"),
        format_bytes(a.asked.machine.memory_bytes), format_bytes(found->least.all())));
  }
  if (a.json) {
    nlohmann::ordered_json out = {{"tried", found->tried}, {"too_large", found->too_large}};
    for (const StepPlan& plan : found->best) out["best"].push_back(plan_json(plan));
    console.out << out.dump() << "\n";
  } else if (a.csv) {
    console.out << to_csv(ranking(found->best));
  } else {
    Table table = ranking(found->best);
    table.title = fmt::format(
        "{} mappings tried, {} more do not fit into memory; of each set of axes the best:",
        found->tried, found->too_large);
    console.out << to_text(table) << "\n" << plan_text(found->best.front(), a.explain);
  }
  if (Status s = write_pictures(a, found->best.front()); !s.ok()) return s;
  return Exit::ok;
}

Result<Exit> run_plan(PlanOptions a, Console& console) {
  if (Status s = check_output_file("--trace", a.trace); !s.ok()) return s;
  if (Status s = check_output_files({{"--svg", a.svg}, {"--trace", a.trace}}); !s.ok()) return s;
  if (a.search && a.decode) {
    return invalid_argument("--search is of training steps; leave --decode out");
  }
  if (a.survey && (a.search || a.decode)) {
    return invalid_argument(fmt::format("--survey is of one training step; leave {} out",
                                        a.search ? "--search" : "--decode"));
  }
  if (a.search) {
    set_model(a.asked);
    return run_search(a, console);
  }
  if (a.decode) return run_decode(std::move(a), console);
  if (Status s = settle(a.asked); !s.ok()) return s;
  return run_one(a, console);
}

}  // namespace

Subcommand add_plan(Command tool) {
  auto owned = std::make_shared<PlanOptions>();
  PlanOptions& a = *owned;
  const Command app = tool.add_subcommand(
      "plan", "what a training step of a model costs, mapped to ranks: collectives, time, memory");
  add_plan_arguments(app, a.asked, "of all: what the axes multiply to; needed with --search");
  app.add_flag("--search", a.search, "try all mappings of --ranks, and show the best");
  app.add_flag("--decode", a.decode,
               "not a training step, but one token more of every sequence of the batch");
  app.add_flag(
      "--survey", a.survey,
      "the plan's ranks and bytes in the ten rows of the survey (Lu, section 9): what each "
      "formula says, and the simulator");
  app.add_flag("--explain", a.explain, "what every number is made of");
  add_formats(app, a.json, a.csv, "as JSON");
  add_picture_file(app, "--svg", a.svg, "write the pipeline's picture to this file");
  add_text(app, "--trace", a.trace, "FILE", "write it as trace events, for Perfetto");
  app.footer(
      "Examples:\n"
      "  rankine plan gpt_175b --tp 8 --pp 8 --interleave 3 --batch 64 --split-norms --recompute "
      "selective\n"
      "  rankine plan llama3_8b --search --ranks 64 --batch 128 --machine h100\n"
      "  rankine plan mixtral_8x7b --ep 8 --zero 1 --sequence 4096 --explain\n"
      "  rankine plan llama3_70b --tp 8 --decode --batch 32 --sequence 2048\n"
      "  rankine plan mixtral_8x7b --tp 2 --sp 2 --ep 2 --dp 2 --pp 2 --survey\n\n" +
      known_text());
  return {app, [owned](Console& console) { return run_plan(*owned, console); }};
}

}  // namespace rankine::tools
