// How data get from rank to rank.
//
// Three transports run the same program (engine/compile/program.h):
//   direct    everything stays where it is. A rank reads its peers' memory once their progress
//             counters say so; all waits are fixed here. For data of any size, at full speed.
//   mailbox   every source on another rank is a message of the pair's mailbox (mailbox.h): small
//             data inside the slot, large data as an address. Ports, clocks and throttling live
//             here, and a message from one to one is fastest here: data and flag share a line.
//   board     what others want of a rank in a round, it posts once for all of them (board.h). For
//             small data where everybody hears from everybody.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankine {

enum class Transport : std::uint8_t { direct, mailbox, board };
inline constexpr int kTransports = 3;
std::string_view name_of(Transport transport);

}  // namespace rankine
