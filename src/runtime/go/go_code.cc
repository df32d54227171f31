#include "runtime/go/go_code.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hangscope {
namespace {

using go_layout::kBytesOfPointer;
constexpr size_t kMostFrames = 4096;
constexpr uint64_t kMostVariableWords = 8 << 20;
constexpr uint64_t kMostFunctions = 1 << 22;
constexpr size_t kMostSteps = 1 << 20;  // in a table of one function
constexpr uint64_t kMostStackObjects = 4096;
constexpr size_t kMostDeferred = 4096;
constexpr int32_t kMostMaps = 1 << 20;

template <typename T>
T ModuleField(const char* object, uint64_t offset) {
  T value;
  std::memcpy(&value, object + offset, sizeof value);
  return value;
}

struct MapsHead {  // of the structure stackmap
  int32_t count = 0;
  int32_t bits = 0;
};

struct StackObject {  // of the structure stackObjectRecord
  int32_t offset = 0;
  int32_t bytes = 0;
  int32_t pointer_bytes = 0;
  uint32_t bits = 0;
};

// Those of the range that are on the stack.
void AddWords(uint64_t begin, uint64_t end, const GoStack& stack, std::vector<uint64_t>* words) {
  for (uint64_t at = begin; at < end; at += kBytesOfPointer) {
    if (const auto word = stack.WordAt(at)) words->push_back(*word);
  }
}

struct FunctionPlace {  // of the structure functab
  uint32_t begin = 0;
  uint32_t at = 0;
};

}  // namespace

std::optional<uint64_t> GoStack::WordAt(uint64_t address) const {
  if (address < begin || address - begin > bytes.size() ||
      bytes.size() - (address - begin) < kBytesOfPointer)
    return std::nullopt;
  return ModuleField<uint64_t>(bytes.data(), address - begin);
}

Result<GoCode> GoCode::Read(uint64_t module, std::shared_ptr<GoMemory> memory) {
  std::array<char, go_layout::kBytesOfModule> bytes;
  if (!memory->Read(module, bytes.data(), bytes.size()))
    return Status::Io("the tables of its code cannot be read");
  if (ModuleField<uint64_t>(bytes.data(), go_layout::kNextModule) != 0)
    return Status::Io("the program has code in several modules");
  GoCode code(std::move(memory));
  const auto number = [&](uint64_t at) { return ModuleField<uint64_t>(bytes.data(), at); };
  const auto slice = [&](uint64_t at) { return ModuleField<go_layout::Slice>(bytes.data(), at); };
  code.text_ = number(go_layout::kText);
  code.extent_ = {number(go_layout::kText),
                  number(go_layout::kTextEnd),
                  std::min({number(go_layout::kReadOnlyData), number(go_layout::kTypesBegin),
                            number(go_layout::kPlainData), number(go_layout::kData)}),
                  number(go_layout::kModuleEnd),
                  std::min(number(go_layout::kPlainData), number(go_layout::kData)),
                  number(go_layout::kTypesBegin),
                  number(go_layout::kTypesEnd)};
  code.function_data_ = number(go_layout::kFunctionData);
  code.data_ = number(go_layout::kData);
  code.bss_ = number(go_layout::kBss);
  code.data_bits_ = module + go_layout::kDataBits;
  code.bss_bits_ = module + go_layout::kBssBits;
  code.pc_table_ = slice(go_layout::kPcTable);
  code.functions_ = slice(go_layout::kFunctionHeads);
  code.function_table_ = slice(go_layout::kFunctionTable);
  code.names_ = slice(go_layout::kFunctionNames);
  code.units_ = slice(go_layout::kUnits);
  code.files_ = slice(go_layout::kFileNames);
  if (code.text_ == 0 || code.data_ == 0 || code.function_table_.count < 2 ||
      code.function_table_.count > kMostFunctions)
    return Status::Io("the tables of its code are not those of Go 1.19");
  return code;
}

bool GoCode::PointersOfVariables(uint64_t begin, uint64_t end,
                                 std::vector<Variable>* variables) const {
  return AddVariables(data_, data_bits_, begin, end, variables) &&
         AddVariables(bss_, bss_bits_, begin, end, variables);
}

