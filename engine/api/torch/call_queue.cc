#include "engine/api/torch/call_queue.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue_inl.h>
#include <ATen/core/jit_type.h>
#include <pthread.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

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
  TORCH_CHECK(isCompleted(), "the call is not over; wait for it before result()");
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
  run_ = nullptr;  // frees the captures, which are no longer needed
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

namespace {

// The shortest and the longest nap of the queue's thread between two looks, and the number of looks
// without a new call after which it falls asleep. Until then submit() need not wake it; a wake-up
// takes longer than a short call.
constexpr std::chrono::microseconds kNap{50}, kLongestNap{1000};
constexpr int kLooks = 1000;
// The longest wait for messages before another thread may take the turn.
constexpr std::chrono::milliseconds kWhile{1};
// After close(): the longest wait for messages that no thread waits for.
constexpr std::chrono::seconds kPatience{2};

std::exception_ptr failure(const Status& status) {
  return status.ok() ? nullptr : std::make_exception_ptr(Error(status.code(), status.text()));
}

Status not_come(const Message& message) {
  return Status(Code::aborted, "the group was destroyed before a message from rank " +
                                   std::to_string(message.peer) + " came");
}

}  // namespace

CallQueue::CallQueue(std::unique_ptr<Communicator> communicator, std::unique_ptr<Member> member)
    : communicator_(std::move(communicator)), member_(std::move(member)) {
  thread_ = std::thread([this] {
    serve();
    if (const auto self = std::exchange(last_, nullptr)) leave();
  });
  pthread_setname_np(thread_.native_handle(), "rankine-group");
}

void CallQueue::check_home() const {
  if (home_.is_this()) return;
  throw Error(Code::forked,
              "this process was forked from the group's process; create a group in this process");
}

void CallQueue::submit(Handle call) {
  check_home();
  const std::lock_guard lock(mutex_);
  queued_.push_back(std::move(call));
  ++submitted_;
  if (asleep_) wake_.notify_one();
}

void CallQueue::finish(GroupCall& call) {
  check_home();
  Lock lock(mutex_);
  while (!call.isCompleted()) {
    if (!has_turn_) {
      step(lock, &call);
    } else {
      ++waiting_, ++helpers_;
      over_.wait(lock);
      --waiting_, --helpers_;
    }
  }
}

bool CallQueue::finish_within(GroupCall& call, std::chrono::milliseconds most) {
  hurry();
  Lock lock(mutex_);
  ++waiting_;
  const bool is_over = over_.wait_for(lock, most, [&] { return call.isCompleted(); });
  --waiting_;
  return is_over;
}

void CallQueue::hurry() {
  check_home();
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  wake_.notify_one();
}

void CallQueue::close() {
  if (!home_.is_this()) return;
  const bool by_itself = thread_.get_id() == std::this_thread::get_id();
  if (by_itself) last_ = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    closing_since_ = std::chrono::steady_clock::now();
    wake_.notify_one();
  }
  if (by_itself) return thread_.detach();
  thread_.join();
  leave();
}

void CallQueue::leave() {
  member_.reset();
  communicator_.reset();
}

bool CallQueue::is_mine(std::uint64_t seen) const {
  if (has_turn_ || helpers_ > 0 || !has_work()) return false;
  const std::uint64_t taken = submitted_ - queued_.size();
  return hurried_ || closing_ || !under_way_.empty() || taken < seen;
}

void CallQueue::serve() {
  Lock lock(mutex_);
  std::uint64_t seen = 0;  // value of submitted_ before the last nap
  auto nap = kNap;
  for (int looks = 0; !closing_ || has_work() || has_turn_;) {
    if (is_mine(seen)) {
      step(lock, nullptr);
      if (helpers_ == 0) seen = submitted_;
      looks = 0;
      nap = kNap;
      continue;
    }
    if (!has_work()) hurried_ = false;
    looks = submitted_ == seen ? looks + 1 : 0;
    seen = submitted_;
    if (looks < kLooks) {
      wake_.wait_for(lock, nap);
      // If callers wait for all calls, each look disturbs one of them.
      nap = std::min(2 * nap, kLongestNap);
    } else {
      asleep_ = true;
      wake_.wait(lock, [&] { return hurried_ || closing_ || submitted_ != seen; });
      asleep_ = false;
      looks = 0;
      nap = kNap;
    }
  }
}

void CallQueue::step(Lock& lock, const GroupCall* wanted) {
  // Allocate first: a thread that holds the turn must not fail before it gives the turn back.
  Ended ended;
  ended.reserve(under_way_.size() + 1);
  under_way_.reserve(under_way_.size() + 1);
  Handle next;
  const bool gives_up = wanted == nullptr && is_time_to_give_up();
  if (!queued_.empty()) {
    next = std::move(queued_.front());
    queued_.pop_front();
  }
  has_turn_ = true;
  lock.unlock();
  if (next != nullptr && !next->message_) {
    std::exception_ptr why = run(*next);
    ended.emplace_back(std::move(next), std::move(why));
  } else if (next != nullptr) {
    start(std::move(next), ended);
  } else {
    look_at_messages(wanted, gives_up, ended);
  }
  for (auto& [call, why] : ended) call->end(why);
  lock.lock();
  has_turn_ = false;
  if (waiting_ > 0) over_.notify_all();
  if (ended.empty()) return;
  lock.unlock();
  for (auto& [call, why] : ended) call->tell();  // may call functions of the user
  ended.clear();                                 // destroying the captures may call them too
  lock.lock();
}

std::exception_ptr CallQueue::run(GroupCall& call) {
  const at::NoGradGuard no_grad;  // copies into results must not be recorded for autograd
  try {
    call.run_(*member_);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void CallQueue::start(Handle call, Ended& ended) {
  auto request = member_->start(*call->message_, call->options_);
  if (!request.ok()) {
    ended.emplace_back(std::move(call), failure(request.status()));
    return;
  }
  const std::lock_guard lock(mutex_);
  under_way_.push_back({std::move(call), std::move(*request)});
}

bool CallQueue::is_time_to_give_up() const {
  return closing_ && queued_.empty() && waiting_ == 0 &&
         std::chrono::steady_clock::now() - closing_since_ >= kPatience &&
         std::none_of(under_way_.begin(), under_way_.end(),
                      [](const UnderWay& message) { return message.call->message_->sends; });
}

void CallQueue::look_at_messages(const GroupCall* wanted, bool gives_up, Ended& ended) {
  // Only the thread that holds the turn changes under_way_.
  const auto of_wanted = std::find_if(under_way_.begin(), under_way_.end(),
                                      [&](const UnderWay& u) { return u.call.get() == wanted; });
  UnderWay& first = of_wanted != under_way_.end() ? *of_wanted : under_way_.front();
  for (UnderWay& message : under_way_) {
    const auto is_over =
        &message == &first ? message.request.wait_for(kWhile) : message.request.test();
    const bool goes_on = is_over.ok() && !*is_over;
    if (goes_on && !gives_up) continue;
    ended.emplace_back(message.call,
                       failure(goes_on ? not_come(*message.call->message_) : is_over.status()));
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [&](const UnderWay& message) {
    return std::any_of(ended.begin(), ended.end(),
                       [&](const auto& one) { return one.first == message.call; });
  });
}

}  // namespace rankine::torch_backend
