/* What a program may tell Rashomon. The symbols are weak: a program that includes this links and runs without Rashomon as well. */
#ifndef RASHOMON_H
#define RASHOMON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the calling thread is called, in this and in every other execution; not 0, and no other thread's. For programs whose threads are created in an
 * order that is not always the same: `rashomon provoke` then finds a thread by its name, and not by who created it as which of its threads. */
void rashomon_thread_id(uint64_t identity) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* Does nothing where Rashomon is not there. */
#define RASHOMON_THREAD_ID(identity) ((void)(rashomon_thread_id ? (rashomon_thread_id(identity), 0) : 0))

#endif
