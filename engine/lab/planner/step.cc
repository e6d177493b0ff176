#include "engine/lab/planner/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "algorithms/parameters.h"
#include "engine/network/predict.h"

namespace rankine::tools {
namespace {

// The gradients of one kind of parameters under data parallelism.
struct Gradients {
  std::string_view what;
  std::vector<Axis> along;
  double parameters = 0;  // per rank
};

class Planner {
 public:
  Planner(const Model& model, const Mapping& mapping, const Machine& machine, Prices& prices)
      : prices_(prices) {
    plan_.model = model;
    plan_.mapping = mapping;
    plan_.machine = machine;
  }

  Result<StepPlan> plan() {
    if (Status s = price_layer(); !s.ok()) return s;
    if (Status s = price_parameters(); !s.ok()) return s;
    if (Status s = run_pipeline(); !s.ok()) return s;
    if (Status s = end_step(); !s.ok()) return s;
    plan_.memory = memory_of(plan_.model, plan_.mapping);
    return std::move(plan_);
  }

 private:
  const Mapping& mapping() const { return plan_.mapping; }
  Result<Price> price_of(Collective collective, const std::vector<Axis>& along, double bytes) {
    return prices_.of(collective, groups_of(mapping(), along), bytes);
  }
  int stages() const { return mapping()[Axis::pp]; }
  int layers_of_part() const { return plan_.model.layers / (stages() * mapping().parts()); }
  // The number of times per step that a stage does each kind of its layers' work.
  double layer_times() const {
    return static_cast<double>(plan_.model.layers) / stages() * mapping().micro_batches;
  }
  double seconds_of(const Computation& c) const { return tools::seconds_of(c, plan_.machine); }

  Status price_layer() {
    const LayerWork work = layer_work(plan_.model, mapping());
    for (const Computation& c : work.computations) {
      const double seconds = seconds_of(c);
      layer_[static_cast<std::size_t>(c.phase)] += seconds;
      layer_weights_ += c.weight_flops / plan_.machine.flops;
      plan_.computations.push_back({fmt::format("{}, {}", c.what, name_of(c.phase)), layer_times(),
                                    seconds, c.flops, c.bytes});
    }
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      if (layer_[phase] == 0) continue;
      const double seconds = launching_seconds(static_cast<Phase>(phase), mapping(), plan_.machine);
      if (seconds == 0) continue;
      layer_[phase] += seconds;
      plan_.computations.push_back(
          {fmt::format("launching, {}", name_of(static_cast<Phase>(phase))), layer_times(),
           seconds});
    }
    for (const Exchange& e : work.exchanges) {
      auto price = price_of(e.collective, e.along, e.bytes);
      if (!price.ok()) return price.status();
      if (price->algorithm == nullptr) continue;
      layer_[static_cast<std::size_t>(e.phase)] += price->seconds;
      plan_.collectives.push_back({fmt::format("{}, {}", e.what, name_of(e.phase)), e.along,
                                   e.collective, *price, layer_times()});
    }
    return {};
  }

  // ZeRO-3: a layer's parameters are gathered during the computation of the layer before, and its
  // gradients are scattered during the computation of the next layer; the step waits for the
  // excess.
  Status price_parameters() {
    if (mapping().zero < 3) return {};
    const struct {
      std::string_view what;
      Phase phase;
      Collective collective;
    } kMoves[] = {{"parameters, forward", Phase::forward, Collective::all_gather},
                  {"parameters, backward", Phase::backward, Collective::all_gather},
                  {"gradients, backward", Phase::backward, Collective::reduce_scatter}};
    std::array<double, kPhases> moved{};
    std::vector<std::pair<std::size_t, std::size_t>> added;  // collectives and their phases
    for (const Gradients& kind : gradients_per_layer()) {
      for (const auto& [what, phase, collective] : kMoves) {
        auto price = price_of(collective, kind.along, kind.parameters * plan_.model.bytes);
        if (!price.ok()) return price.status();
        if (price->algorithm == nullptr) continue;
        const auto p = static_cast<std::size_t>(phase);
        moved[p] += price->seconds;
        added.emplace_back(plan_.collectives.size(), p);
        plan_.collectives.push_back(
            {fmt::format("{} {}", kind.what, what), kind.along, collective, *price, layer_times()});
      }
    }
    const std::array<double, kPhases> computed = layer_;
    for (const auto& [index, p] : added) {
      PlannedCollective& collective = plan_.collectives[index];
      const double covered = std::min(1.0, computed[p] / moved[p]);
      collective.hidden = collective.seconds() * covered;
    }
    for (std::size_t p = 0; p < kPhases; ++p) layer_[p] = std::max(computed[p], moved[p]);
    return {};
  }

