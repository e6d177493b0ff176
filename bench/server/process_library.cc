#include "bench/server/process_library.h"

#include "bench/rivals/crew.h"
#include "bench/rivals/gloo_rival.h"
#include "bench/server/rankine_exchange.h"
#include "bench/server/rival_exchange.h"
#include "engine/api/communicator.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

class Rankine : public ProcessLibrary {
 public:
  void play(const Place& place, const std::function<void(Exchange&)>& part) override {
    // Before the thread is pinned: how ranks wait depends on how many cores they may use.
    const auto communicator =
        Communicator::create({.ranks = place.ranks, .rank = place.rank, .name = place.name})
            .value();
    rivals::pin_this_thread(place.cpu);
    const auto me = communicator->join(place.rank).value();
    RankineExchange exchange(*me);
    part(exchange);
  }
};

class OfRival : public ProcessLibrary {
 public:
  explicit OfRival(std::unique_ptr<rivals::Rival> rival) : rival_(std::move(rival)) {
    if (!rival_->missing.empty()) throw Error(Code::system, rival_->name + ": " + rival_->missing);
  }
  void play(const Place& place, const std::function<void(Exchange&)>& part) override {
    rival_->start(place.rank);
    rivals::pin_this_thread(place.cpu);
    RivalExchange exchange(*rival_, place.rank, place.ranks);
    part(exchange);
  }

 private:
  std::unique_ptr<rivals::Rival> rival_;
};

}  // namespace

std::unique_ptr<ProcessLibrary> make_rankine() { return std::make_unique<Rankine>(); }

std::unique_ptr<ProcessLibrary> make_gloo(int ranks) {
  rivals::Setup setup;
  setup.ranks = ranks;
  setup.processes = true;
  return std::make_unique<OfRival>(rivals::make_gloo(setup));
}

}  // namespace rankine::server
