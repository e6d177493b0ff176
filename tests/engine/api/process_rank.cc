// Plays one or several ranks of a communicator of processes, for processes_test. The command line
// names the play; the process prints the result.
//
//   process_rank NAME RANK[,RANK...] RANKS PLAY [AT [SIGNAL]]
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/active.h"
#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/api/processes/ranks.h"
#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/base/parallel.h"
#include "engine/faults/collective_case.h"
#include "engine/faults/refuse_calls.h"
#include "engine/run/form_trials.h"
#include "numa/cpus.h"
#include "tests/budget.h"
#include "tests/engine/api/simulated_times.h"

namespace rankine::testing_processes {
namespace {

struct CallArguments {
  std::string name;
  Rank rank = 0;
  int ranks = 1;
  int at = 0;      // microseconds
  int signal = 9;  // sent at that time
  std::chrono::milliseconds timeout{180'000};
  std::optional<Costs> costs{};

  // All sizes of private memory are read in place.
  CallArguments reads_all() const {
    CallArguments all = *this;
    all.costs = costs_with({{&Costs::private_min_bytes, 1}});
    return all;
  }
  CommunicatorOptions options() const {
    return {.ranks = ranks, .timeout = timeout, .costs = costs, .rank = rank, .name = name};
  }
  bool is_last() const { return rank == ranks - 1; }
};

using Play = std::function<int(const CallArguments&)>;
using Plays = std::map<std::string, Play>;

// Prints the result, for the test to compare; returns the exit code.
int say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  return 0;
}
int say(const Status& status) {
  return say(status.ok() ? "ok" : std::string(name_of(status.code())) + ": " + status.text());
}

// The ranks that this process plays.
struct Household {
  std::vector<Rank> ranks;
  std::mutex mutex;  // guards the members below
  std::size_t asked = 0;
  std::shared_ptr<Communicator> made;  // kept until all ranks have asked
  Status status;
};
Household& household() {
  static Household all;
  return all;
}

// Creates the communicator like Communicator::create(). If this process plays several ranks, each
// on a thread, every thread must call it, and all get one communicator.
Result<std::shared_ptr<Communicator>> meet(const CommunicatorOptions& options) {
  Household& all = household();
  const std::lock_guard lock(all.mutex);
  if (all.asked == 0) {
    CommunicatorOptions of_all = options;
    of_all.rank = all.ranks.front();
    of_all.more_ranks = std::span<const Rank>(all.ranks).subspan(1);
    auto made = Communicator::create(of_all);
    all.status = made.status();
    if (made.ok()) all.made = std::move(*made);
  }
  all.asked = (all.asked + 1) % all.ranks.size();
  if (!all.status.ok()) return all.status;
  return all.asked == 0 ? std::exchange(all.made, nullptr) : all.made;
}

struct Joined {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
};
// Meets the other ranks and joins as the given rank; throws an error on failure.
Joined join(const CommunicatorOptions& options) {
  Joined out;
  out.communicator = meet(options).value();
  out.member = out.communicator->join(*options.rank).value();
  return out;
}

// Makes all-reduces with checked sums, so a rank that reads wrong data reports it.
Status add_up(Member& me, std::size_t count, int times) {
  std::vector<float> in(count), out(count);
  for (int i = 0; i < times; ++i) {
    float wanted = 0;
    for (Rank r = 0; r < me.ranks(); ++r) wanted += static_cast<float>(r + 1 + i % 7);
    std::fill(in.begin(), in.end(), static_cast<float>(me.rank() + 1 + i % 7));
    Status status = me.all_reduce(std::span<const float>(in), std::span<float>(out));
    if (!status.ok()) return status;
    const auto is_wrong = [wanted](float x) { return x != wanted; };
    if (std::any_of(out.begin(), out.end(), is_wrong)) {
      return Status(Code::remote_error, "wrong sum in call " + std::to_string(i));
    }
  }
  return {};
}

// Calls work with sizes of all kinds until a rank is killed; returns the exit code. This process is
// killed `at` microseconds from now, at any point of its work; 0: never.
int work_until_killed(const CallArguments& given, int at,
                      const std::function<Status(Member&, std::size_t)>& work) {
  if (at > 0) {
    std::thread([at, signal = given.signal] {
      std::this_thread::sleep_for(std::chrono::microseconds(at));
      kill(getpid(), signal);
    }).detach();
  }
  auto made = meet(given.options());
  if (!made.ok()) return say(made.status());
  const auto member = (*made)->join(given.rank).value();
  Status status;
  for (std::size_t count = 1; status.ok(); count = count * 3 % 100'003) {
    status = work(*member, count);
  }
  return say(status);
}

Status create(const CommunicatorOptions& options) {
  const auto made = meet(options);
  return made.ok() ? Status() : made.status();
}

// --- Every algorithm of the catalogue ---

std::vector<CollectiveCase> cases_of(const Algorithm& algorithm, int ranks) {
  std::vector<CollectiveCase> cases;
  const auto n = static_cast<std::size_t>(ranks);
  for (const int segments : {0, 3}) {
    if (segments > 0 && !algorithm.takes("segments")) continue;
    CallOptions options{.algorithm = algorithm.name, .segments = segments};
    Params params = params_of(options, ranks);
    params.segments = std::max(1, params.segments);
    if (algorithm.refusal(params)) continue;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n + 1, std::size_t{1009}}) {
      for (const auto& transport :
           {std::optional(Transport::direct), std::optional(Transport::mailbox),
            std::optional<Transport>()}) {
        for (const bool in_place : {false, true}) {
          options.transport = transport;
          cases.push_back(numbered_case(algorithm, ranks, count, cases.size(), in_place, options));
        }
      }
    }
  }
  return cases;
}

