// bench_producer KIND|FILE BYTES [MEGABYTES_PER_SECOND]
//
// Writes BYTES of made-up trace (trace_text.h), or of FILE over and over, to standard
// output, a pipe, in writes of 64 KiB as fast as the pipe takes them, or at the given
// rate. SIGTERM ends the writing early.
//
//   waits for a byte on standard input   so that nobody's start is measured
//   writes, waits for the pipe to be empty
//   prints {"bytes": ..., "seconds": ..., "worst_write_s": ..., "slow_writes": [[start, seconds],
//   ...]} on standard error; start is CLOCK_MONOTONIC, slow are those of a millisecond or more
//   waits for the end of standard input  so that the reader can still be examined
//
// Without a standard input (</dev/null) it neither waits nor prints.
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "trace_text.h"

namespace {

constexpr double kSlow = 1e-3;
constexpr size_t kMostSlow = 100'000;

volatile sig_atomic_t stop = 0;

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

// Ends the program where the reader is gone. One write() a round: each is timed.
void WriteAll(std::string_view bytes, std::vector<std::pair<double, double>>* slow, double* worst) {
  while (!bytes.empty()) {
    const double before = Now();
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      perror("bench_producer: write");
      exit(1);
    }
    const double took = Now() - before;
    *worst = std::max(*worst, took);
    if (took >= kSlow && slow->size() < kMostSlow) slow->emplace_back(before, took);
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
  if (argc < 3) {
    fprintf(stderr,
            "usage: bench_producer qemu|spike|gvsoc|plain|FILE BYTES [MEGABYTES_PER_SECOND]\n");
    return 2;
  }
  const auto text = TraceText::Named(argv[1]);
  if (!text) {
    fprintf(stderr, "bench_producer: '%s' is no kind of text, nor a file of %zu bytes or more\n",
            argv[1], kChunkBytes);
    return 2;
  }
  const uint64_t total = strtoull(argv[2], nullptr, 10);
  const double bytes_per_second = argc > 3 ? strtod(argv[3], nullptr) * 1e6 : 0;
  signal(SIGTERM, [](int) { stop = 1; });

  const bool supervised = WaitForByte();
  const double start = Now();
  double worst_write = 0;
  std::vector<std::pair<double, double>> slow_writes;
  uint64_t done = 0;
  for (uint64_t number = 0; done < total && stop == 0; ++number) {
    const std::string_view chunk =
        text->Chunk(number).substr(0, std::min<uint64_t>(kChunkBytes, total - done));
    WriteAll(chunk, &slow_writes, &worst_write);
    done += chunk.size();
    if (bytes_per_second > 0) SleepUntil(start + static_cast<double>(done) / bytes_per_second);
  }
  while (!PipeIsEmpty()) usleep(20);
  if (!supervised) return 0;
  fprintf(stderr,
          "{\"bytes\": %" PRIu64 ", \"seconds\": %.6f, \"worst_write_s\": %.6f, \"slow_writes\": [",
          done, Now() - start, worst_write);
  const char* comma = "";
  for (const auto& [when, took] : slow_writes) {
    fprintf(stderr, "%s[%.6f, %.6f]", comma, when, took);
    comma = ", ";
  }
  fprintf(stderr, "]}\n");
  while (WaitForByte()) {
  }
  return 0;
}
