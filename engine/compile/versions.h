// A schedule as *versions* of blocks: what is made of what, before anybody says where it lies.
//
// Each write of a block makes a new version of it. Version 0 is the input; a round that writes a
// block makes one version from all that it receives. A read takes the version that was there when
// its round began. So nothing waits for its own round, and nothing can deadlock: by induction over
// rounds every version is made of what is bound to be there.
#pragma once

#include <cstdint>
#include <memory>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/compile/plan_limits.h"
#include "engine/compile/pool.h"
#include "engine/run/layout.h"

namespace rankine {

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

}  // namespace rankine
