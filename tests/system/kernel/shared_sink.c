// SPDX-License-Identifier: GPL-2.0 OR MIT
// A PMU named cs_etm that no hardware is behind: trace units of all CPUs write into one sink, and
// the sink is drained as Linux's CoreSight drivers drain theirs. The perf core around it is the
// kernel's own.
//
//  * While an event runs on a CPU, its trace unit writes a burst of packets each `period_us`, in frames of 16 bytes
//    with the CPU's trace id; the frames of CPUs that run at once mix.
//  * The sink begins empty when its first user starts. A user that stops while others still run gets nothing; the
//    last one to stop gets all of it into its AUX area.
//  * A sink that was overwritten is drained from its oldest frame on, whose place a barrier packet takes.
//
// Read back from sysfs: `drains`, `empty_stops`, `barriers`, `drained_bytes` (parameters of the
// module).
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define FRAME_BYTES 16
#define FRAME_DATA 14
#define SINK_ID 0x51

static unsigned int sink_bytes = 16384;
module_param(sink_bytes, uint, 0444);
static unsigned int period_us = 100;
module_param(period_us, uint, 0444);
static unsigned long drains, empty_stops, barriers, drained_bytes;
module_param(drains, ulong, 0444);
module_param(empty_stops, ulong, 0444);
module_param(barriers, ulong, 0444);
module_param(drained_bytes, ulong, 0444);

// One of all CPUs; `lock` guards all of it and the counts above.
static struct {
  raw_spinlock_t lock;
  u8* bytes;
  unsigned int users;
  u64 written;  // since its first user started
} sink = {.lock = __RAW_SPIN_LOCK_UNLOCKED(sink.lock)};

struct area {
  unsigned long bytes;
  void* pages[];
};

struct trace_unit {
  struct perf_output_handle handle;
  struct hrtimer timer;
  int cpu;
};
static DEFINE_PER_CPU(struct trace_unit, trace_units);

static struct pmu fake_pmu;

static int trace_id(int cpu) { return 0x10 + 2 * cpu; }

// `data`: FRAME_DATA bytes of one id. Even places hold seven bits; the last byte has their lowest
// ones.
static void write_frame(int id, const u8* data) {
  u8 frame[FRAME_BYTES] = {id << 1 | 1, data[0]};
  unsigned long flags;
  int i;

  for (i = 2; i < FRAME_BYTES - 1; ++i) {
    frame[i] = data[i - 1];
    if (i % 2 == 0) {
      frame[FRAME_BYTES - 1] |= (frame[i] & 1) << (i / 2);
      frame[i] &= ~1;
    }
  }
  raw_spin_lock_irqsave(&sink.lock, flags);
  memcpy(sink.bytes + sink.written % sink_bytes, frame, FRAME_BYTES);
  sink.written += FRAME_BYTES;
  raw_spin_unlock_irqrestore(&sink.lock, flags);
}

// Packets of an ETMv4 that stand for themselves: synchronisation, trace info, trace on, an address,
// atoms. Each frame is written by itself, so that other CPUs' come between them.
static void write_burst(int cpu) {
  static const u8 packets[] = {
      0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0x80,  // A-sync
      0x01, 0x01, 0x00,                                                  // trace info
      0x04,                                                              // trace on
      0x9d, 0x00, 0x08, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00,              // an address of 64 bits
  };
  u8 burst[4 * FRAME_DATA];
  int i;

  memset(burst, 0xf7, sizeof(burst));  // an atom: executed
  memcpy(burst, packets, sizeof(packets));
  for (i = 0; i < 4; ++i) write_frame(trace_id(cpu), burst + i * FRAME_DATA);
}

static enum hrtimer_restart tick(struct hrtimer* timer) {
  struct trace_unit* unit = container_of(timer, struct trace_unit, timer);

  write_burst(unit->cpu);
  hrtimer_forward_now(timer, ns_to_ktime(period_us * 1000));
  return HRTIMER_RESTART;
}

