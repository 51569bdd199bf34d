#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/wrap.h"

namespace shardpack {

namespace {

constexpr std::size_t kTextColumn = 34;  // where the meaning of an option begins

/// "-L, --seq-length, --row-tokens N"
std::string left_side(const Option& option, bool list) {
  const std::vector<std::string> flags = option.flags();
  const std::string text = fmt::format("{}", fmt::join(flags, ", "));
  return option.is_switch() ? text : fmt::format("{} {}{}", text, option.value, list ? ",..." : "");
}

std::string with_default(std::string_view help, const char* standard) {
  return standard == nullptr ? std::string(help) : fmt::format("{} (default: {})", help, standard);
}

std::string meaning(const Option& option, Command command) {
  return with_default(option.help_of(command), option.standard_of(command));
}

/// For all commands at once, in Markdown.
std::string meaning(const Option& option) {
  std::string text = with_default(option.help, option.standard);
  for (const CommandInfo& command : commands()) {
    if (const char* own = option.help_of(command.command); own != option.help)
      text += fmt::format("; *{}*: {}", command.name, own);
    if (option.is_list(command.command)) text += with_default(fmt::format("; *{}*: a list", command.name), option.list.standard);
  }
  return text;
}

/// Words of `text` in lines that begin at kTextColumn; the first line follows what `page` ends with.
void append_wrapped(std::string& page, std::string_view text) {
  std::size_t column = page.size() - (page.rfind('\n') + 1);
  if (column + 2 > kTextColumn) {
    page += '\n';
    column = 0;
  }
  page.append(kTextColumn - column, ' ');
  append_words(page, text, kTextColumn);
  page += '\n';
}

void append_option(std::string& page, const Option& option, Command command) {
  const std::string left = left_side(option, option.is_list(command));
  page.append(left.compare(0, 2, "--") == 0 ? "      " : "  ").append(left);  // long names line up under long names
  append_wrapped(page, meaning(option, command));
}

std::string heading(const CommandInfo& command) {
  return fmt::format("shardpack {}: {}\n\nusage: shardpack {} {}\n{}", command.name, command.summary, command.name, command.usage,
                     command.note == nullptr ? "" : fmt::format("\n{}\n", command.note));
}

std::string examples(const CommandInfo& command) {
  return fmt::format("\nexamples:\n  shardpack {}\n  shardpack {}\n", command.examples[0], command.examples[1]);
}

/// A bar would end the cell of a Markdown table.
std::string table_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

constexpr Section kSections[] = {Section::rows,   Section::training, Section::batches, Section::sequences, Section::ltd,
                                 Section::output, Section::reading,  Section::checks,  Section::run,       Section::shared};

}  // namespace

std::string overview_page() {
  std::string page =
      "shardpack packs tokenized dataset shards into full rows, with segment and position ids, so that\n"
      "training wastes almost no slot on padding and no sequence attends to another.\n\n"
      "usage: shardpack COMMAND INPUT... [-o OUTPUT] [options]\n\ncommands:\n";
  for (const CommandInfo& command : commands()) page += fmt::format("  {:<9} {}\n", command.name, command.summary);
  page +=
      "\nexamples:\n"
      "  shardpack pack shards/ -L 2048 -o packed/\n"
      "  shardpack plan lengths.csv -L 2048\n"
      "\n'shardpack COMMAND -h' shows what a command needs, 'shardpack COMMAND --help' everything it takes.\n";
  return page;
}

std::string brief_page(Command command) {
  std::string page = heading(info(command)) + "\noptions:\n";
  for (const Option& option : options()) {
    if ((option.brief & set_of(command)) != 0) append_option(page, option, command);
  }
  return page + fmt::format("\n'shardpack {} --help' lists every option.\n", info(command).name) + examples(info(command));
}

std::string full_page(Command command) {
  std::string page = heading(info(command));
  for (const Section section : kSections) {
    std::string lines;
    for (const Option& option : options()) {
      if (option.section == section && option.taken_by(command)) append_option(lines, option, command);
    }
    if (!lines.empty()) page += fmt::format("\n{}:\n{}", title(section), lines);
  }
  return page + examples(info(command));
}

std::string options_markdown() {
  std::string page;
  for (const Section section : kSections) {
    page += fmt::format("### {}\n\n| option | for | meaning |\n|---|---|---|\n", title(section));
    for (const Option& option : options()) {
      if (option.section != section) continue;
      std::vector<std::string> names;
      for (const CommandInfo& command : commands()) {
        if (option.taken_by(command.command)) names.emplace_back(command.name);
      }
      const bool all = names.size() == commands().size();
      page += fmt::format("| `{}` | {} | {} |\n", table_cell(left_side(option, false)),
                          all ? "all" : fmt::format("{}", fmt::join(names, " ")), table_cell(meaning(option)));
    }
    page += "\n";
  }
  return page;
}

}  // namespace shardpack
