// Memory for the buffers of a rank's calls, near the rank: what Member::allocate() gives.
//
//   auto x = me.allocate<float>(1'000'000).value();
//   std::ranges::fill(x.span(), 1.0F);
//   me.all_reduce(x.span()).throw_if_error();
//
// It lies on the memory node of the rank (in a Team, or where CommunicatorOptions::arenas names
// one) and is taken from it page by page, when a page is first touched, by whatever thread. Where
// the kernel refuses that (RankMemory::binding), or no node is named, a page lies where it is first
// touched: then the rank's own thread should be first. It begins with zeroes.
//
// Each allocation is a mapping of its own: in whole pages, from the size of a huge page on in whole
// huge pages at their borders, where the machine has them. So it is for buffers that live for many
// calls, not for a few bytes here and there. Nothing else lies in its cache lines.
//
// Ownership: the handle's, and above it the member's. The memory goes back when the handle is
// destroyed or assigned to, or else when the member is destroyed: after that the handle is empty,
// and spans taken from it before point to nothing. As with every buffer, no call of this rank may
// be using it then.
//
// Where ranks are processes it lies in memory that all of them share, up to ProcessLayout's part
// for payloads of a rank: calls whose buffers are such on all ranks may say so
// (CallOptions::shared_payloads), and nothing is copied on its way.
//
// Processes and threads: a handle is used by one thread at a time, which need not be the member's;
// it may go while the member goes on another thread. In a forked child the memory is the child's
// copy, as all memory is: span() still gives it, and no handle takes it back.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace rankine {

class Member;
class Payloads;

// What can be made of zeroes and copied as bytes.
template <class T>
concept PayloadElement =
    std::is_object_v<T> && std::is_trivially_copyable_v<T> && !std::is_const_v<T> &&
    !std::is_volatile_v<T> && alignof(T) <= 4096;

// A payload as bytes: who has it, and who takes it back.
class PayloadMemory {
 public:
  PayloadMemory() = default;
  PayloadMemory(std::weak_ptr<Payloads> owner, void* base)
      : owner_(std::move(owner)), base_(base) {}
  ~PayloadMemory();
  PayloadMemory(PayloadMemory&& other) noexcept = default;  // leaves none behind
  PayloadMemory& operator=(PayloadMemory&& other) noexcept;

  // nullptr: there is none, or it went with its member.
  void* base() const noexcept { return owner_.expired() ? nullptr : base_; }

 private:
  std::weak_ptr<Payloads> owner_;
  void* base_ = nullptr;
};

template <PayloadElement T>
class Payload {
 public:
  Payload() = default;

  // Empty where there is none: by default, when moved from, and when the member has gone. One of 0
  // elements has an address of its own.
  std::span<T> span() const noexcept {
    T* const first = static_cast<T*>(memory_.base());
    return {first, first != nullptr ? count_ : 0};
  }

 private:
  friend class Member;
  Payload(PayloadMemory memory, std::size_t count) : memory_(std::move(memory)), count_(count) {}

  PayloadMemory memory_;
  std::size_t count_ = 0;
};

}  // namespace rankine
