#include "engine/tools/plan/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/tools/text.h"

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

// A number of a model, by its name in files.
struct Member {
  std::string_view name;
  int Model::*number;
  int lowest, highest;
};
constexpr int kMost = 1 << 24;
constexpr Member kMembers[] = {
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
  for (const Member& member : kMembers) all.push_back(member.name);
  return join(all);
}

Status read_member(const std::string& name, const nlohmann::json& value, Model& model) {
  for (const auto& [flag, member] : kFlags) {
    if (name != flag) continue;
    if (!value.is_boolean()) {
      return invalid_argument(
          fmt::format("{} is {}; it must be true or false", name, value.dump()));
    }
    model.*member = value.get<bool>();
    return {};
  }
  const auto member = std::find_if(std::begin(kMembers), std::end(kMembers),
                                   [&](const Member& one) { return one.name == name; });
  if (member == std::end(kMembers)) {
    return invalid_argument(
        fmt::format("'{}' is no member of a model; allowed are {}", name, names("preset")));
  }
  if (!value.is_number_integer() || value < member->lowest || value > member->highest) {
    return invalid_argument(fmt::format("{} is {}; it must be a whole number from {} to {}", name,
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
  for (const Member& member : kMembers) {
    if (const int value = model.*member.number; value < member.lowest || value > member.highest) {
      return invalid_argument(fmt::format("{} is {}; it must be {} to {}", member.name, value,
                                          member.lowest, member.highest));
    }
  }
  if (model.bytes == 3) return invalid_argument("bytes is 3; allowed are 1, 2 and 4");
  if (model.hidden % model.heads != 0) {
    return invalid_argument(
        fmt::format("heads is {}; it must divide hidden, which is {}", model.heads, model.hidden));
  }
  if (model.heads % model.kv_heads != 0) {
    return invalid_argument(fmt::format("kv_heads is {}; it must divide heads, which is {}",
                                        model.kv_heads, model.heads));
  }
  if (model.top_k > model.experts || (model.is_mixture() && model.top_k == 0)) {
    return invalid_argument(
        fmt::format("top_k is {}; of {} experts it must be {}", model.top_k, model.experts,
                    model.is_mixture() ? fmt::format("1 to {}", model.experts) : "0"));
  }
  return {};
}

Result<Model> parse_model(std::string_view json, std::string_view name) {
  const auto object = read_json("the model", json);
  if (!object.ok()) return object.status();
  if (!object->is_object()) return invalid_argument("the model must be a JSON object");
  Model model;
  if (const auto preset = object->find("preset"); preset != object->end()) {
    const PublishedModel* found =
        preset->is_string() ? find_published_model(preset->get<std::string>()) : nullptr;
    if (found == nullptr) {
      return invalid_argument(
          fmt::format("preset is {}; 'rankine plan --help' lists what is allowed", preset->dump()));
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
        "{} is '{}', which is no model known here and no file that can be read ({}); "
        "models are {}{}",
        argument, name_or_path, file.error, join(allowed), did_you_mean(name_or_path, allowed)));
  }
  auto model = parse_model(file.text, name_or_path);
  if (!model.ok())
    return invalid_argument(
        fmt::format("{} '{}': {}", argument, name_or_path, model.status().text()));
  return model;
}

}  // namespace rankine::tools
