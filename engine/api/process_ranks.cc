#include "engine/api/process_ranks.h"

#include <cstring>

#include "algorithms/catalogue.h"
#include "numa/pages.h"

namespace rankine {

ProcessRanks::ProcessRanks(const ProcessLobby::Meeting& meeting, const Shape& shape)
    : self_(meeting.rank),
      ranks_(meeting.settings.ranks),
      shape_(shape),
      layout_(ProcessLayout::of(ranks_, sizeof(LobbyPage), 2 * std::size_t{shape.board_stride},
                                std::size_t{shape.slots} * shape.slot_stride)),
      lobby_(meeting) {}

Result<std::shared_ptr<ProcessRanks>> ProcessRanks::meet(const ProcessLobby::Meeting& meeting,
                                                         const Shape& shape) {
  std::shared_ptr<ProcessRanks> out(new ProcessRanks(meeting, shape));
  if (Status status = out->lobby_.meet(); !status.ok()) return status;
  if (Status status = out->take_memory(); !status.ok()) return out->fail(status);
  if (out->self_ == 0) out->write_names();
  return out;
}

Status ProcessRanks::take_memory() {
  const std::string rank = "rank " + std::to_string(self_);
  Status status = take_pages(lobby_.file(), 0, layout_.common_bytes, "the lines of all ranks");
  if (!status.ok()) return status;
  return take_pages(lobby_.file(), layout_.of_rank(self_), layout_.rank_bytes,
                    "mailboxes and board of " + rank);
}

void ProcessRanks::write_names() noexcept {
  std::byte* to = at(layout_.names);
  for (const Algorithm& line : catalogue()) {
    std::memcpy(to, line.name.data(), line.name.size());  // the zero is there
    to += line.name.size() + 1;
  }
}

const char* ProcessRanks::name_of_line(std::size_t line) const noexcept {
  std::size_t before = 0;
  for (std::size_t i = 0; i < line; ++i) before += catalogue()[i].name.size() + 1;
  return reinterpret_cast<const char*>(at(layout_.names + before));
}

Board ProcessRanks::board(Rank of) const noexcept {
  return {at(layout_.of_rank(of) + layout_.board), shape_.board_stride};
}

Mailbox ProcessRanks::mailbox(Rank from, Rank to) const noexcept {
  const auto sender = static_cast<std::size_t>(from), reader = static_cast<std::size_t>(to);
  // As in post_memory.cc: slots are with the reader, and credit with the sender, who wait for them.
  return {
      at(layout_.of_rank(to) + layout_.slots + sender * layout_.mailbox_bytes), shape_.slot_stride,
      reinterpret_cast<Counter*>(at(layout_.of_rank(from) + layout_.credits + reader * kCacheLine)),
      shape_.slots};
}

Result<std::byte*> ProcessRanks::scratch(std::size_t bytes) {
  const std::string what = "scratch of rank " + std::to_string(self_);
  if (bytes > layout_.scratch_bytes) {
    return make_error(Code::out_of_memory, [&] {
      return what + ": " + std::to_string(bytes) + " bytes; allowed are " +
             std::to_string(layout_.scratch_bytes) + " among " + std::to_string(ranks_) +
             " processes";
    });
  }
  if (bytes > scratch_taken_) {
    Status status = take_pages(lobby_.file(), layout_.scratch_of(self_) + scratch_taken_,
                               bytes - scratch_taken_, what);
    if (!status.ok()) return status;
    scratch_taken_ = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  }
  return at(layout_.scratch_of(self_));
}

}  // namespace rankine
