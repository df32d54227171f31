/* The recording protocol of include/hangscope/abi/record.h, for spin: writers of one core that interrupt
 * each other in any order, and a reader on another core. models/check runs it, and its mutants.
 *
 * Who goes on when is free: a handler that runs to its end inside of the interrupted writer is among
 * the interleavings, and so is a task that sleeps while others lap it. Nothing in a writer waits or
 * repeats: it is straight-line code, and spin finds no state in which one cannot go on.
 *
 * Weak memory. Writers of one core see each other's stores at once (`mark`, `word`); the reader sees memory
 * (`seen_...`), into which the stores go later, in any order, one at a time (the
 * process `memory`). What makes them go:
 *   - an atomic instruction acts on memory itself, behind earlier stores to the same word; with .aq
 *     all that comes later comes behind it. Without .aq it is as late as any other store.
 *     On Arm acquire orders the load of such an instruction only: a fence behind it (FENCE_BEHIND_TAKE).
 *   - a fence lets all earlier stores go before any later one. A core that waits there is a core
 *     that is slow, so the model lets them go at the fence.
 * At most one store to a word is on its way at any time, which is asserted: so two copies of memory
 * are all the orders there are.
 *
 * A record has one word here, beside its mark. That is enough: no writer or reader decides anything by
 * a word, so what can happen to one of several can happen to this one.
 *
 * A record's number and its mark: n counts from 0; a mark keeps n % PERIOD, as the real one keeps 20
 * bits. WRAP makes that so few that marks come again. The protocol then assumes what SLEEP says: a
 * writer is not interrupted, or preempted, while more than SLEEP records are begun, with
 * PERIOD > 2 * SLEEP + CAPACITY. (Of 20 bits and 65536 records: 491519. A task that sleeps
 * longer in the midst of a record may have it returned under a later number; it is never mixed.) */

#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef WRITERS
#define WRITERS 3
#endif
#ifndef EACH
#define EACH 2 /* records of each writer */
#endif
#define RECORDS (WRITERS * EACH)
#define PERIOD 8
#define SLEEP 2 /* with WRAP */

#define NEVER 0
#define TAKEN 1
#ifdef WRAP
#define MARK(n) (2 + (n) % PERIOD)
#else
#define MARK(n) (2 + (n))
#endif
#define SLOT(n) ((n) % CAPACITY)

byte head;                /* amoadd acts on memory */
byte seen_head;           /* the same, but in a mutant */
byte mark[CAPACITY];      /* what the core sees */
byte word[CAPACITY];
byte seen_mark[CAPACITY]; /* what the reader sees */
byte seen_word[CAPACITY];

/* What the writers did, for the account; no part of the protocol. */
bool refused[RECORDS];
byte finished;            /* writers */
byte started;             /* writers: they are all alike, so they start in the order of their numbers */

#ifdef WRAP
#define NOBODY 255
byte holding[WRITERS];    /* number of the record that a writer is in the midst of */
#define IS_AWAKE(who) (holding[who] == NOBODY || head <= holding[who] + SLEEP)
#define ALL_ARE_AWAKE (IS_AWAKE(0) && IS_AWAKE(1))
#else
#define ALL_ARE_AWAKE true
#endif

inline all_stores_go() {
  d_step {
    seen_head = head;
    seen_mark[0] = mark[0];
    seen_word[0] = word[0];
    seen_mark[1] = mark[1];
    seen_word[1] = word[1];
#if CAPACITY > 2
    seen_mark[2] = mark[2];
    seen_word[2] = word[2];
    seen_mark[3] = mark[3];
    seen_word[3] = word[3];
#endif
  }
}

inline is_done() {
  n = 0;
  left--;
#ifdef WRAP
  holding[me] = NOBODY;
#endif
  finished = finished + (left == 0)
}

proctype writer(byte me) {
  byte n;
  byte left = EACH;
  do
  :: atomic {
       /* 1. amoadd.aq on the head. The conditions are assumptions, not locks. */
       left > 0 && me <= started && ALL_ARE_AWAKE ->
       started = (me == started -> started + 1 : started);
       n = head;
       head = head + 1;
#ifndef RESERVE_WITHOUT_ACQUIRE
       seen_head = head;
#endif
#ifdef WRAP
       holding[me] = n
#endif
     }
     /* 2. amoswap.aq on the mark. */
     atomic {
#if !defined(WITHOUT_NESTING) && !defined(WITHOUT_TAKE)
       if
       :: mark[SLOT(n)] == TAKEN ->
         refused[n] = true;
         is_done();
         goto next
       :: else
       fi;
       mark[SLOT(n)] = TAKEN;
#ifndef TAKE_WITHOUT_ACQUIRE
       seen_mark[SLOT(n)] = TAKEN
#endif
#else
       skip
#endif
     }
#ifdef FENCE_BEHIND_TAKE
     all_stores_go();
#endif
     /* 3. time and parameters: a word that says whose it is. */
     atomic {
#ifndef MUTANT
       assert(word[SLOT(n)] == seen_word[SLOT(n)]);
#endif
       word[SLOT(n)] = n + 1
     }
     /* 4. fence w,w; the mark. */
#ifndef WITHOUT_FENCE
     all_stores_go();
#endif
     atomic {
#ifndef MUTANT
       assert(mark[SLOT(n)] == seen_mark[SLOT(n)]);
#endif
       mark[SLOT(n)] = MARK(n);
       is_done()
     }
next: skip
  :: left == 0 -> break
  od
}

