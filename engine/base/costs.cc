#include "engine/base/costs.h"

#include <algorithm>

namespace rankine {
namespace {

using enum CostField::Unit;

constexpr std::size_t kMostBytes = std::size_t{1} << 40;
constexpr std::size_t kAnyCount = std::size_t{1} << 30;

constexpr CostField kFields[] = {
    {"one_round_max_bytes", bytes, &Costs::one_round_max_bytes, 0, kMostBytes,
     "the largest vector for which rooted and prefix collectives use one round; larger ones "
     "use more rounds, in which all ranks copy or add"},
    {"root_reduce_max_bytes_n2", bytes, &Costs::root_reduce_max_bytes_n2, 0, kMostBytes,
     "the largest vector size times the square of the ranks for which the root of a reduce "
     "among three ranks or more reads and adds all vectors alone"},
    {"one_round_broadcast_max_ranks", ranks, &Costs::one_round_broadcast_max_ranks, 1, kAnyCount,
     "the largest number of ranks for which all ranks of a broadcast read the root's vector "
     "in one round, for any size"},
    {"one_shot_max_total_bytes", bytes, &Costs::one_shot_max_total_bytes, 0, kMostBytes,
     "the largest total size of all ranks' vectors for which three ranks or more, with a core "
     "each, read all of them once from boards"},
    {"one_shot_read_max_total_bytes", bytes, &Costs::one_shot_read_max_total_bytes, 0, kMostBytes,
     "the largest such total for vectors that are read in place, with separate outputs; larger "
     "ones are added in parts, which are exchanged"},
    {"crowded_one_shot_max_total_bytes", bytes, &Costs::crowded_one_shot_max_total_bytes, 0,
     kMostBytes,
     "the largest such total on boards if ranks share cores, or can read only posted data"},
    {"direct_max_ranks", ranks, &Costs::direct_max_ranks, 2, kAnyCount,
     "the largest number of ranks for which each rank reads from every other; among more, "
     "ranks relay data"},
    {"leaders_max_bytes", bytes, &Costs::leaders_max_bytes, 0, kMostBytes,
     "the largest vector of an all-reduce among more than `direct_max_ranks` ranks that goes over "
     "one leader per group; larger ones go over a tree"},
    {"pipeline_segment_bytes", bytes, &Costs::pipeline_segment_bytes, 1, kMostBytes,
     "pipelines cut vectors into segments of this size"},
    {"pipeline_max_segments", segments, &Costs::pipeline_max_segments, 1, kAnyCount,
     "the largest number of segments of a pipeline"},
    {"pair_board_bytes", bytes, &Costs::pair_board_bytes, 0, std::size_t{1} << 20,
     "half the board of a rank (the most data in one post) between two ranks"},
    {"pair_board_call_max_bytes", bytes, &Costs::pair_board_call_max_bytes, 0, kMostBytes,
     "the largest vector that two ranks post although each could read it in place; its "
     "all-reduce takes one step"},
    {"fixed_board_max_ranks", ranks, &Costs::fixed_board_max_ranks, 2, kAnyCount,
     "the largest number of ranks for which boards keep one size; boards of more ranks shrink "
     "with the square of the ranks"},
    {"fixed_board_bytes", bytes, &Costs::fixed_board_bytes, 0, std::size_t{1} << 20,
     "half the board of a rank (the most data in one post) among three to `fixed_board_max_ranks` "
     "ranks"},
    {"shrinking_board_bytes_n2", bytes, &Costs::shrinking_board_bytes_n2, 0, std::size_t{1} << 30,
     "the largest half board times the square of the ranks, among more than "
     "`fixed_board_max_ranks` ranks"},
    {"board_read_max_bytes", bytes, &Costs::board_read_max_bytes, 0, kMostBytes,
     "the most data that a rank reads from another in a call on boards, among more than two "
     "ranks"},
    {"mailbox_max_messages", messages, &Costs::mailbox_max_messages, 1, kAnyCount,
     "the largest number of messages per rank for which mailboxes carry a call"},
    {"mailbox_fanout_max_bytes", bytes, &Costs::mailbox_fanout_max_bytes, 0, kMostBytes,
     "the most data, in whole cache lines, that one rank sends to several others by mailboxes, "
     "if each rank has a core"},
    {"push_max_ranks", ranks, &Costs::push_max_ranks, 1, kAnyCount,
     "the largest number of ranks for which the rank that adds up a part of an all-reduce "
     "stores it in all outputs"},
    {"fetch_min_bytes", bytes, &Costs::fetch_min_bytes, 0, kMostBytes,
     "the smallest vector of an all-reduce among more than `push_max_ranks` ranks for which each "
     "rank fetches the parts that others have added up"},
    {"fetch_max_bytes", bytes, &Costs::fetch_max_bytes, 0, kMostBytes, "the largest such vector"},
    {"plain_push_max_bytes", bytes, &Costs::plain_push_max_bytes, 0, kMostBytes,
     "the largest vector of an all-reduce with separate outputs for which the rank that adds up "
     "a part stores it in all outputs with plain stores"},
    {"copy_local_first_min_bytes", bytes, &Costs::copy_local_first_min_bytes, 0, kMostBytes,
     "the smallest range of its own vector that a rank copies before the others read it"},
    {"split_copies_min_bytes", bytes, &Costs::split_copies_min_bytes, 1, kMostBytes,
     "the smallest part that an owner with nothing to fetch stores for each of its readers"},
    {"split_copies_max_readers", ranks, &Costs::split_copies_max_readers, 1, kAnyCount,
     "the largest number of readers of such an owner"},
    {"stream_min_bytes", bytes, &Costs::stream_min_bytes, 1, kMostBytes,
     "the smallest piece that may be stored past the caches if results are large"},
    {"stream_min_total_bytes", bytes, &Costs::stream_min_total_bytes, 0, kMostBytes,
     "the smallest total of all ranks' results that counts as large"},
    {"stage_apart_min_bytes", bytes, &Costs::stage_apart_min_bytes, 1, kMostBytes,
     "the smallest broadcast, or all-reduce with separate outputs, in which threads read only "
     "others' scratch"},
    {"stage_in_place_min_bytes", bytes, &Costs::stage_in_place_min_bytes, 1, kMostBytes,
     "the smallest all-reduce in place in which threads read only others' scratch"},
    {"stage_stream_min_bytes", bytes, &Costs::stage_stream_min_bytes, 1, kMostBytes,
     "the smallest staged data that may be stored past the caches; ranks measure both ways"},
    {"stage_first_pieces", segments, &Costs::stage_first_pieces, 1, kAnyCount,
     "the number of pieces in which a rank hands over the first data that it stages; a piece "
     "has at least `stage_stream_min_bytes` bytes"},
    {"stage_piece_max_bytes", bytes, &Costs::stage_piece_max_bytes, 64, kMostBytes,
     "the largest such piece"},
    {"stage_turn_max_bytes", bytes, &Costs::stage_turn_max_bytes, 1, kMostBytes,
     "the most data that a rank stages at a time; calls with three times as much take turns in "
     "their scratch"},
    {"claim_copy_min_bytes", bytes, &Costs::claim_copy_min_bytes, 1, kMostBytes,
     "the smallest copy that takes over lines of other cores unread"},
    {"sum_part_bytes", bytes, &Costs::sum_part_bytes, 4096, kMostBytes,
     "the size of the parts in which sums that are copied on are finished"},
    {"loop_copy_min_bytes", bytes, &Costs::loop_copy_min_bytes, 0, kMostBytes,
     "the smallest copy with the engine's own loop; smaller ones use the C library's"},
    {"string_copy_min_bytes", bytes, &Costs::string_copy_min_bytes, 0, kMostBytes,
     "the smallest copy with the processor's string instruction"},
    {"wait_probes", times, &Costs::wait_probes, 0, kAnyCount,
     "the number of probes with which a wait begins if every rank has a core"},
    {"crowded_wait_probes", times, &Costs::crowded_wait_probes, 0, kAnyCount,
     "the number of probes with which a wait begins if ranks share cores"},
    {"crowded_yield_ns", nanoseconds, &Costs::crowded_yield_ns, 0, kAnyCount,
     "the time for which a wait yields, after a few yields, before it parks if ranks share cores"},
    {"spin_ns", nanoseconds, &Costs::spin_ns, 0, kAnyCount,
     "the time for which a wait spins before it parks if every rank has a core"},
};
// Every field needs a line, so that tables can set it.
static_assert(std::size(kFields) * sizeof(std::size_t) == sizeof(Costs));

// The fields' names in tuning tables of 2026-11-28 and before; the table goes with the next
// version.
struct OldName {
  std::string_view name;
  std::size_t Costs::*value;
};
constexpr OldName kOldNames[] = {
    {"one_round", &Costs::one_round_max_bytes},
    {"one_reader", &Costs::root_reduce_max_bytes_n2},
    {"readers_of_one", &Costs::one_round_broadcast_max_ranks},
    {"one_shot", &Costs::one_shot_max_total_bytes},
    {"one_shot_read", &Costs::one_shot_read_max_total_bytes},
    {"crowded_one_shot", &Costs::crowded_one_shot_max_total_bytes},
    {"all_hear_all", &Costs::direct_max_ranks},
    {"leaders", &Costs::leaders_max_bytes},
    {"segment", &Costs::pipeline_segment_bytes},
    {"segments", &Costs::pipeline_max_segments},
    {"board_pair", &Costs::pair_board_bytes},
    {"board_pair_read", &Costs::pair_board_call_max_bytes},
    {"few", &Costs::fixed_board_max_ranks},
    {"board_few", &Costs::fixed_board_bytes},
    {"boards", &Costs::shrinking_board_bytes_n2},
    {"board_read", &Costs::board_read_max_bytes},
    {"messages", &Costs::mailbox_max_messages},
    {"told", &Costs::mailbox_fanout_max_bytes},
    {"push_ranks", &Costs::push_max_ranks},
    {"fetch_from", &Costs::fetch_min_bytes},
    {"fetch_to", &Costs::fetch_max_bytes},
    {"push_plain", &Costs::plain_push_max_bytes},
    {"copy_local_first", &Costs::copy_local_first_min_bytes},
    {"split_copies", &Costs::split_copies_min_bytes},
    {"share_readers", &Costs::split_copies_max_readers},
    {"stream", &Costs::stream_min_bytes},
    {"stream_results", &Costs::stream_min_total_bytes},
    {"stage_apart", &Costs::stage_apart_min_bytes},
    {"stage_in_place", &Costs::stage_in_place_min_bytes},
    {"stage_stream", &Costs::stage_stream_min_bytes},
    {"stage_parts", &Costs::stage_first_pieces},
    {"stage_piece", &Costs::stage_piece_max_bytes},
    {"stage_turn", &Costs::stage_turn_max_bytes},
    {"claim", &Costs::claim_copy_min_bytes},
    {"part", &Costs::sum_part_bytes},
    {"own_copy", &Costs::loop_copy_min_bytes},
    {"string_copy", &Costs::string_copy_min_bytes},
    {"probes", &Costs::wait_probes},
    {"crowded_probes", &Costs::crowded_wait_probes},
    {"yield", &Costs::crowded_yield_ns},
    {"spin", &Costs::spin_ns},
    {"own_first", &Costs::copy_local_first_min_bytes},
    {"share_copies", &Costs::split_copies_min_bytes},
};

}  // namespace

Costs shared_core_costs(Costs costs) {
  costs.one_shot_max_total_bytes = costs.crowded_one_shot_max_total_bytes;
  costs.one_shot_read_max_total_bytes = 0;
  costs.root_reduce_max_bytes_n2 = kMostBytes;
  costs.board_read_max_bytes = kMostBytes;
  costs.mailbox_fanout_max_bytes = kMostBytes;
  costs.fetch_max_bytes = 0;
  return costs;
}

Costs staged_costs(Costs costs) {
  costs.one_shot_max_total_bytes = costs.crowded_one_shot_max_total_bytes;
  costs.one_shot_read_max_total_bytes = 0;
  costs.pair_board_call_max_bytes = kMostBytes;
  costs.board_read_max_bytes = kMostBytes;
  return costs;
}

std::string_view name_of(CostField::Unit unit) {
  constexpr std::string_view kNames[] = {"bytes",    "ranks", "messages",
                                         "segments", "times", "nanoseconds"};
  return kNames[static_cast<std::size_t>(unit)];
}

std::string allowed(const CostField& field) {
  return std::to_string(field.least) + " to " + std::to_string(field.most) + " " +
         std::string(name_of(field.unit));
}

std::span<const CostField> cost_fields() { return kFields; }

const CostField& field_of(std::size_t Costs::*value) {
  return *std::find_if(std::begin(kFields), std::end(kFields),
                       [&](const CostField& field) { return field.value == value; });
}

const CostField* find_cost(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields),
                                   [&](const CostField& f) { return f.name == name; });
  return found != std::end(kFields) ? found : nullptr;
}

const CostField* find_old_cost(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOldNames), std::end(kOldNames),
                                   [&](const OldName& old) { return old.name == name; });
  return found != std::end(kOldNames) ? &field_of(found->value) : nullptr;
}

bool Costs::operator==(const Costs& other) const {
  return std::all_of(std::begin(kFields), std::end(kFields),
                     [&](const CostField& f) { return this->*f.value == other.*f.value; });
}

const CostField* misfit(const Costs& costs) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields), [&](const CostField& f) {
    return costs.*f.value < f.least || costs.*f.value > f.most;
  });
  return found != std::end(kFields) ? found : nullptr;
}

}  // namespace rankine
