// The program rankine: the product's subcommands.

#include "engine/cli/tool.h"

int main(int argc, char** argv) { return rankine::tools::tool_main(argc, argv, nullptr); }
