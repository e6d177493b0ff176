// Runs of live ranks that wait to be made: no more of them at a time than there is memory for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rankine::claims {

// What live ranks take in memory, about: plans of many moves, and what each rank has beside them.
std::size_t bytes_for(std::uint64_t moves, int ranks);

// Each of so many bytes. Whoever makes them, on as many cores as there are, takes one that there is
// room for in this process. Thread-safe.
class LiveQueue {
 public:
  explicit LiveQueue(std::vector<std::size_t> bytes) : bytes_(std::move(bytes)) {}

  // The number of the first one, when there is any. To be asked once for each.
  std::size_t take();
  // One of so many bytes has been made.
  static void give_back(std::size_t bytes);

 private:
  static constexpr std::size_t kTaken = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> bytes_;
};

}  // namespace rankine::claims
