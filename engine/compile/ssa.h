// SsaForm is the first stage of planning: a schedule as versions of blocks, without places. This
// header also holds the pool and the meter for planning, and the checks of the order and brackets
// of sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/run/plan.h"

namespace rankine {

// Pool is a vector that grows without moving its elements: when full, it needs neither twice the
// memory nor a copy. For planning, which makes millions of elements of an unknown number.
template <class T>
class Pool {
 public:
  int size() const { return size_; }
  T& operator[](int i) { return chunks_[chunk_of(i)][place_of(i)]; }
  const T& operator[](int i) const { return chunks_[chunk_of(i)][place_of(i)]; }

  // Makes room for about `most` elements.
  void expect(std::size_t most) {
    if (chunks_.empty()) chunks_.emplace_back();
    chunks_.back().reserve(std::min(most, kPerChunk));
  }

  // Returns the number of the new element.
  int add(T element) {
    if (chunk_of(size_) == chunks_.size()) {
      chunks_.emplace_back();
      // The first chunk grows as needed: most plans are small.
      if (chunks_.size() > 1) chunks_.back().reserve(kPerChunk);
    }
    chunks_.back().push_back(std::move(element));
    return size_++;
  }

  // Moves all elements to a vector, without spare room if there are many. The pool is empty then.
  HugeVector<T> take() {
    HugeVector<T> all;
    if (chunks_.size() == 1) {
      all = std::move(chunks_.front());
    } else {
      all.reserve(static_cast<std::size_t>(size_));
      for (const HugeVector<T>& chunk : chunks_) all.insert(all.end(), chunk.begin(), chunk.end());
    }
    *this = {};
    return all;
  }

 private:
  static constexpr std::size_t kPerChunk = std::size_t{1} << 17;

  static std::size_t chunk_of(int i) { return static_cast<std::size_t>(i) / kPerChunk; }
  static std::size_t place_of(int i) { return static_cast<std::size_t>(i) % kPerChunk; }

  int size_ = 0;
  std::vector<HugeVector<T>> chunks_;
};

// PlanLimits bound the cost of making a plan, and PlanningBudget enforces them.
//
// A plan is made inside a call: the call's deadline applies meanwhile, and so does abort(). A
// schedule may also move more blocks than memory can hold a plan for. Planning counts its steps on
// a meter, which checks the limits now and then; beyond a limit, planning ends with an exception
// that compile() turns into a Status.

struct PlanLimits {
  // The most memory that planning may take at a time.
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  // Called every 0.1 ms: an ok status continues planning, an error ends it with that error. Empty:
  // no interruption.
  std::function<Status()> interrupted{};
};

// Exceptions that end planning from any depth; compile() turns them into a Status.
struct PlanningEnded {
  Status status;
};
struct PlanTooLarge {};

// An upper bound of the memory for planning, if blocks go from one rank to another `moves` times.
// Neighbours that travel together become one operation, and take less.
constexpr std::size_t planning_bytes(int ranks, int blocks, std::size_t moves) {
  // A move becomes a version of a block with its sources; then an operation with its sources and,
  // in the passes over programs, its touched memory; then ops that wait, move and wait again.
  constexpr std::size_t kPerMove = 848;
  constexpr std::size_t kPerPair = 32;   // of ranks: their knowledge of one another
  constexpr std::size_t kPerBlock = 64;  // its place
  constexpr std::size_t kAlways = std::size_t{128} << 10;
  const auto n = static_cast<std::size_t>(ranks);
  return kAlways + kPerPair * n * n + kPerBlock * static_cast<std::size_t>(blocks) +
         kPerMove * moves;
}

// For the one thread that plans.
class PlanningBudget {
 public:
  explicit PlanningBudget(const PlanLimits& limits) : limits_(limits) {}
  PlanningBudget(const PlanningBudget&) = delete;
  PlanningBudget& operator=(const PlanningBudget&) = delete;

  // Counts some tens of nanoseconds of work. Throws PlanningEnded if planning must end.
  void step() {
    if (--left_ == 0) [[unlikely]]
      look();
  }

  std::size_t bytes() const { return planning_bytes(ranks_, blocks_, moves_); }
  // True if planning with `moves` more moves takes at most half of the allowed memory.
  bool has_room_for(std::size_t moves) const {
    return planning_bytes(ranks_, blocks_, moves_ + moves) <= limits_.bytes / 2;
  }

  // Restarts the count of moves: the schedule is read again.
  void begin(int ranks, int blocks) {
    ranks_ = ranks;
    blocks_ = blocks;
    moves_ = 0;
  }
  // Counts a step and one more block that goes to a rank or is added up. Throws PlanTooLarge if
  // planning that many needs more memory than allowed.
  void move() {
    step();
    ++moves_;
    if (bytes() > limits_.bytes) [[unlikely]]
      throw PlanTooLarge{};
  }

 private:
  static constexpr std::uint32_t kStepsPerLook = 1024;

  void look() {
    left_ = kStepsPerLook;
    if (!limits_.interrupted) return;
    if (Status status = limits_.interrupted(); !status.ok()) throw PlanningEnded{std::move(status)};
  }

