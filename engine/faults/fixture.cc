#include "engine/faults/fixture.h"

#include <sched.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <exception>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/environment.h"
#include "engine/base/numbers.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/fault.h"
#include "engine/run/machine.h"

namespace rankine::faults {

std::span<const int> fatal_signals() {
  static const std::vector<int> all = {
      SIGHUP,    SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,  SIGBUS,    SIGFPE,  SIGKILL,
      SIGUSR1,   SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,  SIGSTKFLT, SIGXCPU, SIGXFSZ,
      SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSYS,  SIGRTMIN, SIGRTMAX};
  return all;
}

bool send_signal_later(int signal, int delay_us) {
  std::signal(signal, SIG_DFL);  // the parent process may have set SIG_IGN
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  timer_t timer{};
  const itimerspec soon{{0, 0}, {0, 1 + delay_us * 1'000}};
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
         timer_settime(timer, 0, &soon, nullptr) == 0;
}

std::atomic<std::int64_t>* finished_calls = nullptr;
std::int64_t (*clock_of_promises)() = now_ns;

Judge::Judge(const FaultCase& test, const Promise& promise, Tally& tally)
    : test_(test), promise_(promise), tally_(tally) {}

void Judge::mark_fault() { fault_ns_->store(clock_of_promises()); }

void Judge::blame(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++tally_.undocumented;
  tally_.remark(to_string(test_) + ": " + what);
}

void Judge::blame_wrong(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++tally_.wrong;
  tally_.remark(to_string(test_) + ": " + what);
}

void Judge::excuse(const std::string& why) {
  const std::lock_guard lock(mutex_);
  tally_.impossible = 1;
  tally_.why_impossible = why;
}

bool Judge::answer(const Status& status, const std::optional<Codes>& documented) {
  if (finished_calls != nullptr) finished_calls->fetch_add(1, std::memory_order_relaxed);
  const Codes allowed = documented.value_or(promise_.documented);
  {
    const std::lock_guard lock(mutex_);
    ++tally_.returned[static_cast<std::size_t>(status.code())];
  }
  if (!status.ok() && !allowed.has(status.code())) {
    blame("undocumented " + std::string(name_of(status.code())) + ": " + status.text());
  }
  return status.ok();
}

bool Judge::call(Member& me, CaseBuffers& buffers, const CollectiveCase& test, const How& how) {
  buffers.fill(test, me.rank());
  Call call = call_of(test, buffers);
  if (how.spoil) how.spoil(call);
  const std::int64_t begin_ns = clock_of_promises();
  const Status status = [&] {
    std::optional<AllocationsCount> counts;
    if (how.allocations_count) counts.emplace();
    if (how.make) return how.make(me, call);
    return how.observer != nullptr ? me.call(call, *how.observer) : me.call(call);
  }();
  const std::int64_t end_ns = clock_of_promises();
  if (how.returned) how.returned();

  const std::string who = "rank " + std::to_string(me.rank()) + ", " + to_string(test);
  std::string fault;
  if (answer(status, how.documented)) {
    fault = buffers.check();
  } else if (status.code() == Code::invalid_argument) {
    fault = buffers.check_untouched();
  } else {
    fault = buffers.check_around();
  }
  if (!fault.empty()) {
    blame_wrong(who + ": " + std::string(name_of(status.code())) + ", but " + fault);
  }

  judge_time_and_text(status, begin_ns, end_ns, who, how.excused);
  return status.ok();
}

bool Judge::answer_in_time(const Status& status, std::int64_t begin_ns, const std::string& who,
                           bool excused) {
  answer(status);
  judge_time_and_text(status, begin_ns, clock_of_promises(), who, excused);
  return status.ok();
}

void Judge::judge_time_and_text(const Status& status, std::int64_t begin_ns, std::int64_t end_ns,
                                const std::string& who, bool excused) {
  const std::int64_t fault_ns = fault_ns_->load();
  const bool at_once = promise_.at_once && fault_ns != 0 && !status.ok();
  const std::int64_t due_ns =
      at_once ? std::max(begin_ns, fault_ns) + kGraceNs
              : deadline_after(begin_ns, deadline_after(kGraceNs, saturated_ns(promise_.timeout)));
  const std::lock_guard lock(mutex_);
  if (!excused && end_ns > due_ns) {
    ++tally_.late;
    tally_.remark(to_string(test_) + ": " + who + ": " + std::string(name_of(status.code())) +
                  " came " + std::to_string((end_ns - due_ns) / 1'000'000) + " ms late");
  }
  if (promise_.same_text && !status.ok() && status.code() != Code::invalid_argument) {
    if (!text_) text_ = status.text();
    if (*text_ != status.text()) {
      ++tally_.undocumented;
      tally_.remark(to_string(test_) + ": " + who + " is told '" + status.text() +
                    "', another rank '" + *text_ + "'");
    }
  }
}

std::uint64_t Dice::next() { return splitmix(state_ += kSplitMixStep); }

CollectiveCase good_call(const FaultCase& test, Dice& dice) {
  struct Kind {
    DataType type;
    ReduceOp op;
  };
  constexpr Kind kKinds[] = {
      {DataType::f32, ReduceOp::sum}, {DataType::u32, ReduceOp::sum},
      {DataType::u8, ReduceOp::bxor}, {DataType::f64, ReduceOp::avg},
      {DataType::i64, ReduceOp::max}, {DataType::f16, ReduceOp::min},
  };
  CollectiveCase call;
  call.collective = test.collective;
  call.ranks = test.ranks;
  call.seed = dice.next();
  call.root = dice.below(test.ranks);
  call.peer = dice.below(test.ranks);
  call.in_place = dice.one_in(2);
  call.skew = static_cast<std::size_t>(dice.below(61));
  if (test.collective == Collective::barrier) {
    call.count = 1;
    call.type = DataType::u32;
    call.op = ReduceOp::bor;
  } else {
    do {
      const Kind kind = kKinds[dice.below(static_cast<int>(std::size(kKinds)))];
      call.type = kind.type;
      call.op = kind.op;
    } while (!takes(call.collective, call.type, call.op));
    constexpr std::size_t kCounts[] = {1, 3, 17, 130};
    // An all-to-all moves count * N * N elements.
    const int sizes = test.collective == Collective::all_to_all && test.ranks > 16 ? 2 : 4;
    call.count = kCounts[dice.below(sizes)];
  }
  if (test.algorithm != nullptr) {
    call.options.algorithm = test.algorithm->name;
    // If left open, the engine takes a board if the call suits one.
    constexpr std::optional<Transport> kTransports[] = {std::nullopt, Transport::mailbox,
                                                        Transport::direct};
    call.options.transport = kTransports[dice.below(ports_of(test) > 0 ? 2 : 3)];
    if (test.algorithm->takes("segments") && dice.one_in(2)) call.options.segments = 3;
  }
  call.displaced = dice.one_in(2);
  return call;
}

CollectiveCase meeting(const FaultCase& test, int ranks) {
  return {.collective = Collective::all_reduce,
          .ranks = ranks,
          .count = 5,
          .type = DataType::u32,
          .seed = test.seed};
}

int rounds_of(const CollectiveCase& call) {
  const Algorithm* entry = find_algorithm(call.collective, call.options.algorithm);
  if (entry == nullptr) return 1;
  Params params = params_of(call.options, call.ranks);
  params.root = call.root;
  params.peer = call.peer;
  params.segments = std::max(1, params.segments);
  return std::max(1, entry->make(params).rounds);
}

std::optional<timer_t> timer_of_this_thread(int signal) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event._sigev_un._tid = static_cast<pid_t>(thread_id());
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return std::nullopt;
  return timer;
}

Limit::Limit(__rlimit_resource_t what, rlim_t most) : what_(what) {
  getrlimit(what_, &before_);
  rlimit limit = before_;
  limit.rlim_cur = std::min(most, before_.rlim_max);
  setrlimit(what_, &limit);
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; !condition(); ++i) {
    if (i < 100) {
      sched_yield();
    } else {
      sleep_ns(200'000);
    }
  }
}

namespace {

// Cases of these faults draw a port budget and a placement. The other faults set options
// themselves.
bool draws_options(const FaultCase& test) {
  return test.fault != nullptr && test.fault->grain == Grain::algorithm &&
         !test.fault->sets_options;
}

// Threads play many cases, and a pin is for good, so only processes are placed.
std::optional<PlacementPolicy> placement_of(const FaultCase& test) {
  if (!draws_options(test) || !test.processes) return std::nullopt;
  constexpr std::array kKinds = {PlacementPolicy::Kind::none, PlacementPolicy::Kind::compact,
                                 PlacementPolicy::Kind::scatter};
  return PlacementPolicy{.kind = kKinds[test.seed / 4 % kKinds.size()], .cpus = {}};
}

}  // namespace

int ports_of(const FaultCase& test) {
  constexpr std::array kPorts = {0, 0, 1, 2};
  return draws_options(test) ? kPorts[test.seed % kPorts.size()] : 0;
}

CommunicatorOptions communicator_options(const FaultCase& test) {
  return {.ranks = test.ranks,
          .timeout = kLong,
          .tuned = false,
          .placement = placement_of(test),
          .ports = ports_of(test)};
}

TeamOptions team_options(const FaultCase& test) {
  return {.ranks = test.ranks, .timeout = kLong, .tuned = false, .ports = ports_of(test)};
}

namespace {

// Processes meet within the timeout of their calls, and are made anew for each case: a short
// timeout becomes longer.
Promise promise_of(const FaultCase& test, const Promise& promise) {
  Promise kept = promise;
  const std::chrono::milliseconds least(100 + 20 * test.ranks);
  if (test.processes) kept.timeout = std::max(kept.timeout, least);
  return kept;
}

CommunicatorOptions options_of(const FaultCase& test, const Judge& judge,
                               const RankFixtureOptions& wishes) {
  CommunicatorOptions options = communicator_options(test);
  options.timeout = judge.promise().timeout;
  options.arenas = wishes.arenas;
  options.wait = wishes.wait;
  options.network = wishes.network;
  if (wishes.network != nullptr) options.ports = 0;  // a network has its own
  return options;
}

}  // namespace

RankFixture::RankFixture(const FaultCase& test, const Promise& promise, Tally& tally,
                         const RankFixtureOptions& wishes)
    : test_(test),
      wishes_(wishes),
      tally_(tally),
      judge_(test_, promise_of(test, promise), tally),
      threads_(static_cast<std::size_t>(test.ranks)) {
  if (wishes.processes != nullptr) run_on(*wishes.processes);
  if (test.processes) return;
  const FirstCount first_count(wishes.first_count);
  auto made = Communicator::create(options_of(test, judge_, wishes));
  if (!made.ok()) {
    judge_.answer(made.status());
    return;
  }
  std::vector<Seat> seats(static_cast<std::size_t>(test.ranks));
  for (Rank r = 0; r < test.ranks; ++r) {
    auto member = (*made)->join(r);
    if (!member.ok()) {
      judge_.answer(member.status());
      return;
    }
    seats[static_cast<std::size_t>(r)].judge = &judge_;
    seats[static_cast<std::size_t>(r)].member = std::move(*member);
  }
  communicator_ = std::move(*made);
  seats_ = std::move(seats);
}

void RankFixture::run(const std::function<void(Seat&)>& f, const std::function<void()>& director) {
  if (!works()) return;
  if (test_.processes) return run_processes(f, director);
  done_->store(0);
  started_->store(0);
  on_threads(
      static_cast<int>(seats_.size()),
      [&](Rank r) {
        threads_[static_cast<std::size_t>(r)].store(pthread_self());
        started_->fetch_add(1);
        f(seats_[static_cast<std::size_t>(r)]);
        done_->fetch_add(1);
      },
      director);
  if (wishes_.in_the_end) wishes_.in_the_end();
}

void RankFixture::run_on(ProcessFixture& processes) {
  processes_ = &processes;
  done_ = &processes.done();
  started_ = &processes.started();
  arrived_ = &processes.arrived();
  judge_.share_fault_time(processes.fault_ns());
}

void RankFixture::run_processes(const std::function<void(Seat&)>& f,
                                const std::function<void()>& director) {
  own_processes_ = std::make_unique<ProcessFixture>(test_.ranks);
  run_on(*own_processes_);
  const auto reports =
      processes_->run({.first = [&](Rank r) { run_rank(r, f, director); },
                       .afresh = [&](Rank r, int ranks) { begin_afresh(r, ranks); },
                       .report =
                           [&] {
                             return ProcessFixture::Report{tally_, judge_.text()};
                           }},
                      to_string(test_), tally_);
  std::optional<std::string> text;
  for (const ProcessFixture::Report& report : reports) {
    tally_ += report.tally;
    tally_.impossible = std::min<std::int64_t>(tally_.impossible, 1);
    if (!report.text) continue;
    if (!text) text = report.text;
    if (*text != *report.text) {
      judge_.blame("a rank is told '" + *report.text + "', another rank '" + *text + "'");
    }
  }
}

Result<std::unique_ptr<Member>> RankFixture::join_as_a_process(Rank r,
                                                               const CommunicatorOptions& options) {
  std::optional<AllocationsCount> counts;
  if (wishes_.allocations_count) counts.emplace();
  const FirstCount first_count(wishes_.first_count);
  auto made = Communicator::create(options);
  if (!made.ok()) return made.status();
  communicator_ = std::move(*made);
  return communicator_->join(r);
}

void RankFixture::run_rank(Rank r, const std::function<void(Seat&)>& f,
                           const std::function<void()>& director) {
  tally_ = {};  // this process's tally only
  if (wishes_.before_meeting) wishes_.before_meeting(r);
  CommunicatorOptions options = options_of(test_, judge_, wishes_);
  options.rank = r;
  options.name = processes_->name();
  if (wishes_.asks_for) wishes_.asks_for(r, options);
  const std::int64_t begin_ns = clock_of_promises();
  std::optional<Status> told;
  if (wishes_.instead_of_meeting) told = wishes_.instead_of_meeting(r, options);
  auto member = told ? Result<std::unique_ptr<Member>>(*told) : join_as_a_process(r, options);
  if (wishes_.after_meeting) wishes_.after_meeting(r);
  const std::string who = "rank " + std::to_string(r) + " that meets the others";
  if (judge_.answer_in_time(member.status(), begin_ns, who) && !told) {
    seats_.resize(1);
    seats_[0].judge = &judge_;
    seats_[0].member = std::move(*member);
  }
  std::thread directs;
  threads_[static_cast<std::size_t>(r)].store(pthread_self());
  started_->fetch_add(1);
  if (!seats_.empty()) {
    if (director && r == wishes_.director_at) directs = std::thread(director);
    f(seats_[0]);
  }
  done_->fetch_add(1);
  if (directs.joinable()) directs.join();
}

void RankFixture::begin_afresh(Rank r, int ranks) {
  if (wishes_.in_the_end) wishes_.in_the_end();
  seats_.clear();
  communicator_.reset();
  FaultCase again = test_;
  again.ranks = ranks;
  if (again.algorithm != nullptr && again.algorithm->refusal({.ranks = ranks})) {
    again.algorithm = nullptr;
  }
  Dice dice(test_.seed);
  const CollectiveCase call = good_call(again, dice);
  Judge judge(test_, {}, tally_);
  CommunicatorOptions options = communicator_options(again);
  options.rank = r;
  const std::string name = processes_->name() + "_afresh";
  options.name = name;
  const auto made = Communicator::create(options);
  if (!judge.answer(made.status())) return;
  const auto member = (*made)->join(r);
  if (!judge.answer(member.status())) return;
  CaseBuffers buffers;
  judge.call(**member, buffers, call);
}

void fresh_start(const FaultCase& test, const CollectiveCase& call, Tally& tally) {
  if (test.processes) return;
  RankFixture fixture(test, {}, tally);
  fixture.run([&](Seat& seat) { seat.call(call); });
}

// The cases of a selection, and the play of one case.

namespace {

// Hash of the case's place in the whole table: a selection's cases get the seeds of the whole run.
std::uint64_t seed_of(const FaultCase& test, std::uint64_t seed, int repetition) {
  std::uint64_t hash = seed * 0x100000001b3u;
  const auto mix = [&hash](std::uint64_t n) {
    hash = (hash ^ n) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  mix(static_cast<std::uint64_t>(test.fault->number));
  mix(static_cast<std::uint64_t>(test.collective));
  if (test.algorithm != nullptr) {
    mix(static_cast<std::uint64_t>(test.algorithm - catalogue().data()) + 1);
  }
  mix(static_cast<std::uint64_t>(test.ranks));
  mix(static_cast<std::uint64_t>(repetition));
  if (test.processes) mix(1);
  return hash % 1'000'000'000;  // short enough to be written down
}

bool is_in(const auto& list, const auto& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::string to_string(const FaultCase& test) {
  std::string text = std::to_string(test.fault->number) + " " + std::string(test.fault->name) +
                     ": " + std::string(name_of(test.collective));
  if (test.algorithm != nullptr) text += " " + std::string(test.algorithm->name);
  return text + " among " + std::to_string(test.ranks) +
         (test.processes ? " processes" : " ranks") + ", seed " + std::to_string(test.seed);
}

std::vector<FaultCase> cases_of(const Selection& selection) {
  std::vector<FaultCase> cases;
  std::vector<int> all_ranks = selection.ranks;
  if (all_ranks.empty() && selection.processes) {
    all_ranks.assign(std::begin(kProcessRanks), std::end(kProcessRanks));
  } else if (all_ranks.empty()) {
    all_ranks.assign(std::begin(kRanks), std::end(kRanks));
  }
  for (const Fault& fault : faults()) {
    if (!is_in(selection.faults, &fault) || !is_played(fault, selection.processes)) continue;
    std::vector<FaultCase> of_fault;
    const auto add = [&](Collective collective, const Algorithm* entry, int ranks) {
      FaultCase test{&fault, collective, entry, ranks, 0, selection.processes};
      const bool in_cycles = fault.play == inject_cycles && selection.cycles > 0;
      const int parts = in_cycles ? (selection.cycles + kMostCycles - 1) / kMostCycles : 1;
      for (int i = 0; i < selection.repeat * parts; ++i) {
        test.seed = seed_of(test, selection.seed, i);
        if (in_cycles)
          test.cycles = std::min(kMostCycles, selection.cycles - i % parts * kMostCycles);
        of_fault.push_back(test);
      }
    };
    for (const int ranks : all_ranks) {
      std::vector<Collective> collectives;
      for (const Collective collective : all_collectives()) {
        if (is_in(selection.collectives, collective) &&
            (fault.applies == nullptr || fault.applies(collective))) {
          collectives.push_back(collective);
        }
      }
      // A fault of Grain::ranks is tried with one collective, another for each number of ranks.
      if (fault.grain == Grain::ranks && !collectives.empty()) {
        add(collectives[static_cast<std::size_t>(ranks) % collectives.size()], nullptr, ranks);
        continue;
      }
      for (const Collective collective : collectives) {
        if (fault.grain == Grain::collective) {
          add(collective, nullptr, ranks);
          continue;
        }
        for (const Algorithm& entry : catalogue()) {
          if (entry.collective == collective && is_in(selection.algorithms, &entry) &&
              !entry.refusal({.ranks = ranks})) {
            add(collective, &entry, ranks);
          }
        }
      }
    }
    if (selection.sample > 1) {
      // The cases with the lowest seeds: they do not depend on the rest of the selection.
      const auto order = [](const FaultCase& a, const FaultCase& b) { return a.seed < b.seed; };
      const std::size_t keep =
          std::max<std::size_t>(1, of_fault.size() / static_cast<std::size_t>(selection.sample));
      std::sort(of_fault.begin(), of_fault.end(), order);
      of_fault.resize(std::min(of_fault.size(), keep));
    }
    cases.insert(cases.end(), of_fault.begin(), of_fault.end());
  }
  return cases;
}

Tally play(const FaultCase& test) {
  Tally tally;
  tally.cases = 1;
  try {
    Dice dice(test.seed);
    const CollectiveCase good = good_call(test, dice);
    test.fault->play(test, dice, good, tally);
    fresh_start(test, good, tally);
  } catch (const std::exception& error) {
    ++tally.undocumented;
    tally.remark(to_string(test) + ": threw " + error.what());
  }
  return tally;
}

}  // namespace rankine::faults
