#include "engine/compile/push.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/compile/footprint.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

// The operation of another rank that makes just what this one copies; -1: there is none.
int maker_of(const Program& program, const Operation& taker) {
  if (taker.sources != 1) return -1;
  const Source& source = program.sources[static_cast<std::size_t>(taker.first_source)];
  if (source.rank == taker.rank || source.producer < 0) return -1;
  const Operation& maker = program.operations[static_cast<std::size_t>(source.producer)];
  const bool makes_it =
      maker.sources >= 2 && maker.destination == source.place && maker.bytes == taker.bytes;
  return makes_it ? source.producer : -1;
}

class Pusher {
 public:
  // That asks about these memories, and moves as many copies at most as add to `asked`.
  Pusher(const Program& program, Footprint::Memories asked, std::size_t further, PushMutant mutant,
         PlanMeter* meter)
      : program_(program),
        footprint_(program, std::move(asked), further, meter),
        mutant_(mutant),
        meter_(meter) {}

  static Footprint::Memories destinations(const Program& program, Buffers buffers) {
    Footprint::Memories all(program.ranks, buffers);
    for (const Operation& op : program.operations) {
      if (maker_of(program, op) >= 0) all.add(op.rank, op.destination, op.bytes);
    }
    return all;
  }

  // `program`: the same.
  void run(Program& program) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      step(meter_);
      const auto index = static_cast<int>(i);
      const int maker = maker_of(program, program.operations[i]);
      if (maker >= 0 && may_move(index, maker)) move(program, index, maker);
    }
    write_down(program);
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

  void move(Program& program, int index, int made_by) {
    if (mutant_ == PushMutant::no_waits) before_.clear();
    for (const int other : before_) waits_.push_back({made_by, other});
    copies_.push_back({made_by, index});
    Operation& taker = program.operations[static_cast<std::size_t>(index)];
    footprint_.add(taker.rank, made_by, taker.destination, taker.bytes);
    taker.pushed = true;
  }

  // What an operation gets in addition.
  struct Added {
    int operation = 0;
    int what = 0;
  };

  // By operation, and of one in the order in which they came.
  void write_down(Program& program) {
    std::vector<int> next(program.operations.size());  // where what comes next for it has its place
    write_waits(program, next);
    write_copies(program, next);
  }

  static void count(const std::vector<Added>& all, std::vector<int>& of_operation) {
    std::fill(of_operation.begin(), of_operation.end(), 0);
    for (const Added& one : all) ++of_operation[static_cast<std::size_t>(one.operation)];
  }

  // Before what they wait for already.
  void write_waits(Program& program, std::vector<int>& next) const {
    if (waits_.empty()) return;
    count(waits_, next);
    std::vector<int> earlier(program.earlier.size() + waits_.size());
    int end = 0;
    for (std::size_t i = 0; i < next.size(); ++i) {
      Operation& op = program.operations[i];
      const int first = std::exchange(op.first_earlier, end);
      const int waits = std::exchange(next[i], end);
      std::copy_n(program.earlier.begin() + first, op.earlier, earlier.begin() + end + waits);
      op.earlier += waits;
      end += op.earlier;
    }
    for (const Added& wait : waits_) {
      earlier[static_cast<std::size_t>(next[static_cast<std::size_t>(wait.operation)]++)] =
          wait.what;
    }
    program.earlier = std::move(earlier);
  }

  void write_copies(Program& program, std::vector<int>& next) const {
    count(copies_, next);
    int end = 0;
    for (std::size_t i = 0; i < next.size(); ++i) {
      Operation& op = program.operations[i];
      op.first_copy = end;
      op.copies = std::exchange(next[i], end);
      end += op.copies;
    }
    program.copies.resize(copies_.size());
    for (const Added& copy : copies_) {
      const Operation& taker = operation(copy.what);
      program.copies[static_cast<std::size_t>(next[static_cast<std::size_t>(copy.operation)]++)] = {
          taker.rank, taker.destination};
    }
  }

  const Program& program_;
  Footprint footprint_;
  const PushMutant mutant_;
  PlanMeter* const meter_;
  std::vector<int> before_;    // of the copy under consideration
  std::vector<Added> waits_;   // what it must wait for
  std::vector<Added> copies_;  // the operations that were copies
};

}  // namespace

void push(Program& program, Buffers buffers, PushMutant mutant, PlanMeter* meter) {
  Footprint::Memories asked = Pusher::destinations(program, buffers);
  const std::size_t most = asked.questions();
  if (most > 0) Pusher(program, std::move(asked), most, mutant, meter).run(program);
}

bool has_short_copies(const Program& program, std::size_t bytes) {
  return std::any_of(
      program.operations.begin(), program.operations.end(),
      [&](const Operation& op) { return op.bytes < bytes && maker_of(program, op) >= 0; });
}

void claim_copies(Program& program, std::size_t from) {
  for (Operation& op : program.operations) op.claims = op.copies > 0 && op.bytes >= from;
}

}  // namespace rankine
