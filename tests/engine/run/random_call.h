// What a schedule means, executed literally on plain memory: every transfer of a round reads what
// was there when the round began. No versions, no places, no kernels: nothing of the code under
// test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/compile/compile.h"
#include "engine/compile/direct_passes.h"
#include "engine/compile/lower.h"
#include "engine/compile/program.h"
#include "engine/compile/staging.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"
#include "tests/engine/run/random.h"

namespace rankine {

// A stretch of a rank's memory that holds its input and its output, wherever they lie in it.
struct Image {
  std::vector<std::byte> bytes;
  std::size_t input = 0, output = 0;  // offsets
};

// What `before` becomes: in each rank's output every block that it needs and that the schedule
// brings there (or that started there), everything else untouched. A reduction folds its sources in
// the order stated, the rank's own block first; avg divides where the last contribution arrives.
std::vector<Image> execute_literally(const Schedule& schedule, const Goal& goal,
                                     const Layout& layout, DataType type, ReduceOp op,
                                     std::vector<Image> before);

// Random collective calls: a legal schedule of no particular use, its plan, what every rank's
// memory holds before and what it must hold after.

struct TestCall {
  Schedule schedule;
  Goal goal;
  Layout layout;
  DataType type = DataType::u32;
  ReduceOp op = ReduceOp::sum;
  Plan plan;
  bool in_turns = false;             // it may be (Passes::turns)
  std::vector<Image> before, after;  // per rank
  std::string text;                  // how it is called, for messages
};

// A call that is legal: it reads what is there, copies one thing to a place or reduces many, never
// both, and gives a place what has its size. Not necessarily of any use.
Schedule random_schedule(Random& random, const Goal& goal, const Layout& layout);

// What becomes of a program on its way to the direct transport, as in compile().
struct Passes {
  bool copy_first = false;
  bool pushes = false;
  std::size_t own_first_from = 0;  // 0: never
  PushMutant push_mutant = PushMutant::none;
  std::optional<ShareOptions> shares{};  // none: never
  std::optional<StageOptions> stages{};  // likewise; of programs that are staged, and then alone
  std::optional<TurnOptions> turns{};    // likewise, before these
};

// Data that half a board of a test's team holds.
inline constexpr std::size_t kTestBoard = 8192;

// What a random call may be, and the faults that its plan shall have.
struct CallRules {
  int ranks = 2;
  std::size_t slot_payload = 48;  // of the mailboxes that it will run on
  int most_elements = 300;        // of a natural block
  ProgramOptions program{};
  LowerOptions::Mutant mutant = LowerOptions::Mutant::none;
  int mailbox_capacity = 0;              // 0: any that is allowed
  std::optional<int> ports{};            // none: any budget, or none
  const Algorithm* algorithm = nullptr;  // nullptr: a random schedule
  std::optional<Transport> transport{};  // none: any
  std::optional<Passes> passes{};        // none: any
};
TestCall random_call(Random& random, const CallRules& rules);

// The program of a call as make_program() sees it: for tests that look at plans.
Result<Plan> make_plan(const Schedule& schedule, const Goal& goal, const Layout& layout,
                       Buffers buffers, Transport transport, const LowerOptions& lower,
                       const ProgramOptions& program = {}, const Passes& passes = {});

// Round by round, a transfer a line.
std::string to_string(const Schedule& schedule);

// The first byte in which two images differ, in words; empty where they agree.
std::string difference_between(const Image& got, const Image& wanted);

}  // namespace rankine
