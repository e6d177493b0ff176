#include "engine/api/processes/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "engine/api/processes/identity.h"
#include "engine/base/numbers.h"
#include "engine/run/wait.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

constexpr std::uint32_t kLobbyLayout = 11;
// The waiting time for late processes after a failed meeting, counted from the last report; also
// the time that a process which cannot make a file looks for another one's file.
constexpr std::int64_t kPatienceNs = 500'000'000;

// Makes an error from errno.
Status system_error(const std::string& what) {
  const int error = errno;
  const Code code = error == ENOSPC || error == ENOMEM ? Code::out_of_memory : Code::system;
  return make_error(code, [&] { return what + ": " + std::strerror(error); });
}

std::string in_words(std::int32_t process) { return "process " + std::to_string(process); }

Status lost(Rank r, std::int32_t pid, const std::string& name) {
  return make_error(Code::rank_lost, [&] {
    return "rank " + std::to_string(r) + " (" + in_words(pid) +
           ") has ended before all ranks of '" + name +
           "' had joined; let all ranks join again, under the same name";
  });
}

}  // namespace

std::string ranks_in_words(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (const Rank r : ranks) text += (r == ranks.front() ? "" : ", ") + std::to_string(r);
  return text;
}

ProcessLobby::ProcessLobby(Meeting meeting)
    : meeting_(std::move(meeting)), path_(shared_path(meeting_.name)) {}

ProcessLobby::~ProcessLobby() {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // a destructor may not be unwound
  // Reached only if the caller ran out of memory after meet().
  if (is_waited_for_) {
    static_cast<void>(
        fail(make_error(Code::out_of_memory, [&] { return me() + " has no memory to join"; })));
  }
  if (base_ != nullptr) munmap(base_, kProcessSpan);
  close_file();
}

void ProcessLobby::close_file() noexcept {
  if (page_ != nullptr && base_ == nullptr) munmap(page_, sizeof(LobbyPage));
  page_ = nullptr;
  is_waited_for_ = false;
  file_.close();
  for (KeptFile& one : watched_) one.close();
}

std::string ProcessLobby::me() const {
  return ranks_in_words(meeting_.ranks) + " (" + in_words(getpid()) + ")";
}

bool ProcessLobby::is_ours(Rank r) const noexcept {
  return std::binary_search(meeting_.ranks.begin(), meeting_.ranks.end(), r);
}

KnownProcess ProcessLobby::seated(Rank r) const noexcept {
  if (!met_.empty()) return met_[static_cast<std::size_t>(r)];
  const LobbyPage::Seat& seat = page_->seats[static_cast<std::size_t>(r)];
  // pairs with sit_down()
  const std::int32_t process = seat.process.load(std::memory_order_acquire);
  return {process, process == 0 ? 0 : seat.started};
}

Status ProcessLobby::written_over(const std::string& what) const {
  return make_error(Code::system, [&] {
    return path_ + " says that " + what +
           ": a program has written over the memory that the ranks "
           "of '" +
           meeting_.name + "' share; end its processes, and let all ranks join again";
  });
}

Status ProcessLobby::check_settings() const {
  const ProcessSettings& said = page_->settings;
  if (said.ranks < 1 || said.ranks > kMostProcesses) {
    return written_over("ranks is " + std::to_string(said.ranks));
  }
  if (page_->maker < 0 || page_->maker >= said.ranks) {
    return written_over("its creator is rank " + std::to_string(page_->maker));
  }
  const auto ends = [](const auto& text) { return std::memchr(text, 0, sizeof(text)) != nullptr; };
  const bool all_end = ends(said.host) && ends(said.boot) && ends(said.version) && ends(said.isa);
  return all_end ? Status() : written_over("its creator's texts do not end");
}

Status ProcessLobby::check_seat(Rank r) const {
  const KnownProcess there = seated(r);
  if (there.id == 0 || there.is_possible()) return {};
  return written_over("rank " + std::to_string(r) + " is " + in_words(there.id));
}

bool ProcessLobby::have_barriers() const noexcept {
  return std::all_of(page_->seats.begin(), page_->seats.begin() + meeting_.settings.ranks,
                     [](const LobbyPage::Seat& seat) { return seat.has_barriers; });
}

