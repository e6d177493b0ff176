// Calls that are started and not waited for, and what becomes of their requests.
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/api/request.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

using std::chrono_literals::operator""ms;

Status poll(Request& request) {
  for (;;) {
    const Result<bool> over = request.test();
    if (!over.ok()) return over.status();
    if (*over) return request.wait();
    yield_cpu();
  }
}

Status wait_by_and_by(Request& request) {
  for (;;) {
    const Result<bool> over = request.wait_for(1ms);
    if (!over.ok()) return over.status();
    if (*over) return {};
  }
}

enum Way { wait, test, wait_for_a_while, prepared, grouped };
constexpr int kWays = 5;

// A call by a request, and a barrier behind it where that is wanted.
Status by_request(Member& me, const Call& call, Way way, bool barrier_behind) {
  if (way == grouped) {
    Status first;
    const Status all = me.group([&] {
      first = me.call(call);
      if (first.ok() && barrier_behind) first = me.barrier();
    });
    return first.ok() ? all : first;
  }
  Result<Request> request = way == prepared ? me.prepare(call) : me.start(call);
  if (!request.ok()) return request.status();
  if (way == prepared) {
    if (Status status = request->start(); !status.ok()) return status;
  }
  Result<Request> behind = Request();
  if (barrier_behind) behind = me.async().barrier();
  Status status = way == test               ? poll(*request)
                  : way == wait_for_a_while ? wait_by_and_by(*request)
                                            : request->wait();
  if (!barrier_behind || !behind.ok()) return status.ok() ? behind.status() : status;
  const Status last = behind->wait();
  return status.ok() ? last : status;
}

}  // namespace

void play_started_calls(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);
  enum { leaves, never_calls, differs, throws, goes_with_requests };
  const int kind = dice.below(5);
  const bool barrier_behind = dice.one_in(2), after_good_ones = dice.one_in(2);
  const Promise promises[] = {
      {.at_once = true, .documented = {Code::rank_lost}},
      {.timeout = kShort, .documented = {Code::timeout}},
      {.documented = {Code::mismatch}},
      {.at_once = true, .documented = {Code::remote_error}},
      // The victim's may be over at once; then it has left.
      {.at_once = true, .documented = {Code::aborted, Code::rank_lost}},
  };
  {
    Scene scene(test, promises[kind], tally);
    scene.run([&](Seat& seat) {
      const auto way =
          static_cast<Way>(Dice(test.seed + static_cast<std::uint64_t>(seat.rank())).below(kWays));
      const How how{.make = [&](Member& me, const Call& made) {
        return by_request(me, made, way, barrier_behind);
      }};
      if (after_good_ones && !seat.call(call, how)) return;
      if (seat.rank() != victim) {
        if (seat.call(call, how)) seat.call(call, how);
        return;
      }
      scene.judge().mark_fault();
      if (kind == leaves) seat.member.reset();
      if (kind == throws) {
        scene.communicator().abort(Status(Code::remote_error, "a rank threw"));
      }
      if (kind == differs) {
        CollectiveCase odd = call;
        // A barrier has nothing else to differ in.
        if (call.collective == Collective::barrier) {
          odd.collective = Collective::all_reduce;
          odd.options = {};
        }
        odd.count = 5 * call.count + 7;
        if (seat.call(odd, how)) seat.call(call, how);
      }
      if (kind == goes_with_requests) {
        seat.buffers.fill(call, seat.rank());
        const Result<Request> one = seat.member->start(call_of(call, seat.buffers));
        if (!one.ok()) scene.judge().answer(one.status());
        seat.member.reset();
      }
    });
  }
  fresh_start(test, call, tally);
}

void play_misused_requests(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);
  {
    Scene scene(test, {}, tally);
    const auto refused = [&](const Status& status) {
      if (status.code() != Code::invalid_argument) {
        scene.judge().blame("misuse is answered by '" + status.text() + "'");
      }
    };
    const auto misuse = [&](Member& me, const Call& made) -> Status {
      Result<Request> request = me.prepare(made);
      if (!request.ok()) return request.status();
      refused(request->wait());
      refused(request->test().status());
      if (Status status = request->start(); !status.ok()) return status;
      // It may be over already; then it has been started twice, and may be.
      if (const Result<bool> over = request->test(); !over.ok()) return over.status();
      Request moved = std::move(*request);
      refused(request->start());
      refused(request->wait());
      refused(moved.wait_for(-1ms).status());
      const Status status = moved.wait();
      refused(moved.wait());
      return status;
    };
    scene.run([&](Seat& seat) {
      for (int i = 0; i < 2; ++i) {
        if (!seat.call(call, {.make = misuse})) return;
      }
    });
  }
  {
    Scene scene(test, {.at_once = true, .documented = {Code::aborted}}, tally);
    scene.run([&](Seat& seat) {
      const How started{
          .make = [&](Member& me, const Call& made) { return by_request(me, made, wait, true); }};
      if (!seat.call(call, started)) return;
      if (seat.rank() != victim) {
        seat.call(call, started);
        return;
      }
      seat.buffers.fill(call, victim);
      Result<Request> request = seat.member->start(call_of(call, seat.buffers));
      // The second can be under way only when all have come to it, which nobody does.
      Result<Request> behind = seat.member->async().barrier();
      scene.judge().mark_fault();
      *request = Request();
      *behind = Request();
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
