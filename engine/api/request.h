// Request is a call that a rank starts now and waits for later, once or repeatedly.
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
// Order: all ranks start the calls of one communicator in the same order; each call begins on this
// rank after the previous one has ended on this rank. Calls of several communicators progress side
// by side. prepare() is no call: ranks may prepare in any order and in different numbers.
//
// Progress: calls of this library on the rank's thread advance started calls. test(), wait() and
// Member::progress() advance everything that the thread has started, on all communicators that the
// member was split from or to; blocking calls do so while they wait. Between calls a started call
// does not advance, except for work of peers such as reading a buffer in place. With a
// progress_core (communicator.h) a helper thread advances everything between calls. Requests still
// belong to the rank's thread. While the helper moves data, test() and progress() return without
// waiting, and other calls wait until the helper has nothing to move. The helper may call the
// user's reduction functions.
//
// Waiting: if one call alone is in flight on the thread and the wait has no time limit, the rank
// waits as in a blocking call and at last sleeps until a peer wakes it. Otherwise (in wait_for(),
// group(), and wait_all() with several calls) the rank polls, soon with naps of up to 1 ms in
// between.
//
// Buffers belong to the call from start() until test() has returned true or wait() has returned. A
// deadline counts from the first moment at which the call must wait.
//
// On a modelled network a call begins at the model's time of its start, and the rank's clock moves
// to the call's end when the rank waits for it: work in between (Member::compute()) overlaps with
// the call. Calls in flight at once, on several communicators, do not wait for each other's ports.
//
// Errors, beside the errors of the call: invalid_argument for waiting for a request that is not in
// flight (never started, or already waited for) and for starting a request in flight. Destroying or
// assigning to a request in flight ends its communicator, because its buffers may still be in use.
// The thread that uses the member uses its requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/api/call.h"
#include "engine/base/status.h"

namespace rankine {

class ProgressEngine;
struct PendingCall;
class Request;

// Waits for all requests; they may belong to any members and communicators that this thread uses,
// so that one thread can play several ranks. Returns the first error; `failed`, unless null, then
// has the index of its request. It waits for all requests even after an error.
Status wait_all(std::span<Request> requests, std::size_t* failed = nullptr);
// Waits for at most `most`. Returns true if all requests are over. If it returns false, no request
// counts as waited for.
Result<bool> wait_all_for(std::span<Request> requests, std::chrono::milliseconds most,
                          std::size_t* failed = nullptr);

// The result of the short way to start a call again: it did nothing; it started the call; the call
// has also ended, and well.
enum class ShortStart : std::uint8_t { nothing, started, over };

class Request {
 public:
  Request();  // of no call
  ~Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;

  // Begins the call. The request must be prepared or waited for.
  Status start() { return start_again(false) != ShortStart::nothing ? Status() : start_in_full(); }
  // True if the call is over; does not wait. A failed call returns its error.
  Result<bool> test();
  // Waits until the call is over. Call it once after each start(), even after test() was true.
  Status wait() { return wait_again() ? Status() : wait_in_full(); }
  // Waits for at most `most`. True if the call is over; if false, the call continues.
  Result<bool> wait_for(std::chrono::milliseconds most);

  // The levels of order that the call's plan keeps (Member::orders_of()). Error: the request was
  // made while another call was in flight and has no plan yet.
  Result<OrderSet> orders() const;

 private:
  friend class Member;
  friend class CallGroup;  // of the C functions
  friend Status wait_all(std::span<Request> requests, std::size_t* failed);
  friend Result<bool> wait_all_for(std::span<Request> requests, std::chrono::milliseconds most,
                                   std::size_t* failed);
  bool is_started() const noexcept;  // and not waited for
  // The short ways. `waits`: a call that is over at once counts as waited for, until
  // must_be_waited_for() says otherwise. Nothing and false: nothing has happened.
  ShortStart start_again(bool waits) noexcept;
  bool wait_again() noexcept;
  void must_be_waited_for() noexcept;
  Status start_in_full();
  Status wait_in_full();
  // Its progress engine; nullptr if it need not be waited for.
  ProgressEngine* engine() const;
  // Advances all requests until they are over or until `until_ns`. True if they are over.
  static bool wait_until_over(std::span<Request> requests, std::int64_t until_ns);
  explicit Request(std::unique_ptr<PendingCall> call);
  std::unique_ptr<PendingCall> call_;
};

}  // namespace rankine
