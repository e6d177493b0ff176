// From an algorithm's name to a plan: once per (algorithm, parameters, counts, type, operation).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/compile/lower.h"
#include "engine/compile/versions.h"
#include "engine/run/plan.h"

namespace rankine {

struct CompileRequest {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::vector<std::size_t> counts;  // elements of each natural block (see collective.h)
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;    // user: the call brings the operation
  std::size_t element_bytes = 0;  // of raw elements; else the type says so
  // Of rows that the call's epilogue finishes; 0: it has none. Every rank's output is whole rows.
  std::size_t row_elements = 0;
  bool commutative = true;  // else schedules that are not in_rank_order() are refused
  // Where not none, schedules that add up in other brackets are refused, naming who asks for it.
  std::optional<Bracket> bracket;
  std::string_view bracket_for{};  // "order is by_rank"
  // Sums of floats of 16 and 8 bits that are not one fold move in f32 (wide_sums.h); false: each
  // fold rounds.
  bool rounds_once = false;
  Buffers buffers = Buffers::apart;
  // Ranks are processes: they reach each other's scratch, mailboxes and boards only. Threads that
  // could reach more do the same where the costs say that it is faster.
  bool staged = false;
  // None: boards where everybody hears from everybody and they hold it; else the mailboxes where
  // every message fits into a slot, of an all-reduce the whole vector; else direct.
  std::optional<Transport> transport;
  std::size_t slot_payload = 0;  // bytes of data per mailbox slot
  std::size_t board_bytes = 0;   // of data that half a board holds; 0: there are none
  // Direct all-reduces: whoever adds a block up stores it at all who copy it in the schedule
  // (push.h); false: they fetch it.
  bool pushes = true;
  int mailbox_capacity =
      LowerOptions{}.mailbox_capacity;  // messages that a pair may have under way
  int ports = 0;  // a rank's messages in flight per direction, at most; then all calls are messages:
                  // `transport` is mailbox. 0: no budget
  Costs costs;
  PlanLimits limits;  // of the making; no part of what is made
};

struct Compiled {
  Plan plan;
  Goal goal;
  Layout layout;                // of the call's buffers
  std::optional<Layout> in_f32;  // of what moves, where that is f32 in their place
  // Of operations that round, the user's included; else nobody wants to know, and they are neither.
  Brackets brackets{.flat = false, .canonical = false};
};

// Errors: what the algorithm refuses, a type without that operation; a plan that needs more memory
// than request.limits allow (invalid_argument: says how much, and which algorithm needs least);
// what limits.interrupted answers. Takes microseconds at small N, milliseconds at N = 64, and less
// than a second for the defaults (choose.h) at N = 1024, but for all_to_all, which moves a million
// blocks there.
Result<Compiled> compile(const CompileRequest& request);

// The same for a schedule of one's own (tests, and algorithms that no catalogue has).
Result<Compiled> compile(const CompileRequest& request, const Schedule& schedule, const Goal& goal);

}  // namespace rankine
