// A call that is started now and waited for later, once or again and again.
//
//   auto sum = me.start(call);                        // any collective, as a Call
//   ... work that touches neither buffer ...
//   Status s = sum->wait();
//
//   auto again = me.prepare(call);                    // the same buffers every time
//   for (;;) {
//     again->start().throw_if_error();
//     ...
//     again->wait().throw_if_error();
//   }
//
// Started calls of one communicator are calls like any other: all ranks make them in the same
// order, counted by when they are started, and each begins when the one before has ended here.
// Calls of several communicators go on beside each other. Preparing is no call: ranks may prepare
// in any order, and some of them more than others.
//
// Who makes progress: whoever is inside a call of this library on the rank's thread. test(), wait()
// and Member::progress() move on everything that the thread has started on any communicator that
// the member was split from or to; calls that wait do so meanwhile. Between calls nothing moves but
// what peers can do by themselves, such as reading a buffer in place; or else, where the
// communicator has a progress_core (communicator.h), everything, on a thread there. Requests are
// the rank's thread's all the same. While the other one is moving data on, test() and progress()
// leave it to that and do not wait, and other calls here wait until it has to wait itself.
// Functions of the user's that reduce may be called on it.
//
// How it waits: a call that is the only one under way on the thread, and waited for without an end,
// like any call: in the end asleep until a peer wakes it. Else whoever waits looks again and again,
// soon with naps in between of up to 1 ms: wait_for(), of several calls wait_all() and group().
//
// Buffers belong to the call from start() until test() has said that it is over or wait() has
// returned. A deadline counts from when the call first finds that it must wait.
//
// On a modelled network a call begins at the model's time at which it was started, and the rank
// comes to its end when it has waited for it: work in between (Member::compute()) overlaps with it.
// Calls that are under way at once, on several communicators, do not wait for each other's ports.
//
// Errors, beside the call's own: invalid_argument for what is not under way (never started, or
// waited for before) and for starting what is. A request that is destroyed or assigned to while
// under way ends its communicator, since nobody knows what becomes of its buffers. Used by the
// thread that uses the member.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/api/call.h"
#include "engine/base/status.h"

namespace rankine {

class Agenda;
struct StartedCall;
class Request;

// Until all of them are over, of whichever members and communicators that this thread uses: so one
// thread can play several ranks. The first error, if any, and `failed`, if not null, becomes the
// index of its request; all have been waited for then.
Status wait_all(std::span<Request> requests, std::size_t* failed = nullptr);
// The same for no longer than that: whether all were over then. Where not, none has been waited
// for.
Result<bool> wait_all_for(std::span<Request> requests, std::chrono::milliseconds most,
                          std::size_t* failed = nullptr);

class Request {
 public:
  Request();  // of nothing
  ~Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;

  // Begins the call once more, of a request that was prepared or has been waited for.
  Status start();
  // Whether the call is over; does not wait. A call that has failed is an error.
  Result<bool> test();
  // Until it is over; and after that, once.
  Status wait();
  // The same for no longer than that: whether it is over. Where not, it goes on.
  Result<bool> wait_for(std::chrono::milliseconds most);

  // Which levels of order its plan keeps (Member::orders_of()). Also an error: it was made while
  // another call was under way, and has no plan yet.
  Result<OrderSet> orders() const;

 private:
  friend class Member;
  friend Status wait_all(std::span<Request> requests, std::size_t* failed);
  friend Result<bool> wait_all_for(std::span<Request> requests, std::chrono::milliseconds most,
                                   std::size_t* failed);
  // On which those of them are that do not rest.
  static std::vector<Agenda*> agendas_of(std::span<Request> requests);
  // Until those are over that are on these, or until that time: whether they are.
  static bool until_over(std::span<Request> requests, const std::vector<Agenda*>& agendas,
                         std::int64_t until_ns);
  explicit Request(std::unique_ptr<StartedCall> call);
  std::unique_ptr<StartedCall> call_;
};

}  // namespace rankine
