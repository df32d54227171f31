// Records of tasks that come and go, and names that are given while a program runs, from the target
// itself.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#define HANGSCOPE_PORT "watch_port.h"
#define HANGSCOPE_RING_CAPACITY 8
#define HANGSCOPE_CORES 1
#define HANGSCOPE_TASKS 4
#define HANGSCOPE_NAME_SLOTS 3
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

std::atomic<uint64_t> test_now = 0;
thread_local uint32_t test_core = 0;
void test_between() {}
void test_added(const uint32_t*, uint32_t) {}
void test_relax() {}
void test_halt() { std::abort(); }

namespace {

class Named : public testing::Test {
 protected:
  void SetUp() override {
    std::memset(&hangscope_scope, 0, sizeof hangscope_scope);
    hangscope_init();
  }
  static void Create(uint32_t task) { hangscope_task_ready(hangscope_task_slot(task), task); }
  static void End(uint32_t task) { hangscope_task_gone(hangscope_task_slot_of(task), task); }
  static std::string NameOf(uint32_t kind, uint32_t id) {
    for (const hangscope_name& name : hangscope_scope.names) {
      if (name.kind == kind && name.id == id) return name.text;
    }
    return "";
  }
};

TEST_F(Named, RecordsAreUsedAgainAndOnesTooManyAreCounted) {
  for (uint32_t task = 1; task <= 4; ++task) Create(task);
  EXPECT_EQ(hangscope_scope.header.lost_tasks, 0u);
  EXPECT_EQ(hangscope_task_slot(5), 4u);
  EXPECT_EQ(hangscope_scope.header.lost_tasks, 1u);
  EXPECT_EQ(hangscope_task_slot_of(5), 4u);
  const uint32_t free = hangscope_task_slot_of(3);
  End(3);
  EXPECT_EQ(hangscope_task_slot_of(3), 4u) << "it is gone";
  Create(6);
  EXPECT_EQ(hangscope_task_slot_of(6), free);
  EXPECT_EQ(hangscope_task_slot(6), free) << "asked again, it has the one it had";
  hangscope_task_waits(hangscope_task_slot_of(6), 6, HANGSCOPE_RESOURCE_EXCLUSIVE, 77, 1);
  EXPECT_EQ(hangscope_scope.tasks[free].task, 6u);
  EXPECT_EQ(hangscope_scope.tasks[free].holder, 1u);
  for (uint32_t task = 7; task < 60; ++task) {
    End(task == 7 ? 6 : task - 1);
    Create(task);
  }
  EXPECT_EQ(hangscope_scope.header.lost_tasks, 1u);
}

TEST_F(Named, NamesAreReplacedKeptWhenTheirTaskIsGoneAndCountedWhereThereIsNoRoom) {
  hangscope_task_is_named(1, "motor");
  hangscope_task_is_named(2, "a name that is longer than a place");
  hangscope_resource_is_named(1, "rx");
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK, 1), "motor");
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK, 2), "a name that is longer t");
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_RESOURCE, 1), "rx");
  hangscope_resource_is_named(1, "tx");
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_RESOURCE, 1), "tx");
  hangscope_task_is_named(3, "radio");
  EXPECT_EQ(hangscope_scope.header.lost_names, 1u);
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK, 3), "");
  hangscope_task_is_named(2, nullptr);
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK | HANGSCOPE_NAME_RETIRED, 2), "a name that is longer t");
  hangscope_task_is_named(3, "radio");
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK, 3), "radio");
  EXPECT_EQ(hangscope_scope.header.lost_names, 1u);
  EXPECT_EQ(hangscope_scope.header.name_changes % 2, 0u);
  hangscope_task_is_named(9, nullptr);  // nobody's
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK, 1), "motor");
}

TEST_F(Named, AStartForgetsThem) {
  hangscope_task_is_named(1, "motor");
  hangscope_init();
  EXPECT_EQ(NameOf(HANGSCOPE_CATALOG_TASK, 1), "");
  EXPECT_EQ(hangscope_scope.header.names_at, __builtin_offsetof(struct hangscope_scope, names));
}

}  // namespace
