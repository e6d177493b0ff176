#include "engine/tools/page/edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/numbers.h"

namespace rankine::tools {
namespace {

using Rounds = std::vector<std::vector<Transfer>>;

// The member as a whole number below `end`.
Result<int> index_of(const Json& edit, const char* member, std::size_t end) {
  const auto found = edit.find(member);
  if (found == edit.end()) return invalid_argument(fmt::format("{} is missing", member));
  const bool whole = found->is_number_integer();
  const std::int64_t value = whole ? found->get<std::int64_t>() : -1;
  if (value >= 0 && value < static_cast<std::int64_t>(end)) return static_cast<int>(value);
  return bad_member(member, *found,
                    end == 0 ? "none, there is nothing" : fmt::format("0 to {}", end - 1));
}

// A number below `end` that belongs to the seed, the next one of the sequence `state`.
int drawn(std::uint64_t& state, std::size_t end) {
  state += kSplitMixStep;
  return static_cast<int>(splitmix(state) % end);
}

// One that does something: a round that has transfers, a rank that is neither end.
Result<Json> draw(const Rounds& rounds, int ranks, const Json& edit) {
  const auto seed = edit.find("seed");
  if (seed == edit.end() || !seed->is_number_unsigned()) {
    return bad_member("seed", seed == edit.end() ? Json() : *seed, "whole numbers, not negative");
  }
  std::vector<int> busy;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    if (!rounds[k].empty()) busy.push_back(static_cast<int>(k));
  }
  if (busy.empty()) return invalid_argument("the schedule has no transfer to change");
  std::uint64_t state = splitmix(seed->get<std::uint64_t>() + 1);
  const int round = busy[static_cast<std::size_t>(drawn(state, busy.size()))];
  const std::vector<Transfer>& transfers = rounds[static_cast<std::size_t>(round)];
  const int transfer = drawn(state, transfers.size());
  constexpr std::array<const char*, 4> kWays = {"delete", "double", "redirect", "move"};
  const std::size_t ways = busy.size() > 1 ? 4 : ranks > 2 ? 3 : 2;
  Json out = {{"do", kWays[static_cast<std::size_t>(drawn(state, ways))]},
              {"round", round},
              {"transfer", transfer}};
  if (out["do"] == "redirect") {
    const Transfer& t = transfers[static_cast<std::size_t>(transfer)];
    int to = drawn(state, static_cast<std::size_t>(ranks));
    while (ranks > 2 && (to == t.from.front() || to == t.to.front())) to = (to + 1) % ranks;
    out["to"] = to;
  }
  if (out["do"] == "move") {
    int into = round;
    while (into == round) into = busy[static_cast<std::size_t>(drawn(state, busy.size()))];
    out["into"] = into;
  }
  return out;
}

Status edit_once(Rounds& rounds, int ranks, const Json& edit) {
  const auto round = index_of(edit, "round", rounds.size());
  if (!round.ok()) return round.status();
  std::vector<Transfer>& transfers = rounds[static_cast<std::size_t>(*round)];
  const auto index = index_of(edit, "transfer", transfers.size());
  if (!index.ok()) return index.status();
  const auto at = transfers.begin() + *index;
  const std::string what = edit.value("do", "");
  if (what == "delete") {
    transfers.erase(at);
  } else if (what == "double") {
    transfers.insert(at + 1, Transfer(*at));
  } else if (what == "redirect") {
    const auto to = index_of(edit, "to", static_cast<std::size_t>(ranks));
    if (!to.ok()) return to.status();
    at->to = RankSet(*to);
  } else if (what == "move") {
    const auto into = index_of(edit, "into", rounds.size());
    if (!into.ok()) return into.status();
    Transfer moved = std::move(*at);
    transfers.erase(at);
    rounds[static_cast<std::size_t>(*into)].push_back(std::move(moved));
  } else {
    return bad_member("do", edit.contains("do") ? edit["do"] : Json(),
                      "delete, redirect, double, move and chance");
  }
  return {};
}

}  // namespace

Result<Schedule> edited(const Schedule& schedule, const Json& edits, Json& done) {
  done = Json::array();
  if (!edits.is_array()) return bad_member("edits", edits, "lists of objects");
  auto rounds = std::make_shared<Rounds>(static_cast<std::size_t>(schedule.rounds));
  std::size_t count = 0;
  for (int k = 0; k < schedule.rounds && count <= kMostEditedTransfers; ++k) {
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      if (++count <= kMostEditedTransfers) (*rounds)[static_cast<std::size_t>(k)].push_back(t);
    });
  }
  if (count > kMostEditedTransfers) {
    return invalid_argument(
        fmt::format("the schedule has more than {} transfers, too many to edit; fewer ranks are "
                    "needed",
                    kMostEditedTransfers));
  }
  for (const Json& asked : edits) {
    if (!asked.is_object()) return bad_member("edits", asked, "lists of objects");
    Json edit = asked;
    if (asked.contains("do") && asked["do"] == "chance") {
      auto found = draw(*rounds, schedule.ranks, asked);
      if (!found.ok()) return found.status();
      edit = std::move(*found);
    }
    if (Status status = edit_once(*rounds, schedule.ranks, edit); !status.ok()) return status;
    done.push_back(std::move(edit));
  }
  Schedule out = schedule;
  out.round = [rounds](int k, Send send) {
    for (const Transfer& t : (*rounds)[static_cast<std::size_t>(k)]) send.exactly(t);
  };
  return out;
}

}  // namespace rankine::tools
