// CellTable holds one value per cell, where a cell is a place (a block on a plane) at a rank.
// Readers that follow data through a schedule keep their notes in it. IntervalMap, which it uses,
// holds a value per number from 0 on, stored as stretches of neighbours with equal values.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/memory.h"

namespace rankine {

// T: T{} is the first value of all numbers, and == compares values. IntervalMap lie in chunks of at
// most kMost: finding a stretch takes the logarithm of their number, and a change that makes or
// ends a stretch moves only the later ones of its chunk, whatever the total number. For one thread.
template <class T, std::size_t kMost = 256>
class IntervalMap {
 public:
  std::size_t count() const { return std::max<std::size_t>(1, count_); }

  // visit(first, how many, value) for the stretches of [first, end), cut at its ends, in order.
  template <class Visit>
  void read(std::size_t first, std::size_t end, const Visit& visit) const {
    if (chunks_.empty()) return visit(first, end - first, T{});
    for (Place at = holding(first); first < end; at = behind(at)) {
      const std::size_t next = std::min(begin_of(behind(at), end), end);
      visit(first, next - first, chunks_[at.chunk][at.index].value);
      first = next;
    }
  }

  // As read(), with values that change(first, how many, T&) may modify. `all` is the number of
  // numbers.
  template <class Change>
  void change(std::size_t first, std::size_t end, std::size_t all, const Change& change) {
    if (chunks_.empty()) {
      chunks_.push_back({{0, T{}}});
      count_ = 1;
    }
    if (end < all) cut(end);
    const Place begin = cut(first);
    for (Place at = begin; begin_of(at, all) < end; at = behind(at)) {
      Stretch& stretch = chunks_[at.chunk][at.index];
      change(stretch.first, begin_of(behind(at), all) - stretch.first, stretch.value);
    }
    join(begin, end);
  }

  void clear() {
    std::vector<Chunk>().swap(chunks_);
    count_ = 0;
  }

 private:
  struct Stretch {
    std::size_t first;  // ends at the first number of the next stretch
    T value;
  };
  using Chunk = std::vector<Stretch>;  // never empty
  struct Place {
    std::size_t chunk, index;
  };

  Place behind(Place at) const {
    return at.index + 1 < chunks_[at.chunk].size() ? Place{at.chunk, at.index + 1}
                                                   : Place{at.chunk + 1, 0};
  }
  // The first number of that stretch; `none` behind the last one.
  std::size_t begin_of(Place at, std::size_t none) const {
    return at.chunk < chunks_.size() ? chunks_[at.chunk][at.index].first : none;
  }
  Place holding(std::size_t number) const {
    const auto chunk =
        std::upper_bound(chunks_.begin(), chunks_.end(), number,
                         [](std::size_t n, const Chunk& c) { return n < c.front().first; }) -
        1;
    const auto next = std::upper_bound(chunk->begin(), chunk->end(), number,
                                       [](std::size_t n, const Stretch& s) { return n < s.first; });
    return {static_cast<std::size_t>(chunk - chunks_.begin()),
            static_cast<std::size_t>(next - chunk->begin()) - 1};
  }
  // Makes a stretch begin at `number` and returns its place.
  Place cut(std::size_t number) {
    Place at = holding(number);
    Chunk& chunk = chunks_[at.chunk];
    if (chunk[at.index].first == number) return at;
    const T value = chunk[at.index].value;
    ++at.index;
    chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(at.index), {number, value});
    ++count_;
    if (chunk.size() <= kMost) return at;
    const std::size_t half = chunk.size() / 2;
    Chunk later(chunk.begin() + static_cast<std::ptrdiff_t>(half), chunk.end());
    chunk.resize(half);
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk + 1), std::move(later));
    return at.index < half ? at : Place{at.chunk + 1, at.index - half};
  }
  // Joins stretches with equal values, from `at` to the stretch that begins at `end`.
  void join(Place at, std::size_t end) {
    const T* before = at.index > 0   ? &chunks_[at.chunk][at.index - 1].value
                      : at.chunk > 0 ? &chunks_[at.chunk - 1].back().value
                                     : nullptr;
    while (begin_of(at, end + 1) <= end) {
      Chunk& chunk = chunks_[at.chunk];
      std::size_t kept = at.index, i = at.index;
      for (; i < chunk.size() && chunk[i].first <= end; ++i) {
        if (before != nullptr && chunk[i].value == *before) continue;
        if (kept != i) chunk[kept] = chunk[i];
        before = &chunk[kept++].value;
      }
      count_ -= i - kept;
      chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(kept),
                  chunk.begin() + static_cast<std::ptrdiff_t>(i));
      if (chunk.empty()) {
        chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk));
      } else if (kept < chunk.size()) {
        return;
      } else {
        ++at.chunk;
      }
      at.index = 0;
    }
  }

  std::vector<Chunk> chunks_;  // the first one begins at 0; empty: all values are T{}
  std::size_t count_ = 0;      // number of stretches
};

// In small tables all cells lie in one array. In large ones, neighbouring places of a rank with
// equal values are one stretch: halving and doubling among 65,536 ranks has 4.3 billion cells and
// never more than 33 stretches at a rank. A rank with many stretches gets its own array. So memory
// grows with the data that messages have left behind.

