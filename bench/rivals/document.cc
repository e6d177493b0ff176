#include "bench/rivals/protocol.h"

#include <bit>
#include <iterator>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"
#include "engine/base/statistics.h"

namespace rankine::rivals {

const char* family_name(Family family) {
  constexpr const char* kNames[] = {"rankine",   "expert", "mpi",      "server",
                                    "reference", "other",  "exchange", "registered"};
  return kNames[std::countr_zero(static_cast<unsigned>(family))];
}

std::optional<Compared> compare(const Comparison& comparison, const Row& row,
                                const Contenders& contenders) {
  const auto ours = row.best(comparison.ours, contenders);
  if (!ours) return std::nullopt;
  if (comparison.theirs == 0) {
    if (row.limits.empty()) return std::nullopt;
    return Compared{row.limit_ratio(*ours), "limit"};
  }
  const auto theirs = row.best(comparison.theirs, contenders);
  if (!theirs) return std::nullopt;
  return Compared{row.ratio(*ours, *theirs), contenders[*theirs]->name};
}

nlohmann::json context_json(const Plan& plan, const Setup& setup, const Contenders& contenders,
                            const std::vector<LevelRates>& levels, const nlohmann::json& machine) {
  nlohmann::json json = {{"collective", name_of(plan.collective)},
                         {"type", "float"},
                         {"redop", "sum"},
                         {"in_place", plan.in_place},
                         {"ranks", setup.ranks},
                         {"processes", setup.processes},
                         {"cpus", setup.cpus},
                         {"crowded", setup.crowded},
                         {"rounds", plan.rounds},
                         {"batch_us", plan.batch_us},
                         {"machine", machine},
                         {"kernels", kernels().name},
                         {"stamp_ns", stamp_cost_ns()}};
  for (const LevelRates& level : levels) {
    json["levels"].push_back({{"level", level.level},
                              {"bytes_per_core", level.bytes},
                              {"copy_gbs", level.copy},
                              {"add_gbs", level.add},
                              {"read_gbs", level.read},
                              {"cross_read_gbs", level.cross_read}});
  }
  for (const auto& contender : contenders) {
    json["contenders"][contender->name] = {{"family", family_name(contender->family)},
                                           {"version", contender->version},
                                           {"settings", contender->settings},
                                           {"missing", contender->missing}};
    json["order"].push_back(contender->name);
  }
  return json;
}

namespace {

// Of single calls: the median over the rounds; the greatest time of all rounds.
nlohmann::json percentiles_json(const Cell& cell) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t k = 0; k < std::size(kPercentiles); ++k) {
    std::vector<double> rounds;
    for (const std::vector<double>& round : cell.percentiles) rounds.push_back(round.at(k));
    const bool greatest = kPercentiles[k].part == 1;
    if (!rounds.empty())
      json[kPercentiles[k].name] = greatest ? quantile(rounds, 1) : median(rounds);
  }
  return json;
}

}  // namespace

nlohmann::json row_json(const Row& row, const Contenders& contenders) {
  nlohmann::json json = {{"size", row.bytes},
                         {"protocol", name_of(row.protocol)},
                         {"ping_pong_ns", row.ping_pong_ns},
                         {"repeats", row.repeats},
                         {"steady", row.steady()}};
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Cell& cell = row.cells[i];
    if (cell.us.empty()) continue;
    json["contenders"][contenders[i]->name] = {{"median_us", median(cell.us)},
                                               {"min_us", quantile(cell.us, 0)},
                                               {"calls_us", percentiles_json(cell)},
                                               {"max_us", quantile(cell.us, 1)},
                                               {"spread", relative_spread(cell.us)},
                                               {"iterations", cell.calls},
                                               {"wrong", cell.wrong},
                                               {"batches_us", cell.us}};
  }
  if (!row.limits.empty()) {
    const Limit limit = row.limit();
    json["limit"] = {{"us", limit.us},
                     {"way", limit.way},
                     {"path", limit.path},
                     {"latency_us", limit.latency_us},
                     {"crossing_us", limit.crossing_us},
                     {"motion_us", limit.motion_us},
                     {"reading_us", limit.reading_us}};
  }
  for (const Comparison& comparison : kComparisons) {
    if (const auto compared = compare(comparison, row, contenders)) {
      json["ratios"][comparison.title] = compared->ratio;
      json["against"][comparison.title] = compared->against;
    }
  }
  return json;
}

}  // namespace rankine::rivals
