// usage: fuzz_seeds DATA ELF FOLDER
// Writes inputs to begin with into FOLDER/FUZZER/: tiny rings, lines of the traces and logs in DATA
// (tests/data), some units, a few loops, mailboxes, recordings of perf, and a small program from
// ELF.
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "fakes/debugger_folder.h"
#include "fakes/etm_bytes.h"
#include "fakes/fake_bash.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_go_program.h"
#include "fakes/fake_jvm.h"
#include "fakes/fake_postgres.h"
#include "fakes/fake_python.h"
#include "fakes/fake_ruby.h"
#include "fakes/fake_stripped_go.h"
#include "fakes/fake_v8.h"
#include "fakes/perf_story.h"
#include "fakes/watch_image.h"
#include "ring/ring_store.h"
#include "ring_image.h"

namespace {

namespace fs = std::filesystem;
using namespace hangscope;
using fuzz::Part;
using fuzz::PartKind;

fs::path folder;

void Write(const std::string& fuzzer, const std::string& name, const std::string& input) {
  fs::create_directories(folder / fuzzer);
  std::ofstream(folder / fuzzer / name, std::ios::binary) << input;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Unpacked(const std::string& packed) {
  std::string text(8u << 20, '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  text.resize(ZSTD_isError(got) != 0 ? 0 : got);
  return text;
}

std::string Lines(const std::string& text, size_t count) {
  size_t end = 0;
  for (size_t i = 0; i < count && end != std::string::npos; ++i) end = text.find('\n', end + 1);
  return text.substr(0, end == std::string::npos ? end : end + 1);
}

std::vector<Part> PartsOf(const FakeFileSystem& disk, bool later) {
  std::vector<Part> parts;
  for (const auto& [path, bytes] : disk.Save()) {
    const std::string suffix = path.substr(std::string(fuzz::kRingPrefix).size() + 1);
    Part part{PartKind::kPlain, later, 0, bytes};
    if (suffix == "index")
      part.kind = PartKind::kIndex;
    else if (suffix == "tail")
      part.kind = PartKind::kTail;
    else if (suffix == "current")
      continue;
    else
      part.segment = static_cast<uint8_t>(std::stoi(suffix));
    if (suffix.ends_with(".zst")) part.kind = PartKind::kZstd;
    parts.push_back(part);
  }
  return parts;
}

std::string SomeText(uint64_t begin, size_t count) {
  std::string text;
  for (uint64_t line = begin; text.size() < count; ++line)
    text += "line " + std::to_string(line) + "\n";
  return text;
}

// Wraps a tiny ring around, with a gap, and shows what comes a little later, too.
void WriteRing(Compress compress, const std::string& name, uint64_t produced, bool finished) {
  FakeFileSystem disk;
  FakeClock clock;
  RingGeometry tiny;
  tiny.segment_count = 3;
  tiny.stamps_per_segment = 2;
  tiny.segment_bytes = 256;
  tiny.reserve_bytes = 16;
  tiny.compress = compress;
  tiny.block_bytes = compress == Compress::kNone ? 0 : 64;
  tiny.bound_bytes = 4096;
  auto store = RingStore::Create(disk, clock, fuzz::kRingPrefix, "stdout", tiny, 7);
  for (uint64_t at = 0; at < produced; at += 50) {
    clock.Advance(20 * kMillisecond);
    (*store)->Append(SomeText(at, 50), clock.Monotonic());
    if (at == 300) (*store)->Lose(33, 0);
  }
  std::vector<Part> parts = PartsOf(disk, false);
  (*store)->Append(SomeText(produced, 200), clock.Monotonic());
  if (finished) (*store)->Finish();
  for (Part& part : PartsOf(disk, true)) parts.push_back(std::move(part));
  std::string script;
  for (int i = 0; i < 48; ++i) script += static_cast<char>(i * 7);
  parts.push_back({PartKind::kScript, false, 0, script});
  Write("ring", name, fuzz::JoinParts(parts));
}

void WriteRings() {
  WriteRing(Compress::kNone, "plain-short", 100, false);
  WriteRing(Compress::kNone, "plain-wrapped", 1500, false);
  WriteRing(Compress::kNone, "plain-finished", 700, true);
  WriteRing(Compress::kZstd, "zstd-short", 100, false);
  WriteRing(Compress::kZstd, "zstd-wrapped", 1500, false);
  WriteRing(Compress::kAuto, "auto-finished", 700, true);
}

void WriteTraces(const fs::path& data) {
  for (const char* name : {"gvsoc-hang", "qemu-exec-3hart-hang", "spike-3hart-hang"}) {
    Write("trace", name,
          "\x0f" + Lines(Unpacked(ReadAll(data / (std::string(name) + ".log.zst"))), 8));
  }
  Write("trace", "qemu-cpu",
        "\x21Trace 0: 0x7efc37e00ac0 [00000000/80000032/00109003/ff000200] main\n"
        " pc       80000032\n mhartid  00000000\n x0/zero  00000000 x1/ra    80000010 x2/sp    "
        "80004000 x3/gp    00000000\n"
        "Linking TBs 0x7f00 [80000032] index 0 -> 0x7f08 [80000040]\n"
        "Stopped execution of TB chain before 0x7efc37e00ac0 [80000032] main\n");
  Write("trace", "qemu-in-asm",
        "\x31----------------\nIN: main\nPriv: 3; Virt: 0\n0x80000008:  4501              mv       "
        "               a0,zero\n"
        "0x8000000a:  00000297          auipc                   t0,0\n");
  Write("trace", "spike-log",
        "\x03"
        "core   0: 0x80000036 (0x00028023) sb      zero, 0(t0)\ncore   0: 3 0x80000036 "
        "(0x00028023) mem 0x8000019c 0x00\n"
        "core   1: >>>>  main\ncore   1: exception trap_store_access_fault, epc 0x80000036\n");
  Write("trace", "gvsoc-long",
        "\x05"
        "400000: 4: [\033[34m/soc/host/insn\033[0m] func:12 M 0000000000001000 auipc t0, 0x0 "
        "t0=0000000000001000 PA:00001000\n"
        "20300000ps 203 M 0000000080000036 0000000000028023 sb x0,0(x5)   x5:0000000080000135 "
        "PA:0000000080000135\n");
}

void WriteLogs(const fs::path& data) {
  for (const char* name : {"boot-retry-hang", "runner-hang", "cores-hang"}) {
    Write("log", name,
          std::string(1, '\0') + Lines(ReadAll(data / (std::string(name) + ".log")), 6));
  }
  Write("log", "rule",
        "\x11"
        "core (?P<core>\\d+).*state=(?P<place>\\w+)\ncore 0: state=idle 12\ncore 1: state=busy\n");
  Write("log", "times",
        std::string(1, '\x08') +
            "[   12.345678] eth0: no link, retry 3\n2026-11-21T12:31:54.518Z job 3f2a9c41 12.5 %\n"
            "I (12345) wifi: up\nI1121 12:31:54.518123 9 a.cc:1] x\nFri Nov 21 12:31:54 2026 "
            "x\n21/Nov/2026:12:31:54 +0000 GET\n"
            "@ 12300 ns: tick\n1732191114.25 0xdead "
            "123e4567-e89b-12d3-a456-426614174000\n\033[1mbold\033[0m 10 %\r20 %\r30 %\n");
}

void WriteUnits() {
  Write("units", "usual", "500M\n3\n10\n");
  Write("units", "suffixes", "1.5GiB\n1\n500ms\n\x08\x01\x02\x03");
  Write("units", "smallest", "64K\n1\n1ms\n");
  Write("units", "largest", "1048576T\n1\n720h\n\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  Write("units", "wrong", "-1\n0\n2.5.5\n");
}

// What debug servers and helpers answer, in order.
void WriteAnswers() {
  Write("gdb", "reads",
        "\x81"
        "+$PacketSize=400;QStartNoAckMode+#00+$0* #00+$4f*\"4b#00+$OK#9a+$E14#b9");
  Write("gdb", "damaged",
        "\x06"
        "+$PacketSize=40#a6+$61#00$61#97-+$}\x03#a0");
  const std::string hello =
      "hangscope-probe 1\nrange 0x1000 32\nscope 0x1008\nmost 16\nready\n\xff";
  Write("exec", "reads",
        "\x05" + hello +
            "ok 16\n0123456789abcdef\xff"
            "ok 16\nfedcba9876543210\xff"
            "live\n\xff"
            "ok 0\n\xff"
            "ok 0\n");
  Write("exec", "errors",
        "\xff" + hello +
            "error no such thing\n\xff"
            "dead\n\xff"
            "error read only\n\xff"
            "ok 7\n");
}

// A known run over its code, each tracer: in frames, raw, recorded.
void WriteHardwareTraces(const fs::path& data) {
  const std::string code(reinterpret_cast<const char*>(kA64Code), sizeof kA64Code);
  const auto write = [&](const std::string& name, int flags, const std::string& its_code,
                         const std::string& trace) {
    Write("etm", name,
          std::string(1, static_cast<char>(flags)) + static_cast<char>(its_code.size()) + its_code +
              trace);
  };
  const std::string old_sync = std::string(5, '\0') + '\x80';
  write("frames", 0xe0, code, Framed(0x10, A64Run()) + Framed(0x12, A64Run()));
  write("raw", 0xf0, code, A64Run());
  write("ete", 0xf1, code, A64Run());
  write("ptm", 0xf2, code,
        old_sync + std::string("\x08\0\x80\0\0\x21\x84\xa4\x41\x02\x42\x01", 12));
  write("etmv3", 0xf3, code, old_sync + std::string("\x08\x21\0\x80\0\0\x94\x42\x81\x01\x84", 11));
  write("recorded", 0x00, "", ReadAll(data / "coresight/thread.aux"));
  const std::string info = ReadAll(data / "coresight/thread.info");
  write("info", 0x05, "",
        std::string{static_cast<char>(info.size()), static_cast<char>(info.size() >> 8)} + info +
            ReadAll(data / "coresight/thread.aux"));
  // PSB, TSC, MODE.Exec, PSBEND; TIP.PGE, TNT, MTC, TIP, OVF, FUP, TIP.PGD.
  std::string pt;
  for (int i = 0; i < 8; ++i) pt += "\x02\x82";
  pt += std::string("\x19\x10\x20\0\0\0\0\0\x99\x01\x02\x23", 12);
  pt += std::string(
      "\x71\0\x10\0\0\0\0\x1a\x59\x03\x6d\x10\x10\0\0\0\0\x02\xf3\x7d\x11\x10\0\0\0\0\x01", 27);
  write("intel-pt", 0xe4,
        std::string("\x31\xc0\xff\xc0\x83\xf8\x03\x75\xf9\xe8\x08\0\0\0\xff\xe2\x90\xeb\xfe\xcc\xcc"
                    "\xcc\xc3\x90",
                    24),
        pt);
}

// As fuzz/debugger_fuzzer.cc has them.
void WriteDebuggers() {
  DebuggerFolder board;
  board.Replace("snapshot.ini", "cpu_0.ini", "a.ini");
  board.Replace("snapshot.ini", "etm_0.ini", "b.ini");
  board.Replace("cpu_0.ini", "code.bin", "bytes");
  board.Replace("trace.ini", "cstrace.bin", "bytes");
  for (const char* format : {"coresight", "source_data", "dstream_coresight"}) {
    DebuggerFolder changed = board;
    changed.Replace("trace.ini", "coresight", format);
    std::string input;
    for (const char* name : {"snapshot.ini", "trace.ini", "cpu_0.ini", "etm_0.ini"})
      input += changed.files.at(name) + std::string(1, '\0');
    Write("debugger", format,
          input + "\x01" + board.files.at("code.bin") + board.files.at("cstrace.bin"));
  }
}

// Two segments that touch, one apart, in both widths and orders; the words of headers by hand.
void WriteCores() {
  for (const bool wide : {false, true}) {
    for (const bool big : {false, true}) {
      std::string core;
      const auto put = [&](uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i)
          core.push_back(static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i)));
      };
      const int word = wide ? 8 : 4;
      const int header_bytes = wide ? 64 : 52;
      const int entry_bytes = wide ? 56 : 32;
      core = std::string("\177ELF") + (wide ? '\2' : '\1') + (big ? '\2' : '\1') + '\1' +
             std::string(9, '\0');
      put(4, 2), put(243, 2), put(1, 4), put(0, word),
          put(static_cast<uint64_t>(header_bytes), word), put(0, word), put(0, 4);
      for (const int field : {header_bytes, entry_bytes, 3, 0, 0, 0})
        put(static_cast<uint64_t>(field), 2);
      const auto data = static_cast<uint64_t>(header_bytes + 3 * entry_bytes);
      for (const auto& [at, address] :
           {std::pair<uint64_t, uint64_t>{0, 0x1000}, {16, 0x1010}, {32, 0x8000}}) {
        put(1, 4);
        if (wide) put(6, 4);
        put(data + at, word), put(address, word), put(address, word), put(16, word), put(16, word);
        if (!wide) put(6, 4);
        put(1, word);
      }
      Write("core", std::string(big ? "big" : "little") + (wide ? "64" : "32"),
            core + std::string(48, 'x'));
    }
  }
}

// Loops: a spin on a flag, a counter, one with csr and amo.
void WriteLoops() {
  const auto loop = [](const std::string& name, bool wide, std::initializer_list<uint32_t> code) {
    std::string input(1, static_cast<char>(wide));
    const uint64_t begin = 0x80000000;
    input.append(reinterpret_cast<const char*>(&begin), 8);
    // no lead-in; one step, a block at the first instruction
    input += std::string("\0\x01\x01\0", 4);
    for (const uint32_t word : code)
      input.append(reinterpret_cast<const char*>(&word), (word & 3) == 3 ? 4 : 2);
    Write("code", name, input);
  };
  loop("spin", false, {0x0002a303, 0xfe030ee3});              // lw t1,0(t0); beqz t1,.-4
  loop("count", true, {0x00130313, 0x00639463, 0xff9ff06f});  // addi t1,t1,1; bne; j
  loop("atomic", true, {0x1005a52f, 0x18c5a52f, 0x00c5a52f, 0xc0102573, 0xff1ff06f});
  loop("compressed", false, {0x4501, 0x4108, 0xc10c, 0xdd75});
  loop("csr", false,
       {0x30047073, 0x34202573, 0x00b50533, 0x02b50533, 0x0000100f, 0x10500073, 0xfe9ff06f});
}

// Two cores that wait for each other, one with a fault, tasks; checks that fit, and some changes.
void WriteWatches() {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    WatchImageOptions options;
    options.order = order;
    options.tasks = 2;
    options.nodes = 2;
    WatchImage image(options);
    image.Wait(0, 0x10003, HANGSCOPE_RESOURCE_CHANNEL, 1000);
    image.Wait(1, 0x20004, 0, 2000);
    image.PutClaim(1, 4, 0x10003);
    image.PutClaim(0, 0, 0x20004);
    image.Put(2, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_BUS);
    image.PutDetail(2, offsetof(hangscope_fault, type), HANGSCOPE_FAULT_BUS);
    image.PutDetail(2, offsetof(hangscope_fault, kind), HANGSCOPE_BUS_WRITE);
    image.PutDetail(2, offsetof(hangscope_fault, reason), HANGSCOPE_BUS_PROTECTED);
    image.Put(3, offsetof(hangscope_mailbox, heartbeat), 1);
    image.PutDebug(3, 1, 1, 0xabcd);
    image.TaskWaits(0, 7, HANGSCOPE_RESOURCE_EXCLUSIVE, 5, 8);
    image.TaskWaits(1, 8, HANGSCOPE_RESOURCE_EXCLUSIVE, 6, 7);
    image.PutRunning(0, 7);
    const std::string name = order == ByteOrder::kLittle ? "little" : "big";
    Write("watch", "live-" + name,
          "\x11" + std::string("abcdefghijklmnop", 16) + image.target.memory);
    Write("watch", "dead-" + name, "\x03" + image.target.memory);
  }
}

