#include "device/device_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/near_name.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "scope/scope_elf.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostDeviceFileBytes = 4u << 20;
constexpr size_t kMostMemories = 1024;
constexpr size_t kMostElfs = 256;  // of a memory
constexpr size_t kMostPrograms = kMostMemories * kMostElfs;
constexpr size_t kLongestText = 4096;
constexpr size_t kNear = 2;

// The line in which a text stops being JSON; empty: it only lies too deep.
std::string PlaceOfError(std::string_view text) {
  if (JsonDepth(text) > kDeepestJson) return {};
  try {
    [[maybe_unused]] const Json json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto before = text.substr(0, std::min(text.size(), error.byte));
    return fmt::format("line {}", 1 + std::count(before.begin(), before.end(), '\n'));
  }
  return {};
}

// Reads one file; each function names the place at which something is wrong.
class DeviceParser {
 public:
  DeviceParser(FileSystem& files, std::string name, std::string folder)
      : files_(files), name_(std::move(name)), folder_(std::move(folder)) {}

  Result<DeviceSpec> Parse(std::string_view text);

 private:
  Status Wrong(const std::string& place, const std::string& why) const {
    return Status::Usage(
        fmt::format("'{}': {}{}{}", Printable(name_), place, place.empty() ? "" : ": ", why));
  }
  Status CheckKeys(const Json& object, const std::string& place,
                   std::initializer_list<const char*> known) const;
  Result<std::string> Text(const Json& object, const std::string& place, const char* key) const;
  Result<DeviceMemory> Memory(const Json& json, const std::string& place) const;
  Status ParseNode(const Json& json, const std::string& place, DeviceMemory* memory) const;
  template <typename Take>
  Status ParseElfs(const Json& json, const std::string& place, Take take) const;
  Status ParseAllElfs(const Json& json, const std::string& place, DeviceMemory* memory) const;
  std::string PathOf(const std::string& path) const;
  std::string TargetOf(const std::string& target) const;
  void ChooseScopeElf(DeviceMemory* memory) const;
  Status ParsePrograms(const Json& json);

  FileSystem& files_;
  const std::string name_;
  const std::string folder_;
  std::map<std::string, DeviceProgram> programs_;
};

std::string DeviceParser::PathOf(const std::string& path) const {
  return path.starts_with('/') || folder_ == "." ? path : folder_ + "/" + path;
}

// Files and core dumps lie beside the file that names them.
std::string DeviceParser::TargetOf(const std::string& target) const {
  constexpr std::string_view kCore = "core:";
  constexpr std::string_view kFile = "file:";
  if (target.starts_with(kCore)) return std::string(kCore) + PathOf(target.substr(kCore.size()));
  const TargetSpec spec = ParseTargetSpec(files_, target);
  if (spec.kind != TargetSpec::Kind::kFile) return target;
  const bool says_file = target.starts_with(kFile);
  return std::string(kFile) + PathOf(says_file ? target.substr(kFile.size()) : target);
}

Status DeviceParser::CheckKeys(const Json& object, const std::string& place,
                               std::initializer_list<const char*> known) const {
  if (!object.is_object()) return Wrong(place, "an object is wanted");
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::vector<std::string> near = NearNames(key, {known.begin(), known.end()}, kNear, 1);
    if (!near.empty())
      return Wrong(place,
                   fmt::format("unknown key '{}', did you mean '{}'?", Printable(key), near[0]));
    return Wrong(place, fmt::format("unknown key '{}'; there are {}", Printable(key),
                                    fmt::join(known, ", ")));
  }
  return {};
}

// Empty: there is none.
Result<std::string> DeviceParser::Text(const Json& object, const std::string& place,
                                       const char* key) const {
  const auto at = object.find(key);
  if (at == object.end()) return std::string();
  const std::string where = fmt::format("{}{}{}", place, place.empty() ? "" : ".", key);
  if (!at->is_string()) return Wrong(where, "a text is wanted");
  auto text = at->get<std::string>();
  if (text.empty() || text.size() > kLongestText || text.find('\0') != std::string::npos)
    return Wrong(where, fmt::format("a text of 1 to {} characters is wanted", kLongestText));
  return text;
}

Status DeviceParser::ParseNode(const Json& json, const std::string& place,
                               DeviceMemory* memory) const {
  const auto at = json.find("node");
  if (at == json.end()) return {};
  const auto is_coordinate = [](const Json& value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= UINT16_MAX;
  };
  if (!at->is_array() || at->size() != 2 || !is_coordinate((*at)[0]) || !is_coordinate((*at)[1]))
    return Wrong(place + ".node", "two coordinates, 0 to 65535; for example [1, 0]");
  memory->node = {(*at)[0].get<uint16_t>(), (*at)[1].get<uint16_t>()};
  return {};
}

