#include "engine/lab/planner/layer_work.h"

#include <algorithm>
#include <cmath>

namespace rankine::tools {
namespace {

double tokens(const Model& model, const Mapping& mapping) {
  return static_cast<double>(model.sequence) * mapping.micro_batch / mapping[Axis::sp];
}

// The work of the forward pass; the other passes are derived from it.
LayerWork forward(const Model& model, const Mapping& mapping) {
  const double t = mapping[Axis::tp], n = tokens(model, mapping);
  const double h = model.hidden, kv = static_cast<double>(model.kv_width());
  const double bytes = n * h * model.bytes;  // per activation of all tokens
  const double split = mapping.splits_norms ? t : 1;
  const ExpertRows rows = expert_rows(model, mapping);
  const double experts = rows.computed;
  const double feed_forward =
      static_cast<double>(model.expert()) * experts + static_cast<double>(model.router());
  const double widths = (model.gated ? 3.0 : 2.0) * model.feed_forward * experts;

  LayerWork work;
  // A product of n rows with a matrix of e elements takes 2 n e flops.
  work.computations = {
      {.what = "queries, keys, values, output", .flops = 2 * n * (2 * h * h + 2 * h * kv) / t},
      {.what = "attention",
       .flops = 4 * n * model.sequence * h / t,
       // Scores go through memory six times: product, mask and scale, softmax, dropout, product.
       .bytes = 6.0 * model.bytes * n * model.sequence * model.heads / t},
      {.what = "feed-forward", .flops = 2 * n * feed_forward / t},
      // Each norm reads and writes; dropout with its residual reads twice and writes.
      {.what = "norms, dropout, residuals", .bytes = 10 * bytes / split},
      {.what = "activation", .bytes = 1.5 * widths * n * model.bytes / t}};

  const std::vector<Axis> tp = {Axis::tp};
  for (const std::string_view half : {"attention", "feed-forward"}) {
    if (mapping.splits_norms) {
      work.exchanges.push_back({half, Phase::forward, Collective::all_gather, tp, bytes});
    }
    if (half == "attention") {
      work.exchanges.push_back({"keys and values",
                                Phase::forward,
                                Collective::all_gather,
                                {Axis::sp},
                                2 * kv / t * n * mapping[Axis::sp] * model.bytes});
    } else if (model.is_mixture()) {
      // All bytes that the busiest rank gets in a dispatch and gives back.
      const double sent = bytes / split * rows.sent;
      work.exchanges.push_back(
          {"dispatch", Phase::forward, Collective::all_to_all, {Axis::ep}, sent});
      work.exchanges.push_back(
          {"combine", Phase::forward, Collective::all_to_all, {Axis::ep}, sent});
    }
    work.exchanges.push_back(
        {half, Phase::forward,
         mapping.splits_norms ? Collective::reduce_scatter : Collective::all_reduce, tp, bytes});
  }
  return work;
}

// The collective of the backward pass that belongs to a collective of the forward pass.
Collective mirrored(Collective collective) {
  if (collective == Collective::all_gather) return Collective::reduce_scatter;
  if (collective == Collective::reduce_scatter) return Collective::all_gather;
  return collective;
}

}  // namespace

ExpertRows expert_rows(const Model& model, const Mapping& mapping) {
  const double skew = mapping.router_skew;
  const double each = std::max(model.top_k, 1) * skew;
  if (mapping.capacity > 0) {
    const double all = tokens(model, mapping) * model.top_k * mapping.capacity;
    const double padded = std::ceil(all / model.experts) * model.experts / tokens(model, mapping);
    return {padded, padded};
  }
  if (!mapping.sends_once) return {each, each};
  const double ranks = mapping[Axis::ep];
  return {each, ranks * (1 - std::pow((ranks - 1) / ranks, model.top_k)) * skew};
}

std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"forward", "backward", "recompute"};
  return kNames[static_cast<std::size_t>(phase)];
}

LayerWork layer_work(const Model& model, const Mapping& mapping) {
  const LayerWork once = forward(model, mapping);
  LayerWork work = once;
  for (Computation back : once.computations) {
    // Every product becomes two products; attention's products have no weights.
    back.phase = Phase::backward;
    back.weight_flops = back.what == "attention" ? 0 : back.flops;
    back.flops *= 2;
    back.bytes *= 2;
    work.computations.push_back(back);
  }
  for (auto it = once.exchanges.rbegin(); it != once.exchanges.rend(); ++it) {
    Exchange back = *it;
    back.phase = Phase::backward;
    back.collective = mirrored(back.collective);
    work.exchanges.push_back(back);
  }
  for (Computation again : once.computations) {
    if (mapping.recompute == Recompute::none) break;
    if (mapping.recompute == Recompute::selective && again.what != "attention") continue;
    again.phase = Phase::recompute;
    work.computations.push_back(again);
  }
  if (mapping.recompute == Recompute::full) {
    for (Exchange again : once.exchanges) {
      again.phase = Phase::recompute;
      work.exchanges.push_back(again);
    }
  }
  return work;
}

