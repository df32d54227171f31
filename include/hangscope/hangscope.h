/* hangscope for a target: events, control, dumps, and what a watcher looks at. One file of the
 * program defines HANGSCOPE_DEFINE before it includes this; all others just include it. */
#ifndef HANGSCOPE_HANGSCOPE_H
#define HANGSCOPE_HANGSCOPE_H

#include "hangscope/config.h"
#include "hangscope/target/assert.h"
#include "hangscope/target/control.h"
#include "hangscope/target/debug.h"
#include "hangscope/target/delay.h"
#include "hangscope/target/dump.h"
#include "hangscope/target/events.h"
#include "hangscope/target/fault.h"
#include "hangscope/target/guard.h"
#include "hangscope/target/history.h"
#include "hangscope/target/init.h"
#include "hangscope/target/kernel_events.h"
#include "hangscope/target/names.h"
#include "hangscope/target/pause.h"
#include "hangscope/target/show.h"
#include "hangscope/target/stack.h"
#include "hangscope/target/wait.h"
#include "hangscope/target/waypoint.h"
#if defined(HANGSCOPE_PORT_THREADS) || \
    (!HANGSCOPE_ENABLE && defined(__linux__) && !defined(HANGSCOPE_PORT))
#include "hangscope/target/linux.h"
#endif

#endif
