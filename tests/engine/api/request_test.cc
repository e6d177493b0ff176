// Requests: calls that are started and waited for later, on every transport, mixed with blocking
// calls, once and repeatedly, by one thread for all ranks, with failures. The progress thread, and
// other work during waits (set_yield_callback()), are tested too.

#include "engine/api/request.h"
#include "engine/api/network.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "engine/run/user_functions.h"
#include "engine/run/wait.h"
#include "numa/cpus.h"
#include "numa/topology.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::chrono::milliseconds kLong{60'000};

// An all-reduce with a known result.
class Sum {
 public:
  Sum(const Member& me, std::size_t count, int number) : in_(count), out_(count, -1) {
    for (std::size_t i = 0; i < count; ++i) {
      in_[i] = value(me.rank(), i, number);
      for (Rank r = 0; r < me.ranks(); ++r)
        wanted_.resize(count), wanted_[i] += value(r, i, number);
    }
  }
  Call call() {
    return {.collective = Collective::all_reduce,
            .in = in_.data(),
            .out = out_.data(),
            .count = in_.size(),
            .type = DataType::i32};
  }
  bool is_right() const { return out_ == wanted_; }
  void forget() { std::fill(out_.begin(), out_.end(), -1); }

 private:
  static std::int32_t value(Rank r, std::size_t i, int number) {
    return static_cast<std::int32_t>(i) * 7 + (r + 1) * (number + 3);
  }
  std::vector<std::int32_t> in_, out_, wanted_;
};

int a_core() { return Topology::detect().cpus().front().os_index; }

// The ring has several rounds: a rank's part cannot complete at once, and no peer can complete it.
Call ring_of(std::vector<float>& x) {
  return {.collective = Collective::all_reduce,
          .in = x.data(),
          .out = x.data(),
          .count = x.size(),
          .options = {.algorithm = "ring"}};
}

// The parameter: the ranks make progress, or a separate thread does.
class Requests : public testing::TestWithParam<bool> {
 protected:
  static std::optional<int> core() { return GetParam() ? std::optional(a_core()) : std::nullopt; }
};
INSTANTIATE_TEST_SUITE_P(ByProgressThread, Requests, testing::Bool());

