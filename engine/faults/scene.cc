#include "engine/faults/scene.h"
#include "engine/api/first_count.h"

#include <sched.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>
#include <thread>

#include "engine/api/call_parameters.h"
#include "engine/base/splitmix.h"
#include "engine/faults/failing_new.h"
#include "engine/run/machine.h"

namespace rankine::faults {

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
    // Left open, it is a board where that suits.
    constexpr std::optional<Transport> kTransports[] = {std::nullopt, Transport::mailbox,
                                                        Transport::direct};
    call.options.transport = kTransports[dice.below(3)];
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
  const Algorithm* line = find_algorithm(call.collective, call.options.algorithm);
  if (line == nullptr) return 1;
  Params params = params_of(call.options, call.ranks);
  params.root = call.root;
  params.peer = call.peer;
  params.segments = std::max(1, params.segments);
  return std::max(1, line->make(params).rounds);
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

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; !condition(); ++i) {
    if (i < 100) {
      sched_yield();
    } else {
      sleep_ns(200'000);
    }
  }
}

void on_threads(int ranks, const std::function<void(Rank)>& f,
                const std::function<void()>& director) {
  std::vector<std::thread> threads;
  for (Rank r = 0; r < ranks; ++r) threads.emplace_back(f, r);
  if (director) director();
  for (std::thread& thread : threads) thread.join();
}

CommunicatorOptions communicator_options(const FaultCase& test) {
  return {.ranks = test.ranks, .timeout = kLong, .tuned = false};
}

TeamOptions team_options(const FaultCase& test) {
  return {.ranks = test.ranks, .timeout = kLong, .tuned = false};
}

namespace {

// Processes meet within the timeout of their calls, and are made anew for each case: a short one is
// longer.
Promise promise_of(const FaultCase& test, const Promise& promise) {
  Promise kept = promise;
  const std::chrono::milliseconds least(100 + 20 * test.ranks);
  if (test.processes) kept.timeout = std::max(kept.timeout, least);
  return kept;
}

CommunicatorOptions options_of(const FaultCase& test, const Judge& judge,
                               const SceneOptions& wishes) {
  CommunicatorOptions options = communicator_options(test);
  options.timeout = judge.promise().timeout;
  options.arenas = wishes.arenas;
  options.wait = wishes.wait;
  options.network = wishes.network;
  return options;
}

}  // namespace

Scene::Scene(const FaultCase& test, const Promise& promise, Tally& tally,
             const SceneOptions& wishes)
    : test_(test),
      wishes_(wishes),
      tally_(tally),
      judge_(test_, promise_of(test, promise), tally),
      threads_(static_cast<std::size_t>(test.ranks)) {
  if (wishes.stage != nullptr) play_on(*wishes.stage);
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

void Scene::run(const std::function<void(Seat&)>& f, const std::function<void()>& director) {
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

void Scene::play_on(ProcessStage& stage) {
  stage_ = &stage;
  done_ = &stage.done();
  started_ = &stage.started();
  arrived_ = &stage.arrived();
  judge_.share_fault_time(stage.fault_ns());
}

void Scene::run_processes(const std::function<void(Seat&)>& f,
                          const std::function<void()>& director) {
  own_stage_ = std::make_unique<ProcessStage>(test_.ranks);
  play_on(*own_stage_);
  const auto reports = stage_->run({.first = [&](Rank r) { play_rank(r, f, director); },
                                    .afresh = [&](Rank r, int ranks) { begin_afresh(r, ranks); },
                                    .report =
                                        [&] {
                                          return ProcessStage::Report{tally_, judge_.text()};
                                        }},
                                   to_string(test_), tally_);
  std::optional<std::string> text;
  for (const ProcessStage::Report& report : reports) {
    tally_ += report.tally;
    tally_.impossible = std::min<std::int64_t>(tally_.impossible, 1);
    if (!report.text) continue;
    if (!text) text = report.text;
    if (*text != *report.text) {
      judge_.blame("a rank is told '" + *report.text + "', another rank '" + *text + "'");
    }
  }
}

Result<std::unique_ptr<Member>> Scene::join_as_a_process(Rank r,
                                                         const CommunicatorOptions& options) {
  std::optional<AllocationsCount> counts;
  if (wishes_.allocations_count) counts.emplace();
  const FirstCount first_count(wishes_.first_count);
  auto made = Communicator::create(options);
  if (!made.ok()) return made.status();
  communicator_ = std::move(*made);
  return communicator_->join(r);
}

void Scene::play_rank(Rank r, const std::function<void(Seat&)>& f,
                      const std::function<void()>& director) {
  tally_ = {};  // this process's own
  if (wishes_.before_they_meet) wishes_.before_they_meet(r);
  CommunicatorOptions options = options_of(test_, judge_, wishes_);
  options.rank = r;
  options.name = stage_->name();
  if (wishes_.asks_for) wishes_.asks_for(r, options);
  const std::int64_t begin_ns = clock_of_promises();
  std::optional<Status> told;
  if (wishes_.instead_of_meeting) told = wishes_.instead_of_meeting(r, options);
  auto member = told ? Result<std::unique_ptr<Member>>(*told) : join_as_a_process(r, options);
  if (wishes_.after_they_meet) wishes_.after_they_meet(r);
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

void Scene::begin_afresh(Rank r, int ranks) {
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
  const std::string name = stage_->name() + "_afresh";
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
  Scene scene(test, {}, tally);
  scene.run([&](Seat& seat) { seat.call(call); });
}

}  // namespace rankine::faults
