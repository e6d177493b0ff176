#include "engine/exec/push.h"

#include <algorithm>

#include "engine/exec/footprint.h"
#include "engine/exec/kernels/reduce.h"

namespace rankine {
namespace {

class Pusher {
 public:
  Pusher(Program& program, Buffers buffers, PushMutant mutant)
      : program_(program),
        footprint_(program, buffers),
        mutant_(mutant),
        waits_(program.operations.size()),
        copies_(program.operations.size()) {}

  void run() {
    for (std::size_t i = 0; i < program_.operations.size(); ++i) consider(static_cast<int>(i));
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
    std::vector<int> before;
    const Place destination = footprint_.resolved(taker.destination);
    footprint_.for_each(taker.rank, taker.destination, taker.bytes, [&](const Footprint::Touch& t) {
      const Operation& other = operation(t.operation);
      if (t.operation == index || other.round > taker.round) return;
      if (t.operation == source.producer) {
        safe &= t.place == destination && t.bytes == taker.bytes;
      } else if (other.rank == maker.rank && t.operation < source.producer) {
        return;
      } else if (other.round < maker.round) {
        before.push_back(t.operation);
      } else {
        safe = false;
      }
    });
    if (!safe && mutant_ != PushMutant::no_care) return;
    if (mutant_ == PushMutant::no_waits) before.clear();
    auto& waits = waits_[static_cast<std::size_t>(source.producer)];
    waits.insert(waits.end(), before.begin(), before.end());
    copies_[static_cast<std::size_t>(source.producer)].push_back({taker.rank, taker.destination});
    footprint_.add(taker.rank, source.producer, taker.destination, taker.bytes);
    taker.pushed = true;
  }

  void write_down() {
    std::vector<int> earlier;
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      Operation& op = program_.operations[i];
      const auto first = program_.earlier.begin() + op.first_earlier;
      std::vector<int>& waits = waits_[i];
      waits.insert(waits.end(), first, first + op.earlier);
      op.first_earlier = static_cast<int>(earlier.size());
      op.earlier = static_cast<int>(waits.size());
      earlier.insert(earlier.end(), waits.begin(), waits.end());
      op.first_copy = static_cast<int>(program_.copies.size());
      op.copies = static_cast<int>(copies_[i].size());
      program_.copies.insert(program_.copies.end(), copies_[i].begin(), copies_[i].end());
    }
    program_.earlier = std::move(earlier);
  }

  Program& program_;
  Footprint footprint_;
  const PushMutant mutant_;
  std::vector<std::vector<int>> waits_;    // per operation: what it must wait for in addition
  std::vector<std::vector<Copy>> copies_;  // per operation
};

}  // namespace

void push(Program& program, Buffers buffers, PushMutant mutant) {
  Pusher(program, buffers, mutant).run();
}

void claim_copies(Program& program) {
  for (Operation& op : program.operations) op.claims = op.copies > 0 && op.bytes >= kClaimFrom;
}

}  // namespace rankine
