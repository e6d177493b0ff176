// Settings is a checked copy of a rkConfig_t. All ranks of a communicator must give equal settings.
// The file also reads other arguments in C form: timeouts, lists, orders and sized structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/communicator.h"

namespace rankine {

// Members correspond to rkConfig_t.
struct Settings {
  std::int64_t timeout_ms = 0;
  std::string wait, network, placement;  // placement: "" if not set
  std::optional<Order> order;
  int progress_core = -1;
  std::vector<int> nodes, levels;
  bool tuned = true, record_times = false;
  std::size_t plan_bytes = 0;
  int ports = 0;
};

// `config` may be nullptr: the defaults. Errors: an invalid struct size, timeout, name or count.
Result<Settings> read_settings(const rkConfig_t* config, int ranks);

// Returns the name of the first member that differs; empty: none.
std::string_view difference(const Settings& a, const Settings& b);

// For a later rank of an id: compares its arguments with those of the first rank. Errors: the first
// difference.
Status check_as_first(int ranks, const Settings& settings, int first_ranks, const Settings& first);

// Errors: Communicator::create()'s, and an unavailable network. `process`: if ranks are processes,
// the ranks of this process and the communicator's name.
struct ProcessPlace {
  Rank rank = 0;
  std::vector<Rank> more{};
  std::string name;
};
Result<std::shared_ptr<Communicator>> make_communicator(
    const Settings& settings, int ranks, const std::optional<ProcessPlace>& process = {});
// Calls `use` with the options of such a communicator, and returns its result. Errors: an
// unavailable network.
Status with_options(const Settings& settings, int ranks,
                    const std::function<Status(CommunicatorOptions&)>& use);

// Reads a timeout in C form: 0 is unchanged, -1 is unlimited.
Result<std::chrono::milliseconds> read_timeout(std::int64_t milliseconds);

// Reads a list of n numbers; `list` may be NULL if n is 0.
Result<std::vector<int>> read_list(std::string_view name, const int* list, int n);

// Reads a level of order by its name (engine/api/call.h); NULL: not set.
Result<std::optional<Order>> read_order(const char* name);

// Sizes of the structs in their first version.
inline constexpr std::size_t kFirstConfig = offsetof(rkConfig_t, order);
inline constexpr std::size_t kFirstCallOptions = offsetof(rkCallOptions_t, order);

// Error unless the struct has the size of this library or of an older header. Structs grow at their
// ends, from the size of their first version.
Status check_size(std::string_view name, std::size_t size, std::size_t first, std::size_t known);

// Returns the struct in its current size: members unknown to an older program are those of
// `initial`.
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