  std::vector<Gradients> gradients_per_layer() const {
    const Model& model = plan_.model;
    const double tp = mapping()[Axis::tp];
    const double experts = model.is_mixture() ? static_cast<double>(model.experts) *
                                                    static_cast<double>(model.expert())
                                              : 0;
    std::vector<Gradients> kinds = {{"dense",
                                     {Axis::sp, Axis::ep, Axis::dp},
                                     (static_cast<double>(model.layer()) - experts) / tp}};
    if (experts > 0) {
      kinds.push_back({"experts", {Axis::sp, Axis::dp}, experts / tp / mapping()[Axis::ep]});
    }
    return kinds;
  }

  Status run_pipeline() {
    for (const Computation& c : head_work(plan_.model, mapping())) {
      head_[static_cast<std::size_t>(c.phase)] += seconds_of(c);
      head_weights_ += c.weight_flops / plan_.machine.flops;
    }
    PipelineQuestion question{.order = mapping().order,
                              .stages = stages(),
                              .parts = mapping().parts(),
                              .micro_batches = mapping().micro_batches,
                              .seconds = [this](Pass pass, int stage, int part) {
                                return pass_seconds(pass, stage, part);
                              }};
    const Pipeline without_hops = play(question);
    auto hop = price_of(Collective::send_recv, {Axis::pp}, boundary_bytes(plan_.model, mapping()));
    if (!hop.ok()) return hop.status();
    question.hop_seconds = hop->seconds;
    plan_.pipeline = play(question);
    for (int s = 1; s < stages(); ++s) {
      if (plan_.pipeline.end(s) > plan_.pipeline.end(plan_.stage)) plan_.stage = s;
    }
    if (hop->algorithm == nullptr) return {};
    // Each part has two borders, for input and output, and both passes cross them. One stage sends
    // a micro-batch's border and another receives it; each rank pays for the borders that it
    // receives.
    const double times = 2.0 * mapping().micro_batches * mapping().parts();
    PlannedCollective hops{
        "activations, gradients", {Axis::pp}, Collective::send_recv, *hop, times};
    const double waited = plan_.pipeline.end() - without_hops.end();
    hops.hidden = hops.seconds() - std::clamp(waited, 0.0, hops.seconds());
    plan_.collectives.push_back(std::move(hops));
    return {};
  }

  double pass_seconds(Pass pass, int stage, int part) const {
    const auto forward = static_cast<std::size_t>(Phase::forward);
    const auto backward = static_cast<std::size_t>(Phase::backward);
    const auto recompute = static_cast<std::size_t>(Phase::recompute);
    const int number = part_number(mapping().order, stages(), stage, part);
    const bool has_head = number == stages() * mapping().parts() - 1;
    const double layers = layers_of_part();
    const double weights = layers * layer_weights_ + (has_head ? head_weights_ : 0);
    switch (pass) {
      case Pass::forward:
        return layers * layer_[forward] + (has_head ? head_[forward] : 0);
      case Pass::backward: {
        const bool apart = has_weights_apart(mapping().order);
        return layers * (layer_[backward] + layer_[recompute]) + (has_head ? head_[backward] : 0) -
               (apart ? weights : 0);
      }
      case Pass::weights:
        return weights;
    }
    return 0;
  }

