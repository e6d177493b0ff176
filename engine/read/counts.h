// What a schedule costs each rank, in blocks and messages: plain numbers that count() derives.
#pragma once

#include <cstdint>
#include <vector>

namespace rankine {

// One rank's share. Blocks are the schedule's; blocks_per_m() in catalogue.h turns them into M.
struct RankCounts {
  std::int64_t sent = 0;      // blocks
  std::int64_t received = 0;  // blocks
  std::int64_t reduced =
      0;  // blocks that are added to others, as they come or after they were stored here
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  int partners = 0;        // distinct ranks that it sends to or receives from
  int send_ports = 0;      // most messages that it sends in one round
  int receive_ports = 0;   // most messages that it receives in one round
  std::int64_t local = 0;  // blocks copied or added from its own places to its own places
  bool operator==(const RankCounts&) const = default;
};

struct Counts {
  int rounds = 0;  // that have a message; others are local work, which the model gives no time
  std::vector<RankCounts> ranks;  // one per rank
  RankCounts busiest;             // field by field the maximum over all ranks
  RankCounts total;               // field by field the sum over all ranks
  bool operator==(const Counts&) const = default;
};

}  // namespace rankine
