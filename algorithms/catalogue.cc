#include "algorithms/catalogue.h"

#include <array>

#include "algorithms/chain.h"
#include "algorithms/direct.h"
#include "algorithms/formula.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"

namespace rankine {
namespace {

using enum Collective;

constexpr std::string_view kAnyN = "1";
constexpr std::string_view kPatarasuk = "Patarasuk & Yuan, JPDC 69(2), 2009";
constexpr std::string_view kThakur = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005";
constexpr std::string_view kFolklore = "folklore";

// clang-format off
const Algorithm kCatalogue[] = {
    {all_gather, "ring", [](const Params& a) { return ring_all_gather(a.ranks); }, kAnyN, "",
     "N-1", "(N-1)/N", "(N-1)/N", "min(1,N-1)", "min(1,N-1)",
     "everyone passes a block to the right", kPatarasuk},
    {reduce_scatter, "ring", [](const Params& a) { return ring_reduce_scatter(a.ranks); }, kAnyN, "",
     "N-1", "(N-1)/N", "(N-1)/N", "min(1,N-1)", "min(1,N-1)",
     "the ring all-gather reversed in time", kPatarasuk},
    {all_reduce, "ring", [](const Params& a) { return ring_all_reduce(a.ranks); }, kAnyN, "",
     "2*(N-1)", "2*(N-1)/N", "2*(N-1)/N", "min(1,N-1)", "min(1,N-1)",
     "ring reduce-scatter, then ring all-gather", kPatarasuk},
    {broadcast, "chain", [](const Params& a) { return chain_broadcast(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,N+P-2,0)", "min(1,N-1)", "min(1,N-1)", "min(1,N-1)", "min(1,N-1)",
     "segments handed from neighbour to neighbour", kPatarasuk},
    {Collective::reduce, "chain", [](const Params& a) { return chain_reduce(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,N+P-2,0)", "min(1,N-1)", "min(1,N-1)", "min(1,N-1)", "min(1,N-1)",
     "the chain broadcast reversed in time", kPatarasuk},
    {all_gather, "direct", [](const Params& a) { return direct_all_gather(a.ranks); }, kAnyN, "",
     "min(1,N-1)", "(N-1)/N", "(N-1)/N", "N-1", "N-1",
     "everyone to everyone at once", kFolklore},
    {reduce_scatter, "direct", [](const Params& a) { return direct_reduce_scatter(a.ranks); }, kAnyN, "",
     "min(1,N-1)", "(N-1)/N", "(N-1)/N", "N-1", "N-1",
     "everyone collects its own block from all", kFolklore},
    {all_reduce, "direct_one_shot", [](const Params& a) { return direct_all_reduce_one_shot(a.ranks); }, kAnyN, "",
     "min(1,N-1)", "N-1", "N-1", "N-1", "N-1",
     "everyone reads all vectors and adds them up", kFolklore},
    {all_reduce, "direct_two_shot", [](const Params& a) { return direct_all_reduce_two_shot(a.ranks); }, kAnyN, "",
     "2*min(1,N-1)", "2*(N-1)/N", "2*(N-1)/N", "N-1", "N-1",
     "everyone adds up one block, then hands it to all", kFolklore},
    {all_reduce, "recursive_doubling", [](const Params& a) { return recursive_doubling_all_reduce(a.ranks); }, "pow2(N)", "",
     "log2(N)", "log2(N)", "log2(N)", "min(1,N-1)", "min(1,N-1)",
     "partners at distance 2^k exchange everything", kThakur},
};
// clang-format on

}  // namespace

std::span<const Algorithm> catalogue() { return kCatalogue; }

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  for (const Algorithm& line : kCatalogue) {
    if (line.collective == collective && line.name == name) return &line;
  }
  return nullptr;
}

std::string algorithm_names(Collective collective) {
  std::string names;
  for (const Algorithm& line : kCatalogue) {
    if (line.collective != collective) continue;
    if (!names.empty()) names += ", ";
    names += line.name;
  }
  return names;
}

bool Algorithm::takes(std::string_view parameter) const {
  return parameters.find(parameter) != std::string_view::npos;
}

std::optional<std::string> Algorithm::refusal(const Params& params) const {
  const std::string who = std::string(name_of(collective)) + " '" + std::string(name) + "'";
  if (params.ranks < 1) {
    return who + ": ranks is " + std::to_string(params.ranks) + "; at least 1 is needed";
  }
  if (params.segments < 1) {
    return who + ": segments is " + std::to_string(params.segments) + "; at least 1 is needed";
  }
  if (params.root < 0 || params.root >= params.ranks) {
    return who + ": root is " + std::to_string(params.root) + "; allowed are 0 to " +
           std::to_string(params.ranks - 1);
  }
  if (evaluate(allowed_when, params) == 0) {
    return who + ": ranks is " + std::to_string(params.ranks) + "; allowed where " +
           std::string(allowed_when);
  }
  return std::nullopt;
}

Goal goal_of(const Algorithm& algorithm, const Params& params, const Schedule& schedule) {
  return {algorithm.collective, params.ranks, schedule.blocks, params.root, params.peer};
}

int blocks_per_m(const Goal& goal) {
  return goal.collective == all_to_all ? goal.blocks / goal.ranks : goal.blocks;
}

}  // namespace rankine
