#include "bench/rivals/rival.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/member.h"

namespace rankine::rivals {
namespace {

// Runs the calls of members that have joined.
class RankineRival : public Rival {
 public:
  bool takes(Collective, std::size_t) const override { return true; }

  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    const Status status = ask(collective, rank, in, out, block);
    if (!status.ok()) {
      std::fprintf(stderr, "rivals: %s: %s\n", name.c_str(), status.text().c_str());
      std::abort();  // the others would measure an engine that has failed
    }
  }

 protected:
  RankineRival(std::string its_name, Family its_family, const Setup& setup, CallOptions options)
      : Rival(std::move(its_name), its_family),
        options_(options),
        members_(static_cast<std::size_t>(setup.ranks)) {}

  void make(const CommunicatorOptions& options) {
    communicator_ = Communicator::create(options).value();
  }
  Member& join(int rank) {
    auto& member = members_[static_cast<std::size_t>(rank)];
    member = communicator_->join(rank).value();
    return *member;
  }
  Member& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }

 private:
  Status ask(Collective collective, int rank, const float* in, float* out, std::size_t block) {
    Member& me = member(rank);
    const std::size_t all = block * members_.size();
    switch (collective) {
      case Collective::all_reduce:
        return me.all_reduce(std::span(in, block), std::span(out, block), options_);
      case Collective::broadcast:  // on the root `out` is `in`, which is only read
        return me.broadcast(std::span(rank == 0 ? const_cast<float*>(in) : out, block), 0,
                            options_);
      case Collective::all_gather:
        return me.all_gather(std::span(in, block), std::span(out, all), options_);
      case Collective::reduce_scatter:
        return me.reduce_scatter(std::span(in, all), std::span(out, block), options_);
      case Collective::all_to_all:
        return me.all_to_all(std::span(in, all), std::span(out, all), options_);
      case Collective::reduce:
        return me.reduce(std::span(in, block), std::span(out, rank == 0 ? block : 0), 0,
                         ReduceOp::sum, options_);
    }
    return {};
  }

  const CallOptions options_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;  // destroyed before their communicator
};

constexpr Costs kStaged =
    costs_with({{&Costs::stage_apart_min_bytes, 1}, {&Costs::stage_in_place_min_bytes, 1}});

class Threads final : public RankineRival {
 public:
  Threads(std::string its_name, const Setup& setup, const std::optional<Costs>& costs = {})
      : RankineRival(std::move(its_name), Family::kRankine, setup, {}) {
    try {
      make({.ranks = setup.ranks, .tuned = false, .costs = costs});
      for (int rank = 0; rank < setup.ranks; ++rank) join(rank);
    } catch (const Error& error) {
      missing = error.what();
    }
  }
};

class Processes : public RankineRival {
 public:
  Processes(std::string its_name, Family its_family, const Setup& setup, CallOptions options = {})
      : RankineRival(std::move(its_name), its_family, setup, options),
        ranks_(setup.ranks),
        meeting_name_(next_name()) {}

  void start(int rank) override {
    make({.ranks = ranks_, .tuned = false, .rank = rank, .name = meeting_name_});
    join(rank);
  }

 private:
  // Rivals are created in the driver's process, which forks the ranks.
  static std::string next_name() {
    static std::atomic<int> made{0};
    return "rankine_rivals_" + std::to_string(getpid()) + "_" + std::to_string(++made);
  }

  const int ranks_;
  const std::string meeting_name_;
};

class SharedPayloads final : public Processes {
 public:
  explicit SharedPayloads(const Setup& setup)
      : Processes("rankine_shared", Family::kRegistered, setup, {.shared_payloads = true}) {}

  float* allocate(int rank, std::size_t bytes) override {
    const std::size_t floats = (bytes + sizeof(float) - 1) / sizeof(float);
    payloads_.push_back(member(rank).allocate<float>(floats).value());
    return payloads_.back().span().data();
  }

 private:
  std::vector<Payload<float>> payloads_;  // this process plays one rank
};

}  // namespace

std::unique_ptr<Rival> make_rankine(const Setup& setup) {
  return std::make_unique<Threads>("rankine", setup);
}

std::unique_ptr<Rival> make_rankine_staged(const Setup& setup) {
  return std::make_unique<Threads>("rankine_staged", setup, kStaged);
}

std::unique_ptr<Rival> make_rankine_plain(const Setup& setup) {
  Costs costs = kStaged;
  costs.stage_stream_min_bytes = costs.stage_piece_max_bytes =
      field_of(&Costs::stage_stream_min_bytes).most;
  return std::make_unique<Threads>("rankine_plain", setup, costs);
}

std::unique_ptr<Rival> make_rankine_processes(const Setup& setup) {
  return std::make_unique<Processes>("rankine_processes", Family::kRankine, setup);
}

std::unique_ptr<Rival> make_rankine_shared(const Setup& setup) {
  return std::make_unique<SharedPayloads>(setup);
}

}  // namespace rankine::rivals
