// A call of a process group's, from when it is submitted: what PyTorch calls Work. It is executed
// once, by whoever has time (call_queue.h), and tells those who wait for it and those who have
// asked for its future.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/api/member.h"

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

}  // namespace rankine::torch_backend
