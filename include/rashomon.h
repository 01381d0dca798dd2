/* What a program may tell Rashomon. The symbols are weak: a program that includes this also links and runs without Rashomon. */
#ifndef RASHOMON_H
#define RASHOMON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names the calling thread, the same in every execution: not 0, and no other thread's name. For programs that create their
 * threads in varying order: `rashomon provoke` then recognises a thread by this name, and not by which thread created it. */
void rashomon_thread_id(uint64_t identity) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* Does nothing where Rashomon is not there. */
#define RASHOMON_THREAD_ID(identity) ((void)(rashomon_thread_id ? (rashomon_thread_id(identity), 0) : 0))

#endif
