// The memory of ranks that are processes, as one of them has it when all have met: the file, whose
// what in it is, and who is there.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/processes/arena.h"
#include "engine/api/processes/lobby.h"
#include "engine/api/processes/payloads.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"

namespace rankine {

class ProcessMemory {
 public:
  // Until all are there, and what the ranks here need from the start is their own. Throws
  // std::bad_alloc.
  static Result<std::shared_ptr<ProcessMemory>> meet(const ProcessLobby::Meeting& meeting,
                                                     const PostsShape& calls,
                                                     const PostsShape& messages);
  // As the lobby's.
  void share_cores() noexcept { lobby_.share_cores(); }
  Result<std::uint64_t> first_says(std::uint64_t mine) { return lobby_.first_says(mine); }
  // What the ranks here share is as it is to be: until all have come so far.
  Status begin() { return lobby_.be_ready(); }
  // Instead of that: all are told. Returns why they do not begin.
  Status fail(const Status& reason) noexcept { return lobby_.fail(reason); }

  // The ranks that this process plays, in order.
  const std::vector<Rank>& here() const noexcept { return here_; }
  const ProcessLayout& layout() const noexcept { return layout_; }
  const ProcessLobby& lobby() const noexcept { return lobby_; }
  const PostsShape& calls() const noexcept { return calls_; }
  const PostsShape& messages() const noexcept { return messages_; }
  std::byte* at(std::size_t offset) const noexcept { return lobby_.base() + offset; }
  RankLines& lines(Rank r) const noexcept;
  // The algorithm's name, by its line in the catalogue, where all processes find it.
  const char* name_of_line(std::size_t line) const noexcept;
  // The other way round, whatever the address is: the catalogue's name, or nullptr.
  const char* known_name(const char* said) const noexcept;
  Atomic<PairMade>& made(Rank from, Rank to) const noexcept;

  // Takes the file's pages there.
  Status take(std::size_t offset, std::size_t bytes, const std::string& what) const {
    return take_pages(lobby_.file(), at(offset), offset, bytes, what);
  }
  // Where the payloads of a rank here lie.
  ProcessPayloads& payloads(Rank r) noexcept { return own(r).payloads; }
  // Room in the scratch for messages of a rank here, of nobody else from then on; its offset. By
  // the rank's thread.
  Result<std::size_t> room_for_messages(Rank r, std::size_t bytes);

 private:
  ProcessMemory(const ProcessLobby::Meeting& meeting, const PostsShape& calls,
                const PostsShape& messages);
  Status take_own(Rank r);
  void write_names() noexcept;
  // What a rank here has for itself.
  struct Own {
    Own(std::byte* base, std::size_t room, const KeptFile& file, std::size_t offset)
        : payloads(base, room, file, offset) {}
    ProcessPayloads payloads;
    std::size_t room_given = 0;  // of its scratch for messages
  };
  Own& own(Rank r) noexcept;

  const std::vector<Rank> here_;
  const PostsShape calls_, messages_;
  const ProcessLayout layout_;
  ProcessLobby lobby_;
  std::deque<Own> own_;  // by here_
};

// The error of a rank whose scratch is to be larger than that.
Status no_room_in_scratch(Rank rank, const char* of_what, std::size_t bytes, std::size_t allowed,
                          int ranks);

}  // namespace rankine
