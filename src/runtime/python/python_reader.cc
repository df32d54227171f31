#include "runtime/python/python_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <set>

#include "base/utf8.h"
#include "runtime/python/python_lines.h"

namespace hangscope {
namespace {

constexpr size_t kMostInterpreters = 64;
constexpr size_t kMostPythonThreads = 16384;
constexpr size_t kMostCharacters = 4096;        // of a name
constexpr uint64_t kMostLineBytes = 512 << 10;  // of one code object
constexpr uint64_t kCodeUnitBytes = 2;

// Offsets into CPython 3.11's structures.
constexpr uint64_t kRuntimeInterpreters = 40;
constexpr uint64_t kInterpreterNext = 0;
constexpr uint64_t kInterpreterThreads = 16;
constexpr size_t kThreadNext = 8;
constexpr size_t kThreadInterpreter = 16;
constexpr size_t kThreadCFrame = 56;
constexpr size_t kThreadIdent = 152;
constexpr size_t kThreadNativeId = 160;
constexpr size_t kThreadBytes = 168;
constexpr uint64_t kCFrameCurrent = 8;
constexpr size_t kFrameCode = 32;
constexpr size_t kFramePrevious = 48;
constexpr size_t kFrameInstruction = 56;
constexpr size_t kFrameIsEntry = 68;
constexpr size_t kFrameBytes = 72;
constexpr size_t kObjectType = 8;
constexpr size_t kCodeFirstLine = 72;
constexpr size_t kCodePath = 112;
constexpr size_t kCodeQualifiedName = 128;
constexpr size_t kCodeLines = 136;
constexpr uint64_t kCodeInstructions = 184;
constexpr size_t kCodeBytes = 184;
constexpr size_t kTextLength = 16;
constexpr size_t kTextState = 32;
constexpr size_t kTextHead = 40;
constexpr uint64_t kAsciiText = 48;
constexpr uint64_t kOtherText = 72;
constexpr size_t kBytesLength = 16;
constexpr uint64_t kBytesText = 32;
constexpr uint64_t kTypeName = 24;
constexpr size_t kRLockSemaphore = 16;
constexpr size_t kRLockOwner = 24;
constexpr size_t kRLockCount = 32;
constexpr size_t kRLockBytes = 40;

constexpr uint64_t kVersionRead = 0x030b;

template <size_t kBytes>
class Structure {
 public:
  bool Read(const ReadMemory& read, uint64_t address) {
    return read(address, bytes_.data(), kBytes);
  }
  template <typename Number>
  Number At(size_t offset) const {
    Number number;
    std::memcpy(&number, bytes_.data() + offset, sizeof number);
    return number;
  }
  uint64_t Pointer(size_t offset) const { return At<uint64_t>(offset); }

 private:
  std::array<char, kBytes> bytes_;
};

std::optional<uint64_t> ReadPointer(const ReadMemory& read, uint64_t address) {
  uint64_t pointer = 0;
  return read(address, &pointer, sizeof pointer) ? std::optional(pointer) : std::nullopt;
}

// "3.10" of "python3.10", "libpython3.10.so.1.0"; empty: it does not say.
std::string VersionInName(std::string_view file) {
  const size_t at = file.find("python");
  if (at == std::string_view::npos) return {};
  file.remove_prefix(at + 6);
  const size_t end = std::min(file.find_first_not_of("0123456789."), file.size());
  std::string version(file.substr(0, end));
  while (version.ends_with('.')) version.pop_back();
  return version;
}

// The error handler by which Python stores bytes of file names that are no UTF-8: byte 0x80 as
// U+DC80.
void AppendCharacter(uint32_t character, std::string* text) {
  constexpr uint32_t kReplacement = 0xfffd;
  if (character >= 0xdc80 && character <= 0xdcff) {
    text->push_back(static_cast<char>(character - 0xdc00));
    return;
  }
  const bool is_none = character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff);
  AppendUtf8(is_none ? kReplacement : character, text);
}

std::string FileOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool EvaluatesPython(const StackFrame& frame) {
  return frame.function.starts_with("_PyEval_EvalFrameDefault");
}

}  // namespace

Result<PythonReader> PythonReader::Open(const std::string& file, const FindSymbol& find,
                                        ReadMemory read) {
  const auto at = find("Py_Version");
  const auto number = at ? ReadPointer(read, *at) : std::nullopt;
  const uint64_t version = number ? *number >> 16 : 0;
  if (version != kVersionRead) {
    const std::string name =
        number ? fmt::format("{}.{}", version >> 8 & 0xff, version & 0xff) : VersionInName(file);
    return Status::NotFound(
        fmt::format("Python {} is not read yet", name.empty() ? "of an unknown version" : name));
  }
  const auto runtime = find("_PyRuntime");
  const auto code = find("PyCode_Type");
  const auto text = find("PyUnicode_Type");
  const auto bytes = find("PyBytes_Type");
  if (!runtime || !code || !text || !bytes)
    return Status::NotFound(fmt::format("{} has no symbols of the interpreter", Printable(file)));
  return PythonReader(*runtime, *code, *text, *bytes, std::move(read));
}

