// Written schedules as text.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/tools/catalogue_names.h"
#include "engine/tools/lesson/schedule_parts.h"
#include "engine/tools/text.h"

namespace rankine::tools {
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
          "there is no schedule; its first line names a collective and the number of ranks: "
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
      return invalid_argument(fmt::format("'{0} {1} {2} {3}' has no colon after the receiver; write "
                                          "'{0} {1} {2}: {3}'",
                                          legible(words[0]), words[1], legible(words[2]),
                                          legible(words[3])));
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
    Transfer t{*from, *to, {*what, 0}, {*what, 0}, Act::copy};
    for (std::size_t i = 4; i < words.size(); ++i) {
      if (words[i] == "+" && i + 1 == words.size()) {
        t.act = Act::reduce;
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

}  // namespace rankine::tools
