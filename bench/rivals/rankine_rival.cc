#include "bench/rivals/rankine_rival.h"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
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

  void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept override {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    const Status status = member.all_reduce(std::span(in, count), std::span(out, count));
    if (!status.ok()) {
      std::fprintf(stderr, "rivals: rankine: %s\n", status.text().c_str());
      std::abort();  // the others would measure an engine that has ended
    }
  }

 private:
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;  // gone before their communicator
};

}  // namespace

std::unique_ptr<Rival> make_rankine(const Setup& setup) {
  return std::make_unique<RankineRival>(setup);
}

}  // namespace rankine::rivals