bool ProcessLobby::cores_are_shared() const noexcept {
  return std::any_of(page_->seats.begin(), page_->seats.begin() + meeting_.settings.ranks,
                     [](const LobbyPage::Seat& seat) { return seat.shares_cores; });
}

bool ProcessLobby::has_ended(Rank r) const noexcept {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // ranks call this while they wait in a call
  // The fast path: polling a pidfd costs less than reading /proc.
  const int watched = watched_[static_cast<std::size_t>(r)].number();
  pollfd ended{watched, POLLIN, 0};
  if ((watched < 0 || poll(&ended, 1, 0) == 1) && seated(r).has_ended()) return true;
  const int file = file_.number();
  return file >= 0 && !is_locked(file, r, 1);
}

bool ProcessLobby::anybody_lives() const noexcept {
  if (!anybody_in(file_.number())) return false;
  // Process numbers mean nothing in another pid namespace.
  if (page_->layout != kLobbyLayout ||
      page_->settings.pid_namespace != meeting_.settings.pid_namespace) {
    return true;
  }
  for (Rank r = 0; r < kMostProcesses; ++r) {
    if (!is_locked(file_.number(), r, 1)) continue;
    const KnownProcess there = seated(r);
    if (there.id == 0 || !there.is_possible() || !there.has_ended()) return true;
  }
  return false;
}

bool ProcessLobby::have_been_told() const noexcept {
  return std::all_of(meeting_.ranks.begin(), meeting_.ranks.end(), [&](Rank r) {
    // Acquire: pairs with fail().
    return page_->seats[static_cast<std::size_t>(r)].told.load(std::memory_order_acquire);
  });
}

// Waits until all ranks know of the failure, including ranks that come soon; skips ranks that have
// ended.
void ProcessLobby::wait_for_notices() noexcept {
  std::int64_t until = now_ns() + kPatienceNs;
  const auto need_not_be_told = [&](Rank r) {
    return page_->seats[static_cast<std::size_t>(r)].told.load(std::memory_order_acquire) ||
           (process_of(r) != 0 && !is_ours(r) && !watch(r));
  };
  const Rank ranks = std::min(page_->settings.ranks, static_cast<std::int32_t>(kMostProcesses));
  for (Rank before = 0; now_ns() < until && is_named(file_.number(), path_);) {
    Rank done = 0;
    for (Rank r = 0; r < ranks; ++r) done += need_not_be_told(r) ? 1 : 0;
    if (done == ranks) return;
    if (done > before) {
      until = std::max(until, std::min(now_ns() + kPatienceNs, meeting_.deadline_ns));
    }
    before = done;
    sleep_ns(500'000);
  }
}

Status ProcessLobby::fail(const Status& reason) noexcept {
  is_waited_for_ = false;
  if (page_ == nullptr) return reason;
  page_->ending.end(reason);
  Status why = page_->ending.why();
  if (page_->layout == kLobbyLayout) {
    for (const Rank r : meeting_.ranks) {
      // Release: pairs with have_been_told() and wait_for_notices().
      page_->seats[static_cast<std::size_t>(r)].told.store(true, std::memory_order_release);
    }
    // Do not wait for late ranks after a timeout (they will not come soon), after an interrupt (the
    // user does not want to wait), or in a group (its ranks ask the others through may_wait).
    const bool may_come = why.code() != Code::timeout && why.code() != Code::aborted;
    if (may_come && (!meeting_.may_wait || meeting_.admits)) wait_for_notices();
  }
  remove_name(file_.number(), path_);
  return why;
}

// --- The name ---

Status ProcessLobby::map_page() noexcept {
  void* const at =
      mmap(nullptr, sizeof(LobbyPage), PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (at == MAP_FAILED) return system_error("mapping " + path_);
  page_ = static_cast<LobbyPage*>(at);
  return {};
}

Status ProcessLobby::create(bool& exists) {
  exists = false;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kProcessSpan) {
    return make_error(Code::system, [&] {
      return "files may have " + std::to_string(limit.rlim_cur) + " bytes (RLIMIT_FSIZE); ranks " +
             "that are processes need " + std::to_string(kProcessSpan) +
             ": raise the limit (ulimit -f)";
    });
  }
  file_ = KeptFile(open_shared(kSharedFolder, O_TMPFILE | O_RDWR, 0600));
  if (!file_.is_open()) return system_error("a file in /dev/shm");
  if (fchmod(file_.number(), 0600) != 0 ||
      ftruncate(file_.number(), static_cast<off_t>(kProcessSpan)) != 0) {
    return system_error("a file in /dev/shm");
  }
  remove_orphans();
  if (Status status = take_pages(file_, nullptr, 0, sizeof(LobbyPage), path_); !status.ok()) {
    return status;
  }
  if (Status status = map_page(); !status.ok()) return status;
  std::memcpy(page_->magic, kSharedMagic, sizeof(kSharedMagic));
  page_->layout = kLobbyLayout;
  page_->settings = meeting_.settings;
  page_->maker = meeting_.ranks.front();
  if (getrandom(&page_->nonce, sizeof(page_->nonce), 0) !=
      static_cast<ssize_t>(sizeof(page_->nonce))) {
    return system_error("getrandom");
  }
  if (Status status = sit_down(); !status.ok()) return status;
  const std::string unnamed = "/proc/self/fd/" + std::to_string(file_.number());
  if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    exists = errno == EEXIST;
    return system_error(path_);
  }
  return {};
}

