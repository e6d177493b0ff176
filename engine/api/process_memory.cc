#include "engine/api/process_memory.h"

#include <cstring>
#include <string>

#include "algorithms/catalogue.h"

namespace rankine {

ProcessMemory::ProcessMemory(const ProcessLobby::Meeting& meeting, const PostsShape& calls,
                             const PostsShape& messages)
    : self_(meeting.rank),
      calls_(calls),
      messages_(messages),
      layout_(ProcessLayout::of(meeting.settings.ranks, sizeof(LobbyPage), calls, messages)),
      lobby_(meeting) {}

Result<std::shared_ptr<ProcessMemory>> ProcessMemory::meet(const ProcessLobby::Meeting& meeting,
                                                           const PostsShape& calls,
                                                           const PostsShape& messages) {
  std::shared_ptr<ProcessMemory> out(new ProcessMemory(meeting, calls, messages));
  if (Status status = out->lobby_.meet(); !status.ok()) return status;
  if (Status status = out->take_own(); !status.ok()) return out->lobby_.fail(status);
  if (out->self_ == 0) out->write_names();
  const std::size_t payloads = out->layout_.payloads_of(out->self_);
  out->payloads_.emplace(out->at(payloads), out->layout_.payload_bytes(), out->lobby_.file(),
                         payloads);
  return out;
}

Status ProcessMemory::take_own() {
  Status status = take(0, layout_.calls.common_bytes, "the lines of all ranks");
  if (!status.ok()) return status;
  return take(layout_.calls.of_rank(self_), layout_.calls.rank_bytes,
              "mailboxes and board of rank " + std::to_string(self_));
}

void ProcessMemory::write_names() noexcept {
  std::byte* to = at(layout_.names);
  for (const Algorithm& line : catalogue()) {
    std::memcpy(to, line.name.data(), line.name.size());  // the zero is there
    to += line.name.size() + 1;
  }
}

const char* ProcessMemory::name_of_line(std::size_t line) const noexcept {
  std::size_t before = 0;
  for (std::size_t i = 0; i < line; ++i) before += catalogue()[i].name.size() + 1;
  return reinterpret_cast<const char*>(at(layout_.names + before));
}

RankLines& ProcessMemory::lines(Rank r) const noexcept {
  return reinterpret_cast<RankLines*>(at(layout_.calls.lines))[r];
}

Atomic<PairMade>& ProcessMemory::made(Rank from, Rank to) const noexcept {
  auto* all = reinterpret_cast<Atomic<PairMade>*>(at(layout_.pairs_made));
  return all[layout_.number_of_pair(from, to)];
}

Result<std::size_t> ProcessMemory::room_for_messages(std::size_t bytes) {
  const std::size_t left = layout_.scratch_bytes() - room_given_;
  if (bytes > left) return no_room_in_scratch(self_, "messages", bytes, left, layout_.ranks);
  const std::size_t begin = layout_.message_scratch_of(self_) + room_given_;
  room_given_ += bytes;
  return begin;
}

Status no_room_in_scratch(Rank rank, const char* of_what, std::size_t bytes, std::size_t allowed,
                          int ranks) {
  return make_error(Code::out_of_memory, [&] {
    return "scratch of rank " + std::to_string(rank) + " for " + of_what + ": " +
           std::to_string(bytes) + " bytes; allowed are " + std::to_string(allowed) + " among " +
           std::to_string(ranks) + " processes";
  });
}

}  // namespace rankine
