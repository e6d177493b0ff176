#include "engine/lab/planner/chakra.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

// Both enums of the schema, by value.
constexpr std::string_view kNodeTypes[] = {"INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                           "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                           "COMM_RECV_NODE", "COMM_COLL_NODE"};
constexpr std::uint64_t kCollectiveNode = 7;
constexpr std::pair<std::string_view, Collective> kCommTypes[] = {
    {"ALL_REDUCE", Collective::all_reduce},
    {"REDUCE", Collective::reduce},
    {"ALL_GATHER", Collective::all_gather},
    {"GATHER", Collective::gather},
    {"SCATTER", Collective::scatter},
    {"BROADCAST", Collective::broadcast},
    {"ALL_TO_ALL", Collective::all_to_all},
    {"REDUCE_SCATTER", Collective::reduce_scatter},
    {"REDUCE_SCATTER_BLOCK", Collective::reduce_scatter}};

// A node as it stands in the file, in either form.
struct WrittenNode {
  std::uint64_t id = 0, type = 0, micros = 0;
  std::vector<std::uint64_t> data_deps;
  std::map<std::string, std::uint64_t, std::less<>> numbers;  // attributes
  std::string group;                                          // the attribute pg_name
};

// Wire reads the fields of a message in protobuf's wire format, one after the other.
class Wire {
 public:
  struct Field {
    std::uint64_t number = 0, value = 0;
    std::optional<std::string_view> bytes{};  // in place of `value`
  };

  explicit Wire(std::string_view left) : left_(left) {}
  bool at_end() const { return left_.empty(); }
  std::size_t left() const { return left_.size(); }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(left_.size(), 10); ++i) {
      const auto byte = static_cast<unsigned char>(left_[i]);
      value |= std::uint64_t{byte & 0x7fU} << 7 * i;
      if (byte < 0x80) {
        left_.remove_prefix(i + 1);
        return value;
      }
    }
    return std::nullopt;
  }

  // The bytes that follow their number.
  std::optional<std::string_view> bytes() {
    const auto n = varint();
    return n ? take(*n) : std::nullopt;
  }

  // nullopt: the message is broken.
  std::optional<Field> next() {
    const auto key = varint();
    if (!key) return std::nullopt;
    Field field{.number = *key >> 3};
    const std::uint64_t form = *key & 7;
    if (form == 0) {
      const auto value = varint();
      if (!value) return std::nullopt;
      field.value = *value;
      return field;
    }
    field.bytes = form == 1 ? take(8) : form == 5 ? take(4) : form == 2 ? bytes() : std::nullopt;
    if (!field.bytes) return std::nullopt;
    return field;
  }

 private:
  std::optional<std::string_view> take(std::uint64_t n) {
    if (n > left_.size()) return std::nullopt;
    const std::string_view taken = left_.substr(0, n);
    left_.remove_prefix(n);
    return taken;
  }

  std::string_view left_;
};

// False: the message is broken.
bool read_attribute(std::string_view message, WrittenNode& into) {
  std::string name, text;
  std::optional<std::uint64_t> number;
  for (Wire wire(message); !wire.at_end();) {
    const auto field = wire.next();
    if (!field) return false;
    constexpr std::array<std::uint64_t, 5> kNumbers = {7, 9, 11, 13, 27};  // also bool
    if (field->number == 1 && field->bytes) name = *field->bytes;
    if (field->number == 29 && field->bytes) text = *field->bytes;
    if (!field->bytes && std::ranges::find(kNumbers, field->number) != kNumbers.end()) {
      number = field->value;
    }
  }
  if (number) into.numbers[name] = *number;
  if (name == "pg_name") into.group = text;
  return true;
}

