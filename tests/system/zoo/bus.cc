// usage: zoo_bus NAME
// Programs that call over a bus of D-Bus, by GLib or by libdbus: themselves, or another that
// answers late. Each wants a bus of its own: dbus-run-session zoo_bus NAME.
#include <dbus/dbus.h>
#include <gio/gio.h>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

constexpr char kOwnName[] = "org.zoo.Clock";
constexpr char kOtherName[] = "org.zoo.Slow";
constexpr int kForEver = G_MAXINT;
constexpr int kLong = 400'000;  // ms

// --- GLib.

GDBusConnection* glib_bus;
bool answers_late = false;

void AnswerNow(GDBusConnection*, const gchar*, const gchar*, const gchar*, const gchar*, GVariant*,
               GDBusMethodInvocation* invocation, gpointer) {
  if (answers_late) NapForLong();
  g_dbus_method_invocation_return_value(invocation, g_variant_new("(s)", "now"));
}

constexpr GDBusInterfaceVTable kClock = {AnswerNow, nullptr, nullptr, {}};

GDBusConnection* ConnectByGlib() {
  GDBusConnection* const bus = g_bus_get_sync(G_BUS_TYPE_SESSION, nullptr, nullptr);
  Must(bus != nullptr, "g_bus_get_sync");
  return bus;
}

void OfferClock(const char* name) {
  GDBusNodeInfo* const info = g_dbus_node_info_new_for_xml(
      "<node><interface name='org.zoo.Clock'><method name='Now'>"
      "<arg type='s' direction='out'/></method></interface></node>",
      nullptr);
  g_dbus_connection_register_object(glib_bus, "/clock", info->interfaces[0], &kClock, nullptr,
                                    nullptr, nullptr);
  GVariant* const got = g_dbus_connection_call_sync(
      glib_bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
      "RequestName", g_variant_new("(su)", name, 0), nullptr, G_DBUS_CALL_FLAGS_NONE, -1, nullptr,
      nullptr);
  Must(got != nullptr, "RequestName");
  g_variant_unref(got);
}

void CallByGlib(const char* name, int timeout_ms) {
  GVariant* const now =
      g_dbus_connection_call_sync(glib_bus, name, "/clock", kOwnName, "Now", nullptr, nullptr,
                                  G_DBUS_CALL_FLAGS_NONE, timeout_ms, nullptr, nullptr);
  if (now != nullptr) g_variant_unref(now);
}

gboolean AskOwnClock(gpointer timeout_ms) {
  Ready();
  CallByGlib(kOwnName, GPOINTER_TO_INT(timeout_ms));
  return G_SOURCE_REMOVE;
}

gboolean AskSlowClock(gpointer) {
  Ready();
  CallByGlib(kOtherName, kForEver);
  return G_SOURCE_REMOVE;
}

void RunLoop() { g_main_loop_run(g_main_loop_new(nullptr, FALSE)); }

void GlibItself(long) {
  glib_bus = ConnectByGlib();
  OfferClock(kOwnName);
  g_timeout_add(50, AskOwnClock, GINT_TO_POINTER(kForEver));
  RunLoop();
}

// By the name that the bus gave it.
gboolean AskOwnUniqueName(gpointer) {
  Ready();
  CallByGlib(g_dbus_connection_get_unique_name(glib_bus), kForEver);
  return G_SOURCE_REMOVE;
}

void GlibItselfByNumber(long) {
  glib_bus = ConnectByGlib();
  OfferClock(kOwnName);
  g_timeout_add(50, AskOwnUniqueName, nullptr);
  RunLoop();
}

// It fails in the end, and the loop goes on.
void GlibItselfForATime(long) {
  glib_bus = ConnectByGlib();
  OfferClock(kOwnName);
  g_timeout_add(50, AskOwnClock, GINT_TO_POINTER(kLong));
  RunLoop();
}

// The object is of another thread's loop, whose handler takes its time.
void* ServeInThread(void* came) {
  GMainContext* const context = g_main_context_new();
  g_main_context_push_thread_default(context);
  OfferClock(kOwnName);
  static_cast<Meeting*>(came)->Come(2);
  g_main_loop_run(g_main_loop_new(context, FALSE));
  return nullptr;
}

void GlibOtherThread(long) {
  static Meeting came;
  answers_late = true;
  glib_bus = ConnectByGlib();
  Start("clock", ServeInThread, reinterpret_cast<long>(&came));
  came.Come(2);
  g_timeout_add(50, AskOwnClock, GINT_TO_POINTER(kForEver));
  RunLoop();
}

