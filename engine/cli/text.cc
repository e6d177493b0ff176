#include "engine/cli/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"

namespace rankine::tools {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<int> parse_whole(std::string_view argument, std::string_view text, int lowest, int highest) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    const std::string allowed = lowest == highest ? fmt::format("only {}", lowest)
                                : highest == std::numeric_limits<int>::max()
                                    ? fmt::format("whole numbers from {}", lowest)
                                    : fmt::format("whole numbers from {} to {}", lowest, highest);
    return invalid_argument(fmt::format("{} is '{}'; allowed {} {}", argument, legible(text),
                                        lowest == highest ? "is" : "are", allowed));
  }
  return value;
}

Result<std::vector<int>> parse_whole_list(std::string_view argument, std::string_view text,
                                          int lowest, int highest) {
  std::vector<int> values;
  for (const std::string_view part : split_list(text)) {
    const std::size_t dots = part.find("..");
    const std::string_view first = part.substr(0, dots);
    const std::string_view last = dots == std::string_view::npos ? first : part.substr(dots + 2);
    const auto from = parse_whole(argument, first, lowest, highest);
    const auto to = parse_whole(argument, last, lowest, highest);
    if (!from.ok() || !to.ok() || *from > *to) {
      return invalid_argument(fmt::format(
          "{} is '{}', with '{}' in it; allowed are whole numbers from {} to {}, such as 8, 2,3,8 "
          "or {}..{}",
          argument, legible(text), legible(part), lowest, highest, lowest, std::min(highest, 130)));
    }
    for (int value = *from; value <= *to; ++value) values.push_back(value);
  }
  if (values.empty()) {
    return invalid_argument(fmt::format("{} is empty; allowed are whole numbers from {} to {}",
                                        argument, lowest, highest));
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string legible(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out(text.substr(0, kMost));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return text.size() > kMost ? out + " ..." : out;
}

Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed) {
  return invalid_argument(fmt::format("{} is '{}'; allowed are {}{}", argument, legible(value),
                                      join(allowed), did_you_mean(value, allowed)));
}

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text between the parenthesis at `open` and its partner, split at commas; moves `open` behind
// the partner.
std::vector<std::string_view> arguments_at(std::string_view text, std::size_t& open) {
  std::vector<std::string_view> parts;
  std::size_t begin = ++open;
  for (int depth = 0; open < text.size(); ++open) {
    if (text[open] == '(') ++depth;
    if (text[open] == ')' && depth-- == 0) break;
    if (text[open] != ',' || depth != 0) continue;
    parts.push_back(text.substr(begin, open - begin));
    begin = open + 1;
  }
  parts.push_back(text.substr(begin, open - begin));
  if (open < text.size()) ++open;
  return parts;
}

// A nonzero number means true.
std::string condition(std::string_view text) {
  if (text == "N-1") return "N>1";
  if (text == "pow2(N)") return "N is a power of 2";
  const std::string shown = readable_formula(text);
  const bool compares = text.find_first_of("<>=") != std::string_view::npos;
  return compares ? shown : shown + " is not 0";
}

std::string call(std::string_view name, const std::vector<std::string_view>& arguments,
                 bool whole) {
  if (name == "if" && arguments.size() == 3) {
    const std::string text = fmt::format("{} if {}, else {}", readable_formula(arguments[1]),
                                         condition(arguments[0]), readable_formula(arguments[2]));
    return whole ? text : "(" + text + ")";
  }
  if ((name == "and" || name == "or") && arguments.size() == 2) {
    const std::string text =
        fmt::format("{} {} {}", condition(arguments[0]), name, condition(arguments[1]));
    return whole ? text : "(" + text + ")";
  }
  std::string inside;
  for (const std::string_view each : arguments) {
    inside += (inside.empty() ? "" : ",") + readable_formula(each);
  }
  if (name == "clog2" || name == "flog2") {
    const bool simple = inside.size() == 1;
    return fmt::format("{}(log2{}{}{})", name == "clog2" ? "ceil" : "floor", simple ? " " : "(",
                       inside, simple ? "" : ")");
  }
  return fmt::format("{}({})", name, inside);
}

}  // namespace

std::string readable_formula(std::string_view formula) {
  std::string out;
  for (std::size_t at = 0; at < formula.size();) {
    const char c = formula[at];
    if (is_letter(c) && (at == 0 || !is_word(formula[at - 1]))) {
      const std::size_t begin = at;
      while (at < formula.size() && is_word(formula[at])) ++at;
      const std::string_view name = formula.substr(begin, at - begin);
      if (at == formula.size() || formula[at] != '(') {
        out += name;
        continue;
      }
      const auto arguments = arguments_at(formula, at);
      out += call(name, arguments, begin == 0 && at == formula.size());
      continue;
    }
    // A number before a parenthesis or a name multiplies it.
    const bool factor = c == '*' && at > 0 && at + 1 < formula.size() &&
                        std::isdigit(static_cast<unsigned char>(formula[at - 1])) != 0 &&
                        (formula[at + 1] == '(' || is_letter(formula[at + 1]));
    if (!factor) {
      out += c;
    } else if (formula[at + 1] != '(') {
      out += ' ';
    }
    ++at;
  }
  return out;
}

