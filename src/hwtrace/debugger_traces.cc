#include "hwtrace/debugger_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/units.h"
#include "base/utf8.h"
#include "hwtrace/coresight_trace.h"
#include "hwtrace/coresight_tree.h"

namespace hangscope {
namespace {

constexpr uint64_t kMostDumpedBytes = 512u << 20;  // of all dumps together
constexpr uint64_t kMostBufferBytes = 64u << 20;   // decoded of one buffer: its newest
constexpr size_t kMostDumpWarnings = 20;

constexpr size_t kDstreamBlock = 512;
constexpr size_t kDstreamFooter = 8;
constexpr std::string_view kFrameSync("\xff\xff\xff\x7f");

// From `offset` on, `most` bytes of it; fewer where it has no more.
Result<std::string> ReadPart(FileSystem& files, const std::string& path, uint64_t offset,
                             uint64_t most) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  std::string bytes(std::min(most, *size - std::min(offset, *size)), '\0');
  auto got = (*file)->ReadAt(offset, bytes);
  if (!got.ok()) return got.status();
  bytes.resize(*got);
  return bytes;
}

class SnapshotDecoder {
 public:
  SnapshotDecoder(FileSystem& files, const DebuggerSnapshot& snapshot,
                  const TraceDecodeOptions& options, bool with_code)
      : files_(files),
        snapshot_(snapshot),
        options_(options),
        with_code_(with_code),
        code_(files, snapshot) {}

  DebuggerTraces Decode() {
    for (size_t buffer = 0; buffer < snapshot_.buffers.size(); ++buffer) DecodeBuffer(buffer);
    all_.warnings.insert(all_.warnings.end(), code_.warnings().begin(), code_.warnings().end());
    return std::move(all_);
  }

 private:
  void DecodeBuffer(size_t number) {
    const SnapshotBuffer& buffer = snapshot_.buffers[number];
    const auto warn = [&](const std::string& why) {
      all_.warnings.push_back(fmt::format("buffer {}: {}", Printable(buffer.name, 80), why));
    };
    if (buffer.format == SnapshotBuffer::Format::kUnknown)
      return warn(fmt::format("its format '{}' is not known, and it is not decoded",
                              Printable(buffer.format_name, 40)));
    auto bytes = ReadBuffer(buffer);
    if (!bytes.ok()) return warn(bytes.status().message());
    const bool raw = buffer.format == SnapshotBuffer::Format::kOneSource;
    if (raw && buffer.sources.size() > 1)
      warn("it holds one source, and several are named: the first counts");
    if (buffer.sources.empty()) warn("no trace source is named that writes into it");
    const size_t count = raw ? std::min<size_t>(1, buffer.sources.size()) : buffer.sources.size();
    for (size_t i = 0; i < count; ++i) {
      const SnapshotSource& source = snapshot_.sources[buffer.sources[i]];
      if (source.etm)
        DecodeSource(number, buffer.sources[i], *bytes, raw);
      else
        warn(fmt::format("{} {}: {}", Printable(source.type, 20), Printable(source.name, 80),
                         source.refusal));
    }
  }

  // The newest are next to the end.
  Result<std::string> ReadBuffer(const SnapshotBuffer& buffer) {
    const std::string path = snapshot_.folder + "/" + buffer.file;
    auto file = files_.Open(path, FileSystem::Mode::kRead);
    if (!file.ok()) return file.status();
    auto size = (*file)->Size();
    if (!size.ok()) return size.status();
    uint64_t begin = *size - std::min(*size, kMostBufferBytes);
    begin -= begin % kDstreamBlock;
    if (begin > 0)
      all_.warnings.push_back(fmt::format("buffer {}: only the last {} of it are decoded",
                                          Printable(buffer.name, 80), FormatSize(*size - begin)));
    auto bytes = ReadPart(files_, path, begin, *size - begin);
    if (!bytes.ok() || buffer.format != SnapshotBuffer::Format::kFramesAndSyncs) return bytes;
    return DstreamFrames(*bytes);
  }

  // The others in the buffer are left to decodings of their own: their cores may have other memory.
  void DecodeSource(size_t buffer, size_t number, std::string_view bytes, bool raw) {
    const SnapshotSource& source = snapshot_.sources[number];
    AuxTraceInfo info;
    info.cpus = {*source.etm};
    auto decoder = OpenCoreSightTrace(info, source.etm->cpu);
    if (!decoder.ok()) return;
    TraceDecodeOptions options = options_;
    options.raw = raw;
    options.read_code = with_code_ ? code_.CodeOf(source.core) : nullptr;
    SourceTrace trace{buffer, number, 0, (*decoder)->Decode(bytes, options)};
    const auto own = trace.summary.bytes_of_cpu.find(source.etm->cpu);
    if (own != trace.summary.bytes_of_cpu.end()) trace.bytes = own->second;
    if (raw) trace.bytes = bytes.size();
    // Of some trace units the library does not count bytes.
    const bool any = trace.bytes + trace.summary.packets + trace.summary.instructions > 0;
    if (any) all_.traces.push_back(std::move(trace));
  }

