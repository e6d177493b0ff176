// A vector that grows without moving what it holds: neither twice the memory nor a copy when it is
// full. For what planning makes millions of, nobody knows how many beforehand.
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

template <class T>
class Pool {
 public:
  int size() const { return size_; }
  T& operator[](int i) { return chunks_[chunk_of(i)][place_of(i)]; }
  const T& operator[](int i) const { return chunks_[chunk_of(i)][place_of(i)]; }

  // Makes room for about so many.
  void expect(std::size_t most) {
    if (chunks_.empty()) chunks_.emplace_back();
    chunks_.back().reserve(std::min(most, kPerChunk));
  }

  // The number of the new element.
  int add(T element) {
    if (chunk_of(size_) == chunks_.size()) {
      chunks_.emplace_back();
      // The first one grows as it is needed: most plans are small.
      if (chunks_.size() > 1) chunks_.back().reserve(kPerChunk);
    }
    chunks_.back().push_back(std::move(element));
    return size_++;
  }

  // All elements, in a vector with no room to spare where they are many. The pool is empty then.
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

// What the making of a plan may cost, and the meter that watches it.
//
// A plan is made inside a call: the call's deadline holds meanwhile, and so does abort(). A
// schedule may also move so many blocks that no memory holds its plan. Whoever plans counts its
// steps on a meter, which looks at the limits now and then; where one is passed, planning ends by
// an exception that compile() turns into a Status.

struct PlanLimits {
  // Of memory that the making of a plan may take at a time.
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  // Asked about every 0.1 ms: planning goes on while it answers ok, and else ends with that.
  // Empty: nobody ends it.
  std::function<Status()> interrupted{};
};

// These end planning from anywhere inside, and leave compile() as a Status.
struct PlanningEnded {
  Status status;
};
struct PlanTooLarge {};

// The memory that it takes to plan, at most, where so many times a block goes from one rank to
// another. Neighbours that travel together become one operation, and take less.
constexpr std::size_t planning_bytes(int ranks, int blocks, std::size_t moves) {
  // A move becomes a version of a block, which knows what it is made from; then an operation with
  // its sources and, in the passes over programs, what it touches; then ops that wait, move and
  // wait again.
  constexpr std::size_t kPerMove = 848;
  constexpr std::size_t kPerPair = 32;   // of ranks: what they know of one another
  constexpr std::size_t kPerBlock = 64;  // where it lies
  constexpr std::size_t kAlways = std::size_t{128} << 10;
  const auto n = static_cast<std::size_t>(ranks);
  return kAlways + kPerPair * n * n + kPerBlock * static_cast<std::size_t>(blocks) +
         kPerMove * moves;
}

// Used by the one thread that plans.
class PlanMeter {
 public:
  explicit PlanMeter(const PlanLimits& limits) : limits_(limits) {}
  PlanMeter(const PlanMeter&) = delete;
  PlanMeter& operator=(const PlanMeter&) = delete;

  // Some tens of nanoseconds of work are done. Throws PlanningEnded where they were the last ones.
  void step() {
    if (--left_ == 0) [[unlikely]]
      look();
  }

  std::size_t bytes() const { return planning_bytes(ranks_, blocks_, moves_); }
  // Whether planning so many moves as well takes at most half of the memory that it may take.
  bool has_room_for(std::size_t moves) const {
    return planning_bytes(ranks_, blocks_, moves_ + moves) <= limits_.bytes / 2;
  }

  // From here on moves are counted anew: a schedule is read once more.
  void begin(int ranks, int blocks) {
    ranks_ = ranks;
    blocks_ = blocks;
    moves_ = 0;
  }
  // One step, and one block more that goes to one rank, or is added up once more. Throws
  // PlanTooLarge where planning so many needs more memory than it may take.
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

// The same where there may be no meter: tests, and readers that plan for themselves.
inline void step(PlanMeter* meter) {
  if (meter != nullptr) meter->step();
}

// A schedule as *versions* of blocks: what is made of what, before anybody says where it lies.
//
// Each write of a block makes a new version of it. Version 0 is the input; a round that writes a
// block makes one version from all that it receives. A read takes the version that was there when
// its round began. So nothing waits for its own round, and nothing can deadlock: by induction over
// rounds every version is made of what is bound to be there.

inline constexpr int kStaging = -1;  // the round before the first one

// Planning among many ranks makes millions of these.
struct Version {
  static constexpr int kNone = -1;

