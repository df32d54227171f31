// The file that lists a device's memories: what is taken, and what is refused where.
#include "device/device_file.h"

#include <gtest/gtest.h>

#include "fakes/fake_file_system.h"

namespace hangscope {
namespace {

Result<DeviceSpec> Parse(const std::string& text) {
  static FakeFileSystem files;
  return ParseDevice(files, text, "grid.json", "/boards");
}

std::string Refused(const std::string& text) {
  const auto device = Parse(text);
  if (device.ok()) return "nothing";
  EXPECT_EQ(device.status().code(), Status::Code::kUsage);
  return device.status().message();
}

std::string OneMemory(const std::string& fields) {
  return R"({"memories": [{"memory": "file:a.bin", )" + fields + "}]}";
}

TEST(DeviceFileTest, NamesMemoriesNodesAndElfs) {
  const auto device = Parse(R"({
    "name": "grid", "clock": "shared",
    "memories": [
      {"node": [0, 0], "memory": "file:ram.bin@0x1000", "elf": "/elfs/node.elf"},
      {"node": [1, 0], "memory": "tile1.bin", "elf": "all.elf",
       "elfs": {"reader": "reader.elf", "3": "math.elf"}, "kernels": {"7": "k7.elf"}},
      {"name": "host", "memory": "pid:4711"}
    ]})");
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->name, "grid");
  EXPECT_TRUE(device->one_clock);
  ASSERT_EQ(device->memories.size(), 3u);
  const DeviceMemory& first = device->memories[0];
  EXPECT_EQ(first.name, "(0,0)");
  EXPECT_EQ(first.source.target, "file:/boards/ram.bin@0x1000");
  EXPECT_EQ(first.source.elf, "/elfs/node.elf");
  const DeviceMemory& second = device->memories[1];
  EXPECT_EQ(second.source.target, "file:/boards/tile1.bin");
  EXPECT_EQ(second.source.elf, "/boards/all.elf");
  EXPECT_EQ(second.elf_of_role.at("reader"), "/boards/reader.elf");
  EXPECT_EQ(second.elf_of_core.at(3), "/boards/math.elf");
  EXPECT_EQ(second.elf_of_kernel.at(7), "/boards/k7.elf");
  EXPECT_EQ(device->memories[2].name, "host");
  EXPECT_EQ(device->memories[2].source.target, "pid:4711");
  EXPECT_FALSE(device->memories[2].node);
}

TEST(DeviceFileTest, SaysWhereAndWhyItIsWrong) {
  EXPECT_EQ(Refused("{\n\"memories\": [\n}"),
            "'grid.json': line 3: it is no JSON; docs/format.md has an example");
  EXPECT_EQ(Refused(std::string(100000, '[')),
            "'grid.json': it is no JSON; docs/format.md has an example");
  EXPECT_EQ(Refused("[]"), "'grid.json': an object is wanted");
  EXPECT_EQ(Refused(R"({"memorie": []})"),
            "'grid.json': unknown key 'memorie', did you mean 'memories'?");
  EXPECT_EQ(Refused(R"({"memories": []})"),
            "'grid.json': memories: a list of 1 to 1024 memories is wanted");
  EXPECT_EQ(Refused(R"({"memories": [7]})"), "'grid.json': memories[0]: an object is wanted");
  EXPECT_EQ(Refused(R"({"memories": [{"node": [0, 0]}]})"),
            "'grid.json': memories[0]: it has no memory; for example \"memory\": "
            "\"file:node0.bin\"");
  EXPECT_EQ(Refused(OneMemory(R"("node": [0, 65536])")),
            "'grid.json': memories[0].node: two coordinates, 0 to 65535; for example [1, 0]");
  EXPECT_EQ(Refused(OneMemory(R"("elf": 7)")), "'grid.json': memories[0].elf: a text is wanted");
  EXPECT_EQ(Refused(OneMemory(R"("elfs": [])")),
            "'grid.json': memories[0].elfs: an object of at most 256 files is wanted");
  EXPECT_EQ(Refused(OneMemory(R"("kernels": {"matmul": "k.elf"})")),
            "'grid.json': memories[0].kernels.matmul: the id of a kernel is wanted, 1 to "
            "4294967295");
  EXPECT_EQ(Refused(R"({"memories": [{"memory": "pid:x"}]})"),
            "'grid.json': memories[0].memory: pid:x: a process's number; for example pid:4711");
  EXPECT_EQ(Refused(R"({"clock": "mine", "memories": [{"memory": "a"}]})"),
            "'grid.json': clock: \"shared\", one clock for all memories, or \"own\", which is the "
            "default");
}

