#include "engine/tools/plan/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/tools/plan/layer_work.h"

namespace rankine::tools {
namespace {

// Bytes of weights that a product reads, of a rank and layer.
double weights_of(const Model& model, const Mapping& mapping, std::string_view what) {
  const double tp = mapping[Axis::tp];
  if (what == "feed-forward") {
    const int own = std::max(model.experts, 1) / mapping[Axis::ep];
    // Each token meets top_k experts; a rank's own are met by the tokens of all along ep.
    const int met = std::min(own, mapping.micro_batch * std::max(model.top_k, 1));
    return model.bytes *
           (met * static_cast<double>(model.expert()) / tp + static_cast<double>(model.router()));
  }
  return model.bytes * static_cast<double>(model.attention()) / tp;
}

double cache_of_layer(const Model& model, const Mapping& mapping) {
  return static_cast<double>(mapping.micro_batch) * model.sequence * 2 *
         static_cast<double>(model.kv_width()) * model.bytes / mapping[Axis::tp];
}

}  // namespace

Result<DecodePlan> plan_decode(const Model& model, const Mapping& mapping, const Machine& machine,
                               Prices& prices) {
  if (Status s = check_model(model); !s.ok()) return s;
  if (Status s = check_mapping(model, mapping); !s.ok()) return s;
  if (mapping[Axis::sp] != 1 || mapping.splits_norms) {
    return invalid_argument(
        fmt::format("{}; a decode step has one token per sequence, which nothing splits",
                    mapping.splits_norms ? "split norms are asked for"
                                         : fmt::format("sp is {}", mapping[Axis::sp])));
  }
  DecodePlan plan;
  plan.model = model;
  plan.mapping = mapping;
  plan.machine = machine;
  Model one = model;  // token
  one.sequence = 1;
  const double layers = model.layers;
  const LayerWork work = layer_work(one, mapping);
  for (const Computation& c : work.computations) {
    if (c.phase != Phase::forward) continue;
    double bytes = c.bytes, flops = c.flops;
    if (c.what == "attention") {
      bytes = cache_of_layer(model, mapping);
      flops *= model.sequence;  // the new token looks at all of them
    } else if (c.flops > 0) {
      bytes = weights_of(model, mapping, c.what);
    }
    const double seconds = std::max(flops / machine.flops, bytes / machine.memory_bandwidth);
    plan.computations.push_back({std::string(c.what), layers, seconds, flops, bytes});
  }
  const double head_bytes =
      model.bytes * static_cast<double>(model.embedding()) / mapping[Axis::tp];
  const double head_flops = head_work(one, mapping).front().flops;
  plan.computations.push_back(
      {"logits", 1, std::max(head_flops / machine.flops, head_bytes / machine.memory_bandwidth),
       head_flops, head_bytes});
  const auto add = [&](std::string what, std::vector<Axis> along, Collective collective,
                       double bytes, double times) -> Status {
    auto price = prices.of(collective, groups_of(mapping, along), bytes);
    if (!price.ok()) return price.status();
    if (price->algorithm == nullptr || times == 0) return {};
    plan.collectives.push_back({std::move(what), along, collective, *price, times});
    return {};
  };
  for (const Exchange& e : work.exchanges) {
    if (e.phase != Phase::forward) continue;
    if (Status s = add(std::string(e.what), e.along, e.collective, e.bytes, layers); !s.ok())
      return s;
  }
  if (Status s = add("activations", {Axis::pp}, Collective::send_recv, boundary_bytes(one, mapping),
                     mapping[Axis::pp] - 1);
      !s.ok()) {
    return s;
  }
  for (const PlannedComputation& c : plan.computations) plan.seconds += c.times * c.seconds;
  for (const PlannedCollective& c : plan.collectives) plan.seconds += c.seconds();
  const Memory memory = memory_of(model, mapping);
  plan.weight_bytes = model.bytes * (memory.layer_parameters + memory.embedding_parameters);
  plan.cache_bytes = cache_of_layer(model, mapping) * layers / mapping[Axis::pp];
  return plan;
}

}  // namespace rankine::tools
