// Finding out that two ranks share buffers (rank_buffers.h), before their data are used. What is
// seen when stands in communicator.h; this is where it is seen:
//
//   direct    every rank compares the addresses in the entries of those whose memory it uses
//   mailbox, board   the mark in the first message from a rank, or in each post: equal addresses
//   any       the first call of its kind: everybody's addresses, whoever is to hear from whom
#pragma once

#include "engine/exec/plan.h"
#include "engine/exec/rank_buffers.h"
#include "engine/exec/wait.h"

namespace rankine {

// What a rank has written into its entry as its buffers, with their sizes in that plan.
RankBuffers buffers_of(Crossbar& crossbar, const Plan& plan, Rank r) noexcept;

// Ends the communicator because these two share.
void report_sharing(Crossbar& crossbar, Rank rank, const RankBuffers& mine, Rank peer,
                    const RankBuffers& theirs) noexcept;

// Whether we and that rank bring what we may; true as well where it is not inside our call (not
// yet, or no more), since then its memory may have been given to somebody else. False: they share,
// and the communicator has ended. For ranks inside a call, whose entries have their buffers.
bool keep_apart(const Plan& plan, const Waiter& waiter, Rank peer) noexcept;

// The same of all ranks. Where two that share both ask, one of them at least is told.
bool all_keep_apart(const Plan& plan, const Waiter& waiter) noexcept;

}  // namespace rankine