Status PythonReader::ReadThreads() {
  auto interpreter = ReadPointer(read_, runtime_ + kRuntimeInterpreters);
  std::set<uint64_t> known;
  while (interpreter && *interpreter != 0) {
    if (known.size() == kMostInterpreters || !known.insert(*interpreter).second)
      return Status::Corrupt("its list of interpreters has no end");
    if (Status status = ReadThreadsOf(*interpreter); !status.ok()) return status;
    interpreter = ReadPointer(read_, *interpreter + kInterpreterNext);
  }
  return interpreter ? Status() : Status::Corrupt("its list of interpreters cannot be read");
}

Status PythonReader::ReadThreadsOf(uint64_t interpreter) {
  const auto first = ReadPointer(read_, interpreter + kInterpreterThreads);
  if (!first) return Status::Corrupt("its list of threads cannot be read");
  std::set<uint64_t> known;
  for (uint64_t at = *first; at != 0;) {
    Structure<kThreadBytes> thread;
    if (threads_.size() == kMostPythonThreads || !known.insert(at).second)
      return Status::Corrupt("its list of threads has no end");
    if (!thread.Read(read_, at) || thread.Pointer(kThreadInterpreter) != interpreter)
      return Status::Corrupt("its list of threads changed or is damaged");
    threads_.push_back({at, thread.Pointer(kThreadIdent), thread.Pointer(kThreadNativeId),
                        thread.Pointer(kThreadCFrame)});
    at = thread.Pointer(kThreadNext);
  }
  return {};
}

// By its number; a child that C code forked still has that of its parent, but its frames on its own
// stack.
const PythonReader::Thread* PythonReader::FindThread(int tid, uint64_t stack_begin,
                                                     uint64_t stack_end) const {
  const auto has_number = [&](const Thread& thread) {
    return thread.tid == static_cast<uint64_t>(tid);
  };
  auto found = std::find_if(threads_.begin(), threads_.end(), has_number);
  if (found == threads_.end()) {
    found = std::find_if(threads_.begin(), threads_.end(), [&](const Thread& thread) {
      return thread.c_frame >= stack_begin && thread.c_frame < stack_end;
    });
  }
  return found == threads_.end() ? nullptr : &*found;
}

PythonFrames PythonReader::FramesOf(int tid, uint64_t stack_begin, uint64_t stack_end,
                                    size_t most) {
  PythonFrames python;
  if (!threads_read_) threads_read_ = ReadThreads();
  const Thread* const thread = FindThread(tid, stack_begin, stack_end);
  if (thread == nullptr) {
    python.warning = threads_read_->message();
    return python;
  }
  const auto c_frame = ReadPointer(read_, thread->state + kThreadCFrame);
  auto at = c_frame ? ReadPointer(read_, *c_frame + kCFrameCurrent) : std::nullopt;
  if (!at) python.warning = "the innermost frame cannot be found";
  std::set<uint64_t> known;
  while (at && *at != 0 && python.warning.empty()) {
    Structure<kFrameBytes> frame;
    if (python.frames.size() == most)
      python.warning = fmt::format("there are more than {}", most);
    else if (!known.insert(*at).second)
      python.warning = "a frame is its own caller";
    else if (!frame.Read(read_, *at))
      python.warning = fmt::format("the frame at {:#x} cannot be read", *at);
    if (!python.warning.empty()) break;
    python.frames.push_back({frame.Pointer(kFrameCode), frame.Pointer(kFrameInstruction),
                             frame.At<uint8_t>(kFrameIsEntry) != 0});
    at = frame.Pointer(kFramePrevious);
  }
  return python;
}

// Nothing: this is no such lock.
std::optional<uint64_t> PythonReader::IdentOfOwner(uint64_t object, uint64_t semaphore) const {
  constexpr std::string_view kName("_thread.RLock", 14);  // with the zero at its end
  Structure<kRLockBytes> lock;
  if (!lock.Read(read_, object) || lock.Pointer(kRLockSemaphore) != semaphore) return std::nullopt;
  const auto name = ReadPointer(read_, lock.Pointer(kObjectType) + kTypeName);
  std::string text(kName.size(), ' ');
  if (!name || !read_(*name, text.data(), text.size()) || text != kName) return std::nullopt;
  return lock.Pointer(kRLockCount) != 0 ? std::optional(lock.Pointer(kRLockOwner)) : std::nullopt;
}

std::optional<int> PythonReader::RLockOwner(uint64_t semaphore, std::string_view stack) {
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr size_t kMostWords = 256;
  std::optional<uint64_t> ident;
  const size_t words = std::min(kMostWords, stack.size() / kWord);
  for (size_t i = 0; i < words && !ident; ++i) {
    uint64_t object = 0;
    std::memcpy(&object, stack.data() + i * kWord, kWord);
    if (object != 0 && object % kWord == 0) ident = IdentOfOwner(object, semaphore);
  }
  if (!ident) return std::nullopt;
  if (!threads_read_) threads_read_ = ReadThreads();
  const auto owner = std::find_if(threads_.begin(), threads_.end(),
                                  [&](const Thread& thread) { return thread.ident == *ident; });
  return owner != threads_.end() && owner->tid <= INT_MAX
             ? std::optional(static_cast<int>(owner->tid))
             : std::nullopt;
}

