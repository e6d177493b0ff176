#include "engine/tools/lesson/schedule_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
    return invalid_argument(fmt::format("{} has no root", name_of(c)));
  }
  if (head.peer && c != Collective::send_recv) {
    return invalid_argument(fmt::format("{} has no peer; send_recv has one", name_of(c)));
  }
  if (head.other_bits && c != Collective::all_reduce) {
    return invalid_argument(
        fmt::format("other_bits means nothing to {}; all_reduce has it", name_of(c)));
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
    return invalid_argument(fmt::format("{} among {} ranks has {} blocks; at most {} are read",
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
    return invalid_argument(fmt::format("there are more than {} rounds", kMostRounds));
  }
  into_.rounds.emplace_back();
  return {};
}

Status TransferWriter::add(WrittenTransfer written) {
  const auto size = [](const IndexList& list) { return static_cast<std::size_t>(list.size()); };
  const Transfer& t = written.transfer;
  // Each is at most kMostWrittenMoves by its own list's limits, and two of them fit 64 bits.
  const std::size_t blocks = size(t.what.list), pairs = size(t.from) * size(t.to);
  if (blocks > kMostWrittenMoves || pairs > kMostWrittenMoves / blocks ||
      moves_ + pairs * blocks > kMostWrittenMoves) {
    return invalid_argument(fmt::format(
        "there are more than {} blocks to move; at most so many are read", kMostWrittenMoves));
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

}  // namespace rankine::tools
