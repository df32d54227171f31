#include "runtime/v8/v8_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/file_system.h"

namespace hangscope {
namespace {

constexpr uint64_t kWord = 8;
constexpr uint64_t kObjectTag = 1;  // of a word that is an object's address
constexpr uint64_t kTagMask = 3;
constexpr unsigned kNumberShift = 32;  // of a word that is a small number
constexpr size_t kDeepestText = 8;     // of strings that are made of others
constexpr size_t kLongestText = 4096;
constexpr size_t kLargestSource = 16 << 20;  // in bytes
constexpr size_t kLongestTable = 1 << 20;
constexpr size_t kMostFramesOfV8 = 1 << 14;
constexpr uint64_t kFurthestExit = 1 << 10;  // in bytes
constexpr int64_t kMostScopeLocals = 75;     // of which a list has the names
constexpr uint64_t kScopeWordsOfName = 3;    // behind its locals
constexpr uint64_t kScopeWordsBehindLocals = 12;

bool IsObject(uint64_t word) { return (word & kTagMask) == kObjectTag; }
bool IsNumber(uint64_t word) { return (word & 1) == 0; }
int64_t NumberOf(uint64_t word) { return static_cast<int64_t>(word) >> kNumberShift; }

// The numbers of a table of positions: seven bits a byte, the lowest first, the sign in bit 0.
class PositionTable {
 public:
  explicit PositionTable(std::string bytes) : bytes_(std::move(bytes)) {}