// Makes a sample of all calls, with payloads in `room` if there is one.
int sweep_all(Member& me, std::span<std::byte> room) {
  CaseBuffers buffers;
  const Sample sample(nullptr, me.ranks() <= 3 ? 3 : 9);
  std::size_t made = 0;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective == Collective::barrier) continue;
    for (CollectiveCase test : cases_of(algorithm, me.ranks())) {
      if (!sample.has(made++)) continue;
      test.options.shared_payloads = !room.empty();
      const std::string fault = run_case(me, test, buffers, room);
      if (!fault.empty()) return say(fault);
    }
  }
  if (made < 1000) return say("only " + std::to_string(made) + " cases");
  me.barrier().throw_if_error();
  return say("ok");
}

int sweep(const CallArguments& given) {
  CommunicatorOptions options = given.options();
  // The messages are short, so the piece is set shorter still.
  if (!options.costs) options.costs = Costs();
  options.costs->stage_piece_max_bytes = 256;
  options.costs->stage_turn_max_bytes = 512;
  options.costs->stage_stream_min_bytes = given.ranks % 2 == 0 ? 512 : 1;
  return sweep_all(*join(options).member, {});
}

// --- Private memory that other processes read ---

// Every collective with parts around the least size, in place and apart, at odd addresses. Prints
// if the processes could read each other's memory.
int read_around(const CallArguments& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  const Enforcement access = joined.communicator->memory_of(me.rank()).private_access;
  CaseBuffers buffers;
  const auto n = static_cast<std::size_t>(given.ranks);
  const std::size_t least = Costs{}.private_min_bytes;
  std::size_t made = 0;
  for (const Collective collective : all_collectives()) {
    if (collective == Collective::barrier) continue;
    const auto blocks = static_cast<std::size_t>(natural_blocks(collective, given.ranks)) /
                        (collective == Collective::all_to_all ? n : 1);
    const std::size_t parts = collective == Collective::broadcast ? 1 : n;
    for (const std::size_t part : {least - 4, least, 5 * least + 4}) {
      for (const bool in_place : {false, true}) {
        const CollectiveCase test{.collective = collective,
                                  .ranks = given.ranks,
                                  .count = part * parts / blocks / 4,
                                  .type = DataType::f32,
                                  .root = static_cast<Rank>(made % n),
                                  .peer = static_cast<Rank>((made + 1) % n),
                                  .in_place = in_place,
                                  .skew = made % 3 * 4,
                                  .seed = made};
        ++made;
        if (const std::string fault = run_case(me, test, buffers); !fault.empty())
          return say(fault);
        const bool stages_anyway = collective == Collective::all_to_all && in_place;
        const bool is_large = test.count * blocks * 4 / parts >= least && !stages_anyway;
        const std::string plan = me.plan_of(call_of(test, buffers)).value();
        if ((plan.find("single copy") != std::string::npos) != (is_large && access.enforced())) {
          return say(to_string(test) + ": " + plan);
        }
      }
    }
  }
  me.barrier().throw_if_error();
  return say(access.refused() ? "staged: " + std::string(access.why()) : "read");
}

