#include "scope/watch_names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/numbers.h"
#include "base/utf8.h"
#include "hangscope/abi/catalog.h"
#include "hangscope/abi/watch.h"

namespace hangscope {
namespace {

constexpr size_t kLongestName = 120;
constexpr size_t kMostPlaces = 3;

std::string Clean(const std::string& text) { return Printable(text, kLongestName); }

// As people wrote it: C++ names without their encoding. A long one may be anything, and stays.
std::string FunctionName(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kLongestName) return Clean(name);
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed), std::free);
  return Clean(failed == 0 && plain != nullptr ? plain.get() : name);
}

std::string_view Behind(std::string_view text, char last) {
  const size_t at = text.rfind(last);
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

// "src/noc/cb.c:41" as reports have it: "cb.c:41".
std::string WithoutFolder(const std::string& where) {
  return Clean(std::string(Behind(where, '/')));
}

std::string Coordinates(uint32_t x, uint32_t y) { return fmt::format("({},{})", x, y); }
std::string PlaceOf(const NodeSample& node) {
  return node.name.empty() ? Coordinates(node.x, node.y) : fmt::format("({})", Clean(node.name));
}

std::string_view BusVerb(uint32_t kind) {
  switch (kind) {
    case HANGSCOPE_BUS_READ:
      return "read";
    case HANGSCOPE_BUS_WRITE:
      return "write";
    case HANGSCOPE_BUS_ATOMIC:
      return "atomic";
    case HANGSCOPE_BUS_MULTICAST:
      return "multicast";
    case HANGSCOPE_BUS_INLINE_WRITE:
      return "inline write";
    default:
      return "access";
  }
}

std::string_view BusReason(uint32_t reason) {
  static constexpr std::array<std::string_view, HANGSCOPE_BUS_REASONS> kReasons = {
      "not refused",
      "zero length",
      "below every region",
      "beyond the end of its region",
      "between regions",
      "no such node",
      "a rectangle over the edge, or turned round",
      "a node in it takes no multicasts",
      "not aligned as its region wants",
      "source and destination are not aligned to each other",
      "physical and virtual coordinates in one transaction",
      "inline writes are not supported there",
      "into a protected range",
      "another transaction while a linked one is open",
      "this end is not in local memory",
      "this end leaves its circular buffer",
      "the region has no such rights",
      "the region belongs to another node"};
  return reason < kReasons.size() ? kReasons[reason] : "for a reason that is not known";
}

// "the kernel ended with 3 pending transactions: 2 reads, 1 posted write".
std::string PendingFault(const CoreFault& fault) {
  const auto counted = [](uint64_t count, std::string_view what) {
    return fmt::format("{}{} {}{}", count, count == 0xffff ? " or more" : "", what,
                       count == 1 ? "" : "s");
  };
  std::string text =
      "the kernel ended with " +
      fmt::format("{} pending transaction{}", fault.length, fault.length == 1 ? "" : "s");
  if (fault.kind != 1) return text;
  constexpr std::string_view kKinds[] = {"read", "write", "atomic", "posted write"};
  std::vector<std::string> kinds;
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    const uint64_t count = fault.value >> 16 * i & 0xffff;
    if (count != 0) kinds.push_back(counted(count, kKinds[i]));
  }
  if (!kinds.empty()) text += fmt::format(": {}", fmt::join(kinds, ", "));
  return text;
}

}  // namespace

WatchNames::WatchNames(const ScopeCatalog& catalog, CodeSource* code, uint64_t program_at)
    : catalog_(catalog), code_(code), program_at_(program_at) {}

void WatchNames::SetCores(const std::vector<ScopeCore>& cores,
                          const std::vector<NodeSample>& nodes) {
  cores_ = cores;
  nodes_ = nodes;
}

