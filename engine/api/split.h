// Groups of ranks: communicators among some of the ranks of another one, for the same threads.
//
//   auto row = me.split(me.rank() / 4, me.rank()).value();       // four ranks each
//   row->all_reduce(std::span(x)).throw_if_error();
//
//   auto grid = rankine::Grid::make(me, {{"dp", 2}, {"tp", 4}}).value();
//   grid.axis("tp").all_reduce(std::span(x)).throw_if_error();   // among those that differ in tp
//   only
//
// A group has calls, deadlines, requests and a flight record of its own, and may be split again.
// Its memory is near its ranks, as theirs is; levels, costs, and a modelled network with its ports
// and times are those of the communicator that it was split from. It ends when that one does, and
// keeps it alive: a rank that has been told of that end, by a call or by health(), makes no call on a
// group that succeeds.
//
// Where ranks are processes, those of a group meet anew: split() waits until all of them have come,
// no longer than the timeout. An end of what a group was split from reaches ranks that are not in
// it when they begin their next call, or have waited for 50 ms.
//
// Threads: a member and those that are split from it are used by one thread at a time, all of them,
// since whoever waits on one moves on what is started on the others; but for a group that has
// `own_thread`.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/member.h"
#include "engine/base/status.h"

namespace rankine {

// The color of a rank that is in no group: it gets no member.
inline constexpr int kNoColor = -1;

struct SplitOptions {
  std::chrono::milliseconds timeout{0};  // of the groups' calls; 0: as here
  bool ends_parent = false;              // an error in a group ends the communicator as well
  bool own_thread = false;               // of this rank's member: another thread than here uses it
};

// Member::split() in its two halves, for a thread that plays several ranks, or has other things to
// do meanwhile: an all-gather of who wants what, and then, at once, the member. What comes of
// several on one communicator is taken in the same order on all ranks.
class StartedSplit {
 public:
  // No call yet. The member stays until finish() at least. Errors: split()'s.
  static Result<StartedSplit> prepare(Member& member, int color, int key,
                                      const SplitOptions& options = {});
  ~StartedSplit();
  StartedSplit(StartedSplit&&) noexcept;
  StartedSplit& operator=(StartedSplit&&) = delete;

  // To be started and waited for, once.
  Request& request() { return request_; }
  // After that, once: as split(). Errors also: invalid_argument, at any other time.
  Result<std::unique_ptr<Member>> finish();

 private:
  struct Wishes;
  StartedSplit(Member& member, SplitOptions options, std::unique_ptr<Wishes> wishes,
               Request request);

  Member* member_;
  SplitOptions options_;
  std::unique_ptr<Wishes> wishes_;
  Request request_;  // goes first: it uses the wishes
};

// A grid of ranks with named axes, the last of which changes fastest from rank to rank: rank
// (i * tp + j) of {{"dp", dp}, {"tp", tp}} is at dp = i, tp = j.
struct GridAxis {
  std::string name;
  int size = 1;
};

class Grid {
 public:
  // A call of all ranks: splits once per axis. Errors: axes that do not multiply up to the ranks, a
  // name that is empty or there twice, and those of split().
  static Result<Grid> make(Member& member, std::vector<GridAxis> axes,
                           const SplitOptions& options = {});

  const std::vector<GridAxis>& axes() const { return axes_; }
  // The ranks that differ from this one along that axis only, in its order. The name must be one of
  // the grid's; else std::out_of_range.
  Member& axis(std::string_view name) const;
  // Where this rank is along it. Likewise.
  int at(std::string_view name) const;
  // Those that differ along these axes only, the first of them changing slowest: a call of all
  // ranks, whose result is the caller's. Errors: names that there are not, and split()'s.
  Result<std::unique_ptr<Member>> across(const std::vector<std::string>& names,
                                         const SplitOptions& options = {}) const;

 private:
  Grid(Member& member, std::vector<GridAxis> axes);
  int index_of(std::string_view name) const;  // -1: none

  Member* member_;
  std::vector<GridAxis> axes_;
  std::vector<int> at_;                         // by axis
  std::vector<std::unique_ptr<Member>> along_;  // by axis
};

}  // namespace rankine
