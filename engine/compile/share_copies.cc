#include "engine/compile/share_copies.h"

#include <algorithm>
#include <vector>

#include "engine/base/cache_line.h"

namespace rankine {
namespace {

const Source& source_of(const Program& program, const Operation& op) {
  return program.sources[static_cast<std::size_t>(op.first_source)];
}

bool fetches(const Program& program, const Operation& op) {
  return op.sources > 0 && source_of(program, op).rank != op.rank;
}

// Could the owner of what this operation fetches store it there just as well? Where the reader had
// nothing before, nobody needs what the store overwrites.
bool can_be_stored(const Program& program, const Operation& op) {
  const Source& source = source_of(program, op);
  return op.sources == 1 && source.producer < 0 && source.place.memory == Memory::input &&
         !op.replaces;
}

// Per operation: how many bytes of it its owner stores. Empty: the program stays as it is.
std::vector<std::size_t> bytes_to_store(const Program& program, const ShareOptions& options) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  std::vector<std::size_t> fetched(ranks, 0), asked(ranks, 0);  // operations, by rank
  for (const Operation& op : program.operations) {
    step(options.meter);
    if (op.only_if_moved) continue;
    if (!fetches(program, op) || !can_be_stored(program, op)) return {};
    ++fetched[static_cast<std::size_t>(op.rank)];
    ++asked[static_cast<std::size_t>(source_of(program, op).rank)];
  }
  std::vector<std::size_t> stored(program.operations.size(), 0);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Operation& op = program.operations[i];
    if (!fetches(program, op)) continue;
    const auto owner = static_cast<std::size_t>(source_of(program, op).rank);
    if (fetched[owner] == 0) {
      // An owner that is asked for a messages, and a reader of b: both end together if it stores
      // b / (a + b) of each.
      const std::size_t b = fetched[static_cast<std::size_t>(op.rank)];
      const std::size_t part = op.bytes * b / (asked[owner] + b) / kCacheLine * kCacheLine;
      if (asked[owner] <= options.readers && part >= options.from) stored[i] = part;
    } else if (options.streams && op.bytes >= options.stream_from) {
      stored[i] = op.bytes;
    }
    // Where one reader has no owner that helps it, the call takes as long as before.
    if (stored[i] == 0) return {};
  }
  return stored;
}

}  // namespace

Program share_copies(Program program, const ShareOptions& options) {
  const std::vector<std::size_t> stored = bytes_to_store(program, options);
  if (stored.empty()) return program;
  Program out = program;
  out.operations.clear();
  std::vector<Operation> rests;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    step(options.meter);
    Operation rest = program.operations[i];
    if (stored[i] > 0) {
      const Source source = source_of(program, rest);
      Operation store;
      store.rank = source.rank;
      store.round = rest.round;
      store.destination = source.place;  // where it is: nothing moves there
      store.bytes = stored[i];
      store.first_source = static_cast<int>(out.sources.size());
      store.sources = 1;
      store.first_copy = static_cast<int>(out.copies.size());
      store.copies = 1;
      out.sources.push_back(source);
      out.copies.push_back({rest.rank, rest.destination});
      out.operations.push_back(store);
      rest.destination.offset += stored[i];
      rest.bytes -= stored[i];
      out.sources[static_cast<std::size_t>(rest.first_source)].place.offset += stored[i];
    }
    if (stored[i] == 0 || rest.bytes > 0) rests.push_back(rest);
  }
  // Stores first. Nobody reads what an operation made, so their numbers may change.
  out.operations.insert(out.operations.end(), rests.begin(), rests.end());
  std::stable_sort(out.operations.begin(), out.operations.end(),
                   [](const Operation& a, const Operation& b) { return a.round < b.round; });
  return out;
}

}  // namespace rankine
