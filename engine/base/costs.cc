#include "engine/base/costs.h"

#include <algorithm>

namespace rankine {
namespace {

using enum CostField::Unit;

constexpr std::size_t kMostBytes = std::size_t{1} << 40;
constexpr std::size_t kAnyCount = std::size_t{1} << 30;

constexpr CostField kFields[] = {
    {"one_round", bytes, &Costs::one_round, 0, kMostBytes,
     "the largest vector for which rooted and prefix collectives use one round; larger ones "
     "use more rounds, in which all ranks copy or add"},
    {"one_reader", bytes, &Costs::one_reader, 0, kMostBytes,
     "the largest vector size times the square of the ranks for which the root of a reduce "
     "among three ranks or more reads and adds all vectors alone"},
    {"readers_of_one", ranks, &Costs::readers_of_one, 1, kAnyCount,
     "the largest number of ranks for which all ranks of a broadcast read the root's vector "
     "in one round, for any size"},
    {"one_shot", bytes, &Costs::one_shot, 0, kMostBytes,
     "the largest total size of all ranks' vectors for which three ranks or more, with a core "
     "each, read all of them once from boards"},
    {"one_shot_read", bytes, &Costs::one_shot_read, 0, kMostBytes,
     "the largest such total for vectors that are read in place, with separate outputs; larger "
     "ones are added in parts, which are exchanged"},
    {"crowded_one_shot", bytes, &Costs::crowded_one_shot, 0, kMostBytes,
     "the largest such total on boards if ranks share cores, or can read only posted data"},
    {"all_hear_all", ranks, &Costs::all_hear_all, 2, kAnyCount,
     "the largest number of ranks for which each rank reads from every other; among more, "
     "ranks relay data"},
    {"leaders", bytes, &Costs::leaders, 0, kMostBytes,
     "the largest vector of an all-reduce among more than `all_hear_all` ranks that goes over "
     "one leader per group; larger ones go over a tree"},
    {"segment", bytes, &Costs::segment, 1, kMostBytes,
     "pipelines cut vectors into segments of this size"},
    {"segments", segments, &Costs::segments, 1, kAnyCount,
     "the largest number of segments of a pipeline"},
    {"board_pair", bytes, &Costs::board_pair, 0, std::size_t{1} << 20,
     "half the board of a rank (the most data in one post) between two ranks"},
    {"board_pair_read", bytes, &Costs::board_pair_read, 0, kMostBytes,
     "the largest vector that two ranks post although each could read it in place; its "
     "all-reduce takes one step"},
    {"few", ranks, &Costs::few, 2, kAnyCount,
     "the largest number of ranks for which boards keep one size; boards of more ranks shrink "
     "with the square of the ranks"},
    {"board_few", bytes, &Costs::board_few, 0, std::size_t{1} << 20,
     "half the board of a rank (the most data in one post) among three to `few` ranks"},
    {"boards", bytes, &Costs::boards, 0, std::size_t{1} << 30,
     "the largest half board times the square of the ranks, among more than `few` ranks"},
    {"board_read", bytes, &Costs::board_read, 0, kMostBytes,
     "the most data that a rank reads from another in a call on boards, among more than two "
     "ranks"},
    {"messages", messages, &Costs::messages, 1, kAnyCount,
     "the largest number of messages per rank for which mailboxes carry a call"},
    {"told", bytes, &Costs::told, 0, kMostBytes,
     "the most data, in whole cache lines, that one rank sends to several others by mailboxes, "
     "if each rank has a core"},
    {"push_ranks", ranks, &Costs::push_ranks, 1, kAnyCount,
     "the largest number of ranks for which the rank that adds up a part of an all-reduce "
     "stores it in all outputs"},
    {"fetch_from", bytes, &Costs::fetch_from, 0, kMostBytes,
     "the smallest vector of an all-reduce among more than `push_ranks` ranks for which each "
     "rank fetches the parts that others have added up"},
    {"fetch_to", bytes, &Costs::fetch_to, 0, kMostBytes, "the largest such vector"},
    {"push_plain", bytes, &Costs::push_plain, 0, kMostBytes,
     "the largest vector of an all-reduce with separate outputs for which the rank that adds up "
     "a part stores it in all outputs with plain stores"},
    {"copy_local_first", bytes, &Costs::copy_local_first, 0, kMostBytes,
     "the smallest range of its own vector that a rank copies before the others read it"},
    {"split_copies", bytes, &Costs::split_copies, 1, kMostBytes,
     "the smallest part that an owner with nothing to fetch stores for each of its readers"},
    {"share_readers", ranks, &Costs::share_readers, 1, kAnyCount,
     "the largest number of readers of such an owner"},
    {"stream", bytes, &Costs::stream, 1, kMostBytes,
     "the smallest piece that may be stored past the caches if results are large"},
    {"stream_results", bytes, &Costs::stream_results, 0, kMostBytes,
     "the smallest total of all ranks' results that counts as large"},
    {"stage_apart", bytes, &Costs::stage_apart, 1, kMostBytes,
     "the smallest broadcast, or all-reduce with separate outputs, in which threads read only "
     "others' scratch"},
    {"stage_in_place", bytes, &Costs::stage_in_place, 1, kMostBytes,
     "the smallest all-reduce in place in which threads read only others' scratch"},
    {"stage_stream", bytes, &Costs::stage_stream, 1, kMostBytes,
     "the smallest staged data that may be stored past the caches; ranks measure both ways"},
    {"stage_parts", segments, &Costs::stage_parts, 1, kAnyCount,
     "the number of pieces in which a rank hands over the first data that it stages; a piece "
     "has at least `stage_stream` bytes"},
    {"stage_piece", bytes, &Costs::stage_piece, 64, kMostBytes, "the largest such piece"},
    {"stage_turn", bytes, &Costs::stage_turn, 1, kMostBytes,
     "the most data that a rank stages at a time; calls with three times as much take turns in "
     "their scratch"},
    {"claim", bytes, &Costs::claim, 1, kMostBytes,
     "the smallest copy that takes over lines of other cores unread"},
    {"part", bytes, &Costs::part, 4096, kMostBytes,
     "the size of the parts in which sums that are copied on are finished"},
    {"own_copy", bytes, &Costs::own_copy, 0, kMostBytes,
     "the smallest copy with the engine's own loop; smaller ones use the C library's"},
    {"string_copy", bytes, &Costs::string_copy, 0, kMostBytes,
     "the smallest copy with the processor's string instruction"},
    {"probes", times, &Costs::probes, 0, kAnyCount,
     "the number of probes with which a wait begins if every rank has a core"},
    {"crowded_probes", times, &Costs::crowded_probes, 0, kAnyCount,
     "the number of probes with which a wait begins if ranks share cores"},
    {"yield", nanoseconds, &Costs::yield, 0, kAnyCount,
     "the time for which a wait yields, after a few yields, before it parks if ranks share cores"},
    {"spin", nanoseconds, &Costs::spin, 0, kAnyCount,
     "the time for which a wait spins before it parks if every rank has a core"},
};
// Every field needs a line, so that tables can set it.
static_assert(std::size(kFields) * sizeof(std::size_t) == sizeof(Costs));

}  // namespace

Costs where_cores_are_shared(Costs costs) {
  costs.one_shot = costs.crowded_one_shot;
  costs.one_shot_read = 0;
  costs.one_reader = kMostBytes;
  costs.board_read = kMostBytes;
  costs.told = kMostBytes;
  costs.fetch_to = 0;
  return costs;
}

Costs where_all_is_staged(Costs costs) {
  costs.one_shot = costs.crowded_one_shot;
  costs.one_shot_read = 0;
  costs.board_pair_read = kMostBytes;
  costs.board_read = kMostBytes;
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

const CostField* misfit(const Costs& costs) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields), [&](const CostField& f) {
    return costs.*f.value < f.least || costs.*f.value > f.most;
  });
  return found != std::end(kFields) ? found : nullptr;
}

}  // namespace rankine
