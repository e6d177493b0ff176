#include "tests/engine/run/session.h"

#include <algorithm>

#include "tests/engine/run/replay.h"

namespace rankine {
namespace {

constexpr std::uint32_t kSignChange = std::uint32_t{1} << 31;

}  // namespace

Session random_session(Random& random, SessionRules rules) {
  Session session;
  rules.calls.ranks = random.between(1, rules.calls.ranks);
  rules.calls.slot_payload = random.pick(std::vector<std::size_t>{8, 48, 112, 304});
  if (random.one_in(2)) rules.calls.most_elements = std::min(24, rules.calls.most_elements);
  session.ranks = rules.calls.ranks;
  session.slot_payload = rules.calls.slot_payload;
  const auto before = static_cast<std::uint32_t>(random.below(40));
  if (random.one_in(3)) {
    session.first_count = 0U - before;
  } else if (random.one_in(2)) {
    session.first_count = kSignChange - before;
  }
  for (int i = 0; i < rules.schedules; ++i) {
    session.made.push_back(random_call(random, rules.calls));
    const TestCall& call = session.made.back();
    session.fault = call.before.empty()  ? call.text
                    : rules.checks_plans ? fault_of(call.plan, call.in_turns)
                                         : std::string();
    if (!session.fault.empty()) {
      session.fault += "\n" + call.text + "\n" + to_string(call.schedule);
      return session;
    }
  }
  for (const TestCall& call : session.made) session.calls.push_back(&call);
  for (int i = random.below(rules.repetitions + 1); i > 0; --i) {
    session.calls.push_back(&random.pick(session.made));
  }
  for (std::size_t i = session.calls.size(); i > 1; --i) {
    std::swap(session.calls[i - 1],
              session.calls[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  }
  return session;
}

std::string Session::explain(const std::string& what) const {
  std::string text = what + "\n" + std::to_string(ranks) + " ranks, slots of " +
                     std::to_string(slot_payload) + " bytes, counters from " +
                     std::to_string(first_count);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string name = "call " + std::to_string(i);
    text += "\n" + name + ": " + calls[i]->text;
    if (what.find(name + ",") != std::string::npos) text += "\n" + to_string(calls[i]->schedule);
  }
  return text;
}

}  // namespace rankine
