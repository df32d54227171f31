#include "tools/doctor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

constexpr std::string_view kIndent = "            ";

std::string_view Mark(CheckState state) {
  switch (state) {
    case CheckState::kWorks:
      return "works";
    case CheckState::kMissing:
      return "MISSING";
    case CheckState::kOptional:
      return "optional";
    case CheckState::kAbsent:
      return "none here";
  }
  return "";
}

// Lines of words, each behind the indentation.
std::string Wrapped(std::string_view text) {
  constexpr size_t kLineColumns = 84;
  std::string lines;
  while (!text.empty()) {
    size_t end = text.size();
    if (end > kLineColumns) {
      const size_t space = text.rfind(' ', kLineColumns);
      end = space == std::string_view::npos ? kLineColumns : space;
    }
    lines += fmt::format("{}{}\n", kIndent, text.substr(0, end));
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ', end)));
  }
  return lines;
}

std::string CheckText(const DoctorCheck& check) {
  if (check.state == CheckState::kWorks) {
    return fmt::format("{:<10}  {}{}\n", Mark(check.state), check.what,
                       check.why.empty() ? "" : fmt::format(" ({})", check.why));
  }
  std::string text =
      fmt::format("{:<10}  {}\n", Mark(check.state), check.what) + Wrapped(check.why);
  for (size_t i = 0; i < check.commands.size(); ++i) {
    text += fmt::format("{}{:>4} {}\n", kIndent, i == 0 ? "$" : "or $", check.commands[i]);
  }
  return text;
}

std::string Headline(const DoctorReport& report) {
  size_t works = 0;
  size_t missing = 0;
  for (const DoctorCheck& check : report.checks) {
    if (check.state == CheckState::kWorks) ++works;
    if (check.state == CheckState::kMissing) ++missing;
  }
  if (missing == 0)
    return fmt::format("hangscope doctor: all that is needed works here, {} of {} checks in all\n",
                       works, report.checks.size());
  return fmt::format(
      "hangscope doctor: {} of {} checks work here; {} that {} needed {} not, and this grants "
      "{}:\n",
      works, report.checks.size(), missing, missing == 1 ? "is" : "are",
      missing == 1 ? "does" : "do", missing == 1 ? "it" : "them");
}

}  // namespace

std::string DoctorText(const DoctorReport& report) {
  std::string text = Headline(report);
  for (const CheckState state :
       {CheckState::kMissing, CheckState::kWorks, CheckState::kOptional, CheckState::kAbsent}) {
    for (const DoctorCheck& check : report.checks) {
      if (check.state == state) text += CheckText(check);
    }
  }
  return text;
}

std::string DoctorJson(const DoctorReport& report) {
  nlohmann::ordered_json json{
      {"type", "doctor"}, {"version", kJsonVersion}, {"all_work", report.all_work()}};
  json["checks"] = nlohmann::ordered_json::array();
  for (const DoctorCheck& check : report.checks) {
    nlohmann::ordered_json mine{{"name", check.name},
                                {"what", check.what},
                                {"state", CheckStateName(check.state)},
                                {"why", check.why}};
    mine["commands"] = check.commands;
    json["checks"].push_back(mine);
  }
  return JsonLine(json);
}

}  // namespace hangscope
