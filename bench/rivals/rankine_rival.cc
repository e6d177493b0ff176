#include "bench/rivals/rankine_rival.h"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"

namespace rankine::rivals {
namespace {

class RankineRival final : public Rival {
 public:
  explicit RankineRival(const Setup& setup) : Rival("rankine", Family::kRankine) {
    auto communicator = Communicator::create({.ranks = setup.ranks, .tuned = false});
    if (!communicator.ok()) {
      missing = communicator.status().text();
      return;
    }
    communicator_ = std::move(*communicator);
    for (int rank = 0; rank < setup.ranks; ++rank) {
      auto member = communicator_->join(rank);
      if (!member.ok()) {
        missing = member.status().text();
        return;
      }
      members_.push_back(std::move(*member));
    }
  }

  bool takes(Collective, std::size_t) const override { return true; }

  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    const Status status = ask(collective, rank, in, out, block);
    if (!status.ok()) {
      std::fprintf(stderr, "rivals: rankine: %s\n", status.text().c_str());
      std::abort();  // the others would measure an engine that has ended
    }
  }

 private:
  Status ask(Collective collective, int rank, const float* in, float* out, std::size_t block) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    const std::size_t all = block * members_.size();
    switch (collective) {
      case Collective::all_reduce:
        return member.all_reduce(std::span(in, block), std::span(out, block));
      case Collective::broadcast:  // the root's buffer is both in and out, and only read
        return member.broadcast(std::span(rank == 0 ? const_cast<float*>(in) : out, block), 0);
      case Collective::all_gather:
        return member.all_gather(std::span(in, block), std::span(out, all));
      case Collective::reduce_scatter:
        return member.reduce_scatter(std::span(in, all), std::span(out, block));
      case Collective::all_to_all:
        return member.all_to_all(std::span(in, all), std::span(out, all));
      case Collective::reduce:
        return member.reduce(std::span(in, block), std::span(out, rank == 0 ? block : 0), 0);
    }
    return {};
  }

  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;  // gone before their communicator
};

}  // namespace

std::unique_ptr<Rival> make_rankine(const Setup& setup) {
  return std::make_unique<RankineRival>(setup);
}

}  // namespace rankine::rivals