// The child before any thread of the parent.
void StartSlowClock() {
  int ready[2];
  MakePipe(ready);
  if (Fork() == 0) {
    Rename("slow");
    answers_late = true;
    glib_bus = ConnectByGlib();
    OfferClock(kOtherName);
    WriteByte(ready[1]);
    RunLoop();
  }
  ReadByte(ready[0]);
}

void GlibOtherProcess(long) {
  StartSlowClock();
  glib_bus = ConnectByGlib();
  OfferClock(kOwnName);
  g_timeout_add(50, AskSlowClock, nullptr);
  RunLoop();
}

// It has called itself before, and got its answer, as it did not wait for that.
void GotOwnAnswer(GObject*, GAsyncResult*, gpointer) { g_timeout_add(50, AskSlowClock, nullptr); }

void GlibOtherProcessThen(long) {
  StartSlowClock();
  glib_bus = ConnectByGlib();
  OfferClock(kOwnName);
  g_dbus_connection_call(glib_bus, kOwnName, "/clock", kOwnName, "Now", nullptr, nullptr,
                         G_DBUS_CALL_FLAGS_NONE, kForEver, nullptr, GotOwnAnswer, nullptr);
  RunLoop();
}

// A call to itself that it does not wait for stands open, as its loop has no time for it: it waits
// for another's answer.
gboolean AskSlowClockBeside(gpointer) {
  g_dbus_connection_call(glib_bus, kOwnName, "/clock", kOwnName, "Now", nullptr, nullptr,
                         G_DBUS_CALL_FLAGS_NONE, kForEver, nullptr, nullptr, nullptr);
  return AskSlowClock(nullptr);
}

void GlibOtherProcessBeside(long) {
  StartSlowClock();
  glib_bus = ConnectByGlib();
  OfferClock(kOwnName);
  g_timeout_add(50, AskSlowClockBeside, nullptr);
  RunLoop();
}

// --- libdbus.

DBusConnection* plain_bus;

void ConnectPlainly(const char* name) {
  plain_bus = dbus_bus_get(DBUS_BUS_SESSION, nullptr);
  Must(plain_bus != nullptr, "dbus_bus_get");
  Must(dbus_bus_request_name(plain_bus, name, 0, nullptr) > 0, "dbus_bus_request_name");
}

void AskPlainly(const char* name, int timeout_ms) {
  DBusMessage* const call = dbus_message_new_method_call(name, "/clock", kOwnName, "Now");
  Ready();
  DBusMessage* const now =
      dbus_connection_send_with_reply_and_block(plain_bus, call, timeout_ms, nullptr);
  if (now != nullptr) dbus_message_unref(now);
  dbus_message_unref(call);
}

void PlainItself(long) {
  ConnectPlainly(kOwnName);
  AskPlainly(kOwnName, DBUS_TIMEOUT_INFINITE);
}

void PlainItselfForATime(long) {
  ConnectPlainly(kOwnName);
  AskPlainly(kOwnName, kLong);
  NapForLong();
}

void PlainOtherProcess(long) {
  StartSlowClock();
  ConnectPlainly(kOwnName);
  AskPlainly(kOtherName, DBUS_TIMEOUT_INFINITE);
}

// With a call to itself that it has not looked at yet.
void PlainOtherProcessBeside(long) {
  StartSlowClock();
  ConnectPlainly(kOwnName);
  DBusMessage* const own = dbus_message_new_method_call(kOwnName, "/clock", kOwnName, "Now");
  dbus_connection_send(plain_bus, own, nullptr);
  AskPlainly(kOtherName, DBUS_TIMEOUT_INFINITE);
}

constexpr Program kPrograms[] = {
    {"glib-itself", GlibItself},
    {"glib-itself-by-number", GlibItselfByNumber},
    {"plain-itself", PlainItself},
    {"glib-itself-for-a-time", GlibItselfForATime},
    {"glib-other-thread", GlibOtherThread},
    {"glib-other-process", GlibOtherProcess},
    {"glib-other-process-then", GlibOtherProcessThen},
    {"glib-other-process-beside", GlibOtherProcessBeside},
    {"plain-itself-for-a-time", PlainItselfForATime},
    {"plain-other-process", PlainOtherProcess},
    {"plain-other-process-beside", PlainOtherProcessBeside},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }
