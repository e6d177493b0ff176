// Implements rankine plan, rankine step and the options that they share; measures this machine for
// `--machine here`.

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/base/statistics.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tune.h"
#include "engine/lab/commands.h"
#include "engine/lab/planner/chakra.h"
#include "engine/lab/planner/machine.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/pipeline.h"
#include "engine/lab/planner/plan_report.h"
#include "engine/lab/planner/play_step.h"
#include "engine/lab/planner/search.h"
#include "engine/lab/planner/step.h"
#include "engine/read/count.h"
#include "engine/run/machine.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kHere = "here";
constexpr int kRanks = 2;
constexpr std::size_t kWidth = 256;                     // rows and columns of the matrices
constexpr std::size_t kCopied = std::size_t{16} << 20;  // floats; more than all caches hold
constexpr int kProducts = 60, kCopies = 10;             // repetitions per rank; the median counts
constexpr double kFitSeconds = 1;

double seconds_of(const auto& body) {
  const std::int64_t begin = now_ns();
  body();
  return static_cast<double>(now_ns() - begin) * 1e-9;
}

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define RANKINE_ANY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RANKINE_ANY_WIDTH
#endif

constexpr std::size_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
struct Square {
  Lanes rows[kWidth][kWidth / kLanes];
};

std::unique_ptr<Square> square_of(std::size_t modulus) {
  auto m = std::make_unique<Square>();
  for (std::size_t i = 0; i < kWidth; ++i) {
    for (std::size_t j = 0; j < kWidth; ++j) {
      m->rows[i][j / kLanes][j % kLanes] = static_cast<float>((i * kWidth + j) % modulus);
    }
  }
  return m;
}

// c += a b. A row of c takes four rows of b at a time.
RANKINE_ANY_WIDTH void multiply(const Square& a, const Square& b, Square& c) {
  constexpr std::size_t kTogether = 4;
  for (std::size_t i = 0; i < kWidth; ++i) {
    for (std::size_t k = 0; k < kWidth; k += kTogether) {
      const Lanes factors = a.rows[i][k / kLanes];
      const float f0 = factors[k % kLanes], f1 = factors[k % kLanes + 1],
                  f2 = factors[k % kLanes + 2], f3 = factors[k % kLanes + 3];
      for (std::size_t j = 0; j < kWidth / kLanes; ++j) {
        c.rows[i][j] += f0 * b.rows[k][j] + f1 * b.rows[k + 1][j] + f2 * b.rows[k + 2][j] +
                        f3 * b.rows[k + 3][j];
      }
    }
  }
}

struct Rates {
  double flops = 0, memory_bandwidth = 0;
};

// Measures one rank; the other rank runs this at the same time.
Result<Rates> rates_of(Member& me) {
  std::vector<double> products, copies;
  const auto a = square_of(7), b = square_of(5), c = square_of(1);
  if (Status s = me.barrier(); !s.ok()) return s;
  for (int i = 0; i < kProducts; ++i) {
    // The next product depends on this result, so the compiler cannot remove this product.
    products.push_back(seconds_of([&] { multiply(*a, *b, *c); }));
    a->rows[0][0] = c->rows[0][0] * 0;
  }
  const std::vector<float> from(kCopied, 1);
  std::vector<float> to(kCopied);
  if (Status s = me.barrier(); !s.ok()) return s;
  for (int i = 0; i < kCopies; ++i) {
    copies.push_back(seconds_of([&] { std::copy(from.begin(), from.end(), to.begin()); }));
  }
  const double width = kWidth;
  return Rates{2 * width * width * width / median(products),
               2.0 * kCopied * sizeof(float) / median(copies)};
}

Result<Fabric> network_of(const std::vector<CostPoint>& points) {
  const auto fit = fit_costs(points);
  if (!fit.ok()) return fit.status();
  return machine_fabric(fit->model);
}

