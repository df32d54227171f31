// usage: host_watcher [hang]     a device in this program's memory, reached by a probe of its own
//        host_watcher TARGET     any target that hangscope knows: exec:COMMAND, pid:4711, ...
// Watches it with the host library while the program goes on, and prints what it finds. Status: 0 nothing, 1
// something bad, 2 usage, 3 the target cannot be watched.
#include <hangscope/host/hangscope.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "device.h"

namespace {

using namespace hangscope::host;
using namespace std::chrono_literals;

// For a real device this would go over PCIe, JTAG, or through its driver. Addresses are of our choice.
class DeviceProbe final : public Probe {
 public:
  std::string Name() const override { return "the simulated device"; }
  std::vector<Range> Ranges() const override { return {{kBegin, DeviceMemoryBytes()}}; }
  Status Read(uint64_t address, void* bytes, size_t count) override {
    // The device writes meanwhile. Words are read whole, as a bus would: its cores write whole words.
    const char* from = DeviceMemory() + (address - kBegin);
    char* to = static_cast<char*>(bytes);
    for (; count >= 4 && (address & 3) == 0; count -= 4, from += 4, to += 4) {
      const uint32_t word = __atomic_load_n(reinterpret_cast<const uint32_t*>(from), __ATOMIC_ACQUIRE);
      std::memcpy(to, &word, 4);
    }
    std::memcpy(to, from, count);
    return {};
  }
  Life Alive() override { return Life::kLive; }

 private:
  static constexpr uint64_t kBegin = 0x1000'0000;
};

void Print(const Subject& subject) {
  if (subject.activity == Activity::kUnused) return;
  printf("  %s %s %s %s\n", subject.name.c_str(), ActivityName(subject.activity), subject.waypoint.c_str(), subject.waits_for.c_str());
}

int Fail(const Status& status) {
  fprintf(stderr, "host_watcher: %s\n", status.message().c_str());
  return status.code() == Code::kUsage ? 2 : 3;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const bool simulates = what.empty() || what == "hang";
  std::atomic<int> bad{0};
  Options options;
  options.stall = 500ms;
  options.interval = 20ms;
  // On the watcher's thread. Here it only prints; a host program would save a dump, or reset the device.
  const OnFinding on_finding = [&bad](const Finding& finding) {
    printf("found: %s\n%s", finding.summary.c_str(), finding.text.c_str());
    fflush(stdout);
    if (finding.is_bad) bad.fetch_add(1);
  };
  if (simulates) StartDevice(1000, what == "hang");
  Result<Watcher> watcher = simulates ? Watcher::Start(std::make_unique<DeviceProbe>(), options, on_finding)
                                      : Watcher::Start(what, options, on_finding);
  if (!watcher.ok()) return Fail(watcher.status());

  // The program's own work goes here. This one waits until it knows.
  const auto end = std::chrono::steady_clock::now() + 20s;
  const auto goes_on = [&] {
    return bad.load() == 0 && !(simulates && DeviceIsDone()) && std::chrono::steady_clock::now() < end;
  };
  while (goes_on() && !watcher->Wait(10ms)) {
  }
  watcher->Stop();
  printf("%llu looks:\n", static_cast<unsigned long long>(watcher->looks()));
  for (const Subject& subject : watcher->Subjects()) Print(subject);
  return bad.load() == 0 ? 0 : 1;
}
