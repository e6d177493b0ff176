// "8", "64K", "32M": sizes as nccl-tests writes them, suffixes binary. Header only.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace rankine::rivals {

inline std::optional<std::size_t> parse_size(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return std::nullopt;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  int shift = 0;
  switch (std::toupper(static_cast<unsigned char>(*end))) {
    case '\0':
      break;
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    default:
      return std::nullopt;
  }
  if (shift > 0 && end[1] != '\0') return std::nullopt;
  if (number > (~0ULL >> 8 >> shift)) return std::nullopt;
  return static_cast<std::size_t>(number) << shift;
}

// first, first * factor, ... up to last. factor is at least 2.
inline std::vector<std::size_t> size_range(std::size_t first, std::size_t last,
                                           std::size_t factor) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last; size *= factor) {
    sizes.push_back(size);
    if (size == 0 || size > last / factor) break;
  }
  return sizes;
}

}  // namespace rankine::rivals
