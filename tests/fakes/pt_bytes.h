// Writes Intel PT packets with libipt's encoder, for tests, over code whose run is known.
#ifndef HANGSCOPE_TESTS_FAKES_PT_BYTES_H
#define HANGSCOPE_TESTS_FAKES_PT_BYTES_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_features.h"
#if HANGSCOPE_HAS_LIBIPT
#include <intel-pt.h>
#endif

namespace hangscope {

// PERF_RECORD_AUXTRACE_INFO of intel_pt. Time: 500 ns + counter / 2. MTC every 8 ticks of a crystal
// of 4 counts, where the event's config says so.
inline constexpr uint64_t kMtcEvery8 = 3 << 14;
inline std::string PtInfo(bool time_known = true) {
  const uint64_t words[] = {1, 9, 1,      1,         500, time_known, 1 << 10, 1 << 11, 1,
                            1, 1, 1 << 9, 0xf << 14, 4,   1,          2,       0,       0};
  return {reinterpret_cast<const char*>(words), sizeof words};
}

#if HANGSCOPE_HAS_LIBIPT

// Counts to 3, calls a function that returns at once, jumps to a register, spins.
inline constexpr uint64_t kX86Base = 0x1000;
inline constexpr unsigned char kX86Code[] = {0x31, 0xc0,                    // 1000 xor eax, eax
                                             0xff, 0xc0,                    // 1002 inc eax
                                             0x83, 0xf8, 0x03,              // 1004 cmp eax, 3
                                             0x75, 0xf9,                    // 1007 jne 1002
                                             0xe8, 0x08, 0x00, 0x00, 0x00,  // 1009 call 1016
                                             0xff, 0xe2,                    // 100e jmp rdx
                                             0x90,                          // 1010 nop
                                             0xeb, 0xfe,                    // 1011 jmp 1011
                                             0xcc, 0xcc, 0xcc, 0xc3};       // 1016 ret

inline size_t ReadX86(uint64_t address, std::span<char> bytes) {
  if (address < kX86Base || address >= kX86Base + sizeof kX86Code) return 0;
  const size_t count = std::min<size_t>(bytes.size(), kX86Base + sizeof kX86Code - address);
  std::memcpy(bytes.data(), kX86Code + (address - kX86Base), count);
  return count;
}

class PtBytes {
 public:
  PtBytes() : space_(1 << 12) {
    pt_config config;
    pt_config_init(&config);
    config.begin = space_.data();
    config.end = space_.data() + space_.size();
    encoder_.reset(pt_alloc_encoder(&config));
  }

  PtBytes& Put(pt_packet packet) {
    EXPECT_GT(pt_enc_next(encoder_.get(), &packet), 0);
    return *this;
  }
  PtBytes& Plain(pt_packet_type type) { return Put(Packet(type)); }
  PtBytes& Ip(pt_packet_type type, uint64_t address) {
    pt_packet packet = Packet(type);
    packet.payload.ip.ipc = address == 0 ? pt_ipc_suppressed : pt_ipc_sext_48;
    packet.payload.ip.ip = address;
    return Put(packet);
  }
  // 'T' taken, 'N' not.
  PtBytes& Tnt(std::string_view bits) {
    pt_packet packet = Packet(ppt_tnt_8);
    packet.payload.tnt.bit_size = static_cast<uint8_t>(bits.size());
    for (const char bit : bits)
      packet.payload.tnt.payload = packet.payload.tnt.payload << 1 | (bit == 'T');
    return Put(packet);
  }
  PtBytes& Tsc(uint64_t tsc) {
    pt_packet packet = Packet(ppt_tsc);
    packet.payload.tsc.tsc = tsc;
    return Put(packet);
  }
  PtBytes& Tma(uint16_t crystal, uint16_t beyond) {
    pt_packet packet = Packet(ppt_tma);
    packet.payload.tma.ctc = crystal;
    packet.payload.tma.fc = beyond;
    return Put(packet);
  }
  PtBytes& Mtc(uint8_t bits) {
    pt_packet packet = Packet(ppt_mtc);
    packet.payload.mtc.ctc = bits;
    return Put(packet);
  }
  PtBytes& Mode() {
    pt_packet packet = Packet(ppt_mode);
    packet.payload.mode.leaf = pt_mol_exec;
    packet.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
    return Put(packet);
  }
  // A synchronisation point while tracing is off.
  PtBytes& Sync(uint64_t tsc = 0) {
    Plain(ppt_psb);
    if (tsc != 0) Tsc(tsc);
    return Mode().Plain(ppt_psbend);
  }
  // The whole program, until an interrupt takes it away from its spin: 14 instructions, 5 branches
  // taken.
  PtBytes& Run() {
    return Ip(ppt_tip_pge, kX86Base)
        .Tnt("TTNT")
        .Ip(ppt_tip, 0x1010)
        .Ip(ppt_fup, 0x1011)
        .Ip(ppt_tip_pgd, 0);
  }

  size_t size() const {
    uint64_t offset = 0;
    EXPECT_EQ(pt_enc_get_offset(encoder_.get(), &offset), 0);
    return offset;
  }
  std::string bytes() const { return {reinterpret_cast<const char*>(space_.data()), size()}; }

 private:
  static pt_packet Packet(pt_packet_type type) {
    pt_packet packet{};
    packet.type = type;
    return packet;
  }

  struct Free {
    void operator()(pt_encoder* encoder) const { pt_free_encoder(encoder); }
  };
  std::vector<uint8_t> space_;
  std::unique_ptr<pt_encoder, Free> encoder_;
};

#endif

}  // namespace hangscope

#endif
