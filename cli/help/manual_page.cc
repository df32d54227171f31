#include "help/manual_page.h"

#include <fmt/format.h>

#include "hangscope/version.h"
#include "help/help_text.h"

namespace hangscope::cli {
namespace {

// As it is printed: no dash becomes a hyphen, no line a request.
std::string Plain(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    const bool at_begin = plain.empty() || plain.back() == '\n';
    if (at_begin && (c == '.' || c == '\'')) plain += "\\&";
    if (c == '\\') {
      plain += "\\e";
    } else if (c == '-') {
      plain += "\\-";
    } else if (c == '\'') {
      plain += "\\(aq";
    } else if (c == '~') {
      plain += "\\(ti";
    } else if (c == '^') {
      plain += "\\(ha";
    } else {
      plain += c;
    }
  }
  return plain;
}

std::string Bold(std::string_view text) { return "\\fB" + Plain(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Plain(text) + "\\fR"; }

std::string Filled(std::string_view text) { return Plain(Wrap(text, 0, 0)); }

std::string AllParagraphs(std::string_view text) {
  std::string page;
  for (const std::string& paragraph : Paragraphs(text)) page += ".PP\n" + Filled(paragraph) + "\n";
  return page;
}

std::string Tagged(const std::string& tag, std::string_view text) {
  return ".TP\n" + tag + "\n" + Filled(text) + "\n";
}

std::string Names(const OptionHelp& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + Bold(name);
  return option.value.empty() ? names : names + " " + Italic(option.value);
}

std::string Title(const std::string& name) {
  std::string title;
  for (const char c : name) title += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return ".TH " + Plain(title) + " 1 \"\" \"hangscope " HANGSCOPE_VERSION "\" \"hangscope\"\n";
}

std::string Head(const std::string& name, const CommandHelp& help) {
  std::string page = Title(name);
  page += ".SH NAME\n" + Plain(name) + " \\- " + Plain(help.summary) + "\n.SH SYNOPSIS\n";
  for (const std::string& usage : help.usages)
    page += (usage == help.usages.front() ? "" : ".br\n") + Plain(usage) + "\n";
  return page + ".SH DESCRIPTION\n" + AllParagraphs(help.about);
}

std::string Examples(const CommandHelp& help) {
  if (help.examples.empty()) return "";
  std::string page = ".SH EXAMPLES\n";
  for (const HelpEntry& example : help.examples) {
    page += ".PP\n.nf\n" + Plain(example.name) + "\n.fi\n";
    if (!example.text.empty()) page += ".RS\n" + Filled(example.text) + "\n.RE\n";
  }
  return page;
}

std::string Statuses(const CommandHelp& help) {
  std::string page = ".SH EXIT STATUS\n";
  for (const HelpEntry& status : help.statuses)
    page += Tagged(Bold(status.name), !status.text.empty() ? status.text
                                      : status.name == "0" ? "it went well"
                                                           : "it ended by itself");
  return page;
}

constexpr std::string_view kEnvironment =
    "Any option can be set by the environment: HANGSCOPE_OPT_ON_HANG=kill is --on-hang kill, and 1 "
    "sets a flag. The words of the command win; commands without the option ignore it, and the "
    "program "
    "that run starts does not get the variables. NO_COLOR, where it is set and not empty, switches "
    "colours off.";

}  // namespace

std::string ManualPage(const CommandHelp& help) {
  std::string page = Head("hangscope-" + help.name, help);
  for (const HelpEntry& operand : help.operands) page += Tagged(Bold(operand.name), operand.text);
  page += ".SH OPTIONS\n";
  for (const OptionGroup& group : help.groups) {
    if (!group.title.empty()) page += ".SS " + Plain(group.title) + "\n";
    for (const OptionHelp& option : group.options) page += Tagged(Names(option), option.text);
  }
  page += Tagged(Bold("--help") + ", " + Bold("-h"), "print a short form of this page");
  if (!help.after.empty()) page += ".SH NOTES\n" + AllParagraphs(help.after);
  page += Statuses(help) + ".SH ENVIRONMENT\n.PP\n" + Filled(kEnvironment) + "\n" + Examples(help);
  return page + ".SH SEE ALSO\n" + Bold("hangscope") + "(1)\n";
}

std::string MainManualPage(const CommandHelp& main, const std::vector<CommandHelp>& commands) {
  std::string page = Head("hangscope", main) + ".SH COMMANDS\n";
  for (const CommandHelp& command : commands)
    page += Tagged(Bold("hangscope-" + command.name) + "(1)", command.summary);
  page += ".SH OPTIONS\n";
  for (const OptionGroup& group : main.groups)
    for (const OptionHelp& option : group.options) page += Tagged(Names(option), option.text);
  page += Statuses(main) + ".SH ENVIRONMENT\n.PP\n" + Filled(kEnvironment) + "\n" + Examples(main);
  page += ".SH SEE ALSO\n";
  for (const CommandHelp& command : commands)
    page +=
        Bold("hangscope-" + command.name) + "(1)" + (&command == &commands.back() ? "\n" : ",\n");
  return page;
}

}  // namespace hangscope::cli
