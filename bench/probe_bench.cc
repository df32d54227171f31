// What one look at all mailboxes takes by the probes that ask somebody else, in real time:
//
//   exec/CORES    examples/probes/file_helper.py: a process that is asked over a pipe, in Python
//   gdb/CORES     a debug server in a thread of this program, over a socket, without a target
//                 behind it
//
// 5, 64 and 1024 cores: 64 bytes each.
#include <benchmark/benchmark.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "fakes/watch_image.h"
#include "scope/watch_reader.h"
#include "target/exec_target.h"
#include "target/gdb_target.h"

namespace hangscope::bench {
namespace {

constexpr TimeNs kPatience = 10 * kSecond;

std::string ImageBytes(uint32_t cores) {
  WatchImageOptions options;
  options.cores = cores;
  return WatchImage(options).target.memory;
}

// Polls all mailboxes in each round.
void Poll(benchmark::State& state, Target& target) {
  auto scope = ScopeReader::Open(target, 0);
  if (!scope.ok()) return state.SkipWithError(scope.status().message().c_str());
  auto reader = WatchReader::Open(*scope);
  if (!reader.ok()) return state.SkipWithError(reader.status().message().c_str());
  ScopeSample sample;
  for (auto _ : state) {
    if (Status status = reader->Poll(&sample); !status.ok())
      return state.SkipWithError(status.message().c_str());
  }
}

void Exec(benchmark::State& state) {
  const std::string path = "/tmp/hangscope-bench-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << ImageBytes(static_cast<uint32_t>(state.range(0)));
  auto target = ExecTarget::Open("python3 " FILE_HELPER " " + path, kPatience);
  if (target.ok())
    Poll(state, **target);
  else
    state.SkipWithError(target.status().message().c_str());
  std::remove(path.c_str());
}
BENCHMARK(Exec)->Name("exec")->Arg(5)->Arg(64)->Arg(1024)->UseRealTime()->Unit(
    benchmark::kMicrosecond);

// Answers as QEMU's does: packets of 4 KiB.
void Serve(int fd, const std::string& memory) {
  DescriptorChannel channel(fd, fd);
  GdbPacketReader packets("the bench", channel);
  SystemClock clock;
  for (;;) {
    auto request = packets.Next(clock.Monotonic() + kPatience);
    if (!request.ok()) return;
    std::string answer;
    if (request->starts_with("qSupported"))
      answer = "PacketSize=1000";
    else if (*request == "D")
      answer = "OK";
    char* end = nullptr;
    const uint64_t address = strtoull(request->c_str() + 1, &end, 16);
    if (request->starts_with("m") && *end == ',') {
      for (const char byte : memory.substr(address, strtoull(end + 1, nullptr, 16))) {
        constexpr char kDigits[] = "0123456789abcdef";
        answer.push_back(kDigits[static_cast<uint8_t>(byte) >> 4]);
        answer.push_back(kDigits[byte & 15]);
      }
    }
    (void)channel.Send(FrameGdbPacket(answer), clock.Monotonic() + kPatience);
    if (*request == "D") return;
  }
}

void Gdb(benchmark::State& state) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return state.SkipWithError("no socket");
  const std::string memory = ImageBytes(static_cast<uint32_t>(state.range(0)));
  std::thread server(Serve, ends[1], memory);
  {
    SystemClock clock;
    auto target = GdbTarget::Open(
        "the bench", std::make_unique<DescriptorChannel>(ends[0], ends[0]), kPatience, clock);
    if (target.ok())
      Poll(state, **target);
    else
      state.SkipWithError(target.status().message().c_str());
  }
  server.join();
}
BENCHMARK(Gdb)->Name("gdb")->Arg(5)->Arg(64)->Arg(1024)->UseRealTime()->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace hangscope::bench
