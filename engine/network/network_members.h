// network_members() is the table of all members of a network in files and requests. Each row holds
// everything about one member: the reader, the writer (network_file.h, write_network()), the schema
// (network_schema()) and the help of command lines use it. A new member needs only a new row.
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
    preset,     // the name of a preset
    whole,      // a whole number from `least` to `most`
    bytes,      // a whole number, or a text such as "4K"
    flag,       // true or false
    time,       // a number, or a text with a unit; not negative
    bandwidth,  // a number, or a text with a unit; more than 0
    beta,       // a number, not negative
    factor,     // a number of 1 or more
    share,      // a number above 0 and up to 1
    link,       // an object of the members of links
    wiring,     // a name of wiring_names()
    sizes,      // sizes of a torus or mesh
    routing,    // a name of routing_names()
    places,     // a list of places, one per rank
    odd,        // a list of odd links
  };

  std::string_view name;
  Kind kind = Kind::text;
  std::string_view help;
  std::string_view example;  // an allowed value, as JSON
  int least = 0, most = 0;
  int usual = 0;  // default of a whole number for files without the member; 0 may mean open
  // The Fabric member that receives the value, for kinds that several members share. of_link: a
  // member of the network's `link`, or of a member of kind link.
  int& (*whole)(Fabric&) = nullptr;
  bool Fabric::*flag = nullptr;
  Rational Fabric::*time = nullptr;
  Rational Link::*of_link = nullptr;

  // The unit of a bare number, such as "seconds"; empty for kinds without a unit.
  std::string_view unit() const;
  // "whole numbers from 1 to 16384", for error texts.
  std::string allowed() const;
};

// In the order of writing; every call returns the same rows.
std::span<const NetworkMember> network_members();

// The names of all members ("name, preset, ports"), or of the members of links.
std::string network_member_names();
std::string link_member_names();

// A member that says where an odd link is. An odd link has these members, and members of links.
struct OddMember {
  std::string_view name;
  int OddLink::*place;
  std::string_view help;
};
std::span<const OddMember> odd_members();
bool is_of_odd_links(const NetworkMember& row);
std::string odd_member_names();

// A JSON Schema (draft 2020-12) that describes network files for editors and other programs, with
// every row of network_members(), as text with a line feed at its end. Every file that
// read_network() accepts satisfies the schema. read_network() refuses some files that satisfy it:
// members that require others, such as dims for torus wiring, and numbers in texts beyond 128 bits.
std::string network_schema();

// Writes a network as a file for network_file.h, a line per member and a line feed at the end.
// Members at their default are left out, and so are open ports; reading the file gives an equal
// network, to the last bit. Errors: a number without a finite decimal text, which no file can
// contain.
Result<std::string> write_network(const Fabric& fabric);

}  // namespace rankine
