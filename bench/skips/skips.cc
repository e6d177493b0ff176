// Computes the best skips of a circulant reduce-scatter, by number of ranks, network and size, and
// prints the table of README.md as Markdown. The result does not depend on the machine.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/circulant.h"
#include "algorithms/schedule/collective.h"
#include "engine/base/units.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"
#include "engine/read/sweep.h"

namespace rankine {
namespace {

struct Network {
  const char *title, *preset;
};
constexpr Network kNetworks[] = {
    {"full", "plain"}, {"ring", "ring"}, {"torus", "torus"}, {"two levels", "two_level_shared"}};

// Groups of 8; groups of 4 if 8 would include all ranks.
Fabric fabric_of(const Network& network, int ranks) {
  Fabric fabric = find_regime(network.preset)->fabric;
  if (fabric.group >= ranks) fabric.group = ranks / 2;
  return fabric;
}

// The time without barriers, with links shared at each moment.
double flow(const std::vector<int>& skips, int ranks, const Fabric& fabric, std::uint64_t bytes) {
  const auto rounds = std::make_shared<const CirculantRounds>(ranks, skips);
  const auto result =
      simulate_flow(circulant_reduce_scatter(rounds), {Collective::reduce_scatter, ranks, ranks},
                    fabric, bytes, {.sync = Sync::dataflow, .ideal_blocks = true});
  return result.ok() ? result->seconds : -1;
}

std::string shortened(const std::vector<int>& skips) {
  constexpr std::size_t kWhole = 14, kEnds = 4;
  if (skips.size() <= kWhole) return skips_text(skips);
  return skips_text({skips.begin(), skips.begin() + kEnds}) + ", ... " +
         skips_text({skips.end() - kEnds, skips.end()});
}

int print_table() {
  std::puts(
      "| network | N | M | best of Algorithm 1 | of halving | best of any order | rounds | time | "
      "of halving | flow, of halving |\n"
      "|---|--:|--:|---|--:|---|--:|--:|--:|--:|");
  for (const Network& network : kNetworks) {
    for (const int ranks : {8, 16, 22, 32, 64}) {
      for (const std::uint64_t bytes : {64ull, 64ull << 10, 16ull << 20}) {
        const Fabric fabric = fabric_of(network, ranks);
        const auto found = search_skips(ranks, fabric, bytes, {.best = 1});
        if (!found.ok()) {
          std::fputs((found.status().text() + "\n").c_str(), stderr);
          return 1;
        }
        const double halving = found->halving.seconds;
        const auto name = [&found](const RatedSkips& best) {
          return best.time == found->halving.time ? "halving" : shortened(best.skips);
        };
        const RatedSkips& best =
            found->best.front().time == found->halving.time ? found->halving : found->best.front();
        fmt::print("| {} | {} | {} | {} | {:.3f} | {} | {} | {} | {:.3f} | {:.3f} |\n",
                   network.title, ranks, format_bytes(bytes), name(found->best_windows),
                   found->best_windows.seconds / halving, name(best), best.skips.size(),
                   format_duration(best.seconds), best.seconds / halving,
                   flow(best.skips, ranks, fabric, bytes) /
                       flow(found->halving.skips, ranks, fabric, bytes));
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace rankine

int main(int argc, char**) {
  if (argc == 1) return rankine::print_table();
  std::fputs("skips prints the table of bench/skips/README.md, and takes no arguments\n", stderr);
  return 2;
}
