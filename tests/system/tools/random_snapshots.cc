// random_snapshots FOLDER SEED COUNT: writes COUNT snapshots of rings that a random machine filled,
// each with its manifest.json and cpu.perf.data, as hangscope writes them: FOLDER/0, FOLDER/1 ...
// Rings are overwritten to different depths or not at all, some to nothing; records of the side
// band are older than all rings, records come while rings are copied, and interrupts nest some.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "fakes/fake_cpu_recorder.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/manifest_writer.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

class RandomMachine {
 public:
  explicit RandomMachine(uint64_t seed) : random_(seed) {}

  TimeNs Between(TimeNs from, TimeNs to) {
    return std::uniform_int_distribution<TimeNs>(from, to)(random_);
  }
  bool Often() { return Between(0, 2) > 0; }
  bool Seldom() { return Between(0, 5) == 0; }

  // Time goes on for a while, and each CPU records at its own rate.
  void Run() {
    const TimeNs until = now_ + Between(kMillisecond, 2 * kSecond);
    cpus_.Named(began_ - Between(0, 900 * kSecond), kFirstThread, "old");
    for (int cpu = 0; cpu < count_; ++cpu) {
      const TimeNs rate = Between(1000, 20 * kMillisecond);
      const TimeNs idle = Seldom() ? until : now_ + Between(0, 100 * kMillisecond);
      int left = 300;
      for (TimeNs time = idle; time < until && --left > 0; time += Between(1, 2 * rate))
        Record(cpu, time);
    }
    now_ = until;
  }

  CpuCapture Take() {
    // While rings are copied, the machine goes on.
    const TimeNs trigger = now_;
    for (int cpu = 0; cpu < count_; ++cpu) {
      for (TimeNs i = Seldom() ? Between(1, 5) : 0; i > 0; --i)
        Record(cpu, now_ + Between(1, 5 * kMillisecond));
      OverwriteSome(cpu);
    }
    CpuCapture capture = cpus_.Take(trigger);
    for (PerfRing& ring : capture.rings) {
      ring.recording_since = began_;
      ring.taken = trigger + 5 * kMillisecond + Between(0, kMillisecond);
      ring.lost_before = ring.records.size() < ring.head;
    }
    now_ = trigger + 10 * kMillisecond;
    return capture;
  }

 private:
  static constexpr int kFirstThread = 4711;

  void Record(int cpu, TimeNs time) {
    const int tid = kFirstThread + static_cast<int>(Between(0, 5));
    if (Seldom()) {  // nested by an interrupt: it lies behind what is newer
      cpus_.Call(cpu, time + 300, tid, 1, 0);
      cpus_.Call(cpu, time, tid, 2, 0);
    } else if (Often()) {
      cpus_.Run(cpu, time, tid, Often());
    } else {
      cpus_.Switch(cpu, time, tid, kFirstThread + static_cast<int>(Between(0, 5)));
    }
  }

  void OverwriteSome(int cpu) {
    if (!Often()) return;
    const std::string& records = cpus_.Ring(cpu).records;
    int there = 0;
    for (size_t at = 0; at < records.size(); ++there) {
      perf_event_header header{};
      std::memcpy(&header, records.data() + at, sizeof header);
      at += header.size;
    }
    cpus_.Overwrite(cpu, Seldom() ? there : static_cast<int>(Between(0, there)));
  }

  std::mt19937_64 random_;
  FakeCpus cpus_;
  const int count_ = static_cast<int>(Between(1, 8));
  const TimeNs began_ = 1000 * kSecond + Between(0, kSecond);
  TimeNs now_ = began_ + 1000;
};

Status WriteSnapshot(const std::string& folder, uint64_t seed) {
  FileSystem& files = PosixFileSystem();
  RandomMachine machine(seed);
  const char* const kWindows[] = {"coherent", "coherent", "coherent", "all",
                                  "5ms",      "1s",       "4K",       "since-last"};
  auto choice = ParseWindowChoice("--window", kWindows[machine.Between(0, 7)]);
  WindowFinder finder(files, *choice);
  CpuRecording recording(
      files, std::make_unique<FakeCpuRecorder>([&] { return Result(machine.Take()); }), {"fw"});
  // The last one stays.
  for (TimeNs left = machine.Between(1, 2); left > 0; --left) {
    Manifest manifest;
    if (Status status = files.MakeFolders(folder); !status.ok()) return status;
    machine.Run();
    if (Status status = recording.Capture(); !status.ok()) return status;
    if (Status status = recording.Write(folder, false, {}, 0, &finder, &manifest); !status.ok())
      return status;
    manifest.time = manifest.wall = manifest.window->time.to;
    if (Status status = WriteWholeFile(files, folder + "/" + kManifestName, ManifestJson(manifest));
        !status.ok())
      return status;
  }
  return {};
}

}  // namespace
}  // namespace hangscope

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  const uint64_t count = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t i = 0; i < count; ++i) {
    const auto status =
        hangscope::WriteSnapshot(fmt::format("{}/{}", argv[1], i), seed * 1'000'003 + i);
    if (status.ok()) continue;
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
}