std::vector<Computation> head_work(const Model& model, const Mapping& mapping) {
  const double flops =
      2 * tokens(model, mapping) * static_cast<double>(model.embedding()) / mapping[Axis::tp];
  return {{.what = "logits", .flops = flops},
          {.what = "logits", .phase = Phase::backward, .flops = 2 * flops, .weight_flops = flops}};
}

double boundary_bytes(const Model& model, const Mapping& mapping) {
  return tokens(model, mapping) * model.hidden * model.bytes /
         (mapping.splits_norms ? mapping[Axis::tp] : 1);
}

namespace {

double activations_per_layer(const Model& model, const Mapping& mapping) {
  const double tp = mapping[Axis::tp];
  const double tokens =
      static_cast<double>(model.sequence) * mapping.micro_batch / mapping[Axis::sp];
  const double unit = tokens * model.hidden;
  if (mapping.recompute == Recompute::full)
    return model.bytes * unit / (mapping.splits_norms ? tp : 1);
  const double kv = static_cast<double>(model.kv_width()) / model.hidden;
  const double feed_forward = static_cast<double>(model.feed_forward) / model.hidden *
                              model.matrices() * expert_rows(model, mapping).computed;
  const double whole = (4.0 * model.bytes + 2) / (mapping.splits_norms ? tp : 1);
  const double split = model.bytes * (1 + 2 * kv + 1 + feed_forward) / tp;
  const double scores =
      mapping.recompute == Recompute::selective
          ? 0
          : (2.0 * model.bytes + 1) * model.heads * model.sequence / (model.hidden * tp);
  return unit * (whole + split + scores);
}

// The number of micro-batches that wait on a stage at the same time for their backward passes, with
// their activations in memory.
double micro_batches_kept(const Mapping& mapping) {
  const double m = mapping.micro_batches, p = mapping[Axis::pp], v = mapping.interleave;
  switch (mapping.order) {
    case PipelineOrder::gpipe:
      return m;
    case PipelineOrder::one_f_one_b:
      return v == 1 ? std::min(m, p) : std::min(m, p * (1 + (p - 1) / (p * v)));
    case PipelineOrder::zb1p:
    case PipelineOrder::zbv:
      return std::min(m, p);
    case PipelineOrder::zb2p:
      return std::min(m, 2 * p - 1);
  }
  return m;
}

}  // namespace

double kept_by_optimizer(const Model& model) { return model.bytes < 4 ? 12 : 8; }

double state_bytes(const Model& model, const Mapping& mapping, int data_parallel) {
  const auto part = [&](int from) { return mapping.zero >= from ? 1.0 / data_parallel : 1.0; };
  return model.bytes * part(3) + mapping.gradient_bytes * part(2) +
         kept_by_optimizer(model) * part(1);
}

double embedding_parameters(const Model& model, const Mapping& mapping) {
  const bool has_both = last_stage(mapping.order, mapping[Axis::pp]) == 0;
  return (has_both && !model.tied ? 2 : 1) * static_cast<double>(model.embedding()) /
         mapping[Axis::tp];
}

Memory memory_of(const Model& model, const Mapping& mapping) {
  const double tp = mapping[Axis::tp];
  const double layers = static_cast<double>(model.layers) / mapping[Axis::pp];
  const double experts =
      model.is_mixture() ? static_cast<double>(model.experts) * static_cast<double>(model.expert())
                         : 0;
  const double dense = static_cast<double>(model.layer()) - experts;
  // Ranks that share dense parameters, and ranks that share the parameters of an expert. Ranks
  // along sp have equal parameters, so they share the state, too.
  const int all = mapping.data_parallel() * mapping[Axis::sp];
  const int same_experts = mapping[Axis::dp] * mapping[Axis::sp];

  Memory memory;
  const double own_dense = layers * dense / tp;
  const double own_experts = layers * experts / tp / mapping[Axis::ep];
  memory.layer_parameters = own_dense + own_experts;
  memory.embedding_parameters = embedding_parameters(model, mapping);
  memory.layer_state = own_dense * state_bytes(model, mapping, all) +
                       own_experts * state_bytes(model, mapping, same_experts);
  memory.embedding_state = memory.embedding_parameters * state_bytes(model, mapping, all);
  memory.activations_per_layer = activations_per_layer(model, mapping);
  memory.micro_batches_kept = micro_batches_kept(mapping);
  memory.activations = memory.activations_per_layer * layers * memory.micro_batches_kept;
  return memory;
}

}  // namespace rankine::tools
