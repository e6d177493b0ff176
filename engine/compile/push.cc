#include "engine/compile/push.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/compile/footprint.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

class Pusher {
 public:
  // That asks about these memories.
  Pusher(const Program& program, Footprint::Memories asked, PushMutant mutant, PlanMeter* meter)
      : program_(program),
        footprint_(program, std::move(asked), meter),
        mutant_(mutant),
        meter_(meter) {}

  static Footprint::Memories destinations(const Program& program, Buffers buffers) {
    Footprint::Memories all(program.ranks, buffers);
    for (const Operation& op : program.operations) {
      if (maker_of(program, op) >= 0) all.add(op.rank, op.destination);
    }
    return all;
  }

  // `program`: the same.
  void run(Program& program) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      step(meter_);
      const auto index = static_cast<int>(i);
      const int maker = maker_of(program, program.operations[i]);
      if (maker >= 0 && may_move(index, maker)) move(program.operations[i], maker);
    }
    write_down(program);
  }

  // The operation of another rank that makes just what this one copies; -1: there is none.
  static int maker_of(const Program& program, const Operation& taker) {
    if (taker.sources != 1) return -1;
    const Source& source = program.sources[static_cast<std::size_t>(taker.first_source)];
    if (source.rank == taker.rank || source.producer < 0) return -1;
    const Operation& maker = program.operations[static_cast<std::size_t>(source.producer)];
    const bool makes_it =
        maker.sources >= 2 && maker.destination == source.place && maker.bytes == taker.bytes;
    return makes_it ? source.producer : -1;
  }

  // May the copy `index` move into the operation `made_by`, which makes what it copies? before_ has
  // what that must wait for then.
  bool may_move(int index, int made_by) {
    const Operation& taker = operation(index);
    const Operation& maker = operation(made_by);
    bool safe = true;
    before_.clear();
    footprint_.for_each(taker.rank, taker.destination, taker.bytes, [&](const Footprint::Touch& t) {
      step(meter_);
      const Operation& other = operation(t.operation);
      if (t.operation == index || other.round > taker.round) return;
      if (t.operation == made_by) {
        safe &= t.same_bytes;
      } else if (other.rank == maker.rank && t.operation < made_by) {
        return;
      } else if (other.round < maker.round) {
        before_.push_back(t.operation);
      } else {
        safe = false;
      }
    });
    return safe || mutant_ == PushMutant::no_care;
  }

 private:
  const Operation& operation(int i) const {
    return program_.operations[static_cast<std::size_t>(i)];
  }

  void move(Operation& taker, int made_by) {
    if (mutant_ == PushMutant::no_waits) before_.clear();
    for (const int other : before_) waits_.push_back({made_by, other});
    copies_.push_back({made_by, {taker.rank, taker.destination}});
    footprint_.add(taker.rank, made_by, taker.destination, taker.bytes);
    taker.pushed = true;
  }

  void write_down(Program& program) {
    // Of one operation in the order in which they came.
    const auto by_operation = [](const auto& a, const auto& b) {
      return a.operation < b.operation;
    };
    std::stable_sort(waits_.begin(), waits_.end(), by_operation);
    std::stable_sort(copies_.begin(), copies_.end(), by_operation);
    std::vector<int> earlier;
    auto wait = waits_.begin();
    auto copy = copies_.begin();
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      Operation& op = program.operations[i];
      const auto index = static_cast<int>(i);
      const auto first = program.earlier.begin() + op.first_earlier;
      const auto last = first + op.earlier;
      op.first_earlier = static_cast<int>(earlier.size());
      for (; wait != waits_.end() && wait->operation == index; ++wait)
        earlier.push_back(wait->what);
      earlier.insert(earlier.end(), first, last);
      op.earlier = static_cast<int>(earlier.size()) - op.first_earlier;
      op.first_copy = static_cast<int>(program.copies.size());
      for (; copy != copies_.end() && copy->operation == index; ++copy) {
        program.copies.push_back(copy->what);
      }
      op.copies = static_cast<int>(program.copies.size()) - op.first_copy;
    }
    program.earlier = std::move(earlier);
  }

  // What an operation gets in addition.
  template <class What>
  struct Added {
    int operation = 0;
    What what{};
  };

  const Program& program_;
  Footprint footprint_;
  const PushMutant mutant_;
  PlanMeter* const meter_;
  std::vector<int> before_;        // of the copy under consideration
  std::vector<Added<int>> waits_;  // what it must wait for
  std::vector<Added<Copy>> copies_;
};

}  // namespace

void push(Program& program, Buffers buffers, PushMutant mutant, PlanMeter* meter) {
  Pusher(program, Pusher::destinations(program, buffers), mutant, meter).run(program);
}

void claim_copies(Program& program, std::size_t from) {
  for (Operation& op : program.operations) op.claims = op.copies > 0 && op.bytes >= from;
}

}  // namespace rankine
