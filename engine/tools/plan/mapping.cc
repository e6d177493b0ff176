#include "engine/tools/plan/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/tools/plan/nearest.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kAxisNames[kAxes] = {"tp", "sp", "ep", "dp", "pp"};

// The divisors of `whole` on both sides of `value`: "are 2 or 4".
std::string nearest_divisors(std::int64_t whole, int value) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t d = 1; d <= whole && above == 0; ++d) {
    if (whole % d != 0) continue;
    (d < value ? below : above) = d;
  }
  return nearest_of(below, above);
}

struct Whole {
  std::string_view what;
  std::int64_t size;
};

// The nearest that are named divide all of them.
Status must_divide(std::string_view name, int value, const std::vector<Whole>& wholes) {
  std::int64_t common = 0;
  for (const Whole& whole : wholes) common = std::gcd(common, whole.size);
  for (const auto& [what, size] : wholes) {
    if (size % value == 0) continue;
    return invalid_argument(fmt::format("{} is {}; it must divide {}, which is {}: the nearest {}",
                                        name, value, what, size, nearest_divisors(common, value)));
  }
  return {};
}

Status at_least_one(std::string_view name, int value) {
  if (value >= 1) return {};
  return invalid_argument(fmt::format("{} is {}; it must be at least 1", name, value));
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
    return invalid_argument(fmt::format(
        "router_skew is {}; the busiest of {} ranks along ep gets 1 to {} times the mean",
        mapping.router_skew, mapping[Axis::ep], mapping[Axis::ep]));
  }
  if (mapping.capacity != 0 || mapping.sends_once) {
    const std::string_view name = mapping.sends_once ? "sends_once" : "capacity";
    if (!model.is_mixture()) {
      return invalid_argument(fmt::format("{} is given; {} has no experts", name, model.name));
    }
    if (!(mapping.capacity >= 0 && mapping.capacity <= model.experts)) {
      return invalid_argument(
          fmt::format("capacity is {}; it must be above 0, at most {} (all "
                      "tokens to one of the experts)",
                      mapping.capacity, model.experts));
    }
    if (mapping.capacity != 0 && (mapping.sends_once || mapping.router_skew != 1)) {
      return invalid_argument(fmt::format(
          "capacity is {}; every expert then has the same rows, and {}", mapping.capacity,
          mapping.sends_once ? "tokens go to each of them (no sends_once)"
                             : "none is busier than others (no router_skew)"));
    }
  }
  const int tp = mapping[Axis::tp], sp = mapping[Axis::sp], pp = mapping[Axis::pp];
  if (Status s = must_divide("sp", sp, {{"sequence", model.sequence}}); !s.ok()) return s;
  std::vector<Whole> of_tp = {
      {"heads", model.heads}, {"kv_heads", model.kv_heads}, {"feed_forward", model.feed_forward}};
  // With split norms tp goes on where sp has split.
  if (mapping.splits_norms)
    of_tp.push_back({"the sequence of a rank along sp", model.sequence / sp});
  if (Status s = must_divide("tp", tp, of_tp); !s.ok()) return s;
  if (mapping.order == PipelineOrder::zbv && model.layers % 2 != 0) {
    return invalid_argument(
        fmt::format("order is zbv, with two parts on each stage; {} has {} layers, an odd number",
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
    return invalid_argument(
        fmt::format("ep is {}; {} has no experts, so it must be 1", mapping[Axis::ep], model.name));
  }
  if (mapping.interleave > 1) {
    if (mapping[Axis::pp] == 1) {
      return invalid_argument(fmt::format(
          "interleave is {}; without pipeline stages (pp is 1) it must be 1", mapping.interleave));
    }
    if (mapping.order != PipelineOrder::one_f_one_b) {
      return invalid_argument(fmt::format("interleave is {}; with the order {} it must be 1",
                                          mapping.interleave, name_of(mapping.order)));
    }
    if (mapping.micro_batches % mapping[Axis::pp] != 0) {
      const int below = mapping.micro_batches / pp * pp;
      return invalid_argument(fmt::format(
          "micro_batches is {}; interleaved stages take a multiple of pp, which is {}: the nearest "
          "are {}{}",
          mapping.micro_batches, pp, below > 0 ? fmt::format("{} or ", below) : "", below + pp));
    }
  }
  if (mapping.zero < 0 || mapping.zero > 3) {
    return invalid_argument(fmt::format("zero is {}; it must be 0 to 3", mapping.zero));
  }
  if (mapping.gradient_bytes != 2 && mapping.gradient_bytes != 4) {
    return invalid_argument(
        fmt::format("gradient_bytes is {}; it must be 2 or 4", mapping.gradient_bytes));
  }
  if (mapping.bucket_bytes == 0) return invalid_argument("bucket_bytes is 0; it must be positive");
  return {};
}

}  // namespace rankine::tools
