#include "bench/server/thread_crew.h"

#include <thread>
#include <utility>

#include "bench/server/barrier_exchange.h"
#include "bench/server/rankine_exchange.h"
#include "bench/server/work.h"
#include "engine/api/team.h"

namespace rankine::server {
namespace {

class ThreadCrew : public Crew {
 public:
  ThreadCrew(const Model& model, std::uint64_t seed, int ranks, Library library, Line line)
      : line_(std::move(line)),
        barrier_(ranks),
        team_(Team::create({.ranks = ranks}).value()),
        clerk_([this, model, seed, library] {
          const Status status = team_->run([&](Member& me) {
            RankineExchange rankine(me);
            BarrierExchange barrier(barrier_, me.rank());
            Exchange& ours =
                library == Library::rankine ? static_cast<Exchange&>(rankine) : barrier;
            Decoder decoder(model, kPositions, seed, ours);
            work(decoder, ours, line_);
          });
          if (!status.ok()) line_.say(lost(Error(status.code(), status.text()).what()));
        }) {}
  ~ThreadCrew() override { clerk_.join(); }

 private:
  Line line_;
  Barrier barrier_;
  std::unique_ptr<Team> team_;
  std::thread clerk_;  // waits for the ranks
};

}  // namespace

std::unique_ptr<Crew> hire_threads(const Model& model, std::uint64_t seed, int ranks,
                                   Library library, Line line) {
  return std::make_unique<ThreadCrew>(model, seed, ranks, library, std::move(line));
}

}  // namespace rankine::server