// Two goroutines that wait, one for a semaphore and one for channels, and one that runs.
void WriteGo() {
  FakeGo go;
  const uint64_t waits = go.AddGoroutine(5, go_layout::Status::kWaiting, kGoSemaphore);
  const uint64_t selects = go.AddGoroutine(6, go_layout::Status::kWaiting, kGoReceives);
  go.AddGoroutine(7, go_layout::Status::kRunning);
  go.AddWaiter(3, waits, 0xc000010004);
  go.WaitForChannels(selects, {0xc000030000, 0xc000030060});
  Write("go", "goroutines", go.image());
  FakeGoProgram program;
  const uint64_t left = program.NewObject(), right = program.NewObject();
  program.WaitForChannels(program.AddWaiting(5, kGoSends, {right}), {left});
  program.WaitForChannels(program.AddWaiting(6, kGoSends, {left}), {right});
  program.AddWaiting(7, kGoSleeps, {program.NewObject({right})});
  program.Finalize(program.NewObject(), 0);
  Write("go", "pointers", program.image());
  FakeStrippedGo stripped;
  stripped.AddWaiter((0xc000010004 >> 3) % go_layout::kSemaphoreLines, 0xc000010004);
  Write("go", "stripped", stripped.image());
}

// Two threads of Java that wait for each other's monitors, with a frame each.
void WriteJvm() {
  FakeJvm jvm;
  auto bank = jvm.AddClass("Bank", jvm.object_class().address, {{"static lock", "LBank;"}});
  const uint64_t method = jvm.AddMethod(&bank, "transfer", "Bank.java", 30);
  const uint64_t first = jvm.AddObject(bank);
  const uint64_t second = jvm.AddObject(bank);
  jvm.Refer(bank.mirror, bank.offsets.at("lock"), first);
  auto one = jvm.AddThread("teller-1", 4711);
  auto two = jvm.AddThread("teller-2", 4712);
  jvm.AddFrame(&one, method, 9);
  jvm.AddFrame(&two, method, 3, second);
  jvm.Pend(one, jvm.AddMonitor(second, two.address));
  jvm.Pend(two, jvm.AddMonitor(first, one.stack + 512));
  Write("jvm", "bank", jvm.image());
}

