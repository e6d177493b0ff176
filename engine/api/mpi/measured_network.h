// The network that ranks over MPI are on, measured: what a message costs within a node, and what it
// costs between two nodes.
#pragma once

#include <mpi.h>

#include "engine/api/mpi/member.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine::mpi {

// A call of all ranks: messages to and fro between two ranks of a node, and between two of
// different ones, short and long, while the others wait; alpha and beta are those of medians
// (message_line.h). Then all ranks of a node send to another node at once: where they are in each
// other's way the nodes share a link up and down (two_level wiring), else each has its own. The
// same network on all ranks, with the nodes as its groups: write_network() makes a file of it,
// which RANKINE_NETWORK and every tool take. Errors: one rank, nodes that are no groups, and times
// from which, measured several times over, no alpha or bandwidth follows (invalid_argument); those
// of calls.
Result<Fabric> measure_network(Member& me);

}  // namespace rankine::mpi
