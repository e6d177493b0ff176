// Finding out that two ranks share buffers (rank_buffers.h), before their data are used. What is
// seen when stands in member.h; this is where it is seen:
//
//   direct           every rank compares the addresses in the entries of those whose memory it uses
//   mailbox, board   the mark in the first message from a rank, or in each post: equal addresses
//   any              the first call of its kind: everybody's addresses, whoever hears from whom
#pragma once

#include "engine/run/plan.h"
#include "engine/run/rank_buffers.h"
#include "engine/run/wait.h"

namespace rankine {

// Tells where a rank's buffers for the call are that it has announced and not yet begun.
inline void offer_buffers(const Waiter& waiter, std::byte* in, std::byte* out) noexcept {
  Entry::Buffers& mine = waiter.crossbar->entry(waiter.rank).of(waiter.call);
  // Release: pairs with keeps_apart(), which finds the announcement where it finds these.
  mine.input.store(in, std::memory_order_release);
  mine.output.store(out, std::memory_order_release);
}

// Ends the communicator because these two share.
void report_sharing(Crossbar& crossbar, Rank rank, const RankBuffers& mine, Rank peer,
                    const RankBuffers& theirs) noexcept;

// For a rank inside a call that has heard from that one: whether both bring what they may. True as
// well where the peer has left the call and may have done so before we came, or has gone on
// further: its memory may have been given to somebody else. False: they share, and the communicator
// has ended.
bool keeps_apart(const Plan& plan, const Waiter& waiter, Rank peer) noexcept;

// For a rank that has begun a call: the same of all ranks that have begun it, too. Where two that
// share both ask, one of them at least is told.
bool all_keep_apart(const Plan& plan, const Waiter& waiter) noexcept;

}  // namespace rankine