  // Adds the work after the last backward passes: gradients in flight, the optimizer, and the
  // gathering of parameters that it has split.
  Status end_step() {
    if (plan_.stage == last_stage(mapping().order, stages())) {
      for (const Computation& c : head_work(plan_.model, mapping())) {
        plan_.computations.push_back({fmt::format("{}, {}", c.what, name_of(c.phase)),
                                      static_cast<double>(mapping().micro_batches), seconds_of(c),
                                      c.flops, c.bytes});
      }
    }
    plan_.seconds = plan_.pipeline.end(plan_.stage);
    const double layers = static_cast<double>(plan_.model.layers) / stages();
    std::vector<Gradients> kinds = gradients_per_layer();
    for (Gradients& kind : kinds) kind.parameters *= layers;
    kinds.front().parameters += embedding_parameters(plan_.model, mapping());
    const bool split = mapping().zero >= 1;
    double behind = 0;  // seconds after the last backward pass
    if (mapping().zero < 3) {
      for (const Gradients& kind : kinds) {
        if (Status s = send_buckets(kind, split, behind); !s.ok()) return s;
      }
    }
    plan_.seconds += behind;
    const double bytes = optimizer_bytes(kinds), optimizer = bytes / plan_.machine.memory_bandwidth;
    plan_.computations.push_back({std::string(kOptimizer), 1, optimizer, 0, bytes});
    plan_.seconds += optimizer;
    if (mapping().zero == 3) return move_embedding();
    if (!split) return {};
    for (const Gradients& kind : kinds) {
      auto price =
          price_of(Collective::all_gather, kind.along, kind.parameters * plan_.model.bytes);
      if (!price.ok()) return price.status();
      if (price->algorithm == nullptr) continue;
      plan_.seconds += price->seconds;
      plan_.collectives.push_back(
          {fmt::format("{} parameters", kind.what), kind.along, Collective::all_gather, *price, 1});
    }
    return {};
  }

  // ZeRO-3: the embedding is gathered before the first layer and stays until its gradients are
  // scattered after the last pass; computing hides neither.
  Status move_embedding() {
    const std::vector<Axis> along = {Axis::sp, Axis::ep, Axis::dp};
    const double bytes = embedding_parameters(plan_.model, mapping()) * plan_.model.bytes;
    const struct {
      const char* what;
      Collective collective;
    } kMoves[] = {{"embedding parameters", Collective::all_gather},
                  {"embedding gradients", Collective::reduce_scatter}};
    for (const auto& [what, collective] : kMoves) {
      auto price = price_of(collective, along, bytes);
      if (!price.ok()) return price.status();
      if (price->algorithm == nullptr) return {};
      plan_.collectives.push_back(
          {what, along, collective, *price, static_cast<double>(mapping().micro_batches)});
      plan_.seconds += plan_.collectives.back().seconds();
    }
    return {};
  }

  // Gradients become ready evenly during the stage's last backward passes, and buckets are sent one
  // after the other. `behind` is the delay of the earlier buckets in seconds.
  Status send_buckets(const Gradients& kind, bool split, double& behind) {
    const double bytes = kind.parameters * mapping().gradient_bytes;
    const double buckets =
        std::max(1.0, std::ceil(bytes / static_cast<double>(mapping().bucket_bytes)));
    const Collective collective = split ? Collective::reduce_scatter : Collective::all_reduce;
    auto price = price_of(collective, kind.along, bytes / buckets);
    if (!price.ok()) return price.status();
    if (price->algorithm == nullptr) return {};
    double computing = 0;  // the last backward pass of each part
    for (int part = 0; part < mapping().parts(); ++part) {
      computing += pass_seconds(Pass::backward, plan_.stage, part);
    }
    const double late = exposed_behind(computing, buckets, price->seconds) + behind;
    PlannedCollective sent{fmt::format("{} gradients", kind.what), kind.along, collective, *price,
                           buckets};
    sent.hidden = sent.seconds() - (late - behind);
    plan_.collectives.push_back(std::move(sent));
    behind = late;
    return {};
  }

