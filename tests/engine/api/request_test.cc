// Calls that are started and waited for later: on every transport, in any mixture with calls that
// wait, once and again and again, driven by one thread for all ranks; and what may go wrong.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/network.h"
#include "engine/api/request.h"
#include "numa/topology.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::chrono::milliseconds kLong{60'000};

// An all-reduce with a result that everybody knows.
class Sum {
 public:
  Sum(const Member& me, std::size_t count, int number, std::optional<Transport> transport = {})
      : in_(count), out_(count, -1), transport_(transport) {
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
            .type = DataType::i32,
            .options = {.transport = transport_}};
  }
  bool is_right() const { return out_ == wanted_; }
  void forget() { std::fill(out_.begin(), out_.end(), -1); }

 private:
  static std::int32_t value(Rank r, std::size_t i, int number) {
    return static_cast<std::int32_t>(i) * 7 + (r + 1) * (number + 3);
  }
  std::vector<std::int32_t> in_, out_, wanted_;
  std::optional<Transport> transport_;
};

// Whoever makes progress: the ranks themselves, or a thread beside them.
class Requests : public testing::TestWithParam<bool> {
 protected:
  static std::optional<int> core() {
    if (!GetParam()) return std::nullopt;
    return Topology::detect().cpus().front().os_index;
  }
};
INSTANTIATE_TEST_SUITE_P(ByProgressThread, Requests, testing::Bool());

void expect_ok(const std::vector<Status>& results) {
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST_P(Requests, GiveWhatCallsGiveOnEveryTransport) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const auto transport : {std::optional<Transport>(), std::optional(Transport::direct),
                                 std::optional(Transport::mailbox)}) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{700}, std::size_t{40'000}}) {
        Ranks all({.ranks = ranks, .timeout = kLong, .progress_core = core()});
        expect_ok(all.run([&](Member& me) -> Status {
          Sum first(me, count, 1, transport), second(me, count, 2, transport);
          Sum third(me, count, 3, transport);
          for (int i = 0; i < 4; ++i) {
            auto a = me.start(first.call());
            if (!a.ok()) return a.status();
            auto b = me.start(second.call());
            if (!b.ok()) return b.status();
            // One that waits comes after those that were started.
            if (Status status = me.call(third.call()); !status.ok()) return status;
            if (Status status = b->wait(); !status.ok()) return status;
            while (true) {
              const auto over = a->test();
              if (!over.ok()) return over.status();
              if (*over) break;
            }
            if (Status status = a->wait(); !status.ok()) return status;
            EXPECT_TRUE(first.is_right() && second.is_right() && third.is_right())
                << ranks << " ranks, " << count << " elements";
            first.forget(), second.forget(), third.forget();
          }
          return {};
        }));
      }
    }
  }
}