std::string WatchNames::Core(uint32_t core, const CoreSample& sample) const {
  const std::string node = Node(sample.node);
  const std::string place = node.empty() ? "" : " " + node;
  if (const std::string thread = Thread(core); !thread.empty())
    return "thread " + thread + (of_device_ ? place : "");
  std::string text = fmt::format("core {}", core);
  if (const std::string role = Role(sample.role); !role.empty()) text += " " + role;
  return text + place;
}

std::string WatchNames::Node(uint32_t node) const {
  return nodes_.size() > 1 && node < nodes_.size() ? PlaceOf(nodes_[node]) : std::string();
}

std::string WatchNames::Thread(uint32_t core) const {
  const auto named = std::find_if(cores_.begin(), cores_.end(), [&](const ScopeCore& known) {
    return known.index == core && !known.name.empty();
  });
  return named == cores_.end() ? std::string() : Clean(named->name);
}

std::string WatchNames::Task(uint32_t id) const {
  const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_TASK, id);
  return fmt::format("task {}{}", id, entry == nullptr ? "" : " " + Clean(entry->name));
}

std::string WatchNames::Role(uint16_t role) const {
  const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_ROLE, role);
  return entry == nullptr ? std::string() : Clean(entry->name);
}

std::string WatchNames::Kernel(uint32_t kernel) const {
  const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_KERNEL, kernel);
  const bool has_path = entry != nullptr && !entry->text.empty();
  return ShortKernel(kernel) + (has_path ? fmt::format(" ({})", Clean(entry->text)) : "");
}

std::string WatchNames::ShortKernel(uint32_t kernel) const {
  const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_KERNEL, kernel);
  return entry == nullptr ? std::to_string(kernel)
                          : fmt::format("{} {}", kernel, Clean(entry->name));
}

std::string WatchNames::Resource(uint32_t resource) const {
  if (const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_RESOURCE, resource))
    return Clean(entry->name);
  const uint32_t node = (resource >> 16) - 1;
  const bool is_place = of_device_ && resource >> 16 != 0 && node < nodes_.size();
  const CatalogEntry* of_node =
      resource >> 16 == 0 ? nullptr
                          : catalog_.FindEntry(HANGSCOPE_CATALOG_NODE_RESOURCE, resource & 0xffffu);
  if (of_node != nullptr && (nodes_.empty() || node < nodes_.size())) {
    const std::string where = nodes_.empty() ? fmt::format("node {}", node) : PlaceOf(nodes_[node]);
    return fmt::format("{} of {}", Clean(of_node->name), where);
  }
  // The node's number is the device's and not the target's.
  if (is_place) return fmt::format("resource {} of {}", resource & 0xffffu, PlaceOf(nodes_[node]));
  return LocalResource(resource);
}

std::string WatchNames::LocalResource(uint32_t resource) const {
  if (const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_RESOURCE, resource))
    return Clean(entry->name);
  if (code_ != nullptr) {
    // Of an address the low half is all that is kept; programs lie within one.
    const std::string variable =
        code_->Variable(static_cast<uint32_t>(resource - static_cast<uint32_t>(program_at_)));
    if (!variable.empty()) return Clean(variable);
  }
  return fmt::format("{:#x}", resource);
}

// What the number of a resource says that is none is anybody's guess: firmware leaves there what it
// likes.
std::string WatchNames::WaitedFor(ResourceKind kind, uint32_t resource) const {
  switch (kind) {
    case ResourceKind::kTime:
      return "time to pass";
    case ResourceKind::kSuspended:
      return "being resumed";
    case ResourceKind::kOutside:
      return "what comes from outside";
    case ResourceKind::kNone:
      if (resource == 0 || resource == UINT32_MAX) return "what it does not name";
      return Resource(resource);
    default:
      return Resource(resource);
  }
}

std::string WatchNames::Waypoint(uint32_t waypoint) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const char c = static_cast<char>(waypoint >> 8 * i);
    if (c >= 0x20 && c < 0x7f) text += c;
  }
  return text;
}

std::string WatchNames::WaypointPlace(uint32_t waypoint) const {
  const auto [name, source] = FindWaypoint(waypoint);
  return name + (name.empty() || source.empty() ? "" : ", ") + source;
}