  FileSystem& files_;
  const DebuggerSnapshot& snapshot_;
  const TraceDecodeOptions& options_;
  const bool with_code_;
  DumpedCode code_;
  DebuggerTraces all_;
};

}  // namespace

void DumpedCode::Warn(std::string sentence) {
  const bool known = std::find(warnings_.begin(), warnings_.end(), sentence) != warnings_.end();
  if (!known && warnings_.size() < kMostDumpWarnings) warnings_.push_back(std::move(sentence));
}

std::string_view DumpedCode::BytesOf(const SnapshotDump& dump) {
  const auto [piece, fresh] =
      pieces_.try_emplace({dump.file, dump.offset, dump.bytes.value_or(UINT64_MAX)});
  if (!fresh) return piece->second;
  const uint64_t most = std::min(dump.bytes.value_or(UINT64_MAX), kMostDumpedBytes - bytes_held_);
  auto bytes = ReadPart(files_, snapshot_.folder + "/" + dump.file, dump.offset, most);
  if (!bytes.ok()) {
    Warn("code is missing: " + bytes.status().message());
    return {};
  }
  if (bytes_held_ + bytes->size() == kMostDumpedBytes)
    Warn(fmt::format("of the dumps of memory only {} are read", FormatSize(kMostDumpedBytes)));
  bytes_held_ += bytes->size();
  piece->second = std::move(*bytes);
  return piece->second;
}

// What is there already stays.
void DumpedCode::Add(const SnapshotDump& dump, Memory* memory) {
  const std::string_view bytes = BytesOf(dump);
  const uint64_t end = dump.address + std::min<uint64_t>(bytes.size(), UINT64_MAX - dump.address);
  uint64_t at = dump.address;
  auto next = memory->upper_bound(at);
  if (next != memory->begin()) at = std::max(at, std::prev(next)->second.end);
  while (at < end) {
    const uint64_t until = next == memory->end() ? end : std::min(end, next->first);
    if (until > at)
      memory->emplace_hint(next, at, Piece{until, bytes.substr(at - dump.address, until - at)});
    if (next == memory->end()) return;
    at = next->second.end;
    ++next;
  }
}

const DumpedCode::Memory& DumpedCode::MemoryOf(std::optional<size_t> core) {
  const auto [memory, fresh] = memories_.try_emplace(core);
  if (!fresh) return memory->second;
  for (const bool own : {true, false}) {
    for (size_t i = 0; i < snapshot_.cores.size(); ++i) {
      if ((i == core) != own) continue;
      for (const SnapshotDump& dump : snapshot_.cores[i].dumps) Add(dump, &memory->second);
    }
  }
  return memory->second;
}

ReadCode DumpedCode::CodeOf(std::optional<size_t> core) {
  const Memory& memory = MemoryOf(core);
  if (memory.empty()) return {};
  return [&memory](uint64_t address, std::span<char> bytes) -> size_t {
    size_t got = 0;
    auto piece = memory.upper_bound(address);
    if (piece == memory.begin()) return 0;
    // Over the border of dumps that lie side by side, too.
    for (--piece; piece != memory.end() && got < bytes.size(); ++piece) {
      const uint64_t at = address + got;
      if (at < piece->first || at >= piece->second.end) break;
      const size_t count = std::min<uint64_t>(bytes.size() - got, piece->second.end - at);
      std::memcpy(bytes.data() + got, piece->second.bytes.data() + (at - piece->first), count);
      got += count;
    }
    return got;
  };
}

std::string DstreamFrames(std::string_view bytes) {
  std::string port;
  for (size_t block = 0; block < bytes.size(); block += kDstreamBlock)
    port += bytes.substr(block, kDstreamBlock - kDstreamFooter);
  std::string frames;
  size_t at = std::min(port.find(kFrameSync), port.size());
  while (at < port.size()) {
    if (port.compare(at, kFrameSync.size(), kFrameSync) == 0) {
      at += kFrameSync.size();
      continue;
    }
    // A frame that a synchronisation cuts off is none.
    const std::string_view rest = std::string_view(port).substr(at);
    const size_t cut =
        rest.substr(0, kCoreSightFrameBytes + kFrameSync.size() - 1).find(kFrameSync);
    if (cut >= kCoreSightFrameBytes) frames += rest.substr(0, kCoreSightFrameBytes);
    at += std::min({cut, kCoreSightFrameBytes, rest.size()});
  }
  return frames;
}

DebuggerTraces DecodeDebuggerSnapshot(FileSystem& files, const DebuggerSnapshot& snapshot,
                                      const TraceDecodeOptions& options, bool with_code) {
  return SnapshotDecoder(files, snapshot, options, with_code).Decode();
}

}  // namespace hangscope