bool GoCode::AddVariables(uint64_t begin, uint64_t bits, uint64_t without_begin,
                          uint64_t without_end, std::vector<Variable>* variables) const {
  const auto count = memory_->Get<int32_t>(bits);
  const auto at = memory_->Get<uint64_t>(bits + kBytesOfPointer);
  if (!count || !at || *count < 0 || static_cast<uint64_t>(*count) > kMostVariableWords)
    return false;
  for (uint64_t i = 0; i < static_cast<uint64_t>(*count); i += 8) {
    const auto byte = memory_->Get<uint8_t>(*at + i / 8);
    if (!byte) return false;
    for (unsigned bit = 0; bit < 8 && *byte >> bit != 0; ++bit) {
      const uint64_t address = begin + (i + bit) * kBytesOfPointer;
      if ((*byte >> bit) % 2 == 0 || (address >= without_begin && address < without_end)) continue;
      const auto value = memory_->Get<uint64_t>(address);
      if (!value) return false;
      if (*value != 0) variables->push_back({address, *value});
    }
  }
  return true;
}

// In the table of all, whose last line is where the code ends.
std::optional<uint64_t> GoCode::FunctionIndexAt(uint64_t pc) const {
  if (pc < text_) return std::nullopt;
  const auto place = [&](uint64_t index) {
    return memory_->Get<FunctionPlace>(function_table_.begin + index * sizeof(FunctionPlace));
  };
  uint64_t low = 0, high = function_table_.count - 1;
  const auto last = place(high);
  if (!last || pc - text_ >= last->begin) return std::nullopt;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    const auto at = place(middle);
    if (!at) return std::nullopt;
    (pc - text_ < at->begin ? high : low) = middle;
  }
  const auto found = place(low);
  if (!found || pc - text_ < found->begin) return std::nullopt;
  return low;
}

std::optional<uint64_t> GoCode::FunctionBeginAt(uint64_t pc) const {
  const auto index = FunctionIndexAt(pc);
  if (!index) return std::nullopt;
  const auto place =
      memory_->Get<FunctionPlace>(function_table_.begin + *index * sizeof(FunctionPlace));
  return place ? std::optional(text_ + place->begin) : std::nullopt;
}

std::optional<uint64_t> GoCode::FunctionEndAt(uint64_t pc) const {
  const auto index = FunctionIndexAt(pc);
  if (!index) return std::nullopt;
  const auto next =
      memory_->Get<FunctionPlace>(function_table_.begin + (*index + 1) * sizeof(FunctionPlace));
  return next ? std::optional(text_ + next->begin) : std::nullopt;
}

std::optional<GoCode::Function> GoCode::FunctionAt(uint64_t pc) const {
  const auto index = FunctionIndexAt(pc);
  const auto found =
      index ? memory_->Get<FunctionPlace>(function_table_.begin + *index * sizeof(FunctionPlace))
            : std::nullopt;
  if (!found || found->at >= functions_.count) return std::nullopt;
  Function function;
  function.begin = text_ + found->begin;
  function.at = functions_.begin + found->at;
  std::array<char, go_layout::kBytesOfFunction> bytes;
  if (!memory_->Read(function.at, bytes.data(), bytes.size())) return std::nullopt;
  function.arguments = ModuleField<int32_t>(bytes.data(), go_layout::kArguments);
  function.stack_deltas = ModuleField<uint32_t>(bytes.data(), go_layout::kStackDeltas);
  function.pc_tables = ModuleField<uint32_t>(bytes.data(), go_layout::kPcTables);
  function.name = ModuleField<uint32_t>(bytes.data(), go_layout::kNameOfCode);
  function.file_table = ModuleField<uint32_t>(bytes.data(), go_layout::kFilesOfPcs);
  function.line_table = ModuleField<uint32_t>(bytes.data(), go_layout::kLinesOfPcs);
  function.unit = ModuleField<uint32_t>(bytes.data(), go_layout::kUnitOfFunction);
  function.flags = ModuleField<uint8_t>(bytes.data(), go_layout::kFlags);
  function.tables = ModuleField<uint8_t>(bytes.data(), go_layout::kFunctionTables);
  return function;
}

