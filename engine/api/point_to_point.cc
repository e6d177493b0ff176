// Messages between just two ranks. Each ordered pair that talks has a communicator of its own, made
// when one of them first needs it, on which a message is a send_recv: so messages between two ranks
// are matched in order, plans are cached, deadlines and errors are those of calls, and a modelled
// network takes them as it takes calls. Where ranks are processes it lies in the memory of all, in
// a place of its own.
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
  std::shared_ptr<ProcessRanks> both;  // of different processes
  if (is_elsewhere(from) || is_elsewhere(to)) {
    auto found =
        ProcessRanks::pair(*processes, from, to, [&] { return may_go_on_planning(waiter); });
    if (!found.ok()) return found.status();
    both = std::move(*found);
  }
  auto made = make_group(self, {from, to}, {.ends_parent = true}, both);
  if (!made.ok()) return made;
  if (both != nullptr) {
    if (Status status = both->begin(); !status.ok()) return status;
  }
  known = *made;
  known->parent.reset();
  // Who has left here has left there, and may never come to know of it.
  for (const auto& [role, rank] : {std::pair(0, from), std::pair(1, to)}) {
    if (crossbar.bell(rank).left.load(std::memory_order_acquire)) (*made)->crossbar.leave(role);
  }
  return made;
}

// Our end of the way to that rank, or from it.
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
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // naps are taken while another rank plans
    // A wait of its own: a call of ours may be under way.
    Waiter waiter{.crossbar = &s.shared->crossbar, .rank = rank()};
    auto pair = s.shared->pair(s.owned, message.sends ? rank() : peer,
                               message.sends ? peer : rank(), waiter);
    if (!pair.ok()) return s.refused(pair.status());
    end.reset(new Member(std::move(*pair), message.sends ? 0 : 1, s.agenda));
    end->state_->whole = s.owned;
    end->state_->made_as(s);
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
  return give_up(make_error(Code::out_of_memory,
                            [&] { return "messages of rank " + std::to_string(rank()); }));
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
  // Both are known to be possible before either is under way.
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

// --- Several at once ---

Status Member::settle(Result<Request> request) {
  if (!request.ok()) return request.status();
  return state_->agenda->take(*request) ? Status() : request->wait();
}

Status Member::group(const std::function<void()>& calls) {
  if (!calls) return invalid_argument("group: calls is empty; it must be something to call");
  if (state_->shared->forked()) return forked_status();
  Agenda& agenda = *state_->agenda;
  const bool outermost = agenda.begin_group();
  try {
    calls();
  } catch (...) {
    if (outermost) agenda.end_group();  // which lets go of what is under way
    throw;
  }
  if (!outermost) return {};
  std::vector<Request> all = agenda.end_group();
  return wait_all(all);
}

}  // namespace rankine
