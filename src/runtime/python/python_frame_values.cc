#include "runtime/python/python_frame_values.h"

#include <algorithm>

#include "runtime/python/python_layout.h"

namespace hangscope {
namespace {

namespace layout = python_layout;

constexpr uint64_t kMostVariables = 256;
constexpr uint64_t kMostHandlerBytes = 64 << 10;
constexpr size_t kMostDepth = 64;

// A number of six bits a byte, the highest first. `at` moves behind it.
std::optional<uint64_t> ReadNumber(std::string_view table, size_t* at) {
  constexpr uint8_t kMoreFollows = 0x40;
  constexpr uint8_t kValueBits = 0x3f;
  constexpr int kMostBytes = 6;
  uint64_t value = 0;
  for (int i = 0; i < kMostBytes && *at < table.size(); ++i) {
    const auto byte = static_cast<uint8_t>(table[(*at)++]);
    value = value << 6 | (byte & kValueBits);
    if ((byte & kMoreFollows) == 0) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> DepthOfHandler(std::string_view table, uint64_t unit) {
  for (size_t at = 0; at < table.size();) {
    const auto start = ReadNumber(table, &at);
    const auto size = ReadNumber(table, &at);
    const auto target = ReadNumber(table, &at);
    const auto depth = ReadNumber(table, &at);
    if (!start || !size || !target || !depth || *start > unit) return std::nullopt;
    if (unit < *start + *size) return static_cast<size_t>(*depth >> 1);
  }
  return std::nullopt;
}

std::vector<PythonObjects::Entry> PythonFrameValues::Variables(const PythonFrame& frame) {
  auto code = reader_.CodeAt(frame.code);
  if (!code.ok()) return {};
  PythonObjects& objects = reader_.objects();
  const std::vector<uint64_t> names = objects.Elements((*code)->names);
  const size_t count =
      std::min({static_cast<size_t>((*code)->variables), names.size(), size_t{kMostVariables}});
  std::vector<uint64_t> values(count);
  std::vector<PythonObjects::Entry> variables;
  if (!objects.Read(frame.address + layout::kFrameValues, values.data(), values.size() * 8))
    return {};
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = objects.IsBuiltin(values[i], "cell")
                               ? objects.Pointer(values[i] + layout::kCellContent)
                               : values[i];
    if (value != 0) variables.push_back({names[i], value, false});
  }
  return variables;
}

std::vector<uint64_t> PythonFrameValues::UsedLater(const PythonFrame& frame) {
  auto found = reader_.CodeAt(frame.code);
  if (!found.ok()) return {};
  const PythonCode& code = **found;
  PythonObjects& objects = reader_.objects();
  std::vector<uint64_t> values(static_cast<size_t>(std::min(code.variables, kMostVariables)));
  if (!objects.Read(frame.address + layout::kFrameValues, values.data(), values.size() * 8))
    return {};
  const PythonInstructions& instructions = reader_.InstructionsOf(code);
  const uint64_t unit = frame.instruction < code.begin
                            ? 0
                            : (frame.instruction - code.begin) / layout::kCodeUnitBytes;
  std::vector<uint64_t> used;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0 || !instructions.MayUseFrom(unit, static_cast<uint32_t>(i))) continue;
    used.push_back(objects.IsBuiltin(values[i], "cell")
                       ? objects.Pointer(values[i] + layout::kCellContent)
                       : values[i]);
  }
  return used;
}

uint64_t PythonFrameValues::Self(const PythonFrame& frame) {
  for (const PythonObjects::Entry& variable : Variables(frame))
    return reader_.objects().NameOf(variable) == "self" ? variable.object : 0;
  return 0;
}

const std::string& PythonFrameValues::HandlersOf(const PythonCode& code) {
  PythonObjects& objects = reader_.objects();
  const auto [known, is_new] = handlers_.try_emplace(code.handlers);
  std::string& table = known->second;
  if (!is_new || !objects.IsBuiltin(code.handlers, "bytes")) return table;
  const uint64_t length = objects.Pointer(code.handlers + layout::kBytesLength);
  if (length > kMostHandlerBytes) return table;
  table.resize(static_cast<size_t>(length));
  if (!objects.Read(code.handlers + layout::kBytesText, table.data(), table.size())) table.clear();
  return table;
}

std::vector<uint64_t> PythonFrameValues::Entered(const PythonFrame& frame, std::string_view exit) {
  auto found = reader_.CodeAt(frame.code);
  if (!found.ok() || frame.instruction < (*found)->begin) return {};
  const PythonCode& code = **found;
  PythonObjects& objects = reader_.objects();
  const auto depth =
      DepthOfHandler(HandlersOf(code), (frame.instruction - code.begin) / layout::kCodeUnitBytes);
  if (!depth || *depth == 0) return {};
  if (code.variables > kMostHandlerBytes) return {};
  std::vector<uint64_t> values(std::min(*depth, kMostDepth));
  const uint64_t begin = frame.address + layout::kFrameValues + code.variables * 8;
  if (!objects.Read(begin, values.data(), values.size() * 8)) return {};
  std::vector<uint64_t> entered;
  for (const uint64_t value : values) {
    const uint64_t manager = value % 8 == 0 ? objects.SelfOf(value, exit) : 0;
    if (manager != 0) entered.push_back(manager);
  }
  uint8_t opcode = 0;
  if (!objects.Read(frame.instruction, &opcode, 1)) return {};
  if (opcode == layout::kWithExceptStart && !entered.empty()) entered.pop_back();
  return entered;
}

std::vector<PythonObjects::Entry> PythonFrameValues::Globals(const PythonFrame& frame) {
  PythonObjects& objects = reader_.objects();
  return objects.Items(objects.Pointer(frame.address + layout::kFrameGlobals));
}

bool PythonFrameValues::MayRelease(const PythonFrame& frame) {
  const auto [known, is_new] = releases_.try_emplace(frame.code, false);
  auto code = reader_.CodeAt(frame.code);
  if (!is_new || !code.ok()) return known->second;
  // What the standard library gives back is its own; a condition is asked for by name.
  const bool is_of_library =
      IsPythonLibrary((*code)->path) && (*code)->path.find("-packages/") == std::string::npos;
  const std::vector<uint64_t> names =
      is_of_library ? std::vector<uint64_t>() : reader_.objects().Elements((*code)->attributes);
  known->second = std::any_of(names.begin(), names.end(), [&](uint64_t name) {
    return reader_.objects().ShortText(name) == "release";
  });
  return known->second;
}

std::vector<PythonFrame> PythonFrameValues::FrameOf(uint64_t object) const {
  PythonObjects& objects = reader_.objects();
  int8_t state = 0;
  if ((!objects.IsBuiltin(object, "coroutine") && !objects.IsBuiltin(object, "generator") &&
       !objects.IsBuiltin(object, "async_generator")) ||
      !objects.Read(object + layout::kGeneratorState, &state, 1) || state > layout::kGeneratorRuns)
    return {};
  return reader_.FramesFrom(object + layout::kGeneratorFrame, 1).frames;
}

}  // namespace hangscope