// A table has pairs of numbers, of seven bits a byte: by how much the value changes, in zigzag, and
// for how many bytes of code the new one holds.
std::optional<int32_t> GoCode::ValueAt(uint32_t table, uint64_t begin, uint64_t pc) const {
  uint64_t at = table;
  const auto next = [&]() -> std::optional<uint32_t> {
    constexpr unsigned kBits = 7;
    uint32_t number = 0;
    for (unsigned shift = 0; shift < 32; shift += kBits) {
      if (at >= pc_table_.count) return std::nullopt;
      const auto byte = memory_->Get<uint8_t>(pc_table_.begin + at++);
      if (!byte) return std::nullopt;
      number |= static_cast<uint32_t>(*byte & 0x7f) << shift;
      if (*byte < 0x80) return number;
    }
    return std::nullopt;
  };
  uint32_t value = UINT32_MAX;
  uint64_t until = begin;
  for (size_t step = 0; step < kMostSteps; ++step) {
    const auto change = next();
    if (!change || (*change == 0 && step > 0)) return std::nullopt;
    const auto bytes = next();
    if (!bytes) return std::nullopt;
    value += *change % 2 != 0 ? ~(*change >> 1) : *change >> 1;
    until += *bytes;
    if (pc < until) return static_cast<int32_t>(value);
  }
  return std::nullopt;
}

// -1 where the function has no such table.
std::optional<int32_t> GoCode::ValueIn(const Function& function, size_t which, uint64_t pc) const {
  if (which >= function.pc_tables) return -1;
  const auto table =
      memory_->Get<uint32_t>(function.at + go_layout::kBytesOfFunction + which * sizeof(uint32_t));
  if (!table) return std::nullopt;
  return *table == 0 ? -1 : ValueAt(*table, function.begin, pc);
}

std::optional<int32_t> GoCode::StackMapAt(const Function& function, uint64_t pc) const {
  // Where the call stands, not where it goes on.
  if (pc == function.begin) return 0;
  const auto value = ValueIn(function, go_layout::kStackMapOfPc, pc - 1);
  if (!value) return std::nullopt;
  return *value == -1 ? 0 : *value;
}

// As C has them.
std::string GoCode::TextAt(const go_layout::Slice& texts, uint64_t at) const {
  constexpr size_t kLongest = 4096;
  std::string text;
  for (; at < texts.count && text.size() < kLongest; ++at) {
    const auto byte = memory_->Get<char>(texts.begin + at);
    if (!byte || *byte == '\0') break;
    text += *byte;
  }
  return text;
}

// `number`: as the function's unit counts them.
std::string GoCode::FileOf(const Function& function, int32_t number) const {
  if (number < 0 || uint64_t{function.unit} + static_cast<uint32_t>(number) >= units_.count)
    return {};
  const auto at = memory_->Get<uint32_t>(
      units_.begin + (uint64_t{function.unit} + static_cast<uint32_t>(number)) * sizeof(uint32_t));
  return at && *at != UINT32_MAX ? TextAt(files_, *at) : "";
}

std::vector<GoCode::Place> GoCode::PlacesAt(uint64_t pc) const {
  constexpr size_t kMostInlined = 64;
  const auto function = FunctionAt(pc);
  if (!function) return {};
  int32_t line = ValueAt(function->line_table, function->begin, pc).value_or(0);
  int32_t file = ValueAt(function->file_table, function->begin, pc).value_or(-1);
  std::vector<Place> places;
  const auto add = [&](uint32_t name) {
    places.push_back({TextAt(names_, name), FileOf(*function, file), std::max(line, 0)});
  };
  const auto calls = Table(*function, go_layout::kInlinedCalls);
  while (calls && places.size() < kMostInlined) {
    const auto call = ValueIn(*function, go_layout::kInlinedCallOfPc, pc);
    std::array<char, go_layout::kBytesOfInlined> bytes;
    if (!call || *call < 0 ||
        !memory_->Read(*calls + static_cast<uint32_t>(*call) * bytes.size(), bytes.data(),
                       bytes.size()))
      break;
    add(ModuleField<uint32_t>(bytes.data(), go_layout::kInlinedName));
    file = ModuleField<int32_t>(bytes.data(), go_layout::kInlinedFile);
    line = ModuleField<int32_t>(bytes.data(), go_layout::kInlinedLine);
    pc = function->begin + ModuleField<uint32_t>(bytes.data(), go_layout::kInlinedIn);
  }
  add(function->name);
  return places;
}

