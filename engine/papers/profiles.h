// Profiles of the catalogue's all-reduces on tori, the algorithms that Trivance is compared with,
// and their times by flow or packet.
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

// Called with the number of finished pieces of work and the total; from any thread, one call at a
// time.
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

// A cache of profiles. Not thread-safe; work_out() itself uses all cores.
class Profiles {
 public:
  // Computes the missing profiles; keys that are not defined() are left out. Throws
  // std::runtime_error for errors of Routes::make() or of a schedule.
  void work_out(std::vector<ProfileKey> keys, const ProgressReport& progress = {});
  // Computes the profile if it is missing. Precondition: key.defined().
  const Profile& at(const ProfileKey& key);
  // The messages of one of these profiles. Throws std::logic_error for any other profile.
  const Skeleton& skeleton_of(const Profile& profile);

 private:
  struct Known {
    Profile profile;
    std::optional<Skeleton> skeleton{};  // if the profile has visited all messages
  };
  static Known worked_out(const ProfileKey& key);
  std::map<ProfileKey, Known> known_;
};

// Contenders: Trivance and the algorithms that it is compared with, with the paper's names and the
// entries of the catalogue.

// The paper's (L) and (B).
enum class Form : unsigned char { latency, bandwidth };
std::string_view letter_of(Form form);  // "L", "B"

struct Contender {
  std::string_view name;
  std::string_view latency;  // lines of all_reduce; empty: no such form
  std::string_view bandwidth;
  bool powers_of_two = false;  // the paper runs it only on tori of such sizes

  std::string_view line(Form form) const { return form == Form::latency ? latency : bandwidth; }
};

// In the order of the figures' legends: Bucket, Recursive doubling, Swing, Bruck, Trivance.
std::span<const Contender> contenders();
const Contender& trivance();
const Contender* find_contender(std::string_view name);  // or nullptr

// Carriage: times of the figures by flow or packet instead of Eq. (1). The messages of an algorithm
// (Skeleton in engine/read/flow.h) are carried over its torus with the links and ports of the
// preset "torus". Each rank goes from round to round at its own pace, as processes do that wait for
// all messages of a round (MPI_Waitall, which section 7 of Trivance names).

// Each time is computed once. Not thread-safe; `profiles` must outlive the object.
class Carriage {
 public:
  // `fidelity`: flow or packet.
  Carriage(Fidelity fidelity, Profiles& profiles) : fidelity_(fidelity), profiles_(profiles) {}

  // The time of the schedule of one of the profiles, over links of `gigabits` Gb/s.
  double seconds(const Profile& profile, int gigabits, double bytes);
  // A lower bound of seconds(), known at once: the larger of the busiest link's load in all rounds
  // and the time of all messages without any contention.
  double at_least(const Profile& profile, int gigabits, double bytes);

 private:
  using Key = std::tuple<const Profile*, int, double>;
  const Fidelity fidelity_;
  Profiles& profiles_;
  std::map<Key, double> known_;
  std::map<const Profile*, double> loads_;  // load of the busiest link, in parts of M
};

}  // namespace rankine::reproduce
