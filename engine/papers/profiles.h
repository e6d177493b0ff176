// Profiles of the catalogue's all-reduces on tori, each worked out once.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/network/wiring.h"
#include "engine/read/profile.h"
#include "engine/read/skeleton.h"

namespace rankine::reproduce {

// Called with the number of pieces of work done and of all; from any thread, one call at a time.
using ProgressReport = std::function<void(std::size_t done, std::size_t all)>;

// One line of all_reduce on a torus (one dimension: a ring).
struct ProfileKey {
  std::string line;
  std::vector<int> dims;
  Routing routing = Routing::minimal;
  auto operator<=>(const ProfileKey&) const = default;

  int ranks() const;
  bool defined() const;  // the catalogue has the line, and it accepts these sizes
};

// Not thread-safe; work_out() itself uses all cores.
class Profiles {
 public:
  // Those that are not known yet; keys that are not defined() are left out. What Routes::make() or
  // a schedule objects to throws std::runtime_error.
  void work_out(std::vector<ProfileKey> keys, const ProgressReport& progress = {});
  // Works it out where nobody has. Precondition: key.defined().
  const Profile& at(const ProfileKey& key);
  // The messages that one of these profiles is of. Throws std::logic_error of another one.
  const Skeleton& skeleton_of(const Profile& profile);

 private:
  struct Known {
    Profile profile;
    std::optional<Skeleton> skeleton{};  // where the profile took going through all messages
  };
  static Known worked_out(const ProfileKey& key);
  std::map<ProfileKey, Known> known_;
};

}  // namespace rankine::reproduce
