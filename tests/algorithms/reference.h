// Reference executes a schedule literally on integers: all reads of a round, then its writes. It is
// slow and shares no code with the engine's verifier and executor, so its results are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

using Value = std::optional<std::int64_t>;  // nullopt: no value there
using Places = std::vector<Value>;          // of one rank; the blocks of plane 0 come first

class Reference {
 public:
  Reference(const Schedule& schedule, const std::function<Value(Rank, Block)>& before)
      : schedule_(schedule) {
    for (Rank r : ranks(schedule.ranks)) {
      held_.emplace_back(static_cast<std::size_t>(schedule.slots()));
      for (Block b = 0; b < schedule.blocks; ++b) at(r, b) = before(r, b);
    }
  }

  // Runs rounds [next, end); end < 0: all remaining rounds.
  Reference& run(int end = -1) {
    if (end < 0) end = schedule_.rounds;
    for (; next_ < end; ++next_) round(next_);
    return *this;
  }

  Value get(Rank r, Block b, int plane = 0) const {
    return held_[static_cast<std::size_t>(r)]
                [static_cast<std::size_t>(slot_of(schedule_, b, plane))];
  }
  // Plane 0 of every rank, 0 in empty places.
  std::vector<std::vector<std::int64_t>> table() const {
    std::vector<std::vector<std::int64_t>> out;
    for (Rank r : ranks(schedule_.ranks)) {
      out.emplace_back();
      for (Block b = 0; b < schedule_.blocks; ++b) out.back().push_back(get(r, b).value_or(0));
    }
    return out;
  }
  const std::string& error() const { return error_; }  // empty: no undefined action so far

 private:
  Value& at(Rank r, int place) {
    return held_[static_cast<std::size_t>(r)][static_cast<std::size_t>(place)];
  }

  void round(int k) {
    struct Write {
      Rank to;
      int place;
      TransferKind kind;
      std::int64_t value;
    };
    std::vector<Write> writes;
    for_each_transfer(schedule_, k, [&](const Transfer& t) {
      const std::vector<int> what = t.what.list.to_vector(), where = t.where.list.to_vector();
      t.from.for_each([&](Rank from) {
        for (std::size_t i = 0; i < what.size(); ++i) {
          const Value value = at(from, slot_of(schedule_, what[i], t.what.plane));
          if (!value) {
            error_ = "round " + std::to_string(k) + ": rank " + std::to_string(from) +
                     " has nothing in block " + std::to_string(what[i]);
            return;
          }
          t.to.for_each([&](Rank to) {
            writes.push_back({to, slot_of(schedule_, where[i], t.where.plane), t.kind, *value});
          });
        }
      });
    });
    for (const Write& w : writes) {
      Value& place = at(w.to, w.place);
      place = w.kind == TransferKind::reduce ? place.value_or(0) + w.value : w.value;
    }
  }

  Schedule schedule_;
  std::vector<Places> held_;
  int next_ = 0;
  std::string error_;
};

// The messages of round k as "from>to:blocks", in the order stated: "0>1:3", "0>1,2,3:0",
// "0>1:0.2+" (blocks 0 and 2, added at the receiver).
inline std::vector<std::string> messages(const Schedule& schedule, int k) {
  const auto joined = [](const IndexList& list, char between) {
    std::string out;
    list.for_each(
        [&](int i) { out += (out.empty() ? "" : std::string(1, between)) + std::to_string(i); });
    return out;
  };
  std::vector<std::string> out;
  for_each_transfer(schedule, k, [&](const Transfer& t) {
    std::string text =
        joined(t.from, ',') + ">" + joined(t.to, ',') + ":" + joined(t.what.list, '.');
    if (!(t.what == t.where)) {
      text += "=" + joined(t.where.list, '.') + "@" + std::to_string(t.where.plane);
    }
    out.push_back(text + (t.kind == TransferKind::reduce ? "+" : ""));
  });
  return out;
}

// The text of all rounds; equal texts mean equal schedules.
inline std::string text_of(const Schedule& schedule) {
  std::string out = std::to_string(schedule.ranks) + "x" + std::to_string(schedule.blocks) + "x" +
                    std::to_string(schedule.planes);
  for (int k = 0; k < schedule.rounds; ++k) {
    out += " |";
    for (const std::string& message : messages(schedule, k)) out += " " + message;
  }
  return out;
}

// The contribution of a rank to a block. Sums of different sets of contributions almost surely
// differ.
inline std::int64_t contribution(Rank r, Block b) {
  std::uint64_t x = (static_cast<std::uint64_t>(r) << 32) + static_cast<std::uint64_t>(b) + 1;
  x *= 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29;
  return static_cast<std::int64_t>((x * 0xbf58476d1ce4e5b9ULL) >> 24);
}

// Executes the schedule from the goal's initial values. Returns the first error, or an empty text.
inline std::string failure(const Schedule& schedule, const CollectiveSpec& goal) {
  Reference reference(schedule, [&goal](Rank r, Block b) {
    return goal.initially_holds(r, b) ? Value(contribution(r, b)) : Value();
  });
  reference.run();
  if (!reference.error().empty()) return reference.error();
  for (Block b = 0; b < schedule.blocks; ++b) {
    for (Rank r : ranks(schedule.ranks)) {
      if (!goal.must_hold(r, b)) continue;
      std::int64_t sum = 0;
      for (Rank c : ranks(schedule.ranks))
        sum += goal.must_include(r, b, c) ? contribution(c, b) : 0;
      const Value held = reference.get(r, b);
      if (held && (*held == sum || is_idempotent(goal.collective))) continue;
      return "rank " + std::to_string(r) + " ends with " +
             (held ? std::to_string(*held) : "nothing") + " in block " + std::to_string(b) +
             "; needed is " + std::to_string(sum);
    }
  }
  return "";
}

}  // namespace rankine
