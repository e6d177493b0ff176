// Rankine's collectives, of threads and of processes alike.
#pragma once

#include <bit>
#include <cstdint>

#include "bench/server/exchange.h"
#include "engine/api/member.h"

namespace rankine::server {

class RankineExchange : public Exchange {
 public:
  explicit RankineExchange(Member& me) : me_(me) {}  // which outlives it
  int rank() const override { return me_.rank(); }
  int ranks() const override { return me_.ranks(); }

  void broadcast(std::span<std::byte> data) override {
    me_.broadcast(bytes(data), 0).throw_if_error();
  }
  // Of the member's memory: processes reach it, too, so they copy nothing on its way.
  std::span<float> addends(std::size_t n) override {
    if (n > addends_.span().size()) addends_ = me_.allocate<float>(std::bit_ceil(n)).value();
    return addends_.span().first(n);
  }
  // A sum's bits depend on what is added alone, so a request gets the same tokens whatever other
  // requests are in its batch.
  void all_reduce(std::span<float> x, const Epilogue& then) override {
    const CallOptions options{
        .order = Order::size_invariant, .shared_payloads = true, .epilogue = &then};
    me_.all_reduce(x, options).throw_if_error();
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const std::span<const std::uint8_t> in(reinterpret_cast<const std::uint8_t*>(mine.data()),
                                           mine.size());
    me_.all_gather(in, bytes(all)).throw_if_error();
  }

 private:
  static std::span<std::uint8_t> bytes(std::span<std::byte> data) {
    return {reinterpret_cast<std::uint8_t*>(data.data()), data.size()};
  }

  Member& me_;
  Payload<float> addends_;
};

}  // namespace rankine::server
