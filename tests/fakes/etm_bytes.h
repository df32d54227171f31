// Writes ETMv4 packets and the formatter's frames around them, for tests. Source: Arm IHI 0064, IHI
// 0029.
#ifndef HANGSCOPE_TESTS_FAKES_ETM_BYTES_H
#define HANGSCOPE_TESTS_FAKES_ETM_BYTES_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hangscope {

class EtmBytes {
 public:
  std::string bytes;

  // Alignment synchronisation, and trace info that says nothing: what a trace unit repeats.
  EtmBytes& Sync() {
    return Put(std::string(11, '\0') + '\x80').Put(std::string("\x01\x01\x00", 3));
  }
  EtmBytes& On() { return Put("\x04"); }
  EtmBytes& Overflow() { return Put(std::string("\0\x05", 2)); }
  // With the context: EL0, 64 bits, not secure.
  EtmBytes& Enter(uint64_t address) { return Put("\x85").PutAddress(address).Put("\x30"); }
  // ETE: where the branch before it was, and that a time stamp follows.
  EtmBytes& Source(uint64_t address) { return Put("\xb8").PutAddress(address); }
  EtmBytes& TimeMarker() { return Put("\x88"); }
  // All 64 bits of the counter.
  EtmBytes& Time(uint64_t count) {
    bytes.push_back('\x02');
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(count >> (7 * i) | 0x80));
    bytes.push_back(static_cast<char>(count >> 56));
    return *this;
  }
  EtmBytes& Address(uint64_t address) { return Put("\x9d").PutAddress(address); }
  // 'E': executed, 'N': not; a packet each.
  EtmBytes& Atoms(std::string_view atoms) {
    for (const char atom : atoms) Put(atom == 'E' ? "\xf7" : "\xf6");
    return *this;
  }
  EtmBytes& Put(std::string_view more) {
    bytes += more;
    return *this;
  }

 private:
  EtmBytes& PutAddress(uint64_t address) {
    bytes.push_back(static_cast<char>(address >> 2 & 0x7f));
    bytes.push_back(static_cast<char>(address >> 9 & 0x7f));
    for (int shift = 16; shift < 64; shift += 8)
      bytes.push_back(static_cast<char>(address >> shift & 0xff));
    return *this;
  }
};

// The frames of 16 bytes that a formatter makes of it; what does not fill the last becomes packets
// to ignore.
inline std::string Framed(uint8_t trace_id, std::string data) {
  constexpr size_t kDataBytes = 14;
  while (data.size() % kDataBytes != 0) data.push_back('\x70');
  std::string frames;
  for (size_t begin = 0; begin < data.size(); begin += kDataBytes) {
    std::string frame(16, '\0');
    frame[0] = static_cast<char>(trace_id << 1 | 1);
    for (size_t i = 0; i < kDataBytes; ++i) {
      const char byte = data[begin + i];
      const size_t at = i + 1;
      // The lowest bit of even places says data or id; the data's own goes into the last byte.
      frame[at] = at % 2 == 0 ? static_cast<char>(byte & 0xfe) : byte;
      if (at % 2 == 0) frame[15] = static_cast<char>(frame[15] | (byte & 1) << (at / 2));
    }
    frames += frame;
  }
  return frames;
}

// PERF_RECORD_AUXTRACE_INFO of ETMv4 units; CPU i has the trace id 0x10 + 2 i.
inline std::string EtmV4Info(unsigned cpus, uint64_t version = 1) {
  std::vector<uint64_t> words{3, version, uint64_t{8} << 32 | cpus, 0};
  for (uint64_t cpu = 0; cpu < cpus; ++cpu) {
    words.insert(words.end(), {0x4040404040404040, cpu});
    if (version > 0) words.push_back(7);
    words.insert(words.end(), {0x40, 0x10 + 2 * cpu, 0x28000ea1, 0x4100f422, 0x20001088, 0, 0x8c});
  }
  std::string body(words.size() * 8, '\0');
  std::memcpy(body.data(), words.data(), body.size());
  return body;
}

// The same, as a newer perf writes it: with the source of the time stamps, 1: the virtual counter.
inline std::string EtmV4InfoWithTimes(unsigned cpus, uint64_t source = 1) {
  std::vector<uint64_t> words{3, 1, uint64_t{8} << 32 | cpus, 0};
  for (uint64_t cpu = 0; cpu < cpus; ++cpu)
    words.insert(words.end(), {0x4040404040404040, cpu, 8, 0x40, 0x10 + 2 * cpu, 0x28000ea1,
                               0x4100f422, 0x20001088, 0, 0x8c, source});
  std::string body(words.size() * 8, '\0');
  std::memcpy(body.data(), words.data(), body.size());
  return body;
}

// The same of ETE units, as version 1.
inline std::string EteInfo(unsigned cpus) {
  std::vector<uint64_t> words{3, 1, uint64_t{8} << 32 | cpus, 0};
  for (uint64_t cpu = 0; cpu < cpus; ++cpu)
    words.insert(words.end(), {0x5050505050505050, cpu, 8, 0, 0x10 + 2 * cpu, 0x28000ea1,
                               0x4100fff0, 0x20001088, 0, 0xcc, 0x47705a13});
  std::string body(words.size() * 8, '\0');
  std::memcpy(body.data(), words.data(), body.size());
  return body;
}

// A64 code: counts down from 3, calls a function that returns at once, and then spins.
//   0x400000 mov x0, #3;  4: subs x0, x0, #1;  8: b.ne 4;  c: bl 18;  10: nop;  14: b 14;  18: ret
inline constexpr uint64_t kA64Base = 0x400000;
inline constexpr uint32_t kA64Code[] = {0xd2800060, 0xf1000400, 0x54ffffe1, 0x94000003,
                                        0xd503201f, 0x14000000, 0xd65f03c0};
// The 3 rounds, call, return, and twice round the spin: 12 instructions, 6 branches taken.
inline std::string A64Run() {
  EtmBytes trace;
  trace.Sync().On().Enter(kA64Base).Atoms("EENEE").Address(kA64Base + 0x10).Atoms("EE");
  return trace.bytes;
}

}  // namespace hangscope

#endif