/* Lets stores become visible, in any order. */
proctype memory() {
end:
  do
  :: atomic { seen_head != head -> seen_head = head }
  :: atomic { seen_mark[0] != mark[0] -> seen_mark[0] = mark[0] }
  :: atomic { seen_word[0] != word[0] -> seen_word[0] = word[0] }
  :: atomic { seen_mark[1] != mark[1] -> seen_mark[1] = mark[1] }
  :: atomic { seen_word[1] != word[1] -> seen_word[1] = word[1] }
#if CAPACITY > 2
  :: atomic { seen_mark[2] != mark[2] -> seen_mark[2] = mark[2] }
  :: atomic { seen_word[2] != word[2] -> seen_word[2] = word[2] }
  :: atomic { seen_mark[3] != mark[3] -> seen_mark[3] = mark[3] }
  :: atomic { seen_word[3] != word[3] -> seen_word[3] = word[3] }
#endif
  od
}

/* Asks for one record, any that was begun, at any time. Its loads: the first look at the mark (acquire),
 * then the word, then (fence) the mark and the head in either order. */
proctype reader() {
  byte n;
  byte first;
  byte again;
  byte read;
  byte begun;
  atomic {
    seen_head > 0;
    do
    :: n + 1 < seen_head -> n++
    :: break
    od;
#ifdef WRAP
    /* Numbers whose marks come twice; the others are as without WRAP. */
    if
    :: n < RECORDS - PERIOD || n >= PERIOD
    :: else -> goto declined
    fi;
#endif
#ifdef READ_WITHOUT_ACQUIRE
    read = seen_word[SLOT(n)]
  };
  atomic {
#endif
    first = seen_mark[SLOT(n)];
    if
    :: first == MARK(n)
    :: else -> goto declined
    fi
  };
#ifdef READ_WITHOUT_FENCE
  atomic { again = seen_mark[SLOT(n)]; begun = seen_head };
#endif
#ifndef READ_WITHOUT_ACQUIRE
  read = seen_word[SLOT(n)];
#endif
#ifndef READ_WITHOUT_FENCE
  if
  :: again = seen_mark[SLOT(n)]; begun = seen_head
  :: begun = seen_head; again = seen_mark[SLOT(n)]
  fi;
#endif
  atomic {
#ifdef WITHOUT_LOOK_AT_MARK
    again = first;
#endif
#ifdef WITHOUT_LOOK_AT_HEAD
    begun = n;
#endif
    if
    :: again == first && begun <= n + CAPACITY ->
      assert(read == n + 1); /* no mixed record, and none under another's number */
      assert(!refused[n])
    :: else
    fi;
declined:
    n = 0; first = 0; again = 0; read = 0; begun = 0
  }
}

/* When all is still: each record that was emitted has its place in the account. */
proctype account() {
  byte n;
  byte older;
  byte returned;
  byte overwritten;
  byte torn;
  byte refusals;
  (finished == WRITERS);
  all_stores_go();
  d_step {
    assert(head == RECORDS);
    for (n : 0 .. RECORDS - 1) {
      refusals = refusals + refused[n];
      if
      :: seen_mark[SLOT(n)] == MARK(n) && seen_head <= n + CAPACITY ->
        assert(seen_word[SLOT(n)] == n + 1);
        assert(!refused[n]);
        returned++
      :: else ->
        if
        :: refused[n]
        :: !refused[n] && n + CAPACITY < RECORDS -> overwritten++
        :: else ->
          /* An older one whose writer slept is in its place, whole. */
          older = seen_word[SLOT(n)] - 1;
          assert(older < n && SLOT(older) == SLOT(n) && !refused[older]);
          assert(seen_mark[SLOT(n)] == MARK(older));
          torn++
        fi
      fi
    }
    assert(returned + overwritten + torn + refusals == RECORDS);
#ifdef NONE_IS_TORN
    assert(torn == 0);
#endif
#ifdef NONE_IS_REFUSED
    assert(refusals == 0);
#endif
    n = 0; older = 0; returned = 0; overwritten = 0; torn = 0; refusals = 0
  }
}

init {
  atomic {
#ifdef WRAP
    holding[0] = NOBODY;
    holding[1] = NOBODY;
#endif
    run memory();
    run reader();
    run account();
    run writer(0);
#if WRITERS > 1
    run writer(1);
#endif
#if WRITERS > 2
    run writer(2)
#endif
  }
}
