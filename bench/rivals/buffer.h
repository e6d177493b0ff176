// Page-aligned memory with huge pages where the system has them, the same for every contender.
// Header only.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace rankine::rivals {

// Untouched memory: pages go to the node of the thread that writes them first.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : mapped_((bytes / kHuge + 2) * kHuge) {
    memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

}  // namespace rankine::rivals
