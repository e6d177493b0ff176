// The rank that this process plays, where ranks are processes: as a team's threads are, it is
// placed and pinned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"

namespace rankine::tools {

struct ProcessRank {
  Rank rank = 0;
  std::string name;  // under which all of them meet
};

struct ProcessSeat {
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
  struct Place {
    RankReport report;
    int process = 0;
  };
  std::vector<Place> places;  // of all ranks
};

// Pins the calling thread, and waits for the others. Errors: those of Communicator, a placement
// that there is not, and what another process has told.
Result<ProcessSeat> sit_down(const TeamOptions& options, const ProcessRank& process);

// What each rank has of it, by rank: a call of all of them.
template <class Plain>
Result<std::vector<Plain>> gathered(Member& me, const Plain& mine) {
  std::vector<Plain> all(static_cast<std::size_t>(me.ranks()));
  Status status = me.call({.collective = Collective::all_gather,
                           .in = &mine,
                           .out = all.data(),
                           .count = sizeof(Plain),
                           .type = DataType::u8});
  if (!status.ok()) return status;
  return all;
}

}  // namespace rankine::tools
