/* How a core says what it waits for (include/hangscope/target/wait.h), and how a reader finds that two wait
 * at the same time, for spin. models/check runs it, and its mutants.
 *
 * A core's wait n: a fence; the words behind the sequence; a fence; the sequence, odd. Its end: the sequence,
 * even, and no fence. The words behind the sequence are one here: what can happen to one can happen to another.
 *
 * The reader is on another machine's side of memory: it looks at the sequence of each core, then at the words
 * behind it, and later at all sequences again. Those with the same odd number in both looks count, with the
 * words of the first look. Of two that count, each was in the midst of its wait at one and the same instant: a
 * cycle of waits is one.
 *
 * Weak memory, as in ring.pml: a core sees its own stores at once (`sequence`, `word`), the reader sees memory
 * (`seen_...`), into which they go later in any order, those to one word in theirs; a fence lets all earlier ones
 * go first. That a store that is followed by another to the same word is seen late is the same as a core that is slow,
 * and that it is never seen is among the interleavings. Between its looks the reader takes longer than any store is on its
 * way: a watcher's looks are milliseconds apart. LOOKS_RIGHT_BEHIND_EACH_OTHER is a reader that does not: WORDS_ONLY asks
 * no more of it than that the words are those of the wait; that is what the fence behind the end is for. */

#ifndef WAITS
#define WAITS 2 /* of each core */
#endif

byte sequence[2]; /* what the core sees */
byte word[2];
byte seen_sequence[2]; /* what the reader sees */
byte seen_word[2];

/* Which waits were at the same instant: of core 0 and core 1; no part of the protocol. */
bool met[16];

inline stores_go(who) {
  d_step {
    seen_sequence[who] = sequence[who];
    seen_word[who] = word[who]
  }
}

proctype core(byte me) {
  byte n = 0;
  do
  :: n < WAITS ->
    n++;
#ifndef WITHOUT_FENCE_BEHIND_THE_END
    stores_go(me);
#endif
    atomic {
#ifndef MUTANT
      assert(word[me] == seen_word[me]);
#endif
      word[me] = n
    }
#ifndef WITHOUT_FENCE_BEFORE_THE_BEGIN
    stores_go(me);
#endif
    atomic {
      sequence[me] = 2 * n - 1;
      met[(sequence[0] + 1) / 2 * 4 + (sequence[1] + 1) / 2] =
          met[(sequence[0] + 1) / 2 * 4 + (sequence[1] + 1) / 2] || (sequence[0] % 2 == 1 && sequence[1] % 2 == 1)
    }
    sequence[me] = 2 * n
  :: n == WAITS -> break
  od
}

/* Lets stores become visible, in any order. */
proctype memory() {
end:
  do
  :: atomic { seen_sequence[0] != sequence[0] -> seen_sequence[0] = sequence[0] }
  :: atomic { seen_word[0] != word[0] -> seen_word[0] = word[0] }
  :: atomic { seen_sequence[1] != sequence[1] -> seen_sequence[1] = sequence[1] }
  :: atomic { seen_word[1] != word[1] -> seen_word[1] = word[1] }
  od
}

#define ALL_STORES_WENT(who) (seen_sequence[who] == sequence[who] && seen_word[who] == word[who])

inline first_look(who) {
#ifdef WORDS_BEFORE_THE_SEQUENCE
  what[who] = seen_word[who];
  first[who] = seen_sequence[who]
#else
  first[who] = seen_sequence[who];
  what[who] = seen_word[who]
#endif
}

inline second_look(who) {
  again[who] = seen_sequence[who];
#ifdef WORDS_OF_THE_SECOND_LOOK
  what[who] = seen_word[who]
#endif
}

proctype reader() {
  byte first[2];
  byte again[2];
  byte what[2];
  first_look(0);
  first_look(1);
#ifndef LOOKS_RIGHT_BEHIND_EACH_OTHER
  ALL_STORES_WENT(0);
  ALL_STORES_WENT(1);
#endif
#ifdef WITHOUT_SECOND_LOOK
  again[0] = first[0];
  again[1] = first[1];
#else
  second_look(0);
  second_look(1);
#endif
  atomic {
    if
    :: first[0] == again[0] && first[0] % 2 == 1 -> assert(what[0] == (first[0] + 1) / 2)
    :: else
    fi;
    if
    :: first[1] == again[1] && first[1] % 2 == 1 -> assert(what[1] == (first[1] + 1) / 2)
    :: else
    fi;
#ifndef WORDS_ONLY
    if
    :: first[0] == again[0] && first[1] == again[1] && first[0] % 2 == 1 && first[1] % 2 == 1 ->
#ifdef NONE_MEET
      assert(false);
#endif
      assert(met[(first[0] + 1) / 2 * 4 + (first[1] + 1) / 2])
    :: else
    fi;
#endif
    first[0] = 0; first[1] = 0; again[0] = 0; again[1] = 0; what[0] = 0; what[1] = 0
  }
}

init {
  atomic {
    run memory();
    run reader();
    run core(0);
    run core(1)
  }
}
