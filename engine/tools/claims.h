// rankine claims: every quantitative claim of the papers, and what the engine finds.
#pragma once

#include <string>

#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ClaimsOptions {
  std::string paper;           // its key; empty: all
  std::string only;            // the name of a verdict or of a kind of claim; empty: all
  std::string id;              // only claims whose id begins so
  std::string markdown, html;  // files for the report; empty: none
  bool all = false;  // each claim, in place of the totals and what fails
  bool json = false, golden = false;
  bool no_execute = false;
  int most_ranks = 81;  // of runs that live ranks repeat
};

Subcommand add_claims(Command tool);

// Exit::wrong where executing gave something else than simulating. What a claim comes to is no
// error, whatever it is. Errors: a file that cannot be written.
Result<Exit> claims_report(const ClaimsOptions& options, Console& console);

}  // namespace rankine::tools