TEST_P(Requests, AreStartedAgainAndAgain) {
  Ranks all({.ranks = 4, .timeout = kLong, .progress_core = core()});
  expect_ok(all.run([&](Member& me) -> Status {
    Sum small(me, 2, 1), large(me, 50'000, 2);
    // prepare() is not a call, so its order may differ between ranks.
    auto one = me.prepare(me.rank() % 2 == 0 ? small.call() : large.call());
    auto other = me.prepare(me.rank() % 2 == 0 ? large.call() : small.call());
    if (!one.ok() || !other.ok()) return one.ok() ? other.status() : one.status();
    Request& s = me.rank() % 2 == 0 ? *one : *other;
    Request& l = me.rank() % 2 == 0 ? *other : *one;
    for (int i = 0; i < 50; ++i) {
      for (Request* request : {&s, &l}) {
        if (Status status = request->start(); !status.ok()) return status;
      }
      for (Request* request : {&l, &s}) {
        if (Status status = request->wait(); !status.ok()) return status;
      }
      EXPECT_TRUE(small.is_right() && large.is_right());
      small.forget(), large.forget();
    }
    return {};
  }));
}

TEST_P(Requests, OfAllRanksAreDrivenByOneThread) {
  for (const int ranks : {1, 3, 16}) {
    const auto n = static_cast<std::size_t>(ranks);
    Ranks all({.ranks = ranks, .timeout = kLong, .progress_core = core()});
    std::mt19937 random(static_cast<unsigned>(ranks));
    std::vector<CaseBuffers> buffers(n);
    for (const std::size_t count : {1U, 300U, 20'000U}) {
      for (const Collective collective : all_collectives()) {
        if (collective == Collective::barrier) continue;
        const CollectiveCase test{
            .collective = collective, .ranks = ranks, .count = count, .peer = ranks - 1};
        std::vector<Request> requests;
        for (std::size_t r = 0; r < n; ++r) {
          buffers[r].fill(test, static_cast<Rank>(r));
          requests.push_back(all.members()[r]->start(call_of(test, buffers[r])).value());
        }
        std::vector<bool> over(n, false);
        while (std::find(over.begin(), over.end(), false) != over.end()) {
          const std::size_t r = random() % n;
          over[r] = requests[r].test().value();
        }
        for (std::size_t r = 0; r < n; ++r) EXPECT_EQ(buffers[r].check(), "") << to_string(test);
      }
    }
  }
}

// All ranks start and make the same random calls, and each waits in a different random order.
TEST_P(Requests, MixWithCalls) {
  Ranks all({.ranks = 5, .timeout = kLong, .progress_core = core()});
  expect_ok(all.run([&](Member& me) -> Status {
    std::mt19937 same(7), own(static_cast<unsigned>(me.rank()));
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<std::unique_ptr<Sum>> sums;
      std::vector<Request> requests;
      const auto many = 1 + same() % 5;
      for (unsigned i = 0; i < many; ++i) {
        const std::size_t count = std::size_t{1} << same() % 15;
        sums.push_back(std::make_unique<Sum>(me, count, static_cast<int>(i)));
        if (same() % 3 == 0) {
          if (Status status = me.call(sums.back()->call()); !status.ok()) return status;
          continue;
        }
        auto request = me.start(sums.back()->call());
        if (!request.ok()) return request.status();
        requests.push_back(std::move(*request));
      }
      std::shuffle(requests.begin(), requests.end(), own);
      for (Request& request : requests) {
        if (Status status = request.wait(); !status.ok()) return status;
      }
      for (const auto& sum : sums) EXPECT_TRUE(sum->is_right());
    }
    return {};
  }));
}

// Every end of a communicator ends all requests that are under way, those in flight and those
// behind them.
TEST_P(Requests, AreToldOfTheEnd) {
  struct End {
    Code code;
    std::string words;
    std::function<void(Ranks&, std::vector<Request>&)> end;
  };
  std::thread other_call;  // needs the progress of rank 0's requests
  for (const auto& [code, words, end] : std::vector<End>{
           {Code::rank_lost, "has left", [](Ranks&all, auto&) { all.drop(1), all.drop(2); }},
           {Code::aborted, "enough", [](Ranks&all, auto&) { all.communicator().abort("enough"); }},
           {Code::mismatch, "operation is",
            [&](Ranks&all, auto&) {
              other_call = std::thread([&all] {
                std::vector<float> x(10'000);
                Call other = ring_of(x);
                other.op = ReduceOp::max;
                EXPECT_EQ(all.members()[1]->call(other).code(), Code::mismatch);
              });
            }},
           {Code::aborted, "its request of all_reduce",
            [](Ranks&, auto&requests) { requests[1] = Request(); }},
           {Code::aborted, "rank 0 was destroyed while", [](Ranks&all, auto&) { all.drop(0); }}}) {
    Ranks all({.ranks = 3, .timeout = kLong, .progress_core = core()});
    std::vector<float> x(10'000), y(10'000);
    std::vector<Request> requests;
    for (auto* buffer : {&x, &y}) {
      requests.push_back(all.members()[0]->start(ring_of(*buffer)).value());
    }
    end(all, requests);
    const Status status = requests[0].wait();
    if (other_call.joinable()) other_call.join();
    EXPECT_EQ(name_of(status.code()), name_of(code)) << status.text();
    if (all.members()[0] == nullptr) {
      EXPECT_EQ(requests[0].start().code(), Code::invalid_argument) << "its member is gone";
    }
    expect_words(all.communicator().health(), {words});
  }
}

TEST_P(Requests, RefuseWhatTheyCannotDo) {
  Ranks all({.ranks = 2, .timeout = kLong, .progress_core = core()});
  Member &me = *all.members()[0], &other = *all.members()[1];
  Sum sum(me, 10, 1), behind(me, 20, 1), theirs(other, 10, 1);
  Request nothing;
  expect_refused(nothing.wait(), {"has no call"});
  expect_refused(nothing.start(), {"has no call"});
  Call bad = sum.call();
  bad.options.algorithm = "no_such";
  expect_refused(me.start(bad).status(), {"no_such"});
  bad = sum.call();
  bad.in = nullptr;
  expect_refused(me.prepare(bad).status(), {"null"});
  Request request = me.prepare(sum.call()).value();
  expect_refused(request.wait(), {"not under way"});
  expect_refused(request.test().status(), {"not under way"});
  EXPECT_TRUE(request.start().ok());
  expect_refused(request.start(), {"is under way"});
  expect_refused(request.wait_for(-1ms).status(), {"most is -1 ms"});
  bad = behind.call();
  bad.root = 7;
  bad.collective = Collective::broadcast;
  expect_refused(me.start(bad).status(), {"root"});
  // A call behind another is planned in its turn; an error in it is reported then.
  bad = behind.call();
  bad.options.algorithm = "no_such";
  Request late = me.start(bad).value();
  Request answer = other.start(theirs.call()).value();
  expect_refused(late.wait(), {"no_such"});
  EXPECT_TRUE(request.wait().ok());
  EXPECT_TRUE(answer.wait().ok());
  expect_refused(request.wait(), {"is not under way"});
  EXPECT_TRUE(all.communicator().health().ok());
}

TEST_P(Requests, SayWhichOrdersTheirPlansKeep) {
  Ranks all({.ranks = 2, .timeout = kLong, .order = Order::by_rank, .progress_core = core()});
  Member &a = *all.members()[0], &b = *all.members()[1];
  Sum mine(a, 10, 1), later(a, 20, 1), theirs(b, 10, 1), last(b, 20, 1);
  EXPECT_EQ(Request().orders().status().code(), Code::invalid_argument);
  std::vector<Request> requests;
  requests.push_back(a.start(mine.call()).value());
  const auto known = requests[0].orders().value();
  EXPECT_TRUE(known.has(Order::by_rank) && known.has(Order::coherent));
  requests.push_back(a.start(later.call()).value());
  const auto unknown = requests[1].orders();
  EXPECT_TRUE(unknown.status().text().starts_with("the request's all_reduce has no plan yet"));
  EXPECT_EQ(wait_all_for(requests, -1ms).status().text(), "most is -1 ms; allowed are 0 and more");
  const auto early = wait_all_for(requests, 1ms).value();
  EXPECT_FALSE(early);
  requests.push_back(b.start(theirs.call()).value());
  requests.push_back(b.start(last.call()).value());
  const auto late = wait_all_for(requests, kLong).value();
  EXPECT_TRUE(late);
  EXPECT_TRUE(requests[1].orders().ok());
  std::size_t failed = 0;
  EXPECT_EQ(wait_all_for(requests, kLong, &failed).status().code(), Code::invalid_argument);
}

TEST_P(Requests, AndMembersOutliveTheCommunicatorsObject) {
  std::unique_ptr<Member> a, b;
  {
    auto comm =
        Communicator::create({.ranks = 2, .timeout = kLong, .progress_core = core()}).value();
    a = comm->join(0).value();
    b = comm->join(1).value();
  }
  Sum one(*a, 100, 1), other(*b, 100, 1);
  auto first = a->start(one.call());
  auto second = b->start(other.call());
  EXPECT_TRUE(first->wait_for(kLong).ok());
  EXPECT_TRUE(second->wait().ok());
  EXPECT_TRUE(one.is_right() && other.is_right());
  EXPECT_EQ(a->communicator().ranks(), 2);
}

// The model time of a call overlaps with the rank's work meanwhile.
TEST_P(Requests, OverlapWithWorkOnANetwork) {
  const auto network = find_call_network("scale_out").value();
  const auto time = [&](const std::function<Status(Member&)>& f) {
    Ranks all({.ranks = 4, .timeout = kLong, .network = network, .progress_core = core()});
    expect_ok(all.run(f));
    return all.communicator().network_report().seconds;
  };
  constexpr std::size_t kCount = 100'000;
  const double call = time([&](Member& me) {
    Sum sum(me, kCount, 1);
    return me.call(sum.call());
  });
  ASSERT_GT(call, 0);
  const auto beside = [&](double work) {
    return time([&, work](Member& me) -> Status {
      Sum sum(me, kCount, 1);
      auto request = me.start(sum.call());
      if (!request.ok()) return request.status();
      if (Status status = me.compute(work); !status.ok()) return status;
      if (Status status = request->wait(); !status.ok()) return status;
      EXPECT_TRUE(sum.is_right());
      return {};
    });
  };
  EXPECT_DOUBLE_EQ(beside(0), call);
  EXPECT_DOUBLE_EQ(beside(call / 2), call);
  EXPECT_DOUBLE_EQ(beside(call * 3), call * 3);
  // Two calls of one communicator follow one another.
  EXPECT_DOUBLE_EQ(time([&](Member& me) -> Status {
                     Sum a(me, kCount, 1), b(me, kCount, 2);
                     auto first = me.start(a.call());
                     auto second = me.start(b.call());
                     if (Status status = second->wait(); !status.ok()) return status;
                     return first->wait();
                   }),
                   2 * call);
}

// A progress thread for ranks that do other work. It completes started calls, calls on groups, and
// messages; it keeps its core and sleeps when idle. Any end of a communicator has the same effect
// as without the thread. The Requests tests above run with and without the thread.

constexpr int kRanks = 4;

// Ranks 1 and up must complete their calls before rank 0, which has only started its part, makes
// any further call. Without the progress thread all calls would end at their deadline.
void end_other_calls_first(const std::function<Status(Member&, std::vector<Request>&)>& start) {
  Ranks all({.ranks = kRanks, .timeout = kLong, .progress_core = a_core()});
  std::latch done(kRanks - 1);
  const auto results = all.run([&](Member& me) -> Status {
    std::vector<Request> requests;
    if (Status status = start(me, requests); !status.ok()) return status;
    if (me.rank() == 0) {
      done.wait();
      return wait_all(requests);
    }
    Status status = wait_all(requests);
    done.count_down();
    return status;
  });
  expect_ok(results);
}

Status keep(Result<Request> request, std::vector<Request>& requests) {
  if (!request.ok()) return request.status();
  requests.push_back(std::move(*request));
  return {};
}

// From its second start on, a request takes a short way. Fails if that way does not see the end of
// the communicator, or that the member was destroyed.
TEST(PreparedRequest, SeesTheEndOnItsShortWay) {
  const auto communicator = Communicator::create({.ranks = 1, .tuned = false}).value();
  auto member = communicator->join(0).value();
  std::vector<float> x{1, 2}, y(2);
  Request request = member->prepared().all_reduce(std::span<const float>(x), std::span(y)).value();
  for (int i = 0; i < 3; ++i) {
    y = {};
    y.resize(2);
    EXPECT_TRUE(request.start().ok());
    EXPECT_TRUE(request.wait().ok());
    EXPECT_EQ(y, x);
    EXPECT_EQ(request.wait().code(), Code::invalid_argument);
  }
  communicator->abort();
  EXPECT_TRUE(request.start().ok());
  EXPECT_EQ(request.wait().code(), Code::aborted);
  member.reset();
  EXPECT_EQ(request.start().code(), Code::invalid_argument);
}

// A started call of one post and one sum stops between the two. Fails if a way to go on loses the
// call, or does not see its end.
TEST(PreparedRequest, GoesOnAfterItsPost) {
  const auto communicator = Communicator::create({.ranks = 2, .tuned = false}).value();
  std::unique_ptr<Member> first;
  // Members of one thread would share its started calls.
  std::thread([&] { first = communicator->join(0).value(); }).join();
  const auto second = communicator->join(1).value();
  const std::array<float, 2> x{1, 2}, u{3, 4};
  std::array<float, 2> y{}, v{};
  Call other{.in = u.data(), .out = v.data(), .count = 2};
  Request request = first->prepared().all_reduce(std::span(x), std::span(y)).value();
  Request its = second->prepare(other).value();
  const auto end_late = [&](const std::function<Status()>& late) {
    std::thread peer([&] {
      wait_until_waiting(*communicator, 0);
      static_cast<void>(late());
    });
    Status status = request.wait();
    peer.join();
    return status;
  };
  const std::function<Status()> ends[] = {
      [&] { return second->call(other).ok() ? request.wait() : Status(); },
      [&] { return end_late([&] { return second->call(other); }); },
      [&] {
        EXPECT_FALSE(request.test().value());
        EXPECT_TRUE(second->call(other).ok());
        EXPECT_TRUE(request.test().value());
        return request.wait();
      },
      [&] {
        EXPECT_TRUE(second->call(other).ok());
        return first->progress().ok() ? request.wait() : Status();
      },
      [&] {
        EXPECT_FALSE(request.wait_for(1ms).value());
        EXPECT_TRUE(its.start().ok());
        return its.wait().ok() ? request.wait_for(kLong).status() : Status();
      }};
  for (int i = 0; i < 20; ++i) {
    y = v = {};
    ASSERT_TRUE(request.start().ok());
    const Status status = ends[i % std::ssize(ends)]();
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(y, (std::array<float, 2>{4, 6})) << i;
    EXPECT_EQ(v, y) << i;
  }
  EXPECT_TRUE(its.start().ok());
  EXPECT_TRUE(request.start().ok());  // the other post has come
  EXPECT_TRUE(request.wait().ok() && its.wait().ok());
  EXPECT_TRUE(request.start().ok());
  other.op = ReduceOp::max;
  EXPECT_EQ(end_late([&] { return second->call(other); }).code(), Code::mismatch);
  EXPECT_TRUE(request.start().ok());
  EXPECT_EQ(request.wait().code(), Code::mismatch);
}

TEST(ProgressThread, BeginsWhatIsBehindAnother) {
  std::array<std::array<std::vector<float>, 5>, kRanks> x;
  end_other_calls_first([&](Member& me, std::vector<Request>& requests) -> Status {
    for (std::size_t i = 0; i < 5; ++i) {
      auto& mine = x[static_cast<std::size_t>(me.rank())][i];
      mine.assign(1'000 * (i + 1), 1.0F);  // each has a separate plan, made in its turn
      if (Status status = keep(me.start(ring_of(mine)), requests); !status.ok()) return status;
    }
    return {};
  });
  for (const auto& rank : x) {
    for (const auto& mine : rank) EXPECT_EQ(mine, std::vector<float>(mine.size(), kRanks));
  }
}

TEST(ProgressThread, MovesOnGroupsAndMessages) {
  for (const bool own_thread : {false, true}) {
    std::array<std::vector<float>, kRanks> x, sent, got;
    std::array<std::unique_ptr<Member>, kRanks> part;
    end_other_calls_first([&](Member& me, std::vector<Request>& requests) -> Status {
      const auto r = static_cast<std::size_t>(me.rank());
      x[r].assign(10'000, 1.0F);
      // The messages are too long to be in flight before the receive.
      sent[r].assign(1 << 20, static_cast<float>(r));
      got[r].resize(sent[r].size());
      auto split = me.split(0, -me.rank(), {.own_thread = own_thread});
      if (!split.ok()) return split.status();
      part[r] = std::move(*split);
      const Rank right = (me.rank() + 1) % kRanks, left = (me.rank() + kRanks - 1) % kRanks;
      if (Status status = keep(part[r]->start(ring_of(x[r])), requests); !status.ok()) {
        return status;
      }
      if (Status status = keep(me.async().send(std::span<const float>(sent[r]), right), requests);
          !status.ok()) {
        return status;
      }
      return keep(me.async().recv(std::span(got[r]), left), requests);
    });
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(x[r], std::vector<float>(10'000, kRanks));
      EXPECT_EQ(got[r], sent[(r + kRanks - 1) % kRanks]);
    }
    for (auto& member : part) member.reset();
  }
}

TEST(ProgressThread, FindsOutThatTheDeadlineHasPassed) {
  Ranks all({.ranks = 2, .timeout = 30ms, .progress_core = a_core()});
  std::vector<float> x(10), y(10);
  auto first = all.members()[0]->start(ring_of(x));
  auto second = all.members()[0]->start(ring_of(y));
  while (all.communicator().health().ok()) std::this_thread::yield();  // only the thread looks
  EXPECT_EQ(all.communicator().health().code(), Code::timeout);
  EXPECT_EQ(second->wait().code(), Code::timeout);
  EXPECT_EQ(first->test().status().code(), Code::timeout);
  EXPECT_EQ(first->wait().code(), Code::timeout);
}

TEST(ProgressThread, CallsFunctionsThatThrow) {
  Ranks all({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
  const auto throws = [](std::span<const int>, std::span<int>) { throw std::runtime_error("no"); };
  const TypedUserOp<int> op = user_op<int>(throws, Commutes::yes);
  std::latch started(2);
  const auto results = all.run([&](Member& me) -> Status {
    std::vector<int> x(10'000, 1);
    auto request = me.async().all_reduce(std::span(x), op);
    if (!request.ok()) return request.status();
    started.arrive_and_wait();
    return request->wait();
  });
  expect_all(results, Code::remote_error);
}

TEST(ProgressThread, RanksOfATeamMayThrowWhatTheyLike) {
  auto team = Team::create({.ranks = 3, .timeout = kLong, .progress_core = a_core()}).value();
  const Status status = team->run([](Member& me) {
    std::vector<float> x(10'000);
    auto request = me.start(ring_of(x));
    request.status().throw_if_error();
    if (me.rank() == 2) throw std::runtime_error("enough");
    request->wait().throw_if_error();
  });
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(team->run([](Member&) {}).ok());
}

TEST(ProgressThread, IsNotInAForkedChild) {
  Ranks all({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
  std::vector<float> x(10'000, 1), y(10'000, 1);
  auto one = all.members()[0]->start(ring_of(x));
  ASSERT_TRUE(one.ok());
  const std::string child = testing_processes::run_in_child([&] {
    int failed = 0;
    failed |= one->test().status().code() == Code::forked ? 0 : 1;
    failed |= one->wait().code() == Code::forked ? 0 : 2;
    failed |= all.members()[0]->progress().code() == Code::forked ? 0 : 4;
    *one = Request();
    all.drop(0);
    if (!testing_processes::kChildrenMayHaveThreads) return failed;
    // The child creates a communicator with a progress thread.
    Ranks own({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
    std::vector<float> a(10'000, 1), b(10'000, 1);
    auto first = own.members()[0]->start(ring_of(a));
    failed |= own.members()[1]->call(ring_of(b)).ok() ? 0 : 8;
    failed |= first->wait().ok() && a[9'999] == 2 ? 0 : 16;
    return failed;
  });
  EXPECT_EQ(child, "exit 0");
  EXPECT_TRUE(all.members()[1]->call(ring_of(y)).ok());
  EXPECT_TRUE(one->wait().ok());
  EXPECT_EQ(y, std::vector<float>(10'000, 2));
}

TEST(ProgressThread, HasItsCoreForItself) {
  const Topology here = Topology::detect();
  if (here.cores() < 2) GTEST_SKIP() << "there is one core";
  for (const Cpu& cpu : {here.cpus().front(), here.cpus().back()}) {
    const auto on_its_core = [&](const Team& team) {
      return here.find_cpu(team.report().front().place.cpu)->core == cpu.core;
    };
    const auto team = Team::create({.ranks = 1, .progress_core = cpu.os_index}).value();
    EXPECT_FALSE(on_its_core(*team));
  }
  // While the communicator lives, other teams avoid the core too.
  const int first = here.cpus().front().os_index;
  const auto comm = Communicator::create({.ranks = 1, .progress_core = first});
  const auto team = Team::create({.ranks = 1});
  EXPECT_NE((*team)->report().front().place.cpu, first);
}

TEST(ProgressThread, CountsAmongTheThreadsThatPlayRanks) {
  const int cpus = cpu_budget().cpus;
  const auto mode_of = [&](std::optional<int> core) {
    Ranks all({.ranks = cpus, .timeout = kLong, .progress_core = core});
    for (const Status& status : all.run([](Member& me) { return me.barrier(); })) {
      EXPECT_TRUE(status.ok()) << status.text();
    }
    // The thread counts itself as soon as it runs.
    while (core && all.communicator().wait_policy().mode == WaitPolicy::Mode::spin) {
      std::this_thread::yield();
    }
    return all.communicator().wait_policy().mode;
  };
  EXPECT_EQ(mode_of(std::nullopt), WaitPolicy::Mode::spin);
  EXPECT_EQ(mode_of(a_core()), WaitPolicy::Mode::yield);
  EXPECT_EQ(mode_of(std::nullopt), WaitPolicy::Mode::spin);  // the thread has ended
}

// Ranks that call other work while they wait.

struct CountedWork : YieldCallback {
  void give_way(int turn) noexcept override {
    if (turn != next.load(std::memory_order_relaxed)) began_anew.fetch_add(1);
    next.store(turn + 1, std::memory_order_relaxed);
    turns.fetch_add(1);
    std::this_thread::yield();
  }
  std::atomic<int> turns{0}, next{0}, began_anew{0};
};

// Rank 1 waits here until rank 0's wait has called the work three times; returns false after a
// minute.
bool comes_late(const CountedWork& work, int before) {
  const auto hopeless = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (work.turns.load() < before + 3) {
    if (std::chrono::steady_clock::now() > hopeless) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(GiveWay, IsCalledAgainAndAgainWhereARankWaits) {
  Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
  CountedWork work;
  const auto results = all.run([&](Member& me) -> Status {
    if (me.rank() == 0) me.set_yield_callback(&work);
    for (int call = 0; call < 3; ++call) {
      if (Status status = me.barrier(); !status.ok()) return status;
      const int before = work.turns.load();
      if (Status status = me.barrier(); !status.ok()) return status;
      EXPECT_TRUE(me.rank() == 0 || comes_late(work, before));
      std::array<int, 3> data = {1, 2, me.rank()};
      if (Status status = me.all_reduce(std::span(data)); !status.ok()) return status;
      EXPECT_EQ(data, (std::array<int, 3>{2, 4, 1}));
    }
    if (me.rank() == 0) me.set_yield_callback(nullptr);
    if (Status status = me.barrier(); !status.ok()) return status;
    const int after = work.turns.load();
    if (me.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (Status status = me.barrier(); !status.ok()) return status;
    EXPECT_TRUE(me.rank() == 1 || work.turns.load() == after);
    // A wait that gives way still ends at its deadline.
    while (me.rank() == 1 && all.communicator().health().ok()) std::this_thread::yield();
    if (me.rank() == 1) return {};
    me.set_yield_callback(&work);
    EXPECT_EQ(me.barrier({.timeout = 100ms}).code(), Code::timeout);
    return {};
  });
  expect_ok(results);
  EXPECT_GE(work.turns.load(), 9);
  EXPECT_GE(work.began_anew.load(), 2);  // each wait counts from 0
}

}  // namespace
}  // namespace rankine