Result<std::string> PythonReader::ReadText(uint64_t address) const {
  Structure<kTextHead> head;
  const auto wrong = [&](const char* why) {
    return Status::Corrupt(fmt::format("the name at {:#x} {}", address, why));
  };
  if (!head.Read(read_, address)) return wrong("cannot be read");
  const auto state = head.At<uint32_t>(kTextState);
  const uint32_t width = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0;
  const bool is_ascii = (state >> 6 & 1) != 0;
  const bool is_known = is_compact && (width == 1 || (!is_ascii && (width == 2 || width == 4)));
  if (head.Pointer(kObjectType) != text_type_ || !is_known) return wrong("is no text");
  const uint64_t length = head.At<uint64_t>(kTextLength);
  const size_t count = static_cast<size_t>(std::min<uint64_t>(length, kMostCharacters));
  std::string raw(count * width, '\0');
  if (!read_(address + (is_ascii ? kAsciiText : kOtherText), raw.data(), raw.size()))
    return wrong("cannot be read");
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    uint32_t character = 0;
    std::memcpy(&character, raw.data() + i * width, width);
    AppendCharacter(character, &text);
  }
  return length > count ? text + "..." : text;
}

Result<std::string> PythonReader::ReadBytes(uint64_t address) const {
  Structure<kBytesText> head;
  const auto wrong = [&](const char* why) {
    return Status::Corrupt(fmt::format("the table of lines at {:#x} {}", address, why));
  };
  if (!head.Read(read_, address)) return wrong("cannot be read");
  if (head.Pointer(kObjectType) != bytes_type_) return wrong("is none");
  const uint64_t length = head.At<uint64_t>(kBytesLength);
  if (length > kMostLineBytes) return wrong("is too long");
  std::string bytes(static_cast<size_t>(length), '\0');
  if (!read_(address + kBytesText, bytes.data(), bytes.size())) return wrong("cannot be read");
  return bytes;
}

Result<PythonReader::Code> PythonReader::ReadCode(uint64_t address) const {
  Structure<kCodeBytes> head;
  if (!head.Read(read_, address) || head.Pointer(kObjectType) != code_type_)
    return Status::Corrupt(fmt::format("there is no code object at {:#x}", address));
  Code code;
  code.first_line = head.At<int32_t>(kCodeFirstLine);
  auto function = ReadText(head.Pointer(kCodeQualifiedName));
  auto path = ReadText(head.Pointer(kCodePath));
  auto lines = ReadBytes(head.Pointer(kCodeLines));
  for (const auto* part : {&function, &path, &lines}) {
    if (!part->ok()) return part->status();
  }
  code.function = std::move(*function);
  code.path = std::move(*path);
  code.lines = std::move(*lines);
  return code;
}

std::vector<StackFrame> PythonReader::Name(const std::vector<PythonFrame>& frames,
                                           std::string* warning) {
  std::vector<StackFrame> named;
  for (const PythonFrame& frame : frames) {
    auto known = codes_.find(frame.code);
    if (known == codes_.end()) {
      auto code = ReadCode(frame.code);
      if (!code.ok()) {
        *warning = code.status().message();
        return named;
      }
      known = codes_.emplace(frame.code, std::move(*code)).first;
    }
    const Code& code = known->second;
    const uint64_t begin = frame.code + kCodeInstructions;
    // One that has not begun stands before its first instruction.
    const auto line =
        frame.instruction < begin
            ? code.first_line
            : LineOfUnit(code.lines, code.first_line, (frame.instruction - begin) / kCodeUnitBytes);
    if (!line) {
      *warning = fmt::format("the table of lines of {} is damaged", code.function);
      return named;
    }
    StackFrame& shown = named.emplace_back();
    shown.language = FrameLanguage::kPython;
    shown.function = code.function;
    shown.source = *line > 0 ? fmt::format("{}:{}", FileOf(code.path), *line) : FileOf(code.path);
    shown.module = code.path;
  }
  return named;
}

std::vector<StackFrame> MergeStacks(const std::vector<StackFrame>& native,
                                    const std::vector<PythonFrame>& python,
                                    const std::vector<StackFrame>& named,
                                    const std::string& module) {
  if (named.empty()) return native;
  std::vector<StackFrame> merged;
  size_t next = 0;
  const auto add_call = [&] {
    while (next < named.size()) {
      merged.push_back(named[next]);
      if (python[next++].is_entry) return;
    }
  };
  bool is_inner = true;  // of all that evaluates Python
  bool was_interpreter = false;
  for (const StackFrame& frame : native) {
    const bool is_interpreter = frame.module == module;
    if (EvaluatesPython(frame)) {
      is_inner = false;
      add_call();
    } else if (!is_interpreter || (is_inner && !was_interpreter && !frame.function.empty())) {
      merged.push_back(frame);
    }
    was_interpreter = is_interpreter;
  }
  while (next < named.size()) add_call();
  return merged;
}

}  // namespace hangscope
