#include "engine/api/process_ranks.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>

#include "engine/api/choose.h"
#include "engine/api/communicator_state.h"
#include "numa/pages.h"

namespace rankine {
namespace {

std::string in_hexadecimal(std::uint64_t number) {
  char text[17] = {};
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

ProcessRanks::ProcessRanks(std::shared_ptr<ProcessMemory> memory, std::vector<Rank> seats,
                           Rank self, const Part& part, bool sets_up_all)
    : memory_(std::move(memory)),
      seats_(std::move(seats)),
      self_(self),
      layout_(part.layout),
      shape_(part.shape),
      base_(part.base),
      ending_(*part.ending),
      sets_up_all_(sets_up_all) {}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::meet(const ProcessLobby::Meeting& meeting,
                                                         const Costs& costs) {
  const MailboxShape mail = mailbox_shape(meeting.settings.ranks);
  const auto posts = [&](int among) {
    return PostsShape{.board_stride = board_stride(board_bytes(among, costs)),
                      .slots = mail.slots,
                      .slot_stride = mail.stride};
  };
  // Pairs have mailboxes as small as all have: there are as many of them.
  auto met = ProcessMemory::meet(meeting, posts(meeting.settings.ranks), posts(2));
  if (!met.ok()) return met.status();
  std::shared_ptr<ProcessMemory> memory = std::move(*met);
  std::vector<Rank> seats(static_cast<std::size_t>(memory->layout().ranks));
  std::iota(seats.begin(), seats.end(), 0);
  const ProcessLayout& layout = memory->layout();
  const Part part{layout.calls, memory->calls(), memory->at(0), &memory->lobby().page().ending};
  const Rank self = memory->self();
  std::shared_ptr<ProcessRanks> out(
      new ProcessRanks(std::move(memory), std::move(seats), self, part, false));
  out->scratch_ = layout.scratch_of(self);
  out->scratch_room_ = layout.scratch_bytes();
  return out;
}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::group(
    const ProcessRanks& of, std::size_t members, std::size_t there, const std::string& which,
    const Costs& costs, std::int64_t deadline_ns, const std::function<Status()>& may_wait) {
  const LobbyPage& page = of.lobby().page();
  ProcessSettings settings = page.settings;
  settings.ranks = static_cast<std::int32_t>(members);
  return meet({.name = in_hexadecimal(page.nonce) + "." + which,
               .rank = static_cast<Rank>(there),
               .settings = settings,
               .deadline_ns = deadline_ns,
               .may_wait = may_wait},
              costs);
}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::pair(const ProcessRanks& of, Rank from, Rank to,
                                                         const std::function<Status()>& may_wait) {
  const ProcessMemory& memory = *of.memory_;
  Atomic<PairMade>& made = memory.made(from, to);
  PairMade seen = PairMade::no;
  // Acquire: pairs with begin(), before which all has been set up.
  const bool first =
      made.compare_exchange_strong(seen, PairMade::going_on, std::memory_order_acquire);
  const Rank other = of.self() == from ? to : from;
  while (!first && seen != PairMade::yes) {
    // Looked at before the last look at what it has made.
    const bool has_ended = of.has_ended(other);
    Status status = may_wait();
    seen = made.load(std::memory_order_acquire);  // likewise
    if (seen == PairMade::yes) break;
    if (!status.ok()) return status;
    if (has_ended) {
      return make_error(Code::rank_lost, [&] {
        return "rank " + std::to_string(other) + "'s process " +
               std::to_string(of.process_of(other)) + " has ended while it set up messages from " +
               "rank " + std::to_string(from) + " to rank " + std::to_string(to);
      });
    }
    sleep_ns(20'000);
  }
  const ProcessLayout& layout = memory.layout();
  const std::size_t begin = layout.of_pair(from, to);
  if (first) {
    Status status = memory.take(
        begin, layout.pair.bytes,
        "messages from rank " + std::to_string(from) + " to rank " + std::to_string(to));
    if (!status.ok()) return status;
  }
  std::byte* const base = memory.at(begin);
  const Part part{layout.pair, memory.messages(), base, reinterpret_cast<SharedEnding*>(base)};
  return std::shared_ptr<ProcessRanks>(
      new ProcessRanks(of.memory_, {from, to}, of.self() == from ? 0 : 1, part, first));
}

Status ProcessRanks::begin() {
  if (!is_pair()) return memory_->begin();
  // Release: pairs with pair().
  if (sets_up_all_) memory_->made(seat(0), seat(1)).store(PairMade::yes, std::memory_order_release);
  return {};
}

bool ProcessRanks::has_left(Rank r) const noexcept {
  // Acquire: pairs with Crossbar::leave() of all; what the rank published before is visible.
  return is_pair() && memory_->lines(seat(r)).bell.left.load(std::memory_order_acquire);
}

Board ProcessRanks::board(Rank of) const noexcept {
  return {base_ + layout_.of_rank(of) + layout_.board, shape_.board_stride};
}

Mailbox ProcessRanks::mailbox(Rank from, Rank to) const noexcept {
  const auto sender = static_cast<std::size_t>(from), reader = static_cast<std::size_t>(to);
  // As in post_memory.cc: slots are with the reader, and credit with the sender, who wait for them.
  return {base_ + layout_.of_rank(to) + layout_.slots + sender * layout_.mailbox_bytes,
          shape_.slot_stride,
          reinterpret_cast<Counter*>(base_ + layout_.of_rank(from) + layout_.credits +
                                     reader * kCacheLine),
          shape_.slots};
}

Result<std::byte*> ProcessRanks::scratch(std::size_t bytes) {
  if (bytes > scratch_room_) {
    if (!is_pair()) {
      return no_room_in_scratch(self_, "calls", bytes, scratch_room_, memory_->layout().ranks);
    }
    // What it had before is nobody's: so it takes twice what it needs at most.
    const std::size_t room = std::bit_ceil(std::max(bytes, page_bytes()));
    auto begin = memory_->room_for_messages(room);
    if (!begin.ok()) return begin.status();
    scratch_ = *begin;
    scratch_room_ = room;
    scratch_taken_ = 0;
  }
  if (bytes > scratch_taken_) {
    Status status = memory_->take(scratch_ + scratch_taken_, bytes - scratch_taken_,
                                  "scratch of rank " + std::to_string(seat(self_)));
    if (!status.ok()) return status;
    scratch_taken_ = whole_pages(bytes);
  }
  return memory_->at(scratch_);
}

}  // namespace rankine
