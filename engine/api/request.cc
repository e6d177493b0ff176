#include "engine/api/request.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/member_state.h"
#include "engine/api/threads.h"
#include "engine/base/numbers.h"
#include "engine/run/machine.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// True if there is nothing to wait for.
bool rests(const PendingCall* call) { return call == nullptr || call->rests; }
// Needs a Turn of its progress_engine.
bool is_over(const PendingCall& call) { return call.phase == PendingCall::Phase::over; }

std::string name_of_call(const PendingCall& call) {
  return std::string(name_of(call.call.collective));
}

Status not_started(const PendingCall* call) {
  if (call == nullptr) return invalid_argument("the request has no call; start or prepare one");
  return invalid_argument("the request's " + name_of_call(*call) +
                          " is not under way; start it, and wait for it once");
}

Status misfit_of(std::chrono::milliseconds most) {
  return invalid_argument("most is " + std::to_string(most.count()) +
                          " ms; allowed are 0 and more");
}

}  // namespace

void PendingCall::operator delete(PendingCall* call, std::destroying_delete_t) noexcept {
  const std::shared_ptr<MemberState> member = call->member;  // it may end with the call
  std::destroy_at(call);
  // Requests of a member that is gone may end in several threads at once.
  member->gone ? ::operator delete(call) : member->spare_calls.give(call);
}

Request::Request() = default;
Request::Request(std::unique_ptr<PendingCall> call) : call_(std::move(call)) {}
Request::Request(Request&&) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  Request former(std::move(*this));
  call_ = std::move(other.call_);
  return *this;
}

Request::~Request() {
  if (call_ == nullptr) return;
  MemberState& member = *call_->member;
  if (member.shared->forked()) {
    static_cast<void>(call_.release());  // the member's list refers to it
    return;
  }
  if (call_->rests) return;
  const ProgressEngine::Turn turn(*member.progress_engine);
  if (is_over(*call_)) return;
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the code below waits
  member.shared->end_with(make_error(Code::aborted, [&] {
    return member.shared->rank_control.name(member.run.waiter.rank) + " destroyed its request of " +
           name_of_call(*call_) + " while the call was under way; wait for it first";
  }));
  member.progress_engine->wait(*call_, kForEverNs);
}

bool Request::is_started() const noexcept { return !rests(call_.get()); }

void Request::must_be_waited_for() noexcept { call_->rests = false; }

Status Request::start_in_full() {
  if (call_ == nullptr) return not_started(nullptr);
  MemberState& member = *call_->member;
  if (member.shared->forked()) [[unlikely]]
    return forked_status();
  if (member.gone) [[unlikely]]
    return invalid_argument("the member of the request's " + name_of_call(*call_) +
                            " was destroyed; keep a member as long as its requests");
  const ProgressEngine::Turn turn(*member.progress_engine);
  if (!is_over(*call_)) [[unlikely]] {
    return invalid_argument("the request's " + name_of_call(*call_) +
                            " is under way; wait for it before it is started again");
  }
  member.progress_engine->start(*call_);
  return {};
}

Result<bool> Request::test() {
  if (rests(call_.get())) return not_started(call_.get());
  MemberState& member = *call_->member;
  if (member.shared->forked()) [[unlikely]]
    return forked_status();
  {
    const ProgressEngine::Turn turn(*member.progress_engine, std::try_to_lock);
    if (!turn) return false;
    if (!is_over(*call_)) member.progress_engine->step();
    if (!is_over(*call_)) return false;
  }
  if (!call_->status.ok()) return call_->status;
  if (member.clock != nullptr) member.clock->go_to(call_->model_end);
  return true;
}

Status Request::wait_in_full() {
  if (rests(call_.get())) [[unlikely]]
    return not_started(call_.get());
  MemberState& member = *call_->member;
  if (member.shared->forked()) [[unlikely]]
    return forked_status();
  {
    const ProgressEngine::Turn turn(*member.progress_engine);
    member.progress_engine->wait(*call_, kForEverNs);
  }
  if (member.clock != nullptr) member.clock->go_to(call_->model_end);
  call_->rests = true;
  if (call_->status.ok()) [[likely]]
    return {};
  return std::exchange(call_->status, {});
}

Result<bool> Request::wait_for(std::chrono::milliseconds most) {
  if (rests(call_.get())) return not_started(call_.get());
  if (most.count() < 0) return misfit_of(most);
  MemberState& member = *call_->member;
  if (member.shared->forked()) return forked_status();
  {
    const ProgressEngine::Turn turn(*member.progress_engine);
    if (!member.progress_engine->wait(*call_, deadline_after(now_ns(), saturated_ns(most))))
      return false;
  }
  if (Status status = wait(); !status.ok()) return status;
  return true;
}

Result<OrderSet> Request::orders() const {
  if (call_ == nullptr) return not_started(nullptr);
  if (call_->member->shared->forked()) return forked_status();
  const ProgressEngine::Turn turn(*call_->member->progress_engine);
  if (call_->cached != nullptr) return call_->cached->orders;
  return invalid_argument("the request's " + name_of_call(*call_) +
                          " has no plan yet, because another call was under way; prepare it while "
                          "no call is under way");
}

ProgressEngine* Request::engine() const {
  if (rests(call_.get()) || call_->member->shared->forked()) return nullptr;
  return call_->member->progress_engine.get();
}