Status ProcessLobby::check_found() const {
  const auto refused = [this](const std::string& why) {
    return make_error(Code::system, [&] { return path_ + " exists and " + why; });
  };
  struct stat found {};
  if (fstat(file_.number(), &found) != 0) return system_error(path_);
  if (!S_ISREG(found.st_mode)) return refused("is no regular file; remove it, or use another name");
  if (found.st_uid != geteuid()) {
    return refused("belongs to user " + std::to_string(found.st_uid) + "; allowed is " +
                   std::to_string(geteuid()) + ", this user");
  }
  if ((found.st_mode & 0777) != 0600) {
    const unsigned mode = found.st_mode & 0777;
    std::string octal;
    for (const int shift : {6, 3, 0}) octal += static_cast<char>('0' + (mode >> shift & 7));
    return refused("others may use it: its mode is " + octal + "; allowed is 600");
  }
  if (static_cast<std::size_t>(found.st_size) < sizeof(LobbyPage)) {
    return refused("is no communicator's: it has " + std::to_string(found.st_size) +
                   " bytes; remove it, or use another name");
  }
  return {};
}

Status ProcessLobby::enter_found(bool& again) {
  again = false;
  if (Status status = check_found(); !status.ok()) return status;
  if (Status status = map_page(); !status.ok()) return status;
  if (std::memcmp(page_->magic, kSharedMagic, sizeof(kSharedMagic)) != 0) {
    return make_error(Code::system, [&] {
      return path_ + " exists and is no communicator's; remove it, or use another name";
    });
  }
  if (!anybody_lives()) {
    remove_name(file_.number(), path_);
    again = true;
    return {};
  }
  if (page_->layout != kLobbyLayout) {
    return fail(make_error(Code::mismatch, [&] {
      return "layout of shared memory is " + std::to_string(page_->layout) + " of the first " +
             "process and " + std::to_string(kLobbyLayout) + " of " + me() +
             "; use one version of Rankine";
    }));
  }
  if (Status status = check_settings(); !status.ok()) return status;
  // The meeting is complete and its name will be free soon, or the file was never for this process.
  again = page_->seated.has(page_->settings.ranks);
  if (again) return {};
  if (page_->ending.has_ended()) {
    // If these ranks know of the failure, it belongs to an earlier attempt of theirs.
    if (have_been_told()) remove_name(file_.number(), path_);
    again = !is_named(file_.number(), path_);
    return again ? Status() : fail({});
  }
  if (!(page_->settings == meeting_.settings)) {
    return fail(make_error(Code::mismatch, [&] {
      return difference(page_->settings, "rank " + std::to_string(page_->maker), meeting_.settings,
                        me());
    }));
  }
  return sit_down();
}

