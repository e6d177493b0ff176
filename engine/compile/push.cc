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
  Pusher(Program& program, Buffers buffers, PushMutant mutant, PlanMeter* meter)
      : program_(program), footprint_(program, buffers, meter), mutant_(mutant), meter_(meter) {}

  void run() {
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      step(meter_);
      consider(static_cast<int>(i));
    }
    write_down();
  }

 private:
  Operation& operation(int i) { return program_.operations[static_cast<std::size_t>(i)]; }

  // May the copy `index` move into the operation that makes what it copies?
  void consider(int index) {
    Operation& taker = operation(index);
    if (taker.sources != 1) return;
    const Source source = program_.sources[static_cast<std::size_t>(taker.first_source)];
    if (source.rank == taker.rank || source.producer < 0) return;
    const Operation& maker = operation(source.producer);
    if (maker.sources < 2 || maker.destination != source.place || maker.bytes != taker.bytes)
      return;

    bool safe = true;
    before_.clear();
    const Place destination = footprint_.resolved(taker.destination);
    footprint_.for_each(taker.rank, taker.destination, taker.bytes, [&](const Footprint::Touch& t) {
      step(meter_);
      const Operation& other = operation(t.operation);
      if (t.operation == index || other.round > taker.round) return;
      if (t.operation == source.producer) {
        safe &= t.place == destination && t.bytes == taker.bytes;
      } else if (other.rank == maker.rank && t.operation < source.producer) {
        return;
      } else if (other.round < maker.round) {
        before_.push_back(t.operation);
      } else {
        safe = false;
      }
    });
    if (!safe && mutant_ != PushMutant::no_care) return;
    if (mutant_ == PushMutant::no_waits) before_.clear();
    for (const int other : before_) waits_.push_back({source.producer, other});
    copies_.push_back({source.producer, {taker.rank, taker.destination}});
    footprint_.add(taker.rank, source.producer, taker.destination, taker.bytes);
    taker.pushed = true;
  }

  void write_down() {
    // Of one operation in the order in which they came.
    const auto by_operation = [](const auto& a, const auto& b) {
      return a.operation < b.operation;
    };
    std::stable_sort(waits_.begin(), waits_.end(), by_operation);
    std::stable_sort(copies_.begin(), copies_.end(), by_operation);
    std::vector<int> earlier;
    auto wait = waits_.begin();
    auto copy = copies_.begin();
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      Operation& op = program_.operations[i];
      const auto index = static_cast<int>(i);
      const auto first = program_.earlier.begin() + op.first_earlier;
      const auto last = first + op.earlier;
      op.first_earlier = static_cast<int>(earlier.size());
      for (; wait != waits_.end() && wait->operation == index; ++wait)
        earlier.push_back(wait->what);
      earlier.insert(earlier.end(), first, last);
      op.earlier = static_cast<int>(earlier.size()) - op.first_earlier;
      op.first_copy = static_cast<int>(program_.copies.size());
      for (; copy != copies_.end() && copy->operation == index; ++copy) {
        program_.copies.push_back(copy->what);
      }
      op.copies = static_cast<int>(program_.copies.size()) - op.first_copy;
    }
    program_.earlier = std::move(earlier);
  }

  // What an operation gets in addition.
  template <class What>
  struct Added {
    int operation = 0;
    What what{};
  };

  Program& program_;
  Footprint footprint_;
  const PushMutant mutant_;
  PlanMeter* const meter_;
  std::vector<int> before_;        // of the copy under consideration
  std::vector<Added<int>> waits_;  // what it must wait for
  std::vector<Added<Copy>> copies_;
};

}  // namespace

void push(Program& program, Buffers buffers, PushMutant mutant, PlanMeter* meter) {
  Pusher(program, buffers, mutant, meter).run();
}

void claim_copies(Program& program, std::size_t from) {
  for (Operation& op : program.operations) op.claims = op.copies > 0 && op.bytes >= from;
}

}  // namespace rankine
