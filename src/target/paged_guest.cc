#include "target/paged_guest.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "target/process_target.h"

namespace hangscope {
namespace {

constexpr uint64_t kMostPagedRam = uint64_t{1} << 40;
constexpr int kDeepestTree = 96;  // of a red-black tree whose keys have 40 bits
constexpr int kLookups = 3;       // the tree may change while it is read

struct PageNode {
  uint64_t colour;
  uint64_t parent;
  uint64_t left;
  uint64_t right;
  uint64_t key;
  uint64_t value;
};

}  // namespace

std::optional<uint64_t> HeaderOfMap(const ProcessMemory& memory, uint64_t entry) {
  uint64_t node = entry - offsetof(PageNode, key);
  for (int i = 0; i < kDeepestTree; ++i) {
    const auto parent = memory.Read<uint64_t>(node + offsetof(PageNode, parent));
    const auto above = parent && *parent != 0
                           ? memory.Read<uint64_t>(*parent + offsetof(PageNode, parent))
                           : std::nullopt;
    if (!above) return std::nullopt;
    if (*above == node) return *parent;
    const auto left = memory.Read<uint64_t>(*parent + offsetof(PageNode, left));
    const auto right = memory.Read<uint64_t>(*parent + offsetof(PageNode, right));
    if (left != node && right != node) return std::nullopt;
    node = *parent;
  }
  return std::nullopt;
}

PagedGuest::PagedGuest(int pid, const PagedRam& ram, uint64_t scope)
    : pid_(pid),
      name_(fmt::format("process {}", pid)),
      memory_(pid),
      ram_(ram),
      scope_(scope),
      ranges_({{ram.base, kMostPagedRam}}) {}

Result<std::unique_ptr<Target>> PagedGuest::Open(int pid, const PagedRam& ram, uint64_t scope) {
  auto guest = std::make_unique<PagedGuest>(pid, ram, scope);
  if (LifeOfProcess(pid) == Life::kDead)
    return Status::NotFound(fmt::format("there is no process {}", pid));
  if (!guest->memory_.Read<uint64_t>(ram.header))
    return Status::Io(
        fmt::format("{} has no map of its guest's pages at {:#x}, or may not be "
                    "looked into: {}",
                    guest->name_, ram.header, ErrorText(errno)));
  return std::unique_ptr<Target>(std::move(guest));
}

Life PagedGuest::life() { return LifeOfProcess(pid_); }

std::optional<uint64_t> PagedGuest::LookUp(uint64_t number) const {
  uint64_t at = memory_.Read<uint64_t>(ram_.header + offsetof(PageNode, parent)).value_or(0);
  for (int i = 0; i < kDeepestTree && at != 0; ++i) {
    const auto node = memory_.Read<PageNode>(at);
    if (!node) break;
    if (node->key == number) return node->value;
    at = number < node->key ? node->left : node->right;
  }
  return std::nullopt;
}

// A page stays where it is.
std::optional<uint64_t> PagedGuest::PageOf(uint64_t number) {
  if (const auto known = pages_.find(number); known != pages_.end()) return known->second;
  for (int i = 0; i < kLookups; ++i) {
    if (const auto page = LookUp(number)) return pages_.emplace(number, *page).first->second;
  }
  return std::nullopt;
}

// `piece` gets where the simulator has it, and which of the bytes it is: of one page each.
Status PagedGuest::ForEachPiece(
    uint64_t address, uint64_t bytes,
    const std::function<Status(uint64_t at, size_t from, size_t count)>& piece) {
  if (Status status = CheckRange(address, bytes); !status.ok()) return status;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t offset = address + done - ram_.base;
    const auto page = PageOf(offset / kPageBytes);
    if (!page)
      return Status::Io(
          fmt::format("{} has no memory at {:#x} of its guest yet", name_, address + done));
    const uint64_t count = std::min(bytes - done, kPageBytes - offset % kPageBytes);
    if (Status status = piece(*page + offset % kPageBytes, done, count); !status.ok())
      return status;
    done += count;
  }
  return {};
}

Status PagedGuest::Read(uint64_t address, std::span<char> bytes) {
  return ForEachPiece(address, bytes.size(), [&](uint64_t at, size_t from, size_t count) {
    return memory_.ReadInto(at, bytes.data() + from, count)
               ? Status()
               : Status::FromErrno(errno == 0 ? EFAULT : errno, "read the memory of", name_);
  });
}

Status PagedGuest::Write(uint64_t address, std::string_view bytes) {
  return ForEachPiece(address, bytes.size(), [&](uint64_t at, size_t from, size_t count) {
    const iovec local = {const_cast<char*>(bytes.data() + from), count};
    const iovec remote = {reinterpret_cast<void*>(at), count};
    return process_vm_writev(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(count)
               ? Status()
               : Status::FromErrno(errno, "write the memory of", name_);
  });
}

}  // namespace hangscope
