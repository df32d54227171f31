// Which memories and ELFs make one device: a JSON file, its schema in docs/format.md ("The file of
// a device"). Nothing in it is trusted to be what it should.
#ifndef HANGSCOPE_DEVICE_DEVICE_FILE_H
#define HANGSCOPE_DEVICE_DEVICE_FILE_H

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "scope/scope_view.h"

namespace hangscope {

struct DeviceMemory {
  std::string name;    // as the file names it, or by its node: "(1,0)"; else its target
  ScopeSource source;  // its ELF is the one that says where the scope is
  std::optional<std::pair<uint16_t, uint16_t>> node = {};  // x, y of its cores
  // Paths of ELFs where cores do not run all the same one.
  std::map<uint32_t, std::string> elf_of_core = {};
  std::map<std::string, std::string> elf_of_role = {};
  std::map<uint32_t, std::string> elf_of_kernel = {};  // what is loaded at run time, by id
  // `source.elf` is what all other cores run; false: of these nothing is known.
  bool elf_is_of_others = true;
  // Of a memory in a snapshot.
  std::string unread = {};  // why it could not be read, and is not there; empty: it is
  bool has_ended = false;   // its process had, while other memories lived
};

// What of an ELF goes into a snapshot.
struct DeviceProgram {
  std::string catalog;  // the file of its copy
  std::string id;       // as ProgramId has it; empty: it could not be read, and is never the same
};

struct DeviceSpec {
  std::string name;
  bool one_clock = false;  // times of all memories can be compared
  std::vector<DeviceMemory> memories;
  // Of a snapshot, by the path of the ELF: as they were when it was taken.
  std::map<std::string, DeviceProgram> programs = {};
};

// The name of a snapshot's part that lists the memories in it.
constexpr char kDeviceFileName[] = "device.json";

// Relative paths in it are from the folder of `path`. Fails with kUsage, naming the place and what
// would be right, and where the file cannot be read.
Result<DeviceSpec> ReadDeviceFile(FileSystem& files, const std::string& path);
// The same of a text; `name` stands before what is wrong, `folder` is where relative paths begin.
Result<DeviceSpec> ParseDevice(FileSystem& files, std::string_view text, const std::string& name,
                               const std::string& folder);
// Whether `elf` still is what it was when `kept` was made of it.
bool IsSameProgram(FileSystem& files, const std::string& elf, const DeviceProgram& kept);
// The file that says the same as `device`.
std::string DeviceFileText(const DeviceSpec& device);

}  // namespace hangscope

#endif
