// compile() turns an algorithm into a plan, once per (algorithm, parameters, counts, type,
// operation).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/compile/lower.h"
#include "engine/compile/ssa.h"
#include "engine/run/plan.h"

namespace rankine {

struct CompileRequest {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::vector<std::size_t> counts;  // elements of each natural block (see collective.h)
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;    // user: the call brings the operation
  std::size_t element_bytes = 0;  // of raw elements; otherwise the type gives the size
  // The elements of a row that the call's epilogue finishes; 0: no epilogue. Every rank's output is
  // whole rows.
  std::size_t row_elements = 0;
  bool commutative = true;  // false: schedules that are not in_rank_order() are refused
  // If set, schedules with other brackets are refused; the error quotes bracket_for.
  std::optional<Bracket> bracket;
  std::string_view bracket_for{};  // "order is by_rank"
  // True: sums of floats of 16 and 8 bits that are not one fold move in f32 (passes.h); false:
  // each fold rounds.
  bool rounds_once = false;
  Buffers buffers = Buffers::apart;
  // True: ranks are processes, which reach only each other's scratch, mailboxes and boards. For
  // threads the costs may choose this form if it is faster.
  bool staged = false;
  // True: ranks are processes that reach each other's private memory by system calls. The transport
  // must be direct, and the costs private_costs().
  bool reaches = false;
  // Staged calls that need at most so many bytes of scratch per rank end while others still read it
  // (Scratch in engine/run/interpret.h). 0: none
  std::size_t ahead_max_bytes = 0;
  // nullopt: boards if every rank hears from every rank and the boards hold the data; otherwise
  // mailboxes if every message fits into a slot (for an all-reduce: the whole vector); otherwise
  // direct.
  std::optional<Transport> transport;
  std::size_t slot_payload = 0;  // bytes of data per mailbox slot
  std::size_t board_bytes = 0;   // data bytes that half a board holds; 0: no boards
  // Direct all-reduces. True: the rank that adds a block up stores it at all ranks that copy it in
  // the schedule (passes.h); false: they fetch it.
  bool pushes = true;
  // True: on the direct transport, each rank stores all of its input that others need in their
  // outputs, if the collective only moves data.
  bool stores = false;
  std::span<const int> nodes{};  // as LowerOptions::nodes
  int mailbox_capacity =
      LowerOptions{}.mailbox_capacity;  // messages that a pair may have in flight
  // maximum of a rank's messages in flight per direction; `transport` must then be mailbox. 0: no
  // budget
  int ports = 0;
  Costs costs;
  PlanLimits limits;  // of the making; not part of the plan
};

struct Compiled {
  Plan plan;
  CollectiveSpec goal;
  Layout layout;                 // the call's buffers
  std::optional<Layout> in_f32;  // the moved data, if f32 moves instead of the users' type
  // For operations that round, the user's included; otherwise both false, since they do not matter.
  Brackets brackets{.flat = false, .canonical = false};
};

// Errors: the algorithm's refusals; a type without that operation; a plan that needs more memory
// than request.limits allow (invalid_argument: the text gives the size, and the algorithm that
// needs least); the error of limits.interrupted. Takes microseconds at small N, milliseconds at N =
// 64, and less than a second for the defaults (choose.h) at N = 1024, except all_to_all, which
// moves a million blocks there.
Result<Compiled> compile(const CompileRequest& request);

// compile() for a given schedule (tests, and algorithms outside the catalogue).
Result<Compiled> compile(const CompileRequest& request, const Schedule& schedule,
                         const CollectiveSpec& goal);

}  // namespace rankine