std::optional<uint64_t> GoCode::Table(const Function& function, size_t which) const {
  if (which >= function.tables) return std::nullopt;
  const auto offset =
      memory_->Get<uint32_t>(function.at + go_layout::kBytesOfFunction +
                             (uint64_t{function.pc_tables} + which) * sizeof(uint32_t));
  if (!offset || *offset == UINT32_MAX) return std::nullopt;
  return function_data_ + *offset;
}

// `end`: of what the map is about, if it counts `from_end`, else its beginning.
bool GoCode::AddMapped(uint64_t maps, int32_t which, uint64_t end, bool from_end,
                       const GoStack& stack, std::vector<uint64_t>* pointers) const {
  const auto head = memory_->Get<MapsHead>(maps);
  if (!head || head->count <= 0 || head->count > kMostMaps || head->bits < 0) return false;
  if (head->bits == 0) return true;
  const auto bits = static_cast<uint64_t>(head->bits);
  if (which < 0 || which >= head->count || bits > stack.bytes.size() / kBytesOfPointer)
    return false;
  const uint64_t at = maps + sizeof(MapsHead) + static_cast<uint64_t>(which) * ((bits + 7) / 8);
  const uint64_t begin = from_end ? end - bits * kBytesOfPointer : end;
  for (uint64_t i = 0; i < bits; ++i) {
    const auto byte = memory_->Get<uint8_t>(at + i / 8);
    if (!byte) return false;
    if ((*byte >> (i % 8)) % 2 == 0) continue;
    const auto word = stack.WordAt(begin + i * kBytesOfPointer);
    if (!word) return false;
    if (*word != 0) pointers->push_back(*word);
  }
  return true;
}

bool GoCode::AddObjects(const Function& function, uint64_t locals_end, uint64_t arguments,
                        Ranges* objects) const {
  const auto table = Table(function, go_layout::kStackObjects);
  if (!table) return true;
  const auto count = memory_->Get<uint64_t>(*table);
  if (!count || *count > kMostStackObjects) return false;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto object =
        memory_->Get<StackObject>(*table + kBytesOfPointer + i * sizeof(StackObject));
    if (!object || object->bytes < 0) return false;
    const uint64_t begin = (object->offset < 0 ? locals_end : arguments) +
                           static_cast<uint64_t>(int64_t{object->offset});
    objects->emplace_back(begin, begin + static_cast<uint64_t>(object->bytes));
  }
  return true;
}

