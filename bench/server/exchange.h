// What the ranks of a server need of a collective library: three calls, which all ranks make in the
// same order, each rank on a thread or process of its own, and memory for the largest of them. They
// throw what goes wrong.
#pragma once

#include <cstddef>
#include <span>

#include "engine/run/user_functions.h"

namespace rankine::server {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Rank 0's bytes are everyone's.
  virtual void broadcast(std::span<std::byte> data) = 0;
  // Room for n numbers that this rank brings to a sum, until it asks again.
  virtual std::span<float> addends(std::size_t n) = 0;
  // Everyone's x, which addends() gave, is the sum of all, in the order of the ranks, whose rows
  // `then` is called on.
  virtual void all_reduce(std::span<float> x, const Epilogue& then) = 0;
  // all = the ranks' bytes one after the other.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

}  // namespace rankine::server
