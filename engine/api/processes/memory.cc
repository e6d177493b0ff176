#include "engine/api/processes/memory.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "algorithms/catalogue.h"

namespace rankine {

ProcessMemory::ProcessMemory(const ProcessLobby::Meeting& meeting, const PostsShape& calls,
                             const PostsShape& messages)
    : here_(meeting.ranks),
      calls_(calls),
      messages_(messages),
      layout_(ProcessLayout::of(meeting.settings.ranks, sizeof(LobbyPage), calls, messages)),
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
  return take(layout_.calls.of_rank(r), layout_.calls.rank_bytes,
              "mailboxes and board of rank " + std::to_string(r));
}

ProcessMemory::Own& ProcessMemory::own(Rank r) noexcept {
  const auto place = std::lower_bound(here_.begin(), here_.end(), r) - here_.begin();
  return own_[static_cast<std::size_t>(place)];
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

const char* ProcessMemory::known_name(const char* said) const noexcept {
  const std::byte* name = at(layout_.names);
  for (const Algorithm& line : catalogue()) {
    if (reinterpret_cast<const std::byte*>(said) == name) return line.name.data();
    name += line.name.size() + 1;
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
    return "scratch of rank " + std::to_string(rank) + " for " + of_what + ": " +
           std::to_string(bytes) + " bytes; allowed are " + std::to_string(allowed) + " among " +
           std::to_string(ranks) + " processes";
  });
}

}  // namespace rankine