Status ProcessLobby::sit_down() {
  const KnownProcess self = KnownProcess::this_one();
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    if (Status status = check_seat(r); !status.ok()) return fail(status);
    if (seated(r) != self) continue;
    return fail(make_error(Code::invalid_argument, [&] {
      return "rank " + std::to_string(r) + " and " + ranks_in_words(meeting_.ranks) +
             " are of one process, " + std::to_string(self.id) +
             "; allowed is one join per process, with all its ranks";
    }));
  }
  for (const Rank r : meeting_.ranks) {
    const KnownProcess there = seated(r);
    if (there.id == 0 && try_lock(file_.number(), r)) continue;
    if (there.id != 0 && has_ended(r)) return fail(lost(r, there.id, meeting_.name));
    return fail(make_error(Code::invalid_argument, [&] {
      return "rank " + std::to_string(r) + " of '" + meeting_.name +
             "' has two processes: " + (there.id == 0 ? "another process" : in_words(there.id)) +
             " and " + in_words(self.id) + "; give each process a different rank";
    }));
  }
  nonce_ = page_->nonce;
  offer_bases(nonce_);
  const bool has_barriers = membarrier_available(Threads::of_all_processes);
  for (const Rank r : meeting_.ranks) {
    LobbyPage::Seat& seat = page_->seats[static_cast<std::size_t>(r)];
    seat.has_barriers = has_barriers;
    seat.admits = meeting_.admits;
    seat.canary = &nonce_;
    seat.started = self.started;
    seat.process.store(self.id, std::memory_order_release);  // pairs with seated()
  }
  is_waited_for_ = true;
  count_us(page_->seated);
  return {};
}

void ProcessLobby::count_us(Arrivals& arrivals) noexcept {
  arrivals.add(static_cast<int>(meeting_.ranks.size()));
}

void ProcessLobby::offer_bases(std::uint64_t seed) noexcept {
  const ReservedBases::Set bases = bases_.reserve(seed);
  for (const Rank r : meeting_.ranks) page_->seats[static_cast<std::size_t>(r)].bases = bases;
}

// This process cannot make a file, so it has no place for its error, and other ranks that can make
// one would wait for it. So it looks for their file for a while.
Status ProcessLobby::announce_arrival(const Status& reason) {
  const std::int64_t until = std::min(meeting_.deadline_ns, now_ns() + kPatienceNs);
  for (;;) {
    close_file();
    file_ = KeptFile(open_shared(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK));
    if (file_.is_open() && check_found().ok() && map_page().ok() &&
        std::memcmp(page_->magic, kSharedMagic, sizeof(kSharedMagic)) == 0 &&
        page_->layout == kLobbyLayout && anybody_lives() && !page_->ending.has_ended() &&
        !page_->seated.has(page_->settings.ranks)) {
      return fail(reason);
    }
    if (now_ns() >= until) return reason;
    sleep_ns(1'000'000);
  }
}

Status ProcessLobby::enter() {
  for (std::int64_t nap_ns = 50'000;;) {
    bool again = false;
    file_ = KeptFile(open_shared(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK));
    if (!file_.is_open() && errno != ENOENT) return system_error(path_);
    const bool found = file_.is_open();
    Status status = found ? enter_found(again) : create(again);
    if (!again) return found || status.ok() ? status : announce_arrival(status);
    close_file();
    if (is_interrupted()) {
      return make_error(Code::aborted, [&] {
        return interrupted(path_ + " belongs to another running communicator; use another name");
      });
    }
    if (now_ns() >= meeting_.deadline_ns) {
      return make_error(Code::timeout, [&] {
        return path_ + " belongs to another running communicator; use another name";
      });
    }
    sleep_ns(nap_ns);
    nap_ns = std::min<std::int64_t>(2 * nap_ns, 5'000'000);
  }
}

// --- Together ---

// Watches the process of a rank from now on. False: it has ended.
bool ProcessLobby::watch(Rank r) noexcept {
  KeptFile& watched = watched_[static_cast<std::size_t>(r)];
  if (!watched.is_open()) {
    const KnownProcess there = seated(r);
    watched = KeptFile(static_cast<int>(syscall(SYS_pidfd_open, there.id, 0)));
    if (there.has_ended()) return false;  // another process may have its number
  }
  return !has_ended(r);
}

