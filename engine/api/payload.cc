#include "engine/api/payload.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "engine/api/payloads.h"

namespace rankine {

PayloadMemory::~PayloadMemory() {
  if (const auto owner = owner_.lock()) owner->free(base_);
}

PayloadMemory& PayloadMemory::operator=(PayloadMemory&& other) noexcept {
  PayloadMemory taken(std::move(other));
  std::swap(owner_, taken.owner_);
  std::swap(base_, taken.base_);
  return *this;
}

namespace {

Status check_elements(std::size_t n, std::size_t element_bytes) {
  const std::size_t most =
      std::size_t{PTRDIFF_MAX} / element_bytes;  // that pointers can tell apart
  if (n <= most) return {};
  return invalid_argument("n is " + std::to_string(n) + "; allowed are up to " +
                          std::to_string(most) + " elements of " + std::to_string(element_bytes) +
                          " bytes");
}

}  // namespace

Result<PayloadMemory> Payloads::allocate(const ArenaOptions& near, Rank rank, std::size_t n,
                                         std::size_t element_bytes) {
  if (Status status = check_elements(n, element_bytes); !status.ok()) return status;
  ArenaOptions options = near;
  options.chunk_bytes = 1;  // as large as it must be
  Arena arena(options);
  void* const base = arena.allocate(n * element_bytes);
  if (base == nullptr) {
    return Status(Code::out_of_memory, "n is " + std::to_string(n) + "; there is no memory for " +
                                           std::to_string(n * element_bytes) + " bytes near rank " +
                                           std::to_string(rank) + ": " +
                                           std::strerror(arena.error()));
  }
  const std::lock_guard lock(mutex_);
  in_use_.emplace(base, std::move(arena));
  return PayloadMemory(weak_from_this(), base);
}

Result<PayloadMemory> Payloads::allocate_shared(const std::shared_ptr<ProcessRanks>& processes,
                                                Rank rank, std::size_t n,
                                                std::size_t element_bytes) {
  if (Status status = check_elements(n, element_bytes); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  auto base = processes->payloads(rank).allocate(n * element_bytes);
  if (!base.ok()) {
    return Status(base.status().code(), "n is " + std::to_string(n) + " of rank " +
                                            std::to_string(rank) + ": " + base.status().text());
  }
  processes_ = processes;
  rank_ = rank;
  shared_.insert(*base);
  return PayloadMemory(weak_from_this(), *base);
}

Payloads::~Payloads() {
  if (!home_.is_this()) return;
  for (const void* base : shared_) processes_->payloads(rank_).free(base);
}

void Payloads::free(const void* base) noexcept {
  if (!home_.is_this()) return;
  const std::lock_guard lock(mutex_);
  if (shared_.erase(base) > 0) {
    processes_->payloads(rank_).free(base);
  } else {
    in_use_.erase(base);
  }
}

void Payloads::add_to(RankMemory& memory) const {
  const std::lock_guard lock(mutex_);
  for (const void* base : shared_) {
    const std::size_t bytes = processes_->payloads(rank_).bytes_of(base);
    memory.payloads.bytes += bytes;
    memory.payloads.ranges.push_back({const_cast<void*>(base), bytes});
    memory.huge_pages.add(processes_->payloads(rank_).huge_pages_of(base));
  }
  for (const auto& [base, arena] : in_use_) {
    memory.payloads.bytes += arena.bytes_reserved();
    for (const MemoryRange& range : arena.chunks()) memory.payloads.ranges.push_back(range);
    memory.binding.add(arena.binding());
    memory.huge_pages.add(arena.huge_pages());
    memory.locking.add(arena.locking());
  }
}

}  // namespace rankine
