// Ranks whose functions may come to an end of their own: by an exception, by pthread_exit(), by
// pthread_cancel(). Who runs such functions is a team, on its threads; or, where ranks are
// processes, a thread in each of them that owns its rank's member, so that whatever unwinds its
// stack takes the rank along.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "engine/api/team.h"
#include "engine/faults/scene.h"

namespace rankine::faults {

class Troupe {
 public:
  // Where the ranks cannot be had, that is judged, and works() is false. Processes meet in run().
  Troupe(const FaultCase& test, const Promise& promise, Tally& tally);
  Troupe(const Troupe&) = delete;
  Troupe& operator=(const Troupe&) = delete;

  bool works() const { return team_ != nullptr || scene_ != nullptr; }
  Judge& judge() { return scene_ ? scene_->judge() : *judge_; }
  Communicator& communicator() { return scene_ ? scene_->communicator() : team_->communicator(); }

  struct Functions {
    std::function<void(Member&, CaseBuffers&)> of_rank;
    Rank victim = 0;  // whose function may end so
    // On a further thread where the victim is, meanwhile.
    std::function<void()> director{};
    // Where the victim is, when its function has ended: what it threw, or nullptr.
    std::function<void(const std::exception_ptr&)> ended{};
  };
  // Until all have come to their ends. What a team says of the run; nothing where ranks are
  // processes.
  std::optional<Status> run(const Functions& functions);
  // Again, where a team is there, as a further run of it.
  Team* team() { return team_.get(); }

 private:
  const FaultCase& test_;
  std::unique_ptr<Scene> scene_;  // of processes
  std::unique_ptr<Judge> judge_;  // of a team, as is the rest
  std::unique_ptr<Team> team_;
};

}  // namespace rankine::faults
