#include "engine/lab/lesson/written_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/cli/judge.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

constexpr int kMostSeconds = 1'000'000;
constexpr std::string_view kLetters = "FBW";  // in the order of Pass

class Reader {
 public:
  Result<WrittenOrder> read(std::string_view text) {
    for_each_line(text, [this](int line, const Words& words) {
      if (!status_.ok()) return;
      line_ = line;
      status_ = out_.tasks.empty() ? read_head(words) : read_stage(words);
      if (!status_.ok()) {
        status_ = invalid_argument(fmt::format("line {}: {}", line, status_.text()));
      }
    });
    if (!status_.ok()) return status_;
    return std::move(out_);
  }

 private:
  Status read_head(const Words& words) {
    if (words.size() < 2) return invalid_argument("the number of stages is missing");
    const auto stages = parse_whole("the number of stages", words[1], 1, kMostOrderStages);
    if (!stages.ok()) return stages.status();
    std::optional<int> forward, backward, weights, hop, micro_batches;
    struct Member {
      std::string_view name;
      std::optional<int>* into;
      int least, most;
    };
    const std::array<Member, 7> members = {
        {{"micro_batches", &micro_batches, 1, kMostOrderMicroBatches},
         {"forward", &forward, 1, kMostSeconds},
         {"backward", &backward, 1, kMostSeconds},
         {"weights", &weights, 0, kMostSeconds},
         {"hop", &hop, 0, kMostSeconds},
         {"keep", &out_.keep, 1, kMostOrderMicroBatches},
         {"within", &out_.within, 1, kMostSeconds}}};
    std::vector<std::string_view> names;
    for (const Member& one : members) names.push_back(one.name);
    for (std::size_t i = 2; i < words.size(); i += 2) {
      const Member* member = nullptr;
      for (const Member& one : members) member = one.name == words[i] ? &one : member;
      if (member == nullptr) return unknown_name("a word", words[i], names);
      if (i + 1 == words.size())
        return invalid_argument(fmt::format("{} needs a number", words[i]));
      const auto value = parse_whole(member->name, words[i + 1], member->least, member->most);
      if (!value.ok()) return value.status();
      *member->into = *value;
    }
    if (!micro_batches)
      return invalid_argument("micro_batches is missing; add the number of micro-batches");
    out_.stages = *stages;
    out_.micro_batches = *micro_batches;
    out_.forward = forward.value_or(out_.forward);
    out_.backward = backward.value_or(out_.backward);
    out_.weights = weights.value_or(out_.weights);
    out_.hop = hop.value_or(out_.hop);
    out_.tasks.resize(static_cast<std::size_t>(*stages));
    out_.lines.resize(out_.tasks.size());
    return {};
  }

  Status read_stage(const Words& words) {
    if (!words[0].ends_with(':')) {
      return invalid_argument(fmt::format(
          "'{}' is not a stage; allowed are lines such as '0: F0 F1 B0 B1' and '1: F0..3'",
          legible(words[0])));
    }
    const auto stage =
        parse_whole("a stage", words[0].substr(0, words[0].size() - 1), 0, out_.stages - 1);
    if (!stage.ok()) return stage.status();
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (Status status = read_tasks(static_cast<std::size_t>(*stage), words[i]); !status.ok()) {
        return status;
      }
    }
    return {};
  }

  // "F3" or "F0..7"
  Status read_tasks(std::size_t stage, std::string_view word) {
    const std::string_view allowed = kLetters.substr(0, out_.weights > 0 ? 3 : 2);
    const std::size_t pass = allowed.find(word[0]);
    if (pass == allowed.npos) {
      return invalid_argument(fmt::format("'{}' is not a pass; allowed are {}", legible(word),
                                          out_.weights > 0 ? "F0, B0 and W0" : "F0 and B0"));
    }
    const auto numbers =
        parse_whole_list("a micro-batch", word.substr(1), 0, out_.micro_batches - 1);
    if (!numbers.ok()) return numbers.status();
    constexpr std::size_t kMostTasks = 3 * kMostOrderMicroBatches;
    for (const int number : *numbers) {
      if (out_.tasks[stage].size() == kMostTasks) {
        return invalid_argument(
            fmt::format("a stage has more than {} passes; that is the largest number", kMostTasks));
      }
      out_.tasks[stage].push_back({static_cast<Pass>(pass), number});
      out_.lines[stage].push_back(line_);
    }
    return {};
  }

  int line_ = 0;
  Status status_;
  WrittenOrder out_;
};

}  // namespace

PipelineQuestion WrittenOrder::question() const {
  PipelineQuestion out;
  out.stages = stages;
  out.micro_batches = micro_batches;
  out.hop_seconds = hop;
  const std::array<double, 3> seconds = {
      static_cast<double>(forward), static_cast<double>(backward), static_cast<double>(weights)};
  out.seconds = [seconds](Pass pass, int, int) { return seconds[static_cast<std::size_t>(pass)]; };
  return out;
}

Result<WrittenOrder> read_order(std::string_view text) { return Reader().read(text); }

std::string task_text(const Task& task) {
  return fmt::format("{}{}", kLetters[static_cast<std::size_t>(task.pass)], task.micro_batch);
}

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
    std::map<std::pair<Pass, int>, int> seen;  // the line of each pass
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

// The first stage that did not reach its end.
std::optional<OrderFault> find_order_fault(const WrittenOrder& written, const Pipeline& pipeline) {
  for (std::size_t s = 0; s < written.tasks.size(); ++s) {
    const std::size_t done = pipeline.stages[s].size();
    if (done == written.tasks[s].size()) continue;
    return OrderFault{
        "waits_for_ever",
        "F needs F of the stage before; B needs B of the stage after, or on the last stage the F "
        "of its micro-batch; W needs the B of its micro-batch",
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
                      fmt::format("stage {} keeps {} micro-batches at once; it has room for {}",
                                  stage, *most, *written.keep),
                      stage};
  }
  if (written.within && played.seconds > *written.within) {
    return OrderFault{
        "too_slow", "the step ends in time",
        fmt::format("the step takes {} s; allowed are {} s", played.seconds, *written.within)};
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
  out.fault = find_order_fault(written, out.pipeline);
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
    out += "right: every stage does its work, and no stage waits for ever\n";
  }
  Table table(as::text(""), "time", "idle", as::text("micro-batches kept"));
  if (judged.played) table.rows.push_back(row_of(*judged.played));
  for (const PlayedOrder& one : judged.named) table.rows.push_back(row_of(one));
  return out + fmt::format(
                   "\n{}\nidle: the stage that waits most; kept: most at the same time, stage by "
                   "stage.\n",
                   to_text(table, "  "));
}

}  // namespace rankine::tools