std::string port_need(int needed) {
  return fmt::format("needs {} per rank", counted(needed, "port"));
}

std::string port_budget(int needed, int ports) {
  return fmt::format(
      "{}, the network has {}: {} of the survey's C.4)", port_need(needed), ports,
      rounds_serialise(needed, ports) ? "rounds serialise (case B" : "rounds run as drawn (case A");
}

Result<Collective> read_collective(std::string_view argument, std::string_view text) {
  std::vector<std::string_view> names;
  const std::optional<Collective> meant = find_typed_collective(text);
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    if (meant == collective) return collective;
    names.push_back(name_of(collective));
  }
  return unknown_name(argument, text, names);
}

Result<std::vector<const Algorithm*>> read_algorithms(std::string_view argument,
                                                      std::string_view text,
                                                      std::optional<Collective> collective) {
  std::vector<const Algorithm*> offered;
  std::vector<std::string_view> names;
  for (const Algorithm& entry : catalogue()) {
    if (collective && entry.collective != *collective) continue;
    offered.push_back(&entry);
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) {
      names.push_back(entry.name);
    }
  }
  std::vector<const Algorithm*> wanted;
  for (const std::string_view part : split_list(text)) {
    if (part == "all") return offered;
    std::vector<const Algorithm*> meant = find_typed_algorithms(part);
    std::erase_if(meant, [&](const Algorithm* entry) {
      return collective && entry->collective != *collective;
    });
    if (meant.empty()) {
      names.push_back("all");
      const std::string what = collective ? fmt::format("{} for {}", argument, name_of(*collective))
                                          : std::string(argument);
      return unknown_name(what, part, names);
    }
    wanted.insert(wanted.end(), meant.begin(), meant.end());
  }
  if (wanted.empty()) {
    return invalid_argument(
        fmt::format("{} is '{}'; allowed are {}, all", argument, text, join(names)));
  }
  // Keep the catalogue's order, without duplicates.
  std::erase_if(offered, [&](const Algorithm* entry) {
    return std::find(wanted.begin(), wanted.end(), entry) == wanted.end();
  });
  return offered;
}

const GivenParameter* AlgorithmArguments::find(std::string_view parameter) const {
  const auto found = std::find_if(given.rbegin(), given.rend(), [parameter](const auto& each) {
    return each.parameter->name == parameter;
  });
  return found == given.rend() ? nullptr : &*found;
}

std::optional<std::string> AlgorithmArguments::take(std::string_view parameter) {
  const GivenParameter* found = find(parameter);
  if (found == nullptr) return std::nullopt;
  std::string text = found->text;
  std::erase_if(given, [&](const auto& each) { return each.parameter->name == parameter; });
  return text;
}

Status invalid_value(const GivenParameter& given, std::string_view allowed) {
  return invalid_argument(fmt::format("{} is {}; allowed are {}{}", given.argument, given.shown,
                                      allowed, did_you_mean(given.text, given.parameter->names())));
}

Result<Params> read_params(const AlgorithmArguments& a) {
  Params params = a.begin;
  for (const Parameter& row : parameters()) {
    const GivenParameter* given = a.find(row.name);
    if (given == nullptr || (row.read(given->text, params) && params.ranks <= a.most_ranks)) {
      continue;
    }
    return invalid_value(*given, row.name == "ranks"
                                     ? fmt::format("whole numbers from 1 to {}", a.most_ranks)
                                     : row.allowed());
  }
  if (a.collective == Collective::send_recv && a.find("peer") == nullptr) {
    params.peer = (params.root + 1) % params.ranks;
  }
  return params;
}

Result<std::vector<AskedAlgorithm>> asked_algorithms(const AlgorithmArguments& a,
                                                     std::vector<std::string>& notes,
                                                     const AdjustParams& adjust) {
  if (!a.written.empty()) {
    const Algorithm& written = *a.written.front();
    if (!a.algorithms.empty() || !a.given.empty()) {
      return invalid_argument(fmt::format(
          "{} is given; allowed are algorithms of the catalogue, because {} has its own ranks and "
          "parameters",
          a.given.empty() ? "--algo" : a.given.front().argument, written.name));
    }
    AskedAlgorithm one{&written, a.begin};
    if (adjust) {
      if (Status status = adjust(written, one.params); !status.ok()) return status;
    }
    return std::vector<AskedAlgorithm>{std::move(one)};
  }
  if (a.algorithms.empty()) {
    return invalid_argument(fmt::format("--algo is needed; {} has {}", name_of(*a.collective),
                                        algorithm_names(*a.collective)));
  }
  const auto lines = read_algorithms("--algo", a.algorithms, a.collective);
  if (!lines.ok()) return lines.status();
  const auto params = read_params(a);
  if (!params.ok()) return params.status();
  std::vector<AskedAlgorithm> asked;
  std::string refused;
  for (const Algorithm* entry : *lines) {
    AskedAlgorithm one{entry, *params};
    if (adjust) {
      if (Status status = adjust(*entry, one.params); !status.ok()) return status;
    }
    Params checked = one.params;
    if (checked.segments == 0) checked.segments = 1;
    if (const auto refusal = entry->refusal(checked)) {
      refused = *refusal;
      const bool others = a.all() || (lines->size() > 1 && entry->untaken(checked));
      if (!others) return invalid_argument(refused);
      notes.push_back("left out: " + refused);
    } else {
      asked.push_back(std::move(one));
    }
  }
  if (asked.empty()) return invalid_argument(refused);
  return asked;
}

