#include "engine/exec/compile.h"

#include <algorithm>
#include <utility>

#include "engine/exec/copy_first.h"
#include "engine/exec/own_first.h"
#include "engine/exec/push.h"
#include "engine/exec/share_copies.h"

namespace rankine {
namespace {

Borders borders_for(Collective collective) {
  // Where users see the blocks, their borders are the users'; inside one vector they are ours.
  const bool ours = natural_blocks(collective, 2) == 1;
  return ours ? Borders::cache_lines : Borders::plain;
}

bool every_message_fits(const Program& program, std::size_t slot_payload) {
  return std::all_of(
      program.operations.begin(), program.operations.end(), [&](const Operation& op) {
        if (op.bytes <= slot_payload) return true;
        for (int s = 0; s < op.sources; ++s) {
          if (program.sources[static_cast<std::size_t>(op.first_source + s)].rank != op.rank) {
            return false;
          }
        }
        return true;
      });
}

std::size_t vector_bytes(const Layout& layout) {
  std::size_t bytes = 0;
  for (const BlockHome& block : layout.blocks) bytes += block.bytes;
  return bytes;
}

// Where the results of all ranks together are larger, no cache holds them until they are read.
constexpr std::size_t kStreamFrom = std::size_t{32} << 20;

std::size_t result_bytes(const Layout& layout, const Goal& goal) {
  std::size_t bytes = 0;
  for (Rank r : ranks(goal.ranks)) {
    const bool lies_there = goal.collective == Collective::broadcast && r == goal.root;
    if (!lies_there) bytes += output_bytes(layout, goal, r);
  }
  return bytes;
}

// Stores to lines that others hold, in pieces too short to take them over unread.
bool fetches_to_store(const Program& program) {
  return std::any_of(program.operations.begin(), program.operations.end(),
                     [](const Operation& op) { return op.copies > 0 && !op.claims; });
}

// The form of an all-reduce that moves the fewest lines between cores. `program` is as the buffers
// lie; `streams`: the results are more than the caches hold.
Result<Program> direct_all_reduce(const CompileRequest& request, const Schedule& schedule,
                                  const Goal& goal, const Layout& layout, const Program& program,
                                  bool streams) {
  Program own = own_first(program, request.buffers);
  if (!request.pushes) return own;
  push(own, request.buffers);
  // In place the storing rank has just read what it overwrites.
  if (request.buffers == Buffers::in_place) return own;
  claim_copies(own);
  if (streams || !fetches_to_store(own)) return own;
  auto in_place = make_program(schedule, goal, layout, Buffers::in_place);
  if (!in_place.ok()) return in_place.status();
  Program copied = copy_first(*in_place);
  push(copied, Buffers::apart);
  return copied;
}

Result<Plan> direct_plan(const CompileRequest& request, const Schedule& schedule, const Goal& goal,
                         const Layout& layout, Program program) {
  const bool streams =
      request.buffers == Buffers::apart && result_bytes(layout, goal) >= kStreamFrom;
  if (goal.collective == Collective::all_reduce) {
    auto form = direct_all_reduce(request, schedule, goal, layout, program, streams);
    if (!form.ok()) return form.status();
    program = std::move(*form);
  }
  if (goal.collective == Collective::reduce && request.pushes) {
    // Whether the root's call is in place or not, what holds for in place is right for both, and
    // what is fast apart is not slow in place.
    push(program, Buffers::in_place);
    claim_copies(program);
  }
  if (!reduces(goal.collective)) program = share_copies(program, {.streams = streams});
  if (streams) mark_streams(program);
  return lower_direct(program, {});
}

Result<Plan> mailbox_plan(const CompileRequest& request, const Program& program) {
  LowerOptions options;
  options.slot_payload = request.slot_payload;
  options.mailbox_capacity = request.mailbox_capacity;
  return lower_mailbox(program, options);
}

// Made for boards, where that is worth it; else without operations.
Result<Program> board_program(const CompileRequest& request, const Schedule& schedule,
                              const Goal& goal, const Layout& layout) {
  // What fits at all is seen at once.
  const auto ranks = static_cast<std::size_t>(goal.ranks);
  if (vector_bytes(layout) > 2 * ranks * request.board_bytes) return Program{};
  auto eager = make_program(schedule, goal, layout, request.buffers, {.eager = true});
  if (eager.ok() && !suits_boards(*eager, request.board_bytes)) return Program{};
  return eager;
}

Result<Plan> board_plan(const CompileRequest& request, const Program& program) {
  LowerOptions options;
  options.board_bytes = request.board_bytes;
  return lower_board(program, options);
}

Result<Plan> plan_of(const CompileRequest& request, const Schedule& schedule, const Goal& goal,
                     const Layout& layout, bool can_add) {
  auto program = make_program(schedule, goal, layout, request.buffers);
  if (!program.ok()) return program.status();
  const bool adds_up = std::any_of(program->operations.begin(), program->operations.end(),
                                   [](const Operation& op) { return op.sources > 1; });
  if (adds_up && !can_add) {
    return invalid_argument("schedule: adds blocks up, which " +
                            std::string(name_of(goal.collective)) + " does not");
  }
  if (request.transport == Transport::board) {
    auto eager = make_program(schedule, goal, layout, request.buffers, {.eager = true});
    if (!eager.ok()) return eager.status();
    return board_plan(request, *eager);
  }
  if (!request.transport) {
    auto for_boards = board_program(request, schedule, goal, layout);
    if (!for_boards.ok()) return for_boards.status();
    if (!for_boards->operations.empty()) return board_plan(request, *for_boards);
  }
  const bool small = every_message_fits(*program, request.slot_payload);
  // An all-reduce in several rounds of small messages is faster direct, which waits less.
  // Where there are boards, vectors that these could not hold are faster direct as well.
  const std::size_t most = request.board_bytes > 0
                               ? std::min(request.board_bytes, request.slot_payload)
                               : request.slot_payload;
  const bool prefers_mailbox =
      small && (goal.collective != Collective::all_reduce || vector_bytes(layout) <= most);
  if (request.transport.value_or(prefers_mailbox ? Transport::mailbox : Transport::direct) ==
      Transport::direct) {
    return direct_plan(request, schedule, goal, layout, std::move(*program));
  }
  if (small) {
    auto eager = make_program(schedule, goal, layout, request.buffers, {.eager = true});
    if (!eager.ok()) return eager.status();
    auto plan = mailbox_plan(request, *eager);
    if (plan.ok()) return plan;  // else a round has too many messages for that
  }
  return mailbox_plan(request, *program);
}

}  // namespace

Result<Compiled> compile(const CompileRequest& request) {
  if (const auto refusal = request.algorithm->refusal(request.params)) {
    return invalid_argument(*refusal);
  }
  const Schedule schedule = request.algorithm->make(request.params);
  return compile(request, schedule, goal_of(*request.algorithm, request.params, schedule));
}

Result<Compiled> compile(const CompileRequest& request, const Schedule& schedule,
                         const Goal& goal) {
  Compiled out{{}, goal, {}};
  if (reduces(goal.collective) || goal.collective == Collective::barrier) {
    out.plan.fold = find_reduce(request.type, request.op);
    if (out.plan.fold == nullptr) {
      return invalid_argument("operation is " + std::string(name_of(request.op)) + ", type is " +
                              std::string(name_of(request.type)) +
                              "; bit operations are for integers");
    }
  }
  out.layout =
      make_layout(goal, request.counts, size_of(request.type), borders_for(goal.collective));
  const ReduceKernel fold = out.plan.fold;
  auto plan = plan_of(request, schedule, goal, out.layout, fold != nullptr);
  if (!plan.ok()) return plan.status();
  out.plan = std::move(*plan);
  out.plan.fold = fold;
  if (fold != nullptr) {
    out.plan.spread = find_spread(request.type, request.op, best_isa());
  }
  out.plan.element_bytes = size_of(request.type);
  out.plan.divisor = request.op == ReduceOp::avg ? goal.ranks : 0;
  if (request.algorithm != nullptr) out.plan.algorithm = request.algorithm->name;
  return out;
}

}  // namespace rankine
