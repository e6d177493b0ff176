// A document of rivals (document.h) as a picture: for each protocol the time of every contender
// over the size, and below it Rankine's time over that of the best expert, the best MPI and the
// limit. Hollow points are of rows that never were steady.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace rankine::rivals {

// SVG. Throws what nlohmann-json throws where the document is another one.
std::string plot_svg(const nlohmann::json& document);

// "all_reduce in place, 2 ranks" or "all_reduce, 4 processes on 2 cores": what a document is about.
std::string subject(const nlohmann::json& document);

// What Rankine is called there: "rankine", or "rankine_processes".
std::string our_name(const nlohmann::json& document);

}  // namespace rankine::rivals
