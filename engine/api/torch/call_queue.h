// A call of a process group's, from when it is submitted: what PyTorch calls Work. It is executed
// once, by whoever has time (call_queue.h), and tells those who wait for it and those who have
// asked for its future.
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
  // A collective, or several, on whichever thread it is. Throws what it fails with.
  using Run = std::function<void(Member&)>;

  struct Kind {
    c10d::OpType type;
    const char* title;  // in profiles: "rankine:all_reduce"
  };
  // `tensors` are what the call has results in; they and what `run` holds live as long as it does.
  GroupCall(std::shared_ptr<CallQueue> queue, const Kind& kind, std::vector<at::Tensor> tensors,
            Run run);
  // A message to another rank, or from one, which is under way beside others.
  GroupCall(std::shared_ptr<CallQueue> queue, const Kind& kind, std::vector<at::Tensor> tensors,
            const Message& message, const CallOptions& options);

  // Executes it, and what was submitted before, where nobody is at it. With a timeout it only
  // waits, and the call goes on where that has passed. Throws what the call failed with, and where
  // the timeout has passed.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // The tensors that it has results in. Throws where it is not over.
  std::vector<at::Tensor> result() override;
  // Its value is result(). Who asks is not going to wait here, so the call goes on by itself.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  friend class CallQueue;
  // For who executes it: it is over, and after that, in no lock: whoever has asked for the future
  // hears of it.
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

// The calls of one process group on their way to the engine, in the order in which they were
// submitted.
//
// A member is used by one thread at a time, and a submitted call goes on whether or not anybody
// waits for it. So there is a turn, and whoever has it executes what is next: those who wait take
// it, and so a call that is waited for at once runs on its caller's thread and costs no switch.
// What nobody waits for is executed by a thread of the queue's. That one takes what has been there
// for a whole nap of its own, or all at once where somebody has asked it to hurry: else it would
// take calls away from those who are just about to wait for them.
//
// Messages between two ranks are under way beside each other and beside collectives, since ranks
// may post them in any order. Thread-safe.

//
// A forked child has no thread of ours, and what that waited on can neither be waited on nor be
// destroyed there: so calls throw Code::forked, and the queue is made by make_shared_at_home().
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  using Handle = c10::intrusive_ptr<GroupCall>;

  // Starts its thread: std::system_error where there is none.
  CallQueue(std::unique_ptr<Communicator> communicator, std::unique_ptr<Member> member);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  void submit(Handle call);
  // Until the call, which was submitted, is over; and no longer than that: whether it is.
  void finish(GroupCall& call);
  bool finish_within(GroupCall& call, std::chrono::milliseconds most);
  // What is there is not going to be waited for.
  void hurry();
  // Until all is over; nothing is submitted any more. Then the rank has left. On the queue's own
  // thread, where a function of the user's lets go of the group, that comes later. Messages that
  // nobody waits for have a while to come yet: who would send them may be waiting for this rank.
  void close();

 private:
  // Calls that are over, and what they have failed with.
  using Ended = std::vector<std::pair<Handle, std::exception_ptr>>;
  using Lock = std::unique_lock<std::mutex>;

  void check_home() const;
  void leave();
  void serve();
  bool has_work() const { return !queued_.empty() || !under_way_.empty(); }
  // Whether the thread is to take what is next.
  bool is_mine(std::uint64_t seen) const;
  // Has the turn: executes what is next, or waits a while for messages, for that of `wanted` where
  // it is one. The lock is held before and after.
  void step(Lock& lock, const GroupCall* wanted);
  std::exception_ptr run(GroupCall& call);
  void start(Handle call, Ended& ended);
  void look_at_messages(const GroupCall* wanted, bool gives_up, Ended& ended);
  // Whether all that is left is messages that have not come in time, and that nobody waits for.
  bool is_time_to_give_up() const;

  const HomeProcess home_;
  // Used by who has the turn.
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Member> member_;
  struct UnderWay {
    Handle call;
    Request request;
  };

  std::mutex mutex_;  // guards what follows
  std::condition_variable over_, wake_;
  std::deque<Handle> queued_;
  std::vector<UnderWay> under_way_;  // changed by who has the turn, in the lock
  std::uint64_t submitted_ = 0;
  int waiting_ = 0;  // on over_
  int helpers_ = 0;  // those of them who will take the turn
  bool has_turn_ = false;
  bool hurried_ = false;
  bool asleep_ = false;  // the thread is, and must be told of what is submitted
  bool closing_ = false;
  std::chrono::steady_clock::time_point closing_since_;
  std::thread thread_;
  std::shared_ptr<CallQueue> last_;  // the thread's, where it ends by itself
};

}  // namespace rankine::torch_backend
