#include "algorithms/schedule/blocks.h"

#include <algorithm>

namespace rankine {

std::string text_of_set(std::span<const Rank> ranks) {
  std::string out = "{";
  for (std::size_t i = 0, end = 0; i < ranks.size(); i = end) {
    while (end < ranks.size() && ranks[end] == ranks[i] + static_cast<Rank>(end - i)) ++end;
    if (i > 0) out += ", ";
    out += std::to_string(ranks[i]);
    if (end > i + 1) out += (end == i + 2 ? ", " : "..") + std::to_string(ranks[end - 1]);
  }
  return out + "}";
}

void IndexList::append(Run run) {
  if (run.count <= 0) return;
  if (run.count == 1) run.stride = 1;
  if (runs_ > 0) {
    Run& tail = last();
    const int next = tail.first + tail.count * tail.stride;
    const bool strides_agree = tail.stride == run.stride || run.count == 1;
    if (tail.count == 1 && run.count == 1 && run.first == tail.first + 1) {
      tail.count = 2;
      return;
    }
    if (run.first == next && strides_agree && (tail.count > 1 || tail.stride == run.stride)) {
      tail.count += run.count;
      return;
    }
  }
  if (runs_ < kInline) {
    inline_[static_cast<std::size_t>(runs_)] = run;
  } else {
    spill(run);
  }
  ++runs_;
}

// Room is for kSmallest runs, or for the next power of two: it follows from the number of runs, so
// the list needs no member for it.
void IndexList::spill(Run run) {
  constexpr int kSmallest = 4;
  const int held = runs_ - kInline;
  const bool full = held == 0 || (held >= kSmallest && (held & (held - 1)) == 0);
  if (full) {
    Run* larger = new Run[static_cast<std::size_t>(std::max(kSmallest, 2 * held))];
    std::copy_n(spilled_, held, larger);
    delete[] spilled_;
    spilled_ = larger;
  }
  spilled_[held] = run;
}

void IndexList::copy_spilled(const IndexList& other) {
  // As much room as spill() would have made.
  int room = 4;
  while (room < runs_ - kInline) room *= 2;
  spilled_ = new Run[static_cast<std::size_t>(room)];
  std::copy_n(other.spilled_, runs_ - kInline, spilled_);
}

int IndexList::operator[](int i) const {
  int r = 0;
  while (i >= run(r).count) i -= run(r++).count;
  return run(r).first + i * run(r).stride;
}

std::vector<int> IndexList::to_vector() const {
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(size()));
  for_each([&](int index) { out.push_back(index); });
  return out;
}

IndexList IndexList::all_modulo(int n) const {
  IndexList out;
  for (int i = 0; i < runs_; ++i) {
    const Run& part = run(i);
    const int last_index = part.first + (part.count - 1) * part.stride;
    if (part.first >= 0 && last_index >= 0 && part.first < n && last_index < n) {
      out.append(part);
    } else if (part.count == 1) {
      out.append(Run{wrapped(part.first, n), 1, 1});
    } else if (part.stride == 1 && part.count <= n) {
      const int first = wrapped(part.first, n);
      const int before_end = part.count < n - first ? part.count : n - first;
      out.append(Run{first, before_end, 1});
      out.append(Run{0, part.count - before_end, 1});
    } else {
      for (int j = 0; j < part.count; ++j) {
        out.append(Run{wrapped(part.first + j * part.stride, n), 1, 1});
      }
    }
  }
  return out;
}

bool IndexList::operator==(const IndexList& other) const {
  return to_vector() == other.to_vector();
}

}  // namespace rankine
