// RankLocations describes the placement of the ranks of a communicator over MPI: node, process and
// thread. shared_host() identifies the machine of a process, made_up_node() divides a machine into
// test nodes, and line_through() fits message costs. This file does not use MPI.
//
// SharedHost holds the identity of this process's host. Two processes can share memory as ranks
// only if they agree on the machine, the folder in which they meet (containers may mount different
// ones there), the process-number namespace, the user and the user namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/call.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

struct SharedHost {
  std::uint64_t machine = 0;
  std::uint64_t memory = 0;  // hash of all properties above
};

// Read once per process. Thread-safe.
const SharedHost& shared_host();

// The placement decides the message path between two ranks, and the groups for algorithms that
// follow the machine.

// A process of the communicator, as the process describes itself.
struct ProcessLocation {
  int node = 0;     // any number that is equal in all processes of one node
  int threads = 1;  // number of ranks of the process, one per thread
};

struct RankLocation {
  int node = 0;  // nodes are numbered in the order of their first ranks
  int process = 0, thread = 0;
};

class RankLocations {
 public:
  // `processes` are in rank order; the ranks of one process have consecutive numbers.
  explicit RankLocations(const std::vector<ProcessLocation>& processes);

  int ranks() const { return static_cast<int>(all_.size()); }
  int nodes() const { return nodes_; }
  const RankLocation& operator[](Rank r) const { return all_[static_cast<std::size_t>(r)]; }
  Rank first_of(int process) const { return firsts_[static_cast<std::size_t>(process)]; }
  int most_threads() const;
  // Ranks in ascending order.
  std::vector<Rank> on_node(int node) const;
  std::vector<Rank> in_process(int process) const;

  // Returns G if each node has G consecutive ranks (the last node may have fewer); otherwise, and
  // for a single node, 0.
  int group() const { return group_; }
  // "2 nodes with 3 and 2 ranks", "ranks 0, 2 and ranks 1, 3 on 2 nodes"
  std::string in_words() const;
  // If `algorithm` takes groups or levels and the options name none, sets them to the nodes; the
  // options then point into this object. Error: the nodes do not form groups; the text names the
  // algorithm.
  Status take_nodes(const Algorithm& algorithm, CallOptions& options) const;

 private:
  std::vector<RankLocation> all_;
  std::vector<Rank> firsts_;  // of each process
  int nodes_ = 0, group_ = 0;
  std::vector<int> levels_;  // the group
};

// RANKINE_MPI_NODES divides a machine into made-up nodes, for tests on fewer machines. Returns the
// number of processes of each node; the list repeats ("2": two each; "3,1": three, one, three ...).
// Empty if the variable is not set. Errors name the variable.
Result<std::vector<int>> read_made_up_nodes();
// Returns the made-up node of process number `process`.
int made_up_node(const std::vector<int>& sizes, int process);

// The time of a message as a line over its length: alpha seconds, plus beta seconds per byte.

struct TimedMessage {
  std::size_t bytes = 0;
  double seconds = 0;  // one way; the median of several
};

// alpha is the time of the first message, which is the shortest. beta is the median slope of the
// lines from the first message to each of the others, so one delayed message has no effect.
// Requires at least two messages, and all others longer than the first. Errors: alpha or beta is
// not above 0 (on a busy machine long messages may take no longer than short ones), or is above
// kMostSeconds (tuning.h). The error text lists all times.
Result<Link> line_through(std::span<const TimedMessage> messages);

}  // namespace rankine
