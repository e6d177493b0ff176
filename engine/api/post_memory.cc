// Where ranks post to each other: mailboxes and boards, made when a plan first needs them.
#include <new>
#include <string>

#include "engine/api/communicator_state.h"
#include "engine/api/tuning/choose.h"

namespace rankine {

MailboxShape mailbox_shape(int ranks) {
  const auto slots_for = [](std::size_t payload) {
    return static_cast<std::uint32_t>(stride_for(payload));
  };
  if (ranks <= 2) return {kSlots, slots_for(2048)};
  if (ranks <= 4) return {kSlots, slots_for(1024)};
  if (ranks <= 8) return {kSlots, slots_for(512)};
  if (ranks <= 16) return {kSlots, slots_for(256)};
  if (ranks <= 32) return {kSlots, slots_for(64)};
  return {kSlots / 2, slots_for(kSmallPayload)};
}

ProcessRanks::Posts posts_of_processes(int ranks, const Costs& costs) {
  const MailboxShape mail = mailbox_shape(ranks);
  // Pairs have mailboxes as small as all have: there are as many of them.
  const auto among = [&](int few) {
    return PostsShape{.board_stride = board_stride(board_bytes(few, costs)),
                      .slots = mail.slots,
                      .slot_stride = mail.stride,
                      .clock_channel = NetworkClock::kChannelBytes};
  };
  return {.all = among(ranks), .pairs = among(2)};
}

namespace {

void set_up(const Mailbox& mailbox, std::uint32_t first_count) {
  for (std::uint32_t i = 0; i < mailbox.capacity; ++i) {
    (new (mailbox.slots + std::size_t{i} * mailbox.stride) PostHeader)
        ->flag.store(first_count, std::memory_order_relaxed);
  }
}

void set_up(Counter* credit, std::uint32_t first_count) {
  (new (credit) Counter)->value.store(first_count, std::memory_order_relaxed);
}

// The halves in the rank's own memory.
void set_up_halves(int ranks, std::size_t rank, const Board& board, std::uint32_t first_count) {
  for (const std::uint32_t number : {0U, 1U}) {
    if (half_place(ranks, rank, number).rank != rank) continue;
    (new (&board.half(number)) PostHeader)->flag.store(first_count, std::memory_order_relaxed);
  }
}

}  // namespace

void CommunicatorShared::share_posts() {
  for (Rank q = 0; q < ranks; ++q) {
    const auto i = static_cast<std::size_t>(q);
    boards[i] = processes->board(q);
    for (Rank to = 0; to < ranks; ++to) {
      mailboxes[i * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(to)] =
          processes->mailbox(q, to);
    }
  }
  for (Rank r = 0; r < ranks; ++r) {
    if (!processes->sets_up(r)) continue;
    for (Rank q = 0; q < ranks; ++q) {
      set_up(processes->mailbox(q, r), first_count);
      set_up(processes->mailbox(r, q).credit, first_count);
    }
    set_up_halves(ranks, static_cast<std::size_t>(r), processes->board(r), first_count);
  }
}

Status CommunicatorShared::provide_mailboxes(const Plan& plan) {
  if (processes != nullptr) return {};
  for (Rank from = 0; from < plan.ranks; ++from) {
    for (const Traffic& traffic : plan.rank[static_cast<std::size_t>(from)].traffic) {
      if (traffic.sent == 0) continue;
      const auto to = static_cast<std::size_t>(traffic.peer);
      Mailbox& mailbox = mailboxes[static_cast<std::size_t>(from * ranks) + to];
      if (mailbox.slots != nullptr) continue;
      auto* slots =
          static_cast<std::byte*>(arenas[to].allocate(std::size_t{mail.slots} * mail.stride));
      // Credit is read by the sender, and written by the reader: on a line of its own and, as slots
      // are, with the rank that waits for it.
      void* credit = arenas[static_cast<std::size_t>(from)].allocate(sizeof(Counter));
      if (slots == nullptr || credit == nullptr) {
        return {Code::out_of_memory, "mailboxes of rank " + std::to_string(to) + ": " +
                                         std::to_string(std::size_t{mail.slots} * mail.stride) +
                                         " bytes"};
      }
      mailbox = {slots, mail.stride, static_cast<Counter*>(credit), mail.slots};
      // An arena's memory is zeroes, and so a count of 0 stands there: its pages are left to the
      // ranks, which come to them side by side.
      if (first_count == 0) continue;
      set_up(mailbox.credit, first_count);
      set_up(mailbox, first_count);
    }
  }
  return {};
}

Status CommunicatorShared::provide_boards(const Plan& plan) {
  if (plan.transport != Transport::board || processes != nullptr) return {};
  const std::uint32_t stride = board_stride(board_bytes(ranks, costs));
  if (boards.front().halves[1] != nullptr) return {};
  const std::size_t bytes = halves_of_a_rank(ranks) * stride;
  // The first of each is where the rank's own halves begin (half_place()).
  for (std::size_t r = 0; r < boards.size(); ++r) {
    std::byte*& own = boards[r].halves[0];
    if (own != nullptr) continue;  // of a time before, when another's was refused
    own = static_cast<std::byte*>(arenas[r].allocate(bytes));
    if (own == nullptr) {
      return {Code::out_of_memory,
              "board of rank " + std::to_string(r) + ": " + std::to_string(bytes) + " bytes"};
    }
  }
  for (std::size_t r = 0; r < boards.size(); ++r) {
    boards[r] = board_of(ranks, r, stride, [this](std::size_t of) { return boards[of].halves[0]; });
    set_up_halves(ranks, r, boards[r], first_count);
  }
  return {};
}

}  // namespace rankine
