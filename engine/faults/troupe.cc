#include "engine/faults/troupe.h"

#include <cxxabi.h>

#include <thread>
#include <utility>
#include <vector>

namespace rankine::faults {

Troupe::Troupe(const FaultCase& test, const Promise& promise, Tally& tally) : test_(test) {
  if (test.processes) {
    scene_ = std::make_unique<Scene>(test, promise, tally);
    return;
  }
  judge_ = std::make_unique<Judge>(test, promise, tally);
  auto made = Team::create(team_options(test));
  if (judge_->answer(made.status())) team_ = std::move(*made);
}

namespace {

// A rank's function, on this thread, which takes the member along as it ends. (What is caught has
// no object where GCC unwinds, as in team.cc.)
[[gnu::no_sanitize("null")]] std::exception_ptr play_alone(std::unique_ptr<Member> mine,
                                                           CaseBuffers& buffers,
                                                           const Troupe::Functions& functions) {
  try {
    const std::unique_ptr<Member> owned = std::move(mine);
    functions.of_rank(*owned, buffers);
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_exit() or pthread_cancel()
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

std::optional<Status> Troupe::run(const Functions& functions) {
  std::thread directs;
  if (team_ != nullptr) {
    if (functions.director) directs = std::thread(functions.director);
    std::vector<CaseBuffers> buffers(static_cast<std::size_t>(test_.ranks));
    const Status status = team_->run(
        [&](Member& me) { functions.of_rank(me, buffers[static_cast<std::size_t>(me.rank())]); });
    if (directs.joinable()) directs.join();
    if (functions.ended) functions.ended(team_->thrown());
    return status;
  }
  scene_->run([&](Seat& seat) {
    const bool is_victim = seat.rank() == functions.victim;
    if (is_victim && functions.director) directs = std::thread(functions.director);
    std::exception_ptr thrown;
    std::thread plays(
        [&] { thrown = play_alone(std::move(seat.member), seat.buffers, functions); });
    plays.join();
    if (directs.joinable()) directs.join();
    if (is_victim && functions.ended) functions.ended(thrown);
  });
  return std::nullopt;
}

}  // namespace rankine::faults
