// What a schedule costs each rank, in blocks and messages: plain numbers that count() derives.
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

// The counter: what every rank sends, receives and adds up, derived from the schedule itself.
//
// A transfer of b blocks is, for each of its senders that has a receiver other than itself, one
// message of b blocks sent, and for each of its receivers that has a sender other than itself, one
// message of b blocks received:
//
//   one -> one    one message for both
//   one -> many   (switch multicast) one for the sender, one for each receiver
//   many -> one   (switch ALU) one for each sender, one for the receiver: the switch adds up
//   many -> many  one for each sender and one for each receiver
//
// A transfer from a rank to itself is no message and takes no port: it counts as `local` only.
// `reduced` counts what arrives to be added; where the place is empty still, adding is storing,
// which this counter does not look into.

// Exact, in time linear in the messages; where everyone does the same (everyone.h), in those of one
// rank, unless `one_for_all` is false, which changes nothing else. Ranks must be in range, as
// verify() proves. May be called from any number of threads at once.
Counts count(const Schedule& schedule, bool one_for_all = true);

// Whether a catalogue line says the truth: its closed forms next to what was derived.

// The first field of the line whose formula does not give exactly the derived value, as a text that
// names field, formula, its value and the derived value; nullopt where all agree. Compared are
// rounds, sent and received (of the busiest rank, in units of M), send_ports and receive_ports, but
// for those of which the line says kComputed.
// Throws std::logic_error where a formula cannot be read (closed_form.h).
std::optional<std::string> compare_statement(const Algorithm& line, const Params& params,
                                             const Goal& goal, const Counts& counts);

// What a library ships: a menu of the catalogue, for who asks what that library's users could have.

struct Menu {
  // As "all_reduce ring", one of the catalogue each.
  struct Line {
    Collective collective;
    std::string_view algorithm;
  };

  std::string_view name;
  std::string_view source;
  std::span<const Line> lines{};  // none: all of the catalogue

  bool has(const Algorithm& algorithm) const;
};

// all, mpich, nccl, openmpi, ucc.
std::span<const Menu> menus();
const Menu* find_menu(std::string_view name);  // or nullptr

}  // namespace rankine
