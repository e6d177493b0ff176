#include "engine/cli/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/read/count.h"

namespace rankine::tools {
namespace {

Status out_of_range(std::string_view what, int value, int lowest, int highest) {
  if (value >= lowest && value <= highest) return {};
  return invalid_argument(
      fmt::format("{} is {}; allowed are {} to {}", what, value, lowest, highest));
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

bool is_order(std::string_view text) {
  bool found = false, first = true;
  for_each_line(text, [&](int, const Words& words) {
    if (std::exchange(first, false)) found = words[0] == "pipeline";
  });
  return found;
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

// Written schedules as text.

namespace {

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
    return read_transfer(words);
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
    const std::array<std::pair<std::string_view, std::optional<int>*>, 4> numbers = {
        {{"root", &head.root},
         {"peer", &head.peer},
         {"blocks", &head.blocks},
         {"planes", &head.planes}}};
    for (std::size_t i = 2; i < words.size(); ++i) {
      std::optional<int>* into = nullptr;
      for (const auto& [name, number] : numbers) {
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

  Status read_transfer(const Words& words) {
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
    if (out_.rounds.empty()) {
      return invalid_argument("a transfer before the first round; a line 'round' begins one");
    }
    const int last_rank = out_.goal.ranks - 1;
    auto from = read_indices("a sender", words[0], last_rank);
    if (!from.ok()) return from.status();
    auto to = read_indices("a receiver", words[2].substr(0, words[2].size() - 1), last_rank);
    if (!to.ok()) return to.status();
    auto what = read_indices("a block", words[3], out_.goal.blocks - 1);
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
      const auto plane = parse_whole("a plane", words[++i], 0, out_.planes - 1);
      if (!plane.ok()) return plane.status();
      t.where.plane = *plane;
      if (on) t.what.plane = *plane;
    }
    if (words[1] == "<->") {
      Transfer back = t;
      std::swap(back.from, back.to);
      if (Status status = writer_.add({std::move(t), line_}); !status.ok()) return status;
      return writer_.add({std::move(back), line_});
    }
    return writer_.add({std::move(t), line_});
  }

  int line_ = 0;
  bool begun_ = false;
  WrittenSchedule out_;
  TransferWriter writer_{out_};
};

}  // namespace

Result<WrittenSchedule> read_schedule(std::string_view text) {
  // Some editors begin a file of UTF-8 with a byte-order mark.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') return read_schedule_json(text);
  return Reader().read(text);
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

// Each rank that has the data sends it to `ports` others in a round.
int rounds_to_reach(int ranks, int ports) {
  int rounds = 0;
  for (std::int64_t reached = 1; reached < ranks; reached *= ports + 1) ++rounds;
  return rounds;
}

bool needs_switch(const Schedule& schedule) {
  bool found = false;
  for (int k = 0; k < schedule.rounds && !found; ++k) {
    for_each_transfer(schedule, k, [&found](const Transfer& t) {
      found = found || t.from.size() > 1 || t.to.size() > 1;
    });
  }
  return found;
}

bool has(const IndexList& list, int index) {
  bool found = false;
  list.for_each([&](int each) { found = found || each == index; });
  return found;
}

}  // namespace

Result<Judgement> judge(const WrittenSchedule& written, const Fabric& fabric, std::uint64_t bytes,
                        const SimulateOptions& options) {
  const Schedule schedule = written.schedule();
  const CollectiveSpec& goal = written.goal;
  Judgement out;
  for (const auto& round : written.rounds) out.transfers += round.size();
  constexpr std::int64_t kMostStates = std::int64_t{1} << 26;  // about a gigabyte
  out.violation = verify(schedule, goal, {.max_states = kMostStates});
  if (out.violation) {
    if (out.violation->kind == ViolationKind::too_large) {
      return invalid_argument(out.violation->text);
    }
    return out;
  }
  out.counts = count(schedule);
  auto simulated = simulate(schedule, goal, fabric, bytes, options);
  if (!simulated.ok()) return simulated.status();
  out.simulation = std::move(*simulated);
  const RankCounts& busiest = out.counts.busiest;
  const int ports = std::max(busiest.send_ports, busiest.receive_ports);
  if (!needs_switch(schedule)) {
    out.least_rounds = goal.collective == Collective::send_recv ? (goal.root == goal.peer ? 0 : 1)
                       : ports > 0                              ? rounds_to_reach(goal.ranks, ports)
                                                                : 0;
  }
  out.bytes = bytes_of(std::max(greatest(out.simulation.sent), greatest(out.simulation.received)),
                       out.simulation.weight_per_byte);
  out.least_bytes = bus_factor(goal.collective, goal.ranks) * static_cast<double>(bytes);
  if (goal.ranks > kMostComparedRanks) return out;
  Params params;
  params.ranks = goal.ranks;
  params.root = goal.root;
  params.peer = goal.peer;
  params.segments = 0;
  auto candidates = predict(goal.collective, params, bytes, fabric, options);
  if (!candidates.ok()) return candidates.status();
  if (!candidates->empty() && candidates->front().ok()) out.best = std::move(candidates->front());
  return out;
}

std::string_view rule_of(ViolationKind kind) {
  switch (kind) {
    case ViolationKind::bad_shape:
    case ViolationKind::bad_index:
    case ViolationKind::bad_sizes:
      return "ranks, blocks and planes are those of the first line";
    case ViolationKind::too_large:
      return "a schedule must fit in memory for its proof";
    case ViolationKind::other_block:
      return "a block keeps its number everywhere";
    case ViolationKind::many_to_copy:
      return "a copy has one sender; sums have several";
    case ViolationKind::not_there:
      return "only data present at the beginning of the round is read";
    case ViolationKind::double_count:
      return "each rank's contribution is added once";
    case ViolationKind::two_copies:
      return "in one round a place gets one copy";
    case ViolationKind::mixed_acts:
      return "in one round a place gets a copy or additions, and not both";
    case ViolationKind::redundant:
      return "no transfer brings data that is present already";
    case ViolationKind::dead:
      return "arriving data is sent on, or needed at the end";
    case ViolationKind::wrong_result:
      return "each rank that needs a block ends with all contributions to it";
    case ViolationKind::other_order:
      return "all ranks add up in the same brackets and the same order, for the same bits "
             "everywhere (other_bits in the first line asks for less)";
    case ViolationKind::deadlock:
      return "no rank waits for ever";
  }
  return "";
}

std::vector<std::size_t> transfers_at(const WrittenSchedule& written, const Violation& violation) {
  std::vector<std::size_t> out;
  if (violation.round < 0 || violation.round >= static_cast<int>(written.rounds.size())) return out;
  const auto& round = written.rounds[static_cast<std::size_t>(violation.round)];
  for (std::size_t i = 0; i < round.size(); ++i) {
    const Transfer& t = round[i].transfer;
    const bool of_rank =
        violation.rank < 0 || has(t.from, violation.rank) || has(t.to, violation.rank);
    if (of_rank && (violation.block < 0 || has(t.what.list, violation.block))) out.push_back(i);
  }
  return out;
}

Json judgement_json(const WrittenSchedule& written, const Judgement& judged, const Fabric& fabric,
                    Sync sync) {
  Json out = {{"collective", name_of(written.goal.collective)},
              {"ranks", written.goal.ranks},
              {"rounds", written.rounds.size()},
              {"transfers", judged.transfers},
              {"proved", !judged.violation}};
  if (const auto& violation = judged.violation) {
    out["kind"] = name_of(violation->kind);
    out["rule"] = rule_of(violation->kind);
    out["round"] = violation->round;
    out["rank"] = violation->rank;
    out["block"] = violation->block;
    out["text"] = violation->text;
    Json& lines = out["lines"] = Json::array();
    for (const std::size_t i : transfers_at(written, *violation)) {
      const auto& round = written.rounds[static_cast<std::size_t>(violation->round)];
      if (round[i].line > 0) lines.push_back(round[i].line);
    }
    return out;
  }
  out["rounds"] = judged.counts.rounds;
  if (judged.least_rounds) out["least_rounds"] = *judged.least_rounds;
  out["bytes"] = judged.bytes;
  out["least_bytes"] = judged.least_bytes;
  out["send_ports"] = judged.counts.busiest.send_ports;
  out["receive_ports"] = judged.counts.busiest.receive_ports;
  out["network"] = fabric.name;
  out["sync"] = name_of(sync);
  out["time"] = judged.simulation.seconds;
  if (judged.best) {
    out["best"] = {{"algorithm", judged.best->algorithm->name}, {"time", judged.best->seconds}};
  }
  return out;
}

std::string violation_name(const Violation& violation) {
  std::string out(name_of(violation.kind));
  std::string_view between = " at ";
  for (const auto& [name, at] :
       {std::pair("round", violation.round), std::pair("rank", violation.rank),
        std::pair("block", violation.block)}) {
    if (at < 0) continue;
    out += fmt::format("{}{} {}", between, name, at);
    between = ", ";
  }
  return out;
}

std::string violation_text(const WrittenSchedule& written, const Violation& violation) {
  std::string out =
      fmt::format("  the rule: {}\n  here: {}\n", rule_of(violation.kind), violation.text);
  constexpr std::size_t kMostShown = 8;
  const std::vector<std::size_t> found = transfers_at(written, violation);
  for (std::size_t i = 0; i < found.size() && i < kMostShown; ++i) {
    const WrittenTransfer& one =
        written.rounds[static_cast<std::size_t>(violation.round)][found[i]];
    const std::string where = one.line > 0
                                  ? fmt::format("line {}", one.line)
                                  : fmt::format("round {}, transfer {}", violation.round, found[i]);
    out += fmt::format("  {}: {}\n", where, transfer_text(one.transfer));
  }
  if (found.size() > kMostShown) out += fmt::format("  and {} more\n", found.size() - kMostShown);
  return out;
}

Cell times_of(double value, double least) { return least > 0 ? Cell(value / least) : "-"; }

std::string costs_text(const Judgement& judged, const Fabric& fabric, std::uint64_t bytes,
                       Sync sync) {
  const RankCounts& busiest = judged.counts.busiest;
  const Simulation& simulated = judged.simulation;
  Table table(as::text(""), as::number(""), As("{:.2f} x")(""), as::text(""));
  auto& rows = table.rows;
  rows = {{"rounds", judged.counts.rounds, "", "a switch helps, so nothing to compare"}};
  if (judged.least_rounds) {
    rows.back()[2] = times_of(judged.counts.rounds, *judged.least_rounds);
    rows.back()[3] = fmt::format("the least with as many ports: {}", *judged.least_rounds);
  }
  rows.push_back({"bytes", format_bytes(judged.bytes), times_of(judged.bytes, judged.least_bytes),
                  fmt::format("some rank has to move {} of M, which is {}",
                              format_bytes(judged.least_bytes), format_bytes(bytes))});
  rows.push_back({"ports", std::max(busiest.send_ports, busiest.receive_ports), "",
                  fmt::format("sends {} and receives {} in a round at most; the network has {}",
                              busiest.send_ports, busiest.receive_ports, fabric.ports)});
  rows.push_back({"time", format_duration(simulated.seconds), "", "nothing to compare with"});
  if (judged.best) {
    rows.back()[2] = times_of(simulated.seconds, judged.best->seconds);
    rows.back()[3] = fmt::format("the catalogue's best: {}, {}", judged.best->algorithm->name,
                                 format_duration(judged.best->seconds));
  }
  return fmt::format("{}\nBytes and ports of the busiest rank; time on {}, {}.\n",
                     to_text(table, "  "), describe(fabric), name_of(sync));
}

}  // namespace rankine::tools
