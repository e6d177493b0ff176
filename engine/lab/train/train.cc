// Implements rankine train: trains a small decoder on ranks, on threads or on a modelled machine,
// compares with training on one thread, and prints the result.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/base/files.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "engine/cli/console.h"
#include "engine/cli/drawing.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"
#include "engine/lab/planner/layer_work.h"
#include "engine/lab/planner/machine.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/step.h"
#include "engine/lab/train/matrix.h"
#include "engine/lab/train/trainer.h"
#include "engine/read/count.h"

namespace rankine::tools {

// Plans a step with the trainer's buckets and the cheapest of all algorithms. Errors: errors of
// plan_step(). The machine must outlive the plan.
Result<StepPlan> plan_training(const Training& training, const Machine& machine);

Pace pace_of(const StepPlan& plan);

// Losses by step; fewer than requested after an interruption.
struct Curve {
  std::vector<double> losses;
  double seconds = 0;
  double model_seconds = 0;  // on a modelled machine
};

// The allowed difference between two losses if a BLAS computes one of them, because a BLAS chooses
// the order of its sums.
inline constexpr double kBlasBound = 1e-3;

struct Outcome {
  Curve ranks;
  double bound = 0;  // allowed difference of losses of ranks and one thread; 0: equal bits
  std::optional<StepPlan> plan{};     // only on a modelled machine
  std::optional<Curve> parts, whole;  // one thread: with equal parts; undivided

  bool is_equal(std::size_t step) const {
    const double ours = ranks.losses[step], loss = parts->losses[step];
    const bool is_same = ours == loss || (std::isnan(ours) && std::isnan(loss));
    return is_same || std::abs(ours - loss) <= bound * loss;
  }
  std::size_t equal_steps() const {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < ranks.losses.size(); ++i) {
      equal += is_equal(i) ? 1 : 0;
    }
    return equal;
  }
  double largest_difference() const {
    double most = 0;
    for (std::size_t i = 0; i < ranks.losses.size(); ++i) {
      most = std::max(most, std::abs(ranks.losses[i] - whole->losses[i]));
    }
    return most;
  }
  bool diverged() const { return !std::isfinite(ranks.losses.back()); }
  double model_step() const {
    return ranks.model_seconds / static_cast<double>(ranks.losses.size());
  }
  bool good() const { return !parts || equal_steps() == ranks.losses.size(); }
};

// The subject of the training in one line: "200192 parameters, 16 of 32 characters a step, ...".
std::string title_of(const Training& training);
// Requires at least one step.
std::string text_of(const Outcome& outcome);
nlohmann::ordered_json json_of(const Training& training, const Outcome& outcome);
// A picture of the losses over steps.
std::string svg_of(const Training& training, const Outcome& outcome);

Result<StepPlan> plan_training(const Training& training, const Machine& machine) {
  Mapping mapping = training.mapping;
  mapping.bucket_bytes = Training::kBucketBytes;
  Prices prices(machine, mapping.ranks(), *find_menu("all"));
  return plan_step(training.model, mapping, machine, prices);
}

Pace pace_of(const StepPlan& plan) {
  const auto pass = [&](const std::vector<Computation>& computations, Phase phase) {
    double seconds = 0;
    for (const Computation& c : computations) {
      if (c.phase == phase) seconds += seconds_of(c, plan.machine);
    }
    return seconds;
  };
  const std::vector<Computation> layer = layer_work(plan.model, plan.mapping).computations;
  const std::vector<Computation> head = head_work(plan.model, plan.mapping);
  const auto of_layer = [&](Phase phase) {
    return pass(layer, phase) + launching_seconds(phase, plan.mapping, plan.machine);
  };
  Pace pace{.layer_forward = of_layer(Phase::forward),
            .layer_backward = of_layer(Phase::backward),
            .head_forward = pass(head, Phase::forward),
            .head_backward = pass(head, Phase::backward)};
  for (const PlannedComputation& c : plan.computations) {
    if (c.what == kOptimizer) pace.optimizer = c.times * c.seconds;
  }
  return pace;
}

