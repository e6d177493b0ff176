#include "engine/lab/planner/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kKorthikanti =
    "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022";
constexpr std::string_view kLlama3 = "Grattafiori et al., The Llama 3 Herd of Models, 2024";

Model gpt(std::string name, int layers, int hidden, int heads) {
  return {.name = std::move(name),
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .feed_forward = 4 * hidden,
          .vocabulary = 51200,
          .tied = true,
          .sequence = 2048};
}

Model gpt2() {
  Model model = gpt("gpt2", 12, 768, 12);
  model.vocabulary = 50257;
  model.sequence = 1024;
  return model;
}

Model llama(std::string name, int layers, int hidden, int heads, int feed_forward) {
  return {.name = std::move(name),
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = 8,
          .feed_forward = feed_forward,
          .gated = true,
          .vocabulary = 128256,
          .sequence = 8192};
}

Model mixtral() {
  Model model = llama("mixtral_8x7b", 32, 4096, 32, 14336);
  model.experts = 8;
  model.top_k = 2;
  model.vocabulary = 32000;
  model.sequence = 32768;
  return model;
}

const PublishedModel kPublished[] = {
    {gpt2(), "Radford et al., Language Models are Unsupervised Multitask Learners, 2019"},
    {gpt("gpt_22b", 48, 6144, 64), kKorthikanti},
    {gpt("gpt_175b", 96, 12288, 96), kKorthikanti},
    {gpt("gpt_530b", 105, 20480, 128), kKorthikanti},
    {gpt("gpt_1t", 128, 25600, 160), kKorthikanti},
    {llama("llama3_8b", 32, 4096, 32, 14336), kLlama3},
    {llama("llama3_70b", 80, 8192, 64, 28672), kLlama3},
    {llama("llama3_405b", 126, 16384, 128, 53248), kLlama3},
    {mixtral(), "Jiang et al., Mixtral of Experts, 2024"},
};

// A number of a model with its name in files.
struct ModelMember {
  std::string_view name;
  int Model::*number;
  int lowest, highest;
};
constexpr int kMost = 1 << 24;
constexpr ModelMember kModelMembers[] = {
    {"layers", &Model::layers, 1, 1 << 16},   {"hidden", &Model::hidden, 1, kMost},
    {"heads", &Model::heads, 1, 1 << 16},     {"kv_heads", &Model::kv_heads, 1, 1 << 16},
    {"experts", &Model::experts, 0, 1 << 16}, {"feed_forward", &Model::feed_forward, 1, kMost},
    {"top_k", &Model::top_k, 0, 1 << 16},     {"vocabulary", &Model::vocabulary, 1, kMost},
    {"sequence", &Model::sequence, 1, kMost}, {"bytes", &Model::bytes, 1, 4},
};

constexpr std::pair<std::string_view, bool Model::*> kFlags[] = {{"gated", &Model::gated},
                                                                 {"tied", &Model::tied}};

std::string names(std::string_view first) {
  std::vector<std::string_view> all = {first};
  for (const auto& [name, member] : kFlags) all.push_back(name);
  for (const ModelMember& member : kModelMembers) all.push_back(member.name);
  return join(all);
}

Status read_member(const std::string& name, const nlohmann::json& value, Model& model) {
  for (const auto& [flag, member] : kFlags) {
    if (name != flag) continue;
    if (!value.is_boolean()) {
      return invalid_argument(
          fmt::format("{} is {}; allowed are true and false", name, value.dump()));
    }
    model.*member = value.get<bool>();
    return {};
  }
  const auto member = std::find_if(std::begin(kModelMembers), std::end(kModelMembers),
                                   [&](const ModelMember& one) { return one.name == name; });
  if (member == std::end(kModelMembers)) {
    return invalid_argument(
        fmt::format("'{}' is not a member of a model; allowed are {}", name, names("preset")));
  }
  if (!value.is_number_integer() || value < member->lowest || value > member->highest) {
    return invalid_argument(fmt::format("{} is {}; allowed are whole numbers from {} to {}", name,
                                        value.dump(), member->lowest, member->highest));
  }
  model.*member->number = value.get<int>();
  return {};
}

}  // namespace

std::int64_t Model::attention() const {
  return std::int64_t{hidden} * (2 * std::int64_t{hidden} + 2 * kv_width());
}
std::int64_t Model::expert() const { return std::int64_t{matrices()} * hidden * feed_forward; }
std::int64_t Model::router() const { return std::int64_t{experts} * hidden; }
std::int64_t Model::layer() const {
  return attention() + router() + std::max(experts, 1) * expert();
}
std::int64_t Model::embedding() const { return std::int64_t{vocabulary} * hidden; }
std::int64_t Model::all() const { return layers * layer() + (tied ? 1 : 2) * embedding(); }
std::int64_t Model::active() const {
  const int unused = is_mixture() ? experts - top_k : 0;
  return all() - std::int64_t{layers} * unused * expert();
}