  const PlanLimits& limits_;
  std::uint32_t left_ = kStepsPerLook;
  int ranks_ = 1, blocks_ = 1;
  std::size_t moves_ = 0;
};

// PlanningBudget::step() if there is a meter: tests and other readers may have none.
inline void step(PlanningBudget* meter) {
  if (meter != nullptr) meter->step();
}

// A schedule as *versions* of blocks: which version is made from which, without places.
//
// Each write of a block makes a new version. Version 0 is the input; a round that writes a block
// makes one version from all data that it receives. A read takes the version that existed when its
// round began. So no version depends on its own round, and nothing can deadlock: by induction over
// rounds, every version is made from versions that are bound to exist.

inline constexpr int kStaging = -1;  // the round before the first one

// Kept small: planning among many ranks makes millions of these.
struct Version {
  static constexpr int kNone = -1;

  Rank rank = 0;
  int slot = 0;  // the schedule's place number: plane * blocks + block
  int round : 31 = kStaging;
  TransferKind kind : 1 = TransferKind::reduce;  // of the round's transfers
  int previous = kNone;                          // the previous version of this slot
  int next = kNone;                              // the next version of this slot
  int contributions = 0;
  Rank lowest = 0;          // lowest rank with a contribution in it: sums are added in this order
  int last_source = kNone;  // last of the Uses that make it
  // last of the Uses of versions made from it, including `next` if that adds to it
  int last_reader = kNone;
};

static_assert(sizeof(Version) == 36);

class SsaForm {
 public:
  // Fails (invalid_argument) on schedules that read an empty place, change a block's size on its
  // way or let a copy meet other writes in one round: the verifier also checks this, but no
  // schedule is executed on trust. Empty blocks vanish, except a barrier's.
  static Result<std::shared_ptr<const SsaForm>> of(const Schedule& schedule,
                                                   const CollectiveSpec& goal, const Layout& layout,
                                                   PlanningBudget* meter = nullptr);

  int ranks() const { return ranks_; }
  int rounds() const { return rounds_; }
  int blocks() const { return blocks_; }
  // By round; within a round in the order stated.
  int size() const { return versions_.size(); }
  int sources() const { return uses_.size(); }  // of all versions together
  const Version& operator[](int version) const { return versions_[version]; }
  bool adds_up() const { return adds_up_; }  // some are made from several sources

  // Calls visit(version) for each source of v, in the order stated.
  template <class Visit>
  void for_each_source(const Version& v, const Visit& visit) const {
    for_each_use(v.last_source, &Use::next_source, &Use::source, visit);
  }
  // The last source of v, or kNone.
  int last_source(const Version& v) const {
    return v.last_source == Version::kNone ? Version::kNone : uses_[v.last_source].source;
  }
  // Calls visit(version) for each version made from v, in the order stated.
  template <class Visit>
  void for_each_reader(const Version& v, const Visit& visit) const {
    for_each_use(v.last_reader, &Use::next_reader, &Use::target, visit);
  }

 private:
  class Builder;
  // One version is made from another. Each of the two has a list of its uses in the order stated: a
  // ring, of which it knows the last.
  struct Use {
    int source = Version::kNone, target = Version::kNone;
    int next_source = Version::kNone;  // next use of the target
    int next_reader = Version::kNone;  // next use of the source
  };

  template <class Visit>
  void for_each_use(int last, int Use::*next, int Use::*other, const Visit& visit) const {
    if (last == Version::kNone) return;
    int use = last;
    do {
      use = uses_[use].*next;
      visit(uses_[use].*other);
    } while (use != last);
  }

  int ranks_ = 0, rounds_ = 0, blocks_ = 0;
  bool adds_up_ = false;
  Pool<Version> versions_;
  Pool<Use> uses_;
};

// in_rank_order() checks that contributions combine in rank order, which operations that are not
// commutative need.

// True: every sum covers a run of ranks, lowest to highest, made of shorter consecutive runs: a op
// b op c ... in rank order, with any brackets. A round adds the data for one place in the order of
// the lowest rank of each source (schedule.h), so by induction over the versions it is enough that
// in each of them every run begins where the one before it ends. False: some sum has a gap, which
// another must later fill.
bool in_rank_order(const SsaForm& versions);

// Brackets describe the order of additions; the last bits of a float sum depend on them.
//
// Differences between calls that leave the schedule alone (size, offset, transport, in place or
// separate, the storing rank, the number of parts) also leave its brackets alone: every version of
// a block (ssa.h) is made by one fold of all its sources, in the order of their lowest ranks,
// and stored in the type. So the brackets are read from the versions of the very plan that will
// run.

enum class Bracket : std::uint8_t {
  // Every sum is one fold over all its ranks, 0 to at most N - 1: the bits of a serial loop, which
  // rounds floats of 16 and 8 bits once (reduce.h).
  flat,
  // Every sum follows the binary tree over the ranks. Its nodes are the runs of 2^k ranks that
  // begin at multiples of 2^k, without the ranks from N on; each node is rounded to the type. If
  // runs of 2^k neighbours are added up beforehand in these brackets, the remaining, smaller sum
  // also has these brackets.
  canonical,
};

std::string_view in_words(Bracket bracket);  // "one fold in the order of the ranks"

struct Brackets {
  bool flat = true, canonical = true;  // among two ranks both
  // Every sum has all ranks: if it is flat, its one fold may add them up as a tree, too.
  bool of_all = true;
  bool are(Bracket bracket) const { return bracket == Bracket::flat ? flat : canonical; }
};

Brackets brackets_of(const SsaForm& versions);

}  // namespace rankine
