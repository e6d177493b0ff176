#include "engine/tools/lesson/judge_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/tools/table.h"

namespace rankine::tools {
namespace {

PlayedOrder played_order(std::string_view name, const Pipeline& pipeline) {
  PlayedOrder out{name, pipeline.end(), pipeline.most_idle(), {}};
  for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
    out.kept.push_back(static_cast<int>(pipeline.most_kept(s, 1)));
  }
  return out;
}

// Every stage has each pass of each micro-batch once.
std::optional<OrderFault> count_tasks(const WrittenOrder& written) {
  constexpr std::string_view kRule = "a stage does each pass of each micro-batch once";
  const int passes = written.weights > 0 ? 3 : 2;
  for (int s = 0; s < written.stages; ++s) {
    const auto i = static_cast<std::size_t>(s);
    std::map<std::pair<Pass, int>, int> seen;  // the line of each
    for (std::size_t k = 0; k < written.tasks[i].size(); ++k) {
      const Task& task = written.tasks[i][k];
      const int line = written.lines[i][k];
      const auto [before, fresh] = seen.emplace(std::pair(task.pass, task.micro_batch), line);
      if (fresh) continue;
      return OrderFault{"twice",
                        kRule,
                        fmt::format("stage {} does {} twice", s, task_text(task)),
                        s,
                        {before->second, line}};
    }
    for (int m = 0; m < written.micro_batches; ++m) {
      for (int pass = 0; pass < passes; ++pass) {
        const Task task{static_cast<Pass>(pass), m};
        if (seen.contains({task.pass, m})) continue;
        return OrderFault{"missing", kRule,
                          fmt::format("stage {} never does {}", s, task_text(task)), s};
      }
    }
  }
  return std::nullopt;
}

// The first stage that has not come to its end.
std::optional<OrderFault> who_waits(const WrittenOrder& written, const Pipeline& pipeline) {
  for (std::size_t s = 0; s < written.tasks.size(); ++s) {
    const std::size_t done = pipeline.stages[s].size();
    if (done == written.tasks[s].size()) continue;
    return OrderFault{
        "waits_for_ever",
        "F needs F of the stage before; B needs B of the stage behind, and on the last stage its "
        "own F; W needs its own B",
        fmt::format("stage {} waits for ever before {}", s, task_text(written.tasks[s][done])),
        static_cast<int>(s),
        {written.lines[s][done]}};
  }
  return std::nullopt;
}

std::optional<OrderFault> beyond(const WrittenOrder& written, const PlayedOrder& played) {
  const auto most = std::max_element(played.kept.begin(), played.kept.end());
  if (written.keep && *most > *written.keep) {
    const auto stage = static_cast<int>(most - played.kept.begin());
    return OrderFault{"keeps_too_much",
                      "a micro-batch takes room on a stage from its F to the end of its B, and W",
                      fmt::format("stage {} keeps {} micro-batches at once, and has room for {}",
                                  stage, *most, *written.keep),
                      stage};
  }
  if (written.within && played.seconds > *written.within) {
    return OrderFault{
        "too_slow", "the step ends in time",
        fmt::format("it takes {} s, and may take {} s", played.seconds, *written.within)};
  }
  return std::nullopt;
}

std::vector<PipelineOrder> named_orders(const WrittenOrder& written) {
  if (written.weights > 0) return {PipelineOrder::zb1p, PipelineOrder::zb2p};
  return {PipelineOrder::gpipe, PipelineOrder::one_f_one_b};
}

std::vector<Cell> row_of(const PlayedOrder& one) {
  return {one.name, one.seconds, one.idle, fmt::format("{}", fmt::join(one.kept, " "))};
}

Json json_of(const PlayedOrder& one) {
  return {{"order", one.name}, {"time", one.seconds}, {"idle", one.idle}, {"kept", one.kept}};
}

}  // namespace

OrderJudgement judge_order(const WrittenOrder& written) {
  OrderJudgement out;
  for (const auto& stage : written.tasks) out.tasks += stage.size();
  PipelineQuestion question = written.question();
  for (const PipelineOrder order : named_orders(written)) {
    question.order = order;
    out.named.push_back(played_order(name_of(order), play(question)));
  }
  out.fault = count_tasks(written);
  if (out.fault) return out;
  out.pipeline = play(question, written.tasks);
  out.fault = who_waits(written, out.pipeline);
  if (out.fault) return out;
  out.played = played_order("yours", out.pipeline);
  out.fault = beyond(written, *out.played);
  return out;
}

Json order_json(const WrittenOrder& written, const OrderJudgement& judged) {
  Json out = {{"stages", written.stages},
              {"micro_batches", written.micro_batches},
              {"tasks", judged.tasks},
              {"end", judged.pipeline.end()},
              {"proved", !judged.fault}};
  if (const auto& fault = judged.fault) {
    out["kind"] = fault->kind;
    out["rule"] = fault->rule;
    out["stage"] = fault->stage;
    out["text"] = fault->text;
    out["lines"] = fault->lines;
  }
  if (judged.played) out["yours"] = json_of(*judged.played);
  Json& named = out["named"] = Json::array();
  for (const PlayedOrder& one : judged.named) named.push_back(json_of(one));
  return out;
}

std::string order_text(const WrittenOrder& written, const OrderJudgement& judged) {
  std::string out = fmt::format("a pipeline: stages {}, micro-batches {}, passes {}\n",
                                written.stages, written.micro_batches, judged.tasks);
  if (const auto& fault = judged.fault) {
    out += fmt::format("wrong: {}\n  the rule: {}\n  here: {}\n", fault->kind, fault->rule,
                       fault->text);
    for (const int line : fault->lines) out += fmt::format("  line {}\n", line);
  } else {
    out += "right: every stage does its work, and nobody waits for ever\n";
  }
  Table table(as::text(""), "time", "idle", as::text("micro-batches kept"));
  if (judged.played) table.rows.push_back(row_of(*judged.played));
  for (const PlayedOrder& one : judged.named) table.rows.push_back(row_of(one));
  return out +
         fmt::format("\n{}\nIdle is the stage that waits most; kept is at once, stage by stage.\n",
                     to_text(table, "  "));
}

}  // namespace rankine::tools
