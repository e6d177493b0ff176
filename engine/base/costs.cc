#include "engine/base/costs.h"

#include <algorithm>

namespace rankine {
namespace {

using enum CostField::Unit;

constexpr std::size_t kMostBytes = std::size_t{1} << 40;
constexpr std::size_t kAnyCount = std::size_t{1} << 30;

constexpr CostField kFields[] = {
    {"one_round", bytes, &Costs::one_round, 0, kMostBytes,
     "broadcast and reduce take one round up to here, then two, in which all ranks copy or add"},
    {"one_reader", bytes, &Costs::one_reader, 0, kMostBytes,
     "a reduce of more than two ranks takes one while a vector times the square of the ranks is "
     "too"},
    {"readers_of_one", ranks, &Costs::readers_of_one, 1, kAnyCount,
     "a broadcast to at most so many ranks takes one round at any size"},
    {"one_shot", bytes, &Costs::one_shot, 0, kMostBytes,
     "one of more ranks with a core each takes one shot on boards up to here, of all their "
     "vectors"},
    {"one_shot_read", bytes, &Costs::one_shot_read, 0, kMostBytes,
     "the same, apart, reads all vectors in one shot where they are up to here, then takes two"},
    {"crowded_one_shot", bytes, &Costs::crowded_one_shot, 0, kMostBytes,
     "one of more ranks that share cores, or can only read what is posted: one shot on boards, "
     "then "
     "two"},
    {"all_hear_all", ranks, &Costs::all_hear_all, 2, kAnyCount,
     "among at most so many ranks each may hear from each; more relay, to be planned in time"},
    {"leaders", bytes, &Costs::leaders, 0, kMostBytes,
     "an all-reduce of more ranks than that goes over leaders up to here, then over a tree"},
    {"segment", bytes, &Costs::segment, 1, kMostBytes,
     "pipelines cut vectors into segments of this size"},
    {"segments", segments, &Costs::segments, 1, kAnyCount, "and into so many at most"},
    {"board_pair", bytes, &Costs::board_pair, 0, std::size_t{1} << 20,
     "half a board of a rank holds so much where there are two ranks"},
    {"board_pair_read", bytes, &Costs::board_pair_read, 0, kMostBytes,
     "up to here two ranks post what they could read where it lies, an all-reduce in one shot"},
    {"few", ranks, &Costs::few, 2, kAnyCount,
     "boards are of one size among at most so many ranks, and shrink with the square of more"},
    {"board_few", bytes, &Costs::board_few, 0, std::size_t{1} << 20,
     "half a board of a rank holds so much where there are 3 to that many"},
    {"boards", bytes, &Costs::boards, 0, std::size_t{1} << 30,
     "half a board times the square of the ranks is at most so much where there are more"},
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
