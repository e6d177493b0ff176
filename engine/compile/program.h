// A schedule for one size, as operations on versions of blocks (versions.h): what all transports
// execute. Versions that would collide live in different *places* (input, output, scratch), so no
// operation ever waits for one of its own round.
//
// Rules for places (v_last is a block's last version at a rank):
//  - v_last lives in the output where the rank needs the block, else in scratch;
//  - v_i lives where v_{i+1} lives, unless v_i is read by somebody else in the round that writes
//    v_{i+1}: then elsewhere;
//  - v_0 is the input, which is never written. Called in place (input and output are one memory), a
//    first version that may not overwrite v_0 goes to scratch, and if it is the only one, v_0 is
//    *staged*: copied to scratch before round 0, and read there by everybody.
//
// Where peers reach scratch only (ProgramOptions::staged), whatever another rank reads lives in
// scratch, or is *shown* there: an input before round 0, a last version that lives in the output at
// the end of the round that has made it. Its own rank copies it, to a place that nothing else is
// written to, and goes on with what it has; the others read the copy.
//
// Neighbouring blocks that share their sources and lie side by side everywhere become one
// operation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/costs.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/compile/versions.h"
#include "engine/run/plan.h"

namespace rankine {

struct Place {
  Memory memory = Memory::input;
  std::size_t offset = 0;  // bytes
  bool operator==(const Place&) const = default;
};

// What an operation reads: `place` of `rank`, as written by operation `producer` of that rank
// (an index into Program::operations), or its input where producer is -1.
struct Source {
  Rank rank = 0;
  int producer = -1;
  Place place{};
};

// One step of one rank: destination = fold of the sources, in this order (schedule.h says which).
struct Operation {
  Rank rank = 0;
  int round = 0;  // kStaging, or a round of the schedule
  Place destination;
  std::size_t bytes = 0;
  int first_source = 0, sources = 0;   // in Program::sources
  int first_earlier = 0, earlier = 0;  // in Program::earlier: operations of other ranks that use
                                       // what this one overwrites, and must have done so
  int first_copy = 0, copies = 0;      // in Program::copies: further destinations
  bool completes = false;              // the result holds every contribution: avg divides here
  bool only_if_moved = false;          // own input to own output: nothing to do in place
  bool replaces = false;  // the rank had a value of these blocks before, here or elsewhere
  bool pushed = false;    // its source's producer has stored the data here: all it does is to wait
  bool streams = false;   // nobody reads on from here, and the caches could not hold it: store past
                          // them
  bool stages = false;   // others read it from scratch: stored past the caches or not, as its rank
                         // finds better (engine/run/staging_stores.h)
  bool fetches = false;  // it reads what another rank has stored so
  bool claims = false;  // the copies' memory is in other cores' caches: finish a part, then copy it
                        // there, taking the lines over unread
};

// A further destination of an operation, at another rank: what push() makes of that rank's copy.
struct Copy {
  Rank rank = 0;
  Place place;
};

struct Program {
  int ranks = 0;
  int rounds = 0;
  HugeVector<Operation> operations;  // by round; within a round in the order stated
  HugeVector<Source> sources;
  std::vector<int> earlier;
  std::vector<Copy> copies;
  std::vector<std::size_t> scratch_bytes;  // per rank
  bool eager = false;                      // as in ProgramOptions
};

// How the caller's buffers lie. Collectives other than all_reduce and all_to_all behave the same
// either way, and are always planned so that both are safe.
enum class Buffers : std::uint8_t { apart, in_place };

struct ProgramOptions {
  // All messages travel inside mailbox slots, and a rank sends all of a round before it writes
  // anything: what other ranks read in a round cannot be overwritten in it, and needs no renaming.
  bool eager = false;
  // Peers reach a rank's scratch only, never its input or output. Of programs that are not eager:
  // with these nobody reads where others' data lie.
  bool staged = false;
  // Faults for the tests of the tests: a rule for places left out, to see that the fuzz test
  // notices.
  enum class Mutant : std::uint8_t { none, no_renaming, no_staging, no_shown_results };
  Mutant mutant = Mutant::none;
  PlanMeter* meter = nullptr;  // what the making is counted on
};

// Gives every version its place. Versions are let go of as early as nobody else holds them.
Program make_program(std::shared_ptr<const Versions> versions, const Goal& goal,
                     const Layout& layout, Buffers buffers, const ProgramOptions& options = {});

// Likewise of a schedule that is made into one program only. Fails as Versions::of() does.
Result<Program> make_program(const Schedule& schedule, const Goal& goal, const Layout& layout,
                             Buffers buffers, const ProgramOptions& options = {});

// Marks the operations that should store past the caches: those of at least `from` bytes whose
// result no operation reads. For results that together cannot stay in the caches, out of place.
void mark_streams(Program& program, std::size_t from = Costs{}.stream);

// Which operations of a program touch which memory: for passes that move work in time or from rank
// to rank and must know what they would disturb.
//
// What operations touch begins and ends at few places of a rank's memory, the borders of its
// blocks. Between two neighbouring ones lies a *stretch*, and each knows who touches it; so a
// question costs what it has to answer, and not what the program has besides.

// The same bytes under one name where input and output are one memory, at equal offsets, as in an
// all-reduce in place.
inline Place resolved(Place place, Buffers buffers) {
  if (buffers == Buffers::in_place && place.memory == Memory::input) place.memory = Memory::output;
  return place;
}

class Footprint {
 public:
  struct Touch {
    int operation = 0;
    bool same_bytes = false;  // as were asked for, no more and no less
  };