std::span<const PublishedModel> published_models() { return kPublished; }

const PublishedModel* find_published_model(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPublished), std::end(kPublished),
                   [name](const PublishedModel& one) { return one.model.name == name; });
  return found == std::end(kPublished) ? nullptr : found;
}

Status check_model(const Model& model) {
  for (const ModelMember& member : kModelMembers) {
    if (const int value = model.*member.number; value < member.lowest || value > member.highest) {
      return invalid_argument(fmt::format("{} is {}; allowed are {} to {}", member.name, value,
                                          member.lowest, member.highest));
    }
  }
  if (model.bytes == 3) return invalid_argument("bytes is 3; allowed are 1, 2 and 4");
  if (model.hidden % model.heads != 0) {
    return invalid_argument(fmt::format("heads is {}; allowed are divisors of hidden, which is {}",
                                        model.heads, model.hidden));
  }
  if (model.heads % model.kv_heads != 0) {
    return invalid_argument(fmt::format(
        "kv_heads is {}; allowed are divisors of heads, which is {}", model.kv_heads, model.heads));
  }
  if (model.top_k > model.experts || (model.is_mixture() && model.top_k == 0)) {
    return invalid_argument(
        fmt::format("top_k is {}; allowed with {} experts: {}", model.top_k, model.experts,
                    model.is_mixture() ? fmt::format("1 to {}", model.experts) : "0"));
  }
  return {};
}

Result<Model> parse_model(std::string_view json, std::string_view name) {
  const auto object = read_json("the model", json);
  if (!object.ok()) return object.status();
  if (!object->is_object())
    return invalid_argument("the model is no JSON object; allowed are objects");
  Model model;
  if (const auto preset = object->find("preset"); preset != object->end()) {
    const PublishedModel* found =
        preset->is_string() ? find_published_model(preset->get<std::string>()) : nullptr;
    if (found == nullptr) {
      return invalid_argument(fmt::format(
          "preset is {}; 'rankine plan --help' lists the allowed models", preset->dump()));
    }
    model = found->model;
  }
  model.name = name;
  bool kv_heads = object->contains("preset");
  for (const auto& [key, value] : object->items()) {
    if (key == "preset") continue;
    if (key == "name" && value.is_string()) {
      model.name = value.get<std::string>();
      continue;
    }
    kv_heads |= key == "kv_heads";
    if (Status status = read_member(key, value, model); !status.ok()) return status;
  }
  if (!kv_heads) model.kv_heads = model.heads;
  if (Status status = check_model(model); !status.ok()) return status;
  return model;
}

Result<Model> find_model(std::string_view argument, const std::string& name_or_path) {
  if (const PublishedModel* found = find_published_model(name_or_path)) return found->model;
  const SmallFile file = read_small_file(name_or_path, kMostJsonBytes);
  if (!file.ok()) {
    std::vector<std::string_view> allowed;
    for (const PublishedModel& one : kPublished) allowed.push_back(one.model.name);
    return invalid_argument(fmt::format(
        "{} is '{}', which is neither a known model nor a readable file ({}); models are {}{}",
        argument, name_or_path, file.error, join(allowed), did_you_mean(name_or_path, allowed)));
  }
  auto model = parse_model(file.text, name_or_path);
  if (!model.ok())
    return invalid_argument(
        fmt::format("{} '{}': {}", argument, name_or_path, model.status().text()));
  return model;
}

namespace {

constexpr std::string_view kAxisNames[kAxes] = {"tp", "sp", "ep", "dp", "pp"};

// Words about the divisors of `whole` just below and above `value`: "are 2 or 4".
std::string nearest_divisors(std::int64_t whole, int value) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t d = 1; d <= whole && above == 0; ++d) {
    if (whole % d != 0) continue;
    (d < value ? below : above) = d;
  }
  return nearest_of(below, above);
}

struct WholeMember {
  std::string_view what;
  std::int64_t size;
};

// Checks that `value` divides all wholes. The nearest values in the error divide all of them.
Status must_divide(std::string_view name, int value, const std::vector<WholeMember>& wholes) {
  std::int64_t common = 0;
  for (const WholeMember& whole : wholes) common = std::gcd(common, whole.size);
  for (const auto& [what, size] : wholes) {
    if (size % value == 0) continue;
    return invalid_argument(
        fmt::format("{} is {}; allowed are divisors of {}, which is {}: the nearest {}", name,
                    value, what, size, nearest_divisors(common, value)));
  }
  return {};
}

