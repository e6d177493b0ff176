// ProcessRanks is the shared memory of a communicator among processes, as one process sees it;
// ProcessMemory owns the shared file, and ProcessPayloads allocates one rank's payloads in it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
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
#include "engine/base/status.h"
#include "engine/run/machine.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"
#include "numa/memory.h"
#include "numa/refusals.h"

namespace rankine {

// ProcessLobby is the place in which the processes of one communicator meet: the file
// /dev/shm/rankine.NAME. Only its user may read it. The name is removed when all ranks have come or
// one has failed.
//
// The maker prepares the file with its own seat and then links it under the name, so it appears
// complete. Each process holds a lock on the byte of its rank (an open file description's lock,
// which ends with exec and with the process, unless a forked child holds it too), and writes its
// process number and start time.
//
// If all processes of a file have ended, the next process that uses the name removes the file and
// takes the name. If no process uses the name again, the next maker of any file removes it,
// provided that it has no locks. If a process ends after it has taken its seat, its seat stays
// taken: the meeting ends (rank_lost), and a new meeting may begin.
//
// An error of one process during the meeting is reported to all, also to processes that come within
// half a second after the last report, unless an earlier process makes a new attempt and takes the
// name.

// LobbyPage is the beginning of the file, in zeroed memory.
struct LobbyPage {
  // Members up to `ending` keep their places in all layouts, so that a process with another version
  // can read them.
  char magic[8];
  std::uint32_t layout;
  SharedEnding ending;

  ProcessSettings settings;  // the maker's
  std::int32_t maker;        // the maker's rank
  std::uint64_t nonce;       // differs between communicators of one name
  // The number of ranks that have reached each step; `looked` and `offered` count repeatedly, and
  // only ranks that admit others count in `admitted`.
  Arrivals seated, looked, offered, ready, admitted;
  Arrivals said;  // 1 when the process of rank 0 has written `saying`
  std::atomic<std::uint64_t> saying;
  struct Seat {
    std::atomic<std::int32_t> process;  // 0: empty seat
    std::int64_t started;               // of a KnownProcess; comes with `process`
    std::atomic<bool> told;             // this rank knows why the meeting failed
    bool admits;                        // as Meeting::admits
    bool has_barriers;                  // membarrier of other processes reaches this process
    bool shares_cores;                  // this process sees fewer cores than ranks
    const std::uint64_t* canary;        // a word of this process with the value of `nonce`
    // errno if this process cannot reach the memory of that rank's process; 0: it reaches all
    std::int32_t refusal, refusing_rank;
    ReservedBases::Set bases;  // addresses at which this process can map the file
  };
  std::array<Seat, kMostProcesses> seats;
};
static_assert(std::atomic<std::int32_t>::is_always_lock_free);

// "rank 2", "ranks 2, 3"
std::string ranks_in_words(const std::vector<Rank>& ranks);

class ProcessLobby {
 public:
  struct Meeting {
    std::string name;
    std::vector<Rank> ranks{0};  // the ranks of this process, in order
    ProcessSettings settings;
    std::int64_t deadline_ns = 0;  // on the monotonic clock
    // Called repeatedly while ranks are missing, until be_ready() has returned; an error ends the
    // meeting. Empty: wait until the deadline.
    std::function<Status()> may_wait{};
    // The ranks of this process are members of a running communicator, which grows: the other
    // processes' be_ready() waits until each member has called admit().
    bool admits = false;
    // By rank: true for the ranks of other nodes, which one process of this node stands for and
    // which get no memory here; empty: none.
    std::vector<bool> far{};
  };
  explicit ProcessLobby(Meeting meeting);
  ~ProcessLobby();
  ProcessLobby(const ProcessLobby&) = delete;
  ProcessLobby& operator=(const ProcessLobby&) = delete;

  // Waits until all ranks have come; then every process has mapped the file at its base(). An error
  // ends the meeting for all processes in it.
  Status meet();
  // Returns `mine` of the process that plays rank 0; the other processes wait for it, and their
  // `mine` is not used. Call it once, before be_ready().
  Result<std::uint64_t> first_says(std::uint64_t mine);
  // Notes that this process sees fewer cores than ranks. Call it before be_ready().
  void share_cores() noexcept;
  // Waits until all processes are ready; then the name is free. See Meeting::admits.
  Status be_ready();
  // One member admits the others. Any thread may call it, after be_ready().
  void admit() noexcept;
  // Ends the meeting as failed, or notes that it has failed. Tells all processes in it, and waits
  // for late processes as long as they keep coming, unless none is expected. Returns the reason.
  Status fail(const Status& reason) noexcept;

