// What networks have in files and requests. One row of network_members() says all there is to say
// of a member: what is read, refused and written (network_file.h), the schema (network_schema.h)
// and the help of command lines come from it. A new member is its row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

struct NetworkMember {
  enum class Kind : std::uint8_t {
    text,
    preset,     // a preset's name
    whole,      // a whole number from `least` to `most`
    bytes,      // the same, or a text such as "4K"
    flag,       // true or false
    time,       // a number, or a text with a unit; not negative
    bandwidth,  // a number, or a text with a unit; more than 0
    beta,       // a number, not negative
    factor,     // a number of 1 or more
    share,      // a number above 0 and up to 1
    link,       // an object of the members that links have
    wiring,     // a name of wiring_names()
    sizes,      // of a torus or mesh
    routing,    // a name of routing_names()
    places,     // a list of places, one per rank
    odd,        // a list of odd links
  };

  std::string_view name;
  Kind kind = Kind::text;
  std::string_view help;
  std::string_view example;  // of an allowed value, as JSON
  int least = 0, most = 0;
  int usual = 0;  // of a whole number: files that do not say otherwise mean that, or leave it open
  // Where the value goes, of kinds that several members have. What links have is the network's own
  // link's, or that of a member of kind link.
  int& (*whole)(Fabric&) = nullptr;
  bool Fabric::*flag = nullptr;
  Rational Fabric::*time = nullptr;
  Rational Link::*of_link = nullptr;

  // What a bare number counts, "seconds"; of kinds that are no measure, nothing.
  std::string_view unit() const;
  // "whole numbers from 1 to 16384", as refusals say it.
  std::string allowed() const;
};

// In the order in which they are written; the same rows at every call.
std::span<const NetworkMember> network_members();

// "name, preset, ports", of all, or of those that links have.
std::string network_member_names();
std::string link_member_names();

// What an odd link has: where it is, and members of links. Where it is, with help.
struct OddMember {
  std::string_view name;
  int OddLink::*place;
  std::string_view help;
};
std::span<const OddMember> odd_members();
bool is_of_odd_links(const NetworkMember& row);
std::string odd_member_names();

// What network files may say, for editors and other programs: a JSON Schema.

// A schema of draft 2020-12 with every row of network_members(), as text with a line feed at its
// end. Every file that is read satisfies it; of those that satisfy it read_network() refuses some:
// what asks for other members, such as dims for torus wiring, and numbers in texts beyond 128 bits.
std::string network_schema();

// Networks as the files that network_file.h reads.

// The file, a line per member and a line feed at its end. What is as if the file did not say it is
// left out, and so are open ports; reading it gives the same network, to the last bit. Errors: a
// number that has no finite decimals, which no file can say.
Result<std::string> write_network(const Fabric& fabric);

}  // namespace rankine