// False: the message is broken.
bool read_node(std::string_view message, WrittenNode& node) {
  for (Wire wire(message); !wire.at_end();) {
    const auto field = wire.next();
    if (!field) return false;
    if (field->number == 1) node.id = field->value;
    if (field->number == 3) node.type = field->value;
    if (field->number == 7) node.micros = field->value;
    if (field->number == 10 && !(field->bytes && read_attribute(*field->bytes, node))) return false;
    if (field->number != 5) continue;
    if (!field->bytes) node.data_deps.push_back(field->value);
    for (Wire list(field->bytes.value_or("")); !list.at_end();) {
      const auto id = list.varint();
      if (!id) return false;
      node.data_deps.push_back(*id);
    }
  }
  return true;
}

// The first message is the metadata.
Result<std::vector<WrittenNode>> read_protobuf(std::string_view text) {
  std::vector<WrittenNode> nodes;
  Wire wire(text);
  for (std::size_t number = 1; !wire.at_end(); ++number) {
    const std::size_t begin = text.size() - wire.left();
    const auto message = wire.bytes();
    if (message && number == 1) continue;
    if (!message || !read_node(*message, nodes.emplace_back())) {
      return invalid_argument(fmt::format(
          "message {} at byte {} is no message of a Chakra trace; allowed are protobuf messages, "
          "each after its length, and the JSON of chakra_jsonizer",
          number, begin));
    }
  }
  return nodes;
}

// A number of JSON; numbers of 64 bits are texts there.
std::optional<std::uint64_t> number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return static_cast<std::uint64_t>(value.get<std::int64_t>());
  if (!value.is_string()) return std::nullopt;
  const auto read = [&](auto number) -> std::optional<std::uint64_t> {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return static_cast<std::uint64_t>(number);  // as protobuf has negative numbers
  };
  const auto positive = read(std::uint64_t{});
  return positive ? positive : read(std::int64_t{});
}

// Reads one object; the error lacks its place.
Status read_object(const Json& object, WrittenNode& node) {
  const auto number = [&object](const char* member, std::uint64_t& into) -> Status {
    if (!object.contains(member)) return {};  // zeros are left out
    const auto value = number_of(object[member]);
    if (!value) return bad_member(member, object[member], "whole numbers from 0 to 2^64 - 1");
    into = *value;
    return {};
  };
  if (Status s = number("id", node.id); !s.ok()) return s;
  if (Status s = number("durationMicros", node.micros); !s.ok()) return s;
  if (const Json type = object.value("type", Json(kNodeTypes[0])); type.is_string()) {
    const auto* const found = std::ranges::find(kNodeTypes, type.get<std::string>());
    node.type = static_cast<std::uint64_t>(found - std::begin(kNodeTypes));
  } else if (Status s = number("type", node.type); !s.ok()) {
    return s;
  }
  for (const Json& one : object.value("dataDeps", Json::array())) {
    const auto id = number_of(one);
    if (!id) return bad_member("dataDeps", one, "ids of nodes");
    node.data_deps.push_back(*id);
  }
  for (const Json& one : object.value("attr", Json::array())) {
    if (!one.is_object()) return bad_member("attr", one, "objects");
    const std::string name = one.value("name", "");
    if (name == "pg_name") node.group = one.value("stringVal", "");
    for (const char* kind : {"int32Val", "int64Val", "uint32Val", "uint64Val", "boolVal"}) {
      if (const auto value = number_of(one.value(kind, Json()))) node.numbers[name] = *value;
    }
  }
  return {};
}

// The first object is the metadata.
Result<std::vector<WrittenNode>> read_json_nodes(const std::string& text) {
  std::vector<WrittenNode> nodes;
  std::istringstream in(text);
  for (bool is_node = false; !(in >> std::ws).eof(); is_node = true) {
    const auto begin = in.tellg();
    Status status;
    try {
      Json object;
      in >> object;
      if (object.contains("workload_graph")) {
        status = invalid_argument(
            "workload_graph is the feeder's form; allowed are .et files and "
            "the JSON of chakra_jsonizer");
      } else if (is_node) {
        status = read_object(object, nodes.emplace_back());
      }
    } catch (const nlohmann::json::exception& error) {
      status = invalid_argument(legible(error.what()));
    }
    if (!status.ok()) {
      const auto lines = std::count(text.begin(), text.begin() + begin, '\n');
      return invalid_argument(fmt::format("line {}: {}", 1 + lines, status.text()));
    }
  }
  return nodes;
}

