// Runs the program rankine-lab: the product's subcommands and the laboratory's.

#include "engine/lab/commands.h"

int main(int argc, char** argv) {
  return rankine::tools::tool_main(argc, argv, &rankine::tools::laboratory());
}
