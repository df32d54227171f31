#include "runtime/python/python_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <set>

#include "base/utf8.h"
#include "runtime/python/python_layout.h"
#include "runtime/python/python_lines.h"

namespace hangscope {
namespace {

namespace layout = python_layout;

constexpr size_t kMostInterpreters = 64;
constexpr size_t kMostPythonThreads = 16384;
constexpr uint64_t kMostLineBytes = 512 << 10;  // of one code object

constexpr uint64_t kVersionRead = 0x030b;

template <size_t kBytes>
using Structure = PythonStructure<kBytes>;

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

std::string FileOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool EvaluatesPython(const StackFrame& frame) {
  return frame.function.starts_with("_PyEval_EvalFrameDefault");
}

}  // namespace

bool IsPythonLibrary(std::string_view path) {
  constexpr std::string_view kFolder = "/lib/python3";
  if (path.starts_with("<frozen ")) return true;
  const size_t at = path.find(kFolder);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = path.substr(at + kFolder.size());
  const size_t end = rest.find_first_not_of(".0123456789");
  return end != std::string_view::npos &&
         (rest[end] == '/' || rest.substr(end).starts_with("zip/"));
}

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
  auto interpreter = ReadPointer(read_, runtime_ + layout::kRuntimeInterpreters);
  std::set<uint64_t> known;
  while (interpreter && *interpreter != 0) {
    if (known.size() == kMostInterpreters || !known.insert(*interpreter).second)
      return Status::Corrupt("its list of interpreters has no end");
    if (Status status = ReadThreadsOf(*interpreter); !status.ok()) return status;
    interpreter = ReadPointer(read_, *interpreter + layout::kInterpreterNext);
  }
  return interpreter ? Status() : Status::Corrupt("its list of interpreters cannot be read");
}

Status PythonReader::ReadThreadsOf(uint64_t interpreter) {
  const auto first = ReadPointer(read_, interpreter + layout::kInterpreterThreads);
  if (!first) return Status::Corrupt("its list of threads cannot be read");
  std::set<uint64_t> known;
  for (uint64_t at = *first; at != 0;) {
    Structure<layout::kThreadBytes> thread;
    if (threads_.size() == kMostPythonThreads || !known.insert(at).second)
      return Status::Corrupt("its list of threads has no end");
    if (!thread.Read(read_, at) || thread.Pointer(layout::kThreadInterpreter) != interpreter)
      return Status::Corrupt("its list of threads changed or is damaged");
    threads_.push_back({at, thread.Pointer(layout::kThreadIdent),
                        thread.Pointer(layout::kThreadNativeId),
                        thread.Pointer(layout::kThreadCFrame)});
    at = thread.Pointer(layout::kThreadNext);
  }
  return {};
}

// By its number; a child that C code forked still has that of its parent, but its frames on its own
// stack.
const PythonThread* PythonReader::FindThread(int tid, uint64_t stack_begin,
                                             uint64_t stack_end) const {
  const auto has_number = [&](const PythonThread& thread) {
    return thread.tid == static_cast<uint64_t>(tid);
  };
  auto found = std::find_if(threads_.begin(), threads_.end(), has_number);
  if (found == threads_.end()) {
    found = std::find_if(threads_.begin(), threads_.end(), [&](const PythonThread& thread) {
      return thread.c_frame >= stack_begin && thread.c_frame < stack_end;
    });
  }
  return found == threads_.end() ? nullptr : &*found;
}

PythonFrames PythonReader::FramesOf(int tid, uint64_t stack_begin, uint64_t stack_end,
                                    size_t most) {
  Threads();
  const PythonThread* const thread = FindThread(tid, stack_begin, stack_end);
  if (thread != nullptr) return FramesOf(*thread, most);
  PythonFrames python;
  python.warning = threads_read_->message();
  return python;
}

const std::vector<PythonThread>& PythonReader::Threads() {
  if (!threads_read_) threads_read_ = ReadThreads();
  return threads_;
}

PythonFrames PythonReader::FramesOf(const PythonThread& thread, size_t most) const {
  const auto c_frame = ReadPointer(read_, thread.state + layout::kThreadCFrame);
  const auto at = c_frame ? ReadPointer(read_, *c_frame + layout::kCFrameCurrent) : std::nullopt;
  if (at) return FramesFrom(*at, most);
  PythonFrames python;
  python.warning = "the innermost frame cannot be found";
  return python;
}

PythonFrames PythonReader::FramesFrom(uint64_t address, size_t most) const {
  PythonFrames python;
  std::optional<uint64_t> at = address;
  std::set<uint64_t> known;
  while (at && *at != 0 && python.warning.empty()) {
    Structure<layout::kFrameBytes> frame;
    if (python.frames.size() == most)
      python.warning = fmt::format("there are more than {}", most);
    else if (!known.insert(*at).second)
      python.warning = "a frame is its own caller";
    else if (!frame.Read(read_, *at))
      python.warning = fmt::format("the frame at {:#x} cannot be read", *at);
    if (!python.warning.empty()) break;
    python.frames.push_back({frame.Pointer(layout::kFrameCode),
                             frame.Pointer(layout::kFrameInstruction),
                             frame.At<uint8_t>(layout::kFrameIsEntry) != 0, *at});
    at = frame.Pointer(layout::kFramePrevious);
  }
  return python;
}