std::string_view name_of_type(std::uint64_t type) {
  return type < std::size(kNodeTypes) ? kNodeTypes[type] : "unknown";
}

// Reads a node's meaning. `group`: the pg_name of the nodes before.
Result<TraceNode> meaning_of(const WrittenNode& written, std::optional<std::string>& group) {
  const auto refuse = [&written](const std::string& reason) {
    return invalid_argument(fmt::format("node {}: {}", written.id, reason));
  };
  const auto number = [&written](std::string_view name) {
    const auto found = written.numbers.find(name);
    return found == written.numbers.end() ? std::nullopt : std::optional(found->second);
  };
  TraceNode node{.id = written.id,
                 .seconds = static_cast<double>(written.micros) * 1e-6,
                 .after = written.data_deps};
  const std::string_view type = name_of_type(written.type);
  if (number("is_cpu_op").value_or(0) != 0) {
    node.place = TraceNode::Place::processor;
    return node;
  }
  if (written.type != kCollectiveNode) {
    const std::uint64_t ops = number("num_ops").value_or(0);
    if (written.micros == 0 && ops > 0) {
      return refuse(fmt::format("duration_micros is 0, num_ops is {}; a duration is needed", ops));
    }
    if (!type.starts_with("COMM_") && type != kNodeTypes[0] && type != "unknown") return node;
    return refuse(fmt::format(
        "type is {} ({}); allowed are METADATA_NODE, MEM_LOAD_NODE, MEM_STORE_NODE, COMP_NODE and "
        "COMM_COLL_NODE: one trace stands for all ranks",
        type, written.type));
  }
  node.place = TraceNode::Place::network;
  const auto comm_type = number("comm_type"), bytes = number("comm_size");
  if (!comm_type || !bytes) {
    return refuse(fmt::format("{} is missing; a COMM_COLL_NODE needs comm_type and comm_size",
                              comm_type ? "comm_size" : "comm_type"));
  }
  if (*comm_type >= std::size(kCommTypes)) {
    return refuse(fmt::format("comm_type is {}; allowed are 0 ({}) to {} ({})", *comm_type,
                              kCommTypes[0].first, std::size(kCommTypes) - 1,
                              std::rbegin(kCommTypes)->first));
  }
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
  if (*bytes > kMostBytes) {
    return refuse(fmt::format("comm_size is {}; allowed are 0 to {} bytes", *bytes, kMostBytes));
  }
  if (group.value_or(written.group) != written.group) {
    return refuse(
        fmt::format("pg_name is '{}'; allowed is '{}' of the nodes before: all ranks make every "
                    "collective",
                    legible(written.group), legible(*group)));
  }
  group = written.group;
  node.collective = kCommTypes[*comm_type].second;
  node.bytes = *bytes;
  return node;
}

// M of a collective: a rank's input is M, or one of the blocks of M.
double vector_bytes_of(const TraceNode& node, int ranks) {
  const bool brings_block =
      node.collective == Collective::all_gather || node.collective == Collective::gather;
  return static_cast<double>(node.bytes) * (brings_block ? ranks : 1);
}

}  // namespace

Result<std::vector<TraceNode>> read_chakra(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) {
    return invalid_argument("the file is compressed; unpack it with 'gunzip' first");
  }
  const auto written =
      text.starts_with("{") ? read_json_nodes(std::string(text)) : read_protobuf(text);
  if (!written.ok()) return written.status();
  if (written->empty()) return invalid_argument("the trace has no nodes; allowed are 1 and more");
  std::vector<TraceNode> nodes;
  std::set<std::uint64_t> ids;
  std::optional<std::string> group;
  for (const WrittenNode& one : *written) {
    auto node = meaning_of(one, group);
    if (!node.ok()) return node.status();
    if (!ids.insert(node->id).second) {
      return invalid_argument(fmt::format("node {} is there twice; allowed is once", node->id));
    }
    nodes.push_back(std::move(*node));
  }
  for (const TraceNode& node : nodes) {
    for (const std::uint64_t id : node.after) {
      if (ids.contains(id)) continue;
      return invalid_argument(
          fmt::format("node {}: data_deps has {}, which is no node's id", node.id, id));
    }
  }
  return nodes;
}

