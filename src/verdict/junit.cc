#include "verdict/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostOfACommandInMessage = 120;

// XML 1.0 allows no control characters but tab, newline and return, and neither U+FFFE nor U+FFFF.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : ValidUtf8(text)) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\t':
      case '\n':
      case '\r':
        escaped += c;
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        break;
    }
  }
  for (const char* each : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (size_t at = 0; (at = escaped.find(each, at)) != std::string::npos;)
      escaped.replace(at, 3, "?");
  }
  return escaped;
}

// Of an attribute: there a reader of XML takes the end of a line for a blank.
std::string EscapeAttribute(const std::string& text) {
  std::string escaped;
  for (const char c : Escape(text))
    escaped += c == '\n' ? "&#10;" : c == '\r' ? "&#13;" : c == '\t' ? "&#9;" : std::string(1, c);
  return escaped;
}

std::string Outcome(const char* tag, const std::string& message, const std::string& report) {
  return fmt::format("    <{0} message=\"{1}\">{2}</{0}>\n", tag, EscapeAttribute(message),
                     Escape(report));
}

// Output as it may reach a terminal. Tabs stay, and a console's ends of lines become a file's.
std::string Output(const std::string& text) {
  std::string output;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min({text.find('\t', at), text.find("\r\n", at), text.size()});
    output += PrintableLines(std::string_view(text).substr(at, end - at));
    if (end < text.size() && text[end] == '\t') output += '\t';
    at = end + 1;
  }
  return output;
}

std::string End(const char* tag, const std::string& text) {
  return text.empty() ? "" : fmt::format("    <{0}>{1}</{0}>\n", tag, Escape(Output(text)));
}

// The first to stop, of the cores that did.
std::string FirstCore(const Verdict& verdict) {
  const CoreVerdict* first = nullptr;
  for (const CoreVerdict& core : verdict.cores) {
    const bool stands_still = core.state == State::kLooping || core.state == State::kSilent;
    if (stands_still && (first == nullptr || core.since < first->since)) first = &core;
  }
  if (first == nullptr) return {};
  std::string text = first->name;
  for (const std::string& part : {first->place.text, first->place.function, first->place.source})
    text += part.empty() ? "" : "  " + part;
  return text;
}

// Whose thread the first finding begins with, and how that process was started.
std::string ProcessOf(const Verdict& verdict) {
  const auto& subjects = verdict.findings.front().subjects;
  for (const SubjectStack& stack : verdict.stacks) {
    if (subjects.empty() || stack.thread != subjects.front().thread) continue;
    return fmt::format("  (process {}: {})", stack.process,
                       Printable(stack.command, kMostOfACommandInMessage));
  }
  return {};
}

}  // namespace

std::string HeadlineWithSubject(const Verdict& verdict) {
  std::string subject;
  if (!verdict.by_finding)
    subject = FirstCore(verdict);
  else if (!verdict.findings.empty() && !verdict.findings.front().lines.empty())
    subject = verdict.findings.front().lines.front() + ProcessOf(verdict);
  return verdict.summary + (subject.empty() ? "" : ": " + Printable(subject));
}

std::string JunitXml(const JunitCase& result) { return JunitXml(std::vector{result}); }

std::string JunitXml(const std::vector<JunitCase>& results) {
  size_t failures = 0;
  size_t errors = 0;
  TimeNs elapsed = 0;  // they went on beside each other
  std::string cases;
  for (const JunitCase& result : results) {
    const bool failed = !result.failure.empty();
    const bool error = !failed && !result.error.empty();
    failures += failed ? 1 : 0;
    errors += error ? 1 : 0;
    elapsed = std::max(elapsed, result.elapsed);
    cases += fmt::format("  <testcase classname=\"hangscope\" name=\"{}\" time=\"{:.3f}\">\n",
                         EscapeAttribute(result.name), Seconds(result.elapsed));
    if (failed) cases += Outcome("failure", result.failure, result.report);
    if (error) cases += Outcome("error", result.error, result.report);
    cases += End("system-out", result.out) + End("system-err", result.err);
    cases += "  </testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"hangscope\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n"
      "{}</testsuite>\n",
      results.size(), failures, errors, Seconds(elapsed), cases);
}

}  // namespace hangscope
