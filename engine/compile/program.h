// DataflowProgram is a schedule for one size, as operations on versions of blocks (ssa.h). All
// transports execute programs. Versions that would collide live in different *places* (input,
// output, scratch), so no operation waits for an operation of its own round.
//
// Rules for places (v_last is a block's last version at a rank):
// - v_last lives in the output if the rank needs the block, otherwise in scratch.
// - v_i lives where v_{i+1} lives, unless another reader reads v_i in the round that writes
//   v_{i+1}: then it lives elsewhere.
// - v_0 is the input, which is never written. In a call in place (input and output are one memory),
//   a first version that must not overwrite v_0 goes to scratch. If it is the only version, v_0 is
//   *staged*: copied to scratch before round 0, and all readers read it there.
//
// If peers reach only scratch (ProgramOptions::staged), each version that another rank reads lives
// in scratch, or is *shown* there: an input before round 0, a last version in the output at the end
// of the round that made it. Its own rank copies it to a place that no other version uses, and goes
// on with the original; the others read the copy.
//
// Neighbouring blocks with common sources that lie side by side everywhere become one operation.
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
#include "engine/compile/ssa.h"
#include "engine/run/plan.h"

namespace rankine {

struct Place {
  Memory memory = Memory::input;
  std::size_t offset = 0;  // bytes
  bool operator==(const Place&) const = default;
};

// A source of an operation: `place` of `rank`, as written by operation `producer` of that rank (an
// index into DataflowProgram::operations), or its input if producer is -1.
struct Source {
  Rank rank = 0;
  int producer = -1;
  Place place{};
};

// One step of one rank: destination = fold of the sources, in this order (schedule.h gives the
// order).
struct Operation {
  Rank rank = 0;
  int round = 0;  // kStaging, or a round of the schedule
  Place destination;
  std::size_t bytes = 0;
  int first_source = 0, sources = 0;  // in DataflowProgram::sources
  // in DataflowProgram::earlier: operations of other ranks that use the memory which this one
  // overwrites; they must have ended
  int first_earlier = 0, earlier = 0;
  int first_copy = 0, copies = 0;  // in DataflowProgram::copies: further destinations
  bool completes = false;          // the result holds every contribution: avg divides here
  bool only_if_moved = false;      // own input to own output: nothing to do in place
  bool replaces = false;           // the rank had an earlier value of these blocks, in any place
  bool pushed = false;  // its source's producer has stored the data here: the operation only waits
  // no operation reads the result, and it exceeds the caches: store past them
  bool streams = false;
  // others read it from scratch: stored past the caches or not, as ranks have measured
  // (engine/run/staging_stores.h)
  bool stages = false;
  bool fetches = false;  // it reads data that another rank has stored with `stages`
  // the copies' memory is in other cores' caches: finish a part, then copy it, taking the lines
  // over unread
  bool claims = false;
};

// A further destination of an operation, at another rank: push() makes it from that rank's copy.
struct Copy {
  Rank rank = 0;
  Place place;
};

struct DataflowProgram {
  int ranks = 0;
  int rounds = 0;
  HugeVector<Operation> operations;  // by round; within a round in the order stated
  HugeVector<Source> sources;
  std::vector<int> earlier;
  std::vector<Copy> copies;
  std::vector<std::size_t> scratch_bytes;  // per rank
  bool eager = false;                      // as in ProgramOptions
};

// The caller's buffers: separate or in place. Collectives other than all_reduce and all_to_all
// behave alike for both, and their plans are safe for both.
enum class Buffers : std::uint8_t { apart, in_place };

struct ProgramOptions {
  // All messages travel inside mailbox slots, and a rank sends all of a round before it writes: the
  // data that other ranks read in a round cannot be overwritten in it, and need no renaming.
  bool eager = false;
  // Peers reach only a rank's scratch, never its input or output. For programs that are not eager:
  // in eager ones no rank reads another rank's memory.
  bool staged = false;
  // Faults for the tests of the tests: each leaves out a rule for places, which the fuzz test must
  // notice.
  enum class Mutant : std::uint8_t { none, no_renaming, no_staging, no_shown_results };
  Mutant mutant = Mutant::none;
  PlanningBudget* meter = nullptr;  // counts the steps of planning
};

// Gives every version its place. Releases the versions early if the caller keeps no reference.
DataflowProgram make_program(std::shared_ptr<const SsaForm> versions, const CollectiveSpec& goal,
                             const Layout& layout, Buffers buffers,
                             const ProgramOptions& options = {});

// make_program() for a schedule that becomes one program only. Fails as SsaForm::of() does.
Result<DataflowProgram> make_program(const Schedule& schedule, const CollectiveSpec& goal,
                                     const Layout& layout, Buffers buffers,
                                     const ProgramOptions& options = {});

// Marks the operations that should store past the caches: all of at least `from` bytes with a
// result that no operation reads. For results that together exceed the caches, with separate
// buffers.
void mark_streams(DataflowProgram& program, std::size_t from = Costs{}.stream_min_bytes);

// Footprint tells which operations of a program touch which memory, for passes that move work in
// time or from rank to rank and must not disturb others.
//
// The memory that operations touch begins and ends at few points of a rank's memory, the borders of
// its blocks. A *stretch* lies between two neighbouring borders, and each stretch lists its
// operations; so the cost of a query depends on its answer, not on the size of the program.

// Maps equal bytes to one name if input and output are one memory, at equal offsets, as in an
// all-reduce in place.
inline Place resolved(Place place, Buffers buffers) {
  if (buffers == Buffers::in_place && place.memory == Memory::input) place.memory = Memory::output;
  return place;
}

class Footprint {
 public:
  struct Touch {
    int operation = 0;
    bool same_bytes = false;  // touches exactly the bytes of the query
  };

