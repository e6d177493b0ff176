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
     "reads and adds all vectors by itself, among three ranks or more"},
    {"readers_of_one", ranks, &Costs::readers_of_one, 1, kAnyCount,
     "the most ranks of a broadcast in which all others read the vector of the root in one "
     "round, whatever its size"},
    {"one_shot", bytes, &Costs::one_shot, 0, kMostBytes,
     "the largest size of the vectors of all ranks together for which each of three ranks or "
     "more, with a core each, reads all of them once from boards"},
    {"one_shot_read", bytes, &Costs::one_shot_read, 0, kMostBytes,
     "the same for vectors that are read where they lie, with results elsewhere; larger ones "
     "are added in parts, which are exchanged"},
    {"crowded_one_shot", bytes, &Costs::crowded_one_shot, 0, kMostBytes,
     "the same on boards where ranks share cores, or can read only what others post"},
    {"all_hear_all", ranks, &Costs::all_hear_all, 2, kAnyCount,
     "the most ranks of which each reads from each other one; among more, ranks pass on what "
     "they have"},
    {"leaders", bytes, &Costs::leaders, 0, kMostBytes,
     "the largest vector of an all-reduce among more ranks than that which goes over one "
     "leader per group; larger ones go over a tree"},
    {"segment", bytes, &Costs::segment, 1, kMostBytes,
     "pipelines cut vectors into segments of this size"},
    {"segments", segments, &Costs::segments, 1, kAnyCount, "and into so many at most"},
    {"board_pair", bytes, &Costs::board_pair, 0, std::size_t{1} << 20,
     "half the board of a rank, which is what a rank can post at once, between two ranks"},
    {"board_pair_read", bytes, &Costs::board_pair_read, 0, kMostBytes,
     "the largest vector that two ranks post although each could read it where it lies; an "
     "all-reduce of it takes one step"},
    {"few", ranks, &Costs::few, 2, kAnyCount,
     "boards are of one size among at most so many ranks, and shrink with the square of more"},
    {"board_few", bytes, &Costs::board_few, 0, std::size_t{1} << 20,
     "half the board of a rank, which is what a rank can post at once, among three ranks up to "
     "the number of `few`"},
    {"boards", bytes, &Costs::boards, 0, std::size_t{1} << 30,
     "the most that half a board times the square of the ranks comes to among more ranks than "
     "that"},
    {"board_read", bytes, &Costs::board_read, 0, kMostBytes,
     "and serve calls of more than two in which a rank reads at most so much of another's"},
    {"messages", messages, &Costs::messages, 1, kAnyCount,
     "mailboxes carry a call in which a rank has at most so many messages"},
    {"told", bytes, &Costs::told, 0, kMostBytes,
     "and one in which a root that has a core tells others with cores at most so much, in lines"},
    {"push_ranks", ranks, &Costs::push_ranks, 1, kAnyCount,
     "in an all-reduce of at most so many ranks who adds up a part stores it at all outputs"},
    {"fetch_from", bytes, &Costs::fetch_from, 0, kMostBytes,
     "in one of more ranks each fetches the parts that others have added up, from here"},
    {"fetch_to", bytes, &Costs::fetch_to, 0, kMostBytes, "to here"},
    {"push_plain", bytes, &Costs::push_plain, 0, kMostBytes,
     "an all-reduce apart up to here: who adds up a part stores it at all outputs by plain stores"},
    {"own_first", bytes, &Costs::own_first, 0, kMostBytes,
     "from here on a rank copies its own vector before the others read it"},
    {"share_copies", bytes, &Costs::share_copies, 1, kMostBytes,
     "from here on an owner that has nothing to fetch stores a part of what others fetch"},
    {"share_readers", ranks, &Costs::share_readers, 1, kAnyCount,
     "and from whom at most so many fetch"},
    {"stream", bytes, &Costs::stream, 1, kMostBytes,
     "pieces from here on may be stored past the caches, where results are large"},
    {"stream_results", bytes, &Costs::stream_results, 0, kMostBytes,
     "the results of all ranks together are large from here on"},
    {"stage_apart", bytes, &Costs::stage_apart, 1, kMostBytes,
     "broadcasts, and all-reduces apart, from here on: threads reach others' scratch only"},
    {"stage_in_place", bytes, &Costs::stage_in_place, 1, kMostBytes,
     "the same of all-reduces in place"},
    {"stage_stream", bytes, &Costs::stage_stream, 1, kMostBytes,
     "what is staged may be stored past the caches from here on; its rank compares"},
    {"stage_parts", segments, &Costs::stage_parts, 1, kAnyCount,
     "what a rank stages to begin with is handed over in so many pieces, none shorter than that"},
    {"stage_piece", bytes, &Costs::stage_piece, 64, kMostBytes, "and none longer than this"},
    {"stage_turn", bytes, &Costs::stage_turn, 1, kMostBytes,
     "what a rank stages at a time: from three times as much on calls take turns in their scratch"},
    {"claim", bytes, &Costs::claim, 1, kMostBytes,
     "copies from here on take over lines of other cores unread"},
    {"part", bytes, &Costs::part, 4096, kMostBytes,
     "sums that are copied on are finished in parts of this size"},
    {"own_copy", bytes, &Costs::own_copy, 0, kMostBytes,
     "copies from here on use the engine's own loop, shorter ones the C library's"},
    {"string_copy", bytes, &Costs::string_copy, 0, kMostBytes,
     "copies from here on use the processor's string instruction"},
    {"probes", times, &Costs::probes, 0, kAnyCount,
     "who waits looks so often before anything else, where every rank has a core"},
    {"crowded_probes", times, &Costs::crowded_probes, 0, kAnyCount,
     "the same where ranks share cores"},
    {"yield", nanoseconds, &Costs::yield, 0, kAnyCount,
     "where ranks share cores: then yields a few times, and for so long, before it parks"},
    {"spin", nanoseconds, &Costs::spin, 0, kAnyCount,
     "where every rank has a core: then spins so long before it parks"},
};
// A field without a line would be one that no table can set.
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
