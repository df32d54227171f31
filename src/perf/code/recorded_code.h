// The code of programs that were recorded, from their files as they are here now: for hardware
// traces, which tell branches and not instructions.
#ifndef HANGSCOPE_PERF_CODE_RECORDED_CODE_H
#define HANGSCOPE_PERF_CODE_RECORDED_CODE_H

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/elf_image.h"
#include "hwtrace/instruction_trace.h"
#include "perf/code/code_places.h"
#include "perf/code/kernel_code.h"
#include "perf/perf_file.h"
#include "perf/perf_record.h"
#include "perf/traces/trace_rings.h"

namespace hangscope {

// One thread. A file whose build id is not the recorded one is not believed; one of which no build
// id was recorded, only where it lies in the folder that was named. Where neither the folder nor
// the recorded path has the file, perf's cache of files by build id may.
class RecordedCode {
 public:
  explicit RecordedCode(const PerfFileFacts& facts, CodePlaces places = {})
      : facts_(facts),
        binaries_(std::move(places.binaries)),
        cache_(places.kernel.cache),
        kernel_(facts, std::move(places.kernel)) {}

  // Takes the mappings among a file's records, and whose threads there are.
  void Add(const PerfRecord& record);
  // What `pid` had mapped at `time`, and the kernel; the function holds `this`.
  ReadCode CodeOf(int pid, TimeNs time);
  // Whose code ran on `cpu` while a span was written that several CPUs share, -1: whose span it is.
  // -1 where threads of several processes ran there, or nobody knows who did: of these no code is
  // followed but the kernel's, and a warning says so.
  int ProcessOf(const PerfAuxSpan& span, int cpu);
  // Which function it is; its begin is an address of the process. Without one: not known.
  Location Locate(int pid, TimeNs time, uint64_t address);
  // "function+0x10 file.c:3", "libc.so.6+0x1234"; empty: nothing is mapped there.
  std::string PlaceOf(int pid, TimeNs time, uint64_t address);
  // Why code is missing; a sentence each, once.
  std::vector<std::string> warnings() const;
  bool any() const { return !mappings_.empty(); }

 private:
  struct Segment {
    uint64_t file_offset = 0;
    uint64_t bytes = 0;
    uint64_t address = 0;
    std::string code;  // its bytes in the file, if they are code
  };
  struct Binary {
    std::string path;  // empty: there is none to be believed
    std::vector<Segment> segments;
    std::unique_ptr<ElfImage> image;
    bool looked_for_image = false;
  };
  void AddThread(const PerfRecord& record);
  const PerfMapping* Find(int pid, TimeNs time, uint64_t address) const;
  Location LocateIn(const PerfMapping& mapping, uint64_t address);
  Binary& BinaryOf(const PerfMapping& mapping);
  bool FindBinary(const PerfMapping& mapping, Binary* binary);
  bool FindCached(const PerfMapping& mapping, Binary* binary);
  bool Take(const std::string& path, const PerfMapping& mapping, Binary* binary);
  // Within the limit of all code that is held.
  void ReadCodeOf(int fd, const std::string& path, Segment* segment);
  std::string RecordedId(const PerfMapping& mapping) const;

  const PerfFileFacts& facts_;
  const std::string binaries_;
  const std::string cache_;
  // by process, in the order of the file
  std::unordered_map<int, std::vector<PerfMapping>> mappings_;
  size_t mapping_count_ = 0;
  std::unordered_map<int, int> process_of_;  // by thread
  std::set<int> not_followed_;               // CPUs of which the warnings say it
  std::map<std::string, Binary> binaries_of_path_;
  uint64_t bytes_held_ = 0;
  KernelCode kernel_;
  std::vector<std::string> warnings_;
};

}  // namespace hangscope

#endif
