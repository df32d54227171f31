#include "target/guest_ram.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "hangscope/abi/scope.h"
#include "proc/process_memory.h"
#include "target/process_maps.h"

namespace hangscope {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kLeastRam = 1u << 20;
constexpr uint64_t kMostRam = uint64_t{1} << 40;  // larger are the shadows of sanitizers
constexpr size_t kMostRams = 16;
constexpr size_t kPagesAtOnce = 4096;
constexpr uint64_t kPresent = uint64_t{1} << 63;  // of an entry of /proc/PID/pagemap
constexpr size_t kMagicBytes = 8;
constexpr uint64_t kBlockHeader = 16;  // of malloc's
constexpr uint64_t kAtOnce = 1u << 20;
// CPU time.
constexpr TimeNs kLongestByPages = 100 * kMillisecond;
constexpr TimeNs kLongestEverywhere = 400 * kMillisecond;

// As the magic stands in the memory of a machine of either byte order.
constexpr std::string_view kMagics[] = {"hangscop", "gnahpocs"};
static_assert(HANGSCOPE_MAGIC0 == 0x676e6168u && HANGSCOPE_MAGIC1 == 0x706f6373u);

bool IsMagic(std::string_view bytes) { return bytes == kMagics[0] || bytes == kMagics[1]; }

// RAM is written to; a device's registers, or memory of a graphics card, are not read.
bool MayBeRam(const MemoryMapping& mapping) {
  const std::string_view path = mapping.path;
  const bool device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/") &&
                      !path.starts_with("/dev/zero") && !path.starts_with("/dev/hugepages/");
  return mapping.readable && mapping.writable && !device && mapping.size_bytes() >= kLeastRam &&
         mapping.size_bytes() <= kMostRam;
}

// The largest first.
std::vector<MemoryMapping> Rams(std::vector<MemoryMapping> mappings) {
  std::erase_if(mappings, [](const MemoryMapping& mapping) { return !MayBeRam(mapping); });
  std::stable_sort(mappings.begin(), mappings.end(),
                   [](const MemoryMapping& a, const MemoryMapping& b) {
                     return a.size_bytes() > b.size_bytes();
                   });
  mappings.resize(std::min(mappings.size(), kMostRams));
  return mappings;
}

class RamSearch {
 public:
  RamSearch(int pid, File& pagemap, const GuestSearch& search)
      : pid_(pid), memory_(pid), pagemap_(pagemap), search_(search) {}

  std::optional<uint64_t> Run(const std::vector<MemoryMapping>& rams, const IsScopeAt& is_scope) {
    is_scope_ = is_scope;
    if (const auto found = AtLikelyPlaces(rams)) return found;
    if (const auto found = ByPages(rams)) return found;
    return search_.everywhere ? Everywhere(rams) : std::nullopt;
  }

  // A node of the map has the number of the scope's page beside the address of its bytes.
  std::optional<PagedRam> InMapOfPages(const std::vector<MemoryMapping>& rams,
                                       const std::function<bool(const PagedRam&)>& is_ram) {
    std::map<uint64_t, uint64_t> bases;  // by number of the page
    ForEachBase([&](uint64_t base) { bases.emplace((search_.symbol - base) / kPageBytes, base); });
    std::optional<PagedRam> found;
    InEach(rams, kLongestByPages, [&](const Pages& pages) -> std::optional<uint64_t> {
      for (uint64_t at = pages.begin; at < pages.end && !found; at += kAtOnce) {
        const size_t bytes = std::min(pages.end - at, kAtOnce + sizeof(uint64_t));
        const std::string text = memory_.ReadUpTo(at, bytes);
        for (size_t i = 0; i + 2 * sizeof(uint64_t) <= text.size(); i += sizeof(uint64_t)) {
          uint64_t pair[2];
          std::memcpy(pair, text.data() + i, sizeof pair);
          const auto base = bases.find(pair[0]);
          if (base == bases.end() || pair[1] % kBlockHeader != 0 || pair[1] == 0) continue;
          if (!IsMagic(memory_.ReadUpTo(pair[1] + search_.symbol % kPageBytes, kMagicBytes)))
            continue;
          const auto header = HeaderOfMap(memory_, at + i);
          if (header && is_ram({base->second, *header})) found = {base->second, *header};
          if (found) return *header;
        }
      }
      return std::nullopt;
    });
    return found;
  }

