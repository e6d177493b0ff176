// The table of formats, and Rankine's own two: text and JSON.

#include "engine/cli/formats/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/json_text.h"
#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

Status out_of_range(std::string_view what, int value, int lowest, int highest) {
  if (value >= lowest && value <= highest) return {};
  return invalid_argument(
      fmt::format("{} is {}; allowed are {} to {}", what, value, lowest, highest));
}

// The head's numbers by the names that both forms have for them.
std::array<std::pair<const char*, std::optional<int>*>, 4> numbers_of(ScheduleHead& head) {
  return {{{"root", &head.root},
           {"peer", &head.peer},
           {"blocks", &head.blocks},
           {"planes", &head.planes}}};
}

}  // namespace

Result<WrittenSchedule> begin_schedule(const ScheduleHead& head) {
  constexpr int kMostPlanes = 1 << 10;
  const Collective c = head.collective;
  if (head.root && !has_root(c)) {
    return invalid_argument(fmt::format("root is given; {} has no root", name_of(c)));
  }
  if (head.peer && c != Collective::send_recv) {
    return invalid_argument(fmt::format("peer is given to {}; allowed is send_recv", name_of(c)));
  }
  if (head.other_bits && c != Collective::all_reduce) {
    return invalid_argument(
        fmt::format("other_bits is given to {}; allowed is all_reduce", name_of(c)));
  }
  if (Status s = out_of_range("the number of ranks", head.ranks, 1, kMostWrittenRanks); !s.ok()) {
    return s;
  }
  WrittenSchedule out;
  const int natural = natural_blocks(c, head.ranks);
  out.goal = {.collective = c,
              .ranks = head.ranks,
              .blocks = head.blocks.value_or(natural),
              .root = head.root.value_or(0),
              .peer = 0,
              .same_bits = !head.other_bits};
  out.goal.peer = head.peer.value_or((out.goal.root + 1) % head.ranks);
  out.planes = head.planes.value_or(1);
  if (natural > kMostWrittenBlocks) {
    return invalid_argument(fmt::format("{} among {} ranks has {} blocks; allowed are {}",
                                        name_of(c), head.ranks, natural, kMostWrittenBlocks));
  }
  if (out.goal.blocks < 1 || out.goal.blocks % natural != 0) {
    return invalid_argument(
        fmt::format("blocks is {}; allowed are multiples of {}", out.goal.blocks, natural));
  }
  for (Status status : {out_of_range("root", out.goal.root, 0, head.ranks - 1),
                        out_of_range("peer", out.goal.peer, 0, head.ranks - 1),
                        out_of_range("blocks", out.goal.blocks, 1, kMostWrittenBlocks),
                        out_of_range("planes", out.planes, 1, kMostPlanes)}) {
    if (!status.ok()) return status;
  }
  return out;
}

Status TransferWriter::begin_round() {
  constexpr std::size_t kMostRounds = 1 << 16;
  if (into_.rounds.size() == kMostRounds) {
    return invalid_argument(
        fmt::format("the schedule has more than {} rounds, the most allowed", kMostRounds));
  }
  into_.rounds.emplace_back();
  return {};
}

Status TransferWriter::add(WrittenTransfer written) {
  const auto size = [](const IndexList& list) { return static_cast<std::size_t>(list.size()); };
  const Transfer& t = written.transfer;
  // Each size is at most kMostWrittenMoves by its list's limits; products of two sizes fit 64 bits.
  const std::size_t blocks = size(t.what.list), pairs = size(t.from) * size(t.to);
  if (blocks > kMostWrittenMoves || pairs > kMostWrittenMoves / blocks ||
      moves_ + pairs * blocks > kMostWrittenMoves) {
    return invalid_argument(
        fmt::format("the schedule moves more than {} blocks, the most allowed", kMostWrittenMoves));
  }
  moves_ += pairs * blocks;
  into_.rounds.back().push_back(std::move(written));
  return {};
}

void for_each_line(std::string_view text, const std::function<void(int, const Words&)>& see) {
  constexpr std::string_view kBlank = " \t\r";
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line = line.substr(0, line.find('#'));
    at = end + 1;
    ++number;
    Words words;
    for (std::size_t i = 0; (i = line.find_first_not_of(kBlank, i)) != line.npos;) {
      const std::size_t word_end = std::min(line.find_first_of(kBlank, i), line.size());
      words.push_back(line.substr(i, word_end - i));
      i = word_end;
    }
    if (!words.empty()) see(number, words);
  }
}

