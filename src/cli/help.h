// The help pages, made from the tables of commands and options.
#pragma once

#include <string>

#include "cli/option_table.h"

namespace shardpack {

/// `shardpack` alone and `shardpack -h`: what it is for, the commands, two examples; fits one screen.
std::string overview_page();

/// `COMMAND -h`: the options that most runs need, and two examples.
std::string brief_page(Command command);

/// `COMMAND --help`: every option, by section.
std::string full_page(Command command);

/// The options of all commands as Markdown tables: the generated part of docs/cli.md.
std::string options_markdown();

}  // namespace shardpack
