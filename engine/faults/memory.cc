// Fault families of memory: a full /dev/shm, limits of address space, files and descriptors,
// programs that close descriptors of others, failing allocations, and buffers shared by mistake.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/processes/identity.h"
#include "engine/api/team.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "numa/system_calls.h"

namespace rankine::faults {
namespace {

// A /dev/shm for this process and its later children, with the usual size in containers. Only
// `room` bytes of it are free until empty().
class SmallSharedFolder {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  explicit SmallSharedFolder(std::size_t room) {
    const std::string size = "size=" + std::to_string(kBytes) + ",mode=1777";
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", kSharedFolder, "tmpfs", 0, size.c_str()) != 0) {
      why_ = std::string("a mount namespace: ") + std::strerror(errno);
      return;
    }
    const int file = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || fallocate(file, 0, 0, static_cast<off_t>(kBytes - room)) != 0) {
      why_ = path_ + ": " + std::strerror(errno);
    }
    if (file >= 0) close(file);
  }
  const std::string& refusal() const { return why_; }
  // Any process may call it any number of times. Another process may be emptying the folder: the
  // file loses its name at once, but its pages one by one, so this function waits for them.
  void empty() const {
    unlink(path_.c_str());
    wait_for([] {
      struct statvfs room {};
      return statvfs(kSharedFolder, &room) != 0 || room.f_bfree * room.f_bsize >= kBytes / 2;
    });
  }

 private:
  const std::string path_ = std::string(kSharedFolder) + "/full";
  std::string why_;
};

rlim_t address_space_in_use() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// The open descriptors of this process.
std::vector<int> descriptors() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    all.push_back(std::stoi(entry.path().filename().string()));
  }
  // Drops the descriptor of the directory itself, which is closed again.
  std::erase_if(all, [](int one) { return fcntl(one, F_GETFD) < 0; });
  return all;
}

// The highest open descriptor plus one. With this limit, new descriptors fit only into gaps.
rlim_t descriptors_in_use() {
  const std::vector<int> all = descriptors();
  return static_cast<rlim_t>(*std::max_element(all.begin(), all.end())) + 1;
}

// The program closes descriptors that it has not opened, and its own file takes their numbers:
// calls must succeed, and the file must not change.
void inject_closed(const FaultCase& test, CollectiveCase call, bool of_all, Rank victim,
                   Tally& tally) {
  constexpr std::string_view kText = "mine";
  const int own = memfd_create("own", MFD_CLOEXEC);
  if (own < 0 || pwrite(own, kText.data(), kText.size(), 0) != ssize_t{kText.size()}) {
    return Judge(test, {}, tally).excuse("memfd_create or pwrite failed");
  }
  std::vector<int> before;  // open descriptors of each process before the ranks meet
  const auto close_what_is_new = [&](Rank rank) {
    if (!of_all && rank != victim) return;
    for (const int one : descriptors()) {
      if (std::find(before.begin(), before.end(), one) == before.end()) dup2(own, one);
    }
  };
  RankFixture fixture(test, {}, tally,
                      {.before_meeting = [&](Rank) { before = descriptors(); },
                       .after_meeting = close_what_is_new});
  fixture.run([&](Seat& seat) {
    for (const std::size_t count : {1u, 5'000u, 100'000u}) {
      if (test.collective != Collective::barrier) call.count = count;
      if (!seat.call(call)) return;
    }
    struct stat now {};
    if (fstat(own, &now) != 0 || now.st_size != off_t{kText.size()}) {
      fixture.judge().blame_wrong("the program's own file has another length");
    }
  });
  close(own);
}

}  // namespace

void inject_no_room(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  CollectiveCase call = good;
  // From no room to enough room for most calls.
  constexpr std::size_t kPage = 4096;
  const std::size_t room =
      kPage * static_cast<std::size_t>(dice.below(5)) * (std::size_t{1} << dice.below(11));
  const SmallSharedFolder folder(room);
  if (!folder.refusal().empty()) return Judge(test, {}, tally).excuse(folder.refusal());
  RankFixture* fixture_of_all = nullptr;
  RankFixture fixture(test, {.at_once = true, .documented = {Code::out_of_memory}}, tally,
                      {.before_meeting = [&](Rank) { fixture_of_all->judge().mark_fault(); },
                       .in_the_end = [&] { folder.empty(); }});
  fixture_of_all = &fixture;
  fixture.run([&](Seat& seat) {
    for (const std::size_t count : {1u, 130u, 5'000u, 100'000u}) {
      if (test.collective != Collective::barrier) call.count = count;
      fixture.judge().mark_fault();
      if (!seat.call(call)) return;
    }
  });
}

