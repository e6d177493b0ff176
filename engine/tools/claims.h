// rankine claims: every quantitative claim of the papers, and what the engine finds.
#pragma once

#include <optional>
#include <string>

#include "engine/papers/evaluate.h"
#include "engine/tools/arguments.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct ClaimsOptions {
  std::string paper;  // its key; empty: all
  std::optional<claims::Verdict> verdict;
  std::string id;  // only claims whose id begins so
  bool json = false, markdown = false, golden = false;
  bool no_execute = false;
};

Subcommand add_claims(Command tool);

// Exit::wrong where executing gave something else than simulating. What a claim comes to is no
// error, whatever it is.
Result<Exit> claims_report(const ClaimsOptions& options, Console& console);

}  // namespace rankine::tools
