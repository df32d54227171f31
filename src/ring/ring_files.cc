#include "ring/ring_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/numbers.h"
#include "base/utf8.h"
#include "ring/ring_format.h"

namespace hangscope {
namespace {

constexpr int kClaimTries = 100;  // of recorders that begin and end at once
constexpr size_t kMostNamesTold = 3;

// The part of a ring that its index describes.
struct Described {
  bool compressed = false;
  std::vector<IndexSlot> slots;
};

// A name of a ring's files, but for the index.
struct RingName {
  std::optional<uint32_t> segment;  // none: one of the others
  bool compressed_only = false;
};

std::optional<RingName> ParseRingName(std::string_view name, std::string_view ring) {
  if (!name.starts_with(ring) || name.size() <= ring.size() + 1 || name[ring.size()] != '.')
    return std::nullopt;
  std::string_view rest = name.substr(ring.size() + 1);
  for (const std::string_view known : {"tail", "next"}) {
    if (rest == known) return RingName{{}, true};
  }
  for (const std::string_view known : {"current", "current~", "snapshot", "snapshot~"}) {
    if (rest == known) return RingName{};
  }
  if (rest.ends_with(".zst")) rest.remove_suffix(4);
  const auto segment = ParseWhole<uint32_t>(rest);
  if (!segment || std::to_string(*segment) != rest) return std::nullopt;
  return RingName{segment, false};
}

bool Accounts(const Described& ring, const RingName& name) {
  if (!name.segment) return ring.compressed || !name.compressed_only;
  return *name.segment < ring.slots.size() && ring.slots[*name.segment].sequence != 0;
}

Status NotAnIndex(const std::string& path, const char* why) {
  return Status::Usage(
      fmt::format("'{}' {}, so that nothing is recorded there; move it away, or record under "
                  "another --prefix",
                  Printable(path), why));
}

// Nothing where the file is empty: a recorder was killed before its ring was there.
Result<std::optional<Described>> Describe(File& index, const std::string& path) {
  if (!index.IsOursAlone())
    return NotAnIndex(path, "is no plain file of this user with this name alone");
  IndexHeader header{};
  auto got = index.ReadAt(0, {reinterpret_cast<char*>(&header), sizeof header});
  if (!got.ok()) return got.status();
  if (*got == 0) return std::optional<Described>();
  if (*got < sizeof header || std::string_view(header.magic, sizeof header.magic) !=
                                  std::string_view(kIndexMagic, sizeof kIndexMagic))
    return NotAnIndex(path, "is not the index of a ring");
  if (header.check != CheckOf(header) || header.version != kIndexVersion || !IsSane(header))
    return NotAnIndex(path, "is the index of a ring that is damaged or of another version");
  Described ring;
  ring.compressed = (header.flags & kIndexZstd) != 0;
  ring.slots.resize(header.segment_count);
  for (uint32_t k = 0; k < header.segment_count; ++k)
    (void)ReadRecord(index, SlotAt(k), &ring.slots[k]);
  return std::optional<Described>(std::move(ring));
}

Status Refuse(const std::vector<std::string>& taken) {
  std::string names;
  for (size_t i = 0; i < std::min(taken.size(), kMostNamesTold); ++i)
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", Printable(taken[i]));
  if (taken.size() > kMostNamesTold)
    names += fmt::format(" and {} more", taken.size() - kMostNamesTold);
  return Status::Usage(
      fmt::format("{}: there already, and not made by a recorder, so that nothing is recorded over "
                  "it; move it away, or record under another --prefix",
                  names));
}

// What `ring` accounts for goes; refused, with nothing gone, where a name that is wanted is taken
// by anything else.
Status MakeWay(FileSystem& files, const std::string& prefix, const std::optional<Described>& ring,
               uint32_t wanted_segments) {
  const std::string folder = FolderOf(prefix);
  std::vector<std::string> goes;
  std::vector<std::string> taken;
  for (const std::string& name : files.List(folder)) {
    const auto parsed = ParseRingName(name, NameOf(prefix));
    if (!parsed) continue;
    if (ring && Accounts(*ring, *parsed))
      goes.push_back(folder + "/" + name);
    else if (!parsed->segment || *parsed->segment < wanted_segments)
      taken.push_back(folder + "/" + name);
  }
  if (!taken.empty() && wanted_segments > 0) return Refuse(taken);
  for (const std::string& path : goes) {
    if (Status status = files.Remove(path); !status.ok()) return status;
  }
  return {};
}

Status Locked(File& index, const std::string& prefix) {
  Status status = index.Lock();
  if (status.code() != Status::Code::kBusy) return status;
  return Status::Busy("the ring '" + prefix +
                      "' is in use by a live recorder; give this one another --prefix");
}

}  // namespace

Result<std::unique_ptr<File>> ClaimRing(FileSystem& files, const std::string& prefix,
                                        uint32_t segment_count) {
  const std::string path = IndexPath(prefix);
  Status status;
  for (int tries = 0; tries < kClaimTries; ++tries) {
    const bool is_there = files.Exists(path);
    if (!is_there) {
      if (status = MakeWay(files, prefix, std::nullopt, segment_count); !status.ok()) return status;
    }
    using Mode = FileSystem::Mode;
    auto file = files.Open(path, is_there ? Mode::kRecorded : Mode::kRecordedNew);
    status = file.status();
    if (status.error() == ENOENT || status.error() == EEXIST) continue;  // another recorder's
    if (!file.ok()) return status;
    if (status = Locked(**file, prefix); !status.ok()) return status;
    if ((*file)->LinkCount().value_or(1) == 0) continue;  // it was removed in between
    if (!is_there) return file;
    auto earlier = Describe(**file, path);
    if (!earlier.ok()) return earlier.status();
    if (status = MakeWay(files, prefix, *earlier, segment_count); !status.ok()) return status;
    if (status = (*file)->Truncate(0); !status.ok()) return status;
    return file;
  }
  return status.ok() ? Status::Busy("'" + path + "' comes and goes; another recorder has it")
                     : status;
}

Status RemoveRing(FileSystem& files, const std::string& prefix) {
  const std::string path = IndexPath(prefix);
  auto file = files.Open(path, FileSystem::Mode::kRecorded);
  if (!file.ok()) return file.status();
  if (Status status = Locked(**file, prefix); !status.ok()) return status;
  auto ring = Describe(**file, path);
  if (!ring.ok()) return ring.status();
  if (Status status = MakeWay(files, prefix, *ring, 0); !status.ok()) return status;
  return files.Remove(path);
}

}  // namespace hangscope
