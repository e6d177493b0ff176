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
#pragma once

#include "algorithms/schedule/schedule.h"
#include "engine/read/counts.h"

namespace rankine {

// Exact, in time linear in the messages; where everyone does the same (everyone.h), in those of one
// rank, unless `one_for_all` is false, which changes nothing else. Ranks must be in range, as
// verify() proves. May be called from any number of threads at once.
Counts count(const Schedule& schedule, bool one_for_all = true);

}  // namespace rankine
