#include "verdict/junit.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

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

std::string Outcome(const char* tag, const std::string& message, const std::string& report) {
  return fmt::format("    <{0} message=\"{1}\">{2}</{0}>\n", tag, Escape(message), Escape(report));
}

}  // namespace

std::string JunitXml(const JunitCase& result) {
  const bool failed = !result.failure.empty();
  const bool error = !failed && !result.error.empty();
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format(
      "<testsuite name=\"hangscope\" tests=\"1\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n",
      failed ? 1 : 0, error ? 1 : 0, Seconds(result.elapsed));
  xml += fmt::format("  <testcase classname=\"hangscope\" name=\"{}\" time=\"{:.3f}\">\n",
                     Escape(result.name), Seconds(result.elapsed));
  if (failed) xml += Outcome("failure", result.failure, result.report);
  if (error) xml += Outcome("error", result.error, result.report);
  xml += "  </testcase>\n</testsuite>\n";
  return xml;
}

}  // namespace hangscope