static void copy_to_area(const struct area* area, u64 head, const u8* from, unsigned long bytes) {
  unsigned long i;

  for (i = 0; i < bytes; ++i) {
    unsigned long at = (head + i) % area->bytes;

    ((u8*)area->pages[at / PAGE_SIZE])[at % PAGE_SIZE] = from[i];
  }
}

// Whoever stops last gets it all. Returns how many bytes came into the area; `lost`: some were
// overwritten.
static unsigned long leave_sink(struct perf_output_handle* handle, const struct area* area,
                                bool* lost) {
  static const u8 barrier[FRAME_BYTES] = {0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f,
                                          0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f};
  unsigned long flags, bytes = 0, begin = 0;

  raw_spin_lock_irqsave(&sink.lock, flags);
  if (--sink.users != 0) {
    ++empty_stops;
    goto out;
  }
  bytes = min_t(u64, sink.written, sink_bytes);
  *lost = sink.written > sink_bytes;
  if (*lost) {
    begin = sink.written % sink_bytes;
    memcpy(sink.bytes + begin, barrier, FRAME_BYTES);
    ++barriers;
  }
  copy_to_area(area, handle->head, sink.bytes + begin, bytes - begin);
  copy_to_area(area, handle->head + bytes - begin, sink.bytes, begin);
  ++drains;
  drained_bytes += bytes;
out:
  raw_spin_unlock_irqrestore(&sink.lock, flags);
  return bytes;
}

static void fake_start(struct perf_event* event, int flags) {
  struct trace_unit* unit = this_cpu_ptr(&trace_units);
  unsigned long irq;

  event->hw.state = PERF_HES_STOPPED;
  if (perf_aux_output_begin(&unit->handle, event) == NULL) return;
  raw_spin_lock_irqsave(&sink.lock, irq);
  if (sink.users++ == 0) sink.written = 0;
  raw_spin_unlock_irqrestore(&sink.lock, irq);
  event->hw.state = 0;
  write_burst(unit->cpu);
  hrtimer_start(&unit->timer, ns_to_ktime(period_us * 1000), HRTIMER_MODE_REL_PINNED_HARD);
}

static void fake_stop(struct perf_event* event, int flags) {
  struct trace_unit* unit = this_cpu_ptr(&trace_units);
  struct area* area;
  unsigned long bytes;
  bool lost = false;

  if (event->hw.state & PERF_HES_STOPPED) return;
  event->hw.state |= PERF_HES_STOPPED;
  hrtimer_cancel(&unit->timer);
  area = perf_get_aux(&unit->handle);
  bytes = leave_sink(&unit->handle, area, &lost);
  // An area that overwrites itself is told by its head, which counts all bytes.
  unit->handle.head += bytes;
  perf_aux_output_end(&unit->handle, bytes);
}

static int fake_add(struct perf_event* event, int flags) {
  event->hw.state = PERF_HES_STOPPED;
  if (flags & PERF_EF_START) fake_start(event, flags);
  return 0;
}

static void fake_del(struct perf_event* event, int flags) { fake_stop(event, PERF_EF_UPDATE); }

static void fake_read(struct perf_event* event) {}

static int fake_init(struct perf_event* event) {
  if (event->attr.type != fake_pmu.type) return -ENOENT;
  return event->cpu < 0 ? -EOPNOTSUPP : 0;  // one area for all CPUs is not played
}

// Areas that do not overwrite themselves are not played.
static void* fake_setup_aux(struct perf_event* event, void** pages, int count, bool overwrite) {
  struct area* area;

  if (!overwrite || (unsigned long)count * PAGE_SIZE < sink_bytes) return NULL;
  area = kzalloc(struct_size(area, pages, count), GFP_KERNEL);
  if (!area) return NULL;
  area->bytes = (unsigned long)count * PAGE_SIZE;
  memcpy(area->pages, pages, count * sizeof(void*));
  return area;
}

static void fake_free_aux(void* area) { kfree(area); }

PMU_FORMAT_ATTR(contextid, "config:14");
PMU_FORMAT_ATTR(timestamp, "config:28");
PMU_FORMAT_ATTR(sinkid, "config2:0-31");
static struct attribute* formats[] = {&format_attr_contextid.attr, &format_attr_timestamp.attr,
                                      &format_attr_sinkid.attr, NULL};
