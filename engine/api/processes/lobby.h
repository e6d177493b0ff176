// Where processes meet that will be the ranks of one communicator: a file /dev/shm/rankine.NAME,
// readable by its user only, which is gone from there when all have come or one has failed.
//
// It appears whole, by a link, with its maker in it. Each process in it holds a lock on the byte of
// its rank (an open file description's, which ends with exec and with the process, unless a forked
// child holds it as well), and writes down its number and the time at which it started. A file
// whose processes have all ended is removed, and its name taken over; where nobody asks for its
// name any more, whoever makes a file next removes it, if it has no locks. A rank whose process has
// ended leaves a seat that nobody may take: the meeting ends (rank_lost), and the next one may
// begin. What
// goes wrong for one while they meet is told to all: also to those that come no more than half a
// second after the last one that was told, unless one of these makes another attempt, which takes
// the name.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/api/processes/arena.h"
#include "engine/api/processes/identity.h"
#include "engine/base/status.h"

namespace rankine {

// What stands at the beginning of the file, in memory of zeroes.
struct LobbyPage {
  // These stay as they are in all layouts, so that even a stranger can be told.
  char magic[8];
  std::uint32_t layout;
  SharedEnding ending;

  ProcessSettings settings;  // of its maker
  std::int32_t maker;        // rank
  std::uint64_t nonce;       // tells one communicator of that name from the next
  // Ranks that have come so far: in all, or time and again.
  std::atomic<std::int32_t> seated, looked, offered, ready;
  std::atomic<std::int32_t> said;    // by the process of rank 0, what follows
  std::atomic<std::uint64_t> saying;
  struct Seat {
    std::atomic<std::int32_t> process;  // 0: nobody
    std::int64_t started;               // of a KnownProcess; comes with `process`
    std::atomic<bool> told;             // why the meeting has failed
    bool has_barriers;                  // others' membarrier reaches this process
    bool shares_cores;                  // not each rank has one, as this process sees it
    ReservedBases::Set bases;           // where this process can map the file
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
    std::vector<Rank> ranks{0};  // that this process plays, in order
    ProcessSettings settings;
    std::int64_t deadline_ns = 0;  // of the monotonic clock
    // Asked while not all are there, until be_ready() is over: an error ends the meeting. None:
    // they may come until the deadline.
    std::function<Status()> may_wait{};
  };
  explicit ProcessLobby(Meeting meeting);
  ~ProcessLobby();
  ProcessLobby(const ProcessLobby&) = delete;
  ProcessLobby& operator=(const ProcessLobby&) = delete;

  // Until all are in it; then the file lies at base() in each of them. Errors end the meeting for
  // all who are there.
  Status meet();
  // A number of the process that plays rank 0, which the others wait for; of these `mine` is not
  // asked. Once, before be_ready().
  Result<std::uint64_t> first_says(std::uint64_t mine);
  // Not each rank has a core, as this process sees it. Before be_ready().
  void share_cores() noexcept;
  // Until all have said so; from then on the name is free.
  Status be_ready();
  // The meeting has failed here, or does so now: tells all, and lets those that have not come know
  // as long as they keep coming, but where nobody else is expected. Returns why it has.
  Status fail(const Status& reason) noexcept;

  const KeptFile& file() const { return file_; }
  std::byte* base() const { return base_; }
  LobbyPage& page() const { return *page_; }
  int process_of(Rank r) const noexcept { return seated(r).id; }
  // What all have in common, and what tells them from others; as they met.
  const ProcessSettings& settings() const noexcept { return meeting_.settings; }
  std::uint64_t nonce() const noexcept { return nonce_; }
  // Whether that is so of all.
  bool have_barriers() const noexcept;
  // Whether anybody has said share_cores(): the same for all when be_ready() is over.
  bool cores_are_shared() const noexcept;
  // Whether that rank's process has ended or become another program.
  bool has_ended(Rank r) const noexcept;

 private:
  Status enter();
  Status create(bool& exists);
  // Nothing to be done with this file; another one may be there soon.
  Status enter_found(bool& again);
  Status tell_who_comes(const Status& reason);
  Status check_found() const;
  Status map_page() noexcept;
  bool have_been_told() const noexcept;
  void wait_until_all_are_told() noexcept;
  Status sit_down();
  // Who has that seat: as the file says until all have come, and from then on as it said then,
  // whatever is written over it. 0: nobody.
  KnownProcess seated(Rank r) const noexcept;
  bool anybody_lives() const noexcept;
  // The file says what no process of ours writes.
  Status written_over(const std::string& what) const;
  Status check_settings() const;
  Status check_seat(Rank r) const;
  bool is_ours(Rank r) const noexcept;
  // Until that many ranks have come there.
  Status wait_for(const std::atomic<std::int32_t>& count, std::int32_t wanted, const char* what);
  // The ranks here have come there.
  void count_us(std::atomic<std::int32_t>& count) noexcept;
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
  bool is_waited_for_ = false;  // has sat down, and neither got ready nor failed
  std::byte* base_ = nullptr;
  ReservedBases bases_;
  std::array<KeptFile, kMostProcesses> watched_;  // pidfds, by rank
  std::vector<KnownProcess> met_;                 // by rank, once all have come
  std::uint64_t nonce_ = 0;
};

}  // namespace rankine
