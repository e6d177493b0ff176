// Random mixtures of all that ranks can do: calls that are waited for at once and later, with
// epilogues and without, messages, group(), on a communicator and on those that it is split into,
// which come and go. RANKINE_TEST_STEPS says how many steps of a team in all, RANKINE_TEST_SEED
// which.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "tests/engine/api/random_case.h"
#include "tests/engine/api/witness.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

// Something that is under way, with what must come of it.
struct Job {
  Member* on = nullptr;
  CollectiveCase test;  // of a message: send_recv from root to peer
  bool is_message = false;
  std::unique_ptr<CaseBuffers> buffers = std::make_unique<CaseBuffers>();
  std::unique_ptr<Witness> witness{};
  Request request{};

  void fill() { buffers->fill(test, on->rank()); }
  // Rows of one element, or of as many as the call counts.
  void bring_epilogue(bool long_rows) {
    const bool gathers = test.collective == Collective::all_gather;
    if (!gathers && test.collective != Collective::all_reduce &&
        test.collective != Collective::reduce_scatter) {
      return;
    }
    const std::size_t outputs =
        gathers ? test.count * static_cast<std::size_t>(on->ranks()) : test.count;
    const std::size_t row = long_rows && test.count > 0 ? test.count : 1;
    witness = std::make_unique<Witness>(outputs / row, row, size_of(test.type));
    test.options.epilogue = &witness->epilogue;
  }
  std::string fault() const {
    if (witness != nullptr && !witness->saw_each_once())
      return "a row was finished never, or twice";
    if (witness != nullptr && !witness->saw(buffers->out())) {
      return "a row was finished before it was final";
    }
    return buffers->check();
  }
  Message message() {
    const bool sends = on->rank() == test.root;
    return {sends ? const_cast<void*>(buffers->in()) : buffers->out(), test.count, test.type,
            sends ? test.peer : test.root, sends};
  }
  Status call() { return is_message ? on->submit(message()) : on->call(call_of(test, *buffers)); }
  Status start(bool prepares) {
    Call call = call_of(test, *buffers);
    auto made = is_message ? (prepares ? on->prepare(message()) : on->start(message()))
                           : (prepares ? on->prepare(call) : on->start(call));
    if (!made.ok()) return made.status();
    request = std::move(*made);
    return prepares ? request.start() : Status();
  }
};

// One rank. What all must do alike is drawn from `same`, the rest from `own`.
class Player {
 public:
  Player(Member& whole, std::uint64_t seed)
      : whole_(whole), same_(seed), own_(seed + 1 + static_cast<std::uint64_t>(whole.rank())) {}

  void step() {
    const int what = below(same_, 8);
    if (what == 0) return split();
    if (what == 1 && !groups_.empty()) return drop(below(same_, static_cast<int>(groups_.size())));
    std::vector<Job> jobs = draw(what < 4 ? 1 : 1 + below(same_, 6));
    if (below(same_, 3) == 0) {
      answer(whole_.group([&] {
        for (Job* job : shuffled(jobs)) answer(job->call());
      }));
    } else {
      for (Job* job : shuffled(jobs)) answer(job->start(below(own_, 2) == 0));
      wait(jobs);
    }
    for (Job& job : jobs) {
      const std::string fault = job.fault();
      if (!fault.empty()) fail(to_string(job.test) + ": " + fault);
    }
  }