std::string title_of(const Training& training) {
  const Mapping& m = training.mapping;
  return fmt::format("{} parameters{}, {} of {} a step, {}: {} of {}\n", training.model.all(),
                     training.model.bytes == 2 ? " in bf16" : "", training.mapping.batch(),
                     counted(training.model.sequence, "character"), describe(m),
                     counted(m.micro_batches, "micro-batch", "micro-batches"), m.micro_batch);
}

std::string text_of(const Outcome& o) {
  const bool parts = o.parts.has_value();
  Table table("step", As("{:.6f}")("loss"), As("{:.6f}")("one thread").when(parts),
              as::text("").when(parts), As("{:.6f}")("in one piece").when(parts));
  const std::size_t steps = o.ranks.losses.size();
  constexpr std::size_t kRows = 10;
  for (std::size_t i = 0; i < steps; ++i) {
    if (i != 0 && (i + 1) * kRows / steps == i * kRows / steps) continue;
    auto& row = table.add(i + 1, o.ranks.losses[i]);
    if (parts)
      row.insert(row.end(),
                 {o.parts->losses[i], o.is_equal(i) ? "equal" : "DIFFERENT", o.whole->losses[i]});
  }
  std::string text = fmt::format("\n{}\n{} in {}", to_text(table), counted(steps, "step"),
                                 format_duration(o.ranks.seconds));
  text += o.parts ? "" : "\n";
  if (o.parts) {
    text += fmt::format(
        "; one thread takes {}\n{} of {} losses are one thread's, {}; in one "
        "piece they differ by at most {:.1e}\n",
        format_duration(o.parts->seconds), o.equal_steps(), steps,
        o.bound == 0 ? "bit for bit" : fmt::format("but for {:g}", o.bound),
        o.largest_difference());
  }
  if (o.diverged()) text += "the loss is not finite any more: try a lower --rate\n";
  if (!o.plan) return text;
  return text +
         fmt::format("on {} a step takes {}; planned {}: {} computing, {} exposed, {} bubble\n",
                     o.plan->machine.name, format_duration(o.model_step()),
                     format_duration(o.plan->seconds), format_duration(o.plan->computing()),
                     format_duration(o.plan->exposed()), format_duration(o.plan->bubble()));
}

nlohmann::ordered_json json_of(const Training& training, const Outcome& o) {
  nlohmann::ordered_json out = {
      {"ranks", training.mapping.ranks()},  {"mapping", describe(training.mapping)},
      {"parameters", training.model.all()}, {"type", training.model.bytes == 2 ? "bf16" : "f32"},
      {"losses", o.ranks.losses},           {"seconds", o.ranks.seconds}};
  if (o.plan) {
    out["machine"] = o.plan->machine.name;
    out["model_seconds_per_step"] = o.model_step();
    out["planned_seconds_per_step"] = o.plan->seconds;
  }
  if (o.parts) {
    out["one_thread"] = o.parts->losses;
    out["one_piece"] = o.whole->losses;
    out["equal_steps"] = o.equal_steps();
  }
  return out;
}

std::string svg_of(const Training& training, const Outcome& o) {
  Plot plot{.title = fmt::format("Loss while training, {}", describe(training.mapping)),
            .y_label = "nats per character",
            .baseline = {},
            .x_label = "step"};
  const auto add = [&](std::string name, const Curve& curve) {
    PlotCurve& drawn = plot.curves.emplace_back(PlotCurve{.name = std::move(name)});
    for (std::size_t i = 0; i < curve.losses.size(); ++i) {
      if (!std::isfinite(curve.losses[i])) continue;
      drawn.points.push_back({.bytes = static_cast<double>(i + 1), .y = curve.losses[i]});
    }
  };
  if (o.whole) add("in one piece", *o.whole);
  add(describe(training.mapping), o.ranks);
  fit_axes(plot);
  return to_svg(plot);
}