// take(key, path) says what is wrong with the key; empty: nothing.
template <typename Take>
Status DeviceParser::ParseElfs(const Json& json, const std::string& place, Take take) const {
  if (!json.is_object() || json.size() > kMostElfs)
    return Wrong(place, fmt::format("an object of at most {} files is wanted", kMostElfs));
  for (const auto& [key, value] : json.items()) {
    auto path = Text(json, place, key.c_str());
    if (!path.ok()) return path.status();
    if (path->empty()) return Wrong(place, "a key with a zero byte in it");
    const std::string wrong = take(key, PathOf(*path));
    if (!wrong.empty()) return Wrong(fmt::format("{}.{}", place, Printable(key)), wrong);
  }
  return {};
}

Status DeviceParser::ParseAllElfs(const Json& json, const std::string& place,
                                  DeviceMemory* memory) const {
  if (const auto elfs = json.find("elfs"); elfs != json.end()) {
    const Status status = ParseElfs(
        *elfs, place + ".elfs", [&](const std::string& key, std::string path) -> std::string {
          if (const auto core = ParseWhole<uint32_t>(key))
            memory->elf_of_core[*core] = std::move(path);
          else if (!key.empty() && key.size() <= kLongestText)
            memory->elf_of_role[key] = std::move(path);
          else
            return "the number of a core or the name of a role is wanted";
          return {};
        });
    if (!status.ok()) return status;
  }
  const auto kernels = json.find("kernels");
  if (kernels == json.end()) return {};
  return ParseElfs(*kernels, place + ".kernels",
                   [&](const std::string& key, std::string path) -> std::string {
                     const auto id = ParseWhole<uint32_t>(key, 1);
                     if (!id) return "the id of a kernel is wanted, 1 to 4294967295";
                     memory->elf_of_kernel[*id] = std::move(path);
                     return {};
                   });
}

// The first that says where the scope is; all of one node may. An image in a snapshot has its scope
// at its beginning and its catalog beside it: there an ELF only names functions, if it still is the
// same.
void DeviceParser::ChooseScopeElf(DeviceMemory* memory) const {
  std::vector<std::string> elfs;
  for (const auto& [core, path] : memory->elf_of_core) elfs.push_back(path);
  for (const auto& [role, path] : memory->elf_of_role) elfs.push_back(path);
  memory->source.elf_is_one_of_several = !elfs.empty();
  memory->elf_is_of_others = !memory->source.elf.empty() || elfs.empty();
  if (!memory->source.catalog.empty()) {
    const auto kept = programs_.find(memory->source.elf);
    if (kept == programs_.end() || !IsSameProgram(files_, kept->first, kept->second))
      memory->source.elf.clear();
    return;
  }
  if (memory->elf_is_of_others) return;
  const auto has_scope = [](const std::string& path) {
    const auto elf = ScopeElf::Read(path);
    return elf.ok() && elf->symbol;
  };
  const auto found = std::find_if(elfs.begin(), elfs.end(), has_scope);
  memory->source.elf = found == elfs.end() ? elfs[0] : *found;
}

Status DeviceParser::ParsePrograms(const Json& json) {
  const auto list = json.find("programs");
  if (list == json.end()) return {};
  if (!list->is_array() || list->size() > kMostPrograms)
    return Wrong("programs", fmt::format("a list of at most {} ELFs is wanted", kMostPrograms));
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& program = (*list)[i];
    const std::string place = fmt::format("programs[{}]", i);
    if (Status status = CheckKeys(program, place, {"elf", "catalog", "id"}); !status.ok())
      return status;
    auto elf = Text(program, place, "elf");
    auto catalog = Text(program, place, "catalog");
    auto id = Text(program, place, "id");
    for (const auto* text : {&elf, &catalog, &id}) {
      if (!text->ok()) return text->status();
    }
    if (elf->empty() || catalog->empty())
      return Wrong(place, "the path of an ELF and the file of its catalog are wanted");
    programs_[PathOf(*elf)] = {PathOf(*catalog), *id};
  }
  return {};
}

Result<DeviceMemory> DeviceParser::Memory(const Json& json, const std::string& place) const {
  if (Status status = CheckKeys(
          json, place,
          {"name", "node", "memory", "elf", "elfs", "kernels", "catalog", "unread", "ended"});
      !status.ok())
    return status;
  DeviceMemory memory;
  auto name = Text(json, place, "name");
  auto target = Text(json, place, "memory");
  auto elf = Text(json, place, "elf");
  auto catalog = Text(json, place, "catalog");
  auto unread = Text(json, place, "unread");
  for (const auto* text : {&name, &target, &elf, &catalog, &unread}) {
    if (!text->ok()) return text->status();
  }
  if (target->empty())
    return Wrong(place, "it has no memory; for example \"memory\": \"file:node0.bin\"");
  if (Status status = ParseNode(json, place, &memory); !status.ok()) return status;
  if (Status status = ParseAllElfs(json, place, &memory); !status.ok()) return status;
  memory.source.target = TargetOf(*target);
  memory.unread = *unread;
  memory.has_ended = TrueField(json, "ended");
  if (!elf->empty()) memory.source.elf = PathOf(*elf);
  if (!catalog->empty()) memory.source.catalog = PathOf(*catalog);
  ChooseScopeElf(&memory);
  const TargetSpec spec = ParseTargetSpec(files_, memory.source.target);
  if (!spec.status.ok()) return Wrong(place + ".memory", spec.status.message());
  memory.name = !name->empty() ? *name
                : memory.node  ? fmt::format("({},{})", memory.node->first, memory.node->second)
                               : spec.name;
  return memory;
}

