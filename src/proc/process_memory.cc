#include "proc/process_memory.h"

#include <sys/uio.h>

namespace hangscope {

std::string ProcessMemory::ReadUpTo(uint64_t address, size_t most) const {
  std::string bytes(most, '\0');
  const iovec local = {bytes.data(), bytes.size()};
  const iovec remote = {reinterpret_cast<void*>(address), bytes.size()};
  const ssize_t got = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

bool ProcessMemory::ReadInto(uint64_t address, void* into, size_t bytes) const {
  const iovec local = {into, bytes};
  const iovec remote = {reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace hangscope
