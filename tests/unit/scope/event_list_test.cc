#include "scope/event_list.h"

#include <gmock/gmock.h>

#include <vector>

namespace hangscope {
namespace {

using testing::ElementsAre;

constexpr uint32_t kCore = 3;

ScopeEvent EventAt(uint64_t sequence, uint64_t time, uint32_t age = 0) {
  ScopeEvent event;
  event.core = kCore;
  event.sequence = sequence;
  event.time = time;
  event.age = age;
  event.id = 2047;
  event.parameter_count = 14;
  for (uint32_t i = 0; i < 14; ++i) event.parameters[i] = static_cast<uint32_t>(sequence) * 100 + i;
  return event;
}

EventLoss LossOf(uint64_t begin, uint64_t end, EventLossReason reason = EventLossReason::kTorn) {
  return {kCore, begin, end, reason, 0, 50};
}

std::vector<uint64_t> Records(const EventList& list) {
  std::vector<uint64_t> records;
  for (size_t i = 0; i < list.size(); ++i) records.push_back(list.first_record(i));
  return records;
}

TEST(EventList, WhatIsAddedComesBack) {
  EventList list(kCore, 14);
  ScopeEvent event = EventAt(uint64_t{1} << 40, uint64_t{1} << 50, 7);
  event.ambiguous = true;
  event.task = 0xffffffff;
  list.Add(event);
  list.Add(LossOf(5, uint64_t{1} << 41, EventLossReason::kUnread));
  list.Add(EventAt(9, 60));
  ASSERT_EQ(list.size(), 3u);
  const auto first = std::get<ScopeEvent>(list.At(0));
  EXPECT_EQ(first.core, kCore);
  EXPECT_EQ(first.sequence, event.sequence);
  EXPECT_EQ(first.time, event.time);
  EXPECT_EQ(first.age, 7u);
  EXPECT_EQ(first.id, 2047u);
  EXPECT_EQ(first.parameter_count, 14u);
  EXPECT_EQ(first.parameters, event.parameters);
  EXPECT_EQ(first.task, event.task);
  EXPECT_TRUE(first.ambiguous);
  const auto loss = std::get<EventLoss>(list.At(1));
  EXPECT_EQ(loss.core, kCore);
  EXPECT_EQ(loss.begin, 5u);
  EXPECT_EQ(loss.end, uint64_t{1} << 41);
  EXPECT_EQ(loss.reason, EventLossReason::kUnread);
  EXPECT_EQ(loss.time, 50u);
  const auto last = std::get<ScopeEvent>(list.At(2));
  EXPECT_EQ(last.parameters, EventAt(9, 60).parameters);
  EXPECT_EQ(last.task, std::nullopt);
  EXPECT_FALSE(last.ambiguous);
}

TEST(EventList, ALossGoesOnWithTheNextRecordThatIsLostForTheSameReason) {
  EventList list(kCore, 14);
  list.Add(EventAt(1, 10));
  EXPECT_FALSE(list.GoesOn(EventLossReason::kOverwritten, 1, 0));  // it is no loss
  list.Add(LossOf(5, 6));
  EXPECT_FALSE(list.GoesOn(EventLossReason::kTorn, 7, 0));
  EXPECT_FALSE(list.GoesOn(EventLossReason::kRefused, 6, 0));
  EXPECT_FALSE(list.GoesOn(EventLossReason::kTorn, 6, 1));
  ASSERT_TRUE(list.GoesOn(EventLossReason::kTorn, 6, 0));
  list.LengthenLast();
  EXPECT_EQ(list.loss(1).end, 7u);
}

TEST(EventList, IsSortedByStartThenTimeThenRecordFromSomePlaceOn) {
  EventList list(kCore, 14);
  list.Add(EventAt(9, 90));
  for (const auto& [record, time, age] : {std::tuple{5, 30, 0}, {4, 20, 0}, {3, 20, 0}, {2, 99, 1}})
    list.Add(EventAt(static_cast<uint64_t>(record), static_cast<uint64_t>(time),
                     static_cast<uint32_t>(age)));
  list.SortByTime(1);
  EXPECT_THAT(Records(list), ElementsAre(9, 2, 3, 4, 5));
  EXPECT_EQ(list.event(1).parameters, EventAt(2, 0).parameters);  // they go with their events
  list.SortByRecord();
  EXPECT_THAT(Records(list), ElementsAre(2, 3, 4, 5, 9));
  EXPECT_EQ(list.RemoveEarlier(), 1u);
  EXPECT_THAT(Records(list), ElementsAre(3, 4, 5, 9));
  list.RemoveFirst(2);
  EXPECT_THAT(Records(list), ElementsAre(5, 9));
  EXPECT_EQ(list.event(1).parameters, EventAt(9, 0).parameters);
}

}  // namespace
}  // namespace hangscope
