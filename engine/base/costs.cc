#include "engine/base/costs.h"

#include <algorithm>
#include <utility>

namespace rankine {
namespace {

using enum CostField::Unit;

constexpr std::size_t kMostBytes = std::size_t{1} << 40;
constexpr std::size_t kAnyCount = std::size_t{1} << 30;

// A field of Costs, its name in tables of 2026-11-28 and before, unit and allowed range.
#define RANKINE_FIELD(name, old_name, unit, least, most, decides) \
  { #name, #old_name, unit, &Costs::name, least, most, decides }
constexpr CostField kFields[] = {
    RANKINE_FIELD(one_round_max_bytes, one_round, bytes, 0, kMostBytes,
                  "the largest vector for which rooted and prefix collectives use one round; "
                  "larger ones use more rounds, in which all ranks copy or add"),
    RANKINE_FIELD(root_reduce_max_bytes_n2, one_reader, bytes, 0, kMostBytes,
                  "the largest vector size times the square of the ranks for which the root of a "
                  "reduce among three ranks or more reads and adds all vectors alone"),
    RANKINE_FIELD(one_round_broadcast_max_ranks, readers_of_one, ranks, 1, kAnyCount,
                  "the largest number of ranks for which all ranks of a broadcast read the "
                  "root's vector in one round, for any size"),
    RANKINE_FIELD(one_shot_max_total_bytes, one_shot, bytes, 0, kMostBytes,
                  "the largest total size of all ranks' vectors for which three ranks or more, "
                  "with a core each, read all of them once from boards"),
    RANKINE_FIELD(one_shot_read_max_total_bytes, one_shot_read, bytes, 0, kMostBytes,
                  "the largest such total for vectors that are read in place, with separate "
                  "outputs; larger ones are added in parts, which are exchanged"),
    RANKINE_FIELD(crowded_one_shot_max_total_bytes, crowded_one_shot, bytes, 0, kMostBytes,
                  "the largest such total on boards if ranks share cores, or can read only "
                  "posted data"),
    RANKINE_FIELD(direct_max_ranks, all_hear_all, ranks, 2, kAnyCount,
                  "the largest number of ranks for which each rank reads from every other; among "
                  "more, ranks relay data"),
    RANKINE_FIELD(leaders_max_bytes, leaders, bytes, 0, kMostBytes,
                  "the largest vector of an all-reduce among more than `direct_max_ranks` ranks "
                  "that goes over one leader per group; larger ones go over a tree"),
    RANKINE_FIELD(pipeline_segment_bytes, segment, bytes, 1, kMostBytes,
                  "pipelines cut vectors into segments of this size"),
    RANKINE_FIELD(pipeline_max_segments, segments, segments, 1, kAnyCount,
                  "the largest number of segments of a pipeline"),
    RANKINE_FIELD(pair_board_bytes, board_pair, bytes, 0, std::size_t{1} << 20,
                  "half the board of a rank (the most data in one post) between two ranks"),
    RANKINE_FIELD(pair_board_call_max_bytes, board_pair_read, bytes, 0, kMostBytes,
                  "the largest vector that two ranks post although each could read it in place; "
                  "its all-reduce takes one step"),
    RANKINE_FIELD(fixed_board_max_ranks, few, ranks, 2, kAnyCount,
                  "the largest number of ranks for which boards keep one size; boards of more "
                  "ranks shrink with the square of the ranks"),
    RANKINE_FIELD(fixed_board_bytes, board_few, bytes, 0, std::size_t{1} << 20,
                  "half the board of a rank (the most data in one post) among three to "
                  "`fixed_board_max_ranks` ranks"),
    RANKINE_FIELD(shrinking_board_bytes_n2, boards, bytes, 0, std::size_t{1} << 30,
                  "the largest half board times the square of the ranks, among more than "
                  "`fixed_board_max_ranks` ranks"),
    RANKINE_FIELD(board_read_max_bytes, board_read, bytes, 0, kMostBytes,
                  "the most data that a rank reads from another in a call on boards, among more "
                  "than two ranks"),
    RANKINE_FIELD(mailbox_max_messages, messages, messages, 1, kAnyCount,
                  "the largest number of messages per rank for which mailboxes carry a call"),
    RANKINE_FIELD(mailbox_fanout_max_bytes, told, bytes, 0, kMostBytes,
                  "the most data, in whole cache lines, that one rank sends to several others by "
                  "mailboxes, if each rank has a core"),
    {"trial_min_bytes", "", bytes, &Costs::trial_min_bytes, 1, kMostBytes,
     "the smallest call among at most `fixed_board_max_ranks` ranks for which they measure whether "
     "to post data, to read them in place, to store them in others' outputs or to stage them"},
    {"trial_max_bytes", "", bytes, &Costs::trial_max_bytes, 0, std::size_t{64} << 20,
     "the largest such call of two ranks, for N ranks divided by (N - 1)^2; 0: no trials"},
    {"private_min_bytes", "", bytes, &Costs::private_min_bytes, 1, kMostBytes,
     "the smallest vector of a broadcast, and part of a rank in other vectors, that processes read "
     "and write in each other's private memory, if the kernel lets them; smaller ones are staged, "
     "and from a sixteenth on processes try both"},
    RANKINE_FIELD(push_max_ranks, push_ranks, ranks, 1, kAnyCount,
                  "the largest number of ranks for which the rank that adds up a part of an "
                  "all-reduce stores it in all outputs"),
    RANKINE_FIELD(fetch_min_bytes, fetch_from, bytes, 0, kMostBytes,
                  "the smallest vector of an all-reduce among more than `push_max_ranks` ranks "
                  "for which each rank fetches the parts that others have added up"),
    RANKINE_FIELD(fetch_max_bytes, fetch_to, bytes, 0, kMostBytes, "the largest such vector"),
    RANKINE_FIELD(plain_push_max_bytes, push_plain, bytes, 0, kMostBytes,
                  "the largest vector of an all-reduce with separate outputs for which the rank "
                  "that adds up a part stores it in all outputs with plain stores"),
    RANKINE_FIELD(copy_local_first_min_bytes, copy_local_first, bytes, 0, kMostBytes,
                  "the smallest range of its own vector that a rank copies before the others "
                  "read it"),
    RANKINE_FIELD(split_copies_min_bytes, split_copies, bytes, 1, kMostBytes,
                  "the smallest part that an owner with nothing to fetch stores for each of its "
                  "readers"),
    RANKINE_FIELD(split_copies_max_readers, share_readers, ranks, 1, kAnyCount,
                  "the largest number of readers of such an owner"),
    RANKINE_FIELD(stream_min_bytes, stream, bytes, 1, kMostBytes,
                  "the smallest piece that may be stored past the caches if results are large"),
    RANKINE_FIELD(stream_min_total_bytes, stream_results, bytes, 0, kMostBytes,
                  "the smallest total of all ranks' results that counts as large"),
    RANKINE_FIELD(stage_apart_min_bytes, stage_apart, bytes, 1, kMostBytes,
                  "the smallest broadcast, or all-reduce with separate outputs, in which threads "
                  "read only others' scratch"),
    RANKINE_FIELD(stage_in_place_min_bytes, stage_in_place, bytes, 1, kMostBytes,
                  "the smallest all-reduce in place in which threads read only others' scratch"),
    RANKINE_FIELD(stage_stream_min_bytes, stage_stream, bytes, 1, kMostBytes,
                  "the smallest staged data that may be stored past the caches; ranks measure "
                  "both ways"),
    RANKINE_FIELD(stage_first_pieces, stage_parts, segments, 1, kAnyCount,
                  "the number of pieces in which a rank hands over the first data that it "
                  "stages; a piece has at least `stage_stream_min_bytes` bytes"),
    RANKINE_FIELD(stage_piece_max_bytes, stage_piece, bytes, 64, kMostBytes,
                  "the largest such piece"),
    RANKINE_FIELD(stage_turn_max_bytes, stage_turn, bytes, 1, kMostBytes,
                  "the most data that a rank stages at a time; calls with three times as much "
                  "take turns in their scratch"),
    RANKINE_FIELD(claim_copy_min_bytes, claim, bytes, 1, kMostBytes,
                  "the smallest copy that takes over lines of other cores unread"),
    RANKINE_FIELD(sum_part_bytes, part, bytes, 4096, kMostBytes,
                  "the size of the parts in which sums that are copied on are finished"),
    RANKINE_FIELD(loop_copy_min_bytes, own_copy, bytes, 0, kMostBytes,
                  "the smallest copy with the engine's own loop; smaller ones use the C "
                  "library's"),
    RANKINE_FIELD(string_copy_min_bytes, string_copy, bytes, 0, kMostBytes,
                  "the smallest copy with the processor's string instruction"),
    RANKINE_FIELD(wait_probes, probes, times, 0, kAnyCount,
                  "the number of probes with which a wait begins if every rank has a core"),
    RANKINE_FIELD(crowded_wait_probes, crowded_probes, times, 0, kAnyCount,
                  "the number of probes with which a wait begins if ranks share cores"),
    RANKINE_FIELD(crowded_yield_ns, yield, nanoseconds, 0, kAnyCount,
                  "the time for which a wait yields, after a few yields, before it parks if "
                  "ranks share cores"),
    RANKINE_FIELD(spin_ns, spin, nanoseconds, 0, kAnyCount,
                  "the time for which a wait spins before it parks if every rank has a core"),
};
#undef RANKINE_FIELD
// Every field needs a line, so that tables can set it.
static_assert(std::size(kFields) * sizeof(std::size_t) == sizeof(Costs));

// Further old names; they go with the next version.
constexpr std::pair<std::string_view, std::size_t Costs::*> kOldNames[] = {
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

Costs private_costs(Costs costs) {
  costs.copy_local_first_min_bytes = kMostBytes;
  costs.split_copies_min_bytes = std::max<std::size_t>(1, costs.private_min_bytes / 4);
  costs.stage_apart_min_bytes = costs.stage_in_place_min_bytes = kMostBytes;
  costs.claim_copy_min_bytes = 1;  // data that are written for others have a place in own memory
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
  for (const CostField& field : kFields) {
    if (field.old_name == name) return &field;
  }
  for (const auto& [old_name, value] : kOldNames) {
    if (old_name == name) return &field_of(value);
  }
  return nullptr;
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