  // What of ranks' memories will be asked about: from the first byte of each to the last one.
  // Nothing is noted of what does not touch that.
  class Memories {
   public:
    // `buffers`: as in resolved().
    Memories(int ranks, Buffers buffers)
        : buffers_(buffers), asked_(static_cast<std::size_t>(ranks) * kMemories) {}

    void add(Rank rank, Place place, std::size_t bytes) {
      Bytes& asked = asked_[number(rank, place)];
      asked.begin = std::min(asked.begin, place.offset);
      asked.end = std::max(asked.end, place.offset + bytes);
      ++questions_;
    }
    std::size_t questions() const { return questions_; }  // add() was told of

   private:
    friend class Footprint;
    static constexpr std::size_t kMemories = 3;  // input, output, scratch
    struct Bytes {
      std::size_t begin = std::numeric_limits<std::size_t>::max(), end = 0;
      bool touched_by(std::size_t from, std::size_t to) const { return from < end && begin < to; }
    };

    std::size_t number(Rank rank, Place place) const {
      return static_cast<std::size_t>(rank) * kMemories +
             static_cast<std::size_t>(resolved(place, buffers_).memory);
    }

    Buffers buffers_;
    std::vector<Bytes> asked_;
    std::size_t questions_ = 0;
  };

  // `further`: about so often add() will be called.
  Footprint(const Program& program, Memories asked, std::size_t further = 0,
            PlanMeter* meter = nullptr);

  // Calls visit(touch) for everything that touches these bytes of `rank`, which some operation
  // does, in order of operations but for what add() brought. Not for two threads at once.
  template <class Visit>
  void for_each(Rank rank, Place place, std::size_t bytes, Visit visit) const {
    const auto [first, last] = stretches(memories_.number(rank, place), place.offset, bytes);
    std::vector<int>& found = found_;
    found.clear();
    for (int i = first; i < last; ++i) {
      for (int at = stretches_[static_cast<std::size_t>(i)].first; at != kNone;) {
        const Link& link = links_[static_cast<std::size_t>(at)];
        // Once, of those that touch several of these.
        if (i == std::max(first, link.first)) found.push_back(at);
        at = link.next;
      }
    }
    if (last - first > 1) std::sort(found.begin(), found.end());
    for (const int at : found) {
      const Link& link = links_[static_cast<std::size_t>(at)];
      visit(Touch{link.operation, link.first == first && link.last == last});
    }
  }

  // An operation will touch bytes that begin and end where others that are there do.
  void add(Rank rank, int operation, Place place, std::size_t bytes);

 private:
  static constexpr int kNone = -1;
  struct Stretch {
    std::size_t begin = 0;
    int first = kNone, last = kNone;  // of its links
  };
  // An operation that touches the stretches `first` to before `last`: at each of them.
  struct Link {
    int operation = 0;
    int first = 0, last = 0;
    int next = kNone;  // at this stretch
  };
  struct Range {
    int first, last;
  };
  // The stretches of a memory, `first` to before `last`: the last one is where the others end.
  struct OfMemory {
    int first = 0, last = 0;
    std::size_t length = 1;  // of each, if all were of one
  };

  // Those between these bytes' ends.
  Range stretches(std::size_t memory, std::size_t offset, std::size_t bytes) const;
  void add_to(std::size_t memory, int operation, std::size_t offset, std::size_t bytes);

  const Memories memories_;
  std::vector<Stretch> stretches_;  // by memory, each in order
  std::vector<OfMemory> of_memory_;
  std::vector<Link> links_;
  mutable std::vector<int> found_;
};

}  // namespace rankine
