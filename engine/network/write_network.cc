#include "engine/network/write_network.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "algorithms/torus.h"
#include "engine/base/units.h"
#include "engine/network/network_members.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;
using Kind = NetworkMember::Kind;

// All digits of a number that is not negative; nothing where they do not end, or not soon.
std::optional<std::string> decimals(Rational value) {
  Int128 rest = value.bottom();
  int twos = 0, fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  if (rest != 1) return std::nullopt;
  const int places = std::max(twos, fives);
  try {
    for (int i = 0; i < places; ++i) value = value * Rational(10);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
  std::string text = to_text(value.top());
  if (places == 0) return text;
  const auto after = static_cast<std::size_t>(places);
  if (text.size() <= after) text.insert(0, after + 1 - text.size(), '0');
  return text.insert(text.size() - after, ".");
}

struct Unit {
  const char* name;
  Rational value;
};
const Unit kTimes[] = {{"s", 1},
                       {"ms", Rational(1, 1'000)},
                       {"us", Rational(1, 1'000'000)},
                       {"ns", Rational(1, 1'000'000'000)},
                       {"ps", Rational(1, 1'000'000'000'000)}};
const Unit kBandwidths[] = {{"TB/s", 1'000'000'000'000},
                            {"GB/s", 1'000'000'000},
                            {"MB/s", 1'000'000},
                            {"kB/s", 1'000},
                            {"B/s", 1}};

// In the largest of the units, which fall, that leaves something before the point; "" where there
// is no such text.
std::string in_units(Rational value, std::span<const Unit> units) {
  std::size_t i = 0;
  while (i + 1 < units.size() && value < units[i].value) ++i;
  const auto text = decimals(value / units[i].value);
  return text ? *text + units[i].name : "";
}

std::string time_text(Rational seconds) {
  const std::string text = seconds == 0 ? "0s" : in_units(seconds, kTimes);
  const auto read = parse_seconds("", text);
  return read.ok() && *read == seconds ? text : "";
}

std::string bandwidth_text(Rational beta) {
  if (beta == 0) return "";
  const std::string text = in_units(Rational(1) / beta, kBandwidths);
  const auto read = parse_bandwidth("", text);
  return read.ok() && *read == beta ? text : "";
}

class Writer {
 public:
  explicit Writer(const Fabric& fabric) : fabric_(fabric) {}

  Result<std::string> file() {
    Json file = Json::object();
    for (const NetworkMember& row : network_members()) {
      Json value = value_of(row);
      if (!value.is_null()) file[std::string(row.name)] = std::move(value);
    }
    if (!status_.ok()) return status_;
    // A name may be a path, which need not be UTF-8.
    return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  // Null: as if the file did not say it.
  Json value_of(const NetworkMember& row) {
    const Wiring& wiring = fabric_.wiring;
    if (row.of_link != nullptr) return part_of(fabric_.link, row, "");
    switch (row.kind) {
      case Kind::text:
        return fabric_.name;
      case Kind::whole:
      case Kind::bytes: {
        const int number = row.whole(fabric_);
        return number == row.usual ? Json() : Json(number);
      }
      case Kind::flag:
        return fabric_.*row.flag ? Json(true) : Json();
      case Kind::time:
        return fabric_.*row.time == 0 ? Json() : time(fabric_.*row.time, row, "");
      case Kind::link:
        return fabric_.group > 0 ? link(row) : Json();
      case Kind::wiring:
        return wiring.shares_links() ? Json(name_of(wiring.kind)) : Json();
      case Kind::sizes:
        return wiring.dims.empty() ? Json() : Json(dims_text(wiring.dims));
      case Kind::routing:
        return wiring.routing == Routing::minimal ? Json() : Json(name_of(wiring.routing));
      case Kind::places:
        return fabric_.places.empty() ? Json() : Json(fabric_.places);
      case Kind::odd:
        return fabric_.odd.empty() ? Json() : odd_links();
      case Kind::preset:
      case Kind::bandwidth:
      case Kind::beta:
      case Kind::factor:
      case Kind::share:
        break;  // nothing is left of a preset; the others are links'
    }
    return {};
  }

  Json link(const NetworkMember& owner) {
    Json out = Json::object();
    for (const NetworkMember& row : network_members()) {
      if (row.of_link == nullptr) continue;
      Json value = part_of(fabric_.between, row, std::string(owner.name) + ".");
      if (!value.is_null()) out[std::string(row.name)] = std::move(value);
    }
    return out;
  }

  Json odd_links() {
    Json out = Json::array();
    for (const OddLink& odd : fabric_.odd) {
      Json& one = out.emplace_back(Json::object());
      for (const OddMember& where : odd_members()) {
        if (odd.*where.place >= 0) one[std::string(where.name)] = odd.*where.place;
      }
      const Link link{odd.alpha.value_or(0), odd.beta.value_or(0)};
      for (const NetworkMember& row : network_members()) {
        if (!is_of_odd_links(row)) continue;
        if (!(row.of_link == &Link::alpha ? odd.alpha : odd.beta)) continue;
        Json value = part_of(link, row, "odd.");
        if (!value.is_null()) one[std::string(row.name)] = std::move(value);
      }
    }
    return out;
  }

  // A bandwidth where that is exact, else beta.
  Json part_of(const Link& link, const NetworkMember& row, const std::string& owner) {
    const Rational value = link.*row.of_link;
    if (row.kind == Kind::time) return time(value, row, owner);
    const bool factor = row.kind == Kind::factor || row.kind == Kind::share;
    if (factor) return value == 1 ? Json() : number(value, row, owner);
    const std::string bandwidth = bandwidth_text(link.beta);
    if (row.kind == Kind::bandwidth) return bandwidth.empty() ? Json() : Json(bandwidth);
    if (!bandwidth.empty()) return {};
    return number(value, row, owner);
  }

  Json number(Rational value, const NetworkMember& row, const std::string& owner) {
    const double nearest = value.to_double();
    const auto read = shortest_decimal("", nearest);
    if (!read.ok() || *read != value) return refuse(value, row, owner);
    return nearest;
  }

  Json time(Rational value, const NetworkMember& row, const std::string& owner) {
    const std::string text = time_text(value);
    return text.empty() ? refuse(value, row, owner) : Json(text);
  }

  Json refuse(Rational value, const NetworkMember& row, const std::string& owner) {
    status_ = invalid_argument(owner + std::string(row.name) + " is " + value.to_string() +
                               "; a file can say numbers of up to 36 decimals, and betas of a "
                               "double's");
    return {};
  }

  Fabric fabric_;
  Status status_;
};

}  // namespace

Result<std::string> write_network(const Fabric& fabric) { return Writer(fabric).file(); }

}  // namespace rankine
