#include "engine/compile/compile.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/base/memory.h"
#include "engine/compile/lower.h"
#include "engine/compile/passes.h"
#include "engine/compile/ssa.h"

namespace rankine {
namespace {

Borders borders_for(Collective collective) {
  // If users see the blocks, the users' borders apply; inside one vector ours apply.
  const bool ours = natural_blocks(collective, 2) == 1;
  return ours ? Borders::cache_lines : Borders::plain;
}

bool every_message_fits(const DataflowProgram& program, std::size_t slot_payload) {
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

std::size_t result_bytes(const Layout& layout, const CollectiveSpec& goal) {
  const auto ranks = static_cast<std::size_t>(goal.ranks);
  // The root of a broadcast has its result from the start.
  const std::size_t everywhere = goal.collective == Collective::broadcast ? ranks - 1 : ranks;
  std::size_t bytes = 0;
  for (Block b = 0; b < goal.blocks; ++b) {
    const std::size_t takers = goal.target_of(b) < 0 ? everywhere : 1;
    bytes += takers * layout.blocks[static_cast<std::size_t>(b)].bytes;
  }
  return bytes;
}

// True if some stores go to lines that others hold, in pieces too short to take the lines over
// unread.
bool pushes_short(const DataflowProgram& program, std::size_t claim) {
  return std::any_of(program.operations.begin(), program.operations.end(),
                     [claim](const Operation& op) { return op.copies > 0 && op.bytes < claim; });
}

// The smallest block that is not empty.
std::size_t least_block(const Layout& layout) {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  for (const BlockHome& block : layout.blocks) {
    if (block.bytes > 0) bytes = std::min(bytes, block.bytes);
  }
  return bytes;
}

// The number of blocks that go from one rank to another in a round, as PlanningBudget::move()
// counts them.
std::size_t moves_of(const Schedule& schedule, int round, PlanningBudget& meter) {
  if (const RotationSymmetric* all = symmetry_of(schedule)) {
    return static_cast<std::size_t>(schedule.ranks) * moves_of(all->part(), round, meter);
  }
  std::size_t moves = 0;
  meter.step();
  for_each_transfer(schedule, round, [&](const Transfer& t) {
    meter.step();
    moves += static_cast<std::size_t>(t.from.size()) * static_cast<std::size_t>(t.to.size()) *
             static_cast<std::size_t>(t.what.list.size());
  });
  return moves;
}

// A request, its schedule as versions, and the meter for its planning.
struct Job {
  const CompileRequest& request;
  const Schedule& schedule;
  const CollectiveSpec& goal;
  const Layout& layout;
  PlanningBudget& meter;
  bool in_f32 = false;  // input and output will lie in the scratch (passes.h)
  std::shared_ptr<const SsaForm> versions{};

  bool may_run_ahead() const { return request.staged && request.ahead_max_bytes > 0; }
  // The smallest data that are staged past the caches. Data that run ahead would take a mailbox
  // otherwise, whose slots the reader has in its caches.
  std::size_t stream_min_bytes() const {
    const std::size_t bytes = request.costs.stage_stream_min_bytes;
    return may_run_ahead() ? (bytes + 1) / 2 : bytes;
  }

  // True if peers reach only scratch: always for processes. For threads only on the direct
  // transport, and if ranks would otherwise store in others' outputs; data that are only fetched
  // cross once, and staging gains nothing.
  bool staged() const {
    if (in_f32) return false;  // peers reach all of the scratch
    if (request.staged) return true;
    if (request.transport.value_or(Transport::direct) != Transport::direct) return false;
    const Costs& costs = request.costs;
    const std::size_t bytes = vector_bytes(layout);
    if (goal.collective == Collective::broadcast) return bytes >= costs.stage_apart_min_bytes;
    if (goal.collective != Collective::all_reduce) return false;
    return bytes >= (request.buffers == Buffers::in_place ? costs.stage_in_place_min_bytes
                                                          : costs.stage_apart_min_bytes);
  }
  // Keep ops that only wait: a later pass uses the data that they wait for.
  bool keeps_waits() const { return in_f32 || request.row_elements > 0; }
  // The most bytes that a rank may post for the others: at most the size of half a board. Among
  // more than two ranks, also at most the size that is stored faster than the others could read it
  // in place.
  std::size_t most_posted() const {
    if (goal.ranks <= 2)
      return std::min(request.board_bytes, request.costs.pair_board_call_max_bytes);
    const auto n = static_cast<std::size_t>(goal.ranks);
    std::size_t most = request.costs.board_read_max_bytes;  // each reads all of it
    if (goal.collective == Collective::all_reduce) {
      most = std::max(kCacheLine, request.costs.one_shot_max_total_bytes / n);
    } else if (goal.collective == Collective::all_to_all ||
               goal.collective == Collective::reduce_scatter) {
      most = std::min(most, request.board_bytes) * (n - 1);  // each reads a part
    }
    return std::min(most, request.board_bytes);
  }
  // The versions, kept for another program.
  const std::shared_ptr<const SsaForm>& kept_versions() {
    if (!versions) versions = *SsaForm::of(schedule, goal, layout, &meter);  // succeeded before
    return versions;
  }
  DataflowProgram program(Buffers buffers, bool eager = false) {
    return make_program(kept_versions(), goal, layout, buffers,
                        {.eager = eager, .staged = staged() && !eager, .meter = &meter});
  }
  DataflowProgram eager_program() { return program(request.buffers, true); }
  // The last program made from the versions: releases their memory.
  DataflowProgram last_program() {
    kept_versions();
    return make_program(std::move(versions), goal, layout, request.buffers,
                        {.staged = staged(), .meter = &meter});
  }
};

// Chooses the form of an all-reduce that moves the fewest lines between cores. `streams`: the
// results exceed the caches.
DataflowProgram direct_all_reduce(Job& job, std::optional<DataflowProgram> made, bool streams) {
  const Buffers buffers = job.request.buffers;
  const Costs& costs = job.request.costs;
  const std::size_t bytes = vector_bytes(job.layout);
  const bool fetches = static_cast<std::size_t>(job.goal.ranks) > costs.push_max_ranks &&
                       bytes >= costs.fetch_min_bytes && bytes <= costs.fetch_max_bytes;
  const bool pushes = job.request.pushes && !fetches;
  // In place, the storing rank has just read the lines that it overwrites.
  const bool reads_first = buffers == Buffers::in_place || bytes <= costs.plain_push_max_bytes;
  if (pushes && !reads_first && !streams && least_block(job.layout) < costs.claim_copy_min_bytes) {
    DataflowProgram copied = job.program(Buffers::in_place);
    if (has_short_copies(copied, costs.claim_copy_min_bytes)) {
      job.versions.reset();  // they are large, and seldom needed again
      copied = copy_then_reduce(std::move(copied), &job.meter);
      push(copied, Buffers::apart, PushMutant::none, &job.meter);
      if (pushes_short(copied, costs.claim_copy_min_bytes)) return copied;
    }
  }
  // Parts of an operation end at lines: impossible if a line holds no whole number of elements.
  const bool may_split = kCacheLine % job.layout.element_bytes == 0;
  DataflowProgram own = made ? std::move(*made) : job.last_program();
  if (may_split)
    own = copy_local_first(std::move(own), buffers, costs.copy_local_first_min_bytes, &job.meter);
  if (!pushes) return own;
  push(own, buffers, PushMutant::none, &job.meter);
  if (!reads_first) claim_copies(own, costs.claim_copy_min_bytes);
  return own;
}

// The most own bytes that a rank stages before others can start.
std::size_t staged_first(const DataflowProgram& program) {
  std::vector<std::size_t> by(static_cast<std::size_t>(program.ranks));
  for (const Operation& op : program.operations) {
    if (op.round != kStaging) break;
    by[static_cast<std::size_t>(op.rank)] += op.bytes;
  }
  return *std::max_element(by.begin(), by.end());
}

// The length of the pieces of staged operations. The costs give it, so that others begin when a
// rank has staged a part of its first data. If a plan has no room for that many pieces, they are
// longer.
std::size_t staged_piece(const Job& job, const DataflowProgram& program) {
  const auto pieces_of = [&program](std::size_t piece) {
    std::size_t pieces = 0;
    for (const Operation& op : program.operations) {
      pieces += std::max<std::size_t>(1, op.bytes / piece);
    }
    return pieces;
  };
  const Costs& costs = job.request.costs;
  const std::size_t part = whole_lines(staged_first(program) / costs.stage_first_pieces);
  std::size_t piece =
      std::min(std::max(part, costs.stage_stream_min_bytes), costs.stage_piece_max_bytes);
  for (;;) {
    const std::size_t pieces = pieces_of(piece);
    // Turns hold at least one piece of each operation, so the number of turns is no larger.
    if (job.meter.has_room_for(2 * pieces) || pieces == program.operations.size()) return piece;
    piece *= 2;
  }
}

// `made`: the request's program, if the caller has already made it.
Plan direct_plan(Job& job, std::optional<DataflowProgram> made) {
  // The other passes have ranks store in others' outputs, or read their inputs.
  if (job.staged()) {
    DataflowProgram program = made ? std::move(*made) : job.last_program();
    job.versions.reset();  // turns have their own
    const std::size_t piece = staged_piece(job, program);
    program = in_turns(std::move(program), job.schedule, job.goal, job.layout, job.request.buffers,
                       {.staged = true, .meter = &job.meter},
                       {.scratch = job.request.costs.stage_turn_max_bytes, .part = piece});
    return lower_direct(stage(program, {.stream = job.stream_min_bytes(),
                                        .piece = piece,
                                        .element_bytes = job.layout.element_bytes,
                                        .meter = &job.meter}),
                        {.keeps_waits = job.keeps_waits(),
                         .staged_first = piece,
                         .ahead_max_bytes = job.may_run_ahead() ? job.request.ahead_max_bytes : 0,
                         .meter = &job.meter});
  }
  // The data that an epilogue reads next should stay in the caches.
  const bool streams =
      job.request.buffers == Buffers::apart && job.request.row_elements == 0 &&
      result_bytes(job.layout, job.goal) >= job.request.costs.stream_min_total_bytes;
  DataflowProgram program = job.goal.collective == Collective::all_reduce
                                ? direct_all_reduce(job, std::move(made), streams)
                            : made ? std::move(*made)
                                   : job.last_program();
  // Stores past the caches take lines over unread as well.
  const std::size_t claim =
      streams ? std::numeric_limits<std::size_t>::max() : job.request.costs.claim_copy_min_bytes;
  if (job.goal.collective == Collective::reduce && job.request.pushes) {
    // The rules for in place are correct for both ways of the root's call, and the fast form for
    // separate buffers is not slow in place.
    push(program, Buffers::in_place, PushMutant::none, &job.meter);
    claim_copies(program, claim);
  }
  if (!reduces(job.goal.collective)) {
    program =
        split_copies(std::move(program), {.from = job.request.costs.split_copies_min_bytes,
                                          .readers = job.request.costs.split_copies_max_readers,
                                          .all = job.request.stores,
                                          .streams = streams,
                                          .stream_from = job.request.costs.stream_min_bytes,
                                          .meter = &job.meter});
    claim_copies(program, claim);
  }
  if (streams) mark_streams(program, job.request.costs.stream_min_bytes);
  return lower_direct(std::move(program), {.keeps_waits = job.keeps_waits(), .meter = &job.meter});
}

Result<Plan> mailbox_plan(const Job& job, const DataflowProgram& program) {
  return lower_mailbox(program, {.slot_payload = job.request.slot_payload,
                                 .mailbox_capacity = job.request.mailbox_capacity,
                                 .nodes = job.request.nodes,
                                 .ports = job.request.ports,
                                 .meter = &job.meter});
}

// The bytes that one of a round's senders sends in all, each block once. In the first round the
// others read no more than this from it.
std::size_t bytes_of_a_sender(const Schedule& schedule, int round, const Layout& layout,
                              PlanningBudget& meter) {
  std::vector<bool> sent(layout.blocks.size());
  std::size_t bytes = 0;
  std::optional<Rank> sender;
  const auto count = [&](const Transfer& t) {
    meter.step();
    const Rank from = t.from.front();
    const bool is_local = t.to.size() == 1 && t.to.front() == from;
    if (is_local || from != sender.value_or(from)) return;
    sender = from;
    t.what.list.for_each([&](Block b) {
      const auto block = static_cast<std::size_t>(b);
      if (!sent[block]) bytes += layout.blocks[block].bytes;
      sent[block] = true;
    });
  };
  if (const RotationSymmetric* all = symmetry_of(schedule)) {
    // Each of its transfers is one of rank 0's, turned.
    const Rotation& turn = all->rotation();
    for_each_transfer(all->part(), round, [&](const Transfer& t) {
      count(turn.rotated(t, turn.back(t.from.front())));
    });
  } else {
    for_each_transfer(schedule, round, count);
  }
  return bytes;
}

// True if boards are requested or may suit. Detects at once data that do not fit, and schedules
// with a first round in which some ranks do not hear from all.
bool looks_at_boards(const Job& job) {
  if (job.request.transport) return job.request.transport == Transport::board;
  const auto n = static_cast<std::size_t>(job.goal.ranks);
  const std::size_t most = job.most_posted();
  if (vector_bytes(job.layout) > 2 * n * most) return false;
  if (job.schedule.rounds == 0) return true;
  return moves_of(job.schedule, 0, job.meter) >= n * (n - 1) &&
         bytes_of_a_sender(job.schedule, 0, job.layout, job.meter) <= most;
}

Result<Plan> board_plan(const Job& job, const DataflowProgram& program) {
  return lower_board(program, {.board_bytes = job.request.board_bytes, .meter = &job.meter});
}

// Among many ranks, mailboxes carry only calls with few messages per rank: mailboxes exist per pair
// of ranks, and each message is three ops instead of one direct op.
bool has_few_messages(const DataflowProgram& program, std::size_t most) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  if (ranks <= most) return true;
  std::size_t messages = 0;
  for (const Operation& op : program.operations) {
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      messages += source.rank != op.rank ? 1 : 0;
    }
  }
  return messages <= ranks * most;
}

// True if one rank sends several others more than `most` bytes, in whole lines, and at least as
// much as all others together: it would store alone, while on the direct transport all could read
// at a time.
bool tells_much(const DataflowProgram& program, std::size_t most) {
  struct Sent {
    std::size_t messages = 0, bytes = 0;
  };
  std::vector<Sent> by(static_cast<std::size_t>(program.ranks));
  std::size_t all = 0;
  for (const Operation& op : program.operations) {
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      if (source.rank == op.rank) continue;
      const std::size_t bytes = whole_lines(op.bytes + kPostHeader);
      Sent& sent = by[static_cast<std::size_t>(source.rank)];
      ++sent.messages;
      sent.bytes += bytes;
      all += bytes;
    }
  }
  return std::any_of(by.begin(), by.end(), [&](const Sent& sent) {
    return sent.messages > 1 && sent.bytes > most && 2 * sent.bytes >= all;
  });
}

