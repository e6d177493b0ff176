// Why it is over, for processes that share memory: the first that fails says it to all.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/api/processes/identity.h"
#include "engine/base/status.h"
#include "engine/run/crossbar.h"
#include "engine/run/machine.h"

namespace rankine {

// Zeroed memory is one that nobody has ended. Lock-free: who is killed while it speaks holds nobody
// up for long.
class SharedEnding {
 public:
  Atomic<bool>& ended() noexcept { return ended_; }
  bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }

  // Ends it for that reason, where it has not ended before.
  void end(const Status& reason) noexcept;
  // By whoever has set ended() itself, once. Async-signal-safe; long texts are cut.
  void say(Code code, const char* text) noexcept;
  // Why, of what has ended: waits a little for the process that is about to say so. Code::system
  // where that has been written over.
  Status why() const noexcept;

 private:
  Atomic<bool> ended_{false};
  Atomic<bool> said_{false};
  // Whether code and text are what say() has left there: a program may write over shared memory.
  std::uint64_t check_of_what_is_said() const noexcept;

  std::uint32_t code_ = 0;
  std::uint64_t check_ = 0;
  char text_[1000] = {};
};

// The memory that ranks share which are processes: one file, mapped by all of them at the same
// address, so that what lies in it may point into it.
//
//   lobby | names | pairs made | lines | slow waits | each rank's posts and records | a clock
//         | the same of each pair, for messages | each rank's scratch and payloads
//
// All of it has its place from the start, so nobody allocates, and nothing moves; pages are taken
// from the machine (fallocate, so that a full machine is an error and no SIGBUS) when a rank needs
// them. A rank takes those of its own parts, and so they lie on its node.

// Address space of a communicator; most of it is never taken.
inline constexpr std::size_t kProcessSpan = std::size_t{32} << 30;
inline constexpr int kMostProcesses = kSeats;

// How far the making of a pair has come, since each of the two may be the first to need it: nobody,
// somebody, done.
enum class PairMade : std::uint32_t { no, going_on, yes };

// What ranks post in (mailbox.h, board.h).
struct PostsShape {
  std::uint32_t board_stride = 0;
  std::uint32_t slots = 0, slot_stride = 0;  // of a mailbox
  std::uint32_t clock_channel = 0;           // bytes of a clock's words from one rank to another
};

// What some ranks share for their calls, at offsets from where it begins, in whole pages.
struct CallsLayout {
  std::size_t lines = 0, slow_waits = 0;  // behind a head
  std::size_t common_bytes = 0;           // of all of those
  std::size_t rank_bytes = 0;             // each rank's posts and records, from common_bytes on
  // In these.
  std::size_t board = 0, slots = 0, credits = 0, records = 0;
  std::size_t mailbox_bytes = 0;  // slots of one
  // Behind all that: a line for a clock as a whole, and its channels by pair. Without pages until
  // there is a clock.
  std::size_t clock = 0, clock_bytes = 0;
  std::size_t bytes = 0;  // in all

  static CallsLayout of(int ranks, std::size_t head_bytes, const PostsShape& shape);
  std::size_t of_rank(Rank r) const {
    return common_bytes + static_cast<std::size_t>(r) * rank_bytes;
  }
};

// Offsets in the file.
struct ProcessLayout {
  std::size_t names = 0, pairs_made = 0;  // behind the lobby
  CallsLayout calls;                      // of all ranks, from 0; their head is all before
  CallsLayout pair;                       // of two, whose head is why they have ended
  std::size_t pairs = 0, own = 0, own_bytes = 0;
  int ranks = 0;

  static ProcessLayout of(int ranks, std::size_t lobby_bytes, const PostsShape& calls,
                          const PostsShape& messages);
  std::size_t number_of_pair(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
           static_cast<std::size_t>(to);
  }
  std::size_t of_pair(Rank from, Rank to) const {
    return pairs + number_of_pair(from, to) * pair.bytes;
  }
  // What is a rank's own, in quarters that begin with a huge page: scratch for calls of all ranks,
  // scratch for messages, and twice as much for payloads.
  std::size_t scratch_bytes() const { return own_bytes / 4; }
  std::size_t payload_bytes() const { return own_bytes / 2; }
  std::size_t scratch_of(Rank r) const { return own + static_cast<std::size_t>(r) * own_bytes; }
  std::size_t message_scratch_of(Rank r) const { return scratch_of(r) + scratch_bytes(); }
  std::size_t payloads_of(Rank r) const { return scratch_of(r) + 2 * scratch_bytes(); }
};

// Where the file may be mapped: addresses that nothing else of a process takes, with or without
// sanitizers. A rank reserves as many as it needs to agree with others on one.
class ReservedBases {
 public:
  // Of a process's address space, by number: as many communicators as it can have at once.
  static constexpr int kBases = 256;
  using Set = std::bitset<kBases>;

  ReservedBases() = default;
  ~ReservedBases() { let_go(); }
  ReservedBases(const ReservedBases&) = delete;
  ReservedBases& operator=(const ReservedBases&) = delete;

  // Some of those that are free, in an order that follows from `seed`.
  Set reserve(std::uint64_t seed) noexcept;
  void let_go() noexcept;
  // Maps the file at the first of these in that order, and lets go of the others. nullptr: errno
  // says why, or, of none at all, it is 0.
  std::byte* map(const Set& common, std::uint64_t seed, int file) noexcept;

 private:
  Set reserved_;
};

// Takes the file's pages there, which are mapped at `at`: through the mapping where the program has
// closed the descriptor (Linux 5.14). `what` for the error's text: "scratch of rank 3". Errors:
// out_of_memory; system, of a descriptor that has been closed, and of what the kernel refuses.
Status take_pages(const KeptFile& file, std::byte* at, std::size_t offset, std::size_t bytes,
                  const std::string& what);
// Gives whole pages back, which read as zeroes afterwards.
void give_pages_back(const KeptFile& file, std::byte* at, std::size_t offset,
                     std::size_t bytes) noexcept;

}  // namespace rankine