std::string WatchNames::ShortWaypointPlace(uint32_t waypoint) const {
  const auto [name, source] = FindWaypoint(waypoint);
  return source.empty() ? name : source;
}

// "reserve back", "cb.c:41 in cb_push". The same waypoint may stand at several places, and one
// place may be compiled into several functions.
std::pair<std::string, std::string> WatchNames::FindWaypoint(uint32_t waypoint) const {
  const std::string characters = Waypoint(waypoint);
  std::string long_name;
  std::vector<std::string> places;
  for (const CatalogEntry* entry : catalog_.Entries(HANGSCOPE_CATALOG_WAYPOINT)) {
    if (entry->name != characters) continue;
    if (long_name.empty()) long_name = Clean(entry->text);
    std::string place = WithoutFolder(entry->where);
    const std::string function =
        code_ == nullptr ? std::string() : code_->Locate(entry->id).function;
    if (!function.empty()) place += " in " + FunctionName(function);
    if (std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(std::move(place));
  }
  const size_t all = places.size();
  places.resize(std::min(kMostPlaces, all));
  std::string source = fmt::format("{}", fmt::join(places, " or "));
  if (all > kMostPlaces) source += fmt::format(" or {} more", all - kMostPlaces);
  return {long_name, source};
}

std::vector<std::string> WatchNames::WaypointFunctions(uint32_t waypoint) const {
  std::vector<std::string> functions;
  for (const CatalogEntry* entry : catalog_.Entries(HANGSCOPE_CATALOG_WAYPOINT)) {
    if (code_ == nullptr || entry->name != Waypoint(waypoint)) continue;
    functions.push_back(FunctionName(code_->Locate(entry->id).function));
  }
  return functions;
}

std::vector<hangscope::Place> WatchNames::Places(const std::vector<uint64_t>& pcs) const {
  std::vector<hangscope::Place> places;
  for (const uint64_t pc : pcs) {
    const Location location = code_ == nullptr ? Location() : code_->Locate(pc);
    if (location.function.empty()) break;
    places.push_back({pc, FunctionName(location.function), Clean(location.source())});
  }
  return places;
}

std::string WatchNames::Place(uint64_t pc) const {
  if (code_ == nullptr || pc == 0) return {};
  const Location location = code_->Locate(pc - program_at_);
  const std::string function = FunctionName(location.function);
  if (location.file.empty()) return function;
  return Clean(location.source()) + (function.empty() ? "" : " in " + function);
}

// Of those with the fault's line the one that lies nearest: where exactly the pc was taken is the
// compiler's affair.
const CatalogEntry* WatchNames::FindAssert(const CoreFault& fault) const {
  const auto at = static_cast<uint32_t>(fault.pc - program_at_);
  const CatalogEntry* best = nullptr;
  uint32_t least = 0;
  for (const CatalogEntry* entry : catalog_.Entries(HANGSCOPE_CATALOG_ASSERT)) {
    if (fault.line != 0 && Behind(entry->where, ':') != fmt::format("{}", fault.line)) continue;
    const uint32_t distance = std::min(entry->id - at, at - entry->id);
    if (fault.line == 0 && distance != 0) continue;
    if (best != nullptr && distance >= least) continue;
    best = entry;
    least = distance;
  }
  return best;
}

std::string WatchNames::FaultPlace(const CoreFault& fault) const {
  const CatalogEntry* entry = FindAssert(fault);
  const std::string place = Place(fault.pc);
  if (entry == nullptr || entry->where.empty()) {
    if (!place.empty()) return place;
    if (fault.line != 0) return fmt::format("line {}", fault.line);
    return fault.pc == 0 ? std::string() : fmt::format("{:#x}", fault.pc);
  }
  const std::string function = code_ == nullptr
                                   ? std::string()
                                   : FunctionName(code_->Locate(fault.pc - program_at_).function);
  return WithoutFolder(entry->where) + (function.empty() ? "" : " in " + function);
}

// __FILE__ is as the compiler was given it, which may be from a folder of its own; the ELF says
// from which.
std::string WatchNames::WholePath(std::string path, uint64_t pc) const {
  if (path.starts_with('/') || code_ == nullptr || pc == 0) return path;
  std::string whole = code_->Locate(pc - program_at_).path;
  return whole.ends_with("/" + path) ? whole : path;
}

std::optional<SourceLine> WatchNames::FaultSource(const CoreFault& fault) const {
  if (const CatalogEntry* entry = FindAssert(fault);
      entry != nullptr && entry->where.find(':') != std::string::npos) {
    const std::string number(Behind(entry->where, ':'));
    if (const auto line = ParseWhole<uint32_t>(number, 1))
      return SourceLine{
          WholePath(entry->where.substr(0, entry->where.size() - number.size() - 1), fault.pc),
          *line};
  }
  if (code_ == nullptr || fault.pc == 0) return std::nullopt;
  const Location location = code_->Locate(fault.pc - program_at_);
  if (location.path.empty()) return std::nullopt;
  return SourceLine{location.path, location.line};
}

// "0x2 illegal instruction", "0x2".
std::string WatchNames::Cause(uint32_t cause) const {
  const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_EXCEPTION, cause);
  return fmt::format("{:#x}{}", cause, entry == nullptr ? "" : " " + Clean(entry->name));
}