void inject_limits(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  enum { address_space, file_size, few_descriptors, closed_descriptors };
  const int kind = dice.below(4);
  const bool of_all = dice.one_in(2);
  const Rank victim = dice.below(test.ranks);
  const int more = dice.below(test.ranks + 4);
  if (kind == closed_descriptors) return inject_closed(test, call, of_all, victim, tally);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (kind == address_space) {
    return Judge(test, {}, tally).excuse("the sanitizer needs more address space itself");
  }
#endif
  Promise promise{.at_once = true, .documented = {Code::system, Code::out_of_memory}};
  // A rank that cannot open the file cannot tell the other ranks.
  if (kind == few_descriptors) {
    promise = {.timeout = kShort,
               .documented = {Code::system, Code::out_of_memory, Code::timeout},
               .same_text = false};
  }
  std::optional<Limit> limit;  // of this process
  RankFixture* fixture_of_all = nullptr;
  const auto begin = [&](Rank rank) {
    fixture_of_all->judge().mark_fault();
    if (!of_all && rank != victim) return;
    constexpr rlim_t kSpaces[] = {rlim_t{64} << 20, rlim_t{1} << 30, rlim_t{20} << 30};
    if (kind == address_space) {
      limit.emplace(RLIMIT_AS, address_space_in_use() + kSpaces[more % 3]);
    } else if (kind == file_size) {
      limit.emplace(RLIMIT_FSIZE, more % 2 == 0 ? 0 : rlim_t{1} << 20);
    } else {
      limit.emplace(RLIMIT_NOFILE, descriptors_in_use() + static_cast<rlim_t>(more));
    }
  };
  RankFixture fixture(test, promise, tally,
                      {.before_meeting = begin, .in_the_end = [&] { limit.reset(); }});
  fixture_of_all = &fixture;
  fixture.run([&](Seat& seat) { seat.call_often(3, call); });
}

// Refused memory: the k-th operator new, the k-th mmap.

namespace {

// The allocations, of n, that fail in turn, one attempt each: all of them if `all`, otherwise the
// first, the last and some between.
std::vector<std::int64_t> to_fail(std::int64_t n, bool all, Dice& dice) {
  std::set<std::int64_t> chosen;
  constexpr std::int64_t kEnds = 8, kBetween = 16;
  for (std::int64_t k = 1; k <= n; ++k) {
    if (all || k <= kEnds || k > n - kEnds) chosen.insert(k);
  }
  for (int i = 0; n > 0 && i < kBetween; ++i) {
    chosen.insert(1 + static_cast<std::int64_t>(dice.next() % static_cast<std::uint64_t>(n)));
  }
  return {chosen.begin(), chosen.end()};
}

// Makes a communicator, uses it once and destroys it; every allocation counts.
void attempt(const FaultCase& test, const CollectiveCase& call, Tally& tally) {
  Judge judge(test, {.documented = {Code::out_of_memory}, .same_text = false}, tally);
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<Member>> members(static_cast<std::size_t>(test.ranks));
  Status status;
  {
    const AllocationsCount counts;
    auto made = Communicator::create(communicator_options(test));
    status = made.status();
    if (made.ok()) communicator = std::move(*made);
    for (Rank r = 0; r < test.ranks && status.ok(); ++r) {
      auto member = communicator->join(r);
      status = member.status();
      if (member.ok()) members[static_cast<std::size_t>(r)] = std::move(*member);
    }
  }
  if (judge.answer(status)) {
    std::vector<CaseBuffers> buffers(static_cast<std::size_t>(test.ranks));
    on_threads(test.ranks, [&](Rank r) {
      const auto i = static_cast<std::size_t>(r);
      judge.call(*members[i], buffers[i], call, {.allocations_count = true});
    });
  }
  const AllocationsCount counts;  // the destruction must need no memory
  members.clear();
  communicator.reset();
}

void attempt_team(const FaultCase& test, Tally& tally) {
  Judge judge(test, {.documented = {Code::out_of_memory}, .same_text = false}, tally);
  std::unique_ptr<Team> team;
  Status status;
  {
    const AllocationsCount counts;
    auto made = Team::create(team_options(test));
    status = made.status();
    if (made.ok()) team = std::move(*made);
  }
  if (!judge.answer(status)) return;
  const std::function<void(Member&)> f = [](Member& me) { me.barrier().throw_if_error(); };
  {
    const AllocationsCount counts;
    status = team->run(f);
  }
  judge.answer(status);
}

// Lets each allocation of one attempt fail in turn, and checks that no block is leaked.
template <class Attempt>
void fail_each(const FaultCase& test, bool all, Dice& dice, Tally& tally, const Attempt& once) {
  once();  // makes the data that each process makes once
  fail_allocation(0, false);
  once();
  const std::int64_t n = allocations_counted();
  for (const std::int64_t k : to_fail(n, all, dice)) {
    // Alone, or with all later ones: in that case an error has no memory for a text.
    const bool all_later = (static_cast<std::uint64_t>(k) + test.seed) % 2 == 0;
    watch_blocks(true);
    const std::int64_t before = blocks_alive();
    const std::size_t remarks = tally.remarks.size();
    fail_allocation(k, all_later);
    once();
    fail_allocation(0, false);
    const std::int64_t leaked = blocks_alive() - before;
    watch_blocks(false);
    if (leaked != 0 && tally.remarks.size() == remarks) {
      ++tally.undocumented;
      tally.remark(to_string(test) + ": allocation " + std::to_string(k) + " of " +
                   std::to_string(n) + (all_later ? " and all later" : "") + " failed, and " +
                   std::to_string(leaked) + " blocks stay behind");
    }
  }
}

std::atomic<int> maps_left{0};  // 1: the next one fails

void* failing_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                   off_t offset) {
  if (maps_left.fetch_sub(1) == 1) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real_system_calls().mmap(address, bytes, protection, flags, file, offset);
}

