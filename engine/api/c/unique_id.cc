#include "engine/api/c/unique_id.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/api/c/handles.h"
#include "engine/api/check.h"
#include "engine/run/machine.h"

namespace rankine {
namespace {

// The bytes of an id for threads. The start time distinguishes processes with equal process
// numbers, in different namespaces or one after another.
struct Words {
  char magic[8];
  std::int64_t process;
  std::int64_t began_ns;
  std::uint64_t number;  // counts the ids of the process, from 0
};
constexpr char kMagic[] = "rankine";
static_assert(sizeof kMagic == sizeof Words::magic && sizeof(Words) <= sizeof(rkUniqueId));

struct Meeting {
  Settings settings;
  int ranks = 0;  // 0: no rank has arrived
  int joined = 0;
  // Keeps the communicator alive until the last rank has arrived: earlier ranks may have finished
  // and left, and the last one needs their data.
  std::shared_ptr<Communicator> communicator{};
};

// One per process; guarded by the lock.
struct Meetings {
  std::int64_t began_ns = now_ns();
  std::uint64_t issued = 0;
  std::map<std::uint64_t, Meeting> open;  // meetings that miss ranks
};
Meetings& meetings() {
  static Meetings& all = *new Meetings;  // never destroyed, as handles
  return all;
}

// The bytes of an id for processes: the name of the meeting.
constexpr char kProcessMagic[] = "rkprocs";
struct ProcessId {
  char magic[8];
  char name[sizeof(rkUniqueId) - 8];  // ends with a zero
};
static_assert(sizeof kProcessMagic == sizeof ProcessId::magic &&
              sizeof(ProcessId) == sizeof(rkUniqueId));

// Returns the meeting of an id. Error: why there is no meeting.
Result<Meeting*> find(const rkUniqueId& id) {
  Meetings& all = meetings();
  Words words;
  std::memcpy(&words, id.internal, sizeof words);
  if (std::memcmp(words.magic, kMagic, sizeof kMagic) != 0) {
    return invalid_argument("id is invalid; allowed are ids of rkGetUniqueId()");
  }
  if (words.process != getpid() || words.began_ns != all.began_ns) {
    return invalid_argument("id is of process " + std::to_string(words.process) + ", this is " +
                            std::to_string(getpid()) +
                            "; ids of rkGetUniqueId() are for threads of one process; for "
                            "processes use rkGetUniqueIdOfProcesses()");
  }
  const auto found = all.open.find(words.number);
  if (found == all.open.end()) {
    return invalid_argument(words.number < all.issued
                                ? "id has been used by all its ranks; make a new id for each "
                                  "communicator"
                                : "id is invalid; allowed are ids of rkGetUniqueId()");
  }
  return &found->second;
}

}  // namespace

rkUniqueId make_unique_id() {
  const std::lock_guard lock(registry_lock());
  Meetings& all = meetings();
  all.open.emplace(all.issued, Meeting());
  Words words{{}, getpid(), all.began_ns, all.issued++};
  std::memcpy(words.magic, kMagic, sizeof kMagic);
  rkUniqueId id{};
  std::memcpy(id.internal, &words, sizeof words);
  return id;
}

Result<rkUniqueId> make_process_id() {
  std::uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    return make_error(Code::system,
                      [] { return "getrandom: " + std::string(std::strerror(errno)); });
  }
  char name[40];
  std::snprintf(name, sizeof name, "id.%016llx%016llx", static_cast<unsigned long long>(random[0]),
                static_cast<unsigned long long>(random[1]));
  return make_process_id(name);
}

Result<rkUniqueId> make_process_id(std::string_view name) {
  if (Status status = check_name(name); !status.ok()) return status;
  ProcessId words{};
  std::memcpy(words.magic, kProcessMagic, sizeof kProcessMagic);
  std::memcpy(words.name, name.data(), name.size());
  rkUniqueId id;
  std::memcpy(id.internal, &words, sizeof words);
  return id;
}

bool is_of_processes(const rkUniqueId& id) noexcept {
  return std::memcmp(id.internal, kProcessMagic, sizeof kProcessMagic) == 0;
}

std::string name_of_processes(const rkUniqueId& id) {
  ProcessId words;
  std::memcpy(&words, id.internal, sizeof words);
  return {words.name, strnlen(words.name, sizeof words.name)};
}

Result<std::vector<Met>> meet_processes(const rkUniqueId& id, int ranks, std::span<const Rank> here,
                                        const Settings& settings) {
  const ProcessPlace place{here.front(), {here.begin() + 1, here.end()}, name_of_processes(id)};
  auto communicator = make_communicator(settings, ranks, place);
  if (!communicator.ok()) return communicator.status();
  std::vector<Met> met;
  for (const Rank r : here) {
    // This thread plays at most one of several ranks.
    auto member =
        here.size() == 1 ? (*communicator)->join(r) : (*communicator)->join_for_another_thread(r);
    if (!member.ok()) return member.status();
    met.push_back({*communicator, std::move(*member)});
  }
  return met;
}

Result<Met> meet(const rkUniqueId& id, int ranks, Rank rank, const Settings& settings) {
  if (is_of_processes(id)) {
    auto met = meet_processes(id, ranks, {&rank, 1}, settings);
    if (!met.ok()) return met.status();
    return std::move(met->front());
  }
  const std::lock_guard lock(registry_lock());
  auto found = find(id);
  if (!found.ok()) return found.status();
  Meeting& meeting = **found;
  std::shared_ptr<Communicator> communicator = meeting.communicator;
  if (meeting.ranks == 0) {
    auto made = make_communicator(settings, ranks);
    if (!made.ok()) return made.status();
    communicator = std::move(*made);
  } else if (Status status = check_as_first(ranks, settings, meeting.ranks, meeting.settings);
             !status.ok()) {
    return status;
  }
  auto member = communicator->join(rank);
  if (!member.ok()) return member.status();
  if (meeting.ranks == 0) {
    meeting.settings = settings;
    meeting.ranks = ranks;
    meeting.communicator = communicator;
  }
  if (++meeting.joined == ranks) {
    Words words;
    std::memcpy(&words, id.internal, sizeof words);
    meetings().open.erase(words.number);
  }
  return Met{std::move(communicator), std::move(*member)};
}

namespace {

bool same(const rkUniqueId& a, const rkUniqueId& b) {
  return std::memcmp(&a, &b, sizeof(rkUniqueId)) == 0;
}

// As errors of a group's calls (group.cc): the code, and a text that begins with the function.
Status named(const CollectedRank& one, const Status& status) {
  return {status.code(), std::string(one.function) + " of rank " + std::to_string(one.rank) + ": " +
                             status.text()};
}

}  // namespace

Status meet_collected(const std::vector<CollectedRank>& all) {
  for (const CollectedRank& one : all) {
    std::vector<const CollectedRank*> here;
    for (const CollectedRank& other : all) {
      if (same(one.id, other.id)) here.push_back(&other);
    }
    if (here.front() != &one) continue;
    std::vector<Rank> ranks;
    for (const CollectedRank* other : here) {
      Status status = check_as_first(other->ranks, other->settings, one.ranks, one.settings);
      if (!status.ok()) return named(*other, status);
      ranks.push_back(other->rank);
    }
    auto met = meet_processes(one.id, one.ranks, ranks, one.settings);
    if (!met.ok()) return named(one, met.status());
    for (std::size_t i = 0; i < here.size(); ++i) {
      *here[i]->comm =
          add_rank(std::move((*met)[i].member), true, std::move((*met)[i].communicator));
    }
  }
  return {};
}

}  // namespace rankine
