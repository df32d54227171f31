// Core dumps that were made up, byte by byte.
#include "process/kept/core_dump.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "fakes/fake_clock.h"
#include "why/why_core.h"

namespace hangscope {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr uint64_t kMadeStack = 0x7f0000000000;
constexpr uint64_t kMadeStackBytes = 4096;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#else
constexpr uint16_t kMachine = EM_AARCH64;
#endif

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string Note(uint32_t type, const std::string& description) {
  const Elf64_Nhdr header = {5, static_cast<Elf64_Word>(description.size()), type};
  std::string bytes = BytesOf(header) + std::string("CORE\0\0\0\0", 8) + description;
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

struct MadeThread {
  int tid;
  int64_t call;
  int64_t result;
};

std::string ThreadNote(const MadeThread& thread) {
  elf_prstatus status = {};
  status.pr_pid = thread.tid;
  std::array<uint64_t, sizeof(elf_gregset_t) / sizeof(uint64_t)> registers = {};
#if defined(__x86_64__)
  registers[10] = static_cast<uint64_t>(thread.result);  // rax
  registers[14] = kMadeStack + 64;                       // rdi
  registers[15] = static_cast<uint64_t>(thread.call);    // orig_rax
  registers[16] = 0x401000;                              // rip
  registers[19] = kMadeStack + 128;                      // rsp
#endif
  std::memcpy(&status.pr_reg, registers.data(), sizeof registers);
  return Note(NT_PRSTATUS, BytesOf(status));
}

// Process 4711, whose stack has its offsets in it.
std::string MadeCore(const std::vector<MadeThread>& threads, uint16_t machine = kMachine) {
  elf_prpsinfo process = {};
  process.pr_pid = 4711, process.pr_ppid = 1;
  std::strcpy(process.pr_fname, "made");
  std::strcpy(process.pr_psargs, "made --up");
  std::string notes = Note(NT_PRPSINFO, BytesOf(process));
  for (const MadeThread& thread : threads) notes += ThreadNote(thread);
  std::string stack(kMadeStackBytes, '\0');
  for (size_t i = 0; i < stack.size(); ++i) stack[i] = static_cast<char>(i);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_CORE, header.e_machine = machine, header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header, header.e_phentsize = sizeof(Elf64_Phdr), header.e_phnum = 2;
  Elf64_Phdr note = {}, load = {};
  const uint64_t begin = sizeof header + 2 * sizeof note;
  note.p_type = PT_NOTE, note.p_offset = begin, note.p_filesz = notes.size();
  load.p_type = PT_LOAD, load.p_offset = begin + notes.size(), load.p_filesz = stack.size();
  load.p_vaddr = kMadeStack, load.p_memsz = 2 * stack.size(), load.p_flags = PF_R | PF_W;
  return BytesOf(header) + BytesOf(note) + BytesOf(load) + notes + stack;
}

class CoreDumpTest : public testing::Test {
 protected:
  CoreDumpTest() {
    folder_ = std::filesystem::temp_directory_path() / ("core-dump-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~CoreDumpTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& bytes) {
    const std::string path = folder_ / "core";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }

 private:
  std::filesystem::path folder_;
};

#if defined(__x86_64__)
TEST_F(CoreDumpTest, TellsThreadsAsProcWould) {
  constexpr int64_t kRestart = -512;
  const auto dump = OpenCoreDump(Write(MadeCore({{4711, 202, kRestart}, {4712, 39, 4711}})));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  const KeptProcess& process = dump->process;
  EXPECT_EQ(process.pid, 4711);
  EXPECT_EQ(process.texts.at("4711/cmdline"), "made --up");
  EXPECT_THAT(process.texts.at("4711/task/4711/syscall"), HasSubstr("202 0x7f0000000040 "));
  EXPECT_EQ(process.texts.at("4711/task/4712/syscall"), "running\n") << "its call had come back";
  EXPECT_THAT(process.texts.at("4711/maps"), HasSubstr("7f0000000000-7f0000002000 rw-p"));
  EXPECT_EQ(process.registers.at(4711).stack_pointer(), kMadeStack + 128);
}
#endif

TEST_F(CoreDumpTest, HasTheMemoryThatIsInItAndNoMore) {
  const auto dump = OpenCoreDump(Write(MadeCore({{4711, -1, 0}})));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  unsigned char bytes[4] = {};
  EXPECT_TRUE(dump->process.read(kMadeStack + 16, bytes, sizeof bytes));
  EXPECT_EQ(bytes[3], 19);
  EXPECT_TRUE(dump->process.read(kMadeStack + kMadeStackBytes - 4, bytes, sizeof bytes));
  EXPECT_FALSE(dump->process.read(kMadeStack + kMadeStackBytes - 2, bytes, sizeof bytes));
  EXPECT_FALSE(dump->process.read(kMadeStack - 2, bytes, sizeof bytes));
  EXPECT_FALSE(dump->process.read(UINT64_MAX - 1, bytes, sizeof bytes));
  EXPECT_LT(dump->process.open_file("/bin/sh"), 0) << "it has not mapped that";
}

TEST_F(CoreDumpTest, WhatIsNoneOrOfAnotherMachineIsRefusedWithASentence) {
  EXPECT_THAT(OpenCoreDump(Write("no ELF file at all, and longer than a header of such a one is"))
                  .status()
                  .message(),
              HasSubstr("is no core dump"));
  EXPECT_THAT(OpenCoreDump(Write(MadeCore({{1, 0, 0}}, EM_S390))).status().message(),
              HasSubstr("another machine"));
  EXPECT_THAT(OpenCoreDump(Write(MadeCore({}))).status().message(), HasSubstr("without threads"));
  EXPECT_FALSE(OpenCoreDump("/nowhere/core").ok());
}

TEST_F(CoreDumpTest, WhateverIsInItIsReadWithinItsBounds) {
  const std::string whole = MadeCore({{4711, 202, -512}, {4712, 202, -512}});
  FakeClock clock;
  for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    const auto dump = OpenCoreDump(Write(whole.substr(0, bytes)));
    if (!dump.ok()) continue;
    EXPECT_THAT(dump->process.warnings, Contains(HasSubstr("cut short")));
    (void)AskWhyCore(clock, Write(whole.substr(0, bytes)), {});
  }
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 4; ++flips)
      damaged[random() % (whole.size() - kMadeStackBytes)] = static_cast<char>(random());
    (void)AskWhyCore(clock, Write(damaged), {});
  }
}

}  // namespace
}  // namespace hangscope
