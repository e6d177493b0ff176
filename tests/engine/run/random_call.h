// Random collective calls for tests: a legal random schedule, its plan, the memory of every rank
// before the call, and the expected memory after it. The expected memory comes from executing the
// schedule literally: every transfer of a round reads the values from before the round. No
// versions, places or kernels are used, so no code under test.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/compile/compile.h"
#include "engine/compile/lower.h"
#include "engine/compile/passes.h"
#include "engine/compile/program.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"
#include "tests/engine/run/random.h"

namespace rankine {

// A part of a rank's memory that holds its input and its output, at any offsets.
struct Image {
  std::vector<std::byte> bytes;
  std::size_t input = 0, output = 0;  // offsets
};

// Returns the images after the call. In each rank's output every needed block changes that the
// schedule delivers (or that started there); all other bytes stay. A reduction folds its sources in
// the order stated, beginning with the rank's block. avg divides when the last contribution
// arrives.
std::vector<Image> execute_literally(const Schedule& schedule, const CollectiveSpec& goal,
                                     const Layout& layout, DataType type, ReduceOp op,
                                     std::vector<Image> before);

struct TestCall {
  Schedule schedule;
  CollectiveSpec goal;
  Layout layout;
  DataType type = DataType::u32;
  ReduceOp op = ReduceOp::sum;
  Plan plan;
  bool in_turns = false;             // may run in turns (Passes::turns)
  std::vector<Image> before, after;  // per rank
  std::string text;                  // describes the call, for messages
};

// A legal schedule: it reads existing blocks, copies one source to a place or reduces many (never
// both), and stores blocks of the place's size. It may be useless.
Schedule random_schedule(Random& random, const CollectiveSpec& goal, const Layout& layout);

// The passes over a program for the direct transport, as in compile().
struct Passes {
  bool copy_then_reduce = false;
  bool pushes = false;
  std::size_t copy_local_first_from = 0;  // 0: never
  PushMutant push_mutant = PushMutant::none;
  std::optional<ShareOptions> shares{};  // none: never
  std::optional<StageOptions> stages{};  // none: never; staged programs only, no other pass
  std::optional<TurnOptions> turns{};    // none: never; runs before these
  std::size_t ahead_max_bytes = 0;       // as LowerOptions::ahead_max_bytes; with `stages` only
};

// Bytes of data in half a board of a test's team.
inline constexpr std::size_t kTestBoard = 8192;

// Limits for a random call, and the faults to plant in its plan.
struct CallRules {
  int ranks = 2;
  std::size_t slot_payload = 48;  // of its mailboxes
  int most_elements = 300;        // in a natural block
  ProgramOptions program{};
  LowerOptions::Mutant mutant = LowerOptions::Mutant::none;
  int mailbox_capacity = 0;              // 0: any that is allowed
  std::optional<int> ports{};            // none: any budget, or none
  const Algorithm* algorithm = nullptr;  // nullptr: a random schedule
  std::optional<Transport> transport{};  // none: any
  std::optional<Passes> passes{};        // none: any
  std::vector<int> nodes{};  // as LowerOptions::nodes; only for tests that inspect plans
};
TestCall random_call(Random& random, const CallRules& rules);

// The plan of a call by way of make_program(), for tests that inspect plans.
Result<Plan> make_plan(const Schedule& schedule, const CollectiveSpec& goal, const Layout& layout,
                       Buffers buffers, Transport transport, const LowerOptions& lower,
                       const ProgramOptions& program = {}, const Passes& passes = {});

// Round by round, one transfer a line.
std::string to_string(const Schedule& schedule);

// Describes the first byte that differs between two images; empty if they are equal.
std::string difference_between(const Image& got, const Image& wanted);

}  // namespace rankine
