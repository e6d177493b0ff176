// Written schedules as JSON.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/base/json_text.h"
#include "engine/tools/catalogue_names.h"
#include "engine/tools/lesson/schedule_parts.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {
namespace {

Result<int> whole(const char* member, const Json& value, int lowest, int highest) {
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number >= lowest && number <= highest) return static_cast<int>(number);
  }
  return bad_member(member, value, fmt::format("whole numbers from {} to {}", lowest, highest));
}

Result<std::optional<int>> optional_whole(const Json& object, const char* member, int highest) {
  const auto found = object.find(member);
  if (found == object.end()) return std::optional<int>();
  const auto number = whole(member, *found, 0, highest);
  if (!number.ok()) return number.status();
  return std::optional<int>(*number);
}

// A number, or a list of them.
Result<IndexList> indices(const Json& object, const char* member, int last) {
  const auto found = object.find(member);
  if (found == object.end()) return invalid_argument(fmt::format("{} is missing", member));
  const Json one = Json::array({*found});
  const Json& all = found->is_array() ? *found : one;
  IndexList out;
  for (const Json& each : all) {
    const auto index = whole(member, each, 0, last);
    if (!index.ok()) return index.status();
    out.append(Run{*index, 1, 1});
  }
  if (out.empty()) return bad_member(member, *found, "numbers and lists of numbers");
  return out;
}

// Where a program says that it made a transfer; 0: nowhere.
int line_of(const Json& object) {
  if (!object.is_object() || !object.contains("line")) return 0;
  const auto line = whole("line", object["line"], 0, std::numeric_limits<int>::max());
  return line.ok() ? *line : 0;
}

Result<Transfer> read_transfer(const Json& object, const WrittenSchedule& schedule) {
  if (!object.is_object()) return bad_member("a transfer", object, "objects");
  auto from = indices(object, "from", schedule.goal.ranks - 1);
  if (!from.ok()) return from.status();
  auto to = indices(object, "to", schedule.goal.ranks - 1);
  if (!to.ok()) return to.status();
  auto what = indices(object, "what", schedule.goal.blocks - 1);
  if (!what.ok()) return what.status();
  Transfer t{*from, *to, {*what, 0}, {*what, 0}, Act::copy};
  const Json act = object.contains("act") ? object["act"] : Json("copy");
  if (act != "copy" && act != "reduce") return bad_member("act", act, "\"copy\" and \"reduce\"");
  if (act == "reduce") t.act = Act::reduce;
  for (const auto& [member, plane] :
       {std::pair("what_plane", &t.what.plane), std::pair("where_plane", &t.where.plane)}) {
    const auto given = optional_whole(object, member, schedule.planes - 1);
    if (!given.ok()) return given.status();
    *plane = given->value_or(0);
  }
  return t;
}

Result<ScheduleHead> read_head(const Json& object) {
  ScheduleHead head;
  const Json none;
  const Json& name = object.contains("collective") ? object["collective"] : none;
  if (!name.is_string()) return bad_member("collective", name, "names of collectives");
  const auto collective = read_collective("collective", name.get<std::string>());
  if (!collective.ok()) return collective.status();
  head.collective = *collective;
  const auto ranks =
      whole("ranks", object.contains("ranks") ? object["ranks"] : none, 1, kMostWrittenRanks);
  if (!ranks.ok()) return ranks.status();
  head.ranks = *ranks;
  const std::array<std::pair<const char*, std::optional<int>*>, 4> numbers = {
      {{"root", &head.root},
       {"peer", &head.peer},
       {"blocks", &head.blocks},
       {"planes", &head.planes}}};
  for (const auto& [member, into] : numbers) {
    auto value = optional_whole(object, member, kMostWrittenBlocks);
    if (!value.ok()) return value.status();
    *into = *value;
  }
  // The player's answers have a root for every collective.
  if (!has_root(head.collective)) head.root.reset();
  if (head.collective != Collective::send_recv) head.peer.reset();
  if (object.contains("other_bits")) {
    const Json& bits = object["other_bits"];
    if (!bits.is_boolean()) return bad_member("other_bits", bits, "true and false");
    head.other_bits = bits.get<bool>();
  }
  return head;
}

}  // namespace

Result<WrittenSchedule> read_schedule_json(std::string_view text) {
  const auto object = read_json<Json>("the schedule", text);
  if (!object.ok()) return object.status();
  const auto head = read_head(*object);
  if (!head.ok()) return head.status();
  auto begun = begin_schedule(*head);
  if (!begun.ok()) return begun.status();
  WrittenSchedule out = std::move(*begun);
  const Json rounds = object->contains("transfers") ? (*object)["transfers"] : Json();
  if (!rounds.is_array()) return bad_member("transfers", rounds, "lists of rounds");
  TransferWriter writer(out);
  for (const Json& round : rounds) {
    const std::size_t k = out.rounds.size();
    if (!round.is_array()) {
      return bad_member(fmt::format("round {}", k), round, "lists of transfers");
    }
    if (Status status = writer.begin_round(); !status.ok()) return status;
    for (const Json& one : round) {
      const int line = line_of(one);
      auto transfer = read_transfer(one, out);
      Status status = transfer.ok() ? writer.add({std::move(*transfer), line}) : transfer.status();
      if (!status.ok()) {
        return invalid_argument(fmt::format("{}round {}, transfer {}: {}",
                                            line > 0 ? fmt::format("line {}: ", line) : "", k,
                                            out.rounds.back().size(), status.text()));
      }
    }
  }
  return out;
}

}  // namespace rankine::tools
