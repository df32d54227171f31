// What watching costs, of the CPU time of one look at all cores:
//
//   poll/PROBE/CORES       WatchReader::Poll; PROBE: memory (a fake), file (pread: a scope file, or
//                          QEMU's guest RAM in one), pid (process_vm_readv, of a child that sleeps)
//   scattered/PROBE/CORES  the same with mailboxes a page apart, as if each lay in its core's own
//                          memory
//   look/CORES             Poll of memory and Watcher::See: every core waits, its sequence another
//                          one in each look
//   stuck/CORES            the same while all wait for each other in pairs for ever, with their
//                          claims read in each look
//   device/NODES           a look at so many memories of five cores each as one device, as look
//   device-stuck/NODES     the same while each core waits for one of the next node, all around
//                          for ever
//
// `bytes` are what a look reads.
// `percent_at_100_hz` is of one CPU.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/file_system.h"
#include "device/live_device.h"
#include "fakes/borrowed_target.h"
#include "fakes/watch_image.h"
#include "scope/scope_text.h"
#include "scope/watch_reader.h"
#include "scope/watcher.h"
#include "target/file_target.h"
#include "target/process_target.h"

namespace hangscope::bench {
namespace {

constexpr uint32_t kPage = 4096;
constexpr uint32_t kCores[] = {5, 64, 1024};
constexpr uint32_t kNodes[] = {4, 128};

void CountPerPoll(benchmark::State& state) {
  // The rate is per second of CPU time: seconds per poll, inverted.
  state.counters["percent_at_100_hz"] = benchmark::Counter(
      1e-4, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

std::unique_ptr<WatchImage> MakeImage(uint32_t cores, bool scattered) {
  WatchImageOptions options;
  options.cores = cores;
  if (scattered) options.mailbox_stride = kPage;
  auto image = std::make_unique<WatchImage>(options);
  for (uint32_t core = 0; core < cores; ++core) {
    image->Put(core, offsetof(hangscope_mailbox, waypoint), 0x57425243);
    image->Put(core, offsetof(hangscope_mailbox, heartbeat), core + 1);
    image->Wait(core, 1000 + (core ^ 1), HANGSCOPE_RESOURCE_EXCLUSIVE, 1000 + core);
    image->PutClaim(core, 0, 1000 + core);
  }
  return image;
}

// A child that has the image in its memory, where this process has it, and sleeps.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

 private:
  const pid_t pid_;
};

void PollTarget(benchmark::State& state, Target& target, uint64_t address) {
  auto scope = ScopeReader::Open(target, address);
  if (!scope.ok()) return state.SkipWithError(scope.status().message().c_str());
  auto reader = WatchReader::Open(*scope);
  if (!reader.ok()) return state.SkipWithError(reader.status().message().c_str());
  ScopeSample sample;
  for (auto _ : state) {
    if (!reader->Poll(&sample).ok()) return state.SkipWithError("a poll failed");
    benchmark::DoNotOptimize(sample.cores.data());
  }
  if (!sample.corruptions.empty())
    return state.SkipWithError(CorruptField(sample.corruptions[0]).c_str());
  CountPerPoll(state);
}

void PollMemory(benchmark::State& state, uint32_t cores, bool scattered) {
  const auto image = MakeImage(cores, scattered);
  PollTarget(state, image->target, 0);
}

void PollFile(benchmark::State& state, uint32_t cores, bool scattered) {
  const auto image = MakeImage(cores, scattered);
  const std::string folder = std::filesystem::exists("/dev/shm")
                                 ? "/dev/shm"
                                 : std::filesystem::temp_directory_path().string();
  const std::string path = folder + "/hangscope-watch-bench-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << image->target.memory;
  FileSystem& files = PosixFileSystem();
  auto target = FileTarget::Open(files, path, 0);
  if (target.ok())
    PollTarget(state, **target, 0);
  else
    state.SkipWithError(target.status().message().c_str());
  std::filesystem::remove(path);
}

void PollProcess(benchmark::State& state, uint32_t cores, bool scattered) {
  const auto image = MakeImage(cores, scattered);
  const Child child;
  FileSystem& files = PosixFileSystem();
  TargetOptions options;
  options.symbol = 0;  // its memory, not a file; the address is given below
  auto target = ProcessTarget::Open(files, child.pid(), options);
  if (!target.ok()) return state.SkipWithError(target.status().message().c_str());
  PollTarget(state, **target, reinterpret_cast<uintptr_t>(image->target.memory.data()));
}

class ReaderSource final : public WatchSource {
 public:
  explicit ReaderSource(WatchReader& reader) : reader_(reader) {}
  Result<std::vector<ClaimRow>> Claims() override { return reader_.ReadClaims(); }
  Result<CoreDetail> Detail(uint32_t core) override {
    return reader_.ReadDetail(core, &corruptions_);
  }
  Result<uint64_t> Emitted(uint32_t) override { return uint64_t{0}; }
  Result<TaskNews> News() override { return TaskNews{}; }

 private:
  WatchReader& reader_;
  std::vector<Corruption> corruptions_;
};

void MeasureLook(benchmark::State& state, uint32_t cores, bool stuck) {
  const auto image = MakeImage(cores, false);
  auto scope = ScopeReader::Open(image->target, 0);
  auto reader = WatchReader::Open(*scope);
  ReaderSource source(*reader);
  Watcher watcher({});
  ScopeSample sample;
  TimeNs now = kSecond;
  for (auto _ : state) {
    if (!reader->Poll(&sample).ok()) return state.SkipWithError("a poll failed");
    if (!stuck) {
      for (CoreSample& core : sample.cores) core.wait->sequence = static_cast<uint32_t>(now);
    }
    watcher.See(sample, now, source);
    benchmark::DoNotOptimize(watcher.DrainFindings());
    now += 10 * kMillisecond;
  }
  CountPerPoll(state);
}

// Of five cores each, whose tables have their own node and the next one.
std::deque<WatchImage> MakeNodes(uint32_t nodes) {
  std::deque<WatchImage> images;
  const auto of = [](uint32_t node, uint32_t core) { return (node + 1) << 16 | (core + 1); };
  for (uint32_t node = 0; node < nodes; ++node) {
    WatchImage& image = images.emplace_back(WatchImageOptions{.cores = 5, .nodes = 2});
    image.PutNode(0, offsetof(hangscope_node, x), node + 1);
    image.PutNode(1, offsetof(hangscope_node, x), (node + 1) % nodes + 1);
    for (uint32_t core = 0; core < 5; ++core) {
      image.Put(core, offsetof(hangscope_mailbox, waypoint), 0x57425243);
      image.Put(core, offsetof(hangscope_mailbox, heartbeat), core + 1);
      image.Wait(core, of(1, core), HANGSCOPE_RESOURCE_EXCLUSIVE, 1000 + core);
      image.PutClaim(core, 0, of(0, core));
    }
  }
  return images;
}

void MeasureDevice(benchmark::State& state, uint32_t nodes, bool stuck) {
  std::deque<WatchImage> images = MakeNodes(nodes);
  DeviceSpec spec{"bench", true, {}};
  for (WatchImage& image : images) {
    DeviceMemory& memory = spec.memories.emplace_back();
    memory.name = std::to_string(spec.memories.size());
    memory.source = SourceOf(image.target);
  }
  TimeNs now = kSecond;
  auto device = LiveDevice::Open(PosixFileSystem(), spec, {}, now);
  if (!device.ok()) return state.SkipWithError(device.status().message().c_str());
  uint32_t sequence = 1;
  size_t found = 0;
  const uint64_t before = (*device)->bytes_read();
  for (auto _ : state) {
    sequence += stuck ? 0 : 2;
    for (WatchImage& image : images) {
      for (uint32_t core = 0; core < 5; ++core)
        image.Put(core, offsetof(hangscope_mailbox, wait_sequence), sequence);
    }
    (*device)->Poll(now);
    found += (*device)->DrainFindings().size();
    now += 10 * kMillisecond;
  }
  if (!stuck && found != 0) return state.SkipWithError("something was found");
  state.counters["bytes"] = static_cast<double>((*device)->bytes_read() - before) /
                            static_cast<double>(state.iterations());
  CountPerPoll(state);
}

void RegisterAll() {
  using Poll = void (*)(benchmark::State&, uint32_t, bool);
  const std::pair<const char*, Poll> probes[] = {
      {"memory", PollMemory}, {"file", PollFile}, {"pid", PollProcess}};
  for (const bool scattered : {false, true}) {
    for (const auto& [name, poll] : probes) {
      for (const uint32_t cores : kCores) {
        const std::string row =
            std::string(scattered ? "scattered/" : "poll/") + name + "/" + std::to_string(cores);
        benchmark::RegisterBenchmark(row.c_str(),
                                     [poll = poll, cores, scattered](benchmark::State& state) {
                                       poll(state, cores, scattered);
                                     });
      }
    }
  }
  for (const bool stuck : {false, true}) {
    for (const uint32_t cores : kCores) {
      const std::string row = std::string(stuck ? "stuck/" : "look/") + std::to_string(cores);
      benchmark::RegisterBenchmark(row.c_str(), [cores, stuck](benchmark::State& state) {
        MeasureLook(state, cores, stuck);
      });
    }
    for (const uint32_t nodes : kNodes) {
      const std::string row =
          std::string(stuck ? "device-stuck/" : "device/") + std::to_string(nodes);
      benchmark::RegisterBenchmark(row.c_str(), [nodes, stuck](benchmark::State& state) {
        MeasureDevice(state, nodes, stuck);
      });
    }
  }
}

}  // namespace
}  // namespace hangscope::bench

int main(int argc, char** argv) {
  hangscope::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
