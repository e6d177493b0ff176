// Member::split() divides a communicator into groups: communicators among some of its ranks, for
// the same threads. Grid makes the groups of a grid with named axes.
//
//   auto row = me.split(me.rank() / 4, me.rank()).value();       // four ranks each
//   row->all_reduce(std::span(x)).throw_if_error();
//
//   auto grid = rankine::Grid::make(me, {{"dp", 2}, {"tp", 4}}).value();
//   grid.axis("tp").all_reduce(std::span(x)).throw_if_error();   // ranks that differ only in tp
//
// A group has its own calls, deadlines, requests and flight record, and may be split again. Its
// memory lies near its ranks. It inherits levels, costs, and a modelled network with its ports and
// times from the communicator that it was split from (its parent). It ends when the parent ends,
// and keeps the parent alive: after a call or health() has told a rank of the parent's end, no call
// of that rank on the group succeeds.
//
// Processes: the processes of a group meet anew. split() waits until all of them have come, at most
// for the timeout. If another process ends the parent, ranks of the group notice it when they begin
// their next call or after 50 ms of waiting.
//
// Member::shrink() makes the communicator of the ranks that survive the loss of others. It is
// split() among the survivors, who first agree on who they are (Agreement in rank_control.h):
//
//   Status s = me.all_reduce(std::span(x));
//   if (s.code() == rankine::Code::rank_lost) me_now = me.shrink().value();
//
// Member::grow() makes the communicator of these ranks and new ones, for example of a process that
// replaces a lost one:
//
//   me_now = me_now->grow({.ranks = 4, .name = "job"}).value();       // the three members
//   Communicator::create({.ranks = 4, .rank = 3, .name = "job"});     // the new process
//
// Threads: one thread at a time uses a member and all members split from it, because a wait on one
// of them advances the started calls of the others. A group with `own_thread` is the exception.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/member.h"
#include "engine/base/status.h"

namespace rankine {

// The color of a rank that joins no group: it gets no member.
inline constexpr int kNoColor = -1;

struct SplitOptions {
  std::chrono::milliseconds timeout{0};  // the groups' calls; 0: the parent's
  bool ends_parent = false;              // an error in a group ends the communicator as well
  bool own_thread = false;               // another thread than the parent's uses this rank's member
};

// StartedSplit is Member::split() in two halves, for a thread that plays several ranks or has other
// work meanwhile. request() is an all-gather of colors and keys; finish() then makes the member at
// once. If several splits of one communicator are pending, all ranks must finish them in the same
// order.
class StartedSplit {
 public:
  // Does not start a call. The member must live until finish(). Errors: as for split().
  static Result<StartedSplit> prepare(Member& member, int color, int key,
                                      const SplitOptions& options = {});
  ~StartedSplit();
  StartedSplit(StartedSplit&&) noexcept;
  StartedSplit& operator=(StartedSplit&&) = delete;

  // The caller must start it and wait for it, once.
  Request& request() { return request_; }
  // Call it once, after that. Returns the member as split() does. Errors: as for split();
  // invalid_argument at any other time.
  Result<std::unique_ptr<Member>> finish();

 private:
  struct Wishes;
  StartedSplit(Member& member, SplitOptions options, std::unique_ptr<Wishes> wishes,
               Request request);

  Member* member_;
  SplitOptions options_;
  std::unique_ptr<Wishes> wishes_;
  Request request_;  // destroyed first: it uses the wishes
};

// A grid of ranks with named axes. The last axis changes fastest: for {{"dp", dp}, {"tp", tp}},
// rank (i * tp + j) is at dp = i, tp = j.
struct GridAxis {
  std::string name;
  int size = 1;
};

class Grid {
 public:
  // Splits once per axis; all ranks make this call. Errors: axis sizes with a product other than
  // the number of ranks, an empty or repeated name, and the errors of split().
  static Result<Grid> make(Member& member, std::vector<GridAxis> axes,
                           const SplitOptions& options = {});

  const std::vector<GridAxis>& axes() const { return axes_; }
  // The ranks that differ from this rank only along that axis, in its order. Throws
  // std::out_of_range if the grid has no axis of that name.
  Member& axis(std::string_view name) const;
  // This rank's position along the axis. Throws std::out_of_range if the grid has no such axis.
  int at(std::string_view name) const;
  // Makes the group of the ranks that differ only along these axes; the first axis changes slowest.
  // All ranks make this call; the caller owns the result. Errors: unknown names, and the errors of
  // split().
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
