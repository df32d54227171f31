#include "cpu/side_band_recorder.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>

namespace hangscope {
namespace {

constexpr size_t kMostRecord = 65528;  // bytes: a multiple of 8 that its header can say

template <typename Number>
void Put(std::string* bytes, Number number) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void PutText(std::string* bytes, const std::string& text) {
  *bytes += text;
  bytes->append(8 - bytes->size() % 8, '\0');
}

template <typename Number>
Number At(const std::string& bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// A line of /proc/PID/maps as the body of PERF_RECORD_MMAP2; empty: not executable, or not
// understood.
std::string Mmap2Body(const std::string& line, pid_t pid) {
  unsigned long long begin = 0, end = 0, offset = 0, inode = 0;
  unsigned major = 0, minor = 0;
  char rights[5] = "";
  int path = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %4s %llx %x:%x %llu %n", &begin, &end, rights, &offset,
                  &major, &minor, &inode, &path) < 7)
    return "";
  if (rights[2] != 'x' || path == 0 || end < begin) return "";
  std::string body;
  Put(&body, static_cast<uint32_t>(pid));
  Put(&body, static_cast<uint32_t>(pid));
  Put(&body, uint64_t{begin});
  Put(&body, uint64_t{end - begin});
  Put(&body, uint64_t{offset});
  Put(&body, uint32_t{major});
  Put(&body, uint32_t{minor});
  Put(&body, uint64_t{inode});
  Put(&body, uint64_t{0});  // the inode's generation
  Put(&body, static_cast<uint32_t>(PROT_EXEC | (rights[0] == 'r' ? PROT_READ : 0) |
                                   (rights[1] == 'w' ? PROT_WRITE : 0)));
  Put(&body, static_cast<uint32_t>(rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE));
  const std::string name = line.substr(static_cast<size_t>(path));
  PutText(&body, name.empty() ? "//anon" : name);
  return body;
}

}  // namespace

// { header, u32 pid, ppid, tid, ptid, u64 time }.
std::map<pid_t, PerfFork> Forks(const std::string& records) {
  std::map<pid_t, PerfFork> forks;
  for (size_t at = 0; at < records.size();) {
    const auto header = At<perf_event_header>(records, at);
    if (header.type == PERF_RECORD_FORK && header.size >= 32)
      forks[At<pid_t>(records, at + 16)] = {At<pid_t>(records, at + 20),
                                            At<TimeNs>(records, at + 24)};
    at += header.size;
  }
  return forks;
}

PerfRecordEnd EndOfPerfRecord(std::string_view record) {
  PerfRecordEnd end;
  if (record.size() < sizeof(perf_event_header) + kPerfRecordEndBytes) return end;
  const char* const at = record.data() + record.size() - kPerfRecordEndBytes;
  std::memcpy(&end.pid, at, 4);
  std::memcpy(&end.tid, at + 4, 4);
  std::memcpy(&end.time, at + 8, 8);
  std::memcpy(&end.cpu, at + 16, 4);
  std::memcpy(&end.id, at + 24, 8);
  return end;
}

std::string MakePerfRecord(uint32_t type, uint16_t misc, const std::string& body,
                           const PerfRecordEnd& end) {
  const size_t size = sizeof(perf_event_header) + body.size() + kPerfRecordEndBytes;
  std::string record;
  if (size > kMostRecord) return record;
  Put(&record, perf_event_header{type, misc, static_cast<uint16_t>(size)});
  record += body;
  Put(&record, static_cast<uint32_t>(end.pid));
  Put(&record, static_cast<uint32_t>(end.tid));
  Put(&record, end.time);
  Put(&record, uint64_t{static_cast<uint32_t>(end.cpu)});
  Put(&record, end.id);
  return record;
}

void PerfSideBand::Drain(const PerfPages& pages) {
  const ForwardRingCounts counts = DrainForwardRing(pages, most_bytes_, &records_);
  lost_ += counts.lost_records + counts.dropped_records;
}

void PerfSideBand::AddThread(FileSystem& files, pid_t pid, pid_t tid, TimeNs now, uint64_t id) {
  const std::string folder = "/proc/" + std::to_string(pid);
  auto name = ReadWholeFile(files, folder + "/task/" + std::to_string(tid) + "/comm");
  if (!name.ok()) return;  // it has ended
  std::string body;
  Put(&body, static_cast<uint32_t>(pid));
  Put(&body, static_cast<uint32_t>(tid));
  PutText(&body, name->substr(0, name->find('\n')));
  Append(MakePerfRecord(PERF_RECORD_COMM, 0, body, {pid, tid, now, 0, id}));
  if (pid != tid) return;
  auto maps = ReadWholeFile(files, folder + "/maps");
  if (!maps.ok()) return;
  for (size_t begin = 0; begin < maps->size();) {
    const size_t end = std::min(maps->find('\n', begin), maps->size());
    const std::string mapping = Mmap2Body(maps->substr(begin, end - begin), pid);
    if (!mapping.empty())
      Append(MakePerfRecord(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, mapping,
                            {pid, tid, now, 0, id}));
    begin = end + 1;
  }
}

// Counts it where there is no room.
void PerfSideBand::Append(const std::string& record) {
  if (record.empty() || records_.size() + record.size() > most_bytes_)
    ++lost_;
  else
    records_ += record;
}

void PerfSideBand::Clear() {
  records_.clear();
  lost_ = 0;
}

}  // namespace hangscope
