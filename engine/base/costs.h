// Costs are the thresholds that choose the form of a call among forms with equal results: sizes,
// numbers of ranks, piece sizes. Each communicator has one value, which choosing, compiling and
// copying read; no other place holds such a number.
//
// The defaults are right within some percent on the machines named in RESULTS. `rankine tune`
// measures and writes other values to the tuning table (tuning.h), `rankine topo` shows the values
// in force, and `rankine choose --explain` the ones that decided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rankine {

// A field of Costs under its name and under its name of 2026-11-28 and before. The old names go
// with the next version, and then the designated initializers of GCC 12 no longer warn.
#define RANKINE_COST(name, old_name, value)            \
  union {                                              \
    std::size_t name = value;                          \
    [[deprecated("use " #name)]] std::size_t old_name; \
  }

// Bytes unless stated otherwise. Every field has its line in cost_fields(), which gives its meaning
// and its allowed values.
struct Costs {
  // The algorithm (engine/api/tuning/choose.cc).
  RANKINE_COST(one_round_max_bytes, one_round, std::size_t{64} << 10);
  RANKINE_COST(root_reduce_max_bytes_n2, one_reader, std::size_t{80} << 10);
  RANKINE_COST(one_round_broadcast_max_ranks, readers_of_one, 16);
  RANKINE_COST(one_shot_max_total_bytes, one_shot, std::size_t{4} << 10);
  RANKINE_COST(one_shot_read_max_total_bytes, one_shot_read, std::size_t{64} << 10);
  RANKINE_COST(crowded_one_shot_max_total_bytes, crowded_one_shot, std::size_t{32} << 10);
  RANKINE_COST(direct_max_ranks, all_hear_all, 256);
  RANKINE_COST(leaders_max_bytes, leaders, std::size_t{4} << 10);
  RANKINE_COST(pipeline_segment_bytes, segment, std::size_t{64} << 10);
  RANKINE_COST(pipeline_max_segments, segments, 64);

  // The transport (engine/compile/compile.cc).
  RANKINE_COST(pair_board_bytes, board_pair, std::size_t{64} << 10);
  RANKINE_COST(pair_board_call_max_bytes, board_pair_read, std::size_t{16} << 10);
  RANKINE_COST(fixed_board_max_ranks, few, 16);
  RANKINE_COST(fixed_board_bytes, board_few, 8192);
  RANKINE_COST(shrinking_board_bytes_n2, boards, std::size_t{1} << 20);
  RANKINE_COST(board_read_max_bytes, board_read, 512);
  RANKINE_COST(mailbox_max_messages, messages, 64);
  RANKINE_COST(mailbox_fanout_max_bytes, told, 768);

  // Trials (engine/run/form_trials.h).
  std::size_t trial_min_bytes = 257;
  std::size_t trial_max_bytes = std::size_t{64} << 20;

  // Access to other processes' private memory (engine/api/plans.cc).
  std::size_t private_min_bytes = std::size_t{128} << 10;

  // The form on the direct transport (the passes of engine/compile).
  RANKINE_COST(push_max_ranks, push_ranks, 4);
  RANKINE_COST(fetch_min_bytes, fetch_from, std::size_t{16} << 10);
  RANKINE_COST(fetch_max_bytes, fetch_to, std::size_t{1} << 20);
  RANKINE_COST(plain_push_max_bytes, push_plain, 0);
  RANKINE_COST(copy_local_first_min_bytes, copy_local_first, 4096);
  RANKINE_COST(split_copies_min_bytes, split_copies, std::size_t{16} << 10);
  RANKINE_COST(split_copies_max_readers, share_readers, 2);
  RANKINE_COST(stream_min_bytes, stream, std::size_t{1} << 20);
  RANKINE_COST(stream_min_total_bytes, stream_results, std::size_t{32} << 20);
  RANKINE_COST(stage_apart_min_bytes, stage_apart, std::size_t{1} << 40);
  RANKINE_COST(stage_in_place_min_bytes, stage_in_place, std::size_t{1} << 40);
  RANKINE_COST(stage_stream_min_bytes, stage_stream, 4096);
  RANKINE_COST(stage_first_pieces, stage_parts, 4);
  RANKINE_COST(stage_piece_max_bytes, stage_piece, std::size_t{64} << 10);
  RANKINE_COST(stage_turn_max_bytes, stage_turn, std::size_t{256} << 10);

  // Moving bytes (engine/run).
  RANKINE_COST(claim_copy_min_bytes, claim, 4096);
  RANKINE_COST(sum_part_bytes, part, std::size_t{64} << 10);
  RANKINE_COST(loop_copy_min_bytes, own_copy, 1024);
  RANKINE_COST(string_copy_min_bytes, string_copy, std::size_t{64} << 10);

  // Waiting (engine/run/policy.h).
  RANKINE_COST(wait_probes, probes, 64);
  RANKINE_COST(crowded_wait_probes, crowded_probes, 4);
  RANKINE_COST(crowded_yield_ns, yield, 200'000);
  RANKINE_COST(spin_ns, spin, 1'000'000);

  bool operator==(const Costs& other) const;
};

#undef RANKINE_COST

// The default costs, but for the given fields and values.
constexpr Costs costs_with(
    std::initializer_list<std::pair<std::size_t Costs::*, std::size_t>> values) {
  Costs costs;
  for (const auto& [field, value] : values) costs.*field = value;
  return costs;
}

// The costs for ranks that share cores: forms with fewer waits are faster there.
Costs shared_core_costs(Costs costs);
// The costs for ranks that cannot read others' buffers: a rank posts short data for its readers.
Costs staged_costs(Costs costs);
// The costs for ranks that reach others' buffers by system calls, so large pieces are best.
Costs private_costs(Costs costs);

struct CostField {
  enum class Unit : std::uint8_t { bytes, ranks, messages, segments, times, nanoseconds };

  std::string_view name;      // as in tables and reports
  std::string_view old_name;  // in tuning tables of 2026-11-28 and before
  Unit unit = Unit::bytes;
  std::size_t Costs::*value = nullptr;
  std::size_t least = 0, most = 0;  // allowed range
  std::string_view decides;         // "rooted collectives take one round up to here"
};
std::string_view name_of(CostField::Unit unit);  // "bytes"
std::string allowed(const CostField& field);     // "1 to 1024 ranks"

// All fields, in the order of Costs.
std::span<const CostField> cost_fields();
const CostField& field_of(std::size_t Costs::*value);
// nullptr: unknown name.
const CostField* find_cost(std::string_view name);
// As find_cost(), for a name of the field in tuning tables of 2026-11-28 and before; deprecated.
const CostField* find_old_cost(std::string_view name);
// The first field with a value out of range; nullptr: all are in range.
const CostField* misfit(const Costs& costs);

}  // namespace rankine