Result<Plan> plan_of(Job& job) {
  const CompileRequest& request = job.request;
  const std::optional<Transport> asked = request.transport;
  std::optional<DataflowProgram> eager;  // if it has been made
  if (looks_at_boards(job)) {
    eager = job.eager_program();
    if (asked || suits_boards(*eager, request.board_bytes, &job.meter)) {
      return board_plan(job, *eager);
    }
  }
  const bool all_reduces = job.goal.collective == Collective::all_reduce;
  // An all-reduce in several rounds of small messages is faster direct, because it waits less. With
  // boards, vectors that are not posted are faster direct as well.
  const std::size_t most = request.board_bytes > 0
                               ? std::min(job.most_posted(), request.slot_payload)
                               : request.slot_payload;
  if (!asked && all_reduces && vector_bytes(job.layout) > most) {
    eager.reset();
    return direct_plan(job, std::nullopt);
  }
  const bool many = static_cast<std::size_t>(job.goal.ranks) > request.costs.mailbox_max_messages;
  // Among many ranks memory is scarce, and few of their plans need the versions again.
  DataflowProgram program =
      many && !all_reduces ? job.last_program() : job.program(request.buffers);
  const std::size_t most_sent = !asked && job.may_run_ahead()
                                    ? std::min(request.slot_payload, job.stream_min_bytes() - 1)
                                    : request.slot_payload;
  const bool small = every_message_fits(program, most_sent);
  const bool prefers_mailbox = small &&
                               has_few_messages(program, request.costs.mailbox_max_messages) &&
                               !tells_much(program, request.costs.mailbox_fanout_max_bytes);
  if (asked.value_or(prefers_mailbox ? Transport::mailbox : Transport::direct) ==
      Transport::direct) {
    if (!all_reduces) job.versions.reset();  // all-reduces look at their buffers both ways
    eager.reset();
    return direct_plan(job, std::move(program));
  }
  if (small) {
    if (!eager) eager = job.eager_program();
    // Blocks that lie apart in scratch may travel together in an eager program, and then be too
    // long.
    if (every_message_fits(*eager, request.slot_payload)) {
      auto plan = mailbox_plan(job, *eager);
      if (plan.ok()) return plan;  // otherwise a round has too many messages
    }
  }
  return mailbox_plan(job, program);
}

