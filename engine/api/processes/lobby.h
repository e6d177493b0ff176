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
  // The number of ranks that have reached each step; `looked` and `offered` count repeatedly.
  std::atomic<std::int32_t> seated, looked, offered, ready;
  std::atomic<std::int32_t> said;  // 1 when the process of rank 0 has written `saying`
  std::atomic<std::uint64_t> saying;
  struct Seat {
    std::atomic<std::int32_t> process;  // 0: empty seat
    std::int64_t started;               // of a KnownProcess; comes with `process`
    std::atomic<bool> told;             // this rank knows why the meeting failed
    bool has_barriers;                  // membarrier of other processes reaches this process
    bool shares_cores;                  // this process sees fewer cores than ranks
    ReservedBases::Set bases;           // addresses at which this process can map the file
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
  // Waits until all processes are ready; then the name is free.
  Status be_ready();
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

 private:
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
  // Waits until `count` has reached `wanted`.
  Status wait_for(const std::atomic<std::int32_t>& count, std::int32_t wanted, const char* what);
  // Counts the ranks of this process.
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
  bool is_waited_for_ = false;  // has taken its seat, and neither got ready nor failed
  std::byte* base_ = nullptr;
  ReservedBases bases_;
  std::array<KeptFile, kMostProcesses> watched_;  // pidfds, by rank
  std::vector<KnownProcess> met_;                 // by rank, when all have come
  std::uint64_t nonce_ = 0;
};

}  // namespace rankine
