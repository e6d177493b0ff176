#include "engine/tools/lesson/written_order.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/tools/lesson/schedule_parts.h"
#include "engine/tools/text.h"

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
    if (!micro_batches) return invalid_argument("micro_batches, their number, is missing");
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
      return invalid_argument(
          fmt::format("'{}' is no stage; allowed are lines such as '0: F0 F1 B0 B1' and '1: F0..3'",
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
      return invalid_argument(fmt::format("'{}' is no pass; allowed are {}", legible(word),
                                          out_.weights > 0 ? "F0, B0 and W0" : "F0 and B0"));
    }
    const auto numbers =
        parse_whole_list("a micro-batch", word.substr(1), 0, out_.micro_batches - 1);
    if (!numbers.ok()) return numbers.status();
    constexpr std::size_t kMostTasks = 3 * kMostOrderMicroBatches;
    for (const int number : *numbers) {
      if (out_.tasks[stage].size() == kMostTasks) {
        return invalid_argument(fmt::format("a stage with more than {} passes", kMostTasks));
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

bool is_order(std::string_view text) {
  bool found = false, first = true;
  for_each_line(text, [&](int, const Words& words) {
    if (std::exchange(first, false)) found = words[0] == "pipeline";
  });
  return found;
}

Result<WrittenOrder> read_order(std::string_view text) { return Reader().read(text); }

std::string task_text(const Task& task) {
  return fmt::format("{}{}", kLetters[static_cast<std::size_t>(task.pass)], task.micro_batch);
}

}  // namespace rankine::tools
