// Detecting that two ranks share buffers (RankBuffers in fingerprint.h) before their data are used.
// member.h lists the cases that are detected; the checks are here:
//
//   direct           every rank compares the addresses in the entries of the ranks it reads
//   mailbox, board   the mark in the first message from a rank, or in each post: equal addresses
//   any              the first call of its kind: the addresses of all ranks
#pragma once

#include "engine/run/fingerprint.h"
#include "engine/run/plan.h"
#include "engine/run/wait.h"

namespace rankine {

// Offers the addresses of a rank's buffers for a call that it has announced and not yet begun.
inline void offer_buffers(Entry& mine, std::byte* in, std::byte* out) noexcept {
  // Release: pairs with check_no_alias(), which sees the announcement if it sees these.
  mine.input.store(in, std::memory_order_release);
  mine.output.store(out, std::memory_order_release);
}

// Ends the communicator because these two ranks share buffers.
void report_sharing(RankControl& rank_control, Rank rank, const RankBuffers& mine, Rank peer,
                    const RankBuffers& theirs) noexcept;

// For a rank inside a call that has heard from `peer`: true if their buffers are disjoint. Also
// true if the peer has left the call, perhaps before we came, or has gone on further: its memory
// may belong to another owner by now. False: they share buffers, and the communicator has ended.
bool check_no_alias(const Plan& plan, const Waiter& waiter, Rank peer) noexcept;

// For a rank that has begun a call: check_no_alias() with every rank that has also begun it. If two
// ranks that share buffers both call this, at least one of them gets false.
bool check_no_alias_of_all(const Plan& plan, const Waiter& waiter) noexcept;

}  // namespace rankine
