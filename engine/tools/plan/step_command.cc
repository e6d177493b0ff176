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
  bool full_speed = false, json = false;
};

bool equal(const PlayedCollective& c) { return c.seconds == c.planned.price.seconds; }

std::string text_of(const StepPlan& plan, const std::vector<PlayedCollective>& played,
                    bool full_speed) {
  const bool thinned = std::any_of(played.begin(), played.end(), [](const PlayedCollective& c) {
    return c.bytes != c.planned.price.bytes;
  });
  std::vector<std::vector<std::string>> rows = {
      {"along", "ranks", "collective", "for", "algorithm", "M"}};
  if (thinned) rows.front().push_back("thinned to");
  rows.front().insert(rows.front().end(),
                      {"planned", full_speed ? "this machine" : "played", "", "data"});
  for (const PlayedCollective& c : played) {
    auto& row = rows.emplace_back(std::vector<std::string>{
        axes_text(plan.mapping, c.planned.along), std::to_string(c.planned.price.ranks),
        std::string(name_of(c.planned.collective)), c.planned.what,
        std::string(c.planned.price.algorithm->name), format_bytes(c.planned.price.bytes)});
    if (thinned) row.push_back(format_bytes(c.bytes));
    row.insert(row.end(), {format_duration(c.planned.price.seconds), format_duration(c.seconds),
                           full_speed ? ""
                           : equal(c) ? "equal"
                                      : "DIFFERENT",
                           c.wrong == 0 ? "right" : fmt::format("{} bytes WRONG", c.wrong)});
  }
  return fmt::format("{}\n\n{}", plan_title(plan),
                     columns(rows, thinned ? "lrlllrrrrll" : "lrlllrrrll"));
}

nlohmann::ordered_json json_of(const StepPlan& plan, const std::vector<PlayedCollective>& played) {
  nlohmann::ordered_json out = {{"model", plan.model.name}, {"ranks", plan.mapping.ranks()}};
  auto& rows = out["collectives"] = nlohmann::ordered_json::array();
  for (const PlayedCollective& c : played) {
    rows.push_back({{"along", axes_text(plan.mapping, c.planned.along)},
                    {"collective", name_of(c.planned.collective)},
                    {"algorithm", c.planned.price.algorithm->name},
                    {"ranks", c.planned.price.ranks},
                    {"bytes", c.planned.price.bytes},
                    {"bytes_played", c.bytes},
                    {"planned", c.planned.price.seconds},
                    {"played", c.seconds},
                    {"equal", equal(c)},
                    {"wrong", c.wrong}});
  }
  return out;
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
  console.out << (a.json ? json_of(*plan, *played).dump() + "\n"
                         : text_of(*plan, *played, a.full_speed));
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
  app.add_flag("--json", a.json, "one line of JSON in place of the table");
  app.footer(
      "Every rank is a thread, groups are split off by axis, and each distinct collective of the "
      "plan is "
      "called once, on the network\nof the machine under a virtual clock: its time is the plan's, "
      "to "
      "the last tick. Exit codes: 0 good, 1 wrong data or times.\n\n"
      "Examples:\n"
      "  rankine step gpt2 --tp 2 --dp 2 --pp 2 --batch 4 --split-norms\n"
      "  rankine step gpt2 --dp 4 --zero 1 --full-speed\n\n" +
      known_text());
  return {app, [owned](Console& console) { return run_step(*owned, console); }};
}

}  // namespace rankine::tools
