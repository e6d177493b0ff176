// Messages between two ranks. Each ordered pair that talks has a separate communicator, made when
// one of the two first needs it; a message is a send_recv on it. So messages between two ranks are
// matched in order, plans are cached, deadlines and errors work as for calls, and a modelled
// network times messages as it times calls. If ranks are processes, the pair lies in a separate
// part of their shared memory.
#include <new>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/member_state.h"
#include "engine/api/split.h"
#include "numa/refusals.h"

namespace rankine {

Result<std::shared_ptr<CommunicatorShared>> CommunicatorShared::pair(
    const std::shared_ptr<CommunicatorShared>& self, Rank from, Rank to, Waiter& waiter) {
  std::unique_lock<std::mutex> lock;
  if (Status locked = lock_for_call(lock, waiter); !locked.ok()) return locked;
  std::shared_ptr<CommunicatorShared>& known = pairs[{from, to}];
  if (known != nullptr) return known;
  std::shared_ptr<ProcessRanks> both;  // the two ranks are in different processes
  if (is_elsewhere(from) || is_elsewhere(to)) {
    auto found =
        ProcessRanks::pair(*processes, from, to, [&] { return may_go_on_planning(waiter); });
    if (!found.ok()) return found.status();
    both = std::move(*found);
  }
  auto made = make_group(self, {from, to}, {.ends_parent = true}, both, true);
  if (!made.ok()) return made;
  if (both != nullptr) {
    if (Status status = both->begin(); !status.ok()) return status;
  }
  known = *made;
  known->parent.reset();
  // A rank that has left here has also left the pair, and may never learn of the pair.
  for (const auto& [role, rank] : {std::pair(0, from), std::pair(1, to)}) {
    if (rank_control.wake_futex(rank).left.load(std::memory_order_acquire))
      (*made)->rank_control.leave(role);
  }
  return made;
}

// Returns this rank's end of the pair to or from the peer.
Result<Member*> Member::end_of_pair(const Message& message) {
  MemberState& s = *state_;
  const Rank peer = message.peer;
  if (s.shared->forked()) return forked_status();
  if (peer < 0 || peer >= ranks()) {
    return invalid_argument(std::string(message.sends ? "to" : "from") + " is " +
                            std::to_string(peer) + "; allowed are 0 to " +
                            std::to_string(ranks() - 1));
  }
  auto& ends = message.sends ? s.sending : s.receiving;
  ends.resize(static_cast<std::size_t>(ranks()));
  auto& end = ends[static_cast<std::size_t>(peer)];
  if (end == nullptr) {
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // it sleeps while another rank plans
    // A separate Waiter, because a call of this rank may be in flight.
    Waiter waiter{.rank_control = &s.shared->rank_control, .rank = rank()};
    auto pair = s.shared->pair(s.owned, message.sends ? rank() : peer,
                               message.sends ? peer : rank(), waiter);
    if (!pair.ok()) return s.refused(pair.status());
    end.reset(new Member(std::move(*pair), message.sends ? 0 : 1, s.progress_engine));
    end->state_->whole = s.owned;
    end->state_->made_as(s);
    if (s.track->timer.figures != nullptr) {
      CallTimer& timer = end->state_->track->timer;
      timer = {.figures = s.track->timer.figures, .peer = peer};
      end->state_->run.waiter.timer = &timer;
    }
    static_cast<void>(end->set_call_site(call_site()));  // not forked
  }
  return end.get();
}

Result<Request> Member::bind(const Message& message, const CallOptions& options, bool calls) try {
  auto end = end_of_pair(message);
  if (!end.ok()) return end.status();
  return (*end)->bind({.collective = Collective::send_recv,
                       .in = message.sends ? message.data : nullptr,
                       .out = message.sends ? nullptr : message.data,
                       .count = message.count,
                       .type = message.type,
                       .root = 0,
                       .peer = 1,
                       .options = options},
                      calls);
} catch (const std::bad_alloc&) {
  return no_memory_for_messages();
}

Status Member::no_memory_for_messages() {
  return give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for messages of rank " + std::to_string(rank());
  }));
}

Result<Request> Member::prepare(const Message& message, const CallOptions& options) {
  return bind(message, options, false);
}

Result<Request> Member::start(const Message& message, const CallOptions& options) {
  return started(bind(message, options, true));
}

Status Member::submit(const Message& message, const CallOptions& options) {
  return settle(start(message, options));
}

Status Member::exchange(const Message& sent, const Message& received, const CallOptions& options) {
  // Check that both are possible before either is in flight.
  for (const Message& message : {sent, received}) {
    if (const auto end = end_of_pair(message); !end.ok()) return end.status();
  }
  Status first;
  Status status = group([&] {
    first = submit(received, options);
    if (first.ok()) first = submit(sent, options);
  });
  return first.ok() ? status : first;
}

Result<bool> Member::has_message(Rank from) try {
  if (state_->shared->wire != nullptr) {
    return invalid_argument(
        "has_message: the ranks are on several nodes; allowed are ranks of one node");
  }
  const auto end = end_of_pair({.peer = from, .sends = false});
  if (!end.ok()) return end.status();
  MemberState& receiver = *(*end)->state_;
  const auto begun = [&](Rank r) {  // acquire: pairs with announce()
    return receiver.shared->rank_control.record(r).number.load(std::memory_order_acquire);
  };
  const auto has_come = [&] {
    const ProgressEngine::Turn turn(*receiver.progress_engine);
    return receiver.started.front == nullptr && begun(0) > begun(1);
  };
  RankControl& all = state_->shared->rank_control;
  if (all.follow_above()) return state_->ended();
  if (has_come()) return true;
  const bool has_left = all.has_left(from), is_lost = !has_left && all.is_lost(from);
  if (!has_left && !is_lost) return false;
  if (has_come()) return true;  // its last message
  Status status = make_error(Code::rank_lost, [&] {
    return "rank " + std::to_string(rank()) + " asks for a message, but " + all.state_of(from).text;
  });
  if (is_lost) all.abort(status);
  return status;
} catch (const std::bad_alloc&) {
  return no_memory_for_messages();
}

// --- Several at once ---

Status Member::settle(Result<Request> request) {
  if (!request.ok()) return request.status();
  return state_->progress_engine->take(*request) ? Status() : request->wait();
}

Status Member::group(const std::function<void()>& calls) {
  if (!calls) return invalid_argument("group: calls is empty; allowed are functions");
  if (state_->shared->forked()) return forked_status();
  ProgressEngine& progress_engine = *state_->progress_engine;
  const bool outermost = progress_engine.begin_group();
  try {
    calls();
  } catch (...) {
    if (outermost) progress_engine.end_group();  // drops the requests in flight
    throw;
  }
  if (!outermost) return {};
  std::vector<Request> all = progress_engine.end_group();
  return wait_all(all);
}

}  // namespace rankine