// Every kind of call with trials, in all forms, at odd addresses.
int try_forms(const CallArguments& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  CaseBuffers buffers;
  const auto n = static_cast<std::size_t>(given.ranks);
  for (const TrialKind& kind : kTrialKinds) {
    for (const std::size_t bytes : {20'000U, 100'000U, 400'000U, 1'500'000U}) {
      const auto blocks = static_cast<std::size_t>(natural_blocks(kind.collective, given.ranks));
      CollectiveCase test{.collective = kind.collective,
                          .ranks = given.ranks,
                          .count = bytes / (blocks == 1 ? 1 : n) / 4,
                          .type = DataType::f32,
                          .in_place = kind.in_place,
                          .skew = 4};
      const std::uint32_t calls = trial_pace(*trial_class(kind, bytes)).concludes(kForms);
      for (std::uint32_t i = 0; i < calls; ++i) {
        ++test.seed;
        if (const std::string fault = run_case(me, test, buffers); !fault.empty())
          return say(fault);
      }
      const std::string plan = me.plan_of(call_of(test, buffers)).value();
      // An all-to-all in place has no other form, nor a reduce that adds up as vectors arrive.
      const bool stays = kind.collective == Collective::all_to_all
                             ? kind.in_place
                             : kind.collective == Collective::reduce && given.ranks > 2;
      if (!stays && plan.find("by trials") == std::string::npos)
        return say(to_string(test) + ": " + plan);
    }
  }
  return say("ok");
}

// The root's memory is no memory of others either.
int read_no_memory(const CallArguments& given) {
  const Joined joined = join(given.options());
  if (!joined.communicator->memory_of(given.rank).private_access.enforced()) return say("staged");
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  std::vector<std::byte> mine(kBytes);
  void* const none = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return say(joined.member->call({.collective = Collective::broadcast,
                                  .in = given.rank == 0 ? none : nullptr,
                                  .out = given.rank == 0 ? none : mine.data(),
                                  .count = kBytes,
                                  .type = DataType::u8}));
}

// --- Sizes ---

// Counts for one line, for a board, for slots, for scratch, and for scratch that must grow.
int sizes(const CallArguments& given) {
  const Joined joined = join(given.options());
  for (const std::size_t count : {1u, 12u, 500u, 5'000u, 300'000u, 3'000'000u}) {
    if (Status status = add_up(*joined.member, count, 5); !status.ok()) return say(status);
  }
  return say("ok");
}

// --- Shared payloads ---

// Makes all-reduces in place on a payload; every rank lends its payload.
Status add_up_in_place(Member& me, std::span<float> data, int times) {
  const CallOptions shared{.shared_payloads = true};
  for (int i = 0; i < times; ++i) {
    std::fill(data.begin(), data.end(), static_cast<float>(me.rank() + 1 + i % 7));
    Status status = me.all_reduce(data, ReduceOp::sum, shared);
    if (!status.ok()) return status;
    float wanted = 0;
    for (Rank r = 0; r < me.ranks(); ++r) wanted += static_cast<float>(r + 1 + i % 7);
    const auto is_wrong = [wanted](float x) { return x != wanted; };
    if (std::any_of(data.begin(), data.end(), is_wrong)) {
      return Status(Code::remote_error, "wrong sum in call " + std::to_string(i));
    }
  }
  return {};
}

int sweep_payloads(const CallArguments& given) {
  const Joined joined = join(given.options());
  auto room = joined.member->allocate<std::byte>(std::size_t{4} << 20).value();
  return sweep_all(*joined.member, room.span());
}

// Reallocated memory is zeroed, and too large an allocation is an error.
int allocate_and_free(const CallArguments& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  const auto is_zero = [](float x) { return x == 0; };
  Payload<float> kept = me.allocate<float>(1000).value();
  const float* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    auto once = me.allocate<float>(300'000).value();
    if (i == 0) first = once.span().data();
    if (once.span().data() != first) return say("another place");
    if (!std::all_of(once.span().begin(), once.span().end(), is_zero)) return say("not zero");
    if (Status status = add_up_in_place(me, once.span(), 3); !status.ok()) return say(status);
  }
  if (Status status = add_up_in_place(me, kept.span(), 3); !status.ok()) return say(status);
  const auto too_much = me.allocate<float>(std::size_t{1} << 40);
  if (too_much.status().code() != Code::out_of_memory) return say(too_much.status());
  std::vector<float> mine(1000);
  const Status refused = me.all_reduce(std::span(mine), ReduceOp::sum, {.shared_payloads = true});
  // The refused call was no call, so all ranks still work.
  if (Status status = add_up_in_place(me, kept.span(), 3); !status.ok()) return say(status);
  me.barrier({.shared_payloads = true}).throw_if_error();
  return say(refused.text().substr(0, refused.text().find("0x")) +
             refused.text().substr(refused.text().find(", 4000")));
}

// This process's shared memory in huge pages, according to the kernel.
std::size_t in_huge_pages() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t kib = 0, all = 0;
  for (std::string word; maps >> word;) {
    if (word == "ShmemPmdMapped:" && maps >> kib) all += kib;
  }
  return all << 10;
}

// A large payload is in huge pages, or memory_of() states the error.
int allocate_much(const CallArguments& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const auto small = me.allocate<std::byte>(kBytes / 8).value();
  auto large = me.allocate<std::byte>(kBytes + 1).value();
  std::fill(large.span().begin(), large.span().end(), std::byte{1});
  const Enforcement told = me.communicator().memory_of(me.rank()).huge_pages;
  const std::size_t found = in_huge_pages();
  if (told.enforced() != (found >= kBytes)) {
    return say(std::to_string(found) + " bytes in huge pages, told is '" + std::string(told.why()) +
               "'");
  }
  if (!told.enforced() && told.error == 0) return say("neither done nor refused");
  // The memory works in calls.
  const std::span<float> numbers(reinterpret_cast<float*>(large.span().data()),
                                 kBytes / sizeof(float));
  if (Status status = add_up_in_place(me, numbers, 2); !status.ok()) return say(status);
  me.barrier().throw_if_error();
  return say("ok");
}

int survive_with_payloads(const CallArguments& given) {
  Payload<float> data;
  return work_until_killed(given, given.is_last() ? given.at : 0,
                           [&data](Member& me, std::size_t count) {
                             if (data.span().empty()) {
                               auto made = me.allocate<float>(100'003);
                               if (!made.ok()) return made.status();
                               data = std::move(*made);
                             }
                             return add_up_in_place(me, data.span().first(count), 1);
                           });
}

// --- Ends ---

// The ranks make calls until they are told of the last rank's end. Then the others meet again.
int outlive(const CallArguments& given, const std::function<void(const Joined&)>& end) {
  Status status;
  {
    const Joined joined = join(given.options());
    status = add_up(*joined.member, 1000, 20);
    if (!status.ok()) return say(status);
    if (given.is_last()) {
      end(joined);
      return 0;
    }
    while (status.ok()) status = add_up(*joined.member, 1000, 1);
    if (joined.communicator->health().text() != status.text()) return say("another health");
  }
  CommunicatorOptions fewer = given.options();
  fewer.ranks = given.ranks - 1;
  const Joined again = join(fewer);
  if (Status now = add_up(*again.member, 1000, 20); !now.ok()) return say(now);
  return say(status);
}

// The shared memory begins with the lobby's page.
LobbyPage& page_of(const Joined& joined) {
  const auto lines = reinterpret_cast<std::uintptr_t>(
      joined.communicator->memory_of(joined.member->rank()).lines.ranges.at(0).base);
  return *reinterpret_cast<LobbyPage*>(lines / kProcessSpan * kProcessSpan);
}
void scribble(const void* on, std::size_t bytes) { std::memset(const_cast<void*>(on), 1, bytes); }

// Fields that all processes have read while meeting are not read again.
void scribble_on_seats(const Joined& joined) {
  LobbyPage& page = page_of(joined);
  scribble(&page.settings, sizeof(page) - offsetof(LobbyPage, settings));
  kill(getpid(), SIGKILL);
}

void scribble_on_record(const Joined& joined) {
  const auto lines = joined.communicator->memory_of(joined.member->rank()).lines.ranges.at(0);
  const CallRecord& record = static_cast<const RankLines*>(lines.base)->record;
  scribble(&record, sizeof(record));
  pause();
}

void scribble_on_page(const Joined& joined) {
  scribble(&page_of(joined), sizeof(LobbyPage));
  pause();
}

// Waits for the other ranks while a child, which inherits all open files, stays alive. Prints the
// child's process number.
int wait_with_a_child(const CallArguments& given) {
  std::thread([path = "/dev/shm/rankine." + given.name] {
    while (access(path.c_str(), F_OK) != 0) usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
      for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) close(stream);
      for (;;) pause();
    }
    say(std::to_string(child));
  }).detach();
  return say(create(given.options()));
}

