// A simulator is this very process, and a guest's RAM one of its mappings.
#include "target/guest_ram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "target/target.h"

namespace hangscope {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr GuestSearch kSearch = {0x80012340, 0x80000000, false};  // RAM from 0x80000000 on
constexpr GuestSearch kEverywhere = {0x80012340, 0x80000000, true};
constexpr uint64_t kAt = kSearch.symbol - kSearch.first_address;

class GuestRamTest : public ::testing::Test {
 protected:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  void SetUp() override { GTEST_SKIP() << "of the sanitizer are the largest mappings"; }
#endif
  ~GuestRamTest() override {
    if (ram_ != nullptr) munmap(ram_, size_);
  }
  char* MapRam(uint64_t size, int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
               int fd = -1) {
    size_ = size;
    void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    EXPECT_NE(at, MAP_FAILED);
    return ram_ = static_cast<char*>(at);
  }
  // The magic is put together here: no literal of this program is to be found.
  static uint64_t Put(char* at, const char* first = "hang", const char* second = "scop") {
    memcpy(at, first, 4);
    memcpy(at + 4, second, 4);
    return reinterpret_cast<uint64_t>(at);
  }
  // 0: nothing.
  uint64_t Find(const GuestSearch& search, uint64_t scope) {
    asked_.clear();
    auto found = FindInGuestRam(PosixFileSystem(), getpid(), search, [&](uint64_t address) {
      asked_.push_back(address);
      return address == scope;
    });
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? found->value_or(0) : 0;
  }

