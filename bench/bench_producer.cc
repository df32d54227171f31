// bench_producer KIND BYTES [MEGABYTES_PER_SECOND]
//
// Writes BYTES of made-up trace (trace_text.h) to standard output, a pipe, in
// writes of 64 KiB as fast as the pipe takes them, or at the given rate.
//
//   waits for a byte on standard input   so that nobody's start is measured
//   writes, waits for the pipe to be empty
//   prints {"bytes": ..., "seconds": ..., "worst_write_s": ...} on standard error
//   waits for the end of standard input  so that the reader can still be examined
//
// Without a standard input (</dev/null) it neither waits nor prints.
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "trace_text.h"

namespace {

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void SleepUntil(double time) {
  const double left = time - Now();
  if (left > 0) usleep(static_cast<useconds_t>(left * 1e6));
}

bool WaitForByte() {
  char byte = 0;
  return read(STDIN_FILENO, &byte, 1) == 1;
}

// Ends the program where the reader is gone.
void WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      perror("bench_producer: write");
      exit(1);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

bool PipeIsEmpty() {
  int left = 0;
  return ioctl(STDOUT_FILENO, FIONREAD, &left) != 0 || left == 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hangscope::bench;
  const auto kind = argc >= 3 ? TextKindOf(argv[1]) : std::nullopt;
  if (!kind) {
    fprintf(stderr, "usage: bench_producer qemu|spike|gvsoc|plain BYTES [MEGABYTES_PER_SECOND]\n");
    return 2;
  }
  const uint64_t total = strtoull(argv[2], nullptr, 10);
  const double bytes_per_second = argc > 3 ? strtod(argv[3], nullptr) * 1e6 : 0;
  const TraceText text(*kind);

  const bool supervised = WaitForByte();
  const double start = Now();
  double worst_write = 0;
  double before = start;
  for (uint64_t done = 0; done < total; done += kChunkBytes) {
    const std::string_view chunk = text.Chunk(done / kChunkBytes);
    WriteAll(chunk.substr(0, std::min<uint64_t>(kChunkBytes, total - done)));
    const double after = Now();
    worst_write = std::max(worst_write, after - before);
    before = after;
    if (bytes_per_second > 0) {
      SleepUntil(start + static_cast<double>(done + kChunkBytes) / bytes_per_second);
      before = Now();
    }
  }
  while (!PipeIsEmpty()) usleep(20);
  if (!supervised) return 0;
  fprintf(stderr, "{\"bytes\": %" PRIu64 ", \"seconds\": %.6f, \"worst_write_s\": %.6f}\n", total, Now() - start,
          worst_write);
  while (WaitForByte()) {}
  return 0;
}
