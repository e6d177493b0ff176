// Defines the tasks of formula_tasks.h, computes their right values with the engine, and judges
// formulas.

#include "engine/lab/lesson/formula_tasks.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/numbers.h"
#include "engine/cli/text.h"
#include "engine/lab/planner/layer_work.h"
#include "engine/lab/planner/pipeline.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"

namespace rankine::tools {
namespace {

using formulas::Letters;
using formulas::Value;

Rational number(const Letters& letters, std::string_view letter) {
  return letters.find(letter)->second.rational();
}
int whole(const Letters& letters, std::string_view letter) {
  return static_cast<int>(number(letters, letter).top());
}

struct Made {
  Schedule schedule;
  CollectiveSpec goal;
};
Made make(Collective collective, std::string_view name, Params params) {
  const Algorithm& entry = *find_algorithm(collective, name);
  params = resolved(params);
  Made out{entry.make(params), {}};
  out.goal = goal_of(entry, params, out.schedule);
  return out;
}
Params among(int ranks) {
  Params params;
  params.ranks = ranks;
  return params;
}

// Bytes of S that the busiest rank sends.
Value sent(const Made& made, Rational bytes) {
  return Rational(count(made.schedule).busiest.sent) / Rational(blocks_per_m(made.goal)) * bytes;
}
Value sent(Collective collective, int ranks, Rational bytes) {
  return sent(make(collective, "ring", among(ranks)), bytes);
}

// Seconds on a network of one port per rank.
Rational seconds(const Made& made, Rational alpha, Rational beta, Rational bytes) {
  Fabric fabric = plain_regime().fabric;
  fabric.link.alpha = alpha;
  fabric.link.beta = beta;
  const Simulation result =
      simulate(made.schedule, made.goal, fabric, static_cast<std::uint64_t>(bytes.top()),
               {.ideal_blocks = true})
          .value();
  return Rational(result.end, result.ticks_per_second);
}
Value seconds(const Made& made, const Letters& letters) {
  return seconds(made, number(letters, "A"), Rational(1) / number(letters, "W"),
                 number(letters, "S"));
}

// An all-reduce in which every rank sends whole vectors to the next rank, its own first, on a
// separate plane, and adds up the vectors that it receives. Ranks add in different orders.
Schedule alternate_ring(int ranks) {
  // Odd rounds are local work.
  return {.ranks = ranks,
          .blocks = 1,
          .rounds = 2 * (ranks - 1),
          .round =
              [ranks](int k, Send send) {
                for (Rank r = 0; r < ranks; ++r) {
                  if (k % 2 == 0) {
                    send(r, r + 1, block(0, k == 0 ? 0 : 1), block(0, 1), copy);
                  } else {
                    send(r, r, block(0, 1), block(0, 0), reduce);
                  }
                }
              },
          .planes = 2};
}

Value ring_bytes(const Letters& letters) {
  return sent(Collective::all_reduce, whole(letters, "N"), number(letters, "S"));
}

Value ring_time(const Letters& letters) {
  return seconds(make(Collective::all_reduce, "ring", among(whole(letters, "N"))), letters);
}

Value alternate_ring_time(const Letters& letters) {
  const int ranks = whole(letters, "N");
  return seconds({alternate_ring(ranks), {.ranks = ranks, .blocks = 1, .same_bits = false}}, 0,
                 Rational(1) / number(letters, "W"), number(letters, "S"));
}

Value tree_rounds(const Letters& letters) {
  const Made made = make(Collective::reduce, "binomial_near", among(whole(letters, "N")));
  return count(made.schedule).rounds;
}

Value chain_broadcast(const Letters& letters) {
  return seconds(make(Collective::broadcast, "chain", among(whole(letters, "N"))), letters);
}

Value tree_broadcast(const Letters& letters) {
  return seconds(make(Collective::broadcast, "binomial_far", among(whole(letters, "N"))), letters);
}

Value pipeline_broadcast(const Letters& letters) {
  Params params = among(whole(letters, "N"));
  params.segments = whole(letters, "K");
  return seconds(make(Collective::broadcast, "chain", params), letters);
}

Value torus_rounds(const Letters& letters) {
  const int side = whole(letters, "D");
  Params params = among(side * side);
  params.dims = {side, side};
  return count(make(Collective::all_reduce, "bucket", params).schedule).rounds;
}

// The size at which two times are equal. Both times are straight lines over S, each the sum of its
// time without bytes and its time without latency.
Value crossover_bytes(const Letters& letters) {
  const Params params = among(1 << whole(letters, "E"));
  const Made ring = make(Collective::all_reduce, "ring", params);
  const Made doubling = make(Collective::all_reduce, "recursive_doubling", params);
  const Rational alpha = number(letters, "A"), beta = Rational(1) / number(letters, "W");
  const auto latency = [&](const Made& made) { return seconds(made, alpha, 0, 0); };
  const auto per_byte = [&](const Made& made) { return seconds(made, 0, beta, 1); };
  return (latency(ring) - latency(doubling)) / (per_byte(doubling) - per_byte(ring));
}

Value fsdp_bytes(const Letters& letters) {
  const int ranks = whole(letters, "N");
  const Rational bytes = number(letters, "S");
  const Value gather = sent(Collective::all_gather, ranks, bytes);
  return gather + gather + sent(Collective::reduce_scatter, ranks, bytes);
}

Value accumulation_bytes(const Letters& letters) {
  return number(letters, "K") * fsdp_bytes(letters).rational();
}

// The bytes of a layer's collectives along tp according to the planner.
Value tp_bytes(const Letters& letters) {
  const int ranks = whole(letters, "N"), hidden = whole(letters, "H");
  const Model model{.layers = 1,
                    .hidden = hidden,
                    .heads = 1,
                    .kv_heads = 1,
                    .feed_forward = 4 * hidden,
                    .sequence = whole(letters, "T")};
  Mapping mapping;
  mapping[Axis::tp] = ranks;
  Value all;
  for (const Exchange& exchange : layer_work(model, mapping).exchanges) {
    if (exchange.along != std::vector{Axis::tp}) continue;
    all = all + sent(exchange.collective, ranks,
                     Rational(static_cast<std::int64_t>(std::llround(exchange.bytes))));
  }
  return all;
}

Value bubble_seconds(const Letters& letters) {
  const double forward = whole(letters, "F"), backward = whole(letters, "B");
  const Pipeline played = play(
      {.order = PipelineOrder::gpipe,
       .stages = whole(letters, "P"),
       .micro_batches = whole(letters, "K"),
       .seconds = [=](Pass pass, int, int) { return pass == Pass::forward ? forward : backward; }});
  return std::llround(played.most_idle());
}

const TaskLetter kN{'N', "ranks", 2, 33};
const TaskLetter kS{'S', "bytes", 1, 1 << 28};
const TaskLetter kW{'W', "bytes per second of a port", 1, 400, Rational(1'000'000'000)};
const TaskLetter kA{'A', "seconds that a message takes besides its bytes", 1, 50,
                    Rational(1, 10'000'000)};
const TaskLetter kK{'K', "chunks", 1, 64};

std::vector<FormulaTask> all_tasks() {
  return {
      {"ring_bytes",
       "How many bytes does each of N ranks send in a ring all-reduce of S bytes?",
       {kN, kS},
       ring_bytes},
      {"ring_time",
       "How long does a ring all-reduce of S bytes take among N ranks?",
       {kN, kS, kW, kA},
       ring_time},
      {"alternate_ring",
       "An alternate ring all-reduce: every rank sends whole vectors of S bytes on, its own first, "
       "and adds up the vectors that it receives. How long does it take if only bytes count?",
       {kN, kS, kW},
       alternate_ring_time},
      {"tree_rounds",
       "How many rounds does a binomial reduction take among N ranks, any N?",
       {{'N', "ranks", 2, 200}},
       tree_rounds},
      {"chain_broadcast",
       "How long is a broadcast of S bytes along a chain of N ranks?",
       {kN, kS, kW, kA},
       chain_broadcast},
      {"tree_broadcast",
       "How long is a broadcast of S bytes along a binomial tree of N ranks?",
       {kN, kS, kW, kA},
       tree_broadcast},
      {"pipeline_broadcast",
       "How long is a broadcast of S bytes along a chain of N ranks, in K equal chunks?",
       {kN, kS, kW, kA, kK},
       pipeline_broadcast},
      {"torus_rounds",
       "How many rounds has the Bucket all-reduce on a torus of D x D ranks?",
       {{'D', "ranks along each dimension", 2, 12}},
       torus_rounds},
      {"crossover",
       "2^E ranks: at how many bytes S does a ring all-reduce cost the same as recursive doubling?",
       {{'E', "N = pow(2,E) ranks", 2, 6}, kW, kA},
       crossover_bytes},
      {"dp_bytes",
       "Data parallelism: how many bytes does each of N ranks send per step, at least, to sum up "
       "gradients of S bytes?",
       {kN, kS},
       ring_bytes},
      {"fsdp_bytes",
       "FSDP: parameters of S bytes lie in shards, are gathered forward and again backward, and "
       "gradients (S bytes, too) end in shards. How many bytes does each of N ranks send per step?",
       {kN, kS},
       fsdp_bytes},
      {"tp_bytes",
       "Tensor parallelism: how many bytes does each of N ranks send per layer, forward and "
       "backward, by rings, with activations of T tokens, H numbers each, 2 bytes a number?",
       {{'N', "ranks", 2, 16}, {'T', "tokens", 1, 8192}, {'H', "numbers per token", 64, 16384}},
       tp_bytes},
      {"accumulation_bytes",
       "FSDP and gradients accumulated in shards over K micro-batches: how many bytes does each of "
       "N ranks send per step?",
       {kN, kS, {'K', "micro-batches", 1, 32}},
       accumulation_bytes},
      {"bubble",
       "GPipe: P stages, K micro-batches, F seconds forward and B seconds backward for each. How "
       "long is the first stage idle between its first work and its last?",
       {{'P', "stages", 2, 16},
        {'K', "micro-batches", 1, 32},
        {'F', "seconds", 1, 9},
        {'B', "seconds", 1, 9}},
       bubble_seconds},
  };
}

// Draws the next input of the seed's sequence. The first input has the least value of every letter,
// because mistakes often show there.
Letters draw(const FormulaTask& task, std::uint64_t& state, bool least) {
  Letters out;
  for (const TaskLetter& one : task.letters) {
    state += kSplitMixStep;
    const auto numbers = static_cast<std::uint64_t>(one.highest - one.lowest + 1);
    const auto drawn = least ? 0 : static_cast<std::int64_t>(splitmix(state) % numbers);
    out.emplace(std::string(1, one.letter), Rational(one.lowest + drawn) * one.unit);
  }
  return out;
}

}  // namespace

std::span<const FormulaTask> formula_tasks() {
  static const std::vector<FormulaTask> tasks = all_tasks();
  return tasks;
}

Result<const FormulaTask*> find_formula_task(std::string_view argument, std::string_view name) {
  std::vector<std::string_view> names;
  for (const FormulaTask& task : formula_tasks()) {
    if (task.name == name) return &task;
    names.push_back(task.name);
  }
  return unknown_name(argument, name, names);
}

Result<std::optional<FormulaMiss>> judge_formula(const FormulaTask& task,
                                                 const std::string& formula, std::uint64_t seed) {
  constexpr std::size_t kLongest = 400;
  if (formula.size() > kLongest) {
    return invalid_argument(fmt::format("the formula has {} characters; at most {} are read",
                                        formula.size(), kLongest));
  }
  std::uint64_t state = splitmix(seed + 1);
  for (int i = 0; i < kFormulaTrials; ++i) {
    const Letters letters = draw(task, state, i == 0);
    Value said;
    try {
      said = formulas::evaluate(formula, letters);
    } catch (const std::exception& error) {
      return invalid_argument(fmt::format("the formula: {}", error.what()));
    }
    const Value right = task.answer(letters);
    if (!formulas::equal(said, right)) return std::optional(FormulaMiss{letters, said, right});
  }
  return std::optional<FormulaMiss>();
}

std::string letters_text(const FormulaTask& task, const Letters& letters) {
  std::string out;
  for (const TaskLetter& one : task.letters) {
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", one.letter,
                       formulas::to_string(letters.find(std::string(1, one.letter))->second));
  }
  return out;
}

Json formula_json(const FormulaTask& task, const std::string& formula, std::uint64_t seed,
                  const std::optional<FormulaMiss>& miss) {
  Json out = {{"task", task.name}, {"formula", formula}, {"seed", seed}, {"right", !miss}};
  if (miss) {
    out["at"] = letters_text(task, miss->letters);
    out["said"] = formulas::to_string(miss->said);
    out["engine"] = formulas::to_string(miss->right);
  }
  return out;
}

}  // namespace rankine::tools
