/* What the small firmware share. Each hart does a little real work, then what the file is for. */
#ifndef EXAMPLES_LOOPS_LOOPS_H
#define EXAMPLES_LOOPS_LOOPS_H

#include "platform.h"
#include "work.h"

/* Where every hart does the same, harts from this one on park: eight spinning harts would only
   share the host's cores. */
#define ACTIVE_HARTS 3

/* A few milliseconds under -d exec,nochain. */
#define WARM_UP_PORTIONS 2

#endif
