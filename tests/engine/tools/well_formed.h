// A strict reader of the XML that pictures are made of: elements, attributes in double quotes,
// text.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace rankine::tools {

// Empty where `xml` is one well-formed element and white space; else what is wrong.
inline std::string why_not_well_formed(std::string_view xml) {
  std::vector<std::string> open;
  bool had_root = false;
  const auto entity = [&](std::size_t at) {
    for (const std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}) {
      if (xml.substr(at).starts_with(known)) return true;
    }
    return false;
  };
  std::size_t at = 0;
  const auto name_at = [&] {
    const std::size_t first = at;
    while (at < xml.size() && (std::isalnum(static_cast<unsigned char>(xml[at])) != 0 ||
                               xml[at] == '-' || xml[at] == ':')) {
      ++at;
    }
    return std::string(xml.substr(first, at - first));
  };
  const auto skip_blanks = [&] {
    while (at < xml.size() && std::isspace(static_cast<unsigned char>(xml[at])) != 0) ++at;
  };
  while (at < xml.size()) {
    if (xml[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(xml[at])) == 0) {
        return "text outside of the element";
      }
      if (xml[at] == '>' || (xml[at] == '&' && !entity(at))) return "a bare & or >";
      ++at;
      continue;
    }
    ++at;
    if (at < xml.size() && xml[at] == '/') {
      ++at;
      const std::string name = name_at();
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
      if (at >= xml.size() || xml[at++] != '>') return "</" + name + " does not end";
      continue;
    }
    const std::string name = name_at();
    if (name.empty()) return "< without a name";
    if (open.empty() && had_root) return "a second element";
    had_root = true;
    for (skip_blanks(); at < xml.size() && xml[at] != '>' && xml[at] != '/'; skip_blanks()) {
      const std::string attribute = name_at();
      if (attribute.empty() || !xml.substr(at).starts_with("=\"")) return "attributes of " + name;
      for (at += 2; at < xml.size() && xml[at] != '"'; ++at) {
        if (xml[at] == '<' || (xml[at] == '&' && !entity(at))) return "a value of " + name;
      }
      ++at;
    }
    const bool empty = at < xml.size() && xml[at] == '/';
    if (empty) ++at;
    if (at >= xml.size() || xml[at++] != '>') return "<" + name + " does not end";
    if (!empty) open.push_back(name);
  }
  if (!had_root) return "no element";
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace rankine::tools
