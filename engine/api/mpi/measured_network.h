// The network that ranks over MPI are on, measured: what a message costs within a node, and what it
// costs between two nodes.
#pragma once

#include <mpi.h>

#include "engine/api/mpi/member.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine::mpi {

// A call of all ranks: messages to and fro between two ranks of a node, and between two of
// different ones, short and long, while the others wait. The same network on all ranks, with the
// nodes as its groups: write_network() makes a file of it, which RANKINE_NETWORK and every tool
// take. Errors: one rank, nodes that are no groups, and times from which no bandwidth follows
// (invalid_argument); those of calls.
Result<Fabric> measure_network(Member& me);

}  // namespace rankine::mpi