Result<DeviceSpec> DeviceParser::Parse(std::string_view text) {
  const Json json = ParseForeignJson(text);
  if (json.is_discarded())
    return Wrong(PlaceOfError(text), "it is no JSON; docs/format.md has an example");
  if (Status status = CheckKeys(json, "", {"name", "clock", "memories", "programs"}); !status.ok())
    return status;
  if (Status status = ParsePrograms(json); !status.ok()) return status;
  auto name = Text(json, "", "name");
  if (!name.ok()) return name.status();
  auto clock = Text(json, "", "clock");
  if (!clock.ok()) return clock.status();
  if (!clock->empty() && *clock != "shared" && *clock != "own")
    return Wrong("clock",
                 "\"shared\", one clock for all memories, or \"own\", which is the default");
  const auto memories = json.find("memories");
  if (memories == json.end() || !memories->is_array() || memories->empty() ||
      memories->size() > kMostMemories)
    return Wrong("memories", fmt::format("a list of 1 to {} memories is wanted", kMostMemories));
  DeviceSpec device{name->empty() ? name_ : *name, *clock == "shared", {}, programs_};
  for (size_t i = 0; i < memories->size(); ++i) {
    const std::string place = fmt::format("memories[{}]", i);
    auto memory = Memory((*memories)[i], place);
    if (!memory.ok()) return memory.status();
    for (size_t other = 0; other < device.memories.size(); ++other) {
      const DeviceMemory& known = device.memories[other];
      if (memory->node && memory->node == known.node)
        return Wrong(place + ".node", fmt::format("memories[{}] has the same node", other));
      if (memory->name == known.name)
        return Wrong(place, fmt::format("memories[{}] has the same name", other));
      if (memory->source.target == known.source.target)
        return Wrong(place + ".memory", fmt::format("memories[{}] has the same memory", other));
    }
    device.memories.push_back(std::move(*memory));
  }
  return device;
}

}  // namespace

bool IsSameProgram(FileSystem& files, const std::string& elf, const DeviceProgram& kept) {
  const auto now = ScopeElf::Read(elf);
  const auto catalog = ReadWholeFile(files, kept.catalog, kMostCatalogBytes);
  return now.ok() && catalog.ok() && now->catalog == catalog.value() && !kept.id.empty() &&
         ProgramId(files, elf) == kept.id;
}

Result<DeviceSpec> ParseDevice(FileSystem& files, std::string_view text, const std::string& name,
                               const std::string& folder) {
  return DeviceParser(files, name, folder).Parse(text);
}

Result<DeviceSpec> ReadDeviceFile(FileSystem& files, const std::string& path) {
  auto text = ReadWholeFile(files, path, kMostDeviceFileBytes);
  if (!text.ok()) return text.status();
  return ParseDevice(files, *text, path, FolderOf(path));
}

std::string DeviceFileText(const DeviceSpec& device) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson json{{"name", device.name}, {"clock", device.one_clock ? "shared" : "own"}};
  const auto add = [](OrderedJson* object, const char* key, const std::string& text) {
    if (!text.empty()) (*object)[key] = text;
  };
  json["memories"] = OrderedJson::array();
  for (const DeviceMemory& memory : device.memories) {
    OrderedJson mine{{"name", memory.name}};
    if (memory.node) mine["node"] = {memory.node->first, memory.node->second};
    mine["memory"] = memory.source.target;
    if (memory.elf_is_of_others) add(&mine, "elf", memory.source.elf);
    for (const auto& [core, path] : memory.elf_of_core) mine["elfs"][std::to_string(core)] = path;
    for (const auto& [role, path] : memory.elf_of_role) mine["elfs"][role] = path;
    for (const auto& [kernel, path] : memory.elf_of_kernel)
      mine["kernels"][std::to_string(kernel)] = path;
    add(&mine, "catalog", memory.source.catalog);
    add(&mine, "unread", memory.unread);
    if (memory.has_ended) mine["ended"] = true;
    json["memories"].push_back(std::move(mine));
  }
  for (const auto& [elf, program] : device.programs) {
    OrderedJson mine{{"elf", elf}, {"catalog", program.catalog}};
    add(&mine, "id", program.id);
    json["programs"].push_back(std::move(mine));
  }
  return JsonText(json, 1) + "\n";
}

}  // namespace hangscope