TEST(DeviceFileTest, RefusesWhatIsListedTwice) {
  EXPECT_EQ(Refused(R"({"memories": [{"memory": "a", "node": [1, 2]},
                                     {"memory": "b", "node": [1, 2]}]})"),
            "'grid.json': memories[1].node: memories[0] has the same node");
  EXPECT_EQ(Refused(R"({"memories": [{"memory": "a"}, {"memory": "file:a", "name": "b"}]})"),
            "'grid.json': memories[1].memory: memories[0] has the same memory");
}

// What a snapshot says of its memories is read back as it was written.
TEST(DeviceFileTest, TellsWhatASnapshotHas) {
  DeviceSpec spec{"grid", true, {}, {}};
  DeviceMemory read;
  read.name = "(1,0)";
  read.node = {1, 0};
  read.source.target = "file:memory-0.bin";
  read.source.catalog = "memory-0.catalog";
  read.elf_of_core[2] = "/elf/math";
  read.elf_of_role["reader"] = "/elf/reader";
  read.elf_of_kernel[7] = "/elf/matmul";
  read.elf_is_of_others = false;
  read.has_ended = true;
  DeviceMemory lost;
  lost.name = "host";
  lost.source.target = "pid:4711";
  lost.unread = "no such process";
  spec.memories = {read, lost};
  spec.programs["/elf/math"] = {"program-0.catalog", "0a1f"};
  auto parsed = Parse(DeviceFileText(spec));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed->one_clock);
  ASSERT_EQ(parsed->memories.size(), 2u);
  const DeviceMemory& first = parsed->memories[0];
  EXPECT_EQ(first.source.target, "file:/boards/memory-0.bin");
  EXPECT_EQ(first.source.catalog, "/boards/memory-0.catalog");
  EXPECT_EQ(first.source.elf, "");  // its scope is where the image begins, whatever an ELF says
  EXPECT_EQ(first.elf_of_core.at(2), "/elf/math");
  EXPECT_EQ(first.elf_of_role.at("reader"), "/elf/reader");
  EXPECT_EQ(first.elf_of_kernel.at(7), "/elf/matmul");
  EXPECT_FALSE(first.elf_is_of_others);
  EXPECT_TRUE(first.has_ended);
  EXPECT_EQ(parsed->memories[1].unread, "no such process");
  EXPECT_EQ(parsed->memories[1].source.catalog, "");
  const DeviceProgram& program = parsed->programs.at("/elf/math");
  EXPECT_EQ(program.catalog, "/boards/program-0.catalog");
  EXPECT_EQ(program.id, "0a1f");
}

// Cut at every byte, and with every byte another one: refused or taken, and never more than that.
TEST(DeviceFileTest, SurvivesAnyBytes) {
  const std::string sound =
      R"({"name":"g","memories":[{"node":[1,0],"memory":"file:a@0x10","elfs":{"r":"r.elf"}},)"
      R"({"memory":"file:b","catalog":"c","ended":true},{"memory":"d","unread":"it is off"}],)"
      R"("programs":[{"elf":"r.elf","catalog":"p","id":"0a1f"}]})";
  ASSERT_TRUE(Parse(sound).ok());
  for (size_t at = 0; at < sound.size(); ++at) {
    EXPECT_FALSE(Parse(sound.substr(0, at)).ok());
    for (const char byte : {'\0', '"', '[', '}', '9', '\xff'}) {
      std::string text = sound;
      text[at] = byte;
      const auto device = Parse(text);
      EXPECT_TRUE(device.ok() || !device.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace hangscope