int survive(const CallArguments& given) {
  return work_until_killed(given, given.is_last() ? given.at : 0,
                           [](Member& me, std::size_t count) { return add_up(me, count, 1); });
}

// Daemons have no standard streams, but libraries may still write to them.
int write_to_closed_streams(const CallArguments& given) {
  constexpr int kStreams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  const int answers = dup(STDOUT_FILENO);
  for (const int stream : kStreams) close(stream);
  Status status;
  {
    const Joined joined = join(given.options());
    const std::string noise(2000, 'x');
    for (const int stream : kStreams) {
      if (write(stream, noise.data(), noise.size()) >= 0) status = Status(Code::system, "written");
    }
    if (status.ok()) status = add_up(*joined.member, 1000, 20);
  }
  dup2(answers, STDOUT_FILENO);
  return say(status);
}

// The user operation's address differs between processes.
int combine_by_own(const CallArguments& given) {
  const Joined joined = join(given.options());
  const UserOp op{.apply =
                      [](const void* in, void* inout, std::size_t count, void*) {
                        for (std::size_t i = 0; i < count; ++i) {
                          static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
                        }
                      },
                  .element_bytes = sizeof(int)};
  std::vector<int> data(5000, given.rank + 1);
  Status status = joined.member->call({.collective = Collective::all_reduce,
                                       .in = data.data(),
                                       .out = data.data(),
                                       .count = data.size(),
                                       .type = DataType::raw,
                                       .op = ReduceOp::user,
                                       .user_op = &op});
  const int wanted = given.ranks * (given.ranks + 1) / 2;
  const bool right = std::all_of(data.begin(), data.end(), [&](int x) { return x == wanted; });
  return status.ok() && !right ? say("wrong data") : say(status);
}

// Prints the wait mode of a process that its starter has bound to one CPU.
int wait_bound(const CallArguments& given, int nth) {
  const std::vector<int> cpus = allowed_cpus();
  const int cpu = cpus[static_cast<std::size_t>(nth) % cpus.size()];
  set_allowed_cpus(&cpu, 1);
  const Joined joined = join(given.options());
  const bool spins = joined.communicator->wait_policy().mode == WaitPolicy::Mode::spin;
  const Status status = joined.member->barrier();  // no rank leaves earlier
  return status.ok() ? say(spins ? "spins" : "yields") : say(status);
}

// Splits, messages, and calls on modelled networks.

std::int32_t sum_of(Member& group, std::int32_t mine) {
  std::int32_t sum = -1;
  group.all_reduce(std::span<const std::int32_t>(&mine, 1), std::span(&sum, 1)).throw_if_error();
  return sum;
}

Status wrong(const std::string& what) { return {Code::remote_error, "wrong " + what}; }