// Measures the machine that runs this program. A rank is a thread on its own core. Products are
// those of multiply(), on two cores at the same time; copying through memory, too. The network is a
// fit of a hop and of an addition between the two cores (fit_costs() of cli/tune.h), without links
// between nodes. Takes about two seconds; a signal shortens it. Errors: errors of a Team's calls,
// and of a fit to noise.
Result<Machine> measure_machine() {
  const auto points = measure_costs(kFitSeconds);
  if (!points.ok()) return points.status();
  auto team = Team::create({.ranks = kRanks, .tuned = false});
  if (!team.ok()) return team.status();
  auto network = network_of(*points);
  if (!network.ok()) {
    return Status{network.status().code(),
                  "this machine could not be measured: " + network.status().text()};
  }
  network->name = kHere;
  std::array<Rates, kRanks> rates;
  const Status measured = (*team)->run([&](Member& me) {
    const auto own = rates_of(me);
    own.status().throw_if_error();
    rates[static_cast<std::size_t>(me.rank())] = *own;
  });
  if (!measured.ok()) return measured;
  const auto by = [](double Rates::*rate) {
    return [rate](const Rates& one, const Rates& other) { return one.*rate < other.*rate; };
  };
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(sysconf(_SC_PAGESIZE)) /
                        static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return Machine{.name = std::string(kHere),
                 .flops = std::min(rates[0], rates[1], by(&Rates::flops)).flops,
                 .memory_bandwidth =
                     std::min(rates[0], rates[1], by(&Rates::memory_bandwidth)).memory_bandwidth,
                 .memory_bytes = memory,
                 .network = std::move(*network)};
}

// The options that describe a model, its machine, and its mapping to ranks.
struct PlanArguments {
  Model model{.name = {}};  // without a name: none is given
  Machine machine = known_machines().front().machine;
  bool is_here = false;  // the machine is measured
  Mapping mapping;
  std::optional<int> sequence, bytes, batch, micro_batches, ranks;
  const Menu* menu = find_menu("nccl");
};

template <class Enum>
std::vector<std::string_view> names_of(std::size_t count) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(name_of(static_cast<Enum>(i)));
  return names;
}

// Reads one of several names and returns its index as an Enum.
template <class Enum>
struct Named {
  std::vector<std::string_view> names;
  Result<Enum> operator()(std::string_view argument, std::string_view text) const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return static_cast<Enum>(i);
    }
    return unknown_name(argument, text, names);
  }
};

constexpr Whole kCount{1, 1 << 24};

// Reads "dp,tp": these axes come first, from the inside out; the other axes follow in the usual
// order.
Result<std::array<Axis, kAxes>> read_nested(std::string_view argument, std::string_view text) {
  std::array<Axis, kAxes> nested{};
  std::size_t n = 0;
  const auto has = [&](Axis axis) {
    return std::find(nested.begin(), nested.begin() + n, axis) != nested.begin() + n;
  };
  const auto read = Named<Axis>{names_of<Axis>(kAxes)};
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const auto axis = read(argument, rest.substr(0, end));
    if (!axis.ok()) return axis.status();
    if (has(*axis)) {
      return invalid_argument(fmt::format("{} is '{}', with {} twice; allowed is once", argument,
                                          text, name_of(*axis)));
    }
    nested[n++] = *axis;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const Axis axis : kNested) {
    if (!has(axis)) nested[n++] = axis;
  }
  return nested;
}

Result<double> read_factor(std::string_view argument, std::string_view text) {
  const auto value = parse_decimal(argument, text);
  if (!value.ok()) return value.status();
  if (value->to_double() > 0) return value->to_double();
  return invalid_argument(fmt::format("{} is '{}'; allowed are numbers above 0", argument, text));
}

// Sets the sequences per step: --batch, or --micro-batches, or one micro-batch.
Status set_batch(PlanArguments& a) {
  if (a.batch && a.micro_batches) {
    return invalid_argument(
        fmt::format("--micro-batches is {} and --batch is {}; allowed is one of them",
                    *a.micro_batches, *a.batch));
  }
  if (a.micro_batches) a.mapping.micro_batches = *a.micro_batches;
  if (!a.batch) return {};
  const int each = a.mapping.micro_batch * a.mapping.data_parallel();
  if (*a.batch % each != 0) {
    const int below = *a.batch / each * each;
    return invalid_argument(fmt::format(
        "--batch is {}; allowed with {} replicas and micro-batches of {} are multiples of {}: "
        "the nearest {}",
        *a.batch, a.mapping.data_parallel(), a.mapping.micro_batch, each,
        nearest_of(below, below + each)));
  }
  a.mapping.micro_batches = *a.batch / each;
  return {};
}

