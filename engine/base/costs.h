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
  std::size_t one_round = std::size_t{64} << 10;
  std::size_t one_reader = std::size_t{80} << 10;
  std::size_t readers_of_one = 16;
  std::size_t one_shot = std::size_t{4} << 10;
  std::size_t one_shot_read = std::size_t{64} << 10;
  std::size_t crowded_one_shot = std::size_t{32} << 10;
  std::size_t all_hear_all = 256;
  std::size_t leaders = std::size_t{4} << 10;
  std::size_t segment = std::size_t{64} << 10;
  std::size_t segments = 64;

  // The transport (engine/compile/compile.cc).
  std::size_t board_pair = std::size_t{64} << 10;
  std::size_t board_pair_read = std::size_t{16} << 10;
  std::size_t few = 16;
  std::size_t board_few = 8192;
  std::size_t boards = std::size_t{1} << 20;
  std::size_t board_read = 512;
  std::size_t messages = 64;
  std::size_t told = 768;

  // The form on the direct transport (the passes of engine/compile).
  std::size_t push_ranks = 4;
  std::size_t fetch_from = std::size_t{16} << 10;
  std::size_t fetch_to = std::size_t{1} << 20;
  std::size_t push_plain = 0;
  std::size_t copy_local_first = 4096;
  std::size_t split_copies = std::size_t{16} << 10;
  std::size_t share_readers = 2;
  std::size_t stream = std::size_t{1} << 20;
  std::size_t stream_results = std::size_t{32} << 20;
  std::size_t stage_apart = std::size_t{1} << 40;
  std::size_t stage_in_place = std::size_t{1} << 40;
  std::size_t stage_stream = 4096;
  std::size_t stage_parts = 4;
  std::size_t stage_piece = std::size_t{64} << 10;
  std::size_t stage_turn = std::size_t{256} << 10;

  // Moving bytes (engine/run).
  std::size_t claim = 4096;
  std::size_t part = std::size_t{64} << 10;
  std::size_t own_copy = 1024;
  std::size_t string_copy = std::size_t{64} << 10;

  // Waiting (engine/run/policy.h).
  std::size_t probes = 64;
  std::size_t crowded_probes = 4;
  std::size_t yield = 200'000;
  std::size_t spin = 1'000'000;

  bool operator==(const Costs&) const = default;
};

// The costs for ranks that share cores: forms with fewer waits are faster there.
Costs where_cores_are_shared(Costs costs);
// The costs for ranks that cannot read others' buffers: a rank posts short data for its readers.
Costs where_all_is_staged(Costs costs);

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
// The first field with a value out of range; nullptr: all are in range.
const CostField* misfit(const Costs& costs);

}  // namespace rankine