std::string WatchNames::BusFault(const CoreFault& fault) const {
  const uint32_t x = fault.where & 0xff;
  const uint32_t y = fault.where >> 8 & 0xff;
  std::string to = Coordinates(x, y);
  if (fault.kind == HANGSCOPE_BUS_MULTICAST)
    to += "-" + Coordinates(fault.where >> 16 & 0xff, fault.where >> 24);
  const bool reads = fault.kind == HANGSCOPE_BUS_READ;
  return fmt::format("{} of {} bytes {} {} {:#x} {} {:#x}: {}", BusVerb(fault.kind), fault.length,
                     reads ? "from" : "to", to, fault.address, reads ? "to" : "from", fault.local,
                     BusReason(fault.reason));
}

std::string WatchNames::Fault(const CoreFault& fault) const {
  std::string text;
  switch (fault.type) {
    case FaultType::kNone:
      return "no fault";
    case FaultType::kAssert:
    case FaultType::kArgument: {
      const CatalogEntry* entry = FindAssert(fault);
      const std::string message =
          entry == nullptr || entry->text.empty() ? "" : fmt::format(" '{}'", Clean(entry->text));
      text = fault.type == FaultType::kAssert
                 ? fmt::format("assert{} tripped", message)
                 : fmt::format("argument {:#x} out of bounds{}", fault.value, message);
      break;
    }
    case FaultType::kHardware:
      text = fmt::format("hardware fault, cause {}, value {:#x}", Cause(fault.reason), fault.value);
      break;
    case FaultType::kPending:
      text = PendingFault(fault);
      break;
    case FaultType::kBus:
      text = BusFault(fault);
      break;
    case FaultType::kStack:
      text = "no byte of the stack is left";
      break;
    case FaultType::kGuard: {
      const CatalogEntry* entry = catalog_.FindEntry(HANGSCOPE_CATALOG_GUARD, fault.kind);
      if (fault.kind == HANGSCOPE_GUARD_NULL) {
        text = fmt::format(
            "the word at address 0, where a null pointer leads, changed: {:#x} was "
            "found",
            fault.value);
        break;
      }
      const std::string name = entry == nullptr
                                   ? fmt::format("guard word {}", fault.kind)
                                   : fmt::format("guard word '{}'", Clean(entry->name));
      text = fmt::format("{} at {:#x} changed: {:#x} was found", name, fault.address, fault.value);
      break;
    }
  }
  const std::string place = FaultPlace(fault);
  return text + (place.empty() ? "" : " at " + place);
}

}  // namespace hangscope