Status one_algorithm_only(const AlgorithmArguments& a) {
  return invalid_argument(fmt::format("--algo is '{}'; one algorithm is allowed, of {}",
                                      a.algorithms, algorithm_names(*a.collective)));
}

Status check_taken(const AlgorithmArguments& a, const std::vector<const Algorithm*>& lines) {
  for (const GivenParameter& given : a.given) {
    const Parameter& row = *given.parameter;
    const auto takes = [&row](const Algorithm* entry) { return entry->takes(row.name); };
    Params params;
    const bool asks = !row.read(given.text, params) || !row.open(params);
    if (!asks || std::any_of(lines.begin(), lines.end(), takes)) continue;
    const auto other = [&](const Algorithm& entry) {
      return (!a.collective || entry.collective == *a.collective) && !takes(&entry);
    };
    if (std::none_of(catalogue().begin(), catalogue().end(), other)) continue;
    return invalid_argument(fmt::format(
        "{} is {}; no algorithm named by --algo takes it; 'rankine list' shows which ones do",
        given.argument, given.shown));
  }
  return {};
}

namespace {

Json to_json(const Parameter& row, const Params& params) {
  if (row.number != nullptr) return params.*row.number;
  if (row.kind == Parameter::Kind::torus) return row.text(params);
  return params.*row.list;
}

// The value as text for Parameter::read(), which refuses values other than numbers, texts and lists
// of numbers.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto is_whole = [](const Json& part) { return part.is_number_integer(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_whole)) return value.dump();
  std::string text;
  for (const Json& part : value) text += (text.empty() ? "" : ",") + part.dump();
  return text;
}

}  // namespace

void write_parameters(const Algorithm& entry, const Params& params, Json& request, Json& rest) {
  for (const Parameter& row : parameters()) {
    if (!entry.takes(row.name)) continue;
    (row.in_request ? request : rest)[std::string(row.name)] = to_json(row, params);
  }
}

bool read_parameter(const std::string& name, const Json& value, bool in_request,
                    AlgorithmArguments& into) {
  const Parameter* row = find_parameter(name);
  if (row == nullptr || row->in_request != in_request) return false;
  into.given.push_back({row, text_of(value), (in_request ? "" : "params.") + name, value.dump()});
  return true;
}

Status read_params_member(const Json& params, AlgorithmArguments& into) {
  const std::string names = parameter_names(false);
  if (!params.is_object()) return bad_member("params", params, "objects with the members " + names);
  for (const auto& [name, value] : params.items()) {
    if (read_parameter(name, value, false, into)) continue;
    return invalid_argument(fmt::format("params has a member '{}'; allowed are {}", name, names));
  }
  return {};
}

std::string parameter_names(bool in_request) {
  std::string names;
  for (const Parameter& row : parameters()) {
    if (row.in_request != in_request || row.name == "ranks") continue;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

Status bad_member(std::string_view member, const Json& value, std::string_view allowed) {
  return invalid_argument(fmt::format("{} is {}; allowed are {}", member, value.dump(), allowed));
}

nlohmann::ordered_json algorithm_json(const Algorithm& entry) {
  return {
      {"collective", name_of(entry.collective)},
      {"name", entry.name},
      {"allowed_when", entry.allowed_when},
      {"needs", entry.needs},
      {"parameters", split_list(entry.parameters)},
      {"rounds", entry.rounds},
      {"sent", entry.sent},
      {"received", entry.received},
      {"send_ports", entry.send_ports},
      {"receive_ports", entry.receive_ports},
      {"summary", entry.summary},
      {"citation", entry.citation},
      {"other_bits", entry.other_bits},
  };
}

nlohmann::ordered_json algorithm_json(const Algorithm& entry, const Params& params) {
  nlohmann::ordered_json json = algorithm_json(entry);
  const auto value = [&](std::string_view formula) {
    return formula == kComputed ? std::string(formula) : evaluate(formula, params).to_string();
  };
  for (const Parameter& row : parameters()) {
    if (in_formulas(row)) json["at"][std::string(row.name)] = params.*row.number;
  }
  if (const auto refusal = entry.refusal(entry.only_taken(params))) {
    json["at"]["refused"] = *refusal;
    return json;
  }
  json["at"]["rounds"] = value(entry.rounds);
  json["at"]["sent"] = value(entry.sent);
  json["at"]["received"] = value(entry.received);
  json["at"]["send_ports"] = value(entry.send_ports);
  json["at"]["receive_ports"] = value(entry.receive_ports);
  return json;
}

}  // namespace rankine::tools
