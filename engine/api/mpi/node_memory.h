// Memory that the processes of one node share, at the same address in each of them: a file without
// a name, of which pages are taken as they are needed, and which goes with the last of them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "engine/api/processes/name.h"
#include "engine/base/status.h"

namespace rankine::mpi {

// Thread-safe, but for one part at a time.
class NodeMemory {
 public:
  // A call of all processes of `node`, which are on one machine: `common` bytes that all of them
  // use, and a part for each of `parts` ranks. Errors, on all of them alike: what the system
  // refuses.
  static Result<std::shared_ptr<NodeMemory>> make(MPI_Comm node, std::size_t common, int parts);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // Zeroed.
  std::byte* common() const { return base_; }
  // A part, which has room for so many bytes then. It stays where it is, and what is there stays.
  Result<std::byte*> part(int which, std::size_t bytes);
  std::size_t most_of_part() const { return part_bytes_; }

 private:
  NodeMemory(std::size_t common, int parts);
  Status open(MPI_Comm node);
  Status map(MPI_Comm node, std::uint64_t seed);

  const std::size_t common_bytes_;              // in whole pages
  const std::size_t part_bytes_;                // of address space
  const std::unique_ptr<std::size_t[]> taken_;  // by part
  KeptFile file_;
  std::byte* base_ = nullptr;
};

}  // namespace rankine::mpi
