// Ranks that are processes, for a scene (scene.h): forked by the process that plays the case, and
// watched by it until all have come to their ends, as they may or as they may not.
//
// A rank plays; when all ranks have played, or have gone, those that are left begin afresh among
// themselves, in the same processes; what each has counted comes back through a page that they
// share. What they leave in /dev/shm is an outcome that is not documented. Where there are several
// acts, those that are left play the next one, too, with new processes in the others' places.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/faults/fault.h"
#include "engine/faults/tally.h"

namespace rankine::faults {

class ProcessStage {
 public:
  // What one rank's process has to tell.
  struct Report {
    Tally tally{};
    std::optional<std::string> text{};  // of the error that its communicator ended with
  };
  struct Play {
    std::function<void(Rank)> first;
    // As this rank of so many.
    std::function<void(Rank rank, int ranks)> afresh;
    std::function<Report()> report;  // of this act
    int acts = 1;
  };

  explicit ProcessStage(int ranks);
  ~ProcessStage();
  ProcessStage(const ProcessStage&) = delete;
  ProcessStage& operator=(const ProcessStage&) = delete;

  // In a process without other threads, once: all of it. What the ranks report, act by act; deaths
  // that nobody has announced and files that are left are added to `tally`, with `who` before each
  // remark. Errors: no process.
  std::vector<Report> run(const Play& play, const std::string& who, Tally& tally);

  // A name for communicators of these ranks, which no other stage has.
  const std::string& name() const { return name_; }

  // In the ranks' processes, too; each sees what the others have done in this act.
  int act() const { return page_->act.load(); }  // from 0
  std::atomic<std::int64_t>& fault_ns() { return page_->fault_ns; }
  std::atomic<int>& started() { return page_->started; }
  std::atomic<int>& done() { return page_->done; }
  std::atomic<int>& arrived() { return page_->arrived; }
  // The calling rank's process is going to end, stop or become another program, of which nobody
  // hears before all others have come to their ends.
  void goes(Rank r) { place(r).state.store(State::going); }

 private:
  enum class State : int { playing, going, played, told };
  struct Place {
    std::atomic<State> state{State::playing};
    Rank rank_afresh = 0;     // published by Page::afresh
    std::uint32_t bytes = 0;  // of the report
    char report[32'000];
  };
  struct Page {
    std::atomic<std::int64_t> fault_ns;
    std::atomic<int> started, done, arrived;
    std::atomic<int> afresh;  // how many ranks begin afresh; 0: not yet
    std::atomic<int> act;     // publishes all of that, and the places
  };

  Place& place(Rank r) { return places_[r]; }
  [[noreturn]] void live(Rank r, const Play& play);
  void tell(Rank r, const Report& report);
  void play_act(Rank r, const Play& play);
  void start_missing(const Play& play);
  // As it was before the first one.
  void begin_act(int act);
  std::optional<Report> hear(Rank r);
  // Whether that rank's process has ended, and how, if nobody has been told of it.
  bool has_ended(Rank r, const std::string& who, Tally& tally);
  void end(Rank r);

  const int ranks_;
  const std::string name_;
  std::size_t bytes_ = 0;
  Page* page_ = nullptr;
  Place* places_ = nullptr;
  std::vector<pid_t> processes_;  // 0: has ended
};

}  // namespace rankine::faults
