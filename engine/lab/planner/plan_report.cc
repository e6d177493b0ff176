#include "engine/lab/planner/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/base/units.h"
#include "engine/cli/text.h"
#include "engine/lab/planner/layer_work.h"

namespace rankine::tools {
namespace {

// Bytes of weights that a product reads on one rank in one layer.
double weights_of(const Model& model, const Mapping& mapping, std::string_view what) {
  const double tp = mapping[Axis::tp];
  if (what == "feed-forward") {
    const int own = std::max(model.experts, 1) / mapping[Axis::ep];
    // Each token uses top_k experts. Tokens of all ranks along ep use a rank's experts.
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
  Model one = model;  // with one token per sequence
  one.sequence = 1;
  const double layers = model.layers;
  const LayerWork work = layer_work(one, mapping);
  for (const Computation& c : work.computations) {
    if (c.phase != Phase::forward) continue;
    double bytes = c.bytes, flops = c.flops;
    if (c.what == "attention") {
      bytes = cache_of_layer(model, mapping);
      flops *= model.sequence;  // the new token attends to all earlier tokens
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

namespace {

std::string share(double part, double whole) { return fmt::format("{:.1f} %", 100 * part / whole); }

double tokens_of(const StepPlan& plan) {
  return static_cast<double>(plan.mapping.batch()) * plan.model.sequence;
}

std::string time_text(const StepPlan& plan) {
  Table table(as::text(""), as::model_time(""), As("{:.1f} %")(""));
  for (const auto& [name, seconds] : {std::pair("step", plan.seconds),
                                      {"  computing", plan.computing()},
                                      {"  communicating, exposed", plan.exposed()},
                                      {"  bubble", plan.bubble()},
                                      {"  (communicating, hidden)", plan.hidden()}}) {
    table.add(name, seconds, seconds / plan.seconds);
  }
  return to_text(table) + fmt::format("{:.0f} token{}, {:.1f} a second; {} of the products' rate\n",
                                      tokens_of(plan), tokens_of(plan) == 1 ? "" : "s",
                                      tokens_of(plan) / plan.seconds, share(plan.utilisation(), 1));
}

// The papers' formula for the bubble over the work, for equal stages and free hops; for orders with
// separate weight passes, also for equal times of forward, backward and weights.
std::string bubble_formula(const Mapping& m) {
  const int p = m[Axis::pp] - 1;
  switch (m.order) {
    case PipelineOrder::gpipe:
      return fmt::format("(p - 1) / m = {} / {}", p, m.micro_batches);
    case PipelineOrder::one_f_one_b:
      return fmt::format("(p - 1) / (v m) = {} / ({} x {})", p, m.interleave, m.micro_batches);
    case PipelineOrder::zb1p:
      return fmt::format("(p - 1) / (3 m) = {} / (3 x {})", p, m.micro_batches);
    case PipelineOrder::zb2p:
    case PipelineOrder::zbv:
      break;
  }
  return "0";
}

// The sums and quotients that make up the times.
std::string time_terms(const StepPlan& plan) {
  const Mapping& m = plan.mapping;
  const double busy = plan.pipeline.busy(plan.stage), idle = plan.pipeline.idle(plan.stage);
  return fmt::format(
      "  step = computing + exposed + bubble = {} + {} + {}\n"
      "  communicating = exposed + hidden = {}; both are sums of the tables below\n"
      "  bubble: stage {} works {} and waits {} between; {} with equal stages: {}\n"
      "  {} = {:.4g} flops of the model / ({} x {} x {:.4g} a second)\n",
      format_duration(plan.computing()), format_duration(plan.exposed()),
      format_duration(plan.bubble()), format_duration(plan.communicating()), plan.stage,
      format_duration(busy), format_duration(idle), name_of(m.order), bubble_formula(m),
      share(plan.utilisation(), 1), plan.model_flops(), format_duration(plan.seconds),
      counted(m.ranks(), "rank"), plan.machine.flops);
}

std::string memory_text(const StepPlan& plan, bool terms) {
  const Memory& m = plan.memory;
  Table table(as::text(""), as::bytes(""), as::text(""));
  table.rows = {{"memory of a rank", m.all(),
                 fmt::format("of {}{}", format_bytes(plan.machine.memory_bytes),
                             plan.fits() ? "" : ": TOO MUCH")}};
  const auto add = [&](std::string name, double bytes, std::string why) {
    table.add("  " + std::move(name), bytes, terms ? std::move(why) : "");
  };
  const double per_parameter = m.layer_parameters > 0 ? m.layer_state / m.layer_parameters : 0;
  add("layers: parameters, gradients, optimizer", m.layer_state,
      fmt::format("{:.4g} parameters x {:.4g} B", m.layer_parameters, per_parameter));
  add("embedding's state", m.embedding_state,
      fmt::format("{:.4g} parameters", m.embedding_parameters));
  add("activations", m.activations,
      fmt::format("{} a layer and micro-batch x {} x {:.4g} micro-batches",
                  format_bytes(m.activations_per_layer),
                  counted(plan.model.layers / plan.mapping[Axis::pp], "layer"),
                  m.micro_batches_kept));
  return to_text(table);
}

std::string algorithm_text(const Price& price) {
  return price.params.segments > 1
             ? fmt::format("{}, P = {}", price.algorithm->name, price.params.segments)
             : std::string(price.algorithm->name);
}

}  // namespace

Table collectives_table(const Mapping& mapping, const std::vector<PlannedCollective>& collectives) {
  Table table(as::text("along"), "ranks", as::text("collective"), as::text("for"),
              as::text("algorithm", "-"), as::data("algorithm"), as::data("segments"),
              as::bytes("M", "bytes"), as::data("sent"), As("{:.0f}")("times"),
              as::model_time("each", "seconds_each"), as::model_time("all", "seconds"),
              as::data("exposed"), as::model_time("hidden"));
  for (const PlannedCollective& c : collectives) {
    const Price& price = c.price;
    table.add(axes_text(mapping, c.along), price.ranks, name_of(c.collective), c.what,
              algorithm_text(price), price.algorithm->name, price.params.segments, price.bytes,
              price.sent, c.times, price.seconds, c.seconds(), c.exposed(), c.hidden);
  }
  return table;
}

namespace {

std::string collectives_text(const Mapping& mapping,
                             const std::vector<PlannedCollective>& collectives) {
  if (collectives.empty()) return "no collectives: one rank has it all\n";
  return to_text(collectives_table(mapping, collectives));
}

// The sums of the collectives along each axis or combination of axes.
std::string traffic_text(const Mapping& mapping, const Machine& machine,
                         const std::vector<PlannedCollective>& collectives) {
  if (collectives.empty()) return "";
  Table table(as::text("along"), As("{:.0f}")("calls"), as::bytes("sent by a rank"),
              as::model_time("all"), as::model_time("exposed"), as::text(""));
  const Fabric& network = machine.network;
  const auto lies = [&](const std::vector<Rank>& group) -> std::string {
    if (!network.two_level()) return "";
    const bool inside = std::all_of(group.begin(), group.end(), [&](Rank rank) {
      return rank / network.group == group.front() / network.group;
    });
    return inside ? "inside a node" : "between nodes";
  };
  std::vector<std::string> done;
  for (const PlannedCollective& first : collectives) {
    const std::string along = axes_text(mapping, first.along);
    if (std::find(done.begin(), done.end(), along) != done.end()) continue;
    done.push_back(along);
    double calls = 0, sent = 0, seconds = 0, exposed = 0;
    for (const PlannedCollective& c : collectives) {
      if (axes_text(mapping, c.along) != along) continue;
      calls += c.times;
      sent += c.sent();
      seconds += c.seconds();
      exposed += c.exposed();
    }
    table.add(along, calls, sent, seconds, exposed, lies(first.price.group));
  }
  return to_text(table);
}

Table computations_table(const std::vector<PlannedComputation>& computations) {
  constexpr As kFlops("{}", [](double n) { return n > 0 ? fmt::format("{:.4g}", n) : ""; });
  constexpr As kBytes("{}", [](double n) { return n > 0 ? format_bytes(n) : ""; });
  Table table(as::text("computing", "for"), kFlops("flops"), kBytes("memory", "bytes"),
              As("{:.0f}")("times"), as::model_time("each", "seconds_each"),
              as::model_time("all", "-"));
  for (const PlannedComputation& c : computations) {
    table.add(c.what, c.flops, c.bytes, c.times, c.seconds, c.times * c.seconds);
  }
  return table;
}

std::string computations_text(const std::vector<PlannedComputation>& computations,
                              const Machine& machine) {
  return to_text(computations_table(computations)) +
         fmt::format("{:.4g} flops a second, {:.4g} bytes a second through memory, {} a pass\n",
                     machine.flops, machine.memory_bandwidth,
                     format_duration(machine.pass_seconds));
}

template <class Plan>
std::string title_of(const Plan& plan) {
  return fmt::format("{} ({:.1f} G parameters) over {} of {}: {}", plan.model.name,
                     static_cast<double>(plan.model.all()) / 1e9,
                     counted(plan.mapping.ranks(), "rank"), plan.machine.name,
                     describe(plan.mapping));
}

// The members that both kinds of plans have.
template <class Plan>
Json asked_json(const Plan& plan) {
  const Mapping& m = plan.mapping;
  Json axes = Json::object();
  for (std::size_t a = 0; a < kAxes; ++a) {
    axes[std::string(name_of(static_cast<Axis>(a)))] = m.axes[a];
  }
  return {{"model", plan.model.name},
          {"parameters", plan.model.all()},
          {"machine", plan.machine.name},
          {"flops_per_second", plan.machine.flops},
          {"memory_bytes_per_second", plan.machine.memory_bandwidth},
          {"ranks", m.ranks()},
          {"axes", axes},
          {"bytes", plan.model.bytes},
          {"micro_batch", m.micro_batch},
          {"sequence", plan.model.sequence}};
}

Json to_json(const Mapping& mapping, const std::vector<PlannedCollective>& collectives) {
  Json rows = to_json(collectives_table(mapping, collectives));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["ranks"] = collectives[i].price.group;
  return rows;
}

}  // namespace

std::string plan_title(const StepPlan& plan) { return title_of(plan); }

std::string plan_text(const StepPlan& plan, bool terms) {
  const Mapping& m = plan.mapping;
  std::string text =
      fmt::format("{}\n{} of {} a step: {}, each with {} of {}\n\n", title_of(plan),
                  counted(m.batch(), "sequence"), counted(plan.model.sequence, "token"),
                  counted(m.data_parallel(), "replica"),
                  counted(m.micro_batches, "micro-batch", "micro-batches"), m.micro_batch);
  text +=
      time_text(plan) + (terms ? time_terms(plan) : "") + "\n" + memory_text(plan, terms) + "\n";
  text += fmt::format("collectives of a rank of stage {} in a step:\n", plan.stage) +
          collectives_text(plan.mapping, plan.collectives);
  if (terms) {
    text += "\n" + traffic_text(plan.mapping, plan.machine, plan.collectives) + "\n" +
            computations_text(plan.computations, plan.machine);
  }
  return text;
}

std::string plan_text(const DecodePlan& plan, bool terms) {
  const Mapping& m = plan.mapping;
  std::string text = fmt::format(
      "{}\none further token for {} with {} each\n\n"
      "{} until every sequence has its next token; {:.1f} tokens a second\n"
      "{} of a rank's {}: {} of weights, {} of keys and values{}\n\n",
      title_of(plan), counted(m.micro_batch * m.data_parallel(), "sequence"),
      counted(plan.model.sequence, "token"), format_duration(plan.seconds),
      plan.tokens_per_second(), format_bytes(plan.memory()),
      format_bytes(plan.machine.memory_bytes), format_bytes(plan.weight_bytes),
      format_bytes(plan.cache_bytes),
      plan.memory() > plan.machine.memory_bytes ? ": TOO MUCH" : "");
  text += collectives_text(plan.mapping, plan.collectives);
  if (terms) {
    text += "\n" + traffic_text(plan.mapping, plan.machine, plan.collectives) + "\n" +
            computations_text(plan.computations, plan.machine);
  }
  return text;
}

Json plan_json(const DecodePlan& plan) {
  Json out = asked_json(plan);
  out["decode"] = true;
  out["seconds"] = plan.seconds;
  out["tokens_per_second"] = plan.tokens_per_second();
  out["memory"] = {{"all", plan.memory()},
                   {"weights", plan.weight_bytes},
                   {"keys_and_values", plan.cache_bytes}};
  out["collectives"] = to_json(plan.mapping, plan.collectives);
  out["computations"] = to_json(computations_table(plan.computations));
  return out;
}

Json plan_json(const StepPlan& plan) {
  const Mapping& m = plan.mapping;
  Json out = asked_json(plan);
  out.update({{"micro_batches", m.micro_batches},
              {"batch", m.batch()},
              {"interleave", m.interleave},
              {"order", name_of(m.order)},
              {"recompute", name_of(m.recompute)},
              {"split_norms", m.splits_norms},
              {"zero", m.zero},
              {"router_skew", m.router_skew},
              {"capacity", m.capacity},
              {"send_once", m.sends_once},
              {"seconds", plan.seconds},
              {"computing", plan.computing()},
              {"communicating", plan.communicating()},
              {"exposed", plan.exposed()},
              {"hidden", plan.hidden()},
              {"bubble", plan.bubble()},
              {"utilisation", plan.utilisation()},
              {"stage", plan.stage}});
  const Memory& memory = plan.memory;
  out["memory"] = {{"all", memory.all()},
                   {"fits", plan.fits()},
                   {"layer_state", memory.layer_state},
                   {"embedding_state", memory.embedding_state},
                   {"activations", memory.activations},
                   {"activations_per_layer", memory.activations_per_layer},
                   {"micro_batches_kept", memory.micro_batches_kept}};
  out["collectives"] = to_json(plan.mapping, plan.collectives);
  out["computations"] = to_json(computations_table(plan.computations));
  return out;
}

}  // namespace rankine::tools
