#include "engine/api/torch/group_call.h"

#include <ATen/core/ivalue_inl.h>
#include <ATen/core/jit_type.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/api/torch/call_queue.h"

namespace rankine::torch_backend {
namespace {

constexpr int kNoRank = -1;

}  // namespace

GroupCall::GroupCall(std::shared_ptr<CallQueue> queue, const Kind& kind,
                     std::vector<at::Tensor> tensors, Run run)
    : Work(kNoRank, kind.type, kind.title, tensors),
      queue_(std::move(queue)),
      tensors_(std::move(tensors)),
      run_(std::move(run)) {}

GroupCall::GroupCall(std::shared_ptr<CallQueue> queue, const Kind& kind,
                     std::vector<at::Tensor> tensors, const Message& message,
                     const CallOptions& options)
    : Work(kNoRank, kind.type, kind.title, tensors),
      queue_(std::move(queue)),
      tensors_(std::move(tensors)),
      message_(message),
      options_(options) {}

bool GroupCall::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout) {
    queue_->finish(*this);
  } else if (!queue_->finish_within(*this, timeout)) {
    throw std::runtime_error("timeout: the call was not over within " +
                             std::to_string(timeout.count()) + " ms; it goes on");
  }
  if (const std::exception_ptr why = exception()) std::rethrow_exception(why);
  return true;
}

std::vector<at::Tensor> GroupCall::result() {
  TORCH_CHECK(isCompleted(), "the call is not over: it has no result before");
  return tensors_;
}

c10::intrusive_ptr<c10::ivalue::Future> GroupCall::getFuture() {
  bool is_late = false;
  {
    const std::lock_guard lock(future_mutex_);
    if (future_ != nullptr) return future_;
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    is_late = told_;
  }
  if (is_late) {
    settle(*future_);
  } else {
    queue_->hurry();
  }
  return future_;
}

void GroupCall::end(std::exception_ptr why) {
  run_ = nullptr;  // what it holds is no longer needed
  finish(std::move(why));
}

void GroupCall::tell() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    told_ = true;
    future = future_;
  }
  if (future != nullptr) settle(*future);
}

void GroupCall::settle(c10::ivalue::Future& future) const {
  if (const std::exception_ptr why = exception()) {
    future.setError(why);
  } else {
    future.markCompleted(c10::IValue(tensors_));
  }
}

}  // namespace rankine::torch_backend
