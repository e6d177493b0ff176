#include "engine/claims/execute.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/exec/compile.h"
#include "engine/exec/fingerprint.h"
#include "engine/exec/interpret.h"
#include "engine/exec/throttle.h"

namespace rankine::claims {
namespace {

constexpr std::int64_t kTimeoutNs = 60'000'000'000;
constexpr std::size_t kPerBlock = 16;  // elements: one cache line

// What rank r contributes to element e of block b. Sums of a few thousand stay within 32 bits.
std::uint32_t contribution(Rank r, Block b, std::size_t e) {
  return static_cast<std::uint32_t>((r + 1) * 2654435761u + static_cast<unsigned>(b) * 40503u + e) %
         65521u;
}

// Threads share cores with others here: look a few times, give way, then sleep.
WaitPolicy patient() {
  WaitPolicy policy;
  policy.mode = WaitPolicy::Mode::yield;
  policy.probes = 4;
  return policy;
}

struct Buffers {
  std::vector<std::uint32_t> input, output;
  std::vector<std::byte> scratch;
};

std::uint32_t expected(const Goal& goal, Block b, std::size_t e) {
  std::uint32_t sum = 0;
  for (Rank r : ranks(goal.ranks)) {
    if (goal.starts(r, b)) sum += contribution(r, b, e);
  }
  return sum;
}

std::string wrong_data(const Goal& goal, const Layout& layout, Rank r, const Buffers& mine) {
  for (Block b = 0; b < goal.blocks; ++b) {
    if (!goal.needs(r, b)) continue;
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    for (std::size_t e = 0; e < home.bytes / 4; ++e) {
      if (mine.output[home.output / 4 + e] == expected(goal, b, e)) continue;
      return "rank " + std::to_string(r) + ", block " + std::to_string(b) + ": wrong data";
    }
  }
  return {};
}

}  // namespace

Result<Ticks> execute(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                      const Pricing& pricing, bool by_rounds) {
  const int natural = natural_blocks(goal.collective, goal.ranks);
  CompileRequest request;
  request.counts.assign(static_cast<std::size_t>(natural),
                        static_cast<std::size_t>(goal.blocks / natural) * kPerBlock);
  request.type = DataType::u32;
  request.transport = Transport::direct;
  // A barrier may hear from a rank twice: "or" does not mind.
  request.op = is_idempotent(goal.collective) ? ReduceOp::bor : ReduceOp::sum;
  auto compiled = compile(request, schedule, goal);
  if (!compiled.ok()) return compiled.status();
  ThrottleOptions options;
  options.mode = ClockMode::virtual_time;
  options.by_rounds = by_rounds;
  options.wait = patient();
  options.timeout_ns = kTimeoutNs;
  auto throttle = Throttle::create(schedule, fabric, pricing, options);
  if (!throttle.ok()) return throttle.status();

  const auto n = static_cast<std::size_t>(goal.ranks);
  Crossbar crossbar(goal.ranks, patient(), kTimeoutNs);
  std::vector<Buffers> buffers(n);
  for (Rank r : ranks(goal.ranks)) {
    Buffers& mine = buffers[static_cast<std::size_t>(r)];
    mine.input.resize(input_bytes(compiled->layout, goal, r) / 4);
    mine.output.resize(output_bytes(compiled->layout, goal, r) / 4);
    mine.scratch.resize(compiled->plan.rank[static_cast<std::size_t>(r)].scratch_bytes);
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.starts(r, b)) continue;
      const BlockHome& home = compiled->layout.blocks[static_cast<std::size_t>(b)];
      for (std::size_t e = 0; e < home.bytes / 4; ++e) {
        mine.input[home.input / 4 + e] = contribution(r, b, e);
      }
    }
  }
  const auto play = [&](Rank r) {
    const auto self = static_cast<std::size_t>(r);
    RankState state;
    state.waiter = {.crossbar = &crossbar, .rank = r, .call = 1};
    state.waiter.fingerprint = with_call(make_fingerprint(goal.collective, request.type, request.op,
                                                          false, false, goal.root, 0, 0),
                                         1)
                                   .bits;
    state.outbox.resize(n);
    state.inbox.resize(n);
    state.memory.resize(n * 4);
    state.operands.assign(static_cast<std::size_t>(compiled->plan.most_operands), nullptr);
    state.memory_of(self, Memory::input) = reinterpret_cast<std::byte*>(buffers[self].input.data());
    state.memory_of(self, Memory::output) =
        reinterpret_cast<std::byte*>(buffers[self].output.data());
    state.memory_of(self, Memory::scratch) = buffers[self].scratch.data();
    if (!interpret(compiled->plan, state, (*throttle)->observer(r))) {
      crossbar.abort({Code::aborted, "rank " + std::to_string(r) + " gave up"});
    }
  };
  std::vector<std::thread> threads;
  for (Rank r : ranks(goal.ranks)) threads.emplace_back(play, r);
  for (std::thread& thread : threads) thread.join();
  Status health = (*throttle)->health();
  if (!health.ok()) return health;
  if (crossbar.aborted()) return crossbar.reason();
  for (Rank r : ranks(goal.ranks)) {
    if (goal.collective == Collective::barrier) break;
    const std::string wrong =
        wrong_data(goal, compiled->layout, r, buffers[static_cast<std::size_t>(r)]);
    if (!wrong.empty()) return Status(Code::remote_error, wrong);
  }
  return (*throttle)->end();
}

}  // namespace rankine::claims