// A session that waits for a transaction, and behind another one for a table.
void WritePostgres() {
  FakePostgres row;
  row.SetTag(5, 735);
  row.Hold(3, 1 << FakePostgres::kExclusive);
  row.Want(0, FakePostgres::kShare);
  Write("postgres", "row", row.image());
  FakePostgres table;
  table.SetTag(0, 5, 16384);
  table.Hold(1, 1 << 1);
  table.Want(2, FakePostgres::kAccessExclusive);
  table.Want(0, 1);
  Write("postgres", "queue", table.image());
}

// A shell in a function of a script, and such a script.
void WriteBash() {
  const FakeBashStory story;
  Write("bash", "deploy", FakeBash(story.bash).image());
  Write("bash", "script",
        "serve() {\n  exec 5<$d/requests 6>>\"$d/log\"\n  read x <&5 # no > file\n}\n"
        "serve\n(\n  cat <'a b' >|c\n) &\n");
}

// Two threads that want each other's Mutex, one for a Monitor, a queue, a child, and one that waits
// to run.
void WriteRuby() {
  using ruby_layout::ThreadStatus;
  FakeRubyStory story;
  Write("ruby", "bank", story.ruby.image());
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t other = ruby.AddThread(101, ThreadStatus::kSleepsForever);
  const uint64_t mutex = ruby.Mutex(other);
  ruby.CallC(main, ruby.Monitor(mutex));
  ruby.WantMutex(main, mutex);
  ruby.CallC(other, ruby.Data("queue", ruby.Block(64)));
  ruby.CallC(ruby.AddThread(102, ThreadStatus::kSleepsForever), ruby.Data("VM/thread", other));
  ruby.WaitForChild(ruby.AddThread(103, ThreadStatus::kSleeps), 4711);
  ruby.WaitToRun(ruby.AddThread(104), main);
  ruby.NameThread(main, "mailer");
  Write("ruby", "waits", ruby.image());
}

