// Prints a checksum of a reduction by four ranks, one line per element type and operation with the
// same result bits on every machine: integers, and the minimum and maximum of floats. The machine
// is printed on standard error, because standard output must not depend on it. third_party/memcheck
// compares runs with and without AVX-512.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include "engine/api/team.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kCount = 1'037;  // whole vectors of every width, and a remainder

std::uint64_t checksum(Team& team, DataType type, ReduceOp op) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const Status status = team.run([&](Member& me) {
    // Random bits, so the values include the largest integers, infinities, subnormals and NaNs.
    std::mt19937_64 random(static_cast<std::uint64_t>(me.rank()) + 1);
    std::vector<std::byte> in(kCount * size_of(type)), out(in.size());
    for (std::byte& b : in) b = static_cast<std::byte>(random());
    for (const Transport transport : {Transport::direct, Transport::mailbox}) {
      me.call({.in = in.data(),
               .out = out.data(),
               .count = kCount,
               .type = type,
               .op = op,
               .options = {.transport = transport}})
          .throw_if_error();
      if (me.rank() != 0) continue;
      for (const std::byte b : out) {
        hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
      }
    }
  });
  status.throw_if_error();
  return hash;
}

void print_all() {
  const auto team = Team::create({.ranks = kRanks}).value();
  std::cerr << "kernels: " << name_of(best_isa()) << "\n";
  for (int t = 0; t < kDataTypes; ++t) {
    for (int o = 0; o < kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      const bool exact = !rounds(type, op);
      if (!exact || !supports(type, op)) continue;
      std::cout << name_of(type) << " " << name_of(op) << " " << std::hex
                << checksum(*team, type, op) << std::dec << "\n";
    }
  }
}

}  // namespace
}  // namespace rankine

int main() {
  try {
    rankine::print_all();
    return 0;
  } catch (const rankine::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