bool Request::wait_until_over(std::span<Request> requests, std::int64_t until_ns) {
  std::optional<Idling> idling;
  for (;;) {
    bool moved = false, over = true;
    ProgressEngine* latest = nullptr;
    MemberState* waiting = nullptr;
    for (const Request& request : requests) {
      ProgressEngine* const engine = request.engine();
      if (engine == nullptr) continue;
      const ProgressEngine::Turn turn(*engine);
      // Requests of one engine often stand side by side, and one step advances all of them.
      if (engine != latest) moved |= engine->step();
      latest = engine;
      if (!is_over(*request.call_)) {
        over = false;
        waiting = request.call_->member.get();
      }
      if (!idling) idling.emplace(request.call_->member->shared->rank_control.policy());
    }
    if (over) return true;
    if (moved) {
      idling->begin_again();
    } else if (until_ns != kForEverNs && now_ns() >= until_ns) {
      return false;
    } else {
      waiting->end_if_interrupted();
      idling->once();
    }
  }
}

Status wait_all(std::span<Request> requests, std::size_t* failed) {
  if (requests.size() == 1) {
    if (failed != nullptr) *failed = 0;
    return requests.front().wait();
  }
  // A single progress engine waits in wait(); several engines advance in turn.
  const ProgressEngine* first_engine = nullptr;
  for (const Request& request : requests) {
    const ProgressEngine* const engine = request.engine();
    if (engine == nullptr || engine == first_engine) continue;
    if (first_engine != nullptr) {
      Request::wait_until_over(requests, kForEverNs);
      break;
    }
    first_engine = engine;
  }
  Status first;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Status status = requests[i].wait();
    if (status.ok() || !first.ok()) continue;
    first = std::move(status);
    if (failed != nullptr) *failed = i;
  }
  return first;
}

Result<bool> wait_all_for(std::span<Request> requests, std::chrono::milliseconds most,
                          std::size_t* failed) {
  if (most.count() < 0) return misfit_of(most);
  const std::int64_t until_ns = deadline_after(now_ns(), saturated_ns(most));
  if (!Request::wait_until_over(requests, until_ns)) return false;
  if (Status status = wait_all(requests, failed); !status.ok()) return status;
  return true;
}

Result<Request> Member::bind(const Call& call, bool calls) try {
  MemberState& s = *state_;
  if (s.shared->forked()) return forked_status();
  if (!timeout_fits(call.options)) return misfit(call.options);
  const ProgressEngine::Turn turn(*s.progress_engine);
  std::unique_ptr<PendingCall> bound(new (s.spare_calls) PendingCall(state_));
  bound->call = call;
  bound->call_site = s.track->call_site;
  bound->timeout_ns = saturated_ns(call.options.timeout);
  Call& own = bound->call;
  if (call.displacements != nullptr) {
    bound->displaced = std::make_unique<DisplacedCall>();
    auto plain = bound->displaced->plain(call, rank(), ranks());
    if (!plain.ok()) return plain.status();
    own = *plain;
  }
  if (call.user_op != nullptr) {
    if (Status status = check_user_op(call); !status.ok()) return status;
    own.user_op = &(bound->user_op = *call.user_op);
  }
  if (call.options.epilogue != nullptr) {
    if (Status status = check_epilogue(call); !status.ok()) return status;
    own.options.epilogue = &(bound->epilogue = *call.options.epilogue);
  }
  if (call.factor != nullptr) {
    if (Status status = check_factor(call); !status.ok()) return status;
    const std::size_t bytes = std::max(sizeof(float), size_of(call.type));
    std::memcpy(bound->factor, call.factor, bytes);
    own.factor = bound->factor;
  }
  if (call.collective == Collective::barrier && call.in == nullptr) {
    own.in = &bound->barrier_in;
    own.out = &bound->barrier_out;
  }
  const Call planned = own.factor != nullptr ? without_factor(own) : own;
  if (const CachedPlanPtr* held = s.cached_plan(planned)) {
    bound->cached = *held;
  } else if (s.started.front == nullptr) {
    s.wait_as(call.options);
    auto found = s.plan_call(planned, calls);
    if (!found.ok()) return found.status();
    bound->cached = *found->held;
    bound->first = found->first;
  } else {
    // Planning would disturb the calls in flight, so it happens when this call's turn has come.
    if (Status status = check_call(planned, ranks()); !status.ok()) return status;
    bound->unplanned = std::make_unique<OwnedKey>(PlanKey(planned));
  }
  if (bound->cached != nullptr && !s.fits(*bound->cached, own.in, own.out)) {
    return s.misfit_of(*bound->cached, own.in, own.out);
  }
  // The plan has its own names and lists; the caller's are not used any more.
  own.counts = {};
  own.options = {.tag = call.options.tag, .epilogue = own.options.epilogue};
  return Request(std::move(bound));
} catch (const std::bad_alloc&) {
  return give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for the request of " + std::string(name_of(call.collective));
  }));
}

Result<Request> Member::prepare(const Call& call) { return bind(call, false); }

Result<Request> Member::started(Result<Request> request) {
  if (!request.ok()) return request;
  if (Status status = request->start(); !status.ok()) return status;
  return request;
}

Result<Request> Member::start(const Call& call) { return started(bind(call, true)); }

Status Member::progress() {
  if (state_->shared->forked()) return forked_status();
  if (const ProgressEngine::Turn turn(*state_->progress_engine, std::try_to_lock); turn)
    state_->progress_engine->step();
  return {};
}

Status Member::call_in_turn(const Call& call) { return settle(start(call)); }

}  // namespace rankine
