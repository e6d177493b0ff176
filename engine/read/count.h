// count() derives the cost of a schedule for each rank, in blocks and messages. compare_statement()
// checks the closed forms of the catalogue against it, and menus() lists the algorithms of
// libraries.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// One rank's share. Blocks are the schedule's; blocks_per_m() in catalogue.h turns them into M.
struct RankCounts {
  std::int64_t sent = 0;      // blocks
  std::int64_t received = 0;  // blocks
  std::int64_t reduced = 0;   // blocks added to others, on arrival or after they were stored here
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  int partners = 0;        // distinct ranks that it sends to or receives from
  int send_ports = 0;      // most messages that it sends in one round
  int receive_ports = 0;   // most messages that it receives in one round
  std::int64_t local = 0;  // blocks copied or added from its own places to its own places
  bool operator==(const RankCounts&) const = default;
};

struct Counts {
  // rounds with a message; other rounds are local work, which takes no time in the model
  int rounds = 0;
  std::vector<RankCounts> ranks;  // one per rank
  RankCounts busiest;             // field by field the maximum over all ranks
  RankCounts total;               // field by field the sum over all ranks
  bool operator==(const Counts&) const = default;
};

// The counter derives the blocks that every rank sends, receives and adds from the schedule itself.
//
// A transfer of b blocks is, for each sender with a receiver other than itself, one message of b
// blocks sent, and for each receiver with a sender other than itself, one message of b blocks
// received:
//
//   one -> one    one message for both
//   one -> many   (switch multicast) one for the sender, one for each receiver
//   many -> one   (switch ALU) one for each sender, one for the receiver: the switch adds up
//   many -> many  one for each sender and one for each receiver
//
// A transfer from a rank to itself is no message and takes no port: it counts as `local` only.
// `reduced` counts arrivals to be added, even at an empty place, which only stores them: the
// counter does not follow the contents of places.

// Exact, in time linear in the messages; if every rank does the same work (rotation_symmetric.h),
// linear in the messages of one rank, unless `one_for_all` is false; the result is equal. Ranks
// must be in range (verify() checks that). Safe to call from several threads at once.
Counts count(const Schedule& schedule, bool one_for_all = true);

// Compares the closed forms of a catalogue entry with the derived counts. Returns the first field
// with a wrong formula, as a text that names field, formula, its value and the derived value;
// nullopt if all agree. Fields: rounds, sent and received (of the busiest rank, in units of M),
// send_ports and receive_ports, except fields that the entry declares kComputed. Throws
// std::logic_error if a formula cannot be parsed (parameters.h).
std::optional<std::string> compare_statement(const Algorithm& entry, const Params& params,
                                             const CollectiveSpec& goal, const Counts& counts);

// The part of the catalogue that a library ships: answers which algorithms its users could have.
struct Menu {
  struct Line {
    Collective collective;
    std::string_view algorithms;  // names of the catalogue with blanks between them
  };

  std::string_view name;
  std::string_view source;
  std::span<const Line> lines{};  // empty: all of the catalogue

  bool has(const Algorithm& algorithm) const;
};

// all, mpich, nccl, openmpi, ucc.
std::span<const Menu> menus();
const Menu* find_menu(std::string_view name);  // or nullptr

}  // namespace rankine
