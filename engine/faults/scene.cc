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

Scene::Scene(const FaultCase& test, const Promise& promise, Tally& tally,
             const SceneOptions& wishes)
    : judge_(test, promise, tally), threads_(static_cast<std::size_t>(test.ranks)) {
  CommunicatorOptions options = communicator_options(test);
  options.timeout = promise.timeout;
  options.arenas = wishes.arenas;
  options.wait = wishes.wait;
  options.network = wishes.network;
  const FirstCount first_count(wishes.first_count);
  auto made = Communicator::create(options);
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
  done_.store(0);
  started_.store(0);
  on_threads(
      static_cast<int>(seats_.size()),
      [&](Rank r) {
        threads_[static_cast<std::size_t>(r)].store(pthread_self());
        started_.fetch_add(1);
        f(seats_[static_cast<std::size_t>(r)]);
        done_.fetch_add(1);
      },
      director);
}

void fresh_start(const FaultCase& test, const CollectiveCase& call, Tally& tally) {
  Scene scene(test, {}, tally);
  scene.run([&](Seat& seat) { seat.call(call); });
}

}  // namespace rankine::faults
