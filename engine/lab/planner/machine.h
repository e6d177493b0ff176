// Describes a machine (a rank's speed of computing, its memory, and the network between ranks) and
// prices collectives on it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"
#include "engine/read/count.h"

namespace rankine::tools {

// Rates are measured rates of programs, not figures of data sheets.
struct Machine {
  std::string name = "custom";
  double flops = 0;             // per second, of large matrix products
  double memory_bandwidth = 0;  // bytes per second
  double pass_seconds = 0;      // per pass of a layer, besides products and memory: launch, waits
  double memory_bytes = 0;      // of one rank
  Fabric network{};             // connects all ranks
};

struct KnownMachine {
  Machine machine;
  std::string_view source;
};
std::span<const KnownMachine> known_machines();
const KnownMachine* find_known_machine(std::string_view name);  // or nullptr

// Reads a machine: a known machine's name, or a JSON file: {"preset": "a100", "flops": 2.4e14,
// "memory_bandwidth": 1.5e12, "pass_seconds": 5e-5, "memory_bytes": 8.5e10, "network": NAME or
// object}. Errors name the member, its value and the allowed values.
Result<Machine> find_machine(std::string_view argument, const std::string& name_or_path);
Result<Machine> parse_machine(std::string_view json, std::string_view name);

struct Price {
  double seconds = 0;
  int ranks = 1;                         // of the group; a group of 1 pays nothing
  std::uint64_t bytes = 0;               // M
  std::uint64_t sent = 0;                // bytes that the busiest rank sends, counted
  const Algorithm* algorithm = nullptr;  // nullptr: nothing to do
  Params params{};
  std::vector<Rank> group{};  // the slowest group
  int sender = 0;             // send_recv: index of the sender in its group along pp; it sends to
                              // the next member
};

// Prices a collective among groups of ranks: the cheapest line of a menu, on the whole network,
// with each rank at its place. All groups along the axes communicate at the same time, each through
// its own ports; the price is that of the slowest group, e.g. a group that lies in two nodes
// while others lie in one. Each price is computed once.
class Prices {
 public:
  // The machine and the menu must outlive this. `ranks`: all ranks of the mapping.
  Prices(const Machine& machine, int ranks, const Menu& menu)
      : machine_(machine), ranks_(ranks), menu_(menu) {}

  // `groups`: groups_of() a mapping. Bytes are rounded up to whole and equal blocks, as buffers are
  // padded. Errors: errors of the network, and no line of the menu runs there.
  Result<Price> of(Collective collective, const std::vector<std::vector<Rank>>& groups,
                   double bytes);

 private:
  Result<Price> cheapest(Collective collective, const std::vector<std::vector<Rank>>& groups,
                         std::uint64_t bytes) const;
  // The price of one line for its slowest group, with this number of segments; 0: the best number
  // for that group. The error says why the line cannot run.
  Result<Price> slowest(const Algorithm& entry, const std::vector<std::vector<Rank>>& groups,
                        std::uint64_t bytes, int segments) const;

  const Machine& machine_;
  const int ranks_;
  const Menu& menu_;
  // Keyed by the first group, which determines the other groups.
  std::map<std::tuple<Collective, std::vector<Rank>, std::uint64_t>, Price> known_;
};

}  // namespace rankine::tools
