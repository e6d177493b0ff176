// A rkConfig_t, read, checked for what only C can get wrong, and kept: all ranks of a communicator
// must give the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/communicator.h"

namespace rankine {

// Members are rkConfig_t's.
struct Settings {
  std::int64_t timeout_ms = 0;
  std::string wait, network, placement;  // placement: "" where the config says nothing
  std::optional<Order> order;
  int progress_core = -1;
  std::vector<int> nodes, levels;
  bool tuned = true, record_times = false;
  std::size_t plan_bytes = 0;
  int ports = 0;
};

// `config` may be nullptr: the defaults. Errors: a size that is not this library's, a timeout,
// names or counts that there are not.
Result<Settings> read_settings(const rkConfig_t* config, int ranks);

// The name of the first member in which they differ; empty: none.
std::string_view difference(const Settings& a, const Settings& b);

// Of a rank that comes under an id after the first one, which gave those. Errors: what differs.
Status check_as_first(int ranks, const Settings& settings, int first_ranks, const Settings& first);

// Errors: those of Communicator::create(), and of a network that cannot be had.
// `process`: where ranks are processes, those that this one plays, and their name.
struct ProcessPlace {
  Rank rank = 0;
  std::vector<Rank> more{};
  std::string name;
};
Result<std::shared_ptr<Communicator>> make_communicator(
    const Settings& settings, int ranks, const std::optional<ProcessPlace>& process = {});

// Milliseconds as C gives them: 0 is left as it is, -1 is for ever.
Result<std::chrono::milliseconds> read_timeout(std::int64_t milliseconds);

// The n numbers there, which may be NULL where n is 0.
Result<std::vector<int>> read_list(std::string_view name, const int* list, int n);

// A level of order by its name (engine/api/order.h); NULL: none.
Result<std::optional<Order>> read_order(const char* name);

// Sizes of the structs as they first were.
inline constexpr std::size_t kFirstConfig = offsetof(rkConfig_t, order);
inline constexpr std::size_t kFirstCallOptions = offsetof(rkCallOptions_t, order);

// Why a struct from C cannot be read: it must be as this library knows it, or as an older header had
// it. Structs grow at their ends, from the size that they first had.
Status check_size(std::string_view name, std::size_t size, std::size_t first, std::size_t known);

// The struct, whichever it is: what an older program does not know of is as `initial` has it.
template <class Struct>
Result<Struct> grown_to_this(std::string_view name, const Struct* given, std::size_t first,
                             const Struct& initial) {
  const std::size_t size = given->size;
  if (Status status = check_size(name, size, first, sizeof(Struct)); !status.ok()) return status;
  Struct grown = initial;
  std::memcpy(&grown, given, size);
  grown.size = sizeof(Struct);
  return grown;
}

}  // namespace rankine
