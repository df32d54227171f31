#include "runtime/bash/bash_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/file_system.h"

namespace hangscope {
namespace {

constexpr std::string_view kVersion = "5.2";
constexpr size_t kLongestText = 1024;
constexpr size_t kLongestName = 12;  // of the variables that are wanted, and one more

// Of a VAR_CONTEXT, a HASH_TABLE, what is in one, a SHELL_VAR, an ARRAY, and what is in that.
constexpr uint64_t kTableOfContext = 32;
constexpr uint64_t kBuckets = 0, kBucketCount = 8;
constexpr uint64_t kNextInBucket = 0, kKey = 8, kData = 16;
constexpr uint64_t kValueOfVariable = 8;
constexpr uint64_t kHead = 16;
constexpr uint64_t kValueOfElement = 8, kNextElement = 16;

constexpr uint32_t kMostBuckets = 1 << 14;
constexpr size_t kMostVariables = 1 << 12;

int NumberIn(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::max(number, 0);
}

}  // namespace

Result<BashReader> BashReader::Open(const FindBashSymbol& find, ReadMemory read) {
  Addresses at;
  const std::pair<std::string_view, uint64_t*> wanted[] = {
      {"executing", &at.executing},          {"line_number", &at.line},
      {"shell_script_filename", &at.script}, {"command_execution_string", &at.command},
      {"global_variables", &at.variables},
  };
  for (const auto& [name, into] : wanted) {
    const auto address = find(name);
    if (!address) return Status::NotFound(fmt::format("it has no symbol {}", name));
    *into = *address;
  }
  const auto version = find("dist_version");
  BashReader reader(at, std::move(read));
  const std::string text = version ? reader.TextAt(*version) : "";
  if (text != kVersion)
    return Status::NotFound(
        fmt::format("bash {} may keep its variables in another way than {}, which is understood",
                    text.empty() ? "of an unknown version" : text, kVersion));
  return reader;
}

// Of a variable that points to it.
std::string BashReader::TextAt(uint64_t pointer) {
  const uint64_t text = memory_.Kept<uint64_t>(pointer);
  return text == 0 ? "" : memory_.KeptText(text, kLongestText);
}

std::vector<std::string> BashReader::Elements(uint64_t array, size_t most) {
  std::vector<std::string> elements;
  if (array == 0) return elements;
  const uint64_t head = memory_.Kept<uint64_t>(array + kHead);
  for (uint64_t at = memory_.Kept<uint64_t>(head + kNextElement);
       at != head && at != 0 && elements.size() < most;
       at = memory_.Kept<uint64_t>(at + kNextElement))
    elements.push_back(TextAt(at + kValueOfElement));
  return elements;
}

// In one pass; 0: there is no such variable.
std::array<uint64_t, BashReader::kArrays> BashReader::FindArrays(
    const std::array<std::string_view, kArrays>& names) {
  std::array<uint64_t, kArrays> arrays = {};
  const uint64_t context = memory_.Kept<uint64_t>(at_.variables);
  const uint64_t table = memory_.Kept<uint64_t>(context + kTableOfContext);
  const uint64_t buckets = memory_.Kept<uint64_t>(table + kBuckets);
  const uint32_t count = std::min(memory_.Kept<uint32_t>(table + kBucketCount), kMostBuckets);
  size_t seen = 0;
  for (uint32_t i = 0; i < count && seen < kMostVariables; ++i) {
    for (uint64_t at = memory_.Kept<uint64_t>(buckets + i * sizeof(uint64_t));
         at != 0 && seen < kMostVariables;
         at = memory_.Kept<uint64_t>(at + kNextInBucket), ++seen) {
      const std::string name = memory_.KeptText(memory_.Kept<uint64_t>(at + kKey), kLongestName);
      const auto wanted = std::find(names.begin(), names.end(), name);
      if (wanted == names.end()) continue;
      const uint64_t variable = memory_.Kept<uint64_t>(at + kData);
      arrays[static_cast<size_t>(wanted - names.begin())] =
          memory_.Kept<uint64_t>(variable + kValueOfVariable);
    }
  }
  return arrays;
}

// The shell's line is that of the innermost function, BASH_LINENO those that the others were called
// in.
std::vector<BashFrame> BashReader::Frames(size_t most) {
  if (memory_.Kept<int32_t>(at_.executing) == 0) return {};
  const auto [of_functions, of_scripts, of_lines] =
      FindArrays({"FUNCNAME", "BASH_SOURCE", "BASH_LINENO"});
  const std::vector<std::string> functions = Elements(of_functions, most);
  std::string script = TextAt(at_.script);
  if (script.empty() && memory_.Kept<uint64_t>(at_.command) != 0) script = "-c";
  if (script.empty() && functions.empty()) return {};
  const std::vector<std::string> scripts = Elements(of_scripts, most);
  const std::vector<std::string> lines = Elements(of_lines, most);
  std::vector<BashFrame> frames;
  int line = std::max(memory_.Kept<int32_t>(at_.line), 0);
  for (size_t i = 0; i < std::max<size_t>(functions.size(), 1) && i < most; ++i) {
    // A function of a command line is of "main", an exported one of the "environment".
    const bool is_told = i < scripts.size() && !scripts[i].empty() && scripts[i] != "main" &&
                         scripts[i] != "environment";
    frames.push_back(
        {i < functions.size() ? functions[i] : "main", is_told ? scripts[i] : script, line});
    line = i < lines.size() ? NumberIn(lines[i]) : 0;
  }
  return frames;
}

StackFrame BashReader::Name(const BashFrame& frame) {
  StackFrame named;
  named.language = FrameLanguage::kShell;
  named.function = frame.function;
  named.module = frame.script;
  const std::string name = frame.script == "-c" ? "bash -c" : std::string(NameOf(frame.script));
  if (!name.empty()) named.source = frame.line == 0 ? name : fmt::format("{}:{}", name, frame.line);
  return named;
}

}  // namespace hangscope
