/* Parking and waking of engine/run/wait.cc and rank_control.h, on a machine with store buffers.
 *
 * One rank publishes and another waits for it; with WITH_ABORT, a third thread ends the wait. The
 * publisher's processor has a buffer of one store (TSO: a store may become visible after later
 * loads of its processor). Each compile-time switch leaves out one part of the protocol:
 *   NO_BARRIER   no full barrier between publishing and looking (strict: the read-modify-write;
 *                otherwise: the membarrier of the rank that parks)
 *   NO_RECHECK   the kernel does not compare the bell with the value that the rank saw
 *   ABORT_APART  "aborted" is a flag beside the bell, looked at before the bell is read
 * MEMBARRIER chooses the mode: publishers store and load plainly, and a rank that parks runs a
 * barrier on both processors.
 *
 * The claim, checked by explorer_test.cc with `pan -a -f` (weak fairness): the waiting rank comes
 * back.
 */

#define EMPTY 255

byte word = 0;    /* the progress counter of the owner: 1 when it has published */
byte parked = 0;  /* how many are parked on a word of the owner */
byte bell = 0;    /* bit 0: aborted; other bits: the number of rings */
bool aborted_flag = false;
bool asleep = false;
bool returned = false;  /* the waiting rank came back */
bool owner_done = false;

/* The owner's store buffer, for `word`. The waiting rank needs none, because its count is a
 * read-modify-write. */
byte buffer = EMPTY;

inline flush() { if :: buffer != EMPTY -> word = buffer; buffer = EMPTY :: else fi }

/* The processor writes its buffer back at any time. */
proctype owner_buffer() {
end:
  do
  :: atomic { buffer != EMPTY -> word = buffer; buffer = EMPTY }
  od
}

proctype owner() {
  byte seen;
  atomic { flush(); buffer = 1 }; /* publish: a plain store */
#if !defined(MEMBARRIER) && !defined(NO_BARRIER)
  atomic { flush(); seen = parked }; /* a read-modify-write drains the buffer */
#else
  seen = parked; /* a plain load may overtake the store */
#endif
  if
  :: seen > 0 ->
    atomic { flush(); bell = bell + 2 }; /* ring */
    atomic { asleep = false }            /* futex wake */
  :: else
  fi;
  owner_done = true
}

proctype waiter() {
  byte rung;
  if
  :: word == 1 -> goto done
  :: word != 1
  fi;
  atomic { parked = parked + 1 };
#if defined(MEMBARRIER) && !defined(NO_BARRIER)
  atomic { flush() }; /* membarrier: drains the owner's buffer too */
#endif
  do
  :: true ->
#ifdef ABORT_APART
    if :: aborted_flag -> break :: !aborted_flag fi;
#endif
    rung = bell;
    if :: word == 1 -> break :: word != 1 fi;
    if :: (rung & 1) -> break :: !(rung & 1) fi;
#ifdef NO_RECHECK
    asleep = true;
#else
    atomic { if :: bell == rung -> asleep = true :: bell != rung fi };
#endif
    !asleep
  od;
  parked = parked - 1;
done:
  returned = true
}

#ifdef WITH_ABORT
/* A third thread aborts, and no rank publishes. */
proctype aborter() {
#ifdef ABORT_APART
  aborted_flag = true;
#else
  atomic { bell = bell | 1 };
#endif
  atomic { asleep = false }
}
#endif

init {
  atomic {
    run waiter();
#ifdef WITH_ABORT
    run aborter();
#else
    run owner_buffer();
    run owner()
#endif
  }
}

ltl comes_back { <> returned }