// moves_of() over all rounds; stops above `most`.
std::size_t moves_of_all(const Schedule& schedule, PlanningBudget& meter, std::size_t most) {
  std::size_t moves = 0;
  for (int k = 0; k < schedule.rounds && moves <= most; ++k) moves += moves_of(schedule, k, meter);
  return moves;
}

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + (std::size_t{1} << 20) - 1) >> 20) + " MiB";
}

// The algorithm for the collective with the smallest plan, and the plan's memory.
struct Cheapest {
  std::string_view algorithm;
  std::size_t bytes = 0;
};

Cheapest cheapest_plan(const CompileRequest& request, PlanningBudget& meter) {
  Cheapest best;
  for (const Algorithm& entry : catalogue()) {
    Params params = entry.only_taken(request.params);
    params.segments = 1;
    if (entry.collective != request.algorithm->collective || entry.refusal(params)) continue;
    const Schedule schedule = entry.make(params);
    const auto bytes = [&](std::size_t moves) {
      return planning_bytes(schedule.ranks, schedule.blocks, moves);
    };
    const std::size_t least = bytes(0);
    if (!best.algorithm.empty() && least >= best.bytes) continue;
    const std::size_t most = best.algorithm.empty() ? std::numeric_limits<std::size_t>::max()
                                                    : (best.bytes - least) / (bytes(1) - least);
    const std::size_t needs = bytes(moves_of_all(schedule, meter, most));
    if (best.algorithm.empty() || needs < best.bytes) best = {entry.name, needs};
  }
  return best;
}

