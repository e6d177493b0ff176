// The memory of ranks that are processes, as one of them has it when all have met: the file, whose
// what in it is, and who is there.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "engine/api/process_arena.h"
#include "engine/api/process_lobby.h"
#include "engine/api/process_payloads.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"

namespace rankine {

class ProcessMemory {
 public:
  // Until all are there, and what this rank needs from the start is its own. Throws std::bad_alloc.
  static Result<std::shared_ptr<ProcessMemory>> meet(const ProcessLobby::Meeting& meeting,
                                                     const PostsShape& calls,
                                                     const PostsShape& messages);
  // What this rank shares is as it is to be: until all have come so far.
  Status begin() { return lobby_.be_ready(); }

  Rank self() const noexcept { return self_; }
  const ProcessLayout& layout() const noexcept { return layout_; }
  const ProcessLobby& lobby() const noexcept { return lobby_; }
  const PostsShape& calls() const noexcept { return calls_; }
  const PostsShape& messages() const noexcept { return messages_; }
  std::byte* at(std::size_t offset) const noexcept { return lobby_.base() + offset; }
  RankLines& lines(Rank r) const noexcept;
  // The algorithm's name, by its line in the catalogue, where all processes find it.
  const char* name_of_line(std::size_t line) const noexcept;
  Atomic<PairMade>& made(Rank from, Rank to) const noexcept;

  // Takes the file's pages there.
  Status take(std::size_t offset, std::size_t bytes, const std::string& what) const {
    return take_pages(lobby_.file(), offset, bytes, what);
  }
  // Where this rank's payloads lie.
  ProcessPayloads& payloads() noexcept { return *payloads_; }
  // Room in this rank's scratch for messages, of nobody else from then on; its offset. By
  // one thread at a time.
  Result<std::size_t> room_for_messages(std::size_t bytes);

 private:
  ProcessMemory(const ProcessLobby::Meeting& meeting, const PostsShape& calls,
                const PostsShape& messages);
  Status take_own();
  void write_names() noexcept;

  const Rank self_;
  const PostsShape calls_, messages_;
  const ProcessLayout layout_;
  ProcessLobby lobby_;
  std::size_t room_given_ = 0;  // of that scratch
  std::optional<ProcessPayloads> payloads_;
};

// The error of a rank whose scratch is to be larger than that.
Status no_room_in_scratch(Rank rank, const char* of_what, std::size_t bytes, std::size_t allowed,
                          int ranks);

}  // namespace rankine