 private:
  struct Pages {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // Stretches of pages in [begin, end) that are there, kPagesAtOnce at most.
  std::vector<Pages> PagesThere(uint64_t begin, uint64_t end) {
    std::vector<Pages> there;
    entries_.resize((end - begin) / kPageBytes);
    const std::span<char> bytes(reinterpret_cast<char*>(entries_.data()), entries_.size() * 8);
    auto got = pagemap_.ReadAt(begin / kPageBytes * 8, bytes);
    const size_t known = got.ok() ? *got / 8 : 0;
    for (size_t i = 0; i < known; ++i) {
      if ((entries_[i] & kPresent) == 0) continue;
      const uint64_t page = begin + i * kPageBytes;
      if (!there.empty() && there.back().end == page)
        there.back().end += kPageBytes;
      else
        there.push_back({page, page + kPageBytes});
    }
    return there;
  }

  bool IsScope(uint64_t address) {
    const uint64_t page = address / kPageBytes * kPageBytes;
    if (address + kMagicBytes > page + kPageBytes || PagesThere(page, page + kPageBytes).empty())
      return false;
    const std::string bytes = memory_.ReadUpTo(address, kMagicBytes);
    return IsMagic(bytes) && is_scope_(address);
  }

  // In the guest RAM begins at a round address before what the ELF loads.
  template <typename Do>
  void ForEachBase(Do do_it) const {
    uint64_t last = UINT64_MAX;
    for (int bits = 12; bits <= 40; ++bits) {
      const uint64_t base = search_.first_address >> bits << bits;
      if (base != std::exchange(last, base)) do_it(base);
    }
  }

  // A RAM's first byte is the mapping's, or the first of a block in it.
  std::optional<uint64_t> AtLikelyPlaces(const std::vector<MemoryMapping>& rams) {
    std::optional<uint64_t> found;
    for (const MemoryMapping& ram : rams) {
      ForEachBase([&](uint64_t base) {
        if (found || search_.symbol - base >= ram.size_bytes()) return;
        for (const uint64_t at : {ram.begin + search_.symbol - base,
                                  ram.begin + kBlockHeader + search_.symbol - base}) {
          if (!found && at < ram.end && IsScope(at)) found = at;
        }
      });
      if (found) break;
    }
    return found;
  }