Status too_large(const Job& job) {
  const std::size_t moves =
      moves_of_all(job.schedule, job.meter, std::numeric_limits<std::size_t>::max());
  // Passes over programs may add to the schedule's moves.
  const std::size_t bytes =
      std::max(planning_bytes(job.schedule.ranks, job.schedule.blocks, moves), job.meter.bytes());
  const Algorithm* algorithm = job.request.algorithm;
  std::string text = std::string(name_of(job.goal.collective)) + " among " +
                     std::to_string(job.goal.ranks) + " ranks";
  if (algorithm != nullptr) text += " by " + std::string(algorithm->name);
  if (algorithm != nullptr && algorithm->takes("segments")) {
    text += " with " + std::to_string(job.request.params.segments) + " segments";
  }
  text += ": to plan " + std::to_string(moves) + " moves of a block may take " + mebibytes(bytes) +
          "; allowed are " + mebibytes(job.request.limits.bytes);
  if (algorithm != nullptr) {
    const Cheapest best = cheapest_plan(job.request, job.meter);
    text += "; least is " + std::string(best.algorithm) +
            (find_algorithm(job.goal.collective, best.algorithm)->takes("segments")
                 ? " with one segment, "
                 : ", ") +
            mebibytes(best.bytes);
  }
  return invalid_argument(std::move(text));
}

