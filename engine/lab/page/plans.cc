#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/units.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/lab/page/parts.h"
#include "engine/lab/planner/plan_report.h"
#include "engine/lab/planner/step.h"
#include "engine/read/count.h"

namespace rankine::tools {
namespace {

// Larger plans would be unreadable and slow.
constexpr int kMostPasses = 1 << 16;  // of all stages
constexpr std::int64_t kMostRanks = 1024;

// Reads one of an enum's names, which name_of() gives from 0 on.
template <class Enum>
Status read_name(const Json& request, std::string_view member, std::size_t names, Enum& into) {
  const auto found = request.find(member);
  if (found == request.end()) return {};
  std::vector<std::string_view> allowed;
  for (std::size_t i = 0; i < names; ++i) {
    allowed.push_back(name_of(static_cast<Enum>(i)));
    if (*found == allowed.back()) {
      into = static_cast<Enum>(i);
      return {};
    }
  }
  return bad_member(member, *found, join(allowed));
}

Result<Mapping> read_mapping(const Json& request) {
  constexpr int kMost = 1 << 12;
  Mapping out;
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < kAxes; ++i) {
    const Status read = read_number(request, name_of(static_cast<Axis>(i)), 1, kMost, out.axes[i]);
    if (!read.ok()) return read;
    ranks *= out.axes[i];
    if (ranks > kMostRanks) {
      return invalid_argument(fmt::format("{} is {}; the axes multiply to more than {} ranks",
                                          name_of(static_cast<Axis>(i)), out.axes[i], kMostRanks));
    }
  }
  if (request.contains("split_norms")) {
    const Json& split = request["split_norms"];
    if (!split.is_boolean()) return bad_member("split_norms", split, "true and false");
    out.splits_norms = split.get<bool>();
  }
  if (request.contains("router_skew")) {
    const Json& skew = request["router_skew"];
    if (!skew.is_number()) return bad_member("router_skew", skew, "numbers from 1 on");
    out.router_skew = skew.get<double>();
  }
  for (Status read : {read_number(request, "micro_batch", 1, kMost, out.micro_batch),
                      read_number(request, "micro_batches", 1, kMost, out.micro_batches),
                      read_number(request, "interleave", 1, kMost, out.interleave),
                      read_number(request, "zero", 0, 3, out.zero),
                      read_name(request, "order", kPipelineOrders, out.order),
                      read_name(request, "recompute", kRecomputes, out.recompute)}) {
    if (!read.ok()) return read;
  }
  return out;
}

const std::string& name_of(const PublishedModel& one) { return one.model.name; }
const std::string& name_of(const KnownMachine& one) { return one.machine.name; }

// The element of `known` that the request names; without a name the first.
template <class Known, class Find>
Result<const Known*> read_known(const Json& request, const char* member,
                                std::span<const Known> known, const Find& find) {
  const auto found = request.find(member);
  if (found == request.end()) return &known.front();
  const Known* named = found->is_string() ? find(found->template get<std::string>()) : nullptr;
  if (named != nullptr) return named;
  std::vector<std::string_view> names;
  for (const Known& one : known) names.push_back(name_of(one));
  return bad_member(member, *found, join(names));
}

template <class Known>
Json known_json(std::span<const Known> known) {
  Json out = Json::array();
  for (const Known& one : known) out.push_back({{"name", name_of(one)}, {"source", one.source}});
  return out;
}

}  // namespace

Status read_number(const Json& request, std::string_view member, int lowest, int highest,
                   int& into) {
  const auto found = request.find(member);
  if (found == request.end()) return {};
  if (found->is_number_integer() && *found >= lowest && *found <= highest) {
    into = found->get<int>();
    return {};
  }
  return bad_member(member, *found, fmt::format("whole numbers from {} to {}", lowest, highest));
}

void write_passes(const Pipeline& pipeline, Json& out, std::vector<double>& numbers) {
  out["columns"] = {"stage", "pass", "micro_batch", "part", "begin", "end"};
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (const Task& task : pipeline.stages[s]) {
      numbers.insert(numbers.end(), {static_cast<double>(s), static_cast<double>(task.pass),
                                     static_cast<double>(task.micro_batch),
                                     static_cast<double>(task.part), task.begin, task.end});
    }
  }
}

Status ask_plan(const Json& request, Json& out, std::vector<double>& numbers) {
  const auto model = read_known(request, "model", published_models(), find_published_model);
  if (!model.ok()) return model.status();
  const auto machine = read_known(request, "machine", known_machines(), find_known_machine);
  if (!machine.ok()) return machine.status();
  const auto mapping = read_mapping(request);
  if (!mapping.ok()) return mapping.status();
  if (Status s = check_mapping((*model)->model, *mapping); !s.ok()) return s;
  const std::int64_t passes =
      std::int64_t{3} * (*mapping)[Axis::pp] * mapping->parts() * mapping->micro_batches;
  if (passes > kMostPasses) {
    return invalid_argument(
        fmt::format("micro_batches is {}; {} passes are too many to show, at most {} are allowed",
                    mapping->micro_batches, passes, kMostPasses));
  }
  Prices prices((*machine)->machine, mapping->ranks(), *find_menu("nccl"));
  const auto plan = plan_step((*model)->model, *mapping, (*machine)->machine, prices);
  if (!plan.ok()) return plan.status();
  out = plan_json(*plan);
  out["title"] = plan_title(*plan);
  out["memory"]["of"] = plan->machine.memory_bytes;
  Json& stages = out["stages"] = Json::array();
  for (const Memory& memory : stage_memories(*plan)) {
    stages.push_back({{"all", memory.all()},
                      {"layer_state", memory.layer_state},
                      {"embedding_state", memory.embedding_state},
                      {"activations", memory.activations},
                      {"micro_batches_kept", memory.micro_batches_kept}});
  }
  out["end"] = plan->pipeline.end();
  out["models"] = known_json(published_models());
  out["machines"] = known_json(known_machines());
  write_passes(plan->pipeline, out, numbers);
  return {};
}

Status ask_buckets(const Json& request, Json& out, std::vector<double>&) {
  constexpr int kMostTensors = 1 << 16;
  auto question = read_question(request.value("question", Json()));
  if (!question.ok()) return question.status();
  if (question->algorithm->collective != Collective::all_reduce) {
    return bad_member("collective", name_of(question->algorithm->collective), "all_reduce");
  }
  if (question->bytes == 0) return bad_member("bytes", 0, "sizes of a tensor, not zero");
  int tensors = 64;
  if (Status s = read_number(request, "tensors", 1, kMostTensors, tensors); !s.ok()) return s;
  BucketQuestion asked{.algorithm = question->algorithm,
                       .fabric = question->fabric,
                       .ranks = question->params.ranks,
                       .tensors = static_cast<std::uint64_t>(tensors),
                       .tensor_bytes = question->bytes};
  if (const auto found = request.find("backward"); found != request.end()) {
    if (!found->is_string()) return bad_member("backward", *found, "texts such as \"100ms\"");
    const auto seconds = parse_seconds("backward", found->get<std::string>());
    if (!seconds.ok()) return seconds.status();
    asked.backward = seconds->to_double();
  }
  const auto rows = bucket_rows(asked);
  if (!rows.ok()) return rows.status();
  out["rows"] = to_json(bucket_table(*rows, asked.backward > 0));
  out["best"] = best_bucket(*rows);
  if (const auto calls = best_calls(asked)) out["calls"] = *calls;
  return {};
}

}  // namespace rankine::tools