Result<StepPlan> plan_trace(const std::vector<TraceNode>& nodes, const Mapping& mapping,
                            const Machine& machine, Prices& prices) {
  StepPlan plan;
  plan.mapping = mapping;
  plan.machine = machine;
  PlannedComputation& computing = plan.computations.emplace_back();
  computing.times = 1;
  const std::vector<Axis> along = {Axis::dp};
  const auto groups = groups_of(mapping, along);
  // By id: the node, and the nodes that wait for it.
  struct Played {
    const TraceNode* node = nullptr;
    double seconds = 0;
    std::size_t waits = 0;  // for this number of nodes
    std::vector<std::uint64_t> before{};
    std::size_t collective = 0;  // in the plan
  };
  std::map<std::uint64_t, Played> all;
  std::map<std::pair<Collective, std::uint64_t>, std::size_t> known;
  for (const TraceNode& node : nodes) {
    Played& played = all[node.id];
    played.node = &node;
    played.seconds = node.seconds;
    played.waits = node.after.size();
    for (const std::uint64_t id : node.after) all[id].before.push_back(node.id);
    if (node.place == TraceNode::Place::accelerator) computing.seconds += node.seconds;
    if (node.place != TraceNode::Place::network) continue;
    const auto [at, is_new] =
        known.emplace(std::pair(node.collective, node.bytes), plan.collectives.size());
    if (is_new) {
      const auto price = prices.of(node.collective, groups, vector_bytes_of(node, mapping.ranks()));
      if (!price.ok()) return price.status();
      plan.collectives.push_back(
          {.what = "trace", .along = along, .collective = node.collective, .price = *price});
    }
    played.collective = at->second;
    PlannedCollective& collective = plan.collectives[at->second];
    collective.times += 1;
    played.seconds = collective.price.seconds;
  }

  constexpr std::size_t kPlaces = 3, kAccelerator = 1, kNetwork = 2;
  std::array<std::set<std::uint64_t>, kPlaces> ready;
  std::array<const Played*, kPlaces> busy{};
  std::array<double, kPlaces> ends{};
  const auto place_of = [](const Played& one) { return static_cast<std::size_t>(one.node->place); };
  for (const auto& [id, one] : all) {
    if (one.waits == 0) ready[place_of(one)].insert(id);
  }
  for (std::size_t done = 0; done < all.size(); ++done) {
    std::optional<std::size_t> next;  // the place that ends first
    for (std::size_t p = 0; p < kPlaces; ++p) {
      if (busy[p] == nullptr && !ready[p].empty()) {
        busy[p] = &all.at(*ready[p].begin());
        ready[p].erase(ready[p].begin());
        ends[p] = plan.seconds + busy[p]->seconds;
      }
      if (busy[p] != nullptr && (!next || ends[p] < ends[*next])) next = p;
    }
    if (!next) {
      const auto waits =
          std::ranges::find_if(all, [](const auto& one) { return one.second.waits > 0; });
      return invalid_argument(fmt::format(
          "node {} waits for ever: data_deps of it, or of nodes before it, form a circle",
          waits->first));
    }
    if (busy[kNetwork] != nullptr && busy[kAccelerator] != nullptr) {
      plan.collectives[busy[kNetwork]->collective].hidden += ends[*next] - plan.seconds;
    }
    plan.seconds = ends[*next];
    for (const std::uint64_t id : std::exchange(busy[*next], nullptr)->before) {
      Played& one = all.at(id);
      if (--one.waits == 0) ready[place_of(one)].insert(id);
    }
  }
  std::erase_if(plan.collectives,
                [](const PlannedCollective& c) { return c.price.algorithm == nullptr; });
  return plan;
}

}  // namespace rankine::tools
