// ProcessLayout divides the file that the processes of a communicator share, ReservedBases finds an
// address for it, take_pages() takes its memory, and SharedEnding tells all processes why the
// communicator has ended.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/api/processes/identity.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"
#include "engine/run/rank_control.h"

namespace rankine {

// SharedEnding holds the reason of a communicator's end in shared memory; the first process that
// fails writes it. Zeroed memory means not ended. Lock-free: if a process is killed while it
// writes, the others wait only briefly.
class SharedEnding {
 public:
  Atomic<bool>& ended() noexcept { return ended_; }
  bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }

  // Ends it with that reason, unless it has ended before.
  void end(const Status& reason) noexcept;
  // Writes the reason, once, after the caller has set ended(). Async-signal-safe; long texts are
  // truncated.
  void say(Code code, const char* text) noexcept;
  // The reason, after the end: waits a little for the process that is writing it. Code::system if a
  // program has overwritten it.
  Status why() const noexcept;

 private:
  Atomic<bool> ended_{false};
  Atomic<bool> said_{false};
  // The check value of code and text, because a program may overwrite shared memory.
  std::uint64_t reason_checksum() const noexcept;

  std::uint32_t code_ = 0;
  std::uint64_t check_ = 0;
  char text_[1000] = {};
};

// The processes of a communicator share one file, mapped by all of them at one address, so that its
// data may contain pointers into it.
//
//   lobby | names | pairs made | lines | slow waits | each rank's posts and records | a clock
//         | for each pair of ranks such a part for messages | each rank's scratch and payloads
//
// All parts have fixed places from the start, so no process allocates and no part moves. A rank
// takes the pages of its parts from the machine when it needs them, so they lie on its node. (It
// uses fallocate, so that a full machine is an error and not a SIGBUS.)

// The address space of a communicator; most of it never gets pages.
inline constexpr std::size_t kProcessSpan = std::size_t{32} << 30;
inline constexpr int kMostProcesses = kSeats;

// The state of a pair, which either of its two ranks may need first: not made, in progress, done.
enum class PairMade : std::uint32_t { no, going_on, yes };

// The sizes of the mailboxes and boards in which ranks post (engine/run/mailbox.h).
struct PostsShape {
  std::uint32_t board_stride = 0;
  std::uint32_t slots = 0, slot_stride = 0;  // of a mailbox
  std::uint32_t clock_channel = 0;           // bytes of a clock's words from one rank to another
};

// CallsLayout has the parts that some ranks share for their calls: offsets from the beginning of
// the layout, in whole pages.
struct CallsLayout {
  std::size_t lines = 0, slow_waits = 0;  // after a head
  std::size_t common_bytes = 0;           // size of the head, lines and slow waits
  std::size_t rank_bytes = 0;  // posts and records of one rank; the first is at common_bytes
  // Offsets in the part of one rank.
  std::size_t board = 0, slots = 0, credits = 0, records = 0;
  std::size_t mailbox_bytes = 0;  // the slots of one mailbox
  // After all parts: one line for the whole clock, and its channels by pair. It has no pages until
  // a clock exists.
  std::size_t clock = 0, clock_bytes = 0;
  std::size_t bytes = 0;  // total

  static CallsLayout of(int ranks, std::size_t head_bytes, const PostsShape& shape);
  std::size_t of_rank(Rank r) const {
    return common_bytes + static_cast<std::size_t>(r) * rank_bytes;
  }
};

// ProcessLayout has the offsets in the file.
struct ProcessLayout {
  std::size_t names = 0, pairs_made = 0;  // after the lobby
  CallsLayout calls;                      // for all ranks, from 0; its head is everything before
  CallsLayout pair;                       // for two ranks; its head is a SharedEnding
  std::size_t pairs = 0, own = 0, own_bytes = 0;
  int ranks = 0;
  // By rank: its place among the ranks of this node; empty: there is one node. Ranks of several
  // nodes send no messages as pairs and have no payloads.
  std::vector<int> places{};

  // `far`: by rank, true for the ranks of other nodes; empty: none.
  static ProcessLayout of(int ranks, std::size_t lobby_bytes, const PostsShape& calls,
                          const PostsShape& messages, const std::vector<bool>& far = {});
  std::size_t number_of_pair(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
           static_cast<std::size_t>(to);
  }
  std::size_t of_pair(Rank from, Rank to) const {
    return pairs + number_of_pair(from, to) * pair.bytes;
  }
  // A rank's own part, in quarters that begin at a huge page: scratch for calls of all ranks,
  // scratch for messages, and two quarters of payloads. With several nodes it is all scratch.
  std::size_t scratch_bytes() const { return places.empty() ? own_bytes / 4 : own_bytes; }
  std::size_t payload_bytes() const { return places.empty() ? own_bytes / 2 : 0; }
  std::size_t scratch_of(Rank r) const {
    const auto i = static_cast<std::size_t>(r);
    return own + (places.empty() ? i : static_cast<std::size_t>(places[i])) * own_bytes;
  }
  std::size_t message_scratch_of(Rank r) const { return scratch_of(r) + scratch_bytes(); }
  std::size_t payloads_of(Rank r) const { return scratch_of(r) + 2 * scratch_bytes(); }
};

// ReservedBases reserves addresses for the mapping of the file: addresses that no other part of a
// process uses, with or without sanitizers. A rank reserves enough of them to agree with the other
// ranks on one.
class ReservedBases {
 public:
  // The number of such addresses in a process, and so the most communicators at once.
  static constexpr int kBases = 256;
  using Set = std::bitset<kBases>;

  ReservedBases() = default;
  ~ReservedBases() { let_go(); }
  ReservedBases(const ReservedBases&) = delete;
  ReservedBases& operator=(const ReservedBases&) = delete;

  // Reserves some free addresses, in an order that follows from `seed`.
  Set reserve(std::uint64_t seed) noexcept;
  void let_go() noexcept;
  // Maps the file at the first address of `common` in that order, and releases the others. nullptr:
  // errno has the reason; 0 if no address is common.
  std::byte* map(const Set& common, std::uint64_t seed, int file) noexcept;

 private:
  Set reserved_;
};

// Takes pages of the file, which are mapped at `at`. If the program has closed the descriptor, it
// uses the mapping instead (Linux 5.14). `what` is for the error text: "scratch of rank 3". Errors:
// out_of_memory; system if the descriptor is closed or the kernel refuses.
Status take_pages(const KeptFile& file, std::byte* at, std::size_t offset, std::size_t bytes,
                  const std::string& what);
// Gives whole pages back; later reads see zeroes.
void give_pages_back(const KeptFile& file, std::byte* at, std::size_t offset,
                     std::size_t bytes) noexcept;

}  // namespace rankine
