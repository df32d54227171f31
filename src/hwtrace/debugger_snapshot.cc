#include "hwtrace/debugger_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/ini_text.h"
#include "base/numbers.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr uint64_t kMostIniBytes = 1u << 20;
constexpr size_t kMostDevices = 4096;
constexpr size_t kMostDumps = 65'536;
constexpr size_t kMostBuffers = 4096;
constexpr size_t kMostSnapshotWarnings = 100;

// What the architecture has where a snapshot does not say it.
constexpr uint32_t kUsualTrcIdr1 = 0x4100f403;
constexpr uint32_t kUsualTrcDevArch = 0x47705a13;

std::optional<EtmKind> EtmKindOfType(std::string_view type) {
  type = type.substr(0, type.find('.'));
  if (IsSameWord(type, "ETM4")) return EtmKind::kEtmV4;
  if (IsSameWord(type, "ETM3")) return EtmKind::kEtmV3;
  if (IsSameWord(type, "PTM1") || IsSameWord(type, "PFT1")) return EtmKind::kPtm;
  if (IsSameWord(type, "ETE")) return EtmKind::kEte;
  return std::nullopt;
}

SnapshotBuffer::Format FormatOfName(std::string_view name) {
  if (IsSameWord(name, "coresight")) return SnapshotBuffer::Format::kFrames;
  if (IsSameWord(name, "source_data")) return SnapshotBuffer::Format::kOneSource;
  if (IsSameWord(name, "dstream_coresight")) return SnapshotBuffer::Format::kFramesAndSyncs;
  return SnapshotBuffer::Format::kUnknown;
}

