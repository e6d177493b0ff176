// Makes calls and judges what comes back of them, against what a fault may lead to.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "engine/api/communicator.h"
#include "engine/faults/collective_case.h"
#include "engine/faults/fault.h"
#include "engine/run/interpret.h"

namespace rankine::faults {

// For calls that must come to their end without a deadline: as long as a communicator gives them.
inline constexpr std::chrono::milliseconds kLong{30'000};
// For calls that find out by their deadline.
inline constexpr std::chrono::milliseconds kShort{40};
// How late a call may be: after its deadline, or after what ended it.
inline constexpr std::int64_t kGraceNs = 1'000'000'000;

struct Promise {
  std::chrono::milliseconds timeout = kLong;  // of the communicator
  // Whether errors must come within a second of mark_fault() (or of the call's begin, if that is
  // later), and not only of the deadline.
  bool at_once = false;
  Codes documented{};     // beside success
  bool same_text = true;  // all ranks are told the same reason
};

// How a call is made.
struct How {
  RoundObserver* observer = nullptr;
  // Instead of Member::call(), and without an observer: by requests, as a message, in a group.
  std::function<Status(Member&, const Call&)> make{};
  // The rank's own fault, which excuses it from being on time, but not from being right.
  bool excused = false;
  std::function<void(Call&)> spoil{};  // changes the arguments
  std::function<void()> returned{};    // called as soon as the call has come back
  std::optional<Codes> documented{};   // beside success, in place of the promise's
  bool allocations_count = false;      // see failing_new.h
};

// Thread-safe.
class Judge {
 public:
  Judge(const FaultCase& test, const Promise& promise, Tally& tally);
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  const Promise& promise() const { return promise_; }

  // Fills the buffers, calls, and judges. Whether the call succeeded.
  bool call(Member& me, CaseBuffers& buffers, const CollectiveCase& test, const How& how = {});
  // What a call or a constructor of the engine said, apart from its data. False: it failed.
  bool answer(const Status& status, const std::optional<Codes>& documented = {});

  // The same, of what was asked for at that time: it must come when promised, and be the same for
  // all ranks where that is promised. `excused`: but for the time.
  bool answer_in_time(const Status& status, std::int64_t begin_ns, const std::string& who,
                      bool excused = false);

  void mark_fault();                    // it happens now
  void blame(const std::string& what);  // an outcome that is not documented
  void blame_wrong(const std::string& what);
  // The case cannot be made here.
  void excuse(const std::string& why);

  // Where ranks are processes, each has a judge of its own: they share when the fault happened, and
  // whoever gathers what they say compares the texts. Before any call.
  void share_fault_time(std::atomic<std::int64_t>& fault_ns) { fault_ns_ = &fault_ns; }
  // Of the first error that a call or a meeting returned, where all ranks must be told the same.
  const std::optional<std::string>& text() const { return text_; }

 private:
  void judge_time_and_text(const Status& status, std::int64_t begin_ns, std::int64_t end_ns,
                           const std::string& who, bool excused);

  const FaultCase& test_;
  const Promise promise_;
  Tally& tally_;
  std::mutex mutex_;  // guards the tally and the text
  std::optional<std::string> text_;
  std::atomic<std::int64_t> own_fault_ns_{0};
  std::atomic<std::int64_t>* fault_ns_ = &own_fault_ns_;
};

// What lateness is told by: now_ns, but where a test has a clock of its own, because the load of
// its machine is not the engine's doing. Set before ranks are at work.
extern std::int64_t (*clock_of_promises)();

// Counts calls that have come to their ends, for whoever watches this process; nullptr: nobody.
extern std::atomic<std::int64_t>* finished_calls;

}  // namespace rankine::faults