// A zeroed array; unwritten pages cost nothing. Large arrays use huge pages, because rounds
// walk diagonally through the (rank, place) table, a page per message.
template <class T>
class LazyTable {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  explicit LazyTable(std::size_t size) : bytes_(size * sizeof(T)) {
    if (bytes_ == 0) return;
    if (bytes_ < kMapped) {
      data_ = static_cast<T*>(std::calloc(size, sizeof(T)));
    } else {
      void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      data_ = mapped == MAP_FAILED ? nullptr : static_cast<T*>(mapped);
      if (data_ != nullptr) prefer_huge_pages(mapped, bytes_);
    }
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~LazyTable() {
    if (bytes_ < kMapped) {
      std::free(data_);
    } else {
      munmap(data_, bytes_);
    }
  }
  LazyTable(const LazyTable&) = delete;
  LazyTable& operator=(const LazyTable&) = delete;
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kMapped = std::size_t{8} << 20;
  std::size_t bytes_;
  T* data_ = nullptr;
};

// T: the first value has all bits zero, and == compares values. For one thread.
template <class T>
class CellTable {
 public:
  // Ranks are numbered 0 .. ranks - 1 in this table.
  CellTable(const Schedule& schedule, const CollectiveSpec& goal, std::size_t ranks)
      : places_(static_cast<std::size_t>(schedule.slots())),
        blocks_(static_cast<std::size_t>(schedule.blocks)),
        plain_(ranks * places_ <=
               (goal.collective == Collective::all_to_all ? kPlainOfAllToAll : kPlain)),
        table_(plain_ ? ranks * places_ : 0),
        rows_(plain_ ? 0 : ranks),
        held_(plain_ ? ranks * places_ : ranks) {}

  // visit(first block, how many, value) for the cells of a run of blocks, in order: one at a time,
  // or a stretch of neighbours with equal values at once. change() passes values that may be
  // modified.
  template <class Visit>
  void read(std::size_t rank, int plane, const Run& run, const Visit& visit) const {
    for_each_part(run, [&](Block first, int count) {
      const std::size_t place = place_of(plane, first);
      if (const T* cells = cells_of(rank)) {
        for (int i = 0; i < count; ++i)
          visit(first + i, 1, cells[place + static_cast<std::size_t>(i)]);
        return;
      }
      rows_[rank].stretches.read(place, place + static_cast<std::size_t>(count),
                                 [&](std::size_t at, std::size_t alike, const T& value) {
                                   visit(first + static_cast<int>(at - place),
                                         static_cast<int>(alike), value);
                                 });
    });
  }
  template <class Change>
  void change(std::size_t rank, int plane, const Run& run, const Change& change) {
    for_each_part(run, [&](Block first, int count) {
      const std::size_t place = place_of(plane, first);
      if (T* cells = cells_of(rank)) {
        for (int i = 0; i < count; ++i)
          change(first + i, 1, cells[place + static_cast<std::size_t>(i)]);
        return;
      }
      Row& row = rows_[rank];
      held_ -= row.stretches.count();
      row.stretches.change(place, place + static_cast<std::size_t>(count), places_,
                           [&](std::size_t at, std::size_t alike, T& value) {
                             change(first + static_cast<int>(at - place), static_cast<int>(alike),
                                    value);
                           });
      if (row.stretches.count() > places_ / kSparsest) spread(row);
      held_ += row.all == nullptr ? row.stretches.count() : places_;
    });
  }
  T at(std::size_t rank, int plane, Block b) const {
    T found{};
    read(rank, plane, {b, 1, 1}, [&found](Block, int, const T& value) { found = value; });
    return found;
  }
  void will_need(std::size_t rank, int plane, Block b) const {
    if (plain_) __builtin_prefetch(&table_[rank * places_ + place_of(plane, b)], 1);
  }

  // True if equal neighbours are stored as one stretch, which must be searched for.
  bool in_stretches() const { return !plain_; }
  // The number of stored values, of cells and of stretches; memory grows with it.
  std::size_t held() const { return held_; }

 private:
  // This number of times takes 128 MiB. An all-to-all has N^3 cells and moves N^2 blocks: nearly
  // each would take a page.
  static constexpr std::size_t kPlain = std::size_t{1} << 24;
  static constexpr std::size_t kPlainOfAllToAll = std::size_t{1} << 22;
  // With more than one stretch per this number of places, an array is as small and faster.
  static constexpr std::size_t kSparsest = 16;

  struct Row {
    IntervalMap<T> stretches;
    std::unique_ptr<LazyTable<T>> all;  // replaces the stretches of a rank with many
  };

  std::size_t place_of(int plane, Block b) const {
    return static_cast<std::size_t>(plane) * blocks_ + static_cast<std::size_t>(b);
  }
  T* cells_of(std::size_t rank) {
    if (plain_) return &table_[rank * places_];
    return rows_[rank].all == nullptr ? nullptr : &(*rows_[rank].all)[0];
  }
  const T* cells_of(std::size_t rank) const {
    return const_cast<CellTable*>(this)->cells_of(rank);  // modifies nothing
  }
  // Visits neighbouring blocks together.
  template <class Visit>
  static void for_each_part(const Run& run, const Visit& visit) {
    if (run.stride == 1) return visit(run.first, run.count);
    for (int i = 0; i < run.count; ++i) visit(run.first + i * run.stride, 1);
  }
  void spread(Row& row) {
    row.all = std::make_unique<LazyTable<T>>(places_);
    row.stretches.read(0, places_, [&row](std::size_t first, std::size_t alike, const T& value) {
      for (std::size_t i = first; i < first + alike; ++i) (*row.all)[i] = value;
    });
    row.stretches.clear();
  }

  const std::size_t places_, blocks_;
  const bool plain_;
  LazyTable<T> table_;
  std::vector<Row> rows_;
  std::size_t held_;
};

}  // namespace rankine