Status out_of_order(const Job& job) {
  const Algorithm* algorithm = job.request.algorithm;
  return invalid_argument(
      "algorithm is " + (algorithm != nullptr ? std::string(algorithm->name) : "unnamed") +
      ", which does not combine the contributions of " + std::to_string(job.goal.ranks) +
      " ranks in rank order; an operation that is not commutative needs an algorithm that does");
}

Status other_brackets(const Job& job) {
  const Algorithm* algorithm = job.request.algorithm;
  return invalid_argument(std::string(job.request.bracket_for) + ", algorithm is " +
                          (algorithm != nullptr ? std::string(algorithm->name) : "unnamed") +
                          ", which does not add up the contributions of " +
                          std::to_string(job.goal.ranks) + " ranks in " +
                          std::string(in_words(*job.request.bracket)));
}

void apply_instead_of_folding(Plan& plan) {
  for (RankPlan& rank : plan.rank) {
    for (Op& op : rank.ops) {
      if (op.code == OpCode::fold && op.operands > 1) op.code = OpCode::apply;
    }
  }
}

void reach_private_memory(Plan& plan) {
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    const Operand* operand = plan.rank[r].operands.data();
    for (Op& op : plan.rank[r].ops) {
      const Operand* const end = operand + op.operands + op.copies;
      const bool is_private = std::any_of(operand, end, [r](const Operand& place) {
        return place.rank != r && place.memory < Memory::scratch;
      });
      if (op.code == OpCode::fold && is_private) {
        op.code = OpCode::reach;
        plan.reaches = true;
      }
      operand = end;
    }
  }
}

