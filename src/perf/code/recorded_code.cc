#include "perf/code/recorded_code.h"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/utf8.h"
#include "code/open_elf.h"
#include "perf/code/build_id_cache.h"
#include "perf/perf_side_band.h"

namespace hangscope {
namespace {

constexpr size_t kMostMappings = 200'000;
constexpr uint64_t kMostCodeBytes = 512u << 20;  // of all files together

std::string BuildIdOf(Elf* elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  return size > 0 ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
                  : std::string();
}

}  // namespace

// Of records that begin with a process and its thread.
void RecordedCode::AddThread(const PerfRecord& record) {
  constexpr size_t kThreadOfFork = 8;  // behind the parent's process
  const size_t at = record.type == PERF_RECORD_FORK ? kThreadOfFork : 4;
  if (record.body.size() < at + 4 || process_of_.size() >= kMostMappings) return;
  const auto number = [&](size_t offset) {
    return static_cast<int>(Load32(record.body.data() + offset, ByteOrder::kLittle));
  };
  process_of_[number(at)] = number(0);
}

void RecordedCode::Add(const PerfRecord& record) {
  if (record.type == PERF_RECORD_COMM || record.type == PERF_RECORD_FORK ||
      record.type == PERF_RECORD_ITRACE_START)
    return AddThread(record);
  const auto map = ParsePerfMap(record);
  if (!map || !map->executable) return;
  if (map->pid == -1) return kernel_.Add(*map);
  if (map->pid < 0 || mapping_count_ == kMostMappings || map->begin + map->bytes < map->begin)
    return;
  ++mapping_count_;
  mappings_[map->pid].push_back({map->pid, std::max<TimeNs>(record.time, 0), map->begin, map->bytes,
                                 map->file_offset, std::string(map->path),
                                 std::string(map->build_id), true});
}

std::vector<std::string> RecordedCode::warnings() const {
  std::vector<std::string> all = warnings_;
  all.insert(all.end(), kernel_.warnings().begin(), kernel_.warnings().end());
  return all;
}

// The newest that was there by then.
const PerfMapping* RecordedCode::Find(int pid, TimeNs time, uint64_t address) const {
  const auto known = mappings_.find(pid);
  if (known == mappings_.end()) return nullptr;
  const PerfMapping* found = nullptr;
  for (const PerfMapping& mapping : known->second) {
    const bool covers = address >= mapping.begin && address - mapping.begin < mapping.bytes;
    if (covers && mapping.time <= time && (found == nullptr || mapping.time >= found->time))
      found = &mapping;
  }
  return found;
}

std::string RecordedCode::RecordedId(const PerfMapping& mapping) const {
  if (!mapping.build_id.empty()) return mapping.build_id;
  for (const auto& [path, id] : facts_.build_ids) {
    if (path == mapping.path) return id;
  }
  return {};
}

bool RecordedCode::Take(const std::string& path, const PerfMapping& mapping, Binary* binary) {
  const OpenElf file(path);
  Elf* const elf = file.get();
  if (elf == nullptr) return false;
  const std::string recorded = RecordedId(mapping);
  const bool same = recorded.empty() ? !binaries_.empty() : IsSameBuildId(BuildIdOf(elf), recorded);
  if (!same) {
    warnings_.push_back(
        recorded.empty()
            ? fmt::format("'{}' has no build id in the recording: only files in --binaries are "
                          "taken for it",
                          Printable(mapping.path))
            : fmt::format("'{}' is not the file that was recorded: its build id is another",
                          Printable(path)));
    return false;
  }
  binary->path = path;
  size_t count = 0;
  elf_getphdrnum(elf, &count);
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr program;
    if (gelf_getphdr(elf, static_cast<int>(i), &program) == nullptr || program.p_type != PT_LOAD)
      continue;
    binary->segments.push_back({program.p_offset, program.p_filesz, program.p_vaddr, {}});
    if ((program.p_flags & PF_X) != 0) ReadCodeOf(file.fd(), path, &binary->segments.back());
  }
  return true;
}

void RecordedCode::ReadCodeOf(int fd, const std::string& path, Segment* segment) {
  const off_t end = lseek(fd, 0, SEEK_END);
  const uint64_t there = end > 0 ? static_cast<uint64_t>(end) : 0;
  if (segment->file_offset >= there) return;
  const uint64_t bytes = std::min(segment->bytes, there - segment->file_offset);
  if (bytes > kMostCodeBytes - bytes_held_) {
    warnings_.push_back(
        fmt::format("the code of '{}' is not read: with it, that of all programs would be more "
                    "than {} MiB",
                    Printable(path), kMostCodeBytes >> 20));
    return;
  }
  segment->code.resize(static_cast<size_t>(bytes));
  const ssize_t got = pread(fd, segment->code.data(), segment->code.size(),
                            static_cast<off_t>(segment->file_offset));
  segment->code.resize(got > 0 ? static_cast<size_t>(got) : 0);
  bytes_held_ += segment->code.size();
}

