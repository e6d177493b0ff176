// A job: the ranks of one contender as processes of their own, asleep until a batch is announced,
// which they then make together. Lies in memory that all of them have mapped, and holds no address.
// Announcements, barriers and times go this way for every contender, so that all are timed by the
// same code and nothing polls between batches. Header only, also compiled by mpicxx.
#pragma once

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>

#include "bench/rivals/batch.h"
#include "bench/rivals/meeting.h"

namespace rankine::rivals {

inline constexpr unsigned kBatchLimitS = 150;  // a contender that takes longer for one batch hangs
// After so long a rank ends itself, by SIGALRM: before anybody gives it up.
inline constexpr unsigned kRankLimitS = 120;

inline void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Until somebody wakes, at most so long; so whoever waits can see whether the others still live.
inline void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value,
                        const timespec& limit) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

struct Job {
  std::atomic<std::uint32_t> order{0};  // counts announcements
  // Ranks that have made what was announced last: for a conductor that is no rank itself.
  std::atomic<std::uint32_t> finished{0};
  bool stop = false;  // these two belong to the announcement
  Batch batch;
  pid_t conductor = 0;  // the process that announces
  Meeting meeting;
  std::atomic<bool> has_words{false};
  char words[300] = {};  // of the first rank that failed

  // The conductor, while no rank makes calls.
  void announce(const Batch& next) noexcept {
    batch = next;
    finished.store(0, std::memory_order_relaxed);   // published by the next line
    order.fetch_add(1, std::memory_order_release);  // pairs with next_order()
    wake_all(order);
  }
  void dismiss() noexcept {
    stop = true;
    order.fetch_add(1, std::memory_order_release);  // pairs with next_order()
    wake_all(order);
  }

  // A rank that has seen so many announcements sleeps until there is one more. False: it is
  // dismissed. Where the conductor has died, the rank ends.
  bool next_order(std::uint32_t seen) noexcept {
    while (order.load(std::memory_order_acquire) == seen) {  // pairs with announce(), dismiss()
      sleep_while(order, seen, {1, 0});
      if (kill(conductor, 0) != 0) _exit(1);
    }
    return !stop;
  }

  // A rank: it is done with the batch, or ready for the first one.
  void finish() noexcept {
    const auto ranks = static_cast<std::uint32_t>(meeting.ranks);
    // Pairs with the conductor's acquire load: it reads the seats afterwards.
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) wake_all(finished);
  }

  void say(const std::string& text) noexcept {
    if (has_words.exchange(true, std::memory_order_acq_rel)) return;
    std::memcpy(words, text.data(), std::min(text.size(), sizeof(words) - 1));
  }
};

// One rank's part of the batch that was announced: make(batch) makes its calls. When this returns,
// all seats are written.
template <class Make>
void take_part(Job& job, int rank, Make&& make) {
  const Batch batch = job.batch;
  alarm(kRankLimitS);
  make(batch);
  job.meeting.barrier(rank);
  alarm(0);
  job.finish();
}

// A rank that only follows, until it is dismissed.
template <class Make>
void follow(Job& job, int rank, Make&& make) {
  for (std::uint32_t seen = 0; job.next_order(seen); ++seen) take_part(job, rank, make);
}

}  // namespace rankine::rivals
