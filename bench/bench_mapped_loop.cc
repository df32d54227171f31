// The barest recorders, to compare with:
//
//   bench_mapped_loop --discard           reads standard input and forgets it
//   bench_mapped_loop PREFIX SIZE KEEP    reads it straight into a ring of KEEP
//                                         mapped files of SIZE bytes, PREFIX.0 ...
//
// No index, no stamps, no reader, no limit but the ring's: a floor, not a tool.
// At the end the number of bytes is printed.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr size_t kReadBytes = 256 * 1024;

// 0 at the end of the input.
size_t ReadInto(char* to, size_t room) {
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, to, room);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EINTR) continue;
    perror("bench_mapped_loop: read");
    exit(1);
  }
}

uint64_t Discard() {
  // read(2) to where no page begins takes twice as long.
  alignas(4096) static char buffer[kReadBytes];
  uint64_t total = 0;
  while (const size_t got = ReadInto(buffer, sizeof buffer)) total += got;
  return total;
}

char* MapNewFile(const std::string& path, size_t size) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) {
    perror(path.c_str());
    exit(1);
  }
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) {
    perror(path.c_str());
    exit(1);
  }
  return static_cast<char*>(at);
}

uint64_t FillRing(const std::string& prefix, size_t size, size_t keep) {
  std::vector<char*> files;
  for (size_t k = 0; k < keep; ++k)
    files.push_back(MapNewFile(prefix + "." + std::to_string(k), size));
  uint64_t total = 0;
  for (size_t file = 0;; file = (file + 1) % keep) {
    for (size_t filled = 0; filled < size;) {
      const size_t got = ReadInto(files[file] + filled, std::min(kReadBytes, size - filled));
      if (got == 0) return total;
      filled += got;
      total += got;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t total = 0;
  if (argc == 2 && std::string_view(argv[1]) == "--discard") {
    total = Discard();
  } else if (argc == 4) {
    total = FillRing(argv[1], strtoull(argv[2], nullptr, 10), strtoull(argv[3], nullptr, 10));
  } else {
    fprintf(stderr, "usage: bench_mapped_loop --discard | PREFIX SIZE KEEP\n");
    return 2;
  }
  printf("%" PRIu64 "\n", total);
  return 0;
}