// Ranks are processes: allocations of one rank fail while it meets the others or makes its call.
// Ranks that it has not met yet wait until their deadline.
void refuse_a_process(const FaultCase& test, const CollectiveCase& call, Dice& dice, Tally& tally) {
  Judge judge(test, {}, tally);
  if (!new_can_fail()) return judge.excuse("the sanitizer replaces operator new");
  const Rank victim = dice.below(test.ranks);
  // Up to about the number of allocations, with a preference for the first ones.
  const std::int64_t k = 1 + dice.below(1 + dice.below(400));
  const bool all_later = dice.one_in(2);
  const auto meets = [&](Rank rank) {
    if (rank == victim) fail_allocation(k, all_later);
  };
  RankFixture fixture(
      test,
      {.timeout = kShort, .documented = {Code::out_of_memory, Code::timeout}, .same_text = false},
      tally, {.before_meeting = meets, .allocations_count = true});
  fixture.run([&](Seat& seat) { seat.call(call, {.allocations_count = true}); });
}

}  // namespace

void inject_allocation(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                       Tally& tally) {
  if (test.processes) return refuse_a_process(test, call, dice, tally);
  constexpr int kAllUpTo = 4;  // ranks
  if (new_can_fail()) {
    fail_each(test, test.ranks <= kAllUpTo, dice, tally, [&] { attempt(test, call, tally); });
    // Some allocations of a team, which first reads the machine's topology.
    if (test.collective == Collective::all_reduce && test.ranks <= kAllUpTo) {
      fail_each(test, false, dice, tally, [&] { attempt_team(test, tally); });
    }
  }
  SystemCalls calls = real_system_calls();
  calls.mmap = failing_mmap;
  const ScopedSystemCalls scope(calls);
  for (int k = 1; k <= std::min(2 * test.ranks, 16); ++k) {
    maps_left.store(k);
    attempt(test, call, tally);
  }
}

// Buffers shared by mistake: communicator.h says which mistake is found when.