std::string ProcessLobby::missing(const char* what) const {
  std::string ranks;
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    if (process_of(r) == 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  }
  return ranks.empty() ? std::string(what)
                       : "ranks " + ranks + " of '" + meeting_.name + "' have not joined";
}

Status ProcessLobby::wait_for(const Arrivals& arrivals, std::int32_t wanted, const char* what) {
  Status status = arrivals.wait(wanted, [&] { return may_wait(what); });
  return status.ok() ? status : fail(status);
}

Status ProcessLobby::may_wait(const char* what) {
  if (page_->ending.has_ended()) return page_->ending.why();
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    if (Status status = check_seat(r); !status.ok()) return status;
    if (is_ours(r) || process_of(r) == 0 || watch(r)) continue;
    return lost(r, process_of(r), meeting_.name);
  }
  if (meeting_.may_wait) {
    if (Status status = meeting_.may_wait(); !status.ok()) return status;
  }
  if (is_interrupted()) {
    return make_error(Code::aborted, [&] { return interrupted(missing(what)); });
  }
  if (now_ns() >= meeting_.deadline_ns) {
    return make_error(Code::timeout, [&] { return missing(what); });
  }
  return {};
}

Status ProcessLobby::agree_on_base() {
  // An address reserved by this process may be reserved by a different meeting in another process,
  // if two processes begin two meetings in different orders. Then all processes see that there is
  // no common address, and offer others. Finished meetings keep one address each.
  constexpr std::int32_t kTries = 50;
  for (std::int32_t tries = 1; base_ == nullptr; ++tries) {
    const std::uint64_t seed = page_->nonce + static_cast<std::uint64_t>(tries - 1) * kSplitMixStep;
    ReservedBases::Set common;
    common.set();
    for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
      common &= page_->seats[static_cast<std::size_t>(r)].bases;
    }
    base_ = bases_.map(common, seed, file_.number());
    if (base_ != nullptr) break;
    if (errno != 0) return system_error("mapping " + path_);
    if (tries == kTries) {
      return make_error(Code::system, [] {
        return "there is no address at which all processes have " +
               std::to_string(kProcessSpan >> 30) +
               " GiB of address space to share (RLIMIT_AS, mlockall, or many communicators at "
               "once)";
      });
    }
    bases_.let_go();
    const std::int32_t wanted = tries * meeting_.settings.ranks;
    count_us(page_->looked);
    Status status = wait_for(page_->looked, wanted, "not all ranks have looked for an address");
    if (!status.ok()) return status;
    sleep_ns(tries * 100'000);
    offer_bases(seed + kSplitMixStep);
    count_us(page_->offered);
    status = wait_for(page_->offered, wanted, "not all ranks have offered an address");
    if (!status.ok()) return status;
  }
  munmap(page_, sizeof(LobbyPage));
  page_ = reinterpret_cast<LobbyPage*>(base_);
  return {};
}

Status ProcessLobby::meet() {
  if (Status status = enter(); !status.ok()) return status;
  if (Status status = wait_for(page_->seated, meeting_.settings.ranks, "not all ranks have come");
      !status.ok()) {
    return status;
  }
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    if (Status status = check_seat(r); !status.ok()) return fail(status);
    if (!is_ours(r) && !watch(r)) return fail(lost(r, process_of(r), meeting_.name));
  }
  std::vector<KnownProcess> all;
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    all.push_back(seated(r));
    canaries_.push_back(page_->seats[static_cast<std::size_t>(r)].canary);
  }
  met_ = std::move(all);
  try_access();
  if (Status status = agree_on_base(); !status.ok()) return fail(status);
  return {};
}

Result<std::uint64_t> ProcessLobby::first_says(std::uint64_t mine) {
  if (is_ours(0)) {
    page_->saying.store(mine, std::memory_order_relaxed);
    page_->said.add(1);
    return mine;
  }
  Status status = wait_for(page_->said, 1, "rank 0 has not sent the dilation of its clock");
  if (!status.ok()) return status;
  return page_->saying.load(std::memory_order_relaxed);
}

void ProcessLobby::share_cores() noexcept {
  for (const Rank r : meeting_.ranks) {
    page_->seats[static_cast<std::size_t>(r)].shares_cores = true;
  }
}

