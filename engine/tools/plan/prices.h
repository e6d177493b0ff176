// What collectives among some of a machine's ranks cost on its network, each asked once.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/predict.h"
#include "engine/read/count.h"
#include "engine/tools/plan/machine.h"

namespace rankine::tools {

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