  char* ram_ = nullptr;
  uint64_t size_ = 0;
  std::vector<uint64_t> asked_;
};

TEST_F(GuestRamTest, WhereTheElfSaysInAMappingThatIsTheRam) {
  const uint64_t scope = Put(MapRam(64 * kMiB) + kAt);
  EXPECT_EQ(Find(kSearch, scope), scope);
  EXPECT_EQ(asked_, std::vector{scope});
}

TEST_F(GuestRamTest, OfAGuestWithTheOtherByteOrder) {
  const uint64_t scope = Put(MapRam(64 * kMiB) + kAt, "gnah", "pocs");
  EXPECT_EQ(Find(kSearch, scope), scope);
}

// As simulators in C++ keep it.
TEST_F(GuestRamTest, InABlockOfMalloc) {
  char* const block = static_cast<char*>(calloc(64, kMiB));
  const uint64_t scope = Put(block + kAt);
  EXPECT_EQ(Find(kSearch, scope), scope);
  free(block);
}

TEST_F(GuestRamTest, InASharedFileOfWhichTheRamIsAPart) {
  const int fd = memfd_create("ram", 0);
  ASSERT_EQ(ftruncate(fd, 64 * kMiB), 0);
  const uint64_t scope = Put(MapRam(64 * kMiB, MAP_SHARED, fd) + 5 * kMiB + 3 * 4096 + kAt);
  close(fd);
  EXPECT_EQ(Find(kSearch, scope), scope);
}

TEST_F(GuestRamTest, AnywhereInItIfThatIsAskedFor) {
  const uint64_t scope = Put(MapRam(64 * kMiB) + 7 * kMiB + 1236);
  EXPECT_EQ(Find(kSearch, scope), 0u);
  EXPECT_EQ(Find(kEverywhere, scope), scope);
}

TEST_F(GuestRamTest, AcrossTheEndOfWhatIsReadAtOnce) {
  char* const ram = MapRam(64 * kMiB);
  memset(ram, 1, 4 * kMiB);
  const uint64_t scope = Put(ram + 2 * kMiB - 4);
  EXPECT_EQ(Find(kEverywhere, scope), scope);
}

TEST_F(GuestRamTest, WhatIsNoScopeIsPassedOver) {
  char* const ram = MapRam(64 * kMiB);
  const uint64_t wrong = Put(ram + kAt);
  const uint64_t scope = Put(ram + kAt + 32 * 4096);
  EXPECT_EQ(Find(kSearch, scope), scope);
  EXPECT_EQ(asked_.front(), wrong);
}

// A page of a file in memory is made when it is read; and 8 bytes of page tables for each that is.
TEST_F(GuestRamTest, PagesThatNobodyTouchedStayUntouched) {
  const int fd = memfd_create("ram", 0);
  ASSERT_EQ(ftruncate(fd, 256 * kMiB), 0);
  char* const ram = MapRam(256 * kMiB, MAP_SHARED, fd);
  const uint64_t scope = Put(ram + 100 * kMiB + 1236);
  struct stat before {};
  fstat(fd, &before);
  EXPECT_EQ(Find(kEverywhere, scope), scope);
  EXPECT_EQ(Find(kEverywhere, 1), 0u);
  struct stat after {};
  fstat(fd, &after);
  close(fd);
  EXPECT_EQ(after.st_blocks, before.st_blocks);
}

TEST_F(GuestRamTest, AHugeProcessCostsNoMore) {
  MapRam(400'000 * kMiB);
  const clock_t begin = clock();
  EXPECT_EQ(Find(kEverywhere, 1), 0u);
  EXPECT_LT(static_cast<double>(clock() - begin) / CLOCKS_PER_SEC, 3.0);
}

TEST_F(GuestRamTest, NoProcess) {
  const auto none =
      FindInGuestRam(PosixFileSystem(), 99999999, kSearch, [](uint64_t) { return true; });
  EXPECT_FALSE(none.ok());
}

// As Spike has it: this process's map is laid out as the simulator's.
class PagedGuestTest : public GuestRamTest {
 protected:
  PagedGuestTest() {
    // What is smaller than a MiB is no RAM: a heap of this test alone would be.
    for (void*& more : heap_) more = calloc(kPage, 1);
    // RAM that the guest has touched in no order; the scope lies across two of its pages.
    for (const uint64_t page : {7, 3, 0, 0x13, 1, 0x12, 40, 5}) Touch(page);
    Put(Touch(0x12) + kSearch.symbol % kPage);
    Touch(0x13)[5] = 'x';
  }
  ~PagedGuestTest() override {
    for (const auto& [number, bytes] : pages_) free(bytes);
    for (void* const more : heap_) free(more);
  }
  char* Touch(uint64_t number) {
    char*& bytes = pages_[number];
    if (bytes == nullptr) bytes = static_cast<char*>(calloc(kPage, 1));
    return bytes;
  }
  std::optional<PagedRam> FindMap(const GuestSearch& search = kSearch) {
    auto found = FindPagedGuestRam(PosixFileSystem(), getpid(), search,
                                   [](const PagedRam&) { return true; });
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? *found : std::nullopt;
  }

  static constexpr uint64_t kPage = PagedGuest::kPageBytes;
  std::array<void*, 512> heap_;
  std::map<uint64_t, char*> pages_;
};

TEST_F(PagedGuestTest, IsFoundByThePageOfItsScope) {
  const auto ram = FindMap();
  ASSERT_TRUE(ram);
  EXPECT_EQ(ram->base, 0x80000000u);
  EXPECT_FALSE(FindMap({0x80013340, 0x80000000, false})) << "the magic is not there";
}

TEST_F(PagedGuestTest, IsReadPageByPageAsItGrows) {
  const auto ram = FindMap();
  ASSERT_TRUE(ram);
  auto guest = OpenTarget(GuestSpec(getpid(), kSearch.symbol, *ram), {});
  ASSERT_TRUE(guest.ok()) << guest.status().message();
  EXPECT_TRUE((*guest)->is_guest());
  EXPECT_EQ((*guest)->scope_address(), kSearch.symbol);
  char across[8];
  ASSERT_TRUE((*guest)->Read(0x80013000 - 2, across).ok());
  EXPECT_EQ(across[7], 'x');
  ASSERT_TRUE((*guest)->Write(0x80013000 - 1, "ab").ok());
  EXPECT_EQ(pages_[0x12][kPage - 1], 'a');
  EXPECT_EQ(pages_[0x13][0], 'b');
  EXPECT_THAT((*guest)->Read(0x80013000 + kPage - 4, across).message(),
              ::testing::HasSubstr("no memory at 0x80014000 of its guest yet"));
  for (uint64_t page = 0x14; page < 0x200; ++page) Touch(page)[0] = static_cast<char>(page);
  ASSERT_TRUE((*guest)->Read(0x80000000 + 0x1a3 * kPage, across).ok());
  EXPECT_EQ(across[0], static_cast<char>(0xa3));
  EXPECT_FALSE((*guest)->Read(0x7ffffff8, across).ok());
}

TEST_F(PagedGuestTest, WhatIsNoMapOfPagesIsNone) {
  uint64_t node[6] = {1, 0, 0, 0, 0x12, reinterpret_cast<uint64_t>(Touch(0x12))};
  const auto header = [&] {
    return HeaderOfMap(ProcessMemory(getpid()), reinterpret_cast<uint64_t>(&node[4]));
  };
  EXPECT_FALSE(header());
  uint64_t other[6] = {};
  node[1] = reinterpret_cast<uint64_t>(other);
  EXPECT_FALSE(header()) << "it is no child of that";
  other[1] = reinterpret_cast<uint64_t>(node);
  EXPECT_EQ(header(), node[1]);
  other[1] = reinterpret_cast<uint64_t>(other);
  other[2] = reinterpret_cast<uint64_t>(node);
  EXPECT_EQ(header(), node[1]);
  node[1] = 8;
  EXPECT_FALSE(header());
}

}  // namespace
}  // namespace hangscope
