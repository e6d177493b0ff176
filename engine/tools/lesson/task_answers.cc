#include "engine/tools/lesson/task_answers.h"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/tools/plan/layer_work.h"
#include "engine/tools/plan/pipeline.h"

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
  Goal goal;
};
Made make(Collective collective, std::string_view name, Params params) {
  const Algorithm& line = *find_algorithm(collective, name);
  params = resolved(params);
  Made out{line.make(params), {}};
  out.goal = goal_of(line, params, out.schedule);
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

}  // namespace

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

// Both are straight lines over S, made of what they take without bytes and without latency.
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

// What the planner has a layer exchange along tp.
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

}  // namespace rankine::tools
