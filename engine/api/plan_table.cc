#include "engine/api/plan_table.h"

#include <algorithm>
#include <utility>

namespace rankine {

PlanTable::~PlanTable() {
  forget_all();
  delete_retired();
}

PreparedPtr PlanTable::find(const PlanKey& key, std::uint64_t hash, Rank rank) const noexcept {
  std::atomic<bool>& reading = reading_[static_cast<std::size_t>(rank)].now;
  // Sequentially consistent, as the load of the head: pairs with forget_all() and free_retired(). A
  // node that we find was not yet retired when free_retired() could have seen us not reading.
  reading.store(true, std::memory_order_seq_cst);
  PreparedPtr found;
  for (const Node* node = heads_[hash % kHeads].load(std::memory_order_seq_cst); node != nullptr;
       node = node->next) {
    if (node->prepared->key.hash() == hash && node->prepared->key.view() == key) {
      found = node->prepared;
      break;
    }
  }
  reading.store(false, std::memory_order_release);  // pairs with free_retired()'s load
  return found;
}

void PlanTable::insert(PreparedPtr prepared) {
  free_retired();
  if (plans_ >= kMostPlans || bytes_ + prepared->bytes > kMostBytes) forget_all();
  std::atomic<Node*>& head = heads_[prepared->key.hash() % kHeads];
  const std::size_t bytes = prepared->bytes;
  // Relaxed: only who holds the lock changes heads. Release: pairs with find()'s load.
  Node* const next = head.load(std::memory_order_relaxed);
  head.store(new Node{std::move(prepared), next}, std::memory_order_release);
  plans_ += 1;
  bytes_ += bytes;
}

void PlanTable::forget_all() noexcept {
  for (std::atomic<Node*>& head : heads_) {
    // Sequentially consistent: pairs with find().
    for (Node* node = head.exchange(nullptr, std::memory_order_seq_cst); node != nullptr;
         node = node->next) {
      node->next_retired = retired_;
      retired_ = node;
    }
  }
  plans_ = bytes_ = 0;
}

void PlanTable::free_retired() noexcept {
  if (retired_ == nullptr) return;
  // A rank that reads now may have found a retired node; one that begins later finds none. A rank
  // that is stopped while it reads keeps them until it goes on.
  const bool none_reads = std::none_of(reading_.begin(), reading_.end(), [](const Reading& one) {
    return one.now.load(std::memory_order_seq_cst);  // pairs with find()
  });
  if (none_reads) delete_retired();
}

void PlanTable::delete_retired() noexcept {
  while (retired_ != nullptr) delete std::exchange(retired_, retired_->next_retired);
}

RankPlans::Slot* RankPlans::free_slot(std::uint64_t hash) noexcept {
  Slot* set = &slots_[(hash & (slots_.size() / kWays - 1)) * kWays];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].prepared == nullptr) return &set[i];
  }
  return nullptr;
}

RankPlans::Slot* RankPlans::look_up(const PlanKey& key) noexcept {
  const std::uint64_t hash = key.hash();
  Slot* set = &slots_[(hash & (slots_.size() / kWays - 1)) * kWays];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].hash == hash && set[i].prepared != nullptr && set[i].prepared->key.view() == key) {
      return latest_ = &set[i];
    }
  }
  return nullptr;
}

RankPlans::Slot& RankPlans::insert(PreparedPtr prepared) {
  const std::uint64_t hash = prepared->key.hash();
  latest_ = nullptr;  // slots may move
  Slot* slot = free_slot(hash);
  while (slot == nullptr && slots_.size() < kMostSets * kWays) {
    RankPlans larger;
    larger.slots_ = std::vector<Slot>(2 * slots_.size());
    // What shared a set shares one of two now, so every plan finds room.
    for (Slot& old : slots_) {
      if (old.prepared != nullptr) *larger.free_slot(old.hash) = std::move(old);
    }
    slots_ = std::move(larger.slots_);
    slot = free_slot(hash);
  }
  if (slot == nullptr) {
    slot = &slots_[(hash & (slots_.size() / kWays - 1)) * kWays + next_victim_++ % kWays];
  }
  const Prepared* plan = prepared.get();
  *slot = {hash, PreparedPtr(plan, [all = std::move(prepared)](const Prepared*) {})};
  return *slot;
}

void RankPlans::clear() {
  latest_ = nullptr;
  slots_ = std::vector<Slot>(kLeastSets * kWays);
  next_victim_ = 0;
}

}  // namespace rankine
