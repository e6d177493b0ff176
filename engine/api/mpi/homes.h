// What processes must have alike to share memory as ranks that are processes do: the machine, the
// folder in which they meet (containers may mount others there), the namespace of process numbers,
// the user and the namespace of users. MPI has no part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/call.h"
#include "engine/api/mpi/message_plan.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

struct SharedHost {
  std::uint64_t machine = 0;
  std::uint64_t memory = 0;  // of all of these
};

// This process's, read once. Thread-safe.
const SharedHost& shared_host();

// Where the ranks of a communicator over MPI are: on which node, in which process, on which of its
// threads. What follows from that: how messages go between two of them, and what groups algorithms
// get that follow the machine.

// A process of the communicator, as it says of itself.
struct ProcessHome {
  int node = 0;     // any number that processes of one node have in common
  int threads = 1;  // ranks that it plays, on a thread each
};

struct Home {
  int node = 0;  // numbered as their first ranks are
  int process = 0, thread = 0;
};

class Homes {
 public:
  // In the order of the processes; the ranks of a process are neighbours.
  explicit Homes(const std::vector<ProcessHome>& processes);

  int ranks() const { return static_cast<int>(all_.size()); }
  int nodes() const { return nodes_; }
  const Home& operator[](Rank r) const { return all_[static_cast<std::size_t>(r)]; }
  Rank first_of(int process) const { return firsts_[static_cast<std::size_t>(process)]; }
  int most_threads() const;
  // In order.
  std::vector<Rank> on_node(int node) const;
  std::vector<Rank> in_process(int process) const;

  // From a rank to each. `memory`: processes of a node share some.
  std::vector<Way> ways_of(Rank r, bool memory) const;

  // G, where each node has G neighbours, but for the last one, which may have fewer; else 0. Of one
  // node 0 as well: there is nothing to be told apart.
  int group() const { return group_; }
  // "2 nodes with 3 and 2 ranks", "ranks 0, 2 and ranks 1, 3 on 2 nodes"
  std::string in_words() const;
  // Gives the nodes as groups to an algorithm that takes groups or levels, where the options have
  // none; they refer to this then. Error: nodes that are no groups, by the algorithm's name.
  Status take_nodes(const Algorithm& algorithm, CallOptions& options) const;

 private:
  std::vector<Home> all_;
  std::vector<Rank> firsts_;  // of each process
  int nodes_ = 0, group_ = 0;
  std::vector<int> levels_;  // the group
};

// Made-up nodes, for machines that are fewer: how many processes each has, in turns ("2": two each,
// "3,1": three, one, three ...). RANKINE_MPI_NODES; nothing where it is not set. Errors name it.
Result<std::vector<int>> read_made_up_nodes();
// The node of the process of that number.
int made_up_node(const std::vector<int>& sizes, int process);

// What messages cost by their length, as a line: alpha seconds, and beta for every byte.

struct TimedMessage {
  std::size_t bytes = 0;
  double seconds = 0;  // one way; of several the median
};

// Through the first, which is the shortest and whose time alpha is, and as steep as the median of
// the lines from there to each of the others: one that was held up changes nothing. Requires two,
// and that the others are longer than the first. Errors: an alpha or a beta that is not above 0,
// where a machine that does other things lets long messages take no longer than short ones, or is
// above kMostSeconds (machine_model.h); the text says all the times.
Result<Link> line_through(std::span<const TimedMessage> messages);

}  // namespace rankine