namespace {

enum class Kind {
  one_output,       // one output for all ranks
  one_in_place,     // the in-place buffers of one rank for all ranks
  another_input,    // one rank's output is another rank's input
  outputs_in_part,  // two ranks' outputs overlap in part
};

std::size_t natural_bytes(const CollectiveCase& call) {
  return call.count * size_of(call.type) *
         static_cast<std::size_t>(natural_blocks(call.collective, call.ranks));
}

// Replaces buffers of a rank's call by memory that other ranks use, too.
void share(Kind kind, Call& call, Rank rank, Rank a, Rank b, std::vector<std::byte>& memory) {
  const auto* const in = static_cast<const std::byte*>(call.in);
  const auto* const out = static_cast<const std::byte*>(call.out);
  switch (kind) {
    case Kind::one_output:
      call.out = memory.data();
      break;
    case Kind::one_in_place: {
      const std::byte* const first = std::min(in, out);
      call.in = memory.data() + (in - first);
      call.out = memory.data() + (out - first);
      break;
    }
    case Kind::another_input:
      if (rank == a) call.in = memory.data();
      if (rank == b) call.out = memory.data();
      break;
    case Kind::outputs_in_part:
      if (rank == a) call.out = memory.data();
      if (rank == b) call.out = memory.data() + size_of(call.type) * (call.count / 2);
      break;
  }
}

// Mistakes with shared payloads of processes. any_memory: all ranks pass ordinary memory as shared.
// of_another: all ranks pass another rank's payload. one_rank_unset: one rank does not set the
// option. The communicator survives the first two.
void misuse_payloads(const FaultCase& test, CollectiveCase call, Dice& dice, Tally& tally) {
  enum { any_memory, of_another, one_rank_unset };
  const int kind = dice.below(3);
  const Rank silent = dice.below(test.ranks);
  call.displaced = false;
  call.in_place = false;
  const std::size_t half = natural_bytes(call) + 64;
  RankFixture fixture(
      test, {.documented = {kind == one_rank_unset ? Code::mismatch : Code::invalid_argument}},
      tally);
  fixture.run([&](Seat& seat) {
    auto memory = seat.member->allocate<std::byte>(2 * half);
    if (!fixture.judge().answer(memory.status())) return;
    std::byte* const mine = memory->span().data();
    std::vector<std::uintptr_t> all(static_cast<std::size_t>(test.ranks));
    const auto address = reinterpret_cast<std::uintptr_t>(mine);
    const Status status =
        seat.member->all_gather(std::span<const std::uintptr_t>(&address, 1), std::span(all));
    if (!fixture.judge().answer(status)) return;
    const auto next = static_cast<std::size_t>((seat.rank() + 1) % test.ranks);
    auto* const base = reinterpret_cast<std::byte*>(kind == of_another ? all[next] : address);
    const bool taken = seat.call(call, {.spoil = [&](Call& c) {
                                   c.options.shared_payloads =
                                       kind != one_rank_unset || seat.rank() != silent;
                                   if (kind == any_memory) return;
                                   c.in = base;
                                   c.out = base + half;
                                 }});
    if (taken) fixture.judge().blame("misused payloads were accepted");
    if (kind != one_rank_unset) seat.call(call);
    // The payload must live as long as other ranks may read or write it.
    fixture.arrive();
    wait_for([&] { return fixture.arrived() == test.ranks || fixture.over(); });
  });
}

}  // namespace

void inject_shared_buffers(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                           Tally& tally) {
  CollectiveCase call = good;
  if (test.processes) return misuse_payloads(test, call, dice, tally);
  const auto kind = static_cast<Kind>(dice.below(4));
  const Rank a = dice.below(test.ranks);
  const Rank b = (a + 1 + dice.below(test.ranks - 1)) % test.ranks;
  call.in_place = kind == Kind::one_in_place;
  call.displaced = false;  // displaced blocks would be shared in the ranks' own memory
  // In the first call of a kind all ranks are told. In later calls only the ranks are told that
  // share with all ranks whose data they get; this excludes the rank with the first block of a
  // reduce-scatter in place. But then ranks store before they know, and the thread sanitizer would
  // report these stores.
  const bool all_share =
      kind == Kind::one_output ||
      (kind == Kind::one_in_place && test.collective != Collective::reduce_scatter);
  const bool after_good_ones = dice.one_in(2) && all_share && !kThreadSanitizer;
  std::vector<std::byte> memory(2 * natural_bytes(call) + 64);
  RankFixture fixture(test, {.documented = {Code::mismatch}}, tally);
  fixture.run([&](Seat& seat) {
    if (after_good_ones && !seat.call(call)) return;
    const bool taken =
        seat.call(call, {.spoil = [&](Call& c) { share(kind, c, seat.rank(), a, b, memory); }});
    if (taken) fixture.judge().blame("shared buffers were accepted");
  });
}

}  // namespace rankine::faults