// The pieces have the size of the parts of sums that are copied on: both are read again from the
// cache.
void finish_rows_of(const CompileRequest& request, Compiled& compiled, PlanningBudget& meter) {
  std::vector<std::size_t> bytes;
  for (Rank r = 0; r < compiled.goal.ranks; ++r) {
    bytes.push_back(output_bytes(compiled.layout, compiled.goal, r));
  }
  finish_rows(compiled.plan, bytes, request.row_elements * compiled.layout.element_bytes,
              request.costs.sum_part_bytes, &meter);
}

Result<Compiled> compiled_of(const CompileRequest& request, const Schedule& schedule,
                             const CollectiveSpec& goal, PlanningBudget& meter,
                             bool in_f32 = false);

// The request's plan, with f32 as the moved type. Its sums have the schedule's brackets, but its
// nodes are not rounded to the type, as canonical ones are.
Result<Compiled> compiled_in_f32(const CompileRequest& request, const Schedule& schedule,
                                 const CollectiveSpec& goal, PlanningBudget& meter, Layout users) {
  CompileRequest wide = request;
  wide.type = DataType::f32;
  wide.rounds_once = false;
  wide.buffers = Buffers::in_place;
  wide.row_elements = 0;
  auto out = compiled_of(wide, schedule, goal, meter, true);
  if (!out.ok()) return out;
  widen_and_narrow(out->plan, goal, request.type, users, out->layout);
  out->in_f32 = std::exchange(out->layout, std::move(users));
  out->brackets = {.flat = false, .canonical = false};
  if (request.row_elements > 0) finish_rows_of(request, *out, meter);
  return out;
}