  const KeptFile& file() const { return file_; }
  std::byte* base() const { return base_; }
  LobbyPage& page() const { return *page_; }
  int process_of(Rank r) const noexcept { return seated(r).id; }
  // The settings that all processes share, and the number that identifies this communicator; as of
  // the meeting.
  const ProcessSettings& settings() const noexcept { return meeting_.settings; }
  std::uint64_t nonce() const noexcept { return nonce_; }
  // True if has_barriers of all seats is true.
  bool have_barriers() const noexcept;
  // True if any process has called share_cores(); equal in all processes after be_ready().
  bool cores_are_shared() const noexcept;
  // True if that rank's process has ended or become another program.
  bool has_ended(Rank r) const noexcept;
  // As in RankProcesses.
  int read(Rank r, void* to, const void* from, std::size_t bytes) const noexcept;
  int write(Rank r, void* to, const void* from, std::size_t bytes) const noexcept;
  // After be_ready(), equal in all processes: RankMemory::private_access. A refusal is the first
  // one of any process.
  const Enforcement& private_access() const noexcept { return private_access_; }

 private:
  void try_access() noexcept;
  Enforcement access_of_all() const noexcept;
  Status enter();
  Status create(bool& exists);
  // `again`: this file is useless, but another one may appear soon.
  Status enter_found(bool& again);
  Status announce_arrival(const Status& reason);
  Status check_found() const;
  Status map_page() noexcept;
  bool have_been_told() const noexcept;
  void wait_for_notices() noexcept;
  Status sit_down();
  // The process in that seat: as the file says until all have come, and afterwards as it was then,
  // even if a program overwrites the file. id 0: empty seat.
  KnownProcess seated(Rank r) const noexcept;
  bool anybody_lives() const noexcept;
  // The error for a value in the file that no process of the engine writes.
  Status written_over(const std::string& what) const;
  Status check_settings() const;
  Status check_seat(Rank r) const;
  bool is_ours(Rank r) const noexcept;
  // Waits until that many ranks have come. An error, which says `what`, ends the meeting.
  Status wait_for(const Arrivals& arrivals, std::int32_t wanted, const char* what);
  Status may_wait(const char* what);
  // Counts the ranks of this process.
  void count_us(Arrivals& arrivals) noexcept;
  void offer_bases(std::uint64_t seed) noexcept;
  std::string missing(const char* what) const;
  bool watch(Rank r) noexcept;
  Status agree_on_base();
  void close_file() noexcept;
  std::string me() const;

  const Meeting meeting_;
  const std::string path_;
  KeptFile file_;
  LobbyPage* page_ = nullptr;
  bool is_waited_for_ = false;  // has taken its seat, and neither got ready nor failed
  std::byte* base_ = nullptr;
  ReservedBases bases_;
  std::array<KeptFile, kMostProcesses> watched_;  // pidfds, by rank
  std::vector<KnownProcess> met_;                 // by rank, when all have come
  std::vector<const std::uint64_t*> canaries_;    // by rank, when all have come
  std::uint64_t nonce_ = 0;                       // other processes read it, as this one's canary
  Enforcement private_access_;
};

// ProcessPayloads allocates the payloads of one rank in memory that all processes have mapped at
// one address, so that they read and write payloads in place. One thread at a time uses it, except
// holds().
class ProcessPayloads {
 public:
  // The payloads get `room` bytes from `base` on, at `offset` in the file: whole pages for this
  // rank only; both begin at a huge page. The file must outlive this object.
  ProcessPayloads(std::byte* base, std::size_t room, const KeptFile& file, std::size_t offset)
      : base_(base), room_(room), file_(file), offset_(offset) {}
  ProcessPayloads(const ProcessPayloads&) = delete;
  ProcessPayloads& operator=(const ProcessPayloads&) = delete;

  // Allocates at least one whole page of zeroes, on the calling thread's node if the machine can;
  // in huge pages if it is at least one huge page and the kernel can. Takes the first gap that is
  // wide enough. Errors (out_of_memory): no gap is wide enough; the machine has no pages.
  Result<std::byte*> allocate(std::size_t bytes);
  // Frees memory of allocate(), once: its pages go back to the machine.
  void free(const void* base) noexcept;

