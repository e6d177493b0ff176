// Instruction sets that are missing, clocks that jump or count nothing, counters that wrap.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>

#include "engine/api/network.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/machine.h"

namespace rankine::faults {

void play_instruction_set(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  Judge judge(test, {}, tally);
  const int highest = static_cast<int>(hardware_isa());
  if (highest == 0) {
    judge.excuse("this machine has the portable instructions only");
    return;
  }
  const auto cap = static_cast<Isa>(dice.below(highest));
  setenv("RANKINE_ISA", std::string(name_of(cap)).c_str(), 1);
  if (best_isa() != cap) {
    judge.blame("RANKINE_ISA is " + std::string(name_of(cap)) + ", and kernels are for " +
                std::string(name_of(best_isa())));
  }
  {
    // Integers under every operation, floats under min and max: to the last bit what the
    // collective's definition says, element by element.
    Scene scene(test, {}, tally);
    scene.run([&](Seat& seat) {
      CollectiveCase one = call;
      one.count = 130;
      for (int type = 0; type < kDataTypes; ++type) {
        for (int op = 0; op < kReduceOps; ++op) {
          one.type = static_cast<DataType>(type);
          one.op = static_cast<ReduceOp>(op);
          const bool exact = !rounds(one.type, one.op);
          if (takes(one.collective, one.type, one.op) && exact && !seat.call(one)) return;
        }
      }
    });
  }
  fresh_start(test, call, tally);
}

namespace {

// Stops this process for a while, soon, as a machine does that sleeps: clocks jump for those who
// sleep until a moment. The child that does it, to be waited for; -1: none can be made.
pid_t stop_this_process_soon(std::int64_t delay_ns, std::int64_t for_ns) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t parent = getppid();
  sleep_ns(delay_ns);
  kill(parent, SIGSTOP);
  sleep_ns(for_ns);
  kill(parent, SIGCONT);
  _exit(0);
}

// The case's call, by any algorithm, on a network with such links: whether it could be made.
bool play_on_network(const FaultCase& test, const CollectiveCase& call, const Link& link,
                     ClockMode clock, Tally& tally) {
  auto network = std::make_shared<CallNetwork>();
  Fabric& fabric = network->fabric;
  fabric.link = fabric.between = link;
  fabric.ports = test.ranks;  // as many as any rank has partners
  fabric.multicast = fabric.alu = true;
  network->clock = clock;
  network->dilate = 1;
  const Promise promise{.documented = {Code::invalid_argument}};
  Scene scene(test, promise, tally, {.network = std::move(network)});
  scene.run([&](Seat& seat) { seat.call(call); });
  return scene.works();
}

// On a virtual clock, and at full speed, one process is stopped for a while: for less than the
// deadline of the others, which is no fault, or for longer.
void stop_a_process(const FaultCase& test, const CollectiveCase& call, Dice& dice, Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  const std::int64_t delay_ns = dice.below(5) * 1'000'000LL;
  const bool outlasts = dice.one_in(2);
  Promise promise;
  if (outlasts) promise = {.timeout = kShort, .documented = {Code::timeout}};
  const bool on_a_network = dice.one_in(2);
  const auto asks_for = [&](Rank, CommunicatorOptions& options) {
    if (!on_a_network) return;
    options.network = std::make_shared<const CallNetwork>(
        CallNetwork{.fabric = plain_regime().fabric, .lower = true});
  };
  Scene scene(test, promise, tally, {.asks_for = asks_for});
  scene.run([&](Seat& seat) {
    const bool is_stopped = seat.rank() == victim;
    pid_t child = -1;
    if (is_stopped) child = stop_this_process_soon(delay_ns, outlasts ? 400'000'000 : 20'000'000);
    for (int i = 0; i < 50; ++i) {
      if (!seat.call(meeting(test, test.ranks), {.excused = is_stopped})) break;
      if (is_stopped) sleep_ns(200'000);
    }
    seat.call(call, {.excused = is_stopped});
    int status = 0;
    if (is_stopped && (child < 0 || waitpid(child, &status, 0) != child)) {
      scene.judge().excuse("no child can be made");
    }
  });
}

}  // namespace

void play_clocks(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  if (test.processes) return stop_a_process(test, call, dice, tally);
  Judge judge(test, {}, tally);
  std::vector<const Algorithm*> lines;
  for (const Algorithm& line : catalogue()) {
    if (line.collective == test.collective && !line.refusal({.ranks = test.ranks})) {
      lines.push_back(&line);
    }
  }
  const Algorithm& line =
      *lines[static_cast<std::size_t>(dice.below(static_cast<int>(lines.size())))];
  call.options = {.algorithm = line.name};
  const Rational us(1, 1'000'000), per_gb(1, 1'000'000'000);
  const Link links[] = {
      {us, per_gb},
      {0, per_gb},                         // alpha = 0
      {us, 0},                             // beta = 0
      {0, 0},                              // nothing costs anything
      {us, Rational(3600)},                // an hour per byte
      {Rational(Int128{1} << 126, 1), 0},  // longer than any clock counts
      {Rational(-1), per_gb},              // no time at all
  };
  constexpr std::size_t kUsual = 5;  // of these, the first must work and the others be refused
  for (std::size_t i = 0; i < std::size(links); ++i) {
    if (play_on_network(test, call, links[i], ClockMode::virtual_time, tally) != (i < kUsual)) {
      judge.blame(std::string(line.name) + ", clock " + std::to_string(i));
    }
  }
  // The wall clock: a jump makes deadlines pass all at once, which is no reason to be wrong.
  const pid_t child = stop_this_process_soon(dice.below(5) * 1'000'000LL, 20'000'000);
  play_on_network(test, call, {Rational(1, 1'000), 0}, ClockMode::wall, tally);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) judge.excuse("no child can be made");
  fresh_start(test, call, tally);
}

void play_counters(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  constexpr std::uint32_t kFirst[] = {0U - 3U, 0x80000000U - 3U, 0U - 40U, 0x80000000U - 40U,
                                      0x20000000U - 3U};
  const std::uint32_t first = kFirst[dice.below(static_cast<int>(std::size(kFirst)))];
  {
    Scene scene(test, {}, tally, {.first_count = first});
    scene.run([&](Seat& seat) {
      for (int i = 0; i < 8; ++i) {
        CollectiveCase one = call;
        one.seed += static_cast<std::uint64_t>(i);
        if (!seat.call(one)) return;
      }
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
