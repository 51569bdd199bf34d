#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/nearest.h"
#include "io/file.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

// ---- argv -------------------------------------------------------------------------------------------------------------------

/// A parser of one level: what it does not know is kept with its kind, so that files and unknown flags can be told apart.
class Parser : public CLI::App {
 public:
  Parser() : CLI::App("", "") {
    set_help_flag();
    allow_extras();
  }

  /// The parser keeps an option's texts; understanding them is the table's work.
  CLI::Option* add(const Option& option, Command command) {
    if (option.is_switch()) return add_flag(option.names);
    CLI::Option* added = add_option(option.names, texts_);
    if (option.kind != Kind::several) {
      added->expected(1)->allow_extra_args(false)->multi_option_policy(
          option.is_list(command) ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
    }
    return added;
  }

  struct Unknown {
    bool flag;
    std::string text;
  };
  std::vector<Unknown> unknown() const {
    std::vector<Unknown> all;
    bool files_only = false;  // after "--"
    for (const auto& [kind, text] : missing_) {
      if (text == "--" && !files_only) {
        files_only = true;
        continue;
      }
      all.push_back({!files_only && (kind == CLI::detail::Classifier::LONG || kind == CLI::detail::Classifier::SHORT), text});
    }
    return all;
  }

 private:
  std::vector<std::string> texts_;  // CLI11 wants a place; results() is what is read
};

[[noreturn]] void refuse(const std::string& message, Command command) {
  throw Error(ErrorCode::usage,
              fmt::format("{}{} see: shardpack {} -h", message, message.back() == '?' ? "" : ";", info(command).name));
}

std::string command_names(CommandSet set) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands()) {
    if ((set & set_of(command.command)) != 0) names.emplace_back(command.name);
  }
  if (names.size() == 1) return names.front();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

[[noreturn]] void refuse_unknown_command(const std::string& typed) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands()) names.emplace_back(command.name);
  const std::string meant = nearest(typed, names);
  throw Error(ErrorCode::usage, fmt::format("unknown command '{}'; {}see: shardpack -h", typed,
                                            meant.empty() ? "" : fmt::format("did you mean {}? ", meant)));
}

[[noreturn]] void refuse_unknown_flag(const std::string& typed, Command command) {
  const std::string flag = typed.compare(0, 2, "--") == 0 ? typed.substr(0, typed.find('=')) : typed.substr(0, 2);
  if (const Option* option = find_option(flag); option != nullptr) {
    const bool has_way = (option->instead.commands & set_of(command)) != 0;
    refuse(fmt::format("{} is not for {}; {}", flag, info(command).name,
                       has_way ? option->instead.help : "it belongs to " + command_names(option->commands)),
           command);
  }
  std::vector<std::string> flags;
  for (const Option& option : options()) {
    if (!option.taken_by(command)) continue;
    for (std::string& known : option.flags()) flags.push_back(std::move(known));
  }
  const std::string meant = flag.size() > 2 ? nearest(flag, flags) : "";
  refuse(fmt::format("unknown flag {}{}", flag, meant.empty() ? "" : fmt::format("; did you mean {}?", meant)), command);
}

/// Does this flag take the next argument as its value?
bool takes_next(const std::string& flag) {
  const bool is_long = flag.compare(0, 2, "--") == 0;
  if (is_long ? flag.find('=') != std::string::npos : flag.size() > 2) return false;
  const Option* option = find_option(flag);
  return option != nullptr && !option->is_switch();
}

/// Take the command out of the arguments: the first that is neither a flag nor a flag's value.
std::optional<Command> take_command(std::vector<std::string>& arguments) {
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string word = arguments[at];
    if (word.size() > 1 && word[0] == '-') {
      if (takes_next(word)) ++at;
      continue;
    }
    const auto found = std::find_if(commands().begin(), commands().end(), [&](const CommandInfo& c) { return word == c.name; });
    if (found == commands().end()) refuse_unknown_command(word);
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
    return found->command;
  }
  return std::nullopt;
}

bool asks_for_page(const GivenOptions& given) {
  return std::any_of(given.begin(), given.end(), [](const auto& entry) { return entry.first->kind == Kind::page; });
}

/// Flags go to `given`, files to `inputs`.
void parse_flags(std::vector<std::string> arguments, Command command, GivenOptions& given, std::vector<std::string>& inputs) {
  Parser parser;
  std::map<const Option*, CLI::Option*> added;
  for (const Option& option : options()) {
    if (option.taken_by(command)) added[&option] = parser.add(option, command);
  }
  const std::string last = arguments.empty() ? "" : arguments.back();
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    parser.parse(std::move(arguments));
  } catch (const CLI::ArgumentMismatch&) {  // the only way that is left to fail: every text is welcome here
    refuse(last + " needs a value", command);
  }
  for (const auto& [option, parsed] : added) {
    if (parsed->count() > 0) given[option] = parsed->results();
  }
  for (const Parser::Unknown& unknown : parser.unknown()) {
    if (unknown.flag && !asks_for_page(given)) refuse_unknown_flag(unknown.text, command);
    inputs.push_back(unknown.text);
  }
}

// ---- config file ------------------------------------------------------------------------------------------------------------

