#include "engine/tools/goal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "engine/network/cells.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"

namespace rankine::tools {
namespace {

// A line of a rank's program, from 1; 0: what was there at the start.
using Label = int;

class Writer {
 public:
  Writer(const Schedule& schedule, const Goal& goal, const Pricing& pricing,
         std::int64_t most_lines)
      : schedule_(schedule),
        pricing_(pricing),
        most_lines_(most_lines),
        programs_(static_cast<std::size_t>(schedule.ranks)),
        made_by_(schedule, goal, programs_.size()) {}

  Result<std::string> run() {
    for (int k = 0; k < schedule_.rounds; ++k) {
      for_each_transfer(schedule_, k, [this](const Transfer& t) {
        if (lines_ <= most_lines_) transfer(t);
      });
      settle();
      if (lines_ > most_lines_) {
        return invalid_argument(fmt::format(
            "{} ranks have more than {} sends, receives and sums, which are allowed in GOAL",
            schedule_.ranks, most_lines_));
      }
    }
    std::string text = fmt::format("num_ranks {}\n", schedule_.ranks);
    for (std::size_t r = 0; r < programs_.size(); ++r) {
      text += fmt::format("\nrank {} {{\n{}}}\n", r, programs_[r].text);
    }
    return text;
  }

 private:
  struct Program {
    std::string text;
    Label last = 0;
  };
  struct Arrival {
    Rank rank;
    int plane;
    Run blocks;
    Label label;
    bool adds;
  };

  Label add(Rank r, const std::string& what, std::vector<Label> waits_for) {
    ++lines_;
    Program& program = programs_[static_cast<std::size_t>(r)];
    const Label label = ++program.last;
    program.text += fmt::format("l{}: {}\n", label, what);
    std::sort(waits_for.begin(), waits_for.end());
    waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
    for (const Label other : waits_for) {
      if (other != 0) program.text += fmt::format("l{} requires l{}\n", label, other);
    }
    return label;
  }

  // A round reads what was there when it began: what arrives counts from its end on.
  void transfer(const Transfer& t) {
    const Rank from = t.from.front(), to = t.to.front();
    std::vector<Label> makers;
    for (int i = 0; i < t.what.list.runs(); ++i) {
      made_by_.read(static_cast<std::size_t>(from), t.what.plane, t.what.list.run(i),
                    [&makers](Block, int, Label label) { makers.push_back(label); });
    }
    Label arrived = 0;
    if (from == to) {
      arrived = add(from, "calc 0", std::move(makers));
    } else {
      const std::int64_t bytes = pricing_.weight(t.what.list);
      add(from, fmt::format("send {}b to {} tag {}", bytes, to, ++messages_), std::move(makers));
      arrived = add(to, fmt::format("recv {}b from {} tag {}", bytes, from, messages_), {});
    }
    for (int i = 0; i < t.where.list.runs(); ++i) {
      arrivals_.push_back({to, t.where.plane, t.where.list.run(i), arrived, t.act == Act::reduce});
    }
  }
  void settle() {
    for (const Arrival& a : arrivals_) {
      Label before = 0, sum = 0;  // of the stretch before
      made_by_.change(static_cast<std::size_t>(a.rank), a.plane, a.blocks,
                      [&](Block, int, Label& label) {
                        if (!a.adds || label == 0) {
                          label = a.label;
                          return;
                        }
                        if (sum == 0 || label != before) {
                          before = label;
                          sum = add(a.rank, "calc 0", {before, a.label});
                        }
                        label = sum;
                      });
    }
    arrivals_.clear();
  }

  const Schedule& schedule_;
  const Pricing& pricing_;
  const std::int64_t most_lines_;
  std::vector<Program> programs_;
  CellTable<Label> made_by_;  // the line that made what a cell holds
  std::vector<Arrival> arrivals_;
  std::int64_t lines_ = 0;
  int messages_ = 0;
};

}  // namespace

Result<std::string> goal_text(const Schedule& schedule, const Goal& goal, std::uint64_t bytes,
                              const SimulateOptions& options, std::int64_t most_lines) {
  const auto pricing = pricing_of(plain_regime().fabric, goal, bytes, options);
  if (!pricing.ok()) return pricing.status();
  const Schedule messages = lower(schedule, {});
  return Writer(messages, goal, *pricing, most_lines).run();
}

}  // namespace rankine::tools
