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

Result<PayloadMemory> Payloads::allocate(const ArenaOptions& near, Rank rank, std::size_t n,
                                         std::size_t element_bytes) {
  const std::size_t most =
      std::size_t{PTRDIFF_MAX} / element_bytes;  // that pointers can tell apart
  if (n > most) {
    return invalid_argument("n is " + std::to_string(n) + "; allowed are up to " +
                            std::to_string(most) + " elements of " + std::to_string(element_bytes) +
                            " bytes");
  }
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

void Payloads::free(const void* base) noexcept {
  if (!home_.is_this()) return;
  const std::lock_guard lock(mutex_);
  in_use_.erase(base);
}

void Payloads::add_to(RankMemory& memory) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [base, arena] : in_use_) {
    memory.payloads.bytes += arena.bytes_reserved();
    for (const MemoryRange& range : arena.chunks()) memory.payloads.ranges.push_back(range);
    memory.binding.add(arena.binding());
    memory.huge_pages.add(arena.huge_pages());
    memory.locking.add(arena.locking());
  }
}

}  // namespace rankine