// Written schedules as JSON.

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

// The source line of a program's transfer; 0: not given.
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
  Transfer t{*from, *to, {*what, 0}, {*what, 0}, TransferKind::copy};
  const Json act = object.contains("act") ? object["act"] : Json("copy");
  if (act != "copy" && act != "reduce") return bad_member("act", act, "\"copy\" and \"reduce\"");
  if (act == "reduce") t.kind = TransferKind::reduce;
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
  for (const auto& [member, into] : numbers_of(head)) {
    auto value = optional_whole(object, member, kMostWrittenBlocks);
    if (!value.ok()) return value.status();
    *into = *value;
  }
  // The player writes a root for every collective.
  if (!has_root(head.collective)) head.root.reset();
  if (head.collective != Collective::send_recv) head.peer.reset();
  if (object.contains("other_bits")) {
    const Json& bits = object["other_bits"];
    if (!bits.is_boolean()) return bad_member("other_bits", bits, "true and false");
    head.other_bits = bits.get<bool>();
  }
  return head;
}

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

// Written schedules as text.

// "0..3,6": each index within 0 .. last, in the order written.
Result<IndexList> read_indices(std::string_view what, std::string_view text, int last) {
  IndexList out;
  for (const std::string_view part : split_list(text)) {
    const std::size_t dots = part.find("..");
    const auto first = parse_whole(what, part.substr(0, dots), 0, last);
    if (!first.ok()) return first.status();
    if (dots == part.npos) {
      out.append(Run{*first, 1, 1});
      continue;
    }
    const auto end = parse_whole(what, part.substr(dots + 2), *first, last);
    if (!end.ok()) return end.status();
    out.append(Run{*first, *end - *first + 1, 1});
  }
  if (out.empty()) {
    return invalid_argument(fmt::format("{} is ''; allowed are lists such as 0..3,6", what));
  }
  return out;
}

}  // namespace

Result<std::vector<Transfer>> read_transfer(const Words& words, const WrittenSchedule& within) {
  constexpr std::string_view kForm =
      "allowed are 'round' and transfers such as '0 -> 1: 0' and '2 <-> 3: 0..1 +'";
  if (words.size() >= 4 && (words[1] == "->" || words[1] == "<->") && !words[2].ends_with(':')) {
    return invalid_argument(
        fmt::format("'{0} {1} {2} {3}' has no colon after the receiver; write "
                    "'{0} {1} {2}: {3}'",
                    legible(words[0]), words[1], legible(words[2]), legible(words[3])));
  }
  if (words.size() < 4 || (words[1] != "->" && words[1] != "<->") || !words[2].ends_with(':')) {
    return invalid_argument(fmt::format("'{}' is no transfer; {}", legible(words[0]), kForm));
  }
  const int last_rank = within.goal.ranks - 1;
  auto from = read_indices("a sender", words[0], last_rank);
  if (!from.ok()) return from.status();
  auto to = read_indices("a receiver", words[2].substr(0, words[2].size() - 1), last_rank);
  if (!to.ok()) return to.status();
  auto what = read_indices("a block", words[3], within.goal.blocks - 1);
  if (!what.ok()) return what.status();
  Transfer t{*from, *to, {*what, 0}, {*what, 0}, TransferKind::copy};
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (words[i] == "+" && i + 1 == words.size()) {
      t.kind = TransferKind::reduce;
      continue;
    }
    const bool on = words[i] == "on" && i == 4;
    if ((!on && words[i] != "to") || i + 1 == words.size()) {
      return invalid_argument(
          fmt::format("'{}' after the blocks; allowed are 'on PLANE', 'to PLANE' and, as the "
                      "last, '+'",
                      legible(words[i])));
    }
    const auto plane = parse_whole("a plane", words[++i], 0, within.planes - 1);
    if (!plane.ok()) return plane.status();
    t.where.plane = *plane;
    if (on) t.what.plane = *plane;
  }
  if (words[1] == "<->") {
    Transfer back = t;
    std::swap(back.from, back.to);
    return std::vector<Transfer>{std::move(t), std::move(back)};
  }
  return std::vector<Transfer>{std::move(t)};
}

