/* A core that stops until somebody says go on: because its code says so, or because a host asked
 * for it.
 *
 *   HANGSCOPE_PAUSE();         here, until resumed
 *   HANGSCOPE_PAUSE_POINT();   here, if the host asked: one load and a branch; in loops that do not
 *                              end
 *
 * hangscope_heartbeat() is a pause point, too. Interrupts go on while their core is paused. Any
 * context, but a core that pauses in a handler, or while it holds a lock, stops others, too.
 * abi/watch.h says how to resume; `hangscope set resume` does it. */
#ifndef HANGSCOPE_TARGET_PAUSE_H
#define HANGSCOPE_TARGET_PAUSE_H

#include "hangscope/target/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_PAUSES

#define HANGSCOPE_PAUSE() hangscope_pause_here(HANGSCOPE_PAUSED_BY_CODE)
#define HANGSCOPE_PAUSE_POINT() hangscope_pause_point()

/* Not to be called for BY_HOST if nobody asks: it looks again. Returns when resumed, or when pauses
 * are switched off. */
void hangscope_pause_here(enum hangscope_paused how);

HANGSCOPE_INLINE void hangscope_pause_point_of(struct hangscope_mailbox* mailbox) {
  if (HANGSCOPE_UNLIKELY(hangscope_port_load(&mailbox->pause) != 0))
    hangscope_pause_here(HANGSCOPE_PAUSED_BY_HOST);
}

HANGSCOPE_CALLED void hangscope_pause_point(void);
#if !HANGSCOPE_OUT_OF_LINE || defined(HANGSCOPE_DEFINE)
HANGSCOPE_CALLED void hangscope_pause_point(void) {
  hangscope_pause_point_of(hangscope_this_mailbox());
}
#endif

/* Lets another core go on, as a host does. Any core, any context; a number that does not exist is
 * ignored. */
HANGSCOPE_INLINE void hangscope_resume(uint32_t core) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0 || core >= HANGSCOPE_CORES) return;
  hangscope_port_store(&scope->mailboxes[core].pause, 0);
  /* pairs with hangscope_pause_here, which loads them the other way round */
  hangscope_port_stores_in_order();
  (void)hangscope_port_add(&scope->mailboxes[core].resumes, 1);
}

#ifdef HANGSCOPE_DEFINE

HANGSCOPE_COLD void hangscope_pause_here(enum hangscope_paused how) {
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
  if (hangscope_core_of(mailbox) >= HANGSCOPE_CORES) return; /* nobody could resume it */
  /* First, so that none is missed: whoever resumes stops asking before, and sees `paused` before.
   */
  const uint32_t resumes = hangscope_port_load(&mailbox->resumes);
  hangscope_port_loads_in_order();
  if (how == HANGSCOPE_PAUSED_BY_HOST && hangscope_port_load(&mailbox->pause) != 1) return;
  /* of what this handler interrupts */
  const uint32_t outer = hangscope_port_load(&mailbox->paused);
  hangscope_port_publish(&mailbox->paused, how); /* pairs with a host's look, which then resumes */
  while (hangscope_is_on(HANGSCOPE_WATCH_PAUSES) &&
         hangscope_port_load(&mailbox->resumes) == resumes)
    hangscope_port_relax();
  hangscope_port_loads_in_order(); /* what was written before the resume is seen */
  hangscope_port_store(&mailbox->paused, outer);
}

#endif

#else

#define HANGSCOPE_PAUSE() ((void)0)
#define HANGSCOPE_PAUSE_POINT() ((void)0)
HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_resume(uint32_t core) { (void)core; }
HANGSCOPE_OFF_END
#define hangscope_resume(...) HANGSCOPE_NOT_DONE((hangscope_resume)(__VA_ARGS__))

#endif

#ifdef __cplusplus
}
#endif

#endif
