#include "engine/api/torch/meet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/this_machine.h"

namespace rankine::torch_backend {
namespace {

constexpr std::string_view kName = "name ";  // what an answer that is one begins with

std::string machine_key(Rank rank) { return fmt::format("rankine/machine/{}", rank); }
constexpr const char* kAnswerKey = "rankine/answer";

void put(c10d::Store& store, const std::string& key, std::string_view text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string get(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout) {
  store.wait({key}, timeout);
  const std::vector<std::uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

std::string describe(const ThisMachine& machine) {
  return fmt::format("host {}, boot {}, pid namespace {}", machine.host, machine.boot,
                     machine.pid_namespace);
}

// Of rank 0.
std::string answer(c10d::Store& store, int ranks, const std::string& here,
                   std::chrono::milliseconds timeout) {
  for (Rank r = 1; r < ranks; ++r) {
    const std::string there = get(store, machine_key(r), timeout);
    if (there == here) continue;
    return fmt::format("rank 0 is on {} and rank {} on {}; allowed are ranks on one machine", here,
                       r, there);
  }
  std::random_device random;
  return fmt::format("{}torch.{}.{:08x}{:08x}", kName, getpid(), random(), random());
}

}  // namespace

Result<std::unique_ptr<Communicator>> meet(c10d::Store& store, Rank rank, int ranks,
                                           std::chrono::milliseconds timeout) {
  const auto machine = this_machine();
  if (!machine.ok()) return machine.status();
  const std::string here = describe(*machine);
  std::string said;
  if (rank == 0) {
    said = answer(store, ranks, here, timeout);
    put(store, kAnswerKey, said);
  } else {
    put(store, machine_key(rank), here);
    said = get(store, kAnswerKey, timeout);
  }
  if (!said.starts_with(kName)) return Status(Code::mismatch, said);
  return Communicator::create({.ranks = ranks,
                               .timeout = timeout,
                               .rank = rank,
                               .name = std::string_view(said).substr(kName.size())});
}

}  // namespace rankine::torch_backend