Result<Compiled> compiled_of(const CompileRequest& request, const Schedule& schedule,
                             const CollectiveSpec& goal, PlanningBudget& meter, bool in_f32) {
  Compiled out{{}, goal, {}, {}, {.flat = false, .canonical = false}};
  const bool users = request.op == ReduceOp::user && reduces(goal.collective);
  if (!users && (reduces(goal.collective) || goal.collective == Collective::barrier)) {
    out.plan.fold = find_reduce(request.type, request.op);
    if (out.plan.fold == nullptr) {
      return invalid_argument("operation is " + std::string(name_of(request.op)) + ", type is " +
                              std::string(name_of(request.type)) + "; " +
                              supported_ops(request.type));
    }
  }
  const std::size_t element =
      request.type == DataType::raw ? request.element_bytes : size_of(request.type);
  out.layout = make_layout(goal, request.counts, element, borders_for(goal.collective));
  const ReduceKernel fold = out.plan.fold;
  bool folds_as_tree = false;
  Job job{request, schedule, goal, out.layout, meter, in_f32};
  try {
    auto versions = SsaForm::of(schedule, goal, out.layout, &meter);
    if (!versions.ok()) return versions.status();
    if ((*versions)->adds_up() && fold == nullptr && !users) {
      return invalid_argument("schedule: adds blocks up; allowed for " +
                              std::string(name_of(goal.collective)) + " are copies");
    }
    if (!request.commutative && !in_rank_order(**versions)) return out_of_order(job);
    if (reduces(goal.collective) && (users || rounds(request.type, request.op))) {
      out.brackets = brackets_of(**versions);
      folds_as_tree = request.bracket == Bracket::canonical && !users && !out.brackets.canonical &&
                      out.brackets.flat && out.brackets.of_all;
      if (folds_as_tree) out.brackets = {.flat = false, .canonical = true};
      if (request.bracket && !out.brackets.are(*request.bracket)) return other_brackets(job);
      if (request.rounds_once && !users && !out.brackets.flat &&
          adds_up_in_f32(request.type, request.op)) {
        versions->reset();
        return compiled_in_f32(request, schedule, goal, meter, std::move(out.layout));
      }
    }
    job.versions = std::move(*versions);
    auto plan = plan_of(job);
    if (!plan.ok()) return plan.status();
    out.plan = std::move(*plan);
    if (request.row_elements > 0) finish_rows_of(request, out, meter);
  } catch (const PlanTooLarge&) {
    return too_large(job);
  }
  out.plan.fold = folds_as_tree ? find_tree_reduce(request.type, request.op) : fold;
  out.plan.costs = request.costs;
  if (fold != nullptr) {
    out.plan.spread = folds_as_tree ? find_tree_spread(request.type, request.op)
                                    : find_spread(request.type, request.op, best_isa());
  }
  out.plan.element_bytes = element;
  if (users) apply_instead_of_folding(out.plan);
  if (request.reaches && !in_f32) reach_private_memory(out.plan);
  out.plan.divisor = request.op == ReduceOp::avg ? goal.ranks : 0;
  if (request.algorithm != nullptr) out.plan.algorithm = request.algorithm->name;
  return out;
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
                         const CollectiveSpec& goal) {
  PlanningBudget meter(request.limits);
  try {
    auto compiled = compiled_of(request, schedule, goal, meter);
    if (compiled.ok() && request.ahead_max_bytes > 0) await_readers(compiled->plan);
    return compiled;
  } catch (PlanningEnded& ended) {
    return std::move(ended.status);
  }
}

}  // namespace rankine
