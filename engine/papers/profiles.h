// Profiles of the catalogue's all-reduces on tori, each worked out once.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"
#include "engine/read/sweep.h"

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

// The algorithms that Trivance is compared with, and itself: names of the paper, and which lines of
// the catalogue they are.

// (L) and (B) of the paper.
enum class Form : unsigned char { latency, bandwidth };
std::string_view letter_of(Form form);  // "L", "B"

struct Contender {
  std::string_view name;
  std::string_view latency;  // lines of all_reduce; empty: there is no such form
  std::string_view bandwidth;
  bool powers_of_two = false;  // the paper runs it on tori of such sizes only

  std::string_view line(Form form) const { return form == Form::latency ? latency : bandwidth; }
};

// In the order of the figures' legends: Bucket, Recursive doubling, Swing, Bruck, Trivance.
std::span<const Contender> contenders();
const Contender& trivance();
const Contender* find_contender(std::string_view name);  // or nullptr

// Times of the figures by another fidelity than Eq. (1): the messages of an algorithm (skeleton.h),
// carried over its torus with the links and ports of the preset "torus". Ranks go from round to
// round each on its own, as processes do that wait for all of a round's messages (MPI_Waitall,
// which section 7 of Trivance names).

// Each time is worked out once. Not thread-safe; `profiles` must outlive it.
class Carriage {
 public:
  // Flow or packet.
  Carriage(Fidelity fidelity, Profiles& profiles) : fidelity_(fidelity), profiles_(profiles) {}

  // Of one of the profiles' schedules, over links of so many Gb/s.
  double seconds(const Profile& profile, int gigabits, double bytes);
  // No more than that, and known at once: what the busiest link has to carry in all rounds, and
  // what every message takes where no other one is in its way.
  double at_least(const Profile& profile, int gigabits, double bytes);

 private:
  using Key = std::tuple<const Profile*, int, double>;
  const Fidelity fidelity_;
  Profiles& profiles_;
  std::map<Key, double> known_;
  std::map<const Profile*, double> loads_;  // of the busiest links, in parts of M
};

}  // namespace rankine::reproduce