namespace {

class Reader {
 public:
  Result<WrittenSchedule> read(std::string_view text) {
    Status status;
    for_each_line(text, [&](int line, const Words& words) {
      if (!status.ok()) return;
      line_ = line;
      status = read_line(words);
      if (!status.ok()) status = invalid_argument(fmt::format("line {}: {}", line, status.text()));
    });
    if (!status.ok()) return status;
    if (!begun_) {
      return invalid_argument(
          "the schedule is empty; its first line must name a collective and the number of ranks: "
          "'all_gather 4'");
    }
    return std::move(out_);
  }

 private:
  Status read_line(const Words& words) {
    if (!begun_) return read_head(words);
    if (words[0] == "round") return read_round(words);
    return add_transfer(words);
  }

  Status read_head(const Words& words) {
    ScheduleHead head;
    const auto collective = read_collective("the collective", words[0]);
    if (!collective.ok()) return collective.status();
    head.collective = *collective;
    if (words.size() < 2) return invalid_argument("the number of ranks is missing");
    const auto ranks = parse_whole("the number of ranks", words[1], 1, kMostWrittenRanks);
    if (!ranks.ok()) return ranks.status();
    head.ranks = *ranks;
    for (std::size_t i = 2; i < words.size(); ++i) {
      std::optional<int>* into = nullptr;
      for (const auto& [name, number] : numbers_of(head)) {
        if (words[i] == name) into = number;
      }
      if (words[i] == "other_bits") {
        head.other_bits = true;
      } else if (into == nullptr) {
        constexpr std::string_view kNames[] = {"root", "peer", "blocks", "planes", "other_bits"};
        return unknown_name("a word", words[i], kNames);
      } else if (i + 1 == words.size()) {
        return invalid_argument(fmt::format("{} needs a number", words[i]));
      } else {
        const auto value = parse_whole(words[i], words[i + 1], 0, kMostWrittenBlocks);
        if (!value.ok()) return value.status();
        *into = *value;
        ++i;
      }
    }
    auto begun = begin_schedule(head);
    if (!begun.ok()) return begun.status();
    out_ = std::move(*begun);
    begun_ = true;
    return {};
  }

  Status read_round(const Words& words) {
    const auto next = static_cast<int>(out_.rounds.size());
    if (words.size() > 2) {
      return invalid_argument(
          fmt::format("'{}' is one word too many after round", legible(words[2])));
    }
    if (words.size() == 2) {
      const auto number = parse_whole("round", words[1], next, next);
      if (!number.ok()) return number.status();
    }
    return writer_.begin_round();
  }

  Status add_transfer(const Words& words) {
    if (out_.rounds.empty() && words.size() > 1 && words[1].ends_with("->")) {
      return invalid_argument("a transfer before the first round; a line 'round' begins one");
    }
    const auto read = read_transfer(words, out_);
    if (!read.ok()) return read.status();
    for (const Transfer& t : *read) {
      if (Status status = writer_.add({t, line_}); !status.ok()) return status;
    }
    return {};
  }

  int line_ = 0;
  bool begun_ = false;
  WrittenSchedule out_;
  TransferWriter writer_{out_};
};

}  // namespace

Result<WrittenSchedule> read_schedule_text(std::string_view text) { return Reader().read(text); }

Result<WrittenSchedule> read_schedule(std::string_view text) {
  // Some editors begin a file of UTF-8 with a byte-order mark.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto formats = schedule_formats();
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [text](const ScheduleFormat& each) { return each.is(text); });
  return found->read(text);
}

namespace {

// "0..3,6"
std::string list_text(const IndexList& list) {
  std::string out;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ",") + part; };
  for (int i = 0; i < list.runs(); ++i) {
    const Run& run = list.run(i);
    if (run.stride == 1 && run.count > 1) {
      add(fmt::format("{}..{}", run.first, run.first + run.count - 1));
      continue;
    }
    for (int j = 0; j < run.count; ++j) add(std::to_string(run.first + j * run.stride));
  }
  return out;
}

}  // namespace

Schedule WrittenSchedule::schedule() const {
  auto all = std::make_shared<std::vector<std::vector<Transfer>>>();
  for (const std::vector<WrittenTransfer>& round : rounds) {
    std::vector<Transfer>& copied = all->emplace_back();
    for (const WrittenTransfer& one : round) copied.push_back(one.transfer);
  }
  const auto send_all = [all](int k, Send send) {
    for (const Transfer& t : (*all)[static_cast<std::size_t>(k)]) send.exactly(t);
  };
  return {.ranks = goal.ranks,
          .blocks = goal.blocks,
          .rounds = static_cast<int>(rounds.size()),
          .round = send_all,
          .planes = planes};
}

