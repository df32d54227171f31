#include "proc/process_memory.h"

#include <sys/uio.h>

#include <algorithm>

namespace hangscope {

std::string ProcessMemory::ReadUpTo(uint64_t address, size_t most) const {
  std::string bytes(most, '\0');
  if (kept_) {
    constexpr size_t kPiece = 4096;
    size_t known = 0;
    while (known < most) {
      const size_t piece = std::min(most - known, kPiece - (address + known) % kPiece);
      if (!kept_(address + known, bytes.data() + known, piece)) break;
      known += piece;
    }
    bytes.resize(known);
    return bytes;
  }
  const iovec local = {bytes.data(), bytes.size()};
  const iovec remote = {reinterpret_cast<void*>(address), bytes.size()};
  const ssize_t got = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

bool ProcessMemory::ReadInto(uint64_t address, void* into, size_t bytes) const {
  if (kept_) return kept_(address, into, bytes);
  const iovec local = {into, bytes};
  const iovec remote = {reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace hangscope
