// What a library ships: a menu of the catalogue, for who asks what that library's users could have.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "algorithms/catalogue.h"

namespace rankine {

struct Menu {
  // As "all_reduce ring", one of the catalogue each.
  struct Line {
    Collective collective;
    std::string_view algorithm;
  };

  std::string_view name;
  std::string_view source;
  std::span<const Line> lines{};  // none: all of the catalogue

  bool has(const Algorithm& algorithm) const;
};

// all, mpich, nccl, openmpi, ucc.
std::span<const Menu> menus();
const Menu* find_menu(std::string_view name);  // or nullptr

}  // namespace rankine