std::string transfer_text(const Transfer& t) {
  std::string out =
      fmt::format("{} -> {}: {}", list_text(t.from), list_text(t.to), list_text(t.what.list));
  const bool moves = t.where.plane != t.what.plane;
  if (t.what.plane != 0) out += fmt::format(" on {}", t.what.plane);
  if (moves) out += fmt::format(" to {}", t.where.plane);
  return out + (t.kind == TransferKind::reduce ? " +" : "");
}

std::string schedule_text(const Schedule& schedule, const CollectiveSpec& goal) {
  std::string out = fmt::format("{} {}", name_of(goal.collective), schedule.ranks);
  if (has_root(goal.collective)) out += fmt::format(" root {}", goal.root);
  if (goal.collective == Collective::send_recv) out += fmt::format(" peer {}", goal.peer);
  if (schedule.blocks != natural_blocks(goal.collective, schedule.ranks)) {
    out += fmt::format(" blocks {}", schedule.blocks);
  }
  if (schedule.planes != 1) out += fmt::format(" planes {}", schedule.planes);
  if (!goal.same_bits) out += " other_bits";
  out += '\n';
  for (int k = 0; k < schedule.rounds; ++k) {
    out += fmt::format("round {}\n", k);
    for_each_transfer(schedule, k, [&out](const Transfer& t) { out += transfer_text(t) + '\n'; });
  }
  return out;
}

namespace {

std::string schedule_json(const Schedule& schedule, const CollectiveSpec& goal) {
  Json out = {{"collective", name_of(goal.collective)}, {"ranks", schedule.ranks}};
  if (has_root(goal.collective)) out["root"] = goal.root;
  if (goal.collective == Collective::send_recv) out["peer"] = goal.peer;
  out["blocks"] = schedule.blocks;
  out["planes"] = schedule.planes;
  if (!goal.same_bits) out["other_bits"] = true;
  Json& rounds = out["transfers"] = Json::array();
  for (int k = 0; k < schedule.rounds; ++k) {
    Json& round = rounds.emplace_back(Json::array());
    for_each_transfer(schedule, k, [&round](const Transfer& t) {
      round.push_back({{"from", t.from.to_vector()},
                       {"to", t.to.to_vector()},
                       {"what", t.what.list.to_vector()},
                       {"act", t.kind == TransferKind::copy ? "copy" : "reduce"},
                       {"what_plane", t.what.plane},
                       {"where_plane", t.where.plane}});
    });
  }
  return out.dump() + "\n";
}

template <class Text>
bool begins_with(std::string_view text, const Text& begin) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text.substr(first).starts_with(begin);
}

// True if the first statement, after remarks, is a number of ranks.
bool is_goal(std::string_view text) {
  while (begins_with(text, "//")) text.remove_prefix(std::min(text.find('\n'), text.size()));
  return begins_with(text, "num_ranks");
}

// ScheduleFormat::write of formats without sizes.
template <auto kWrite>
Result<std::string> without_bytes(const Schedule& schedule, const CollectiveSpec& goal,
                                  std::uint64_t) {
  return kWrite(schedule, goal);
}

constexpr ScheduleFormat kFormats[] = {
    {"msccl", ".xml", [](std::string_view text) { return begins_with(text, '<'); }, read_msccl,
     without_bytes<msccl_text>},
    {"mscclpp", ".json",
     [](std::string_view text) {
       return begins_with(text, '{') && text.find("\"gpus\"") != text.npos;
     },
     read_mscclpp, without_bytes<mscclpp_text>},
    {"goal", ".goal", is_goal, read_goal,
     [](const Schedule& s, const CollectiveSpec& goal, std::uint64_t bytes) {
       return goal_text(s, goal, bytes);
     }},
    {"json", ".json", [](std::string_view text) { return begins_with(text, '{'); },
     read_schedule_json, without_bytes<schedule_json>},
    {"text", ".txt", [](std::string_view) { return true; }, read_schedule_text,
     without_bytes<schedule_text>}};

}  // namespace

std::span<const ScheduleFormat> schedule_formats() { return kFormats; }

}  // namespace rankine::tools