  // Bytes that the optimizer moves: it reads gradient and state, and writes state and parameter.
  double optimizer_bytes(const std::vector<Gradients>& kinds) const {
    double bytes = 0;
    for (const Gradients& kind : kinds) {
      const double part =
          mapping().zero >= 1 ? static_cast<double>(group_of(mapping(), kind.along).size()) : 1;
      bytes += kind.parameters / part *
               (mapping().gradient_bytes + 2 * kept_by_optimizer(plan_.model) + plan_.model.bytes);
    }
    return bytes;
  }

  StepPlan plan_;
  Prices& prices_;
  std::array<double, kPhases> layer_{}, head_{};
  double layer_weights_ = 0, head_weights_ = 0;
};

}  // namespace

double seconds_of(const Computation& c, const Machine& machine) {
  return c.flops / machine.flops + c.bytes / machine.memory_bandwidth;
}

// A backward pass launches twice as much as a forward pass. A recompute pass launches only if it
// recomputes the whole layer.
double launching_seconds(Phase phase, const Mapping& mapping, const Machine& machine) {
  if (phase == Phase::backward) return 2 * machine.pass_seconds;
  if (phase == Phase::recompute && mapping.recompute != Recompute::full) return 0;
  return machine.pass_seconds;
}

double StepPlan::bubble() const {
  const double rest = seconds - computing() - exposed();
  return rest > 1e-12 * seconds ? rest : 0;  // below this it is rounding
}
double StepPlan::computing() const {
  double sum = 0;
  for (const PlannedComputation& c : computations) sum += c.times * c.seconds;
  return sum;
}
double StepPlan::communicating() const {
  double sum = 0;
  for (const PlannedCollective& c : collectives) sum += c.seconds();
  return sum;
}
double StepPlan::exposed() const {
  double sum = 0;
  for (const PlannedCollective& c : collectives) sum += c.exposed();
  return sum;
}
double StepPlan::model_flops() const {
  Mapping once;  // one rank that recomputes nothing
  once.micro_batch = mapping.micro_batch;
  double flops = 0;
  for (const Computation& c : layer_work(model, once).computations) flops += c.flops * model.layers;
  for (const Computation& c : head_work(model, once)) flops += c.flops;
  return flops * mapping.batch() / mapping.micro_batch;
}
double StepPlan::utilisation() const {
  return model_flops() / (seconds * mapping.ranks() * machine.flops);
}

Result<StepPlan> plan_step(const Model& model, const Mapping& mapping, const Machine& machine,
                           Prices& prices) {
  if (Status s = check_model(model); !s.ok()) return s;
  if (Status s = check_mapping(model, mapping); !s.ok()) return s;
  return Planner(model, mapping, machine, prices).plan();
}

std::vector<Memory> stage_memories(const StepPlan& plan) {
  const std::size_t stages = plan.pipeline.stages.size();
  std::vector<Memory> out(stages, plan.memory);
  for (std::size_t s = 0; s < stages; ++s) {
    Memory& memory = out[s];
    const double of_one = plan.memory.activations / plan.memory.micro_batches_kept;
    memory.micro_batches_kept = plan.pipeline.most_kept(static_cast<int>(s), plan.mapping.parts());
    memory.activations = of_one * memory.micro_batches_kept;
    const int last = last_stage(plan.mapping.order, plan.mapping[Axis::pp]);
    if (s > 0 && static_cast<int>(s) != last)
      memory.embedding_parameters = memory.embedding_state = 0;
  }
  return out;
}

