#include "engine/faults/judge.h"

#include <algorithm>

#include "engine/base/deadline.h"
#include "engine/faults/failing_new.h"
#include "engine/run/machine.h"

namespace rankine::faults {

std::atomic<std::int64_t>* finished_calls = nullptr;
std::int64_t (*clock_of_promises)() = now_ns;

Judge::Judge(const FaultCase& test, const Promise& promise, Tally& tally)
    : test_(test), promise_(promise), tally_(tally) {}

void Judge::mark_fault() { fault_ns_->store(clock_of_promises()); }

void Judge::blame(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++tally_.undocumented;
  tally_.remark(to_string(test_) + ": " + what);
}

void Judge::blame_wrong(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++tally_.wrong;
  tally_.remark(to_string(test_) + ": " + what);
}

void Judge::excuse(const std::string& why) {
  const std::lock_guard lock(mutex_);
  tally_.impossible = 1;
  tally_.why_impossible = why;
}

bool Judge::answer(const Status& status, const std::optional<Codes>& documented) {
  if (finished_calls != nullptr) finished_calls->fetch_add(1, std::memory_order_relaxed);
  const Codes allowed = documented.value_or(promise_.documented);
  {
    const std::lock_guard lock(mutex_);
    ++tally_.returned[static_cast<std::size_t>(status.code())];
  }
  if (!status.ok() && !allowed.has(status.code())) {
    blame("undocumented " + std::string(name_of(status.code())) + ": " + status.text());
  }
  return status.ok();
}

bool Judge::call(Member& me, CaseBuffers& buffers, const CollectiveCase& test, const How& how) {
  buffers.fill(test, me.rank());
  Call call = call_of(test, buffers);
  if (how.spoil) how.spoil(call);
  const std::int64_t begin_ns = clock_of_promises();
  const Status status = [&] {
    std::optional<AllocationsCount> counts;
    if (how.allocations_count) counts.emplace();
    if (how.make) return how.make(me, call);
    return how.observer != nullptr ? me.call(call, *how.observer) : me.call(call);
  }();
  const std::int64_t end_ns = clock_of_promises();
  if (how.returned) how.returned();

  const std::string who = "rank " + std::to_string(me.rank()) + ", " + to_string(test);
  std::string fault;
  if (answer(status, how.documented)) {
    fault = buffers.check();
  } else if (status.code() == Code::invalid_argument) {
    fault = buffers.check_untouched();
  } else {
    fault = buffers.check_around();
  }
  if (!fault.empty()) {
    blame_wrong(who + ": " + std::string(name_of(status.code())) + ", but " + fault);
  }

  judge_time_and_text(status, begin_ns, end_ns, who, how.excused);
  return status.ok();
}

bool Judge::answer_in_time(const Status& status, std::int64_t begin_ns, const std::string& who,
                           bool excused) {
  answer(status);
  judge_time_and_text(status, begin_ns, clock_of_promises(), who, excused);
  return status.ok();
}

void Judge::judge_time_and_text(const Status& status, std::int64_t begin_ns, std::int64_t end_ns,
                                const std::string& who, bool excused) {
  const std::int64_t fault_ns = fault_ns_->load();
  const bool at_once = promise_.at_once && fault_ns != 0 && !status.ok();
  const std::int64_t due_ns =
      at_once ? std::max(begin_ns, fault_ns) + kGraceNs
              : deadline_after(begin_ns, deadline_after(kGraceNs, saturated_ns(promise_.timeout)));
  const std::lock_guard lock(mutex_);
  if (!excused && end_ns > due_ns) {
    ++tally_.late;
    tally_.remark(to_string(test_) + ": " + who + ": " + std::string(name_of(status.code())) +
                  " came " + std::to_string((end_ns - due_ns) / 1'000'000) + " ms late");
  }
  if (promise_.same_text && !status.ok() && status.code() != Code::invalid_argument) {
    if (!text_) text_ = status.text();
    if (*text_ != status.text()) {
      ++tally_.undocumented;
      tally_.remark(to_string(test_) + ": " + who + " is told '" + status.text() +
                    "', another rank '" + *text_ + "'");
    }
  }
}

}  // namespace rankine::faults
