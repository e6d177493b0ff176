#include "engine/papers/setup.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "algorithms/torus.h"
#include "engine/network/wire.h"

namespace rankine::claims {
namespace {

Rational exactly(const Value& value, std::string_view what) {
  if (!value.exact()) throw std::logic_error(std::string(what) + " is no exact number");
  return value.rational();
}

Rational* exact_option(Fabric& fabric, std::string_view option) {
  if (option == "alpha") return &fabric.link.alpha;
  if (option == "beta") return &fabric.link.beta;
  if (option == "hop") return &fabric.alpha_hop;
  if (option == "gamma") return &fabric.gamma;
  if (option == "far_alpha") return &fabric.between.alpha;
  if (option == "far_beta") return &fabric.between.beta;
  return option == "switch_alpha" ? &fabric.alpha_switch : nullptr;
}

// Options that are words.
struct Word {
  std::string_view option;
  void (*read)(Setup&, std::string_view text);
};
auto known(const auto& value, std::string_view option, std::string_view text) {
  if (!value) {
    throw std::logic_error("no " + std::string(option) + " is called '" + std::string(text) + "'");
  }
  return *value;
}
constexpr Word kWords[] = {
    {"sync", [](Setup& s,
                std::string_view text) { s.options.sync = known(parse_sync(text), "sync", text); }},
    {"wiring",
     [](Setup& s, std::string_view text) {
       s.fabric.wiring.kind = known(parse_wiring(text), "wiring", text);
       open_ports(s.fabric);
     }},
    {"routing",
     [](Setup& s, std::string_view text) {
       s.fabric.wiring.routing = known(parse_routing(text), "routing", text);
     }},
};
// nullptr: it is none of them.
const Word* find_word(std::string_view option) {
  const auto* found = std::find_if(std::begin(kWords), std::end(kWords),
                                   [option](const Word& word) { return word.option == option; });
  return found == std::end(kWords) ? nullptr : found;
}

bool is_list(std::string_view option) {
  const Parameter* row = find_parameter(option);
  return row != nullptr && row->list != nullptr;
}

}  // namespace

std::int64_t whole(const Value& value, std::string_view what) {
  if (!value.whole() || value.rational().top() > std::numeric_limits<std::int64_t>::max() ||
      value.rational().top() < std::numeric_limits<std::int64_t>::min()) {
    throw std::logic_error(std::string(what) + " is " + to_string(value) + ", no whole number");
  }
  return static_cast<std::int64_t>(value.rational().top());
}

Setup set_up(const RunText& run, const Letters& letters) {
  Setup s;
  const auto collective = parse_collective(run.collective);
  if (!collective) throw std::logic_error("no collective is called '" + run.collective + "'");
  s.algorithm = find_algorithm(*collective, run.algorithm);
  if (s.algorithm == nullptr) {
    throw NotInCatalogue("the catalogue has no " + run.collective + " '" + run.algorithm + "' yet");
  }
  bool adds = true;
  for (const auto& [option, text] : run.options) {
    if (const Word* word = find_word(option)) {
      word->read(s, text);
      continue;
    }
    if (is_list(option) || option == "dimensions") continue;  // below: they need the ranks
    const Value value = formulas::evaluate(text, letters);
    const auto number = [&, name = std::string_view(option)] {
      return static_cast<int>(whole(value, name));
    };
    const Parameter* row = find_parameter(option);
    if (row != nullptr) {
      s.params.*row->number = number();
    } else if (option == "bytes") {
      s.bytes = static_cast<std::uint64_t>(whole(value, option));
    } else if (Rational* into = exact_option(s.fabric, option)) {
      *into = exactly(value, option);
      if (option == "switch_alpha") s.fabric.multicast = s.fabric.alu = true;
    } else if (option == "ports") {
      s.fabric.ports = number();
    } else if (option == "nodes") {
      s.nodes = s.fabric.group = number();
    } else if (option == "permute") {
      s.fabric.permute = number() != 0;
    } else if (option == "adds") {
      adds = number() != 0;
    } else if (option == "lower") {
      s.options.lower = number() != 0;
    } else {
      throw std::logic_error("a run has no option '" + option + "'");
    }
  }
  for (const auto& [option, text] : run.options) {
    const Parameter* row = find_parameter(option);
    if (row != nullptr && row->list != nullptr) {
      if (!row->read(text, s.params)) {
        throw std::logic_error(option + " is '" + text + "'; allowed are " + row->allowed());
      }
    } else if (option == "dimensions") {
      s.params.dims = balanced_dims(
          s.params.ranks, static_cast<int>(whole(formulas::evaluate(text, letters), option)));
    }
  }
  s.fabric.alu = s.fabric.alu && adds;
  auto wired = wire(s.fabric, *s.algorithm, s.params);
  if (const auto untaken = s.algorithm->untaken(s.params)) throw std::logic_error(*untaken);
  if (const auto refusal = s.algorithm->refusal(s.params)) throw NotDefined(*refusal);
  if (!wired.ok()) throw std::logic_error(wired.status().text());
  s.fabric = std::move(*wired);
  return s;
}

std::string key_of(const RunText& run, const Letters& letters) {
  std::map<std::string, std::string> options;
  for (const auto& [option, text] : run.options) {
    if (find_word(option) != nullptr || is_list(option)) {
      options[option] = text;
      continue;
    }
    const Value value = formulas::evaluate(text, letters);
    options[option] = value.exact() ? value.rational().to_string() : to_string(value);
  }
  std::string key = run.collective + " " + run.algorithm;
  for (const auto& [option, value] : options) key += " " + option + "=" + value;
  return key;
}

}  // namespace rankine::claims