// Two threads, one with frames of functions whose names are of any alphabet, and a lock.
void WritePython() {
  FakePython python;
  const uint64_t outer = python.Frame(python.Function("main"), 3, 0, true);
  const uint64_t path = python.Wide(U"/\u94f6\u884c.py", 2);
  const uint64_t middle = python.Frame(python.Code(python.Wide(U"gr\u00f6\u00dfe", 1), path, 5,
                                                   LineEntry(1, 100) + LineEntry(8, -3)),
                                       2, outer);
  const uint64_t inner = python.Frame(python.Function("Pool.take"), 0, middle);
  const uint64_t interpreter = python.Interpreter();
  python.Thread(interpreter, FakePython::kPyThread, inner);
  python.Put(python.Thread(interpreter, 12, outer) + 152, uint64_t{0x7fff1234});
  python.Lock(python.Type("_thread.RLock"), 0x5000, 0x7fff1234, 1);
  Write("python", "threads", python.image());
}

// Two threads, one asleep in a call, with a trace that is truncated, twice there and partly
// missing.
void WritePerfFiles() {
  PerfStory story;
  story.Comm(7, "sleeper");
  story.Switch(kSecond, 0, 0, 0, 7);
  story.Call(kSecond + 10, 0, 7, 202, 0x1234);
  story.Switch(kSecond + 20, 0, 7, 1, 8);
  story.Wake(kSecond + 30, 0, 8, 7);
  story.Lost(kSecond + 40, 1, 3);
  story.TraceStart(kSecond + 50, 1, 9);
  story.Aux(kSecond + 60, 1, 9, 0, 32, PERF_AUX_FLAG_TRUNCATED);
  story.Aux(kSecond + 70, 1, 9, 40, 32, PERF_AUX_FLAG_PARTIAL);
  story.Exit(kSecond + 80, 1, 9);
  story.Auxtrace(1, 0, 32);
  story.Auxtrace(1, 16, 24);
  Write("perf", "file", story.image.File());
  Write("perf", "pipe", story.image.Pipe());
  story.image.records = PerfCompressed(story.image.records, 100);
  Write("perf", "compressed", story.image.File());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: fuzz_seeds DATA ELF FOLDER\n";
    return 2;
  }
  folder = argv[3];
  WriteRings();
  WriteTraces(argv[1]);
  WriteLogs(argv[1]);
  WriteUnits();
  WriteLoops();
  WriteAnswers();
  WriteCores();
  WriteWatches();
  WritePerfFiles();
  WriteGo();
  WriteJvm();
  WritePostgres();
  WriteBash();
  WriteRuby();
  Write("v8", "wait", FakeScriptStack().v8.image());
  WritePython();
  WriteHardwareTraces(argv[1]);
  WriteDebuggers();
  Write("elf", "program", ReadAll(argv[2]));
}