// Splits by rank modulo `parts`, in reverse order; the last rank joins no group.
Status divide(Member& me, int parts) {
  const bool alone = me.rank() == me.ranks() - 1;
  auto group = me.split(alone ? kNoColor : me.rank() % parts, -me.rank());
  if (!group.ok()) return group.status();
  if (alone) return *group == nullptr ? Status() : wrong("group of a rank in none");
  std::int32_t wanted = 0;
  int members = 0, above = 0;
  for (Rank r = me.rank() % parts; r < me.ranks() - 1; r += parts) {
    wanted += 1 << r;
    ++members;
    if (r > me.rank()) ++above;
  }
  if ((*group)->ranks() != members || (*group)->rank() != above) return wrong("order");
  for (int i = 0; i < 20; ++i) {
    if (sum_of(**group, 1 << me.rank()) != wanted) return wrong("sum of a group");
  }
  return add_up(**group, 100'000, 3);
}

// Uses nested splits together with the whole communicator, with messages and requests in a group.
Status nest(Member& me) {
  auto half = me.split(me.rank() / 2, 0);
  if (!half.ok()) return half.status();
  Member& mine = **half;
  auto alone = mine.split(mine.rank(), 0);
  if (!alone.ok()) return alone.status();
  for (int i = 0; i < 10; ++i) {
    std::int32_t one = 1, sum = 0, got = -1;
    const std::int32_t rank = me.rank();
    auto request = mine.start({.in = &one, .out = &sum, .count = 1, .type = DataType::i32});
    if (!request.ok()) return request.status();
    if (sum_of(me, 1) != me.ranks() || sum_of(**alone, 7) != 7) return wrong("sum");
    if (Status s = request->wait(); !s.ok()) return s;
    if (sum != mine.ranks()) return wrong("sum of a request");
    const Rank right = (mine.rank() + 1) % mine.ranks();
    const Rank left = (mine.rank() + mine.ranks() - 1) % mine.ranks();
    Status s =
        mine.exchange(std::span<const std::int32_t>(&rank, 1), right, std::span(&got, 1), left);
    if (!s.ok()) return s;
    if (got != me.rank() / 2 * 2 + left) return wrong("message in a group");
  }
  return {};
}

Status along_a_grid(Member& me) {
  const int rows = me.ranks() % 2 == 0 ? 2 : 1;
  auto grid = Grid::make(me, {{"row", rows}, {"column", me.ranks() / rows}});
  if (!grid.ok()) return grid.status();
  if (sum_of(grid->axis("row"), 1) != rows) return wrong("sum along rows");
  if (sum_of(grid->axis("column"), 1) != me.ranks() / rows) return wrong("sum along columns");
  return {};
}

int groups(const CallArguments& given) {
  const Joined joined = join(given.options());
  for (const int parts : {1, 2, 3}) {
    if (Status s = divide(*joined.member, parts); !s.ok()) return say(s);
  }
  if (Status s = nest(*joined.member); !s.ok()) return say(s);
  if (Status s = along_a_grid(*joined.member); !s.ok()) return say(s);
  auto survivors = joined.member->shrink();
  if (!survivors.ok()) return say(survivors.status());
  if ((*survivors)->ranks() != given.ranks) return say("lost ranks");
  if (Status s = add_up(**survivors, 1000, 3); !s.ok()) return say(s);
  return say(joined.member->barrier());
}

// A group still works after the members of its parent are destroyed.
int group_outlives(const CallArguments& given) {
  std::unique_ptr<Member> group;
  {
    const Joined joined = join(given.options());
    group = joined.member->split(0, 0).value();
  }
  return say(add_up(*group, 1000, 20));
}

// Splits into two groups; the last rank dies and so ends the second group.
int end_a_group(const CallArguments& given, const SplitOptions& options) {
  const Joined joined = join(given.options());
  auto group = joined.member->split(given.rank / 2, 0, options);
  if (!group.ok()) return say(group.status());
  if (Status s = add_up(**group, 100, 3); !s.ok()) return say(s);
  // After this barrier no rank is in split() any more. (The end may come while some ranks are in
  // the barrier.)
  static_cast<void>(joined.member->barrier());
  if (given.is_last()) {
    kill(getpid(), SIGKILL);
  }
  Status status;
  // The first group lives until the whole communicator ends.
  for (int i = 0; status.ok() && (i < 1000 || given.rank >= 2 || options.ends_parent); ++i) {
    status = add_up(**group, 100, 1);
  }
  if (status.ok()) status = Status(Code::aborted, "lived");
  const Status whole = joined.member->barrier();
  return say(std::string(name_of(status.code())) + ": " + status.text() + "; then " +
             std::string(name_of(whole.code())));
}

// The last rank dies after its part of a split, before it has a group.
int leave_before(const CallArguments& given) {
  Joined joined = join(given.options());
  joined.member->barrier().throw_if_error();
  if (given.is_last()) {
    auto split = StartedSplit::prepare(*joined.member, 0, 0);
    if (!split.ok()) return say(split.status());
    if (Status s = split->request().start(); !s.ok()) return say(s);
    if (Status s = split->request().wait(); !s.ok()) return say(s);
    kill(getpid(), SIGKILL);
  }
  return say(joined.member->split(0, 0).status());
}

// All ranks split repeatedly until they are killed, each at a different time.
int killed_dividing(const CallArguments& given) {
  return work_until_killed(given, given.at > 0 ? given.at + 100 * given.rank : 0,
                           [](Member& me, std::size_t) { return divide(me, 2); });
}

// One rank after the other is killed, at any time, until one is left; `at` chooses the times and
// the last rank. The survivors shrink each time. Some are killed while they shrink.
int survive_kills(const CallArguments& given) {
  const Joined joined = join(given.options());
  const Rank last_rank = given.at % given.ranks;
  std::unique_ptr<Member> smaller;
  Member* now = joined.member.get();
  std::int64_t slowest_us = 0;
  int shrinks = 0;
  for (; now->ranks() > 1; ++shrinks) {
    std::minstd_rand random(static_cast<unsigned>(1000 * given.at + now->ranks()));
    const int after_us[] = {static_cast<int>(random() % 20'000),
                            static_cast<int>(random() % 150'000)};
    std::vector<std::int32_t> there(static_cast<std::size_t>(now->ranks()));
    const std::int32_t self = given.rank;
    Status status = now->all_gather(std::span<const std::int32_t>(&self, 1), std::span(there));
    if (status.ok()) {
      if (!std::is_sorted(there.begin(), there.end()) ||
          std::count(there.begin(), there.end(), self) != 1) {
        return say("wrong survivors");
      }
      std::erase(there, last_rank);
      for (std::size_t i = 0; i < std::min<std::size_t>(2, there.size()); ++i) {
        if (there[there.size() - 1 - i] != self) continue;
        std::thread([us = after_us[i]] {
          std::this_thread::sleep_for(std::chrono::microseconds(us));
          kill(getpid(), SIGKILL);
        }).detach();
      }
    }
    while (status.ok()) status = add_up(*now, 1000, 1);
    if (status.code() != Code::rank_lost) return say(status);
    const auto begin = std::chrono::steady_clock::now();
    auto made = now->shrink();
    if (!made.ok()) return say(made.status());
    const auto took = std::chrono::steady_clock::now() - begin;
    slowest_us = std::max<std::int64_t>(
        slowest_us, std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    smaller = std::move(*made);
    now = smaller.get();
  }
  return say("alone after " + std::to_string(shrinks) + " shrinks, the slowest " +
             std::to_string(slowest_us) + " us");
}

// All ranks but one are killed, at any time of some call; `at` chooses the calls and the last rank.
// Each result is the sum over the listed ranks, and ranks that share a call have had the same set
// in the one before.
int active_kills(const CallArguments& given) {
  Joined joined = join(given.options());
  auto made = ActiveRanks::create(*joined.member, {.wait = std::chrono::milliseconds(20)});
  if (!made.ok()) return say(made.status());
  joined.member.reset();
  ActiveRanks active = std::move(*made);
  const auto n = static_cast<std::size_t>(given.ranks);
  std::minstd_rand random(static_cast<unsigned>(1000 * given.at + given.rank));
  random.discard(10);
  const bool is_last = given.rank == given.at % given.ranks;
  const std::uint64_t last_call = is_last ? 0 : 1 + random() % 100;
  std::uint64_t before = 0;  // the set of the call before, or 0
  int alone = 0, results = 0;
  for (std::uint64_t call = 1; alone < 300; ++call) {
    const std::uint64_t self = std::uint64_t{1} << given.rank;
    const std::array<std::uint64_t, 2> mine = {call, before};
    std::vector<std::uint64_t> theirs(2 * n), sums(3'000, self + call);
    if (call == last_call) {
      std::thread([us = random() % 100] {
        std::this_thread::sleep_for(std::chrono::microseconds(us));
        kill(getpid(), SIGKILL);
      }).detach();
    }
    const auto at_gather = active.all_gather(mine, theirs);
    const auto at_sum = active.all_reduce(sums);
    if (!at_gather.ok()) return say(at_gather.status());
    if (!at_sum.ok()) return say(at_sum.status());
    std::uint64_t set = 0, wanted = 0;
    for (const Rank q : *at_gather) {
      const std::size_t at = 2 * static_cast<std::size_t>(q);
      if (theirs[at] != call) return say("data of another call");
      if (before != 0 && theirs[at + 1] != 0 && theirs[at + 1] != before) return say("two sets");
    }
    for (const Rank q : *at_sum) {
      set |= std::uint64_t{1} << q;
      wanted += (std::uint64_t{1} << q) + call;
    }
    if (set != 0 && (set & self) == 0) return say("a result of others alone");
    if (set != 0 && sums != std::vector<std::uint64_t>(3'000, wanted)) return say("a wrong sum");
    before = set;
    results += set != 0 ? 1 : 0;
    alone = set == self ? alone + 1 : 0;
    // The others are late until they are found dead.
    if (alone > 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return say("alone after " + std::to_string(results) + " results");
}

// Messages between two ranks that are processes.

using Data = std::vector<std::int32_t>;

Data message(Rank from, Rank to, int number, std::size_t count) {
  Data data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + to * 10'000 + number * 100);
  return data;
}

Status wrong_data(const std::string& where) { return {Code::remote_error, "wrong data " + where}; }

// Sends data from rank to rank, from the first to the last.
Status relay(Member& me, std::size_t count) {
  for (int i = 0; i < 20; ++i) {
    Data data(count);
    if (me.rank() == 0) data = message(0, 1, i, count);
    if (me.rank() > 0) {
      if (Status s = me.recv(std::span(data), me.rank() - 1); !s.ok()) return s;
      if (data != message(0, 1, i, count)) return wrong_data("in a relay");
    }
    if (me.rank() + 1 < me.ranks()) {
      if (Status s = me.send(std::span<const std::int32_t>(data), me.rank() + 1); !s.ok()) return s;
    }
  }
  return {};
}

// Messages round a ring, by prepared sends and by exchanges.
Status round_a_ring(Member& me, std::size_t count) {
  const int n = me.ranks();
  const Rank right = (me.rank() + 1) % n, left = (me.rank() + n - 1) % n;
  Data mine(count), theirs(count);
  auto sent = me.prepared().send(mine, right);
  if (!sent.ok()) return sent.status();
  for (int i = 0; i < 5; ++i) {
    const Data next = message(me.rank(), right, i, count);
    std::copy(next.begin(), next.end(), mine.begin());  // a prepared call keeps its address
    const Data wanted = message(left, me.rank(), i, count);
    if (Status s = sent->start(); !s.ok()) return s;
    if (Status s = me.recv(std::span(theirs), left); !s.ok()) return s;
    if (Status s = sent->wait(); !s.ok()) return s;
    if (theirs != wanted) return wrong_data("of a prepared message");
    theirs.assign(count, 0);
    const std::span<const std::int32_t> given(mine);
    if (Status s = me.exchange(given, right, std::span(theirs), left); !s.ok()) return s;
    if (theirs != wanted) return wrong_data("of an exchange");
  }
  return {};
}

// Every rank sends data to every rank, itself included, in random order, with a collective in the
// same group.
Status all_to_all_at_random(Member& me) {
  const int n = me.ranks();
  const auto size = static_cast<std::size_t>(n);
  std::mt19937 own(static_cast<unsigned>(me.rank())), same(3);
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t count = std::size_t{1} << same() % 17;
    std::vector<Data> sent, got(size, Data(count));
    for (Rank r = 0; r < n; ++r) sent.push_back(message(me.rank(), r, turn, count));
    std::vector<int> order(2 * size + 1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), own);
    std::int32_t one = 1, sum = 0;
    const Status status = me.group([&] {
      for (const int what : order) {
        const auto peer = static_cast<std::size_t>(what % n);
        if (what == 2 * n) {
          me.all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1))
              .throw_if_error();
        } else if (what < n) {
          me.send(std::span<const std::int32_t>(sent[peer]), what % n).throw_if_error();
        } else {
          me.recv(std::span(got[peer]), what % n).throw_if_error();
        }
      }
    });
    if (!status.ok()) return status;
    if (sum != n) return wrong_data("of a sum");
    for (Rank r = 0; r < n; ++r) {
      if (got[static_cast<std::size_t>(r)] != message(r, me.rank(), turn, count)) {
        return wrong_data("from rank " + std::to_string(r));
      }
    }
  }
  return {};
}

int messages(const CallArguments& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  // Counts that fit in a line, in a slot, and in neither, so scratch must grow and move.
  for (const std::size_t count : {0u, 1u, 12u, 500u, 5'000u, 300'000u}) {
    if (Status s = relay(me, count); !s.ok()) return say(s);
    if (Status s = round_a_ring(me, count); !s.ok()) return say(s);
  }
  if (Status s = all_to_all_at_random(me); !s.ok()) return say(s);
  return say(me.barrier());
}

// A message in flight arrives after the end of its sender; the next receive fails.
int message_outlives(const CallArguments& given) {
  const Joined joined = join(given.options());
  const Data data = message(0, 1, 0, 10);
  if (given.rank == 0) return say(joined.member->send(std::span<const std::int32_t>(data), 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Data got(10);
  if (Status s = joined.member->recv(std::span(got), 0); !s.ok()) return say(s);
  if (got != data) return say(wrong_data("of one that has ended"));
  return say(joined.member->recv(std::span(got), 0));
}

int messages_until_killed(const CallArguments& given) {
  return work_until_killed(given, given.is_last() ? given.at : 0, round_a_ring);
}

// Ranks that are processes, on modelled networks: after every call each rank's time must equal the
// simulator's to the last digit, and the data must be right.

// Calls every algorithm that the network can carry; returns the number of calls.
int call_all(Member& me, Rank of_all, const std::vector<Rank>& members, SimulatedTimes& told) {
  const auto n = static_cast<int>(members.size());
  CaseBuffers buffers;
  int made = 0;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective == Collective::barrier) continue;
    const auto params = told.params_for(entry, members, n / 2);
    if (!params) continue;
    const std::size_t count = 250 + static_cast<std::size_t>(made);
    CollectiveCase test{.collective = entry.collective,
                        .ranks = n,
                        .count = count,
                        .type = DataType::u32,
                        .root = params->root,
                        .peer = entry.takes("peer") ? params->peer : (params->root + 1) % n,
                        .seed = static_cast<std::uint64_t>(made),
                        .options = {.algorithm = entry.name}};
    set_parameters(*params, test.options);
    if (const std::string fault = run_case(me, test, buffers); !fault.empty()) {
      throw Error(Code::remote_error, std::string(entry.name) + ": " + fault);
    }
    const std::size_t blocks =
        static_cast<std::size_t>(natural_blocks(entry.collective, n)) /
        (entry.collective == Collective::all_to_all ? static_cast<std::size_t>(n) : 1);
    told.call(entry, *params, members, count * blocks * 4).status().throw_if_error();
    if (me.model_time() != told.seconds(of_all)) {
      throw Error(Code::remote_error, std::string(entry.name) + ": the model's time is " +
                                          std::to_string(me.model_time() * 1e6) + " us, not " +
                                          std::to_string(told.seconds(of_all) * 1e6));
    }
    ++made;
  }
  return made;
}

// Calls of all ranks, of groups with separate times, and messages between ranks.
int keep_simulated_time(const CallArguments& given) {
  const auto network = find_call_network(std::getenv("RANKINE_NETWORK")).value();
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  SimulatedTimes told(*network, given.ranks);
  std::vector<Rank> all, halves[2];
  for (Rank r = 0; r < given.ranks; ++r) {
    all.push_back(r);
    halves[r % 2].push_back(r);
  }
  int made = call_all(me, given.rank, all, told);
  // A split uses an all-gather of any algorithm, so the time restarts after it.
  const auto group = me.split(given.rank % 2, given.rank).value();
  me.barrier().throw_if_error();
  joined.communicator->restart_model_time();
  SimulatedTimes of_groups(*network, given.ranks);
  made += call_all(*group, given.rank, halves[given.rank % 2], of_groups);
  std::vector<std::int32_t> data(1000, given.rank);
  if (given.rank == 0) me.send(std::span<const std::int32_t>(data), 1).throw_if_error();
  const double before = me.model_time();
  if (given.rank == 1) {
    me.recv(std::span(data), 0).throw_if_error();
    if (data[999] != 0) return say("wrong message");
    if (me.model_time() <= before) return say("a message takes no time");
  }
  me.barrier().throw_if_error();
  return say(made > 60 ? "ok" : "only " + std::to_string(made) + " calls");
}

// The processes agree on one dilation of their wall clocks, and keep deadlines.
int keep_wall_time(const CallArguments& given) {
  const Joined joined = join(given.options());
  if (Status status = add_up(*joined.member, 1000, 5); !status.ok()) return say(status);
  joined.communicator->restart_model_time();
  if (Status status = add_up(*joined.member, 1000, 5); !status.ok()) return say(status);
  const NetworkReport report = joined.communicator->network_report();
  if (report.lateness.deadlines == 0) return say("no deadlines");
  const double least = report.seconds * report.dilate;  // real seconds
  if (report.elapsed < least) return say("time runs too fast");
  return say("dilated " + std::to_string(report.dilate));
}

const Plays& plays() {
  static const Plays all = {
      {"sweep", sweep},
      {"sizes", sizes},
      {"sweep_payloads", sweep_payloads},
      {"sweep_reads", [](const CallArguments& given) { return sweep(given.reads_all()); }},
      {"reads", read_around},
      {"forms", try_forms},
      {"reads_filtered",
       [](const CallArguments& given) {
         if (given.is_last()) faults::refuse_calls({SYS_process_vm_readv});
         return read_around(given);
       }},
      {"reads_untraceable",
       [](const CallArguments& given) {
         if (given.is_last()) prctl(PR_SET_DUMPABLE, 0);
         return read_around(given);
       }},
      {"reads_no_memory", read_no_memory},
      {"reads_killed_at", [](const CallArguments& given) { return survive(given.reads_all()); }},
      {"allocate", allocate_and_free},
      {"allocate_much", allocate_much},
      {"payloads_killed_at", survive_with_payloads},
      {"create", [](const CallArguments& given) { return say(create(given.options())); }},
      {"hurried", [](const CallArguments& given) { return say(create(given.options())); }},
      {"other_costs",
       [](const CallArguments& given) {
         CommunicatorOptions options = given.options();
         options.costs = costs_with({{&Costs::claim_copy_min_bytes, 8192}});
         return say(create(options));
       }},
      {"again_if_refused",
       [](const CallArguments& given) {
         CommunicatorOptions options = given.options();
         if (given.is_last()) options.costs = costs_with({{&Costs::claim_copy_min_bytes, 8192}});
         const Status first = create(options);
         options.costs.reset();
         const Status second = create(options);
         return say(std::string(name_of(first.code())) + ", then " +
                    std::string(name_of(second.code())));
       }},
      {"scribbles_on_seats",
       [](const CallArguments& given) { return outlive(given, scribble_on_seats); }},
      {"scribbles_on_record",
       [](const CallArguments& given) { return outlive(given, scribble_on_record); }},
      {"scribbles_on_page",
       [](const CallArguments& given) { return outlive(given, scribble_on_page); }},
      {"waits_with_a_child", wait_with_a_child},
      {"killed_at", survive},
      {"writes_to_closed_streams", write_to_closed_streams},
      {"bound_apart", [](const CallArguments& given) { return wait_bound(given, given.rank); }},
      {"bound_together", [](const CallArguments& given) { return wait_bound(given, 0); }},
      {"user_op", combine_by_own},
      {"groups", groups},
      {"group_outlives", group_outlives},
      {"dies_in_a_group", [](const CallArguments& given) { return end_a_group(given, {}); }},
      {"dies_in_a_group_of_all",
       [](const CallArguments& given) { return end_a_group(given, {.ends_parent = true}); }},
      {"dies_before_a_group", leave_before},
      {"groups_killed_at",
       [](const CallArguments& given) {
         CallArguments one = given;
         if (!given.is_last()) one.at = 0;
         return killed_dividing(one);
       }},
      {"groups_all_killed_at", killed_dividing},
      {"survives_kills", survive_kills},
      {"active_kills", active_kills},
      {"messages", messages},
      {"message_outlives", message_outlives},
      {"messages_killed_at", messages_until_killed},
      {"keeps_simulated_time", keep_simulated_time},
      {"keeps_wall_time", keep_wall_time},
  };
  return all;
}

}  // namespace
}  // namespace rankine::testing_processes

int main(int argc, char** argv) try {
  using namespace rankine::testing_processes;
  if (argc < 5 || !plays().contains(argv[4])) return 2;
  const std::string play = argv[4];
  CallArguments given{argv[1], 0, std::atoi(argv[3])};
  std::istringstream list(argv[2]);
  for (std::string one; std::getline(list, one, ',');) {
    household().ranks.push_back(std::atoi(one.c_str()));
  }
  if (argc > 5) given.at = std::atoi(argv[5]);
  if (argc > 6) given.signal = std::atoi(argv[6]);
  // Timeouts of plays in which a rank does not come.
  if (play == "hurried") given.timeout = std::chrono::milliseconds(500);
  if (play.ends_with("killed_at")) given.timeout = std::chrono::seconds(3);
  const auto play_rank = [&play](CallArguments of_rank, rankine::Rank r) {
    of_rank.rank = r;
    try {
      return plays().at(play)(of_rank);
    } catch (const std::exception& error) {
      return say(std::string(error.what()));
    }
  };
  const std::vector<rankine::Rank>& ranks = household().ranks;
  int code = 0;
  rankine::on_threads(
      static_cast<int>(ranks.size()) - 1,
      [&](int i) { play_rank(given, ranks[static_cast<std::size_t>(i) + 1]); },
      [&] { code = play_rank(given, ranks.front()); });
  return code;
} catch (const std::exception& error) {
  return rankine::testing_processes::say(std::string(error.what()));
}
