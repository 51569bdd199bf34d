// Every option, in one table: the parser, the config file, --print-config, the help pages and docs/cli.md all come from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"

namespace shardpack {

// ---- commands ---------------------------------------------------------------------------------------------------------------
struct CommandInfo {
  Command command;
  const char* name;
  const char* summary;         ///< one line
  const char* usage;           ///< what follows "shardpack NAME"
  const char* examples[2];     ///< what follows "shardpack "
  const char* note = nullptr;  ///< what its pages say before the options
};
std::span<const CommandInfo> commands();  ///< index = Command
const CommandInfo& info(Command command);

/// A set of commands, one bit each.
using CommandSet = std::uint32_t;
constexpr CommandSet set_of(Command command) { return CommandSet{1} << static_cast<unsigned>(command); }

// ---- options ----------------------------------------------------------------------------------------------------------------
enum class Section : std::uint8_t { rows, training, batches, sequences, ltd, output, reading, checks, run, shared };
std::string_view title(Section section);

struct Option;

/// What was given for an option: at least one text, on the command line or in a config file. Of a list its elements.
struct OptionValue {
  const Option& option;
  const std::vector<std::string>& texts;

  const std::string& text() const { return texts.back(); }  ///< the last one wins, as a make variable expects
};

/// plain: one value, the last one given wins; several: one or more values, and may be repeated; local: not in config files; page:
/// asks for a page of text instead of the command.
enum class Kind : std::uint8_t { plain, several, local, page };

/// Commands in which an option's value is a list "a,b,c": flags given twice add up.
struct ListUse {
  CommandSet commands = 0;
  const char* standard = nullptr;  ///< the default there
};

/// What an option says on the pages of some commands, where it means something of its own.
struct HelpUse {
  CommandSet commands = 0;
  const char* help = nullptr;
};

struct Option {
  const char* names;     ///< "-L,--seq-length,--row-tokens"; the first long one is the name in messages and config files
  const char* value;     ///< "N"; "a|b|c" are the choices; nullptr for a switch
  const char* standard;  ///< default as it would be typed; nullptr when there is none
  Section section;       ///< heading on the full help page
  CommandSet commands;   ///< which commands take it
  CommandSet brief;      ///< on whose short page it is
  Kind kind;             ///< most are plain
  const char* help;      ///< a sentence or two, without a full stop; `own_help` goes before it
  void (*set)(Settings& settings, const OptionValue& value);  ///< \throws Error{usage}
  ListUse list = {};
  HelpUse own_help[5] = {};
  HelpUse instead = {};  ///< what to do in commands that do not take it

  std::string name() const;                ///< "seq-length"
  std::vector<std::string> flags() const;  ///< {"-L", "--seq-length", "--row-tokens"}
  bool is_switch() const { return value == nullptr; }
  bool is_configurable() const { return kind == Kind::plain || kind == Kind::several; }
  bool taken_by(Command command) const { return (commands & set_of(command)) != 0; }
  bool is_list(Command command) const { return (list.commands & set_of(command)) != 0; }
  const char* help_of(Command command) const;
  const char* standard_of(Command command) const { return is_list(command) ? list.standard : standard; }
};
std::span<const Option> options();

/// The option whose name or flag (with or without dashes) is `name`, or nullptr.
const Option* find_option(std::string_view name);

/// "a,b,c" -> {"a", "b", "c"}; an empty element is kept, for the option to refuse.
std::vector<std::string> list_elements(std::string_view text);

/// What no single option can check: needs of one option for another, and what a command cannot do without.
/// \throws Error{usage}
void check_settings(const Settings& settings);

}  // namespace shardpack
