// The papers' files as they stand here, compiled in (BUILD.bazel).
#pragma once

#include <span>
#include <string_view>

namespace rankine::claims {

std::span<const std::string_view> paper_texts();

}  // namespace rankine::claims
