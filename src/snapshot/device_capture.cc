#include "snapshot/device_capture.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/numbers.h"
#include "base/utf8.h"
#include "scope/scope_elf.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr std::string_view kMemory = "memory-";
constexpr std::string_view kProgram = "program-";
constexpr std::string_view kImage = ".bin";
constexpr std::string_view kCatalog = ".catalog";

using Parts = std::vector<std::pair<std::string, std::string>>;

std::string AbsolutePathOf(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error || path.empty() ? path : absolute.string();
}

// "file:ram@0x10" is from the folder of the file that it stands in, and that is another one now.
std::string AbsoluteTarget(const std::string& target) {
  for (const std::string kind : {"file:", "core:"}) {
    if (target.starts_with(kind)) return kind + AbsolutePathOf(target.substr(kind.size()));
  }
  return target;
}

template <typename Paths>
void MakeAbsolute(Paths* paths) {
  for (auto& [key, path] : *paths) path = AbsolutePathOf(path);
}

// The scope as a snapshot has it: its bytes, and what its cores have recorded.
Status ReadMemory(LiveScope& scope, std::string* image, MemoryManifest* manifest) {
  auto bytes = scope.view().scope().ReadImage();
  if (!bytes.ok()) return bytes.status();
  SystemClock clock;
  scope.view().StartOver();
  if (Status status = scope.view().SampleOnce(clock); !status.ok()) return status;
  (void)scope.view().Take();
  manifest->cores = scope.view().Cores();
  *image = std::move(*bytes);
  return {};
}

}  // namespace

Parts CaptureDevice(FileSystem& files, LiveDevice& device, DeviceManifest* manifest) {
  Parts parts;
  DeviceSpec spec{device.spec().name, device.spec().one_clock, {}, {}};
  manifest->file = kDeviceFileName;
  manifest->name = spec.name;
  for (LiveDevice::Memory& memory : device.Memories()) {
    DeviceMemory kept = memory.spec;
    MemoryManifest said{kept.name, memory.place, "", 0, "", {}, memory.why_unread};
    std::string image;
    if (said.unread.empty() && memory.scope != nullptr) {
      if (Status status = ReadMemory(*memory.scope, &image, &said); !status.ok())
        said.unread = status.message();
    }
    kept.source.elf = AbsolutePathOf(kept.source.elf);
    kept.source.target = AbsoluteTarget(kept.source.target);
    MakeAbsolute(&kept.elf_of_core);
    MakeAbsolute(&kept.elf_of_role);
    MakeAbsolute(&kept.elf_of_kernel);
    kept.has_ended = memory.has_ended;
    kept.unread = said.unread;
    if (said.unread.empty()) {
      const std::string stem = fmt::format("{}{}", kMemory, manifest->memories.size());
      said.image = fmt::format("{}{}", stem, kImage);
      said.image_bytes = image.size();
      said.catalog = kept.source.catalog = fmt::format("{}{}", stem, kCatalog);
      kept.source.target = FileSpec(said.image);
      parts.emplace_back(said.image, std::move(image));
      parts.emplace_back(said.catalog, memory.scope->view().catalog_bytes());
    }
    spec.memories.push_back(std::move(kept));
    manifest->memories.push_back(std::move(said));
  }
  // What its cores run; an ELF that was built anew since it was opened is none of these.
  std::map<std::string, std::string> catalogs;
  for (LiveDevice::Memory& memory : device.Memories()) {
    const ScopeSource& source = memory.spec.source;
    if (memory.scope != nullptr && memory.spec.elf_is_of_others && !source.elf.empty())
      catalogs.emplace(source.elf, memory.scope->view().catalog_bytes());
  }
  for (const auto& [path, program] : device.programs())
    catalogs.emplace(path, program.catalog_bytes);
  for (auto& [path, catalog] : catalogs) {
    const auto now = ScopeElf::Read(path);
    const bool is_same = now.ok() && now->catalog == catalog;
    const std::string file = fmt::format("{}{}{}", kProgram, spec.programs.size(), kCatalog);
    spec.programs[AbsolutePathOf(path)] = {file, is_same ? ProgramId(files, path) : ""};
    parts.emplace_back(file, std::move(catalog));
  }
  parts.emplace_back(kDeviceFileName, DeviceFileText(spec));
  return parts;
}

bool HasDevice(FileSystem& files, const std::string& folder) {
  return files.Exists(folder + "/" + kDeviceFileName);
}

Result<DeviceSpec> ReadCapturedDevice(FileSystem& files, const std::string& folder) {
  auto device = ReadDeviceFile(files, folder + "/" + kDeviceFileName);
  if (!device.ok()) return device;
  const auto is_here = [&](const std::string& path) {
    return FolderOf(path) == folder && IsPartOfDevice(NameOf(path));
  };
  const auto refuse = [&](const std::string& path) {
    return Status::Corrupt(fmt::format("'{}/{}' names '{}', which is no part of the snapshot",
                                       folder, kDeviceFileName, Printable(path)));
  };
  for (const DeviceMemory& memory : device->memories) {
    if (!memory.unread.empty()) continue;
    const TargetSpec spec = ParseTargetSpec(files, memory.source.target);
    if (spec.kind != TargetSpec::Kind::kFile || !is_here(spec.where))
      return refuse(memory.source.target);
    if (!is_here(memory.source.catalog)) return refuse(memory.source.catalog);
  }
  for (const auto& [elf, program] : device->programs) {
    if (!is_here(program.catalog)) return refuse(program.catalog);
  }
  return device;
}

bool IsPartOfDevice(const std::string& name) {
  if (name == kDeviceFileName) return true;
  const auto is = [&](std::string_view begin, std::string_view end) {
    if (!name.starts_with(begin) || !name.ends_with(end)) return false;
    const auto number = std::string_view(name).substr(begin.size());
    return number.size() > end.size() &&
           ParseWhole<uint32_t>(number.substr(0, number.size() - end.size())).has_value();
  };
  return is(kMemory, kImage) || is(kMemory, kCatalog) || is(kProgram, kCatalog);
}

}  // namespace hangscope