  std::optional<int64_t> Next() {
    uint64_t bits = 0;
    for (unsigned shift = 0; at_ < bytes_.size() && shift < std::numeric_limits<int64_t>::digits;
         shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      bits |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0)
        return static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
    }
    return std::nullopt;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<V8Reader>> V8Reader::Open(const FindV8Symbol& find, ReadMemory read) {
  RuntimeMemory memory(read);
  Result<V8Layout> layout = V8Layout::Read(find, &memory);
  if (!layout.ok()) return layout.status();
  return std::unique_ptr<V8Reader>(new V8Reader(*layout, std::move(read)));
}

uint64_t V8Reader::Slot(uint64_t fp, int64_t offset) const {
  return memory_.Now<uint64_t>(fp + static_cast<uint64_t>(offset));
}

uint64_t V8Reader::Field(uint64_t object, int64_t offset) const {
  return Slot(object - kObjectTag, offset);
}

std::optional<int64_t> V8Reader::Type(uint64_t object) const {
  if (!IsObject(object)) return std::nullopt;
  const uint64_t map = Field(object, layout_.map_of);
  uint16_t type = 0;
  if (!IsObject(map) ||
      !memory_.ReadInto(map - kObjectTag + static_cast<uint64_t>(layout_.map_type), &type,
                        sizeof type))
    return std::nullopt;
  return type;
}

int32_t V8Reader::LengthOf(uint64_t string) const {
  return memory_.Now<int32_t>(string - kObjectTag + static_cast<uint64_t>(layout_.string_length));
}

// In bytes, of a character of such a string.
size_t V8Reader::UnitOf(int64_t type) const {
  return (type & layout_.encoding_mask) == layout_.one_byte_tag ? 1 : 2;
}

// Of a string that has its characters in itself, so many of them; what is not ASCII is '?'.
std::optional<std::string> V8Reader::Characters(uint64_t string, int64_t type, size_t count) const {
  if ((type & layout_.representation_mask) != layout_.sequence_tag) return std::nullopt;
  const size_t unit = UnitOf(type);
  const int64_t offset = unit == 1 ? layout_.one_byte_text : layout_.two_byte_text;
  std::string bytes(count * unit, '\0');
  if (!memory_.ReadInto(string - kObjectTag + static_cast<uint64_t>(offset), bytes.data(),
                        bytes.size()))
    return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const char first = bytes[i * unit];
    const bool fits = static_cast<uint8_t>(first) < 0x80 && (unit == 1 || bytes[i * unit + 1] == 0);
    bytes[i] = fits ? first : '?';
  }
  bytes.resize(count);
  return bytes;
}

std::string V8Reader::Text(uint64_t string, size_t depth) const {
  const auto type = Type(string);
  if (!type || *type >= layout_.first_other_type || depth > kDeepestText) return {};
  const int32_t length = LengthOf(string);
  if (length <= 0) return {};
  const size_t characters = std::min(static_cast<size_t>(length), kLongestText);
  const int64_t made_as = *type & layout_.representation_mask;
  if (made_as == layout_.thin_tag) return Text(Field(string, layout_.thin_actual), depth + 1);
  if (made_as == layout_.cons_tag) {
    std::string text = Text(Field(string, layout_.cons_first), depth + 1) +
                       Text(Field(string, layout_.cons_second), depth + 1);
    return text.substr(0, kLongestText);
  }
  if (made_as == layout_.sliced_tag) {
    const int64_t at = NumberOf(Field(string, layout_.sliced_offset));
    const std::string whole = Text(Field(string, layout_.sliced_parent), depth + 1);
    if (at < 0 || static_cast<size_t>(at) >= whole.size()) return {};
    return whole.substr(static_cast<size_t>(at), characters);
  }
  return Characters(string, *type, characters).value_or("");
}

// The frame by which JavaScript called what is further in, where nobody knows the frame pointer: it
// says what it is, and its caller's frame lies further out.
std::optional<uint64_t> V8Reader::FindExit(uint64_t from, uint64_t end) const {
  const auto kind_at = static_cast<uint64_t>(layout_.frame_context);
  for (uint64_t fp = (from + kWord - 1) / kWord * kWord; fp < end && fp - from < kFurthestExit;
       fp += kWord) {
    const uint64_t kind = memory_.Now<uint64_t>(fp + kind_at);
    const uint64_t caller = memory_.Now<uint64_t>(fp);
    if (!IsNumber(kind) || caller <= fp || caller >= end) continue;
    const auto type = static_cast<int64_t>(kind >> 1);
    if (type == layout_.exit_frame || type == layout_.builtin_exit_frame) return fp;
  }
  return std::nullopt;
}

std::vector<ScriptFrame> V8Reader::FramesFrom(const ScriptAnchor& from, uint64_t end, size_t most,
                                              const std::function<bool(uint64_t)>& is_interpreter) {
  std::vector<ScriptFrame> frames;
  const auto begin =
      from.frame_pointer && *from.frame_pointer >= from.stack_pointer && *from.frame_pointer < end
          ? from.frame_pointer
          : FindExit(from.stack_pointer, end);
  if (!begin) return frames;
  uint64_t pc = from.pc;
  bool calls = from.calls;
  size_t steps = 0;
  for (uint64_t fp = *begin; frames.size() < most && ++steps < kMostFramesOfV8;) {
    const uint64_t kind = Slot(fp, layout_.frame_context);
    if (IsObject(kind)) {
      // Where the interpreter is in the bytecode is in its registers, but where it calls.
      if (auto frame = FrameAt(fp, calls && is_interpreter(pc))) frames.push_back(*frame);
    } else {
      const auto type = static_cast<int64_t>(kind >> 1);
      if (type == layout_.entry_frame || type == layout_.construct_entry_frame) break;
    }
    const uint64_t caller = memory_.Now<uint64_t>(fp);
    pc = memory_.Now<uint64_t>(fp + kWord);
    calls = true;
    if (caller <= fp || caller >= end) break;
    fp = caller;
  }
  return frames;
}

std::optional<ScriptFrame> V8Reader::FrameAt(uint64_t fp, bool is_interpreted) {
  const uint64_t function = Slot(fp, layout_.frame_function);
  if (!IsObject(function)) return std::nullopt;
  const uint64_t shared = Field(function, layout_.function_shared);
  if (!IsOfType(shared, layout_.shared_type)) return std::nullopt;
  ScriptFrame frame;
  frame.function = FunctionName(shared);
  const uint64_t script = Field(shared, layout_.shared_script);
  // Of V8's own functions there is none.
  if (!IsOfType(script, layout_.script_type))
    return frame.function.empty() ? std::nullopt : std::optional(frame);
  constexpr std::string_view kLocal = "file://";
  frame.file = Text(Field(script, layout_.script_name));
  if (frame.file.starts_with(kLocal)) frame.file.erase(0, kLocal.size());
  const ScriptLines& lines = LinesOf(script);
  if (const auto begins = BeginOf(shared, lines)) frame.first_line = LineAt(lines, *begins);
  const auto position = is_interpreted ? PositionIn(fp) : std::nullopt;
  if (position) frame.line = LineAt(lines, *position);
  return frame;
}

// Either the name itself, or what is known of the function's variables, its own name among them.
std::string V8Reader::FunctionName(uint64_t shared) const {
  const uint64_t name = Field(shared, layout_.shared_name);
  const auto type = Type(name);
  if (!type) return {};
  if (*type < layout_.first_other_type) return Text(name);
  const auto behind = BehindLocals(name);
  for (uint64_t i = 0; behind && i < kScopeWordsOfName; ++i) {
    std::string text = Text(memory_.Now<uint64_t>(*behind + i * kWord));
    if (!text.empty()) return text;
  }
  return {};
}

// Of what is known of a function's variables; nothing: they are too many to be listed there.
std::optional<uint64_t> V8Reader::BehindLocals(uint64_t scope) const {
  const auto first = scope - kObjectTag + static_cast<uint64_t>(layout_.map_of) + kWord;
  const auto word_at = [&](int64_t i) { return first + static_cast<uint64_t>(i) * kWord; };
  const int64_t locals = NumberOf(memory_.Now<uint64_t>(word_at(layout_.scope_locals)));
  if (locals < 0 || locals >= kMostScopeLocals) return std::nullopt;
  return word_at(layout_.scope_first_local + 2 * locals);
}

// Behind its names stand where it begins and ends.
std::optional<uint32_t> V8Reader::BeginOf(uint64_t shared, const ScriptLines& lines) const {
  const uint64_t scope = Field(shared, layout_.shared_name);
  const auto type = Type(scope);
  if (!type || *type < layout_.first_other_type) return std::nullopt;
  const auto behind = BehindLocals(scope);
  for (uint64_t i = 0; behind && i < kScopeWordsBehindLocals; ++i) {
    const auto begin = memory_.Now<uint64_t>(*behind + i * kWord);
    const auto end = memory_.Now<uint64_t>(*behind + (i + 1) * kWord);
    if (!IsNumber(begin) || !IsNumber(end)) continue;
    if (NumberOf(begin) >= 0 && NumberOf(begin) < NumberOf(end) &&
        NumberOf(end) <= static_cast<int64_t>(lines.length))
      return static_cast<uint32_t>(NumberOf(begin));
  }
  return std::nullopt;
}

// Of where it is in the bytecode, in the source.
std::optional<uint32_t> V8Reader::PositionIn(uint64_t fp) const {
  const uint64_t code = Slot(fp, layout_.frame_bytecode);
  const uint64_t at = Slot(fp, layout_.frame_bytecode_offset);
  if (!IsOfType(code, layout_.bytecode_type) || !IsNumber(at)) return std::nullopt;
  // It counts from the word that is the object, whose address is one less.
  const int64_t offset = NumberOf(at) - (layout_.bytecode_items - static_cast<int64_t>(kObjectTag));
  if (offset < 0 || offset >= NumberOf(Field(code, layout_.array_length))) return std::nullopt;
  const uint64_t table = Field(code, kSourcePositionTable);
  if (!IsOfType(table, layout_.bytes_type)) return std::nullopt;
  const int64_t bytes = NumberOf(Field(table, layout_.array_length));
  if (bytes <= 0 || bytes > static_cast<int64_t>(kLongestTable)) return std::nullopt;
  std::string encoded(static_cast<size_t>(bytes), '\0');
  if (!memory_.ReadInto(table - kObjectTag + static_cast<uint64_t>(layout_.array_items),
                        encoded.data(), encoded.size()))
    return std::nullopt;
  PositionTable positions(std::move(encoded));
  int64_t code_offset = -1, source = 0;  // the first place is before the code
  std::optional<uint32_t> found;
  for (;;) {
    const auto step = positions.Next(), moved = positions.Next();
    if (!step || !moved) break;
    constexpr int64_t kMost = int64_t{1} << 40;
    if (*step > kMost || *step < -kMost || *moved > kMost || *moved < -kMost) break;
    code_offset += *step >= 0 ? *step : -(*step + 1);  // of an expression, that is no statement
    source += *moved;
    if (code_offset > offset) break;
    // The lowest bit says that it is of another file; what follows is one more than the place.
    const int64_t place = ((source >> 1) & 0x3fffffff) - 1;
    if ((source & 1) == 0 && place >= 0) found = static_cast<uint32_t>(place);
  }
  return found;
}

const V8Reader::ScriptLines& V8Reader::LinesOf(uint64_t script) {
  const auto [entry, is_new] = lines_.try_emplace(script);
  ScriptLines& lines = entry->second;
  if (!is_new) return lines;
  const uint64_t source = Field(script, layout_.script_source);
  const auto type = Type(source);
  const int32_t length = type && *type < layout_.first_other_type ? LengthOf(source) : 0;
  if (length <= 0 || static_cast<size_t>(length) * UnitOf(*type) > kLargestSource) return lines;
  const auto text = Characters(source, *type, static_cast<size_t>(length));
  if (!text) return lines;
  lines.length = text->size();
  for (size_t at = text->find('\n'); at != std::string::npos; at = text->find('\n', at + 1))
    lines.ends.push_back(static_cast<uint32_t>(at));
  return lines;
}

int V8Reader::LineAt(const ScriptLines& lines, uint32_t position) {
  if (position > lines.length || lines.length == 0) return 0;
  const auto before = std::lower_bound(lines.ends.begin(), lines.ends.end(), position);
  return static_cast<int>(before - lines.ends.begin()) + 1;
}

StackFrame V8Reader::Name(const ScriptFrame& frame) {
  StackFrame named;
  named.language = FrameLanguage::kJavaScript;
  named.function = frame.function.empty() ? "(anonymous)" : frame.function;
  named.module = frame.file;
  const int line = frame.line != 0 ? frame.line : frame.first_line;
  const bool of_node = frame.file.starts_with("node:");
  const std::string name = of_node ? frame.file : NameOf(frame.file);
  if (!name.empty()) named.source = line == 0 ? name : fmt::format("{}:{}", name, line);
  named.of_system =
      frame.file.empty() || of_node || frame.file.find("/node_modules/") != std::string::npos;
  return named;
}

}  // namespace hangscope