// A name of a file that does not lead out of the folder.
bool IsInside(std::string_view name) {
  if (name.empty() || name.front() == '/') return false;
  while (!name.empty()) {
    const size_t end = std::min(name.find('/'), name.size());
    if (name.substr(0, end) == "..") return false;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return true;
}

// The registers of a device by the names in the architecture.
class Registers {
 public:
  explicit Registers(const IniSection* section) {
    for (size_t i = 0; section != nullptr && i < section->values.size(); ++i) {
      const auto& [name, value] = section->values[i];
      known_.emplace_back(name.substr(0, name.find('(')), value);
    }
  }

  uint32_t Read(std::string_view name, std::optional<uint32_t> usual = std::nullopt) {
    for (const auto& [known, value] : known_) {
      if (!IsSameWord(known, name)) continue;
      // More than 32 bits have those that are printed as the debugger's own 64.
      if (const auto number = ParseDecimalOrHex<uint64_t>(value))
        return static_cast<uint32_t>(*number);
    }
    if (!usual && missing_.empty()) missing_ = name;
    return usual.value_or(0);
  }
  // The first that was asked for in vain.
  const std::string& missing() const { return missing_; }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> known_;
  std::string missing_;
};

EtmSetting ReadSetting(EtmKind kind, Registers* registers) {
  EtmSetting etm;
  etm.kind = kind;
  const bool early = kind == EtmKind::kEtmV3 || kind == EtmKind::kPtm;
  etm.control = registers->Read(early ? "ETMCR" : "TRCCONFIGR");
  etm.trace_id =
      static_cast<uint8_t>(registers->Read(early ? "ETMTRACEIDR" : "TRCTRACEIDR") & 0x7f);
  etm.id0 = registers->Read(early ? "ETMIDR" : "TRCIDR0");
  if (early) {
    etm.code_extension = registers->Read("ETMCCER");
    return etm;
  }
  etm.id1 = registers->Read("TRCIDR1", kUsualTrcIdr1);
  etm.id2 = registers->Read("TRCIDR2");
  etm.id8 = registers->Read("TRCIDR8", 0);
  if (kind == EtmKind::kEte) etm.architecture = registers->Read("TRCDEVARCH", kUsualTrcDevArch);
  return etm;
}

class SnapshotReader {
 public:
  SnapshotReader(FileSystem& files, const std::string& folder) : files_(files) {
    snapshot_.folder = folder;
  }

  Result<DebuggerSnapshot> Read() {
    std::string text;
    if (Status status = ReadText(kDebuggerSnapshotName, &text); !status.ok()) return status;
    const IniText ini = ParseIni(text);
    NoteOddLines(kDebuggerSnapshotName, ini);
    const IniSection* about = ini.Find("snapshot");
    const std::string_view version = about != nullptr ? about->Find("version") : "";
    if (!version.empty() && !version.starts_with("1.") && version != "1")
      return Status::Corrupt(fmt::format(
          "'{}' is a debugger's snapshot of version {}, and this hangscope reads version 1",
          Printable(snapshot_.folder), Printable(version, 20)));
    if (const IniSection* devices = ini.Find("device_list")) ReadDevices(*devices);
    const IniSection* trace = ini.Find("trace");
    const std::string metadata(trace != nullptr ? trace->Find("metadata") : "");
    if (metadata.empty())
      return Status::NotFound(fmt::format(
          "'{}' is a debugger's snapshot without a trace: its {} names no [trace] metadata",
          Printable(snapshot_.folder), kDebuggerSnapshotName));
    if (Status status = ReadTraces(metadata); !status.ok()) return status;
    return std::move(snapshot_);
  }

 private:
  std::string Quoted(const std::string& name) const {
    return fmt::format("'{}/{}'", Printable(snapshot_.folder), Printable(name, 200));
  }

  Status ReadText(const std::string& name, std::string* text) {
    if (!IsInside(name))
      return Status::Corrupt(fmt::format("{} lies outside of the snapshot", Quoted(name)));
    auto read = ReadWholeFile(files_, snapshot_.folder + "/" + name, kMostIniBytes);
    if (!read.ok()) return read.status();
    *text = std::move(*read);
    return {};
  }

  void Warn(std::string sentence) {
    if (snapshot_.warnings.size() < kMostSnapshotWarnings)
      snapshot_.warnings.push_back(std::move(sentence));
  }

  void NoteOddLines(const std::string& name, const IniText& ini) {
    if (ini.odd_lines > 0)
      Warn(fmt::format("{}: {} lines in it are neither a section nor a value", Quoted(name),
                       ini.odd_lines));
  }

  void ReadDevices(const IniSection& list) {
    for (const auto& [number, file] : list.values) {
      if (snapshot_.cores.size() + snapshot_.sources.size() == kMostDevices)
        return Warn(fmt::format("only the first {} devices are read", kMostDevices));
      const std::string name(file);
      std::string text;
      if (const Status status = ReadText(name, &text); !status.ok()) {
        Warn(status.message());
        continue;
      }
      const IniText ini = ParseIni(text);
      NoteOddLines(name, ini);
      ReadDevice(name, ini);
    }
  }

  void ReadDevice(const std::string& file, const IniText& ini) {
    const IniSection* device = ini.Find("device");
    const std::string_view name = device != nullptr ? device->Find("name") : "";
    if (name.empty()) return Warn(fmt::format("{}: no [device] in it has a name", Quoted(file)));
    const std::string_view kind = device->Find("class");
    const std::string type(device->Find("type"));
    if (IsSameWord(kind, "core")) {
      snapshot_.cores.push_back({std::string(name), type, {}});
      for (const IniSection& section : ini.sections) {
        if (IsSameWord(section.name.substr(0, 4), "dump")) ReadDump(file, section);
      }
    } else if (IsSameWord(kind, "trace_source")) {
      snapshot_.sources.push_back(SourceOf(std::string(name), type, ini.Find("regs")));
    }
  }

  SnapshotSource SourceOf(std::string name, const std::string& type, const IniSection* section) {
    SnapshotSource source{std::move(name), type, std::nullopt, "", std::nullopt};
    const auto kind = EtmKindOfType(type);
    if (!kind) {
      source.refusal = "it traces no instructions, or is of a type that is not decoded";
      return source;
    }
    Registers registers(section);
    EtmSetting etm = ReadSetting(*kind, &registers);
    etm.cpu = static_cast<int>(snapshot_.sources.size());
    if (registers.missing().empty())
      source.etm = etm;
    else
      source.refusal = fmt::format("the snapshot has no {} of it", registers.missing());
    return source;
  }

  void ReadDump(const std::string& device, const IniSection& section) {
    if (dumps_ == kMostDumps) return;
    SnapshotDump dump;
    dump.file = section.Find("file");
    dump.space = section.Find("space");
    const auto address = ParseDecimalOrHex<uint64_t>(section.Find("address"));
    const std::string_view bytes = section.Find("length");
    const std::string_view offset = section.Find("offset");
    dump.bytes = ParseDecimalOrHex<uint64_t>(bytes);
    dump.offset = ParseDecimalOrHex<uint64_t>(offset).value_or(0);
    const bool numbers = address && (bytes.empty() || dump.bytes) &&
                         (offset.empty() || ParseDecimalOrHex<uint64_t>(offset));
    if (!numbers || !IsInside(dump.file))
      return Warn(fmt::format("{}: [{}] says no file in the folder and where it lies in memory",
                              Quoted(device), Printable(section.name, 40)));
    dump.address = *address;
    ++dumps_;
    snapshot_.cores.back().dumps.push_back(std::move(dump));
  }

  Status ReadTraces(const std::string& metadata) {
    std::string text;
    if (Status status = ReadText(metadata, &text); !status.ok()) return status;
    const IniText ini = ParseIni(text);
    NoteOddLines(metadata, ini);
    const IniSection* list = ini.Find("trace_buffers");
    for (const std::string_view section : SplitList(list != nullptr ? list->Find("buffers") : "")) {
      if (snapshot_.buffers.size() < kMostBuffers) ReadBuffer(metadata, section, ini);
    }
    if (snapshot_.buffers.empty())
      return Status::NotFound(fmt::format("{} names no buffer of a trace", Quoted(metadata)));
    if (const IniSection* sources = ini.Find("source_buffers")) ReadSourceBuffers(*sources);
    if (const IniSection* cores = ini.Find("core_trace_sources")) ReadCoreSources(*cores);
    return {};
  }

  void ReadBuffer(const std::string& metadata, std::string_view section, const IniText& ini) {
    const IniSection* found = ini.Find(section);
    SnapshotBuffer buffer;
    if (found != nullptr) {
      buffer.name = found->Find("name");
      buffer.file = found->Find("file");
      buffer.format_name = found->Find("format");
    }
    if (!IsInside(buffer.file))
      return Warn(fmt::format("{}: the buffer [{}] has no file in the folder", Quoted(metadata),
                              Printable(section, 40)));
    if (buffer.name.empty()) buffer.name = section;
    buffer.format = FormatOfName(buffer.format_name);
    snapshot_.buffers.push_back(std::move(buffer));
  }

  SnapshotSource* FindSource(std::string_view name) {
    const auto found = std::find_if(snapshot_.sources.begin(), snapshot_.sources.end(),
                                    [&](const auto& source) { return source.name == name; });
    return found == snapshot_.sources.end() ? nullptr : &*found;
  }

  // Tools name sources that the snapshot has nothing of: of a board's six units one, say.
  void ReadSourceBuffers(const IniSection& section) {
    for (const auto& [name, buffers] : section.values) {
      const SnapshotSource* source = FindSource(name);
      for (const std::string_view wanted : SplitList(source != nullptr ? buffers : "")) {
        for (SnapshotBuffer& buffer : snapshot_.buffers) {
          if (buffer.name == wanted)
            buffer.sources.push_back(static_cast<size_t>(source - snapshot_.sources.data()));
        }
      }
    }
  }

  void ReadCoreSources(const IniSection& section) {
    for (const auto& [name, sources] : section.values) {
      const auto core =
          std::find_if(snapshot_.cores.begin(), snapshot_.cores.end(),
                       [&, wanted = name](const auto& c) { return c.name == wanted; });
      if (core == snapshot_.cores.end()) continue;
      for (const std::string_view wanted : SplitList(sources)) {
        if (SnapshotSource* source = FindSource(wanted))
          source->core = static_cast<size_t>(core - snapshot_.cores.begin());
      }
    }
  }

  FileSystem& files_;
  DebuggerSnapshot snapshot_;
  size_t dumps_ = 0;
};

}  // namespace

bool IsDebuggerSnapshot(FileSystem& files, const std::string& folder) {
  return files.Exists(folder + "/" + kDebuggerSnapshotName);
}

Result<DebuggerSnapshot> ReadDebuggerSnapshot(FileSystem& files, const std::string& folder) {
  return SnapshotReader(files, folder).Read();
}

}  // namespace hangscope
