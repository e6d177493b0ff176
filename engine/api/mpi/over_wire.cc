// Messages of a call that MPI carries: by this thread or, where only one of a process may call MPI,
// by that one, to which it hands errands.
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "engine/api/mpi/waits.h"

namespace rankine::mpi {

Status Member::State::post(const Errands::Errand& errand) {
  return wait_until(
      [&](bool& done) {
        done = process->errands_of(thread).post(errand);
        return Status();
      },
      [this] { return nobody_carries(); });
}

Status Member::State::nobody_carries() const {
  return make_error(Code::timeout, [&] {
    return no_answer() + " waits for rank " +
           std::to_string(process->homes().first_of(process->homes()[rank].process)) +
           ", whose thread calls MPI for it and is in no call";
  });
}

Status Member::State::on_carrier(std::function<Status()> work) {
  if (calls_mpi()) return work();
  work_ = std::move(work);
  const auto do_it = [](void* of, int) noexcept {
    auto& self = *static_cast<State*>(of);
    try {
      self.done_with_ = self.work_();
    } catch (const std::bad_alloc&) {
      self.done_with_ = make_error(Code::out_of_memory, [] { return "messages of a call"; });
    }
    return true;
  };
  if (Status status = post({do_it, this, 0}); !status.ok()) return status;
  Errands& errands = process->errands_of(thread);
  const std::uint32_t number = errands.number();
  Status status = wait_until(
      [&](bool& done) {
        done = errands.is_done(number);
        return Status();
      },
      [this] { return nobody_carries(); });
  return status.ok() ? done_with_ : status;
}

// Requests are made anew where buffers are others than in the call before.
Status Member::State::bind_requests(Ready& ready, const Addresses& memory, int first_tag) {
  if (ready.bound != nullptr && ready.bound->memory() == memory) return {};
  return on_carrier([this, &ready, memory, first_tag] {
    ready.bound = nullptr;
    auto bound = BoundRequests::make(
        ready.messages, memory,
        {process->homes(), rank, process->comm(), options.most_message_bytes}, first_tag);
    if (!bound.ok()) return bound.status();
    ready.bound = std::move(*bound);
    return Status();
  });
}

Status Member::State::start_wire(Ready& ready, int parcel) {
  ++under_way_;
  if (calls_mpi()) return ready.bound->start(parcel);
  const auto start = [](void* of, int which) noexcept {
    auto& all = *static_cast<Ready*>(of);
    if (all.of_wire.ok()) all.of_wire = all.bound->start(which);
    return true;
  };
  return post({start, &ready, parcel});
}

Status Member::State::test_wire(Ready& ready, int parcel, bool& done) {
  if (calls_mpi()) return ready.bound->test(parcel, done);
  Errands& errands = process->errands_of(thread);
  const auto test = [](void* of, int which) noexcept {
    auto& all = *static_cast<Ready*>(of);
    bool over = false;
    if (all.of_wire.ok()) all.of_wire = all.bound->test(which, over);
    return over || !all.of_wire.ok();
  };
  if (!asked_) asked_ = errands.post({test, &ready, parcel});
  done = asked_ && errands.is_done(errands.number());
  if (!done) return {};
  asked_ = false;
  return ready.of_wire;
}

void Member::State::cancel_wire(Ready& ready) noexcept {
  if (ready.bound == nullptr) return;
  if (calls_mpi()) return ready.bound->cancel();
  // Where the other thread is in no call any more nobody does it, and nobody waits.
  process->errands_of(thread).post({[](void* of, int) noexcept {
                                      static_cast<Ready*>(of)->bound->cancel();
                                      return true;
                                    },
                                    &ready, 0});
}

}  // namespace rankine::mpi