// Nothing: this is no such lock.
std::optional<uint64_t> PythonReader::IdentOfOwner(uint64_t object, uint64_t semaphore) const {
  constexpr std::string_view kName("_thread.RLock", 14);  // with the zero at its end
  Structure<layout::kRLockBytes> lock;
  if (!lock.Read(read_, object) || lock.Pointer(layout::kRLockSemaphore) != semaphore)
    return std::nullopt;
  const auto name = ReadPointer(read_, lock.Pointer(layout::kObjectType) + layout::kTypeName);
  std::string text(kName.size(), ' ');
  if (!name || !read_(*name, text.data(), text.size()) || text != kName) return std::nullopt;
  return lock.Pointer(layout::kRLockCount) != 0 ? std::optional(lock.Pointer(layout::kRLockOwner))
                                                : std::nullopt;
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
  return ident ? ThreadOf(*ident) : std::nullopt;
}

std::optional<int> PythonReader::ThreadOf(uint64_t ident) {
  Threads();
  const auto owner =
      std::find_if(threads_.begin(), threads_.end(),
                   [&](const PythonThread& thread) { return thread.ident == ident; });
  return owner != threads_.end() && owner->tid <= INT_MAX
             ? std::optional(static_cast<int>(owner->tid))
             : std::nullopt;
}

std::optional<int> PythonReader::GlobalLockOwner() {
  const auto holder = ReadPointer(read_, runtime_ + layout::kRuntimeLastHolder);
  int32_t is_held = 0;
  if (!holder || !read_(runtime_ + layout::kRuntimeIsHeld, &is_held, sizeof is_held) ||
      is_held != 1)
    return std::nullopt;
  for (const PythonThread& thread : Threads()) {
    if (thread.state == *holder && thread.tid <= INT_MAX) return static_cast<int>(thread.tid);
  }
  return std::nullopt;
}

uint64_t PythonReader::GlobalLock() const { return runtime_ + layout::kRuntimeCondition; }

Result<std::string> PythonReader::ReadBytes(uint64_t address) const {
  Structure<layout::kBytesText> head;
  const auto wrong = [&](const char* why) {
    return Status::Corrupt(fmt::format("the table of lines at {:#x} {}", address, why));
  };
  if (!head.Read(read_, address)) return wrong("cannot be read");
  if (head.Pointer(layout::kObjectType) != bytes_type_) return wrong("is none");
  const uint64_t length = head.At<uint64_t>(layout::kBytesLength);
  if (length > kMostLineBytes) return wrong("is too long");
  std::string bytes(static_cast<size_t>(length), '\0');
  if (!read_(address + layout::kBytesText, bytes.data(), bytes.size()))
    return wrong("cannot be read");
  return bytes;
}

Result<PythonCode> PythonReader::ReadCode(uint64_t address) const {
  Structure<layout::kCodeBytes> head;
  if (!head.Read(read_, address) || head.Pointer(layout::kObjectType) != code_type_)
    return Status::Corrupt(fmt::format("there is no code object at {:#x}", address));
  PythonCode code;
  code.first_line = head.At<int32_t>(layout::kCodeFirstLine);
  code.begin = address + layout::kCodeInstructions;
  code.variables = head.At<uint32_t>(layout::kCodeVariables);
  code.names = head.Pointer(layout::kCodeNames);
  code.attributes = head.Pointer(layout::kCodeAttributes);
  code.constants = head.Pointer(layout::kCodeConstants);
  code.handlers = head.Pointer(layout::kCodeHandlers);
  code.units = head.Pointer(layout::kCodeUnits);
  auto function = objects_.Text(head.Pointer(layout::kCodeQualifiedName));
  auto path = objects_.Text(head.Pointer(layout::kCodePath));
  auto lines = ReadBytes(head.Pointer(layout::kCodeLines));
  for (const auto* part : {&function, &path, &lines}) {
    if (!part->ok()) return part->status();
  }
  code.function = std::move(*function);
  code.path = std::move(*path);
  code.lines = std::move(*lines);
  return code;
}

Result<const PythonCode*> PythonReader::CodeAt(uint64_t address) {
  auto known = codes_.find(address);
  if (known == codes_.end()) {
    auto code = ReadCode(address);
    if (!code.ok()) return code.status();
    known = codes_.emplace(address, std::move(*code)).first;
  }
  return &known->second;
}

const PythonInstructions& PythonReader::InstructionsOf(const PythonCode& code) {
  constexpr uint64_t kMostUnits = 64 << 10;
  const auto [known, is_new] = instructions_.try_emplace(code.begin);
  if (!is_new || code.units == 0 || code.units > kMostUnits) return known->second;
  std::string bytes(static_cast<size_t>(code.units * layout::kCodeUnitBytes), '\0');
  if (objects_.Read(code.begin, bytes.data(), bytes.size()))
    known->second = PythonInstructions(bytes);
  return known->second;
}

std::vector<StackFrame> PythonReader::Name(const std::vector<PythonFrame>& frames,
                                           std::string* warning) {
  std::vector<StackFrame> named;
  for (const PythonFrame& frame : frames) {
    auto found = CodeAt(frame.code);
    if (!found.ok()) {
      *warning = found.status().message();
      return named;
    }
    const PythonCode& code = **found;
    const uint64_t begin = code.begin;
    // One that has not begun stands before its first instruction.
    const auto line = frame.instruction < begin
                          ? code.first_line
                          : LineOfUnit(code.lines, code.first_line,
                                       (frame.instruction - begin) / layout::kCodeUnitBytes);
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
