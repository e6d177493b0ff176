#include "engine/tools/plan/step_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/base/units.h"
#include "engine/tools/plan/plan_arguments.h"
#include "engine/tools/plan/plan_report.h"
#include "engine/tools/plan/play_step.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct StepOptions {
  PlanArguments asked;
  PlayOptions play;
  bool full_speed = false, json = false, csv = false;
};

bool equal(const PlayedCollective& c) { return c.seconds == c.planned.price.seconds; }

Table table_of(const StepPlan& plan, const std::vector<PlayedCollective>& played, bool full_speed) {
  const bool thinned = std::any_of(played.begin(), played.end(), [](const PlayedCollective& c) {
    return c.bytes != c.planned.price.bytes;
  });
  Table table(as::text("along"), "ranks", as::text("collective"), as::text("for", "-"),
              as::text("algorithm"), as::bytes("M", "bytes"),
              as::bytes("thinned to", "bytes_played").when(thinned), as::model_time("planned"),
              as::model_time(full_speed ? "this machine" : "played", "played"), as::text(""),
              as::text("data", "-"), as::data("equal"), as::data("wrong"));
  table.title = plan_title(plan);
  for (const PlayedCollective& c : played) {
    const Price& price = c.planned.price;
    table.add(axes_text(plan.mapping, c.planned.along), price.ranks, name_of(c.planned.collective),
              c.planned.what, price.algorithm->name, price.bytes, c.bytes, price.seconds, c.seconds,
              full_speed ? ""
              : equal(c) ? "equal"
                         : "DIFFERENT",
              c.wrong == 0 ? "right" : fmt::format("{} WRONG", counted(c.wrong, "byte")), equal(c),
              c.wrong);
  }
  return table;
}

Result<Exit> run_step(StepOptions a, Console& console) {
  if (a.full_speed && a.play.most_bytes != PlayOptions{}.most_bytes) {
    return invalid_argument("--thin is given; with --full-speed buffers are as planned");
  }
  if (Status s = settle(a.asked); !s.ok()) return s;
  if (a.asked.mapping.ranks() > Communicator::kMaxRanks) {
    return invalid_argument(fmt::format("the axes multiply to {} ranks; threads play at most {}",
                                        a.asked.mapping.ranks(), Communicator::kMaxRanks));
  }
  Prices prices(a.asked.machine, a.asked.mapping.ranks(), *a.asked.menu);
  const auto plan = plan_step(a.asked.model, a.asked.mapping, a.asked.machine, prices);
  if (!plan.ok()) return plan.status();
  a.play.network = !a.full_speed;
  const auto played = play_collectives(*plan, a.play);
  if (!played.ok()) return played.status();
  const Table table = table_of(*plan, *played, a.full_speed);
  const nlohmann::ordered_json json = {{"model", plan->model.name},
                                       {"ranks", plan->mapping.ranks()},
                                       {"collectives", to_json(table)}};
  console.out << (a.json ? json.dump() + "\n" : a.csv ? to_csv(table) : to_text(table));
  for (const PlayedCollective& c : *played) {
    if (c.wrong != 0 || (!a.full_speed && !equal(c))) return Exit::wrong;
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_step(Command tool) {
  auto owned = std::make_shared<StepOptions>();
  StepOptions& a = *owned;
  const Command app = tool.add_subcommand(
      "step", "the collectives of a planned step on threads: real data, planned and played times");
  add_plan_arguments(app, a.asked);
  app.add_flag("--full-speed", a.full_speed,
               "at this machine's own speed, in place of the planned machine's network");
  add_argument(
      app, "--thin", a.play.most_bytes,
      [](std::string_view argument, std::string_view text) -> Result<std::uint64_t> {
        const auto bytes = parse_size(argument, text);
        if (!bytes.ok()) return bytes.status();
        return std::uint64_t{*bytes};
      },
      "SIZE",
      "buffers of about this size at most, whose bytes take as much longer: the same times (as "
      "planned)");
  add_argument(app, "-T,--timeout", a.play.timeout, parse_duration, "TIME",
               "of one call: 30 (seconds), 500ms (30)");
  add_formats(app, a.json, a.csv, "one line of JSON in place of the table");
  app.footer(
      "Every rank is a thread, groups are split off by axis, and each distinct collective of the "
      "plan is "
      "called once, on the network of the machine under a virtual clock: its time is the plan's, "
      "to "
      "the last tick. Exit codes: 0 good, 1 wrong data or times.\n\n"
      "Examples:\n"
      "  rankine step gpt2 --tp 2 --dp 2 --pp 2 --batch 4 --split-norms\n"
      "  rankine step gpt2 --dp 4 --zero 1 --full-speed\n\n" +
      known_text());
  return {app, [owned](Console& console) { return run_step(*owned, console); }};
}

}  // namespace rankine::tools
