#include "bench/rivals/protocol.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace rankine::rivals {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStartLimitS = 60;
constexpr double kEndLimitS = 2;

}  // namespace

ProcessContender::ProcessContender(std::unique_ptr<Rival> rival, const Setup& setup)
    : Contender(rival->name, rival->family), rival_(std::move(rival)), setup_(setup), job_(1) {
  missing = rival_->missing;
  if (!missing.empty()) return;
  Job& job = job_[0];
  job.conductor = getpid();
  job.batch_barrier.ranks = setup.ranks;
  job.batch_barrier.crowded = setup.crowded;
  for (int rank = 0; rank < setup.ranks; ++rank) {
    ranks_.emplace_back([&] { return live(rank); });
    if (ranks_.back().runs()) continue;
    give_up(std::string("fork: ") + std::strerror(errno));
    return;
  }
}

ProcessContender::~ProcessContender() {
  job_[0].dismiss();
  const auto until = Clock::now() + std::chrono::duration<double>(kEndLimitS);
  for (ChildProcess& rank : ranks_) rank.wait(until - Clock::now());
}

std::vector<pid_t> ProcessContender::ranks() const {
  std::vector<pid_t> all;
  for (const ChildProcess& rank : ranks_) all.push_back(rank.id());
  return all;
}

int ProcessContender::live(int rank) {
  Job& job = job_[0];
  signal(SIGALRM, SIG_DFL);
  const auto core = static_cast<std::size_t>(rank) % setup_.cpus.size();
  try {
    // Before the rank is pinned: its wait policy may depend on the number of usable cores.
    rival_->start(rank);
    pin_this_thread(setup_.cpus[core]);
    Buffer own[2];
    float* buffers[2];
    for (int i = 0; i < 2; ++i) {
      buffers[i] = rival_->allocate(rank, setup_.max_bytes);
      if (buffers[i] != nullptr) continue;
      own[i] = Buffer(setup_.max_bytes);
      buffers[i] = own[i].data();
    }
    nanoseconds_per_tick();
    job.finish();
    follow(job, rank, [&](const Batch& batch) {
      run_batch(batch, job.batch_barrier, rank, buffers[0], buffers[1],
                [&](float* in, float* out, const Shape& s) {
                  rival_->call(batch.collective, rank, in, out, s.block);
                });
    });
  } catch (const std::exception& error) {
    job.say(error.what());
    return 3;
  }
  return 0;
}

void ProcessContender::await() {
  if (missing.empty()) have_finished("did not start", kStartLimitS);
}

Measured ProcessContender::run(const Batch& batch) {
  job_[0].announce(batch);
  if (!have_finished("failed at " + std::to_string(batch.bytes) + " B", kBatchLimitS)) return {};
  return summarise(batch, job_[0].batch_barrier);
}

bool ProcessContender::have_finished(const std::string& what, double limit_s) {
  Job& job = job_[0];
  const auto limit = Clock::now() + std::chrono::duration<double>(limit_s);
  const auto ranks = static_cast<std::uint32_t>(setup_.ranks);
  for (;;) {
    const std::uint32_t finished = job.finished.load(std::memory_order_acquire);  // pairs: finish()
    if (finished == ranks) return true;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::optional<int> status = ranks_[r].wait({});
      if (!status) continue;
      give_up(what + ": rank " + std::to_string(r) + " ended with " + describe_end(*status));
      return false;
    }
    if (Clock::now() > limit) {
      give_up(what + ": nothing for " + std::to_string(static_cast<int>(limit_s)) + " s");
      return false;
    }
    sleep_while(job.finished, finished, {0, 20'000'000});
  }
}

void ProcessContender::give_up(const std::string& what) {
  ranks_.clear();
  missing = what;
  if (job_[0].has_words.load()) missing += std::string(": ") + job_[0].words;
}

}  // namespace rankine::rivals