 private:
  static int below(std::mt19937_64& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::remote_error, "rank " + std::to_string(whole_.rank()) + ": " + what);
  }
  void answer(const Status& status) const {
    if (!status.ok()) fail(status.text());
  }

  // Colors that all ranks work out for all, so that they agree on who is where.
  void split() {
    if (groups_.size() == 4) return drop(0);
    const int colors = 1 + below(same_, 3);
    const auto shift = below(same_, 5);
    const bool some_are_out = below(same_, 4) == 0;
    const int color = (whole_.rank() + shift) % (colors + (some_are_out ? 1 : 0));
    auto group = whole_.split(color == colors ? kNoColor : color, below(own_, 100));
    answer(group.status());
    groups_.push_back(std::move(*group));
  }
  void drop(int which) { groups_.erase(groups_.begin() + which); }

  std::vector<Job> draw(int n) {
    std::vector<Job> jobs;
    for (int i = 0; i < n; ++i) {
      const auto seed = same_();
      const int where = below(same_, 2 + static_cast<int>(groups_.size()));
      const bool is_message = below(same_, 3) == 0;
      Job job;
      job.on = where < 2 ? &whole_ : groups_[static_cast<std::size_t>(where - 2)].get();
      if (job.on == nullptr) continue;  // we are in none
      // What members of different groups draw differs, and is their own.
      job.test = random_case(seed, job.on->ranks());
      if (is_message) {
        job.is_message = true;
        job.test.collective = Collective::send_recv;
        job.test.in_place = false;
        job.test.options = {};
        const auto ranks = static_cast<std::uint64_t>(job.on->ranks());
        job.test.root = static_cast<Rank>(seed % ranks);
        job.test.peer = static_cast<Rank>((seed / ranks) % ranks);
        if (job.test.root == job.test.peer) continue;
        if (job.on->rank() != job.test.root && job.on->rank() != job.test.peer) continue;
      }
      if (!is_message && seed % 3 == 0) job.bring_epilogue(seed % 2 == 0);
      job.fill();
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  // In an order of our own, but for those of one communicator, or of one way between two ranks.
  std::vector<Job*> shuffled(std::vector<Job>& jobs) {
    std::vector<Job*> order;
    for (Job& job : jobs) order.push_back(&job);
    std::shuffle(order.begin(), order.end(), own_);
    const auto lane = [](const Job* job) {
      return std::tuple(job->on, job->is_message, job->is_message ? job->test.root : 0,
                        job->is_message ? job->test.peer : 0);
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t k = i + 1; k < order.size(); ++k) {
        if (lane(order[i]) == lane(order[k]) && order[k] < order[i]) std::swap(order[i], order[k]);
      }
    }
    return order;
  }

  void wait(std::vector<Job>& jobs) {
    std::vector<Job*> left;
    for (Job& job : jobs) left.push_back(&job);
    std::shuffle(left.begin(), left.end(), own_);
    while (!left.empty()) {
      Job& job = *left.back();
      switch (below(own_, 4)) {
        case 0:
          answer(job.request.wait());
          break;
        case 1: {
          const auto over = job.request.wait_for(1ms);
          answer(over.status());
          if (!*over) continue;
          break;
        }
        case 2: {
          const auto over = job.request.test();
          answer(over.status());
          if (!*over) {
            answer(whole_.progress());
            continue;
          }
          answer(job.request.wait());
          break;
        }
        default:
          std::rotate(left.begin(), left.end() - 1, left.end());
          continue;
      }
      left.pop_back();
    }
  }

  Member& whole_;
  std::mt19937_64 same_, own_;
  std::vector<std::unique_ptr<Member>> groups_;
};

TEST(Mixture, GivesWhatItsPartsGive) {
  const std::uint64_t steps = number_of("RANKINE_TEST_STEPS", 6'000);
  const std::uint64_t first = number_of("RANKINE_TEST_SEED", 1);
  constexpr int kRanks[] = {2, 3, 4, 6};
  constexpr std::uint64_t kPerTeam = 300;
  for (std::uint64_t made = 0, seed = first; made < steps; made += kPerTeam, ++seed) {
    const int ranks = kRanks[seed % std::size(kRanks)];
    auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(2)});
    ASSERT_TRUE(team.ok()) << team.status().text();
    const Status status = (*team)->run([&](Member& me) {
      Player player(me, seed);
      for (std::uint64_t i = 0; i < kPerTeam; ++i) player.step();
    });
    ASSERT_TRUE(status.ok()) << status.text() << "\nreplay with RANKINE_TEST_SEED=" << seed;
  }
}

}  // namespace
}  // namespace rankine
