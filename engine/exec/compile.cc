#include "engine/exec/compile.h"

#include <algorithm>

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
  auto program = make_program(schedule, goal, out.layout, request.buffers);
  if (!program.ok()) return program.status();
  const bool adds_up = std::any_of(program->operations.begin(), program->operations.end(),
                                   [](const Operation& op) { return op.sources > 1; });
  if (adds_up && out.plan.fold == nullptr) {
    return invalid_argument("schedule: adds blocks up, which " +
                            std::string(name_of(goal.collective)) + " does not");
  }

  LowerOptions options;
  options.slot_payload = request.slot_payload;
  options.mailbox_capacity = request.mailbox_capacity;
  options.streams = request.buffers == Buffers::apart;
  const Transport transport = request.transport.value_or(
      every_message_fits(*program, options.slot_payload) ? Transport::mailbox : Transport::direct);
  const ReduceKernel fold = out.plan.fold;
  if (transport == Transport::direct) {
    out.plan = lower_direct(*program, options);
  } else {
    auto plan = lower_mailbox(*program, options);
    if (!plan.ok()) return plan.status();
    out.plan = std::move(*plan);
  }
  out.plan.fold = fold;
  if (fold != nullptr) {
    out.plan.fold_streaming = find_reduce_streaming(request.type, request.op, best_isa());
  }
  out.plan.element_bytes = size_of(request.type);
  out.plan.divisor = request.op == ReduceOp::avg ? goal.ranks : 0;
  if (request.algorithm != nullptr) out.plan.algorithm = request.algorithm->name;
  return out;
}

}  // namespace rankine
