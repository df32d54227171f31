#include "runtime/python/python_naps.h"

#include <algorithm>
#include <iterator>

#include "runtime/python/python_instructions.h"
#include "runtime/python/python_layout.h"

namespace hangscope {
namespace {

namespace nap_layout = python_layout;

constexpr int kMostDeep = 4;  // functions of the program that call one another
constexpr uint64_t kMostNapUnits = 16 << 10;

// Those that wait, ask, count or make text.
constexpr std::string_view kHarmlessMethods[] = {
    "sleep",        "is_set",         "time",         "time_ns",
    "monotonic",    "monotonic_ns",   "perf_counter", "perf_counter_ns",
    "process_time", "strftime",       "localtime",    "gmtime",
    "now",          "utcnow",         "today",        "isoformat",
    "timestamp",    "total_seconds",  "getLogger",    "isEnabledFor",
    "qsize",        "empty",          "full",         "is_alive",
    "getpid",       "getppid",        "getloadavg",   "getrusage",
    "active_count", "current_thread", "enumerate",    "get_ident",
    "format",       "join",           "strip",        "rstrip",
    "lstrip",       "split",          "lower",        "upper",
    "replace",      "startswith",     "endswith",     "ljust",
    "rjust",        "zfill",          "encode",       "decode",
    "items",        "keys",           "values",       "append",
    "copy",         "memory_info",    "cpu_percent",  "virtual_memory",
    "randint",      "random",         "uniform"};
// The handlers of a log that write to the standard error, and to files of their own.
constexpr std::string_view kHandlersOfFiles[] = {"StreamHandler",
                                                 "FileHandler",
                                                 "NullHandler",
                                                 "RotatingFileHandler",
                                                 "TimedRotatingFileHandler",
                                                 "WatchedFileHandler"};
constexpr std::string_view kMethodsOfLogs[] = {"debug", "info",     "warning",   "warn",
                                               "error", "critical", "exception", "log"};
constexpr std::string_view kMethodsOfFiles[] = {"write",    "writelines", "flush", "read",
                                                "readline", "readlines",  "close"};
constexpr std::string_view kHarmlessFunctions[] = {"sleep",
                                                   "time",
                                                   "time_ns",
                                                   "monotonic",
                                                   "monotonic_ns",
                                                   "perf_counter",
                                                   "perf_counter_ns",
                                                   "strftime",
                                                   "localtime",
                                                   "gmtime",
                                                   "getpid",
                                                   "len",
                                                   "str",
                                                   "int",
                                                   "float",
                                                   "bool",
                                                   "round",
                                                   "max",
                                                   "min",
                                                   "sum",
                                                   "abs",
                                                   "range",
                                                   "repr",
                                                   "list",
                                                   "dict",
                                                   "set",
                                                   "tuple",
                                                   "isinstance",
                                                   "enumerate",
                                                   "zip",
                                                   "format",
                                                   "Exception",
                                                   "getrusage",
                                                   "getloadavg"};
// Of the C library's names of types, which are those of what they make.
constexpr std::string_view kHarmlessTypes[] = {"int",
                                               "str",
                                               "float",
                                               "list",
                                               "dict",
                                               "tuple",
                                               "set",
                                               "bool",
                                               "datetime.datetime",
                                               "datetime.timedelta"};
// Where a thread begins, and what naps for it.
constexpr std::string_view kOfThreading[] = {"Thread.run", "Thread._bootstrap_inner",
                                             "Thread._bootstrap", "Event.wait", "Condition.wait"};

template <size_t kCount>
bool IsAmong(std::string_view name, const std::string_view (&list)[kCount]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

PythonEffect PythonNaps::EffectOf(const std::vector<PythonFrame>& frames) {
  is_known_ = !frames.empty();
  effect_ = {};
  seen_.clear();
  standard_file_ = 0;
  for (const PythonFrame& frame : frames) {
    auto found = reader_.CodeAt(frame.code);
    if (!found.ok()) return {};
    const PythonCode& code = **found;
    if (IsPythonLibrary(code.path)) {
      if (!code.path.ends_with("/threading.py") || !IsAmong(code.function, kOfThreading)) return {};
      continue;
    }
    const uint64_t unit = frame.instruction < code.begin
                              ? 0
                              : (frame.instruction - code.begin) / nap_layout::kCodeUnitBytes;
    const uint64_t globals = reader_.objects().Pointer(frame.address + nap_layout::kFrameGlobals);
    Follow(code, unit, {globals, frame.address, 0, 0});
    if (!is_known_) return {};
  }
  // What could not be read looks as if it were the interpreter's own.
  if (reader_.objects().HasRefused()) return {};
  effect_.wakes_nobody = true;
  return effect_;
}

void PythonNaps::Follow(const PythonCode& code, uint64_t unit, const Scope& scope) {
  using Kind = PythonNameUse::Kind;
  PythonObjects& objects = reader_.objects();
  if (scope.depth > kMostDeep || code.units == 0 || code.units > kMostNapUnits) {
    is_known_ = false;
    return;
  }
  const PythonInstructions& instructions = reader_.InstructionsOf(code);
  // With its main thread the program ends.
  if (code.function == "<module>" && instructions.MayReturnFrom(unit)) is_known_ = false;
  const std::vector<uint64_t> names = objects.Elements(code.attributes);
  uint64_t object = 0;  // that was loaded; 0: not known
  for (const PythonNameUse& use : instructions.NamesFrom(unit)) {
    if (use.kind == Kind::kVariable) {
      object = VariableOf(scope, use.name);
      continue;
    }
    if (!use.of_last) object = 0;
    if (use.kind == Kind::kUnknown || use.name >= names.size()) is_known_ = false;
    if (!is_known_) return;
    const std::string name = objects.ShortText(names[use.name]);
    if (use.kind == Kind::kGlobal || use.kind == Kind::kCalled) {
      object = ItemOf(scope.globals, name);
      UseGlobal(object, name, use.kind == Kind::kCalled, scope);
    } else if (use.kind == Kind::kAttribute) {
      const bool of_module = object != 0 && objects.IsBuiltin(object, "module");
      object = object == 0 ? 0 : objects.Attribute(object, name);
      if (of_module && (name == "stdout" || name == "stderr")) standard_file_ = object;
    } else {
      CallMethod(object, name, scope);
      object = 0;
    }
  }
  if (effect_.prints && NamesAFile(code)) effect_.uses_files = true;
}

uint64_t PythonNaps::VariableOf(const Scope& scope, uint64_t index) {
  PythonObjects& objects = reader_.objects();
  if (scope.frame == 0) return index == 0 ? scope.self : 0;
  constexpr uint64_t kMostVariables = 1 << 16;
  if (index > kMostVariables) return 0;
  const uint64_t value = objects.Pointer(scope.frame + nap_layout::kFrameValues + index * 8);
  return objects.IsBuiltin(value, "cell") ? objects.Pointer(value + nap_layout::kCellContent)
                                          : value;
}

// Keywords of calls are constants, as in print(..., file=log).
bool PythonNaps::NamesAFile(const PythonCode& code) {
  PythonObjects& objects = reader_.objects();
  const std::vector<uint64_t> constants = objects.Elements(code.constants);
  return std::any_of(constants.begin(), constants.end(), [&](uint64_t constant) {
    if (!objects.IsBuiltin(constant, "tuple")) return false;
    const std::vector<uint64_t> words = objects.Elements(constant);
    return std::any_of(words.begin(), words.end(),
                       [&](uint64_t word) { return objects.ShortText(word) == "file"; });
  });
}

uint64_t PythonNaps::ItemOf(uint64_t dictionary, const std::string& name) {
  const auto [known, is_new] = items_.try_emplace(dictionary);
  if (is_new) {
    for (const PythonObjects::Entry& entry : reader_.objects().Items(dictionary))
      known->second[reader_.objects().NameOf(entry)] = entry.object;
  }
  const auto found = known->second.find(name);
  return found == known->second.end() ? 0 : found->second;
}

// A function that is only loaded may be called by what it is given to.
void PythonNaps::UseGlobal(uint64_t object, const std::string& name, bool is_called,
                           const Scope& scope) {
  PythonObjects& objects = reader_.objects();
  if (object == 0) {
    if (is_called) CallFunction(name);  // of the interpreter itself
  } else if (is_called || objects.IsBuiltin(object, "function")) {
    CallObject(object, 0, scope);
  } else if (objects.IsBuiltin(object, "method") ||
             objects.IsBuiltin(object, "builtin_function_or_method")) {
    is_known_ = false;
  }
}

void PythonNaps::CallFunction(std::string_view name) {
  if (name == "print")
    effect_.prints = true;
  else if (name == "open")
    effect_.uses_files = true;
  else if (!IsAmong(name, kHarmlessFunctions))
    is_known_ = false;
}

void PythonNaps::CallObject(uint64_t object, uint64_t self, const Scope& scope) {
  PythonObjects& objects = reader_.objects();
  if (objects.IsBuiltin(object, "builtin_function_or_method"))
    return CallFunction(
        objects.CString(objects.Pointer(objects.Pointer(object + nap_layout::kBuiltinMethod))));
  if (objects.IsBuiltin(object, "function")) {
    const uint64_t address = objects.Pointer(object + nap_layout::kFunctionCode);
    auto code = reader_.CodeAt(address);
    if (!code.ok() || IsPythonLibrary((*code)->path)) {
      is_known_ = false;
    } else if (seen_.emplace(address, self).second) {
      const uint64_t globals = objects.Pointer(object + nap_layout::kFunctionGlobals);
      Follow(**code, 0, {globals, 0, self, scope.depth + 1});
    }
    return;
  }
  const bool is_type = objects.IsBuiltin(object, "type");
  const std::string type =
      is_type ? objects.CString(objects.Pointer(object + nap_layout::kTypeName)) : std::string();
  if (!IsAmong(type, kHarmlessTypes)) is_known_ = false;
}

// What its class has by that name, or one above; 0: nothing.
uint64_t PythonNaps::ItemOfClass(uint64_t object, const std::string& name) {
  constexpr int kMostClasses = 16;
  PythonObjects& objects = reader_.objects();
  uint64_t type = objects.Pointer(object + nap_layout::kObjectType);
  for (int i = 0; i < kMostClasses && type != 0; ++i) {
    if (const uint64_t found = ItemOf(objects.Pointer(type + nap_layout::kTypeDict), name))
      return found;
    type = objects.Pointer(type + nap_layout::kTypeBase);
  }
  return 0;
}

// Those of the loggers above it write, too. A handler may as well put what it is told into a queue,
// or send it.
bool PythonNaps::LogsToFiles(uint64_t logger) {
  constexpr int kMostLoggers = 16;
  PythonObjects& objects = reader_.objects();
  for (int i = 0; i < kMostLoggers && objects.TypeName(logger) != "NoneType"; ++i) {
    const uint64_t handlers = objects.Attribute(logger, "handlers");
    if (!objects.IsBuiltin(handlers, "list")) return false;
    const std::vector<uint64_t> all = objects.Elements(handlers);
    if (!std::all_of(all.begin(), all.end(), [&](uint64_t handler) {
          return IsAmong(objects.TypeName(handler), kHandlersOfFiles);
        }))
      return false;
    logger = objects.Attribute(logger, "parent");
    if (logger == 0) return false;
  }
  return objects.TypeName(logger) == "NoneType";
}

// Of the classes that the library has, methods say by their names what they do.
void PythonNaps::CallMethod(uint64_t object, const std::string& name, const Scope& scope) {
  PythonObjects& objects = reader_.objects();
  const PythonObjects::Type* const type = object == 0 ? nullptr : objects.TypeOf(object);
  const std::string of = type == nullptr ? std::string() : type->name;
  // Who comes to a barrier wakes the others, and what logs may be the program's own.
  if (of == "Event" && name == "wait") return;
  const uint64_t logger =
      of == "module" ? ItemOf(objects.Pointer(object + nap_layout::kModuleDict), "root") : object;
  if (logger != 0 && IsAmong(name, kMethodsOfLogs) && LogsToFiles(logger)) {
    effect_.prints = true;
    return;
  }
  if (type != nullptr && type->IsHeap()) {
    const uint64_t item = ItemOfClass(object, name);
    if (objects.IsBuiltin(item, "function")) {
      auto code = reader_.CodeAt(objects.Pointer(item + nap_layout::kFunctionCode));
      if (!code.ok() || !IsPythonLibrary((*code)->path)) return CallObject(item, object, scope);
    } else if (item == 0) {
      is_known_ = false;  // of another class that it has, too, or of the object alone
    }
  }
  if (IsAmong(name, kMethodsOfFiles)) {
    const bool is_standard = object != 0 && object == standard_file_ && name != "close";
    (is_standard ? effect_.prints : effect_.uses_files) = true;
  } else if (!IsAmong(name, kHarmlessMethods)) {
    is_known_ = false;
  }
}

}  // namespace hangscope
