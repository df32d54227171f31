#include "help/help_text.h"

#include <fmt/format.h>

namespace hangscope::cli {
namespace {

constexpr size_t kTextColumn = 24;

// "  NAME      TEXT", the text from a column of its own.
std::string Entry(const std::string& name, const std::string& text) {
  std::string line = "  " + name;
  if (text.empty()) return line + "\n";
  if (line.size() + 2 > kTextColumn) {
    line += "\n" + std::string(kTextColumn, ' ');
  } else {
    line.resize(kTextColumn, ' ');
  }
  return line + Wrap(text, kTextColumn, kTextColumn) + "\n";
}

std::string Entries(const std::vector<HelpEntry>& entries) {
  std::string text;
  for (const HelpEntry& entry : entries) text += Entry(entry.name, entry.text);
  return text;
}

std::string Examples(const std::vector<HelpEntry>& examples) {
  std::string text;
  for (const HelpEntry& example : examples) {
    text += "  " + example.name + "\n";
    if (!example.text.empty()) text += "      " + Wrap(example.text, 6, 6) + "\n";
  }
  return text;
}

}  // namespace

std::string Wrap(std::string_view text, size_t indent, size_t used, size_t columns) {
  std::string wrapped;
  size_t column = used;
  bool begins = true;  // nothing but the indentation is in the line
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!begins && column + 1 + word.size() > columns) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
      begins = true;
    }
    if (!begins) {
      wrapped += ' ';
      column++;
    }
    wrapped += word;
    column += word.size();
    begins = false;
  }
  return wrapped;
}

std::vector<std::string> Paragraphs(std::string_view text) {
  std::vector<std::string> paragraphs;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    if (end > 0) paragraphs.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return paragraphs;
}

std::string NamesOf(const OptionHelp& option) {
  return fmt::format("{}{}{}", fmt::join(option.names, ", "), option.value.empty() ? "" : " ",
                     option.value);
}

std::string StatusesOf(const CommandHelp& help) {
  std::string text;
  for (const HelpEntry& status : help.statuses) {
    if (!text.empty()) text += "; ";
    text += status.name + (status.text.empty() ? "" : " ") + status.text;
  }
  return text;
}

std::string HelpText(const CommandHelp& help, bool all) {
  std::string text;
  size_t left_out = 0;
  for (const std::string& usage : help.usages)
    text += (text.empty() ? "usage: " : "       ") + usage + "\n";
  for (const std::string& paragraph : Paragraphs(help.about))
    text += "\n" + Wrap(paragraph, 0, 0) + "\n";
  if (!help.examples.empty())
    text += fmt::format("\nexample{}\n{}", help.examples.size() > 1 ? "s" : "",
                        Examples(help.examples));
  if (!help.operands.empty()) text += "\n" + Entries(help.operands);
  for (const OptionGroup& group : help.groups) {
    if (!all && !group.in_short_help) {
      left_out += group.options.size();
      continue;
    }
    text += "\n" + (group.title.empty() ? "" : group.title + "\n");
    for (const OptionHelp& option : group.options) text += Entry(NamesOf(option), option.text);
  }
  if (left_out > 0)
    text += fmt::format("\nhangscope {} --help lists {} more options.\n", help.name, left_out);
  for (const std::string& paragraph : Paragraphs(help.after))
    text += "\n" + Wrap(paragraph, 0, 0) + "\n";
  return text + "\n" + Wrap("Status: " + StatusesOf(help) + ".", 0, 0) + "\n";
}

}  // namespace hangscope::cli