Status ProcessLobby::be_ready() {
  is_waited_for_ = false;
  count_us(page_->ready);
  Status status = wait_for(page_->ready, meeting_.settings.ranks, "not all ranks are ready");
  if (!status.ok()) return status;
  remove_name(file_.number(), path_);
  private_access_ = access_of_all();
  if (meeting_.admits) return {};
  const auto members =
      std::count_if(page_->seats.begin(), page_->seats.begin() + meeting_.settings.ranks,
                    [](const LobbyPage::Seat& seat) { return seat.admits; });
  return wait_for(page_->admitted, static_cast<std::int32_t>(members),
                  "not all members have admitted the new ranks");
}

void ProcessLobby::admit() noexcept { page_->admitted.add(1); }

// --- Private memory ---

namespace {

iovec part(const void* begin, std::size_t at, std::size_t bytes) {
  return {const_cast<std::byte*>(static_cast<const std::byte*>(begin)) + at, bytes};
}

}  // namespace

// The canary is read last, in the same system call, and so from the same memory as the data: if it
// is right, no later process with the number, and no later program of that process, has given them.
int ProcessLobby::read(Rank r, void* to, const void* from, std::size_t bytes) const noexcept {
  if (is_ours(r)) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return 0;
  }
  int fault = 0;
  for (std::size_t done = 0;;) {
    std::uint64_t canary = 0;
    const std::size_t left = bytes - done;
    const iovec here[] = {part(to, done, left), part(&canary, 0, sizeof(canary))};
    const iovec there[] = {part(from, done, left),
                           part(canaries_[static_cast<std::size_t>(r)], 0, sizeof(canary))};
    const ssize_t got = process_vm_readv(process_of(r), here, 2, there, 2, 0);
    if (got < 0 && errno != EFAULT) return errno;
    if (got < 0 && left == 0) return ESRCH;
    if (got == static_cast<ssize_t>(left + sizeof(canary))) return canary == nonce_ ? fault : ESRCH;
    // The kernel moves 2 GiB at most. After a fault only the canary is left to read.
    if (got < 0) fault = EFAULT;
    done += got < 0 ? left : std::min(static_cast<std::size_t>(got), left);
  }
}

int ProcessLobby::write(Rank r, void* to, const void* from, std::size_t bytes) const noexcept {
  if (is_ours(r)) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return 0;
  }
  for (std::size_t done = 0;;) {
    if (const int error = read(r, nullptr, nullptr, 0); error != 0 || done == bytes) return error;
    const iovec here = part(from, done, bytes - done), there = part(to, done, bytes - done);
    const ssize_t put = process_vm_writev(process_of(r), &here, 1, &there, 1, 0);
    if (put < 0) {
      const int error = errno;
      const int other = read(r, nullptr, nullptr, 0);
      return other != 0 ? other : error;
    }
    done += static_cast<std::size_t>(put);
  }
}

// Yama, filters of system calls, and processes that may not be traced refuse it.
void ProcessLobby::try_access() noexcept {
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    // The word keeps its value.
    auto* const there = const_cast<std::uint64_t*>(canaries_[static_cast<std::size_t>(r)]);
    const int error = is_ours(r) ? 0 : write(r, there, &nonce_, sizeof(nonce_));
    if (error == 0) continue;
    for (const Rank own : meeting_.ranks) {
      LobbyPage::Seat& seat = page_->seats[static_cast<std::size_t>(own)];
      seat.refusal = error;
      seat.refusing_rank = r;
    }
    return;
  }
}

Enforcement ProcessLobby::access_of_all() const noexcept {
  if (static_cast<std::size_t>(meeting_.settings.ranks) == meeting_.ranks.size()) return {};
  for (Rank r = 0; r < meeting_.settings.ranks; ++r) {
    const LobbyPage::Seat& seat = page_->seats[static_cast<std::size_t>(r)];
    if (seat.refusal == 0) continue;
    char text[160];
    std::snprintf(text, sizeof(text), "rank %d cannot reach the private memory of rank %d: %s", r,
                  seat.refusing_rank, std::strerror(seat.refusal));
    return Enforcement::refusal(seat.refusal, text);
  }
  return Enforcement::done();
}

}  // namespace rankine