Status at_least_one(std::string_view name, int value) {
  if (value >= 1) return {};
  return invalid_argument(fmt::format("{} is {}; allowed are 1 and more", name, value));
}

}  // namespace

std::string_view name_of(Axis axis) { return kAxisNames[static_cast<std::size_t>(axis)]; }

std::string_view name_of(Recompute recompute) {
  constexpr std::string_view kNames[] = {"none", "selective", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

std::string_view name_of(PipelineOrder order) {
  constexpr std::string_view kNames[] = {"gpipe", "1f1b", "zb1p", "zb2p", "zbv"};
  return kNames[static_cast<std::size_t>(order)];
}

int part_number(PipelineOrder order, int stages, int stage, int part) {
  if (order == PipelineOrder::zbv && part == 1) return 2 * stages - 1 - stage;
  return part * stages + stage;
}
int last_stage(PipelineOrder order, int stages) {
  return order == PipelineOrder::zbv ? 0 : stages - 1;
}
bool has_weights_apart(PipelineOrder order) { return order >= PipelineOrder::zb1p; }

int Mapping::ranks() const {
  return std::accumulate(axes.begin(), axes.end(), 1, std::multiplies<>());
}
int Mapping::batch() const { return micro_batch * micro_batches * data_parallel(); }

std::string describe(const Mapping& mapping) {
  std::vector<std::string> parts;
  for (std::size_t a = 0; a < kAxes; ++a) {
    if (mapping.axes[a] > 1) parts.push_back(fmt::format("{} {}", kAxisNames[a], mapping.axes[a]));
  }
  if (mapping.nested != kNested) {
    std::vector<std::string_view> names;
    for (const Axis axis : mapping.nested) names.push_back(name_of(axis));
    parts.push_back(fmt::format("{} from the inside out", fmt::join(names, "-")));
  }
  if (mapping.router_skew != 1) parts.push_back(fmt::format("skew {}", mapping.router_skew));
  if (mapping.capacity != 0) parts.push_back(fmt::format("capacity {}", mapping.capacity));
  if (mapping.sends_once) parts.push_back("tokens once to a rank");
  if (mapping.splits_norms) parts.push_back("norms split");
  if (mapping[Axis::pp] > 1 && mapping.order != PipelineOrder::one_f_one_b) {
    parts.emplace_back(name_of(mapping.order));
  }
  if (mapping.interleave > 1) parts.push_back(fmt::format("interleaved {}", mapping.interleave));
  if (mapping.zero > 0) parts.push_back(fmt::format("ZeRO-{}", mapping.zero));
  if (mapping.recompute != Recompute::none) {
    parts.push_back(fmt::format("{} recompute", name_of(mapping.recompute)));
  }
  return parts.empty() ? "one rank" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string axes_text(const Mapping& mapping, std::span<const Axis> axes) {
  std::vector<std::string_view> names;
  for (const Axis axis : axes) {
    if (mapping[axis] > 1) names.push_back(name_of(axis));
  }
  return fmt::format("{}", fmt::join(names, " x "));
}

std::vector<Rank> group_of(const Mapping& mapping, std::span<const Axis> axes) {
  std::vector<Rank> group = {0};
  int stride = 1;
  for (const Axis axis : mapping.nested) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      const std::size_t inner = group.size();
      for (int i = 1; i < mapping[axis]; ++i) {
        for (std::size_t r = 0; r < inner; ++r) group.push_back(group[r] + i * stride);
      }
    }
    stride *= mapping[axis];
  }
  return group;
}

std::vector<std::vector<Rank>> groups_of(const Mapping& mapping, std::span<const Axis> axes) {
  std::vector<Axis> others;
  for (std::size_t a = 0; a < kAxes; ++a) {
    const auto axis = static_cast<Axis>(a);
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  }
  const std::vector<Rank> first = group_of(mapping, axes);
  std::vector<std::vector<Rank>> groups;
  for (const Rank begin : group_of(mapping, others)) {
    groups.push_back(first);
    for (Rank& rank : groups.back()) rank += begin;
  }
  return groups;
}

Status check_mapping(const Model& model, const Mapping& mapping) {
  for (std::size_t a = 0; a < kAxes; ++a) {
    if (Status s = at_least_one(kAxisNames[a], mapping.axes[a]); !s.ok()) return s;
  }
  const struct {
    std::string_view name;
    int value;
  } kCounts[] = {{"micro_batch", mapping.micro_batch},
                 {"micro_batches", mapping.micro_batches},
                 {"interleave", mapping.interleave}};
  for (const auto& [name, value] : kCounts) {
    if (Status s = at_least_one(name, value); !s.ok()) return s;
  }
  if (!(mapping.router_skew >= 1 && mapping.router_skew <= mapping[Axis::ep])) {
    return invalid_argument(
        fmt::format("router_skew is {}; allowed for the busiest of {} ranks along ep are 1 to {} "
                    "(times the mean)",
                    mapping.router_skew, mapping[Axis::ep], mapping[Axis::ep]));
  }
  if (mapping.capacity != 0 || mapping.sends_once) {
    const std::string_view name = mapping.sends_once ? "sends_once" : "capacity";
    if (!model.is_mixture()) {
      return invalid_argument(
          fmt::format("{} is given; {} has no experts: leave it out", name, model.name));
    }
    if (!(mapping.capacity >= 0 && mapping.capacity <= model.experts)) {
      return invalid_argument(fmt::format(
          "capacity is {}; allowed are numbers above 0 and up to {} (all tokens to one expert)",
          mapping.capacity, model.experts));
    }
    if (mapping.capacity != 0 && (mapping.sends_once || mapping.router_skew != 1)) {
      return invalid_argument(fmt::format(
          "capacity is {}; it gives every expert equally many rows: {}", mapping.capacity,
          mapping.sends_once ? "leave out sends_once" : "leave out router_skew"));
    }
  }
  const int tp = mapping[Axis::tp], sp = mapping[Axis::sp], pp = mapping[Axis::pp];
  if (Status s = must_divide("sp", sp, {{"sequence", model.sequence}}); !s.ok()) return s;
  std::vector<WholeMember> of_tp = {
      {"heads", model.heads}, {"kv_heads", model.kv_heads}, {"feed_forward", model.feed_forward}};
  // With split norms, tp splits sp's part of the sequence further.
  if (mapping.splits_norms)
    of_tp.push_back({"the sequence of a rank along sp", model.sequence / sp});
  if (Status s = must_divide("tp", tp, of_tp); !s.ok()) return s;
  if (mapping.order == PipelineOrder::zbv && model.layers % 2 != 0) {
    return invalid_argument(
        fmt::format("order is zbv; allowed with it are even numbers of layers, and {} has {}",
                    model.name, model.layers));
  }
  const bool in_halves = mapping.order == PipelineOrder::zbv;
  if (Status s = must_divide("pp", pp,
                             {{in_halves ? "half the layers (two parts on each stage)" : "layers",
                               model.layers / (in_halves ? 2 : 1)}});
      !s.ok()) {
    return s;
  }
  if (Status s = must_divide("interleave", mapping.interleave,
                             {{"the layers of a stage", model.layers / pp}});
      !s.ok()) {
    return s;
  }
  if (model.is_mixture()) {
    if (Status s = must_divide("ep", mapping[Axis::ep], {{"experts", model.experts}}); !s.ok())
      return s;
  } else if (mapping[Axis::ep] != 1) {
    return invalid_argument(fmt::format("ep is {}; allowed for {}, which has no experts, is 1",
                                        mapping[Axis::ep], model.name));
  }
  if (mapping.interleave > 1) {
    if (mapping[Axis::pp] == 1) {
      return invalid_argument(fmt::format(
          "interleave is {}; allowed without pipeline stages (pp is 1) is 1", mapping.interleave));
    }
    if (mapping.order != PipelineOrder::one_f_one_b) {
      return invalid_argument(fmt::format("interleave is {}; allowed with the order {} is 1",
                                          mapping.interleave, name_of(mapping.order)));
    }
    if (mapping.micro_batches % mapping[Axis::pp] != 0) {
      const int below = mapping.micro_batches / pp * pp;
      return invalid_argument(fmt::format(
          "micro_batches is {}; allowed with interleaved stages are multiples of pp, which is {}: "
          "the nearest are {}{}",
          mapping.micro_batches, pp, below > 0 ? fmt::format("{} or ", below) : "", below + pp));
    }
  }
  if (mapping.zero < 0 || mapping.zero > 3) {
    return invalid_argument(fmt::format("zero is {}; allowed are 0 to 3", mapping.zero));
  }
  if (mapping.gradient_bytes != 2 && mapping.gradient_bytes != 4) {
    return invalid_argument(
        fmt::format("gradient_bytes is {}; allowed are 2 and 4", mapping.gradient_bytes));
  }
  if (mapping.bucket_bytes == 0)
    return invalid_argument("bucket_bytes is 0; allowed are 1 and more");
  return {};
}

}  // namespace rankine::tools