namespace {

// Rounds times alpha plus the busiest rank's bytes times beta. Empty if the catalogue computes
// either number from a schedule, or if messages do not all cost the same.
std::optional<double> closed_form(const Algorithm& entry, const Params& params,
                                  const Fabric& fabric, std::uint64_t bytes) {
  if (entry.rounds == kComputed || entry.sent == kComputed) return {};
  if (fabric.two_level() || fabric.wiring.shares_links() || !fabric.odd.empty()) return {};
  return evaluate(entry.rounds, params).to_double() * fabric.link.latency().to_double() +
         evaluate(entry.sent, params).to_double() * static_cast<double>(bytes) *
             fabric.link.per_byte().to_double();
}

Result<BucketRow> row_of(const BucketQuestion& q, std::uint64_t tensors) {
  BucketRow row{.tensors = tensors, .bytes = tensors * q.tensor_bytes};
  row.calls = (q.tensors + tensors - 1) / tensors;
  Params params;
  params.ranks = q.ranks;
  params.segments = 0;
  const Algorithm& entry = *q.algorithm;
  const auto found = predict_one(entry, entry.only_taken(params), row.bytes, q.fabric);
  if (!found.ok()) return found.status();
  if (!found->ok()) {
    return invalid_argument("--algo is '" + std::string(entry.name) + "': " + found->refusal);
  }
  row.each = row.last = found->seconds;
  if (const std::uint64_t rest = q.tensors % tensors; rest > 0) {
    const auto last = predict_one(entry, entry.only_taken(params), rest * q.tensor_bytes, q.fabric);
    if (!last.ok()) return last.status();
    row.last = last->seconds;
  }
  row.formula = closed_form(entry, found->params, q.fabric, row.bytes);
  row.exposed = q.backward > 0
                    ? exposed_behind(q.backward, static_cast<double>(row.calls), row.each)
                    : row.all();
  return row;
}

std::vector<std::uint64_t> sizes_of(const BucketQuestion& q) {
  std::vector<std::uint64_t> sizes = {
      q.tensors, std::clamp<std::uint64_t>(q.bucket / q.tensor_bytes, 1, q.tensors)};
  for (std::uint64_t n = 1; n < q.tensors; n *= 2) sizes.push_back(n);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

Result<std::vector<BucketRow>> bucket_rows(const BucketQuestion& question) {
  std::vector<BucketRow> rows;
  for (const std::uint64_t tensors : sizes_of(question)) {
    auto row = row_of(question, tensors);
    if (!row.ok()) return row.status();
    rows.push_back(*row);
  }
  return rows;
}

std::size_t best_bucket(const std::vector<BucketRow>& rows) {
  const auto best = std::min_element(
      rows.begin(), rows.end(),
      [](const BucketRow& x, const BucketRow& y) { return x.exposed < y.exposed; });
  return static_cast<std::size_t>(best - rows.begin());
}

// Let a be alpha's part of a call and T the backward pass. Then n calls take n a + M beta - (n - 1)
// T / n beyond the pass, which is least at n = sqrt(T / a).
std::optional<double> best_calls(const BucketQuestion& question) {
  Params params;
  params.ranks = question.ranks;
  const Algorithm& entry = *question.algorithm;
  const auto latency = closed_form(entry, entry.only_taken(params), question.fabric, 0);
  if (!latency || !(*latency > 0) || !(question.backward > 0)) return {};
  return std::clamp(std::sqrt(question.backward / *latency), 1.0,
                    static_cast<double>(question.tensors));
}

Table bucket_table(const std::vector<BucketRow>& rows, bool hides) {
  Table table(as::bytes("bucket", "bytes"), "tensors", "calls",
              as::model_time("each", "seconds_each"), as::model_time("formula", "formula_each"),
              as::model_time("all", "seconds"), as::model_time("exposed").when(hides),
              As("{:.2f} x")("gain", "-"),
              as::model_time("played").when(rows.front().played.has_value()), as::text(""));
  const BucketRow& best = rows[best_bucket(rows)];
  for (const BucketRow& row : rows) {
    table.add(row.bytes, row.tensors, row.calls, row.each, row.formula, row.all(), row.exposed,
              rows.front().exposed / row.exposed, row.played, &row == &best ? "best" : "");
  }
  return table;
}

}  // namespace rankine::tools
