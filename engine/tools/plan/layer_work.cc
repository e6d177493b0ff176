#include "engine/tools/plan/layer_work.h"

#include <algorithm>
#include <cmath>

namespace rankine::tools {
namespace {

double tokens(const Model& model, const Mapping& mapping) {
  return static_cast<double>(model.sequence) * mapping.micro_batch / mapping[Axis::sp];
}

// The forward pass; both other passes are made of it.
LayerWork forward(const Model& model, const Mapping& mapping) {
  const double t = mapping[Axis::tp], n = tokens(model, mapping);
  const double h = model.hidden, kv = static_cast<double>(model.kv_width());
  const double bytes = n * h * model.bytes;  // of an activation
  const double split = mapping.splits_norms ? t : 1;
  const ExpertRows rows = expert_rows(model, mapping);
  const double experts = rows.computed;
  const double feed_forward =
      static_cast<double>(model.expert()) * experts + static_cast<double>(model.router());
  const double widths = (model.gated ? 3.0 : 2.0) * model.feed_forward * experts;

  LayerWork work;
  // A product of n rows with a matrix of so many elements is 2 n of them.
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
      // All that the busiest rank gets in a dispatch, and gives back.
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

// What a collective of the forward pass becomes in the backward one.
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
    // Every product becomes two; those of attention have no weights.
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

}  // namespace rankine::tools
