// Figures 6 to 10 of Trivance, recomputed: the times of other algorithms relative to Trivance, over
// sizes of the vector, on tori of 800 Gb/s links (figure 8: 200 to 3200 Gb/s).
//
// The paper simulates packets (SST). Here a time is Eq. (1) of its section 2.1 plus 200 ns per hop,
// or by another fidelity the time of carrying the messages; always the better form, L or B, of each
// algorithm, with the parameters of section 6 (the preset "torus"). Bruck's messages take the
// shorter way, as in the paper's evaluation. Trivance is the catalogue's, a schedule that is proved
// and executed, in all figures; beside it stands the (L) form at the distances that section 4.4
// prints.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/papers/profiles.h"
#include "engine/read/sweep.h"

namespace rankine::reproduce {

// One curve per algorithm: a part of a figure, or one bandwidth of figure 8.
struct PanelSpec {
  std::string_view id;  // "6a", "8-200"
  std::string_view title;
  std::vector<int> dims;
  int gigabits = 800;  // per second and link
};
std::span<const PanelSpec> panel_specs();

// 32 B to 128 MiB, by powers of two.
std::vector<std::uint64_t> figure_sizes();

struct Curve {
  const Contender* contender = nullptr;
  const Profile* latency = nullptr;  // null: no such form
  const Profile* bandwidth = nullptr;
};

struct Panel {
  PanelSpec spec;
  std::vector<Curve>
      curves{};  // one per algorithm that exists for these sizes; Trivance is the last

  Carriage* carriage = nullptr;                   // null: Eq. (1)
  std::shared_ptr<std::deque<Profile>> own = {};  // profiles of this panel alone

  const Curve* find(std::string_view contender) const;
  const Curve& trivance() const { return curves.back(); }

  // Seconds of one form, seconds of the better form, and the better form.
  double time(const Curve& curve, Form form, double bytes) const;
  double time(const Curve& curve, double bytes) const;
  Form form(const Curve& curve, double bytes) const;
  // The least seconds of several curves, in form `only` or the better one. A curve whose lower
  // bound exceeds the least time so far is not carried.
  double least_time(std::span<const Curve* const> among, double bytes,
                    std::optional<Form> only = std::nullopt) const;
  // T / T of Trivance - 1: positive if Trivance is faster.
  double gain(const Curve& curve, double bytes) const;
  // Trivance in lines of the catalogue: "trivance_latency (L), trivance (B)".
  static std::string trivance_lines();
  // The fastest curve except Trivance.
  const Curve& rival(double bytes) const;
  const Curve& fastest(double bytes) const;

  // The size, between 32 B and 128 MiB, from which a curve's B form is faster; nullopt if there is
  // no such size or no L form.
  std::optional<double> change_of_form(const Curve& curve) const;
};

// A size at which another algorithm becomes the fastest.
struct Crossover {
  double bytes = 0;  // with a relative error of 1e-6
  const Curve* before = nullptr;
  const Curve* after = nullptr;
};
std::vector<Crossover> crossovers(const Panel& panel);

std::vector<ProfileKey> figure_keys();
// The panels point into `profiles`, which must outlive them.
std::vector<Panel> panels(Profiles& profiles);

// Trivance (L) by the words of section 4.4, for its time alone: distances 1, 3, 9 ... and as the
// last one ceil((a - 3^floor(log3 a)) / 2), which is 19 in a line of 64, with the whole vector in
// each message. At sizes that are no powers of three its sums of neighbourhoods count some
// contributions twice, so no schedule of the catalogue can be this one; trivance_latency takes
// other ways there.
//   D dimensions    a the size of each

// The profile of that: one collective per dimension, each on 1/D of the vector. Precondition: all
// sizes are equal.
Profile printed_trivance(const std::vector<int>& dims);

// A copy of the panel with that profile as Trivance's (L) form.
Panel at_printed_distances(Panel panel);
// A copy of the panel with the times of the paper's formulas alone: the rounds (Lambda) and the
// delay (Theta) of tables 1 and 2, without hops.
Panel by_formulas(Panel panel);

}  // namespace rankine::reproduce
