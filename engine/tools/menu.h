// --menu: only what a library ships.
#pragma once

#include <vector>

#include "engine/read/count.h"
#include "engine/tools/arguments.h"

namespace rankine::tools {

// `menu` begins as the one that is meant where nobody says.
void add_menu(Command app, const Menu*& menu);

// Those of `lines` that are on the menu. Error: none is.
Result<std::vector<const Algorithm*>> on_menu(const Menu& menu, Collective collective,
                                              std::vector<const Algorithm*> lines);

}  // namespace rankine::tools
