// What computes: how fast a rank multiplies and reaches its memory, and the network between ranks.
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

// Rates are what programs reach, not what data sheets promise.
struct Machine {
  std::string name = "custom";
  double flops = 0;             // per second, of large matrix products
  double memory_bandwidth = 0;  // bytes per second
  double pass_seconds = 0;      // of a layer's pass beside products and memory: launching, waiting
  double memory_bytes = 0;      // of a rank
  Fabric network{};             // all ranks'
};

struct KnownMachine {
  Machine machine;
  std::string_view source;
};
std::span<const KnownMachine> known_machines();
const KnownMachine* find_known_machine(std::string_view name);  // or nullptr

// A known machine's name, or a JSON file: {"preset": "a100", "flops": 2.4e14, "memory_bandwidth":
// 1.5e12, "pass_seconds": 5e-5, "memory_bytes": 8.5e10, "network": NAME or object}. Errors name the
// member, its value and what is allowed.
Result<Machine> find_machine(std::string_view argument, const std::string& name_or_path);
Result<Machine> parse_machine(std::string_view json, std::string_view name);

// What collectives among some of a machine's ranks cost on its network, each asked once.

struct Price {
  double seconds = 0;
  int ranks = 1;                         // of the group; alone it pays nothing
  std::uint64_t bytes = 0;               // M
  std::uint64_t sent = 0;                // bytes that the busiest rank sends, counted
  const Algorithm* algorithm = nullptr;  // nullptr: nothing is to be done
  Params params{};
  std::vector<Rank> group{};  // the one that takes longest
  int sender = 0;             // send_recv: who of the group along pp sends, to the next
};

// The cheapest line of a menu, on the whole network, where the groups' ranks sit at their places.
// All groups along some axes communicate at the same time, by ports of their own; it takes as long
// as the slowest of them does, such as one that lies in two nodes where others lie in one.
class Prices {
 public:
  // The machine and the menu must live as long. `ranks`: of the whole mapping.
  Prices(const Machine& machine, int ranks, const Menu& menu)
      : machine_(machine), ranks_(ranks), menu_(menu) {}

  // Of groups_of() a mapping. Bytes are rounded up to whole and equal blocks, as buffers are
  // padded. Errors: those of the network, and where no line of the menu runs there.
  Result<Price> of(Collective collective, const std::vector<std::vector<Rank>>& groups,
                   double bytes);

 private:
  Result<Price> cheapest(Collective collective, const std::vector<std::vector<Rank>>& groups,
                         std::uint64_t bytes) const;
  // One line as its slowest group has it, with so many segments; 0: those that are best for that
  // group. The error says why it cannot run.
  Result<Price> slowest(const Algorithm& line, const std::vector<std::vector<Rank>>& groups,
                        std::uint64_t bytes, int segments) const;

  const Machine& machine_;
  const int ranks_;
  const Menu& menu_;
  // By the first group, which says what the others are.
  std::map<std::tuple<Collective, std::vector<Rank>, std::uint64_t>, Price> known_;
};

}  // namespace rankine::tools
