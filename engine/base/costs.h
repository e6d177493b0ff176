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
#include <span>
#include <string>
#include <string_view>

namespace rankine {

// Bytes unless stated otherwise. Every field has its line in cost_fields(), which gives its meaning
// and its allowed values.
struct Costs {
  // The algorithm (engine/api/tuning/choose.cc).
  std::size_t one_round_max_bytes = std::size_t{64} << 10;
  std::size_t root_reduce_max_bytes_n2 = std::size_t{80} << 10;
  std::size_t one_round_broadcast_max_ranks = 16;
  std::size_t one_shot_max_total_bytes = std::size_t{4} << 10;
  std::size_t one_shot_read_max_total_bytes = std::size_t{64} << 10;
  std::size_t crowded_one_shot_max_total_bytes = std::size_t{32} << 10;
  std::size_t direct_max_ranks = 256;
  std::size_t leaders_max_bytes = std::size_t{4} << 10;
  std::size_t pipeline_segment_bytes = std::size_t{64} << 10;
  std::size_t pipeline_max_segments = 64;

  // The transport (engine/compile/compile.cc).
  std::size_t pair_board_bytes = std::size_t{64} << 10;
  std::size_t pair_board_call_max_bytes = std::size_t{16} << 10;
  std::size_t fixed_board_max_ranks = 16;
  std::size_t fixed_board_bytes = 8192;
  std::size_t shrinking_board_bytes_n2 = std::size_t{1} << 20;
  std::size_t board_read_max_bytes = 512;
  std::size_t mailbox_max_messages = 64;
  std::size_t mailbox_fanout_max_bytes = 768;

  // The form on the direct transport (the passes of engine/compile).
  std::size_t push_max_ranks = 4;
  std::size_t fetch_min_bytes = std::size_t{16} << 10;
  std::size_t fetch_max_bytes = std::size_t{1} << 20;
  std::size_t plain_push_max_bytes = 0;
  std::size_t copy_local_first_min_bytes = 4096;
  std::size_t split_copies_min_bytes = std::size_t{16} << 10;
  std::size_t split_copies_max_readers = 2;
  std::size_t stream_min_bytes = std::size_t{1} << 20;
  std::size_t stream_min_total_bytes = std::size_t{32} << 20;
  std::size_t stage_apart_min_bytes = std::size_t{1} << 40;
  std::size_t stage_in_place_min_bytes = std::size_t{1} << 40;
  std::size_t stage_stream_min_bytes = 4096;
  std::size_t stage_first_pieces = 4;
  std::size_t stage_piece_max_bytes = std::size_t{64} << 10;
  std::size_t stage_turn_max_bytes = std::size_t{256} << 10;

  // Moving bytes (engine/run).
  std::size_t claim_copy_min_bytes = 4096;
  std::size_t sum_part_bytes = std::size_t{64} << 10;
  std::size_t loop_copy_min_bytes = 1024;
  std::size_t string_copy_min_bytes = std::size_t{64} << 10;

  // Waiting (engine/run/policy.h).
  std::size_t wait_probes = 64;
  std::size_t crowded_wait_probes = 4;
  std::size_t crowded_yield_ns = 200'000;
  std::size_t spin_ns = 1'000'000;

  bool operator==(const Costs&) const = default;
};

// The costs for ranks that share cores: forms with fewer waits are faster there.
Costs shared_core_costs(Costs costs);
// The costs for ranks that cannot read others' buffers: a rank posts short data for its readers.
Costs staged_costs(Costs costs);

struct CostField {
  enum class Unit : std::uint8_t { bytes, ranks, messages, segments, times, nanoseconds };

  std::string_view name;  // as in tables and reports
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
