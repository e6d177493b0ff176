#include "engine/api/mpi/node_mail.h"

namespace rankine {
namespace {

std::size_t pairs(int ranks) {
  return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
}

// Returns true if `count` has reached `number`; both wrap around.
bool has_come_to(std::uint32_t count, std::uint32_t number) {
  return static_cast<std::int32_t>(count - number) >= 0;
}

}  // namespace

std::size_t NodeMail::bytes(int ranks) {
  return pairs(ranks) * (kSlots * sizeof(Slot) + sizeof(Used));
}

NodeMail::NodeMail(std::byte* memory, int ranks, int self)
    : ranks_(static_cast<std::size_t>(ranks)),
      self_(self),
      slots_(reinterpret_cast<Slot*>(memory)),
      used_(reinterpret_cast<Used*>(memory + pairs(ranks) * kSlots * sizeof(Slot))),
      sent_(ranks_),
      received_(ranks_),
      used_seen_(ranks_) {}

std::byte* NodeMail::room(int to) noexcept {
  const std::uint32_t next = sent_[static_cast<std::size_t>(to)] + 1;
  return is_used(to, next - kSlots) ? slot(self_, to, next).data : nullptr;
}

std::uint32_t NodeMail::post(int to, std::uint32_t tag) noexcept {
  const std::uint32_t number = ++sent_[static_cast<std::size_t>(to)];
  Slot& into = slot(self_, to, number);
  into.tag = tag;
  into.number.store(number, std::memory_order_release);  // pairs with next()
  return number;
}

bool NodeMail::is_used(int to, std::uint32_t number) noexcept {
  std::uint32_t& seen = used_seen_[static_cast<std::size_t>(to)];
  if (has_come_to(seen, number)) return true;
  seen = used_[pair(self_, to)].count.load(std::memory_order_acquire);  // pairs with used()
  return has_come_to(seen, number);
}

NodeMail::Message NodeMail::next(int from) const noexcept {
  const std::uint32_t number = received_[static_cast<std::size_t>(from)] + 1;
  const Slot& of = slot(from, self_, number);
  if (of.number.load(std::memory_order_acquire) != number) return {};  // pairs with post()
  return {of.data, of.tag};
}

void NodeMail::used(int from) noexcept {
  const std::uint32_t count = ++received_[static_cast<std::size_t>(from)];
  used_[pair(from, self_)].count.store(count, std::memory_order_release);  // pairs with is_used()
}

}  // namespace rankine