std::optional<std::pair<uint64_t, uint64_t>> GoCode::AddFrame(uint64_t pc, uint64_t stack_pointer,
                                                              const GoStack& stack, Frames* frames,
                                                              bool* whole) const {
  *whole = false;
  const auto function = FunctionAt(pc);
  if (!function || (function->flags & go_layout::kSetsStackPointer) != 0) return std::nullopt;
  const auto delta = ValueAt(function->stack_deltas, function->begin, pc);
  if (!delta || *delta < 0 || *delta % static_cast<int32_t>(kBytesOfPointer) != 0 ||
      static_cast<uint64_t>(*delta) > stack.end() - stack_pointer)
    return std::nullopt;
  if ((function->flags & go_layout::kOutermost) != 0) {
    *whole = true;
    return std::nullopt;
  }
  const auto frame_bytes = static_cast<uint64_t>(*delta);
  const uint64_t return_at = stack_pointer + frame_bytes;
  const auto returns_to = stack.WordAt(return_at);
  const uint64_t arguments = return_at + kBytesOfPointer;
  // Below the caller's frame pointer, which a function with a frame keeps.
  const uint64_t locals_end = frame_bytes == 0 ? return_at : return_at - kBytesOfPointer;
  const auto map = StackMapAt(*function, pc);
  if (!returns_to || !map) return std::nullopt;
  if (locals_end > stack_pointer) {
    const auto maps = Table(*function, go_layout::kMapsOfLocals);
    if (!maps || !AddMapped(*maps, *map, locals_end, true, stack, &frames->pointers))
      return std::nullopt;
  }
  if (function->arguments == go_layout::kUnknownArguments) return std::nullopt;
  if (function->arguments > 0) {
    const auto maps = Table(*function, go_layout::kMapsOfArguments);
    if (!maps || !AddMapped(*maps, *map, arguments, false, stack, &frames->pointers))
      return std::nullopt;
  }
  if (!AddObjects(*function, locals_end, arguments, &frames->objects)) return std::nullopt;
  *whole = true;
  return std::pair(*returns_to, arguments);
}

// Appends to `frames` what those have, and to `pcs` where they go on. From where on further ones
// are not understood, or not wanted; nothing: there are none.
std::optional<uint64_t> GoCode::Walk(uint64_t pc, const GoStack& stack, size_t most, Frames* frames,
                                     std::vector<uint64_t>* pcs) const {
  uint64_t stack_pointer = stack.begin;
  for (size_t i = 0; i < most; ++i) {
    pcs->push_back(pc);
    bool whole = false;
    const auto caller = AddFrame(pc, stack_pointer, stack, frames, &whole);
    if (!caller) return whole ? std::nullopt : std::optional(stack_pointer);
    pc = caller->first, stack_pointer = caller->second;
  }
  return stack_pointer;
}

std::vector<uint64_t> GoCode::PointersOfStack(uint64_t pc, const GoStack& stack,
                                              uint64_t deferred) const {
  Frames frames;
  std::vector<uint64_t> pcs;
  if (const auto rest = Walk(pc, stack, kMostFrames, &frames, &pcs))
    AddWords(*rest, stack.end(), stack, &frames.pointers);
  for (size_t i = 0; i < kMostDeferred && stack.WordAt(deferred); ++i) {
    frames.pointers.push_back(stack.WordAt(deferred + go_layout::kDeferredFunction).value_or(0));
    deferred = stack.WordAt(deferred + go_layout::kDeferredNext).value_or(0);
    frames.pointers.push_back(deferred);
  }
  // Pointers to what lies on the stack itself lead on from there.
  std::vector<bool> seen(frames.objects.size());
  for (size_t i = 0; i < frames.pointers.size(); ++i) {
    const uint64_t pointer = frames.pointers[i];
    if (pointer < stack.begin || pointer >= stack.end()) continue;
    for (size_t object = 0; object < frames.objects.size(); ++object) {
      const auto [begin, end] = frames.objects[object];
      if (seen[object] || pointer < begin || pointer >= end) continue;
      seen[object] = true;
      AddWords(begin, end, stack, &frames.pointers);
    }
  }
  return std::move(frames.pointers);
}

std::vector<uint64_t> GoCode::FramesOf(uint64_t pc, const GoStack& stack) const {
  Frames ignored;
  std::vector<uint64_t> pcs;
  if (const auto rest = Walk(pc, stack, kMostFrames, &ignored, &pcs))
    AddWords(*rest, stack.end(), stack, &pcs);
  return pcs;
}

std::vector<uint64_t> GoCode::PointersOfWait(uint64_t pc, const GoStack& stack) const {
  constexpr size_t kFrames = 3;
  Frames frames;
  std::vector<uint64_t> pcs;
  Walk(pc, stack, kFrames, &frames, &pcs);
  return std::move(frames.pointers);
}

std::vector<uint64_t> GoCode::WordsOf(const GoStack& stack) {
  std::vector<uint64_t> words;
  AddWords(stack.begin, stack.end(), stack, &words);
  return words;
}

}  // namespace hangscope