  // True if all these bytes lie in this memory; always true for 0 bytes. Any thread may call it at
  // any time.
  bool holds(const void* from, std::size_t bytes) const noexcept {
    // (An address before base_ gives an offset beyond room_.)
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(from) - reinterpret_cast<std::uintptr_t>(base_);
    return bytes == 0 || (offset <= room_ && bytes <= room_ - offset);
  }
  std::size_t room() const noexcept { return room_; }
  // The size of an allocation, in whole pages.
  std::size_t bytes_of(const void* base) const { return in_use_.at(offset_of(base)).bytes; }
  // The result of the request for huge pages; not_asked for an allocation below one huge page.
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
  std::map<std::size_t, Piece> in_use_{};  // by offset
};

// ProcessMemory is the shared file of a communicator as one process has it after the meeting, with
// its layout and its processes.

class ProcessMemory {
 public:
  // Waits until all processes have come, and takes the pages that the ranks of this process need
  // from the start. Throws std::bad_alloc.
  static Result<std::shared_ptr<ProcessMemory>> meet(const ProcessLobby::Meeting& meeting,
                                                     const PostsShape& calls,
                                                     const PostsShape& messages);
  // See ProcessLobby.
  void share_cores() noexcept { lobby_.share_cores(); }
  Result<std::uint64_t> first_says(std::uint64_t mine) { return lobby_.first_says(mine); }
  // The shared data of this process is set up: waits until all processes are ready.
  Status begin() { return lobby_.be_ready(); }
  void admit() noexcept { lobby_.admit(); }
  // Instead of begin(): tells all processes of the failure. Returns the reason.
  Status fail(const Status& reason) noexcept { return lobby_.fail(reason); }

  // The ranks of this process, in order.
  const std::vector<Rank>& here() const noexcept { return here_; }
  const ProcessLayout& layout() const noexcept { return layout_; }
  const ProcessLobby& lobby() const noexcept { return lobby_; }
  const PostsShape& calls() const noexcept { return calls_; }
  const PostsShape& messages() const noexcept { return messages_; }
  std::byte* at(std::size_t offset) const noexcept { return lobby_.base() + offset; }
  RankLines& lines(Rank r) const noexcept;
  // The name of an algorithm, by its line in the catalogue, at an address valid in all processes.
  const char* name_of_line(std::size_t line) const noexcept;
  // The catalogue's name for such an address, or nullptr for any other address.
  const char* known_name(const char* said) const noexcept;
  Atomic<PairMade>& made(Rank from, Rank to) const noexcept;

  // Takes these pages of the file.
  Status take(std::size_t offset, std::size_t bytes, const std::string& what) const {
    return take_pages(lobby_.file(), at(offset), offset, bytes, what);
  }
  // The payloads of a rank of this process.
  ProcessPayloads& payloads(Rank r) noexcept { return own(r).payloads; }
  // Reserves room in the message scratch of a rank of this process; returns its offset. Only the
  // rank's thread calls it.
  Result<std::size_t> room_for_messages(Rank r, std::size_t bytes);

 private:
  ProcessMemory(const ProcessLobby::Meeting& meeting, const PostsShape& calls,
                const PostsShape& messages);
  Status take_own(Rank r);
  void write_names() noexcept;
  // The private parts of one rank of this process.
  struct Own {
    Own(std::byte* base, std::size_t room, const KeptFile& file, std::size_t offset)
        : payloads(base, room, file, offset) {}
    ProcessPayloads payloads;
    std::size_t room_given = 0;  // reserved from its message scratch
  };
  Own& own(Rank r) noexcept;