  // The parts of ranks' memories that queries will ask about: from the first byte of each to the
  // last. Operations that touch none of these bytes are not recorded.
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
    std::size_t questions() const { return questions_; }  // number of add() calls

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

  // `further`: the approximate number of later add() calls.
  Footprint(const DataflowProgram& program, Memories asked, std::size_t further = 0,
            PlanningBudget* meter = nullptr);

  // Calls visit(touch) for every operation that touches these bytes of `rank`; at least one must.
  // In the order of operations, except those from add(). Not for two threads at once.
  template <class Visit>
  void for_each(Rank rank, Place place, std::size_t bytes, Visit visit) const {
    const auto [first, last] = stretches(memories_.number(rank, place), place.offset, bytes);
    std::vector<int>& found = found_;
    found.clear();
    for (int i = first; i < last; ++i) {
      for (int at = stretches_[static_cast<std::size_t>(i)].first; at != kNone;) {
        const Link& link = links_[static_cast<std::size_t>(at)];
        // Report an operation on several of these stretches only once.
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

  // Records that an operation will touch these bytes, whose ends must be existing borders.
  void add(Rank rank, int operation, Place place, std::size_t bytes);

 private:
  static constexpr int kNone = -1;
  struct Stretch {
    std::size_t begin = 0;
    int first = kNone, last = kNone;  // first and last of its links
  };
  // An operation that touches the stretches `first` to before `last`; one link at each of them.
  struct Link {
    int operation = 0;
    int first = 0, last = 0;
    int next = kNone;  // next link at this stretch
  };
  struct Range {
    int first, last;
  };
  // The stretches of a memory, `first` to before `last`: the last one marks the end of the others.
  struct OfMemory {
    int first = 0, last = 0;
    std::size_t length = 1;  // length of each stretch, if all were equal
  };

  // The stretches between the two ends of these bytes.
  Range stretches(std::size_t memory, std::size_t offset, std::size_t bytes) const;
  void add_to(std::size_t memory, int operation, std::size_t offset, std::size_t bytes);

  const Memories memories_;
  std::vector<Stretch> stretches_;  // by memory, each in order
  std::vector<OfMemory> of_memory_;
  std::vector<Link> links_;
  mutable std::vector<int> found_;
};

}  // namespace rankine