TEST_P(Requests, AreStartedAgainAndAgain) {
  Ranks all({.ranks = 4, .timeout = kLong, .progress_core = core()});
  expect_ok(all.run([&](Member& me) -> Status {
    Sum small(me, 2, 1), large(me, 50'000, 2);
    // Preparing is no call: in any order.
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
  for (const int ranks : {1, 2, 3, 4, 7, 16}) {
    Ranks all({.ranks = ranks, .timeout = kLong, .progress_core = core()});
    std::mt19937 random(static_cast<unsigned>(ranks));
    for (const std::size_t count : {std::size_t{1}, std::size_t{300}, std::size_t{20'000}}) {
      for (const Collective collective :
           {Collective::all_reduce, Collective::broadcast, Collective::all_to_all,
            Collective::reduce_scatter, Collective::all_gather, Collective::scan,
            Collective::exscan, Collective::barrier}) {
        const auto n = static_cast<std::size_t>(ranks);
        std::vector<std::vector<std::int32_t>> in(n), out(n);
        std::vector<Request> requests;
        for (Rank r = 0; r < ranks; ++r) {
          auto& mine = in[static_cast<std::size_t>(r)];
          auto& got = out[static_cast<std::size_t>(r)];
          mine.assign(count * n, r + 1);
          got.assign(count * n, r + 1);
          const bool one_word = collective == Collective::barrier;
          auto request = all.members()[static_cast<std::size_t>(r)]->start(
              {.collective = collective,
               .in = collective == Collective::broadcast ? got.data() : mine.data(),
               .out = got.data(),
               .count = one_word ? 1 : count,
               .type = one_word ? DataType::u32 : DataType::i32,
               .op = one_word ? ReduceOp::bor : ReduceOp::sum});
          ASSERT_TRUE(request.ok()) << request.status().text();
          requests.push_back(std::move(*request));
        }
        std::vector<bool> over(n, false);
        while (std::find(over.begin(), over.end(), false) != over.end()) {
          const std::size_t r = random() % n;
          const auto now = requests[r].test();
          ASSERT_TRUE(now.ok()) << now.status().text();
          over[r] = *now;
        }
        const auto total = static_cast<std::int32_t>(n * (n + 1) / 2);
        for (std::size_t r = 0; r < n; ++r) {
          if (collective == Collective::all_reduce || collective == Collective::reduce_scatter) {
            EXPECT_EQ(out[r][0], total);
          }
          if (collective == Collective::scan) {
            EXPECT_EQ(out[r][0], static_cast<std::int32_t>((r + 1) * (r + 2) / 2));
          }
          if (collective == Collective::exscan) {  // rank 0 keeps what it has
            EXPECT_EQ(out[r][0], r == 0 ? 1 : static_cast<std::int32_t>(r * (r + 1) / 2));
          }
          if (collective == Collective::broadcast) {
            EXPECT_EQ(out[r][0], 1);
          }
          if (collective == Collective::all_gather || collective == Collective::all_to_all) {
            for (std::size_t q = 0; q < n; ++q) {
              EXPECT_EQ(out[r][q * count], static_cast<std::int32_t>(q + 1));
            }
          }
        }
      }
    }
  }
}

// Every rank starts and calls the same at random, and waits in an order of its own.
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

TEST_P(Requests, ThatNobodyAnswersEndAtTheirDeadline) {
  for (const bool waits : {true, false}) {
    Ranks all({.ranks = 2, .timeout = 30ms, .progress_core = core()});
    Member& me = *all.members()[0];
    Sum sum(me, 10, 1);
    auto request = me.start(sum.call());
    ASSERT_TRUE(request.ok());
    Status status;
    if (waits) {
      status = request->wait();
    } else {
      for (;;) {
        const auto over = request->test();
        if (over.ok() && !*over) continue;
        status = over.status();
        break;
      }
    }
    EXPECT_EQ(name_of(status.code()), name_of(Code::timeout));
    EXPECT_NE(status.text().find("rank 1 is in no collective"), std::string::npos) << status.text();
    EXPECT_FALSE(all.communicator().health().ok());
  }
}

TEST_P(Requests, AreToldOfTheEnd) {
  const auto end_of = [&](const std::function<void(Ranks&)>& end) {
    Ranks all({.ranks = 3, .timeout = kLong, .progress_core = core()});
    Member& me = *all.members()[0];
    Sum first(me, 10, 1), second(me, 10, 1);
    auto one = me.start(first.call());
    auto two = me.start(second.call());
    end(all);
    const Status status = two->wait();
    EXPECT_EQ(name_of(one->wait().code()), name_of(status.code()));
    return status;
  };
  EXPECT_EQ(end_of([](Ranks& all) { all.drop(1), all.drop(2); }).code(), Code::rank_lost);
  EXPECT_EQ(end_of([](Ranks& all) { all.communicator().abort("enough"); }).code(), Code::aborted);
  const Status different = end_of([](Ranks& all) {
    std::int32_t data[20] = {};
    auto other = all.members()[1]->start(
        {.in = data, .out = data + 10, .count = 10, .type = DataType::i32, .op = ReduceOp::max});
    EXPECT_FALSE(other->wait().ok());
  });
  EXPECT_EQ(different.code(), Code::mismatch) << different.text();
}

TEST_P(Requests, WaitForAWhile) {
  Ranks all({.ranks = 2, .timeout = kLong, .progress_core = core()});
  Member &a = *all.members()[0], &b = *all.members()[1];
  Sum mine(a, 10, 1), theirs(b, 10, 1);
  auto request = a.start(mine.call());
  const auto early = request->wait_for(5ms);
  ASSERT_TRUE(early.ok()) << early.status().text();
  EXPECT_FALSE(*early);
  auto other = b.start(theirs.call());
  const auto late = request->wait_for(kLong);
  ASSERT_TRUE(late.ok()) << late.status().text();
  EXPECT_TRUE(*late);
  EXPECT_TRUE(other->wait().ok());
  EXPECT_TRUE(mine.is_right() && theirs.is_right());
}

TEST_P(Requests, RefuseWhatTheyCannotDo) {
  const auto refusal = [](const auto& result) {
    if constexpr (requires { result.status(); }) {
      EXPECT_EQ(result.status().code(), Code::invalid_argument);
      return result.status().text();
    } else {
      EXPECT_EQ(result.code(), Code::invalid_argument);
      return result.text();
    }
  };
  Ranks all({.ranks = 1, .timeout = kLong, .progress_core = core()});
  Member& me = *all.members()[0];
  Sum sum(me, 10, 1);
  Request nothing;
  EXPECT_NE(refusal(nothing.wait()).find("of nothing"), std::string::npos);
  EXPECT_NE(refusal(nothing.start()).find("of nothing"), std::string::npos);
  auto prepared = me.prepare(sum.call());
  ASSERT_TRUE(prepared.ok());
  EXPECT_NE(refusal(prepared->wait()).find("was not started, or has been waited for"),
            std::string::npos);
  EXPECT_NE(refusal(prepared->test()).find("not under way"), std::string::npos);
  EXPECT_TRUE(prepared->start().ok());
  EXPECT_TRUE(prepared->wait().ok());
  EXPECT_NE(refusal(prepared->wait()).find("has been waited for"), std::string::npos);
  EXPECT_NE(refusal(prepared->wait_for(-1ms)).find("not under way"), std::string::npos);
  Call bad = sum.call();
  bad.options.algorithm = "no_such";
  EXPECT_NE(refusal(me.start(bad)).find("no_such"), std::string::npos);
  bad = sum.call();
  bad.in = nullptr;
  EXPECT_NE(refusal(me.prepare(bad)).find("null"), std::string::npos);
  EXPECT_TRUE(all.communicator().health().ok());

  Ranks two({.ranks = 2, .timeout = kLong, .progress_core = core()});
  Member& first = *two.members()[0];
  Sum other(first, 10, 1), third(first, 20, 1);
  auto started = first.start(other.call());
  EXPECT_NE(refusal(started->start()).find("is under way"), std::string::npos);
  EXPECT_NE(refusal(started->wait_for(-1ms)).find("most is -1 ms"), std::string::npos);
  bad = third.call();
  bad.root = 7;
  bad.collective = Collective::broadcast;
  EXPECT_NE(refusal(first.start(bad)).find("root"), std::string::npos) << "behind another";
  // Behind another its plan is made when its turn comes; what is wrong with it is told then.
  bad = third.call();
  bad.options.algorithm = "no_such";
  auto late = first.start(bad);
  ASSERT_TRUE(late.ok());
  Sum others(*two.members()[1], 10, 1);
  auto answer = two.members()[1]->start(others.call());
  EXPECT_NE(refusal(late->wait()).find("no_such"), std::string::npos);
  EXPECT_TRUE(started->wait().ok());
  EXPECT_TRUE(answer->wait().ok());
  EXPECT_TRUE(two.communicator().health().ok());
}

TEST_P(Requests, SayWhichOrdersTheirPlansKeep) {
  Ranks all({.ranks = 2, .timeout = kLong, .order = Order::by_rank, .progress_core = core()});
  Member &a = *all.members()[0], &b = *all.members()[1];
  Sum mine(a, 10, 1), later(a, 20, 1), theirs(b, 10, 1), last(b, 20, 1);
  EXPECT_EQ(Request().orders().status().code(), Code::invalid_argument);
  std::vector<Request> requests;
  requests.push_back(a.start(mine.call()).value());
  const auto known = requests[0].orders();
  ASSERT_TRUE(known.ok()) << known.status().text();
  EXPECT_TRUE(known->has(Order::by_rank) && known->has(Order::coherent));
  requests.push_back(a.start(later.call()).value());
  const auto unknown = requests[1].orders();
  EXPECT_EQ(unknown.status().text(),
            "the request's all_reduce was made behind another call and has no plan yet; prepare it "
            "while nothing is under way");
  EXPECT_EQ(wait_all_for(requests, -1ms).status().text(), "most is -1 ms; allowed are 0 or more");
  const auto early = wait_all_for(requests, 1ms);
  ASSERT_TRUE(early.ok()) << early.status().text();
  EXPECT_FALSE(*early);
  requests.push_back(b.start(theirs.call()).value());
  requests.push_back(b.start(last.call()).value());
  const auto late = wait_all_for(requests, kLong);
  ASSERT_TRUE(late.ok()) << late.status().text();
  EXPECT_TRUE(*late);
  EXPECT_TRUE(requests[1].orders().ok());
  std::size_t failed = 0;
  EXPECT_EQ(wait_all_for(requests, kLong, &failed).status().code(), Code::invalid_argument);
}

TEST_P(Requests, ThatAreLetGoUnderWayEndTheCommunicator) {
  {
    Ranks all({.ranks = 2, .timeout = kLong, .progress_core = core()});
    Sum sum(*all.members()[0], 10, 1);
    { auto request = all.members()[0]->start(sum.call()); }
    EXPECT_NE(all.communicator().health().text().find("let go of its request of all_reduce"),
              std::string::npos)
        << all.communicator().health().text();
  }
  {
    Ranks all({.ranks = 2, .timeout = kLong, .progress_core = core()});
    Sum sum(*all.members()[0], 10, 1);
    auto request = all.members()[0]->start(sum.call());
    all.drop(0);
    EXPECT_EQ(request->wait().code(), Code::aborted);
    EXPECT_EQ(request->start().code(), Code::invalid_argument) << "its member is gone";
    EXPECT_NE(all.communicator().health().text().find("rank 0 was destroyed while"),
              std::string::npos)
        << all.communicator().health().text();
  }
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

// What a call takes on the network overlaps with what the rank does meanwhile.
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
  // Two of one communicator follow one another.
  EXPECT_DOUBLE_EQ(time([&](Member& me) -> Status {
                     Sum a(me, kCount, 1), b(me, kCount, 2);
                     auto first = me.start(a.call());
                     auto second = me.start(b.call());
                     if (Status status = second->wait(); !status.ok()) return status;
                     return first->wait();
                   }),
                   2 * call);
}

}  // namespace
}  // namespace rankine
