#include "engine/network/clocked_run.h"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/compile/compile.h"
#include "engine/run/fingerprint.h"
#include "engine/run/interpret.h"

namespace rankine {
namespace {

constexpr std::size_t kPerBlock = 16;  // elements: a cache line, so that no block is empty

// What rank r contributes to element e of block b; sums of thousands stay within 32 bits.
std::uint32_t contribution(Rank r, Block b, std::size_t e) {
  std::uint32_t x = static_cast<std::uint32_t>(r) * 2654435761U ^
                    static_cast<std::uint32_t>(b) * 40503U ^ static_cast<std::uint32_t>(e) * 97U;
  x ^= x >> 15;
  return x % 65521U;
}

std::uint32_t expected(const Goal& goal, Block b, std::size_t e) {
  std::uint32_t sum = 0;
  for (Rank r : ranks(goal.ranks)) {
    if (goal.starts(r, b)) sum += contribution(r, b, e);
  }
  return sum;
}

struct RankData {
  std::vector<std::uint32_t> input, output;
  std::vector<std::byte> scratch;
};

std::string wrong_data(const Goal& goal, const Layout& layout, Rank r, const RankData& mine) {
  for (Block b = 0; b < goal.blocks; ++b) {
    if (!goal.needs(r, b)) continue;
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    for (std::size_t e = 0; e < home.bytes / 4; ++e) {
      if (mine.output[home.output / 4 + e] != expected(goal, b, e)) {
        return "rank " + std::to_string(r) + ", block " + std::to_string(b) + ", element " +
               std::to_string(e) + " is wrong";
      }
    }
  }
  return {};
}

}  // namespace

ClockedRun run_clocked(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                       const Pricing& pricing, ThrottleOptions options) {
  // Ranks may well outnumber cores: look a few times, give way, then sleep.
  options.wait.mode = WaitPolicy::Mode::yield;
  options.wait.probes = 4;

  const int natural = natural_blocks(goal.collective, goal.ranks);
  CompileRequest request;
  request.counts.assign(static_cast<std::size_t>(natural),
                        static_cast<std::size_t>(goal.blocks / natural) * kPerBlock);
  request.type = DataType::u32;
  request.transport = Transport::direct;
  // A barrier may hear from a rank twice; "or" does not mind.
  if (is_idempotent(goal.collective)) request.op = ReduceOp::bor;
  auto compiled = compile(request, schedule, goal);
  if (!compiled.ok()) return {compiled.status(), nullptr};
  auto clock = Throttle::create(schedule, goal, fabric, pricing, options);
  if (!clock.ok()) return {clock.status(), nullptr};

  const auto n = static_cast<std::size_t>(goal.ranks);
  Crossbar crossbar(goal.ranks, options.wait, options.timeout_ns);
  std::vector<RankData> buffers(n);
  for (Rank r : ranks(goal.ranks)) {
    RankData& mine = buffers[static_cast<std::size_t>(r)];
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
    state.waiter.fingerprint =
        with_call(make_fingerprint(goal.collective, request.type, request.op, false,
                                   Transport::direct, goal.root, 0, 0),
                  1)
            .bits;
    state.outbox.resize(n);
    state.inbox.resize(n);
    state.memory.resize(n * 4);
    state.operands.assign(static_cast<std::size_t>(compiled->plan.most_operands), nullptr);
    RankData& mine = buffers[self];
    state.memory_of(self, Memory::input) = reinterpret_cast<std::byte*>(mine.input.data());
    state.memory_of(self, Memory::output) = reinterpret_cast<std::byte*>(mine.output.data());
    state.memory_of(self, Memory::scratch) = mine.scratch.data();
    if (!interpret(compiled->plan, state, (*clock)->observer(r))) {
      crossbar.abort({Code::aborted, "rank " + std::to_string(r) + " gave up"});
    }
    (*clock)->finished(r);
  };
  std::vector<std::thread> threads;
  for (Rank r : ranks(goal.ranks)) threads.emplace_back(play, r);
  for (std::thread& thread : threads) thread.join();

  ClockedRun run{{}, std::move(*clock)};
  run.status = run.clock->health();
  if (run.status.ok() && crossbar.aborted()) run.status = crossbar.reason();
  if (goal.collective == Collective::barrier) return run;  // moves no data that anybody needs
  for (Rank r = 0; r < goal.ranks && run.status.ok(); ++r) {
    const std::string wrong =
        wrong_data(goal, compiled->layout, r, buffers[static_cast<std::size_t>(r)]);
    if (!wrong.empty()) run.status = Status(Code::remote_error, wrong);
  }
  return run;
}

}  // namespace rankine