namespace {

struct TrainArguments {
  Training training;
  int steps = 100, batch = 16;
  std::optional<int> micro_batches;
  double rate = 3e-3;
  int seed = 1;
  bool alone = false, json = false;
  std::string svg;
  std::string blas;                // a library; empty: this program's own products
  std::optional<Machine> machine;  // modelled; empty: this machine at full speed
};

Status settle(TrainArguments& a) {
  Training& t = a.training;
  Model& model = t.model;
  Mapping& m = t.mapping;
  model.name = "the model";
  model.kv_heads = model.heads;
  model.top_k = model.is_mixture() ? 1 : 0;
  if (Status s = check_model(model); !s.ok()) return s;
  m.micro_batches = a.micro_batches.value_or(2 * m[Axis::pp]);
  const int pieces = m.data_parallel() * m.micro_batches;
  if (a.batch % pieces != 0) {
    const int below = a.batch / pieces * pieces;
    return invalid_argument(fmt::format(
        "--batch is {}; {} shards of {} micro-batches take a multiple of {}: the nearest {}",
        a.batch, m.data_parallel(), m.micro_batches, pieces, nearest_of(below, below + pieces)));
  }
  m.micro_batch = a.batch / pieces;
  if (m.zero == 2) {
    return invalid_argument("--zero is 2; allowed are 0, 1 and 3 (gradients are kept whole)");
  }
  t.adam.rate = static_cast<float>(a.rate);
  t.seed = static_cast<std::uint64_t>(a.seed);
  if (Status s = check_mapping(model, m); !s.ok()) return s;
  if (m.ranks() > Communicator::kMaxRanks) {
    return invalid_argument(fmt::format("the axes multiply to {} ranks; threads play at most {}",
                                        m.ranks(), Communicator::kMaxRanks));
  }
  constexpr double kMost = 1e18;  // more than any machine has
  return check_memory(
      static_cast<std::size_t>(std::min(memory_of(model, m).all() * m.ranks(), kMost)),
      "parameters, gradients, moments and activations", counted(m.ranks(), "rank"));
}

Result<double> read_rate(std::string_view argument, std::string_view text) {
  const std::optional<double> rate = parse_real(text);
  if (rate && *rate > 0 && *rate <= 1) return *rate;
  return invalid_argument(
      fmt::format("{} is '{}'; it must be a number above 0, at most 1", argument, text));
}

// Reads a type and returns the bytes of its elements.
Result<int> read_type(std::string_view argument, std::string_view text) {
  const auto type = parse_data_type(text);
  if (type == DataType::f32 || type == DataType::bf16) return static_cast<int>(size_of(*type));
  return unknown_name(argument, text, std::array<std::string_view, 2>{"f32", "bf16"});
}

// Loads the BLAS; call it before ranks start.
Status choose_blas(const TrainArguments& a) {
  if (a.blas.empty()) return {};
  if (a.training.model.bytes != 4) {
    return invalid_argument("--blas is given; products of bf16 are ours, so leave out one of both");
  }
  const auto blas = Blas::open(a.blas);
  if (!blas.ok()) return of_option("--blas", blas.status());
  use_blas(*blas);
  return {};
}

Result<std::optional<int>> read_micro_batches(std::string_view argument, std::string_view text) {
  const auto value = Whole{1, 1 << 16}(argument, text);
  if (!value.ok()) return value.status();
  return std::optional(*value);
}

using Told = std::function<void(int step, double loss)>;

// Runs the steps; after an interruption all ranks stop after the same step.
void play(Trainer& trainer, int steps, const Told& told) {
  for (int step = 1; step <= steps; ++step) {
    const std::optional<double> loss = trainer.step(step, interruption() != 0);
    if (!loss) return;
    told(step, *loss);
  }
}

Result<Curve> train(const TrainArguments& a, const Training& training, bool alone,
                    const Told& told) {
  const Corpus corpus(training.seed);
  Curve curve;
  const auto note = [&](int step, double loss) {
    curve.losses.push_back(loss);
    told(step, loss);
  };
  const auto begin = std::chrono::steady_clock::now();
  if (alone) {
    const Seat seat(training.mapping);
    Trainer trainer(training, seat, corpus);
    play(trainer, a.steps, note);
  } else {
    const int ranks = training.mapping.ranks();
    TeamOptions options{.ranks = ranks};
    if (a.machine) {
      options.network =
          std::make_shared<const CallNetwork>(CallNetwork{.fabric = a.machine->network});
    }
    auto team = Team::create(options);
    if (!team.ok()) return team.status();
    const Status status = (*team)->run([&](Member& me) {
      const Seat seat(training.mapping, me);
      Trainer trainer(training, seat, corpus);
      play(
          trainer, a.steps, me.rank() == 0 ? Told(note) : [](int, double) {});
    });
    if (!status.ok()) return status;
    if (a.machine) curve.model_seconds = (*team)->communicator().network_report().seconds;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  curve.seconds = took.count();
  return curve;
}

// The training with an undivided model on one thread.
Training plain(const Training& training, int batch) {
  Training whole = training;
  whole.mapping = {};
  whole.mapping.micro_batch = batch;
  return whole;
}

Result<Exit> run_train(TrainArguments a, Console& console) {
  if (Status s = settle(a); !s.ok()) return s;
  if (Status s = choose_blas(a); !s.ok()) return s;
  // Checks the file before the work begins, so that no work is lost.
  if (!a.svg.empty()) {
    if (Status s = of_option("--svg", check_replaceable(a.svg)); !s.ok()) return s;
  }
  const InterruptGuard guard;
  if (!a.json) console.out << title_of(a.training) << std::flush;
  Progress progress(console);
  const auto told = [&](std::string who) {
    return
        [&, who = std::move(who), begin = std::chrono::steady_clock::now()](int step, double loss) {
          if (!progress.due()) return;
          const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
          progress.show(fmt::format("{}: step {} of {}, loss {:.4f}{}", who, step, a.steps, loss,
                                    time_left(static_cast<std::size_t>(step),
                                              static_cast<std::size_t>(a.steps), since.count())));
        };
  };
  Outcome outcome;
  if (!a.blas.empty()) outcome.bound = kBlasBound;
  if (a.machine) {
    auto plan = plan_training(a.training, *a.machine);
    if (!plan.ok()) return plan.status();
    a.training.pace = pace_of(*plan);
    outcome.plan = std::move(*plan);
  }
  const bool serial = a.training.mapping.ranks() == 1;
  const auto curve = [&](const Training& training, bool alone, std::string who) {
    return train(a, training, alone, told(std::move(who)));
  };
  auto ranks = curve(a.training, false, describe(a.training.mapping));
  if (!ranks.ok()) return ranks.status();
  outcome.ranks = std::move(*ranks);
  if (!a.alone && !serial && interruption() == 0) {
    auto parts = curve(a.training, true, "one thread");
    if (!parts.ok()) return parts.status();
    auto whole = curve(plain(a.training, a.batch), true, "in one piece");
    if (!whole.ok()) return whole.status();
    outcome.parts = std::move(*parts);
    outcome.whole = std::move(*whole);
  }
  progress.clear();
  if (interruption() != 0) {
    console.err << "rankine train: interrupted; nothing is written\n";
    return exit_of_interruption();
  }
  if (!a.svg.empty()) {
    if (Status s = write_picture("--svg", a.svg, svg_of(a.training, outcome)); !s.ok()) return s;
  }
  console.out << (a.json ? json_of(a.training, outcome).dump() + "\n" : text_of(outcome));
  return outcome.good() ? Exit::ok : Exit::wrong;
}

}  // namespace

Subcommand add_train(Command tool) {
  auto owned = std::make_shared<TrainArguments>();
  TrainArguments& a = *owned;
  Model& model = a.training.model;
  model = {.layers = 4,
           .hidden = 64,
           .heads = 4,
           .feed_forward = 256,
           .vocabulary = Corpus(1).vocabulary(),
           .sequence = 32,
           .bytes = 4};
  const Command app = tool.add_subcommand(
      "train",
      "train a small model on ranks and on one thread, with losses that are equal bit for bit");
  const Whole from_one{1, 1 << 16};
  const auto add = [&](const std::string& flags, int& target, const std::string& help) {
    add_argument(app, flags, target, from_one, "N", fmt::format("{} ({})", help, target));
  };
  Mapping& m = a.training.mapping;
  add("--tp", m[Axis::tp], "ranks that share every matrix");
  add("--dp", m[Axis::dp], "ranks with parts of the batch");
  add("--ep", m[Axis::ep], "ranks that share the experts, each with a part of the batch");
  add("--pp", m[Axis::pp], "pipeline stages");
  add_argument(app, "--micro-batches", a.micro_batches, read_micro_batches, "N",
               "micro-batches per step and shard, one after the other (2 per stage)");
  add_argument(app, "--zero", m.zero, Whole{0, 3}, "N",
               "data parallelism splits: 1 the optimizer's state, 3 also parameters (0)");
  add("--steps", a.steps, "training steps");
  add("--batch", a.batch, "sequences per step");
  add("--layers", model.layers, "layers of the model");
  add("--hidden", model.hidden, "width of the model");
  add("--heads", model.heads, "heads of attention");
  add("--feed-forward", model.feed_forward, "width of the feed-forward parts");
  add_argument(app, "--experts", model.experts, Whole{0, 1024}, "N",
               "experts, of which a token uses one; 0: one feed-forward part for all (0)");
  add_argument(app, "--sequence", model.sequence, Whole{1, Corpus::kMostLength}, "N",
               fmt::format("characters ({})", model.sequence));
  add_argument(app, "--rate,--lr", a.rate, read_rate, "X", "learning rate of Adam (0.003)");
  add_argument(app, "--seed", a.seed, from_one, "N", "seed of the text and of the parameters (1)");
  add_argument(app, "--type", model.bytes, read_type, "TYPE",
               "f32, or bf16: parameters, activations and messages, with sums in f32 (f32)");
  add_text(app, "--blas", a.blas, "LIB",
           "compute products of f32 with this library, e.g. libblas.so.3, instead of own loops");
  app.add_flag("--no-compare", a.alone, "leave out the runs on one thread");
  add_argument(
      app, "--machine", a.machine,
      [](std::string_view argument, std::string_view text) -> Result<std::optional<Machine>> {
        auto machine = find_machine(argument, std::string(text));
        if (!machine.ok()) return machine.status();
        return std::optional(std::move(*machine));
      },
      "MACHINE",
      "model a step's calls and computing on this machine's network and clock (see 'rankine "
      "plan')");
  add_picture_file(app, "--svg", a.svg, "a plot of the losses");
  app.add_flag("--json", a.json, "one line of JSON instead of the table");
  app.footer(
      "The text is generated. Sums over ranks are in the order of ranks, so one thread that "
      "plays all parts gets equal losses, bit for bit; the undivided model's losses differ by "
      "rounding. With a BLAS, losses may differ by a thousandth, because it chooses its order.\n"
      "Exit codes: 0 good, 1 other losses, 130 interrupted.\n\n"
      "Examples:\n"
      "  rankine train\n"
      "  rankine train --dp 4 --zero 1 --svg loss.svg\n"
      "  rankine train --tp 2 --pp 2 --dp 2\n"
      "  rankine train --experts 4 --ep 4\n"
      "  rankine train --dp 2 --type bf16\n"
      "  rankine train --dp 4 --machine a100");
  return {app, [owned](Console& console) { return run_train(*owned, console); }};
}

}  // namespace rankine::tools