// Applies the options of the model.
void set_model(PlanArguments& a) {
  if (a.sequence) a.model.sequence = *a.sequence;
  if (a.bytes) a.model.bytes = *a.bytes;
}

// For `--machine here`.
Status measure_if_here(PlanArguments& a) {
  if (!a.is_here) return {};
  auto here = measure_machine();
  if (here.ok()) a.machine = std::move(*here);
  return here.status();
}

// Applies set_model() and the options of the mapping: micro-batches follow from --batch; `--machine
// here` measures this machine. Errors name the option, its value and the nearest allowed values.
Status settle(PlanArguments& a) {
  set_model(a);
  if (Status s = check_model(a.model); !s.ok()) return s;
  if (Status s = set_batch(a); !s.ok()) return s;
  if (a.ranks && *a.ranks != a.mapping.ranks()) {
    const int others = a.mapping.ranks() / a.mapping[Axis::dp], below = *a.ranks / others;
    const auto with_dp = [&](std::int64_t dp) {
      return fmt::format("{} (dp {})", dp * others, dp);
    };
    const int above = below * others == *a.ranks ? 0 : below + 1;
    return invalid_argument(
        fmt::format("--ranks is {}; the axes multiply to {}; with another dp the nearest {}",
                    *a.ranks, a.mapping.ranks(), nearest_of(below, above, with_dp)));
  }
  if (Status s = check_mapping(a.model, a.mapping); !s.ok()) return s;
  return measure_if_here(a);
}

// The lists of models and machines for the help, with their sources.
std::string known_text() {
  std::string text = "Models:\n";
  for (const PublishedModel& one : published_models()) {
    text += fmt::format("  {:13} {}\n", one.model.name, one.source);
  }
  text += "Machines:\n";
  for (const KnownMachine& one : known_machines()) {
    text += fmt::format("  {:13} {}\n", one.machine.name, one.source);
  }
  text +=
      fmt::format("  {:13} {}\n", kHere, "this one, measured in two seconds: a core for each rank");
  return text;
}

// Returns MODEL, so that the caller can require it.
Option add_plan_arguments(Command app, PlanArguments& a, const std::string& ranks_help) {
  const Option model = add_argument(
      app, "model", a.model,
      [](std::string_view argument, std::string_view text) {
        return find_model(argument, std::string(text));
      },
      "MODEL", "a model named below, or a JSON file");
  add_argument(
      app, "--machine", a.machine,
      [&a](std::string_view argument, std::string_view text) -> Result<Machine> {
        a.is_here = text == kHere;
        return a.is_here ? a.machine : find_machine(argument, std::string(text));
      },
      "MACHINE", "a machine named below, or a JSON file (a100)");
  constexpr std::string_view kAxisHelp[kAxes] = {
      "ranks that share every matrix (1)", "ranks that share every sequence (1)",
      "ranks that share the experts (1)",
      "ranks that each have all parameters and a part of the batch (1)", "pipeline stages (1)"};
  for (std::size_t i = 0; i < kAxes; ++i) {
    add_argument(app, fmt::format("--{}", name_of(static_cast<Axis>(i))), a.mapping.axes[i],
                 Whole{1, 1 << 20}, "N", std::string(kAxisHelp[i]));
  }
  add_argument(app, "--nested", a.mapping.nested, read_nested, "AXES",
               "axes from the inside out, first within a node (tp,sp,ep,dp,pp)");
  add_argument(app, "-t,--ranks", a.ranks, kCount, "N", ranks_help);
  add_argument(app, "--batch", a.batch, kCount, "N", "sequences per step");
  add_argument(app, "--micro-batch", a.mapping.micro_batch, Whole{1, 1 << 20}, "N",
               "sequences per micro-batch (1)");
  add_argument(app, "--micro-batches", a.micro_batches, kCount, "N",
               "micro-batches per step, instead of --batch (1)");
  add_argument(app, "--sequence", a.sequence, kCount, "N", "tokens (the model's)");
  add_argument(app, "--bytes", a.bytes, kCount, "N",
               "bytes of a parameter or an activation: 1, 2 or 4 (the model's)");
  app.add_flag("--split-norms", a.mapping.splits_norms,
               "tp splits the sequence between its matrices: reduce-scatter and all-gather instead "
               "of all-reduce");
  add_argument(app, "--interleave", a.mapping.interleave, Whole{1, 1 << 10}, "N",
               "parts of the model per stage (1)");
  add_argument(app, "--order", a.mapping.order,
               Named<PipelineOrder>{names_of<PipelineOrder>(kPipelineOrders)}, "NAME",
               "order of a stage's work: gpipe, 1f1b, zb1p, zb2p, zbv (1f1b)");
  add_argument(app, "--recompute", a.mapping.recompute,
               Named<Recompute>{names_of<Recompute>(kRecomputes)}, "NAME",
               "recomputed activations: none, selective (attention), full (none)");
  add_argument(app, "--zero", a.mapping.zero, Whole{0, 3}, "N",
               "dp splits: 1 optimizer, 2 also gradients, 3 also parameters (0)");
  add_argument(app, "--router-skew", a.mapping.router_skew, read_factor, "X",
               "tokens of the busiest rank along ep, over their mean (1)");
  add_argument(app, "--capacity", a.mapping.capacity, read_factor, "X",
               "rows that every expert takes, over the mean, padded and dropped (all rows)");
  app.add_flag("--send-once", a.mapping.sends_once,
               "a token goes to a rank once, even if several of its experts are there");
  add_argument(app, "--gradient-bytes", a.mapping.gradient_bytes, Whole{2, 4}, "N",
               "bytes of a gradient: 2 or 4 (4)");
  add_argument(app, "--bucket", a.mapping.bucket_bytes, parse_size, "SIZE",
               "bytes of gradients per bucket (25M)");
  add_menu(app, a.menu);
  return model;
}

