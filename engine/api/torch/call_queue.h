// A GroupCall is one call of a process group; PyTorch calls it Work. A CallQueue executes a group's
// calls in order, on a waiting thread or on the queue's own thread. When a call ends, the queue
// wakes the waiting threads and completes the call's future.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/member.h"
#include "engine/api/request.h"
#include "engine/run/process.h"

namespace rankine::torch_backend {

class CallQueue;

class GroupCall final : public c10d::Work {
 public:
  // Runs one or several collectives, on any thread. Throws the error of the call.
  using Run = std::function<void(Member&)>;

  struct Kind {
    c10d::OpType type;
    const char* title;  // in profiles: "rankine:all_reduce"
  };
  // `tensors` receive the results. The call keeps `tensors` and the captures of `run` alive.
  GroupCall(std::shared_ptr<CallQueue> queue, const Kind& kind, std::vector<at::Tensor> tensors,
            Run run);
  // A message to or from another rank. It may be in flight together with other calls.
  GroupCall(std::shared_ptr<CallQueue> queue, const Kind& kind, std::vector<at::Tensor> tensors,
            const Message& message, const CallOptions& options);

  // Without a timeout: executes this call and all earlier calls if no other thread does so. With a
  // timeout: only waits; the call continues after the timeout has passed. Throws the error of the
  // call, or std::runtime_error if the timeout has passed.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // Returns the tensors with the results. Throws if the call is not over.
  std::vector<at::Tensor> result() override;
  // The future's value is result(). The caller of getFuture() may never call wait(), so the queue's
  // thread executes the call soon.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  friend class CallQueue;
  // Used by the thread that executes the call. end() marks the call as over; tell(), called without
  // a lock, completes the future.
  void end(std::exception_ptr why);
  void tell();
  void settle(c10::ivalue::Future& future) const;

  const std::shared_ptr<CallQueue> queue_;
  const std::vector<at::Tensor> tensors_;
  Run run_;
  const std::optional<Message> message_;
  const CallOptions options_;

  std::mutex future_mutex_;
  bool told_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// The calls of one process group, in the order in which they were submitted.
//
// A member is used by one thread at a time, and a submitted call must proceed even if no thread
// waits for it. So exactly one thread holds the turn and executes the next call. A waiting thread
// takes the turn: if the caller waits at once, the call runs on the caller's thread and costs no
// thread switch. The queue's own thread executes calls that no thread waits for. It takes a call
// that has been queued for a whole nap, or at once after hurry(); a shorter delay would take calls
// away from callers that are about to wait for them.
//
// Messages between two ranks are in flight beside each other and beside collectives, because ranks
// may post them in any order. Thread-safe.
//
// A forked child process has no queue thread, and can neither wait on nor destroy the condition
// variables of that thread. So calls in a child throw Code::forked, and the queue is made by
// make_shared_at_home().
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  using Handle = c10::intrusive_ptr<GroupCall>;

  // Starts the queue's thread. Throws std::system_error if the system refuses it.
  CallQueue(std::unique_ptr<Communicator> communicator, std::unique_ptr<Member> member);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  void submit(Handle call);
  // finish() waits until a submitted call is over. finish_within() waits at most for `most` and
  // returns whether the call is over.
  void finish(GroupCall& call);
  bool finish_within(GroupCall& call, std::chrono::milliseconds most);
  // Tells the queue's thread to execute the queued calls now, because no thread will wait for them.
  void hurry();
  // Waits until all calls are over, then leaves the communicator. No call may be submitted
  // afterwards. If a callback on the queue's own thread destroys the group, the thread leaves
  // later. Messages that no thread waits for get two more seconds to arrive, because their senders
  // may be waiting for this rank.
  void close();

 private:
  // Finished calls with their errors.
  using Ended = std::vector<std::pair<Handle, std::exception_ptr>>;
  using Lock = std::unique_lock<std::mutex>;

  void check_home() const;
  void leave();
  void serve();
  bool has_work() const { return !queued_.empty() || !under_way_.empty(); }
  // True if the queue's thread may take the next call.
  bool is_mine(std::uint64_t seen) const;
  // For the thread that holds the turn: executes the next call, or waits a short time for messages,
  // first for the message of `wanted` if it is one. The lock is held before and after.
  void step(Lock& lock, const GroupCall* wanted);
  std::exception_ptr run(GroupCall& call);
  void start(Handle call, Ended& ended);
  void look_at_messages(const GroupCall* wanted, bool gives_up, Ended& ended);
  // True if only late receptions are left that no thread waits for.
  bool is_time_to_give_up() const;

  const HomeProcess home_;
  // Used by the thread that holds the turn.
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Member> member_;
  struct UnderWay {
    Handle call;
    Request request;
  };

  std::mutex mutex_;  // guards the members below
  std::condition_variable over_, wake_;
  std::deque<Handle> queued_;
  std::vector<UnderWay> under_way_;  // changed by the thread that holds the turn, under the lock
  std::uint64_t submitted_ = 0;
  int waiting_ = 0;  // number of threads that wait on over_
  int helpers_ = 0;  // number of those threads that can take the turn
  bool has_turn_ = false;
  bool hurried_ = false;
  bool asleep_ = false;  // the queue's thread sleeps: submit() must wake it
  bool closing_ = false;
  std::chrono::steady_clock::time_point closing_since_;
  std::thread thread_;
  std::shared_ptr<CallQueue> last_;  // keeps the queue alive until its detached thread ends
};

}  // namespace rankine::torch_backend
