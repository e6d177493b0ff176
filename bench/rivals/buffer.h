// Memory of contenders: page-aligned, with huge pages where the system has them, the same for
// everybody; and what ranks share that are processes. Header only.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace rankine::rivals {

// Untouched memory: pages go to the node of the thread that writes them first. Shared: processes
// that are forked later have the same.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes, bool shared = false) : mapped_((bytes / kHuge + 2) * kHuge) {
    memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                   (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      memory_ = nullptr;
      throw std::bad_alloc();
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory_);
    data_ = reinterpret_cast<float*>((address + kHuge - 1) / kHuge * kHuge);
    capacity_ = bytes;
    madvise(data_, mapped_ - kHuge, MADV_HUGEPAGE);  // advice: small pages work too
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() {
    if (memory_ != nullptr) munmap(memory_, mapped_);
  }

  float* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }  // bytes

 private:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;
  std::size_t mapped_ = 0;
  void* memory_ = nullptr;
  float* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// Objects that processes share which are forked later, and threads anyway.
template <class T>
class SharedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit SharedArray(std::size_t size) : memory_(size * sizeof(T), true), size_(size) {
    for (T& one : *this) new (&one) T;
  }
  T* begin() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  T* end() const noexcept { return begin() + size_; }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) const noexcept { return begin()[i]; }

 private:
  Buffer memory_;
  std::size_t size_;
};

}  // namespace rankine::rivals