struct StepOptions {
  PlanArguments asked;
  PlayOptions play;
  std::string chakra;  // a file
  bool full_speed = false, json = false, csv = false;
};

bool equal(const PlayedCollective& c) { return c.seconds == c.planned.price.seconds; }

Table table_of(const StepPlan& plan, const std::vector<PlayedCollective>& played, bool full_speed) {
  const bool thinned = std::any_of(played.begin(), played.end(), [](const PlayedCollective& c) {
    return c.bytes != c.planned.price.bytes;
  });
  Table table(as::text("along"), "ranks", as::text("collective"), as::text("for", "-"),
              as::text("algorithm"), as::bytes("M", "bytes"),
              as::bytes("thinned to", "bytes_played").when(thinned), as::model_time("planned"),
              as::model_time(full_speed ? "this machine" : "played", "played"), as::text(""),
              as::text("data", "-"), as::data("equal"), as::data("wrong"));
  for (const PlayedCollective& c : played) {
    const Price& price = c.planned.price;
    table.add(axes_text(plan.mapping, c.planned.along), price.ranks, name_of(c.planned.collective),
              c.planned.what, price.algorithm->name, price.bytes, c.bytes, price.seconds, c.seconds,
              full_speed ? ""
              : equal(c) ? "equal"
                         : "DIFFERENT",
              c.wrong == 0 ? "right" : fmt::format("{} WRONG", counted(c.wrong, "byte")), equal(c),
              c.wrong);
  }
  return table;
}

// Reads --chakra, and makes --ranks the ranks of one axis.
Result<std::vector<TraceNode>> read_trace(StepOptions& a) {
  PlanArguments& asked = a.asked;
  if (!asked.model.name.empty() || asked.mapping != Mapping{} || asked.sequence || asked.bytes ||
      asked.batch || asked.micro_batches) {
    return invalid_argument(
        fmt::format("--chakra is '{}'; its nodes are all of the work: leave out the model and "
                    "its options",
                    a.chakra));
  }
  if (asked.ranks.value_or(0) < 2) {
    return invalid_argument(asked.ranks ? "--ranks is 1; allowed with --chakra are 2 and more"
                                        : "--ranks is missing; --chakra needs 2 ranks and more");
  }
  asked.mapping[Axis::dp] = *asked.ranks;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  const auto text = read_input("--chakra", a.chakra, kMostBytes);
  if (!text.ok()) return text.status();
  auto nodes = read_chakra(*text);
  if (nodes.ok()) return nodes;
  return invalid_argument(fmt::format("--chakra '{}': {}", a.chakra, nodes.status().text()));
}

