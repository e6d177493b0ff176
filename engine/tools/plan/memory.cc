#include "engine/tools/plan/memory.h"

#include <algorithm>

#include "engine/tools/plan/layer_work.h"

namespace rankine::tools {
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

// How many micro-batches' worth of a stage's layers wait for their backward pass at once.
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
  // What every rank of data parallelism has, and what only those with the same experts have. Ranks
  // along sp have the same parameters: they share the state as well.
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
