// What a modelled network is to calls: the inside of network.h, for those who put one together from
// ports and links (engine/network) instead of by its name.
#pragma once

#include "engine/network/fabric.h"
#include "engine/network/port_model.h"

namespace rankine {

struct CallNetwork {
  Fabric fabric;
  Sync sync = Sync::dataflow;

  // Every pair of ranks has a mailbox for times.
  static constexpr int kMostRanks = 256;
};

}  // namespace rankine
