/* How a core pauses because a host asks (include/hangscope/target/pause.h), and how the host lets it go, with no regard
 * to whether it noticed, for spin. models/check runs it, and its mutants.
 *
 * The host: pause = 1; later pause = 0, then resumes + 1, in this order. The core: looks at pause; if it is 1,
 * at resumes, then at pause again, and pauses if that is still 1, until resumes is another number.
 *
 * Weak memory: the host's stores go into memory in any order (`seen_...`), with a fence in theirs; the core's loads are
 * in order, as they are written with fences between. */

#ifndef ASKS
#define ASKS 3
#endif

bool pause;
byte resumes;
bool seen_pause;
byte seen_resumes;
bool host_is_done;
bool core_was_paused;

proctype memory() {
end:
  do
  :: atomic { seen_pause != pause -> seen_pause = pause }
  :: atomic { seen_resumes != resumes -> seen_resumes = resumes }
  od
}

inline stores_go() {
  d_step { seen_pause = pause; seen_resumes = resumes }
}

proctype host() {
  byte n = 0;
  do
  :: n < ASKS ->
    n++;
    pause = true;
    stores_go(); /* it does something else before it resumes: its stores have gone */
#ifdef RESUMES_FIRST
    resumes++;
    stores_go();
    pause = false;
#else
    pause = false;
#ifndef WITHOUT_FENCE
    stores_go();
#endif
    resumes++;
#endif
    stores_go()
  :: n == ASKS -> break
  od;
  host_is_done = true
}

proctype core() {
  byte before;
  byte points = 0;
  do
  :: points < 3 ->
    points++;
    if
    :: seen_pause ->
#ifdef PAUSE_BEFORE_RESUMES
      seen_pause;
      before = seen_resumes;
#else
      before = seen_resumes;
#ifndef WITHOUT_SECOND_LOOK
      if
      :: !seen_pause -> goto next
      :: else
      fi;
#endif
#endif
      core_was_paused = true;
#ifdef NEVER_PAUSED
      assert(false);
#endif
      do
      :: seen_resumes != before -> break
      :: atomic { seen_resumes == before && host_is_done && seen_resumes == resumes -> assert(false) } /* for ever */
      od
    :: !seen_pause
    fi;
next: skip
  :: points == 3 -> break
  od
}

init {
  atomic {
    run memory();
    run host();
    run core()
  }
}