static const struct attribute_group format_group = {.name = "format", .attrs = formats};

static ssize_t tmc_etr0_show(struct device* device, struct device_attribute* attribute,
                             char* page) {
  return sysfs_emit(page, "0x%x\n", SINK_ID);
}
static DEVICE_ATTR_RO(tmc_etr0);
static struct attribute* sinks[] = {&dev_attr_tmc_etr0.attr, NULL};
static const struct attribute_group sink_group = {.name = "sinks", .attrs = sinks};
static const struct attribute_group* groups[] = {&format_group, &sink_group, NULL};

// cpuN/trcidr, cpuN/mgmt: of an ETMv4.
#define REGISTER(name, value)                                                          \
  static ssize_t name##_show(struct kobject* object, struct kobj_attribute* attribute, \
                             char* page) {                                             \
    return sysfs_emit(page, "0x%x\n", value);                                          \
  }                                                                                    \
  static struct kobj_attribute name##_register = __ATTR_RO(name)
REGISTER(trcidr0, 0x28000ea1);
REGISTER(trcidr1, 0x4100f403);
REGISTER(trcidr2, 0x00000488);
REGISTER(trcidr8, 0x0);
REGISTER(trcauthstatus, 0xcc);
REGISTER(trcdevarch, 0x47704a13);
static struct attribute* ids[] = {&trcidr0_register.attr, &trcidr1_register.attr,
                                  &trcidr2_register.attr, &trcidr8_register.attr, NULL};
static const struct attribute_group id_group = {.name = "trcidr", .attrs = ids};
static struct attribute* management[] = {&trcauthstatus_register.attr, &trcdevarch_register.attr,
                                         NULL};
static const struct attribute_group management_group = {.name = "mgmt", .attrs = management};
static const struct attribute_group* unit_groups[] = {&id_group, &management_group, NULL};

static struct kobject* folders[NR_CPUS];

static void remove_units(void) {
  int cpu;

  for_each_possible_cpu(cpu) kobject_put(folders[cpu]);
}

static int add_units(void) {
  char name[16];
  int cpu, error;

  for_each_online_cpu(cpu) {
    struct trace_unit* unit = per_cpu_ptr(&trace_units, cpu);

    unit->cpu = cpu;
    hrtimer_init(&unit->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
    unit->timer.function = tick;
    snprintf(name, sizeof(name), "cpu%d", cpu);
    folders[cpu] = kobject_create_and_add(name, &fake_pmu.dev->kobj);
    error = folders[cpu] ? sysfs_create_groups(folders[cpu], unit_groups) : -ENOMEM;
    if (error) return error;
  }
  return 0;
}

static struct pmu fake_pmu = {
    .module = THIS_MODULE,
    .capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
    .task_ctx_nr = perf_sw_context,
    .attr_groups = groups,
    .event_init = fake_init,
    .add = fake_add,
    .del = fake_del,
    .start = fake_start,
    .stop = fake_stop,
    .read = fake_read,
    .setup_aux = fake_setup_aux,
    .free_aux = fake_free_aux,
};

static int __init shared_sink_init(void) {
  int error;

  if (sink_bytes == 0 || sink_bytes % PAGE_SIZE != 0 || period_us == 0) return -EINVAL;
  sink.bytes = kzalloc(sink_bytes, GFP_KERNEL);
  if (!sink.bytes) return -ENOMEM;
  error = perf_pmu_register(&fake_pmu, "cs_etm", -1);
  if (error) goto no_pmu;
  error = add_units();
  if (error) goto no_units;
  return 0;
no_units:
  remove_units();
  perf_pmu_unregister(&fake_pmu);
no_pmu:
  kfree(sink.bytes);
  return error;
}

static void __exit shared_sink_exit(void) {
  remove_units();
  perf_pmu_unregister(&fake_pmu);
  kfree(sink.bytes);
}

module_init(shared_sink_init);
module_exit(shared_sink_exit);
MODULE_DESCRIPTION("Plays CoreSight trace units that share one sink");
MODULE_LICENSE("Dual MIT/GPL");