  const std::vector<Rank> here_;
  const std::vector<bool> far_;  // as Meeting::far
  const PostsShape calls_, messages_;
  const ProcessLayout layout_;
  ProcessLobby lobby_;
  std::deque<Own> own_;  // by here_
};

// The error for a rank that needs more scratch than the limit.
Status no_room_in_scratch(Rank rank, const char* of_what, std::size_t bytes, std::size_t allowed,
                          int ranks);

// ProcessRanks is the shared memory that a communicator of processes uses: the places of its data,
// and the answers that a rank_control needs (RankProcesses in engine/run/rank_control.h). It covers
// all processes of a meeting, or two ranks that exchange messages.
//
// Each process has its own communicator, plans, tables and members. The processes share lines,
// boards, mailboxes, records and scratch.

class ProcessRanks final : public RankProcesses {
 public:
  // The sizes of boards and mailboxes for calls of all ranks, and for the messages of a pair.
  struct Posts {
    PostsShape all, pairs;
  };
  // Waits until all processes have come, and takes the pages that the ranks of this process need
  // from the start. Throws std::bad_alloc, as do group() and pair().
  static Result<std::shared_ptr<ProcessRanks>> meet(const ProcessLobby::Meeting& meeting,
                                                    const Posts& posts);
  // Makes the communicator of a group: some of these ranks meet again, in this order. `which`
  // identifies the group among all groups of these ranks; all its ranks pass the same. One thread
  // of each process calls it.
  static Result<std::shared_ptr<ProcessRanks>> group(const ProcessRanks& of,
                                                     const std::vector<Rank>& members,
                                                     const std::string& which, const Posts& posts,
                                                     std::int64_t deadline_ns,
                                                     const std::function<Status()>& may_wait);
  // Makes the pair of two ranks, at least one of which this process plays: rank 0 sends, rank 1
  // receives. The first process that needs the pair sets it up, the other one finds it. While the
  // first one is setting it up, the other waits as long as may_wait() allows. Errors: no memory;
  // the first process has ended meanwhile; the errors of may_wait().
  static Result<std::shared_ptr<ProcessRanks>> pair(const ProcessRanks& of, Rank from, Rank to,
                                                    const std::function<Status()>& may_wait);
  // Notes that this process sees fewer cores than ranks. Call it before begin().
  void share_cores() noexcept { memory_->share_cores(); }
  // True if any process has called share_cores(); equal in all processes after begin().
  bool cores_are_shared() const noexcept { return lobby().cores_are_shared(); }
  // The shared data of this process is set up. After a meeting: waits until all processes are
  // ready.
  Status begin();
  // As ProcessLobby::admit(), after begin().
  void admit() noexcept { memory_->admit(); }
  // After a meeting, instead of begin(): tells all processes of the failure. Returns the reason.
  Status fail(const Status& reason) { return memory_->fail(reason); }

  // The ranks of this process, in order.
  const std::vector<Rank>& here() const noexcept { return here_; }
  const PostsShape& shape() const noexcept { return shape_; }
  LinesMemory lines() const noexcept { return {base_ + layout_.lines}; }
  std::byte* records() const noexcept { return base_ + layout_.of_rank(0) + layout_.records; }
  std::size_t record_stride() const noexcept { return layout_.rank_bytes; }
  // Zeroed memory, at one address in all processes. If sets_up(r), this process sets up the parts
  // of rank r.
  Board board(Rank of) const noexcept;
  Mailbox mailbox(Rank from, Rank to) const noexcept;
  const char* name_of_line(std::size_t line) const noexcept { return memory_->name_of_line(line); }

  // One line for the whole clock, then its channels by pair; zeroed at first. Takes the pages.
  Result<std::byte*> clock();
  // After a meeting, before begin(): returns `mine` of the process that plays rank 0; the other
  // processes wait for it, and their `mine` is not used. Errors as for meet().
  Result<std::uint64_t> first_says(std::uint64_t mine) { return memory_->first_says(mine); }

  // Returns the scratch of a rank of this process, enlarged to `bytes`. The rank's thread calls it.
  // The scratch of a pair moves when it grows; all pairs of a rank share its message scratch.
  Result<std::byte*> scratch(Rank r, std::size_t bytes);
  // After a meeting: the payloads of a rank of this process. A pair has no payloads.
  bool have_payloads() const noexcept { return !is_pair(); }
  ProcessPayloads& payloads(Rank r) const noexcept { return memory_->payloads(r); }
  // The posts and records of a rank.
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
  int read(Rank r, void* to, const void* from, std::size_t bytes) const noexcept override {
    return lobby().read(seat(r), to, from, bytes);
  }
  int write(Rank r, void* to, const void* from, std::size_t bytes) const noexcept override {
    return lobby().write(seat(r), to, from, bytes);
  }
  const Enforcement& private_access() const noexcept { return lobby().private_access(); }
  bool have_barriers() const noexcept override { return lobby().have_barriers(); }
  Atomic<bool>& aborted() const noexcept override { return ending_.ended(); }
  SlowWaits* slow_waits() const noexcept override {
    return reinterpret_cast<SlowWaits*>(base_ + layout_.slow_waits);
  }
  void publish_reason(Code code, const char* text) noexcept override { ending_.say(code, text); }
  Status why() const noexcept override { return ending_.why(); }

 private:
  struct Part {
    CallsLayout layout;
    PostsShape shape;
    std::byte* base;
    SharedEnding* ending;
  };
  // The scratch of one rank of this process: offset, room, and bytes with pages.
  struct Scratch {
    std::size_t begin = 0, room = 0, taken = 0;
  };
  ProcessRanks(std::shared_ptr<ProcessMemory> memory, std::vector<Rank> seats,
               std::vector<Rank> here, const Part& part, bool sets_up_all);
  bool is_pair() const noexcept { return &ending_ != &lobby().page().ending; }
  const ProcessLobby& lobby() const noexcept { return memory_->lobby(); }
  // The rank in the meeting.
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