Result<Exit> run_step(StepOptions a, Console& console) {
  if (a.full_speed && a.play.most_bytes != PlayOptions{}.most_bytes) {
    return invalid_argument("--thin and --full-speed are given; allowed is one of them");
  }
  const bool has_model = a.chakra.empty();
  std::vector<TraceNode> nodes;
  if (has_model && a.asked.model.name.empty()) {
    return invalid_argument("model is required, or --chakra");
  }
  if (!has_model) {
    auto read = read_trace(a);
    if (!read.ok()) return read.status();
    nodes = std::move(*read);
  }
  if (Status s = has_model ? settle(a.asked) : measure_if_here(a.asked); !s.ok()) return s;
  if (a.asked.mapping.ranks() > Communicator::kMaxRanks) {
    return invalid_argument(
        fmt::format("the axes multiply to {} ranks; allowed among threads are {}",
                    a.asked.mapping.ranks(), Communicator::kMaxRanks));
  }
  Prices prices(a.asked.machine, a.asked.mapping.ranks(), *a.asked.menu);
  const auto plan = has_model ? plan_step(a.asked.model, a.asked.mapping, a.asked.machine, prices)
                              : plan_trace(nodes, a.asked.mapping, a.asked.machine, prices);
  if (!plan.ok()) {
    return has_model ? plan.status()
                     : of_option(fmt::format("--chakra '{}'", a.chakra), plan.status());
  }
  a.play.network = !a.full_speed;
  const auto played = play_collectives(*plan, a.play);
  if (!played.ok()) return played.status();
  Table table = table_of(*plan, *played, a.full_speed);
  nlohmann::ordered_json json;
  if (has_model) {
    table.title = plan_title(*plan);
    json["model"] = plan->model.name;
  } else {
    table.title = fmt::format(
        "{}: {} on each of {} of {}\nstep {}: computing {}, communicating, exposed {} (hidden {}), "
        "waiting {}",
        a.chakra, counted(nodes.size(), "node"), counted(plan->mapping.ranks(), "rank"),
        plan->machine.name, format_duration(plan->seconds), format_duration(plan->computing()),
        format_duration(plan->exposed()), format_duration(plan->hidden()),
        format_duration(plan->bubble()));
    json = {{"trace", a.chakra},          {"nodes", nodes.size()},
            {"step", plan->seconds},      {"computing", plan->computing()},
            {"exposed", plan->exposed()}, {"hidden", plan->hidden()},
            {"waiting", plan->bubble()}};
  }
  json["ranks"] = plan->mapping.ranks();
  json["collectives"] = to_json(table);
  console.out << (a.json ? json.dump() + "\n" : a.csv ? to_csv(table) : to_text(table));
  for (const PlayedCollective& c : *played) {
    if (c.wrong != 0 || (!a.full_speed && !equal(c))) return Exit::wrong;
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_step(Command tool) {
  auto owned = std::make_shared<StepOptions>();
  StepOptions& a = *owned;
  const Command app = tool.add_subcommand(
      "step", "play a planned step's collectives on threads: real data, planned and played times");
  add_plan_arguments(app, a.asked, "the product of the axes; needed with --chakra");
  add_text(app, "--chakra", a.chakra, "FILE",
           "a Chakra execution trace in place of MODEL: .et, or the JSON of chakra_jsonizer");
  app.add_flag("--full-speed", a.full_speed,
               "at this machine's speed instead of the planned machine's network");
  add_argument(
      app, "--thin", a.play.most_bytes,
      [](std::string_view argument, std::string_view text) -> Result<std::uint64_t> {
        const auto bytes = parse_size(argument, text);
        if (!bytes.ok()) return bytes.status();
        return std::uint64_t{*bytes};
      },
      "SIZE", "largest size of buffers; their bytes take longer, so times stay (as planned)");
  add_argument(app, "-T,--timeout", a.play.timeout, parse_duration, "TIME",
               "limit of one call: 30 (seconds), 500ms (30)");
  add_formats(app, a.json, a.csv, "one line of JSON instead of the table");
  app.footer(
      "Every rank is a thread, groups are split off by axis, and each distinct collective of the "
      "plan is called once, on the network of the machine under a virtual clock: its time is the "
      "plan's, to the last tick. With --chakra every rank does the nodes of one trace: "
      "computations take their recorded times, collectives their planned times; processor, "
      "accelerator and network each do one node at a time, the ready one with the lowest id. Exit "
      "codes: 0 good, 1 wrong data or times.\n\n"
      "Examples:\n"
      "  rankine step gpt2 --tp 2 --dp 2 --pp 2 --batch 4 --split-norms\n"
      "  rankine step gpt2 --dp 4 --zero 1 --full-speed\n"
      "  rankine step --chakra trace.0.et --ranks 8 --machine h100 --thin 64K\n\n" +
      known_text());
  return {app, [owned](Console& console) { return run_step(*owned, console); }};
}

namespace {

struct PlanOptions {
  PlanArguments asked;
  std::string svg, trace;
  bool search = false, decode = false, survey = false, explain = false, json = false, csv = false;
};

Status write_pictures(const PlanOptions& a, const StepPlan& plan) {
  if (!a.svg.empty()) {
    if (Status s = write_picture("--svg", a.svg, timeline_svg(plan_title(plan), plan.pipeline));
        !s.ok()) {
      return s;
    }
  }
  if (a.trace.empty()) return {};
  return of_option("--trace", replace_file(a.trace, timeline_trace(plan.pipeline)));
}

template <class Plan>
std::string written(const PlanOptions& a, const Plan& plan) {
  return a.json  ? plan_json(plan).dump() + "\n"
         : a.csv ? to_csv(collectives_table(plan.mapping, plan.collectives))
                 : plan_text(plan, a.explain);
}

Result<Exit> run_one(const PlanOptions& a, Console& console) {
  Prices prices(a.asked.machine, a.asked.mapping.ranks(), *a.asked.menu);
  const auto plan = plan_step(a.asked.model, a.asked.mapping, a.asked.machine, prices);
  if (!plan.ok()) return plan.status();
  if (a.survey) {
    const std::vector<SurveyRow> rows = survey_rows(*plan);
    const Table table = survey_table(*plan, rows);
    console.out << (a.json ? to_json(table).dump() + "\n" : a.csv ? to_csv(table) : to_text(table));
    if (Status s = write_pictures(a, *plan); !s.ok()) return s;
    return Exit::ok;
  }
  console.out << written(a, *plan);
  if (Status s = write_pictures(a, *plan); !s.ok()) return s;
  return Exit::ok;
}

Result<Exit> run_decode(PlanOptions a, Console& console) {
  if (!a.svg.empty() || !a.trace.empty()) {
    return invalid_argument(fmt::format("{} and --decode are given; allowed is one of them",
                                        a.svg.empty() ? "--trace" : "--svg"));
  }
  if (a.asked.batch) {
    if (*a.asked.batch % a.asked.mapping.data_parallel() != 0) {
      return invalid_argument(fmt::format("--batch is {}; allowed are multiples of the {} replicas",
                                          *a.asked.batch, a.asked.mapping.data_parallel()));
    }
    a.asked.mapping.micro_batch = *a.asked.batch / a.asked.mapping.data_parallel();
    a.asked.batch.reset();
  }
  if (Status s = settle(a.asked); !s.ok()) return s;
  Prices prices(a.asked.machine, a.asked.mapping.ranks(), *a.asked.menu);
  const auto plan = plan_decode(a.asked.model, a.asked.mapping, a.asked.machine, prices);
  if (!plan.ok()) return plan.status();
  console.out << written(a, *plan);
  return Exit::ok;
}

Table ranking(const std::vector<StepPlan>& best) {
  Table table(as::number("", "rank"), as::text("mapping"), as::model_time("step", "seconds"),
              As("{:.2f} x")("", "times_the_best"), as::bytes("memory", "bytes"),
              as::text("loses by"));
  for (const StepPlan& plan : best) {
    const Mapping& m = plan.mapping;
    table.add(table.rows.size() + 1,
              fmt::format("{}; {} of {}", describe(m),
                          counted(m.micro_batches, "micro-batch", "micro-batches"), m.micro_batch),
              plan.seconds, plan.seconds / best[0].seconds, plan.memory.all(),
              &plan != best.data() ? slowdown_reason(plan, best[0]) : "");
  }
  return table;
}

Result<Exit> run_search(const PlanOptions& a, Console& console) {
  if (!a.asked.ranks)
    return invalid_argument("--ranks is missing; --search needs the number of ranks");
  if (!a.asked.batch)
    return invalid_argument("--batch is missing; --search needs the number of sequences per step");
  constexpr std::size_t kShown = 8;
  const SearchQuestion question{
      .ranks = *a.asked.ranks, .batch = *a.asked.batch, .common = a.asked.mapping};
  const auto found =
      search_mappings(a.asked.model, a.asked.machine, *a.asked.menu, question, kShown);
  if (!found.ok()) return found.status();
  if (found->best.empty()) {
    return invalid_argument(fmt::format(
        "none of {} of {} over {} fits into {}: the smallest needs {}",
        counted(found->too_large, "mapping"), a.asked.model.name, counted(*a.asked.ranks, "rank"),
        format_bytes(a.asked.machine.memory_bytes), format_bytes(found->least.all())));
  }
  if (a.json) {
    nlohmann::ordered_json out = {{"tried", found->tried}, {"too_large", found->too_large}};
    for (const StepPlan& plan : found->best) out["best"].push_back(plan_json(plan));
    console.out << out.dump() << "\n";
  } else if (a.csv) {
    console.out << to_csv(ranking(found->best));
  } else {
    Table table = ranking(found->best);
    table.title = fmt::format(
        "{} mappings tried, {} more do not fit into memory; the best of each set of axes:",
        found->tried, found->too_large);
    console.out << to_text(table) << "\n" << plan_text(found->best.front(), a.explain);
  }
  if (Status s = write_pictures(a, found->best.front()); !s.ok()) return s;
  return Exit::ok;
}

Result<Exit> run_plan(PlanOptions a, Console& console) {
  if (Status s = check_output_file("--trace", a.trace); !s.ok()) return s;
  if (Status s = check_output_files({{"--svg", a.svg}, {"--trace", a.trace}}); !s.ok()) return s;
  if (a.search && a.decode) {
    return invalid_argument("--search is given; it is for training steps: leave out --decode");
  }
  if (a.survey && (a.search || a.decode)) {
    return invalid_argument(
        fmt::format("--survey is given; it is for one training step: leave out {}",
                    a.search ? "--search" : "--decode"));
  }
  if (a.search) {
    set_model(a.asked);
    return run_search(a, console);
  }
  if (a.decode) return run_decode(std::move(a), console);
  if (Status s = settle(a.asked); !s.ok()) return s;
  return run_one(a, console);
}

}  // namespace

Subcommand add_plan(Command tool) {
  auto owned = std::make_shared<PlanOptions>();
  PlanOptions& a = *owned;
  const Command app = tool.add_subcommand(
      "plan", "plan a model's training step on ranks: collectives, time, memory");
  add_plan_arguments(app, a.asked, "the product of the axes; needed with --search").required();
  app.add_flag("--search", a.search, "try all mappings of --ranks, and show the best");
  app.add_flag("--decode", a.decode,
               "plan one further token of every sequence of the batch, not a training step");
  app.add_flag(
      "--survey", a.survey,
      "the plan's ranks and bytes in the ten rows of the survey (Lu, section 9): the formulas' "
      "values and the simulator's");
  app.add_flag("--explain", a.explain, "show the terms of every number");
  add_formats(app, a.json, a.csv, "as JSON");
  add_picture_file(app, "--svg", a.svg, "write the pipeline's picture to this file");
  add_text(app, "--trace", a.trace, "FILE", "write the pipeline as trace events for Perfetto");
  app.footer(
      "Examples:\n"
      "  rankine plan gpt_175b --tp 8 --pp 8 --interleave 3 --batch 64 --split-norms --recompute "
      "selective\n"
      "  rankine plan llama3_8b --search --ranks 64 --batch 128 --machine h100\n"
      "  rankine plan mixtral_8x7b --ep 8 --zero 1 --sequence 4096 --explain\n"
      "  rankine plan llama3_70b --tp 8 --decode --batch 32 --sequence 2048\n"
      "  rankine plan mixtral_8x7b --tp 2 --sp 2 --ep 2 --dp 2 --pp 2 --survey\n\n" +
      known_text());
  return {app, [owned](Console& console) { return run_plan(*owned, console); }};
}

}  // namespace rankine::tools