RecordedCode::Binary& RecordedCode::BinaryOf(const PerfMapping& mapping) {
  const auto known = binaries_of_path_.find(mapping.path);
  if (known != binaries_of_path_.end()) return known->second;
  Binary& binary = binaries_of_path_[mapping.path];
  const size_t known_warnings = warnings_.size();
  // What was wrong with other files matters no more where the cache has the right one.
  if (!FindBinary(mapping, &binary) && FindCached(mapping, &binary))
    warnings_.resize(known_warnings);
  return binary;
}

bool RecordedCode::FindBinary(const PerfMapping& mapping, Binary* binary) {
  if (mapping.path.find('/') == std::string::npos) return false;  // "[vdso]", "//anon"
  if (binaries_.empty()) return Take(mapping.path, mapping, binary);
  // A path of a file never leads out of the folder.
  const bool plain = mapping.path.find("/../") == std::string::npos;
  return (plain && Take(binaries_ + mapping.path, mapping, binary)) ||
         Take(binaries_ + mapping.path.substr(mapping.path.rfind('/')), mapping, binary);
}

bool RecordedCode::FindCached(const PerfMapping& mapping, Binary* binary) {
  const std::string id = RecordedId(mapping);
  if (cache_.empty() || id.empty()) return false;
  const size_t known_warnings = warnings_.size();
  for (const std::string& path :
       CachedFiles(cache_, id, mapping.path == "[vdso]" ? "vdso" : "elf")) {
    if (Take(path, mapping, binary)) return true;
  }
  warnings_.resize(known_warnings);  // nobody named its files
  return false;
}

ReadCode RecordedCode::CodeOf(int pid, TimeNs time) {
  return [this, pid, time](uint64_t address, std::span<char> bytes) -> size_t {
    const PerfMapping* mapping = Find(pid, time, address);
    if (mapping == nullptr) return kernel_.Covers(address) ? kernel_.Read(address, bytes) : 0;
    const uint64_t into = address - mapping->begin;
    const uint64_t at = mapping->file_offset + into;
    for (const Segment& segment : BinaryOf(*mapping).segments) {
      if (at < segment.file_offset || at - segment.file_offset >= segment.code.size()) continue;
      const size_t skipped = static_cast<size_t>(at - segment.file_offset);
      const size_t count = std::min({bytes.size(), static_cast<size_t>(mapping->bytes - into),
                                     segment.code.size() - skipped});
      std::memcpy(bytes.data(), segment.code.data() + skipped, count);
      return count;
    }
    return 0;
  };
}

int RecordedCode::ProcessOf(const PerfAuxSpan& span, int cpu) {
  const auto share = std::find_if(span.shares.begin(), span.shares.end(),
                                  [&](const PerfTraceShare& one) { return one.cpu == cpu; });
  if (cpu < 0 || share == span.shares.end()) return span.pid;
  std::set<int> processes;
  for (const int tid : share->threads) {
    const auto process = process_of_.find(tid);
    processes.insert(process == process_of_.end() ? -1 : process->second);
  }
  // Where one program alone was recorded, it was this.
  if (processes.empty() && mappings_.size() == 1) processes.insert(mappings_.begin()->first);
  if (processes.size() == 1 && *processes.begin() >= 0) return *processes.begin();
  if (not_followed_.insert(cpu).second)
    warnings_.push_back(fmt::format(
        "of the trace of CPU {} in a shared sink it is not known whose code it was: {}", cpu,
        processes.size() > 1 ? "several programs ran there" : "no record says who ran there"));
  return -1;
}

Location RecordedCode::LocateIn(const PerfMapping& mapping, uint64_t address) {
  Binary& binary = BinaryOf(mapping);
  if (binary.path.empty()) return {};
  if (!binary.looked_for_image) {
    binary.looked_for_image = true;
    if (auto image = ElfImage::Open(binary.path); image.ok()) binary.image = std::move(*image);
  }
  const uint64_t at = mapping.file_offset + (address - mapping.begin);
  for (const Segment& segment : binary.segments) {
    if (binary.image == nullptr || at < segment.file_offset ||
        at - segment.file_offset >= segment.bytes)
      continue;
    const uint64_t pc = segment.address + (at - segment.file_offset);
    Location location = binary.image->Locate(pc);
    location.function_begin = address - (pc - std::min(location.function_begin, pc));
    return location;
  }
  return {};
}

Location RecordedCode::Locate(int pid, TimeNs time, uint64_t address) {
  if (const PerfMapping* mapping = Find(pid, time, address)) return LocateIn(*mapping, address);
  return kernel_.Covers(address) ? kernel_.Locate(address) : Location();
}

std::string RecordedCode::PlaceOf(int pid, TimeNs time, uint64_t address) {
  const PerfMapping* mapping = Find(pid, time, address);
  if (mapping == nullptr) return kernel_.Covers(address) ? kernel_.PlaceOf(address) : "";
  const Location location = LocateIn(*mapping, address);
  if (location.function.empty())
    return fmt::format("{}+{:#x}", mapping->path.substr(mapping->path.rfind('/') + 1),
                       mapping->file_offset + (address - mapping->begin));
  return fmt::format("{}+{:#x}{}{}", location.function, address - location.function_begin,
                     location.file.empty() ? "" : " ", location.source());
}

}  // namespace hangscope