  // The first address found by `look`, given stretches of pages that are there.
  template <typename Look>
  std::optional<uint64_t> InEach(const std::vector<MemoryMapping>& rams, TimeNs longest,
                                 Look look) {
    const TimeNs begin = ThreadCpuTime();
    for (const MemoryMapping& ram : rams) {
      for (uint64_t at = ram.begin; at < ram.end; at += kPagesAtOnce * kPageBytes) {
        for (const Pages& pages : PagesThere(at, std::min(ram.end, at + kPagesAtOnce * kPageBytes)))
          if (const auto found = look(pages)) return found;
        if (ThreadCpuTime() - begin > longest) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  // 8 bytes of each page, or of two places in it.
  std::optional<uint64_t> ByPages(const std::vector<MemoryMapping>& rams) {
    std::vector<uint64_t> in_page;
    for (const uint64_t at : {search_.symbol, search_.symbol + kBlockHeader}) {
      if (at % kPageBytes + kMagicBytes <= kPageBytes) in_page.push_back(at % kPageBytes);
    }
    return InEach(rams, kLongestByPages, [&](const Pages& pages) -> std::optional<uint64_t> {
      std::vector<uint64_t> places;
      for (uint64_t page = pages.begin; page < pages.end; page += kPageBytes) {
        for (const uint64_t at : in_page) places.push_back(page + at);
      }
      return FirstScopeOf(places);
    });
  }

  std::optional<uint64_t> FirstScopeOf(std::span<const uint64_t> places) {
    constexpr size_t kMostVectors = 1024;  // IOV_MAX
    std::vector<iovec> remote;
    while (!places.empty()) {
      const std::span<const uint64_t> now = places.first(std::min(places.size(), kMostVectors));
      remote.clear();
      for (const uint64_t place : now)
        remote.push_back({reinterpret_cast<void*>(place), kMagicBytes});
      buffer_.resize(now.size() * kMagicBytes);
      const iovec local = {buffer_.data(), buffer_.size()};
      const ssize_t got = process_vm_readv(pid_, &local, 1, remote.data(), remote.size(), 0);
      const size_t read = got > 0 ? static_cast<size_t>(got) / kMagicBytes : 0;
      for (size_t i = 0; i < read; ++i) {
        const std::string_view bytes(buffer_.data() + i * kMagicBytes, kMagicBytes);
        if (IsMagic(bytes) && is_scope_(now[i])) return now[i];
      }
      // What could not be read ends the call; the rest may be readable.
      places = places.subspan(std::min(places.size(), read == now.size() ? read : read + 1));
    }
    return std::nullopt;
  }

  std::optional<uint64_t> Everywhere(const std::vector<MemoryMapping>& rams) {
    return InEach(rams, kLongestEverywhere, [&](const Pages& pages) -> std::optional<uint64_t> {
      for (uint64_t at = pages.begin; at < pages.end; at += kAtOnce) {
        // The magic may lie across the end of what is read at once.
        const size_t bytes = std::min(pages.end - at, kAtOnce + kMagicBytes);
        const std::string text = memory_.ReadUpTo(at, bytes);
        for (const std::string_view magic : kMagics) {
          for (size_t found = 0; (found = text.find(magic, found)) != std::string::npos; ++found) {
            if (found % 4 == 0 && is_scope_(at + found)) return at + found;
          }
        }
      }
      return std::nullopt;
    });
  }

  const int pid_;
  const ProcessMemory memory_;
  File& pagemap_;
  const GuestSearch& search_;
  IsScopeAt is_scope_;
  std::vector<uint64_t> entries_;
  std::string buffer_;
};

template <typename Found, typename How>
Result<std::optional<Found>> SearchIn(FileSystem& files, int pid, const GuestSearch& search,
                                      How how) {
  auto mappings = ReadMappings(files, pid);
  if (!mappings.ok()) return mappings.status();
  const std::vector<MemoryMapping> rams = Rams(std::move(*mappings));
  if (rams.empty()) return std::optional<Found>();
  auto pagemap = files.Open(fmt::format("/proc/{}/pagemap", pid), FileSystem::Mode::kRead);
  if (!pagemap.ok()) return pagemap.status();
  // Whoever may read this may not always read the memory.
  if (Status status = CheckMayRead(pid); !status.ok()) return status;
  RamSearch in(pid, **pagemap, search);
  return how(in, rams);
}

}  // namespace

Status CheckMayRead(int pid) {
  char byte = 0;
  const iovec local = {&byte, 1};
  const iovec remote = {nullptr, 1};
  if (process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno != EPERM) return {};
  return Status::FromErrno(EPERM, "read the memory of", fmt::format("process {}", pid));
}

Result<std::optional<uint64_t>> FindInGuestRam(FileSystem& files, int pid,
                                               const GuestSearch& search,
                                               const IsScopeAt& is_scope) {
  return SearchIn<uint64_t>(
      files, pid, search, [&](RamSearch& in, const auto& rams) { return in.Run(rams, is_scope); });
}

Result<std::optional<PagedRam>> FindPagedGuestRam(
    FileSystem& files, int pid, const GuestSearch& search,
    const std::function<bool(const PagedRam& ram)>& is_ram) {
  return SearchIn<PagedRam>(files, pid, search, [&](RamSearch& in, const auto& rams) {
    return in.InMapOfPages(rams, is_ram);
  });
}

}  // namespace hangscope
