#include "engine/api/processes/ranks.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "algorithms/catalogue.h"
#include "engine/api/processes/arena.h"
#include "engine/base/memory.h"
#include "numa/memory.h"

namespace rankine {
namespace {

Enforcement in_huge_pages(const std::byte* base, std::size_t bytes) noexcept {
  if (bytes < kHugePage) return {};
  const int error = collapse_into_huge_pages(base, bytes);
  if (error == 0) return Enforcement::done();
  char text[160];
  std::snprintf(text, sizeof(text), "no huge pages for shared payloads: madvise: %s",
                std::strerror(error));
  return Enforcement::refusal(error, text);
}

}  // namespace

Result<std::byte*> ProcessPayloads::allocate(std::size_t bytes) {
  const auto no_room = [&] {
    return make_error(Code::out_of_memory, [&] {
      return std::to_string(bytes) + " bytes of shared payloads; a rank may have " +
             std::to_string(room_) + ", and no free piece is that long; free some payloads";
    });
  };
  if (bytes > room_) return no_room();
  const std::size_t length = whole_pages(std::max<std::size_t>(1, bytes));
  std::size_t begin = 0;
  for (const auto& [other, its] : in_use_) {
    if (begin + length <= other) break;
    begin = other + its.bytes;
    if (length >= kHugePage) begin = whole_huge_pages(begin);
  }
  if (begin + length > room_) return no_room();
  Piece& piece = in_use_[begin];
  piece.bytes = length;
  if (Status status = take_pages(file_, base_ + begin, offset_ + begin, length, "shared payloads");
      !status.ok()) {
    free(base_ + begin);  // some of the pages may have been there
    return status;
  }
  piece.huge_pages = in_huge_pages(base_ + begin, length);
  return base_ + begin;
}

void ProcessPayloads::free(const void* base) noexcept {
  const auto found = in_use_.find(offset_of(base));
  // After an erroneous later access, readers see zeroes.
  give_pages_back(file_, base_ + found->first, offset_ + found->first, found->second.bytes);
  in_use_.erase(found);
}

ProcessMemory::ProcessMemory(const ProcessLobby::Meeting& meeting, const PostsShape& calls,
                             const PostsShape& messages)
    : here_(meeting.ranks),
      far_(meeting.far),
      calls_(calls),
      messages_(messages),
      layout_(ProcessLayout::of(meeting.settings.ranks, sizeof(LobbyPage), calls, messages, far_)),
      lobby_(meeting) {}

Result<std::shared_ptr<ProcessMemory>> ProcessMemory::meet(const ProcessLobby::Meeting& meeting,
                                                           const PostsShape& calls,
                                                           const PostsShape& messages) {
  std::shared_ptr<ProcessMemory> out(new ProcessMemory(meeting, calls, messages));
  if (Status status = out->lobby_.meet(); !status.ok()) return status;
  Status status = out->take(0, out->layout_.calls.common_bytes, "the lines of all ranks");
  for (const Rank r : out->here_) {
    if (status.ok()) status = out->take_own(r);
  }
  if (!status.ok()) return out->lobby_.fail(status);
  if (out->here_.front() == 0) out->write_names();
  return out;
}

Status ProcessMemory::take_own(Rank r) {
  const std::size_t begin = layout_.payloads_of(r);
  own_.emplace_back(at(begin), layout_.payload_bytes(), lobby_.file(), begin);
  if (!far_.empty() && far_[static_cast<std::size_t>(r)]) return {};
  return take(layout_.calls.of_rank(r), layout_.calls.rank_bytes,
              "mailboxes and board of rank " + std::to_string(r));
}

ProcessMemory::Own& ProcessMemory::own(Rank r) noexcept {
  const auto place = std::lower_bound(here_.begin(), here_.end(), r) - here_.begin();
  return own_[static_cast<std::size_t>(place)];
}

void ProcessMemory::write_names() noexcept {
  std::byte* to = at(layout_.names);
  for (const Algorithm& entry : catalogue()) {
    std::memcpy(to, entry.name.data(), entry.name.size());  // the memory already has the final zero
    to += entry.name.size() + 1;
  }
}

const char* ProcessMemory::name_of_line(std::size_t line) const noexcept {
  std::size_t before = 0;
  for (std::size_t i = 0; i < line; ++i) before += catalogue()[i].name.size() + 1;
  return reinterpret_cast<const char*>(at(layout_.names + before));
}

const char* ProcessMemory::known_name(const char* said) const noexcept {
  const std::byte* name = at(layout_.names);
  for (const Algorithm& entry : catalogue()) {
    if (reinterpret_cast<const std::byte*>(said) == name) return entry.name.data();
    name += entry.name.size() + 1;
  }
  return nullptr;
}

RankLines& ProcessMemory::lines(Rank r) const noexcept {
  return reinterpret_cast<RankLines*>(at(layout_.calls.lines))[r];
}

Atomic<PairMade>& ProcessMemory::made(Rank from, Rank to) const noexcept {
  auto* all = reinterpret_cast<Atomic<PairMade>*>(at(layout_.pairs_made));
  return all[layout_.number_of_pair(from, to)];
}

Result<std::size_t> ProcessMemory::room_for_messages(Rank r, std::size_t bytes) {
  std::size_t& given = own(r).room_given;
  const std::size_t left = layout_.scratch_bytes() - given;
  if (bytes > left) return no_room_in_scratch(r, "messages", bytes, left, layout_.ranks);
  const std::size_t begin = layout_.message_scratch_of(r) + given;
  given += bytes;
  return begin;
}

Status no_room_in_scratch(Rank rank, const char* of_what, std::size_t bytes, std::size_t allowed,
                          int ranks) {
  return make_error(Code::out_of_memory, [&] {
    return "no memory for scratch of rank " + std::to_string(rank) + " for " + of_what + ": " +
           std::to_string(bytes) + " bytes; allowed are " + std::to_string(allowed) + " among " +
           std::to_string(ranks) + " processes";
  });
}

namespace {

std::string in_hexadecimal(std::uint64_t number) {
  char text[17] = {};
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

ProcessRanks::ProcessRanks(std::shared_ptr<ProcessMemory> memory, std::vector<Rank> seats,
                           std::vector<Rank> here, const Part& part, bool sets_up_all)
    : memory_(std::move(memory)),
      seats_(std::move(seats)),
      here_(std::move(here)),
      layout_(part.layout),
      shape_(part.shape),
      base_(part.base),
      ending_(*part.ending),
      sets_up_all_(sets_up_all),
      scratch_(here_.size()) {}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::meet(const ProcessLobby::Meeting& meeting,
                                                         const Posts& posts) {
  auto met = ProcessMemory::meet(meeting, posts.all, posts.pairs);
  if (!met.ok()) return met.status();
  std::shared_ptr<ProcessMemory> memory = std::move(*met);
  std::vector<Rank> seats(static_cast<std::size_t>(memory->layout().ranks));
  std::iota(seats.begin(), seats.end(), 0);
  const ProcessLayout& layout = memory->layout();
  const Part part{layout.calls, memory->calls(), memory->at(0), &memory->lobby().page().ending};
  const std::vector<Rank>& here = memory->here();
  std::shared_ptr<ProcessRanks> out(new ProcessRanks(memory, std::move(seats), here, part, false));
  for (std::size_t i = 0; i < here.size(); ++i) {
    out->scratch_[i] = {layout.scratch_of(here[i]), layout.scratch_bytes()};
  }
  return out;
}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::group(
    const ProcessRanks& of, const std::vector<Rank>& members, const std::string& which,
    const Posts& posts, std::int64_t deadline_ns, const std::function<Status()>& may_wait) {
  ProcessSettings settings = of.lobby().settings();
  settings.ranks = static_cast<std::int32_t>(members.size());
  std::vector<Rank> here;
  for (std::size_t there = 0; there < members.size(); ++there) {
    if (of.is_here(members[there])) here.push_back(static_cast<Rank>(there));
  }
  return meet({.name = in_hexadecimal(of.lobby().nonce()) + "." + which,
               .ranks = std::move(here),
               .settings = settings,
               .deadline_ns = deadline_ns,
               .may_wait = may_wait},
              posts);
}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::pair(const ProcessRanks& of, Rank from, Rank to,
                                                         const std::function<Status()>& may_wait) {
  const ProcessMemory& memory = *of.memory_;
  Atomic<PairMade>& made = memory.made(from, to);
  PairMade seen = PairMade::no;
  // Acquire: pairs with begin(), which comes after all setting up.
  const bool first =
      made.compare_exchange_strong(seen, PairMade::going_on, std::memory_order_acquire);
  const Rank other = of.is_here(from) ? to : from;
  while (!first && seen != PairMade::yes) {
    // Read before the last load of `made`, so that a process that finished and then ended is not
    // lost.
    const bool has_ended = of.has_ended(other);
    Status status = may_wait();
    seen = made.load(std::memory_order_acquire);  // acquire: pairs with begin()
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
        begin, layout.pair.clock,
        "messages from rank " + std::to_string(from) + " to rank " + std::to_string(to));
    if (!status.ok()) return status;
  }
  std::byte* const base = memory.at(begin);
  const Part part{layout.pair, memory.messages(), base, reinterpret_cast<SharedEnding*>(base)};
  return std::shared_ptr<ProcessRanks>(
      new ProcessRanks(of.memory_, {from, to}, {of.is_here(from) ? 0 : 1}, part, first));
}

Result<std::byte*> ProcessRanks::clock() {
  std::byte* const begin = base_ + layout_.clock;
  Status status = memory_->take(static_cast<std::size_t>(begin - memory_->at(0)),
                                layout_.clock_bytes, "the clock of a modelled network");
  if (!status.ok()) return status;
  return begin;
}

Status ProcessRanks::begin() {
  if (!is_pair()) return memory_->begin();
  // Release: pairs with pair().
  if (sets_up_all_) memory_->made(seat(0), seat(1)).store(PairMade::yes, std::memory_order_release);
  return {};
}

bool ProcessRanks::has_left(Rank r) const noexcept {
  // Acquire: pairs with RankControl::leave(); everything that the rank published before is visible.
  return is_pair() && memory_->lines(seat(r)).wake_futex.left.load(std::memory_order_acquire);
}

Board ProcessRanks::board(Rank of) const noexcept {
  const auto n = static_cast<int>(seats_.size());
  return board_of(n, static_cast<std::size_t>(of), shape_.board_stride, [&](std::size_t r) {
    return base_ + layout_.of_rank(static_cast<Rank>(r)) + layout_.board;
  });
}

Mailbox ProcessRanks::mailbox(Rank from, Rank to) const noexcept {
  const auto sender = static_cast<std::size_t>(from), reader = static_cast<std::size_t>(to);
  // As in communicator_state.cc: slots lie near the reader and credit near the sender, because
  // these ranks wait for them.
  return {base_ + layout_.of_rank(to) + layout_.slots + sender * layout_.mailbox_bytes,
          shape_.slot_stride,
          reinterpret_cast<Counter*>(base_ + layout_.of_rank(from) + layout_.credits +
                                     reader * kCacheLine),
          shape_.slots};
}

Result<std::byte*> ProcessRanks::scratch(Rank r, std::size_t bytes) {
  const auto place = std::lower_bound(here_.begin(), here_.end(), r) - here_.begin();
  Scratch& scratch = scratch_[static_cast<std::size_t>(place)];
  if (bytes > scratch.room) {
    if (!is_pair()) {
      return no_room_in_scratch(r, "calls", bytes, scratch.room, memory_->layout().ranks);
    }
    // The old room is lost; doubling limits the loss to the room in use.
    const std::size_t room = std::bit_ceil(std::max(bytes, page_bytes()));
    auto begin = memory_->room_for_messages(seat(r), room);
    if (!begin.ok()) return begin.status();
    scratch = {*begin, room};
  }
  if (bytes > scratch.taken) {
    Status status = memory_->take(scratch.begin + scratch.taken, bytes - scratch.taken,
                                  "scratch of rank " + std::to_string(seat(r)));
    if (!status.ok()) return status;
    scratch.taken = whole_pages(bytes);
  }
  return memory_->at(scratch.begin);
}

}  // namespace rankine
