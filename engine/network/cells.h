// One value per cell: a cell is a place (a block on a plane) at a rank. What readers that follow
// data through a schedule keep their notes in.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/huge_pages.h"

namespace rankine {

// Zeroed memory that costs nothing where nobody writes; on huge pages where there is much of it:
// rounds walk diagonally through the (rank, place) table, a page per message.
template <class T>
class LazyTable {
 public:
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

// A number per cell, 0 at first. A plain table, or a hash table where there are many more cells
// than blocks ever come by: an all-to-all has N^3 cells and moves N^2 blocks.
template <class T>
class CellTable {
 public:
  // Of so many ranks, which are numbered from 0 here.
  CellTable(const Schedule& schedule, const Goal& goal, int ranks)
      : places_(static_cast<std::size_t>(schedule.places())),
        blocks_(static_cast<std::size_t>(schedule.blocks)),
        cells_(static_cast<std::size_t>(ranks) * places_),
        sparse_(cells_ > (goal.collective == Collective::all_to_all ? kManyForAllToAll : kMany)),
        table_(sparse_ ? 0 : cells_) {
    if (sparse_) slots_.resize(kSmallest);
  }
  std::size_t cell(std::size_t rank, int plane, Block b) const {
    return rank * places_ + static_cast<std::size_t>(plane) * blocks_ + static_cast<std::size_t>(b);
  }
  T get(std::size_t cell) const {
    if (!sparse_) return table_[cell];
    const Slot& slot = slots_[find(slots_, cell)];
    return slot.cell == cell + 1 ? slot.value : 0;
  }
  T& at(std::size_t cell) {
    if (!sparse_) return table_[cell];
    if (2 * (held_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[find(slots_, cell)];
    if (slot.cell == 0) {
      slot.cell = cell + 1;
      ++held_;
    }
    return slot.value;
  }
  void will_need(std::size_t cell) const {
    if (!sparse_) __builtin_prefetch(&table_[cell], 1);
  }

 private:
  static constexpr std::size_t kSmallest = 1024;
  static constexpr std::size_t kManyForAllToAll = std::size_t{1} << 20;
  static constexpr std::size_t kMany = std::size_t{1} << 29;
  struct Slot {
    std::size_t cell = 0;  // plus one; 0: free
    T value = 0;
  };
  static std::size_t find(const std::vector<Slot>& slots, std::size_t cell) {
    std::size_t i = ((cell * 0x9e3779b97f4a7c15ULL) >> 20) & (slots.size() - 1);
    while (slots[i].cell != 0 && slots[i].cell != cell + 1) i = (i + 1) & (slots.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> larger(2 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.cell != 0) larger[find(larger, slot.cell - 1)] = slot;
    }
    slots_.swap(larger);
  }

  const std::size_t places_, blocks_, cells_;
  const bool sparse_;
  LazyTable<T> table_;
  std::vector<Slot> slots_;
  std::size_t held_ = 0;
};

}  // namespace rankine
