// Where a rank that is a process has its payloads (payload.h): a part of the memory that all
// processes have mapped at the same address, so that others read and write them in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/processes/arena.h"
#include "engine/api/processes/identity.h"
#include "engine/api/processes/lobby.h"
#include "engine/base/status.h"
#include "engine/run/crossbar.h"
#include "engine/run/machine.h"
#include "engine/run/mailbox.h"
#include "numa/memory.h"
#include "numa/refusals.h"

namespace rankine {

// One rank's, by one thread at a time, but for holds().
class ProcessPayloads {
 public:
  // `room` bytes from `base` on, which are at that offset of the file: whole pages, of nobody else;
  // both begin with a huge page.
  // The file must outlive this.
  ProcessPayloads(std::byte* base, std::size_t room, const KeptFile& file, std::size_t offset)
      : base_(base), room_(room), file_(file), offset_(offset) {}
  ProcessPayloads(const ProcessPayloads&) = delete;
  ProcessPayloads& operator=(const ProcessPayloads&) = delete;

  // Zeroes in whole pages, at least one, of the calling thread's node where the machine can; from a
  // huge page's length on in huge ones, where the kernel can. The first place that is wide enough.
  // Errors (out_of_memory): no such place, and a machine that has
  // no pages.
  Result<std::byte*> allocate(std::size_t bytes);
  // What allocate() gave, once: its pages go back to the machine.
  void free(const void* base) noexcept;

  // Whether all of that lies here. Of no bytes it always does. May be asked at any time.
  bool holds(const void* from, std::size_t bytes) const noexcept {
    // (Further than all the room, where it begins before.)
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(from) - reinterpret_cast<std::uintptr_t>(base_);
    return bytes == 0 || (offset <= room_ && bytes <= room_ - offset);
  }
  std::size_t room() const noexcept { return room_; }
  // Of what allocate() gave, in whole pages.
  std::size_t bytes_of(const void* base) const { return in_use_.at(offset_of(base)).bytes; }
  // Whether that is in huge ones; not asked of what is shorter than one.
  const Enforcement& huge_pages_of(const void* base) const {
    return in_use_.at(offset_of(base)).huge_pages;
  }

 private:
  struct Piece {
    std::size_t bytes = 0;
    Enforcement huge_pages{};
  };
  std::size_t offset_of(const void* base) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(base) - base_);
  }

  std::byte* const base_;
  const std::size_t room_;
  const KeptFile& file_;
  const std::size_t offset_;
  std::map<std::size_t, Piece> in_use_{};  // by where they begin
};

// The memory of ranks that are processes, as one of them has it when all have met: the file, whose
// what in it is, and who is there.

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

// Ranks that are processes, as a communicator of theirs has them: where what they share lies, and
// what a crossbar asks of them (rank_processes.h). All that have met, or two of them, between which
// messages go.
//
// Each process has a communicator of its own, with its own plans, tables and members; lines,
// boards, mailboxes, records and scratch are those of all.

class ProcessRanks final : public RankProcesses {
 public:
  // Boards and mailboxes of all, and of each two for the messages between them.
  struct Posts {
    PostsShape all, pairs;
  };
  // Until all are there, and what the ranks here need from the start is their own. Throws
  // std::bad_alloc, as the next ones.
  static Result<std::shared_ptr<ProcessRanks>> meet(const ProcessLobby::Meeting& meeting,
                                                    const Posts& posts);
  // Some of these, which meet as the ranks of one more communicator, in this order. `which` tells
  // it from all others of these, and is known to its ranks alone. One thread of each process.
  static Result<std::shared_ptr<ProcessRanks>> group(const ProcessRanks& of,
                                                     const std::vector<Rank>& members,
                                                     const std::string& which, const Posts& posts,
                                                     std::int64_t deadline_ns,
                                                     const std::function<Status()>& may_wait);
  // Two of these, one of which this process plays: rank 0 sends, rank 1 receives. The first of them
  // that needs the pair sets up all of it, the other one finds it; where that one is at it just now
  // it is waited for, as long as that may be. Errors: memory that the machine has not, a first one
  // that has ended meanwhile, and what may_wait() says.
  static Result<std::shared_ptr<ProcessRanks>> pair(const ProcessRanks& of, Rank from, Rank to,
                                                    const std::function<Status()>& may_wait);
  // Not each rank of all that have met has a core, as this process sees it. Before begin().
  void share_cores() noexcept { memory_->share_cores(); }
  // Whether one of them has said so: the same for all, after begin().
  bool cores_are_shared() const noexcept { return lobby().cores_are_shared(); }
  // What this process shares is as it is to be: of all, until all have come so far.
  Status begin();
  // Instead of that, of all that have met: they are told, too. Returns why they do not begin.
  Status fail(const Status& reason) { return memory_->fail(reason); }