/// Options of `command` in a config file: its own section wins over the top. Sections and options of other commands are theirs.
GivenOptions read_config(const std::string& path, Command command) {
  std::istringstream stream(read_small_file(path, std::int64_t{1} << 20));
  GivenOptions top, own;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
    if (item.name == "++" || item.name == "--") continue;  // how CLI11 marks the ends of sections
    const auto refuse_item = [&](const std::string& why) { throw Error(ErrorCode::usage, why, path, item.fullname()); };
    const bool in_section = !item.parents.empty();
    const CommandInfo* section = nullptr;
    std::vector<std::string> names;
    for (const CommandInfo& known : commands()) {
      names.emplace_back(known.name);
      if (in_section && item.parents.front() == known.name) section = &known;
    }
    if (item.parents.size() > 1 || (in_section && section == nullptr)) {
      const std::string meant = nearest(item.parents.front(), names);
      refuse_item("unknown section" + (meant.empty() ? "" : "; did you mean [" + meant + "]?"));
    }
    const Option* option = find_option(item.name);
    if (option == nullptr || !option->is_configurable() || (section != nullptr && !option->taken_by(section->command))) {
      names.clear();
      for (const Option& known : options()) {
        if (known.is_configurable() && (section == nullptr || known.taken_by(section->command))) names.push_back(known.name());
      }
      const std::string meant = nearest(item.name, names);
      refuse_item("unknown option" + (meant.empty() ? "" : "; did you mean " + meant + "?"));
    }
    const Command meant_for = section == nullptr ? command : section->command;
    if (item.inputs.empty()) refuse_item("expected a value");
    if (item.inputs.size() != 1 && option->kind != Kind::several && !option->is_list(meant_for))
      refuse_item("expected one value");
    if (!option->taken_by(command) || (section != nullptr && section->command != command)) continue;
    (section == nullptr ? top : own)[option] = item.inputs;
  }
  own.merge(top);
  return own;
}

/// A value as TOML: numbers and truth values bare, everything else quoted.
std::string toml_value(const std::string& text) {
  const bool number =
      !text.empty() && text.size() < 19 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (number || text == "true" || text == "false") return text;
  const char quote = text.find('"') == std::string::npos ? '"' : '\'';
  return quote + text + quote;
}

// ---- settings ---------------------------------------------------------------------------------------------------------------

/// What was given for a list, element by element.
std::vector<std::string> elements_of(const std::vector<std::string>& texts) {
  std::vector<std::string> elements;
  for (const std::string& text : texts) {
    for (std::string& element : list_elements(text)) elements.push_back(std::move(element));
  }
  return elements;
}

void apply(Settings& settings, const Option& option, const std::vector<std::string>& texts) {
  option.set(settings, {.option = option, .texts = option.is_list(settings.command) ? elements_of(texts) : texts});
}

/// One input a line, as they are; CRLF and empty lines are fine.
void append_listed_files(const std::string& list, std::vector<std::string>& inputs) {
  std::string text;
  if (list == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    text = read_small_file(list);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) inputs.push_back(line);
  }
}

}  // namespace

Request parse_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Request request;
  Settings& settings = request.settings;
  if (!arguments.empty() && arguments.front() == "help") {  // help [COMMAND], as many tools have it
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  const std::optional<Command> command = take_command(arguments);
  request.has_command = command.has_value();
  if (command) {
    settings.command = *command;
    parse_flags(arguments, *command, request.given, settings.inputs);
  } else {
    for (const std::string& flag : arguments) {
      const Option* option = find_option(flag);
      if (option == nullptr || option->kind != Kind::page)
        throw Error(ErrorCode::usage, flag + " needs a command; see: shardpack -h");
      request.given[option] = {"true"};
    }
  }
  if (asks_for_page(request.given)) {  // whatever else is there, right or wrong
    for (const auto& [option, texts] : request.given) {
      if (option->kind == Kind::page) apply(settings, *option, texts);
    }
    return request;
  }
  if (const auto config = request.given.find(find_option("--config")); config != request.given.end()) {
    apply(settings, *config->first, config->second);
    request.given.merge(read_config(settings.config_file, settings.command));
  }
  for (const Option& option : options()) {
    if (!option.taken_by(settings.command)) continue;
    if (const char* standard = option.standard_of(settings.command)) apply(settings, option, {standard});
  }
  for (const auto& [option, texts] : request.given) apply(settings, *option, texts);
  settings.pack.policy.segment_multiple = resolve_segment_multiple(settings.segment_multiple, settings.parallelism);
  if (!settings.files_from.empty()) append_listed_files(settings.files_from, settings.inputs);
  return request;
}

std::string config_text(Command command, const GivenOptions& given) {
  std::string top, section;
  for (const Option& option : options()) {
    if (!option.is_configurable() || !option.taken_by(command)) continue;
    std::string& text = option.section == Section::run || option.section == Section::shared ? top : section;
    const auto found = given.find(&option);
    const char* standard = option.is_switch() ? "false" : option.standard_of(command);
    if (found == given.end() && standard == nullptr) {
      text += fmt::format("# {} =\n", option.name());
      continue;
    }
    std::vector<std::string> values = found == given.end() ? std::vector<std::string>{standard} : found->second;
    if (option.is_list(command)) values = elements_of(values);
    for (std::string& value : values) value = toml_value(value);
    const bool array = option.kind == Kind::several || option.is_list(command);
    text += array ? fmt::format("{} = [{}]\n", option.name(), fmt::join(values, ", "))
                  : fmt::format("{} = {}\n", option.name(), values.back());
  }
  return fmt::format("{}\n[{}]\n{}", top, info(command).name, section);
}

}  // namespace shardpack