  Rank rank = 0;
  int slot = 0;  // the schedule's place number: plane * blocks + block
  int round : 31 = kStaging;
  Act act : 1 = Act::reduce;  // how the round's transfers make it
  int previous = kNone;       // the version of this slot before this one
  int next = kNone;           // and the one after
  int contributions = 0;
  Rank lowest = 0;          // rank whose contribution it holds: the order in which sums are added
  int last_source = kNone;  // of its Uses, those that make it
  int last_reader = kNone;  // of its Uses, those of versions made from it: `next` included where it
                            // adds to it
};

static_assert(sizeof(Version) == 36);

class Versions {
 public:
  // Fails (invalid_argument) on schedules that read what is not there, change a block's size on its
  // way or let a copy meet other writes in one round: the verifier's business, but no schedule is
  // executed on trust. Empty blocks vanish, except a barrier's.
  static Result<std::shared_ptr<const Versions>> of(const Schedule& schedule, const Goal& goal,
                                                    const Layout& layout,
                                                    PlanMeter* meter = nullptr);

  int ranks() const { return ranks_; }
  int rounds() const { return rounds_; }
  int blocks() const { return blocks_; }
  // By round; within a round in the order stated.
  int size() const { return versions_.size(); }
  int sources() const { return uses_.size(); }  // of all together
  const Version& operator[](int version) const { return versions_[version]; }
  bool adds_up() const { return adds_up_; }  // some are made from several

  // Calls visit(version) for what v is made from, in the order stated.
  template <class Visit>
  void for_each_source(const Version& v, const Visit& visit) const {
    for_each_use(v.last_source, &Use::next_source, &Use::source, visit);
  }
  // The last of them, or kNone.
  int last_source(const Version& v) const {
    return v.last_source == Version::kNone ? Version::kNone : uses_[v.last_source].source;
  }
  // Likewise for what is made from v.
  template <class Visit>
  void for_each_reader(const Version& v, const Visit& visit) const {
    for_each_use(v.last_reader, &Use::next_reader, &Use::target, visit);
  }

 private:
  class Builder;
  // One version is made from another. Both have a list of theirs in the order stated: a ring, of
  // which they know the last.
  struct Use {
    int source = Version::kNone, target = Version::kNone;
    int next_source = Version::kNone;  // of the target
    int next_reader = Version::kNone;  // of the source
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

// Whether contributions come together in the order of the ranks, as operations need that are not
// commutative.

// True: every sum that is ever made is of a run of ranks, lowest to highest, made of shorter runs
// that follow one another; a op b op c ... in the order of the ranks, whatever the brackets. A
// round adds what it brings to one place in the order of the lowest rank of each (schedule.h), so
// by induction over the versions it is enough that in each of them every run begins where the one
// before it ends. False means that some sum has a gap, which another one must later fill.
bool in_rank_order(const Versions& versions);

// In which brackets contributions are added up: what the last bits of a sum of floats depend on.
//
// Everything that may differ from call to call without changing what a schedule says (size, offset,
// transport, in place or apart, who stores what where, in how many parts) leaves its brackets as
// they are: every version of a block (versions.h) is made by one fold of all its sources, in the
// order of their lowest ranks, and kept in the type. So they are read from the versions of the very
// plan that will run.

enum class Bracket : std::uint8_t {
  // Every sum is one fold over all ranks that it is of, 0 to N - 1 or less: the bits of a serial
  // loop, which of floats of
  // 16 and 8 bits is rounded once (reduce.h).
  flat,
  // Every sum is that of the binary tree over the ranks whose nodes are the runs of 2^k ranks that
  // begin at multiples of 2^k, without the ranks from N on; each node is rounded to the type.
  // Whoever adds up runs of 2^k neighbours beforehand in these brackets leaves the rest to be added
  // in these brackets, among so many fewer.
  canonical,
};

std::string_view in_words(Bracket bracket);  // "one fold in the order of the ranks"

struct Brackets {
  bool flat = true, canonical = true;  // among two ranks both
  bool are(Bracket bracket) const { return bracket == Bracket::flat ? flat : canonical; }
};

Brackets brackets_of(const Versions& versions);

}  // namespace rankine