  // The ranks that this process plays, in order.
  const std::vector<Rank>& here() const noexcept { return here_; }
  const PostsShape& shape() const noexcept { return shape_; }
  LinesMemory lines() const noexcept { return {base_ + layout_.lines}; }
  std::byte* records() const noexcept { return base_ + layout_.of_rank(0) + layout_.records; }
  std::size_t record_stride() const noexcept { return layout_.rank_bytes; }
  // Zeroed, in all processes the same. What is a rank's is to be set up by who sets_up() it.
  Board board(Rank of) const noexcept;
  Mailbox mailbox(Rank from, Rank to) const noexcept;
  const char* name_of_line(std::size_t line) const noexcept { return memory_->name_of_line(line); }

  // Zeroed at first: a line for a clock as a whole, then its channels by pair. Takes the pages.
  Result<std::byte*> clock();
  // Of all that have met, before begin(): a number of the process that plays rank 0, which the
  // others wait for. `mine` is its own; the others' are not asked. Errors as meet().
  Result<std::uint64_t> first_says(std::uint64_t mine) { return memory_->first_says(mine); }

  // The scratch of a rank here, which has room for so many bytes then; by the thread that plays it.
  // That of a pair moves where it has to grow; it shares the rank's scratch for messages with the
  // rank's other pairs.
  Result<std::byte*> scratch(Rank r, std::size_t bytes);
  // Where the payloads of a rank here lie, of all that have met; of a pair there are none.
  bool have_payloads() const noexcept { return !is_pair(); }
  ProcessPayloads& payloads(Rank r) const noexcept { return memory_->payloads(r); }
  // Its posts and records.
  MemoryRange range(Rank r) const noexcept {
    return {base_ + layout_.of_rank(r), layout_.rank_bytes};
  }

  bool is_here(Rank r) const noexcept override {
    return std::binary_search(here_.begin(), here_.end(), r);
  }
  bool sets_up(Rank r) const noexcept override {
    return sets_up_all_ || (!is_pair() && is_here(r));
  }
  int process_of(Rank r) const noexcept override { return lobby().process_of(seat(r)); }
  bool has_ended(Rank r) const noexcept override { return lobby().has_ended(seat(r)); }
  const char* known_name(const char* said) const noexcept override {
    return memory_->known_name(said);
  }
  bool has_left(Rank r) const noexcept override;
  bool have_barriers() const noexcept override { return lobby().have_barriers(); }
  Atomic<bool>& aborted() const noexcept override { return ending_.ended(); }
  SlowWaits* slow_waits() const noexcept override {
    return reinterpret_cast<SlowWaits*>(base_ + layout_.slow_waits);
  }
  void say_why(Code code, const char* text) noexcept override { ending_.say(code, text); }
  Status why() const noexcept override { return ending_.why(); }

 private:
  struct Part {
    CallsLayout layout;
    PostsShape shape;
    std::byte* base;
    SharedEnding* ending;
  };
  // Of one rank here. Offset, room, and how much of it has pages.
  struct Scratch {
    std::size_t begin = 0, room = 0, taken = 0;
  };
  ProcessRanks(std::shared_ptr<ProcessMemory> memory, std::vector<Rank> seats,
               std::vector<Rank> here, const Part& part, bool sets_up_all);
  bool is_pair() const noexcept { return &ending_ != &lobby().page().ending; }
  const ProcessLobby& lobby() const noexcept { return memory_->lobby(); }
  // There, of a rank here.
  Rank seat(Rank r) const noexcept { return seats_[static_cast<std::size_t>(r)]; }

  const std::shared_ptr<ProcessMemory> memory_;
  const std::vector<Rank> seats_;
  const std::vector<Rank> here_;
  const CallsLayout layout_;
  const PostsShape shape_;
  std::byte* const base_;
  SharedEnding& ending_;
  const bool sets_up_all_;
  std::vector<Scratch> scratch_;  // by here_
};

}  // namespace rankine
