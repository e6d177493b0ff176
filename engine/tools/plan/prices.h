// What collectives among some of a machine's ranks cost on its network, each asked once.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/predict.h"
#include "engine/read/menu.h"
#include "engine/tools/plan/machine.h"

namespace rankine::tools {

struct Price {
  double seconds = 0;
  int ranks = 1;                         // of the group; alone it pays nothing
  std::uint64_t bytes = 0;               // M
  const Algorithm* algorithm = nullptr;  // nullptr: nothing is to be done
  Params params{};
  std::vector<Rank> group{};  // of which rank 0 is one
};

// The cheapest line of a menu, on the whole network, where the group's ranks sit at their places.
// Other groups communicate at the same time, by ports of their own.
class Prices {
 public:
  // The machine and the menu must live as long. `ranks`: of the whole mapping.
  Prices(const Machine& machine, int ranks, const Menu& menu)
      : machine_(machine), ranks_(ranks), menu_(menu) {}

  // Bytes are rounded up to whole and equal blocks, as buffers are padded. Errors: those of the
  // network, and where no line of the menu runs there.
  Result<Price> of(Collective collective, std::vector<Rank> group, double bytes);

 private:
  const Machine& machine_;
  const int ranks_;
  const Menu& menu_;
  std::map<std::tuple<Collective, std::vector<Rank>, std::uint64_t>, Price> known_;
};

}  // namespace rankine::tools
