// A thread that moves on what ranks have started, while they do other things: one per communicator
// that names a core for it (CommunicatorOptions::progress_core), for all its ranks and the groups
// that are split from it. Else progress is made by whoever is inside a call (request.h).
//
// For as long as it lives it is pinned to that core, keeps it from teams (taken_cores.h), and
// counts among the threads that play ranks (rank_threads.h). It sleeps while nothing is started;
// while all that is started waits it lets time pass as the communicator's policy says (idling.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/api/taken_cores.h"
#include "engine/base/status.h"
#include "engine/run/crossbar.h"

namespace rankine {

class Agenda;

// What came of a look at what is started.
enum class Progress : std::uint8_t { nothing_to_do, all_waits, moved };

class ProgressThread {
 public:
  // It waits as that crossbar says, which outlives it. Errors: invalid_argument for a core to which
  // it cannot be pinned, system where there is no thread to be had.
  static Result<std::shared_ptr<ProgressThread>> start(int core, const Crossbar& crossbar);
  // On another thread than its own.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Moves that on, too, for as long as it lives. Thread-safe; may throw std::bad_alloc.
  void serve(const std::shared_ptr<Agenda>& agenda);
  // There is something on an agenda that nobody is at. Thread-safe.
  void wake() noexcept;

 private:
  ProgressThread(int core, const Crossbar& crossbar);
  void work();
  Progress once() noexcept;
  // The next one that lives from there on, or nullptr. Those that are gone leave the list.
  std::shared_ptr<Agenda> agenda_at(std::size_t i) noexcept;

  const TakenCores core_;
  const Crossbar& crossbar_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Agenda>> agendas_;
  bool due_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rankine
