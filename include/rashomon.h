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

/* Calls of a library that was built without instrumentation (by its SONAME, such as "libfoo.so.1") are taken to use all its
 * static variables. Where some are named, they are taken to use those alone; no bytes: none of them matters. */
void rashomon_library_global(const char *library, const volatile void *address, uint64_t bytes) __attribute__((weak));

/* Calls of the library also use this memory, though no argument and no variable that is seen leads there: the address is kept in
 * a form of its own, say, or by the kernel. */
void rashomon_library_reaches(const char *library, const volatile void *address, uint64_t bytes) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* Does nothing where Rashomon is not there. */
#define RASHOMON_THREAD_ID(identity) ((void)(rashomon_thread_id ? (rashomon_thread_id(identity), 0) : 0))
#define RASHOMON_LIBRARY_GLOBAL(library, variable) \
    ((void)(rashomon_library_global ? (rashomon_library_global(library, &(variable), sizeof(variable)), 0) : 0))
#define RASHOMON_LIBRARY_WITHOUT_GLOBALS(library) \
    ((void)(rashomon_library_global ? (rashomon_library_global(library, 0, 0), 0) : 0))
#define RASHOMON_LIBRARY_REACHES(library, address, bytes) \
    ((void)(rashomon_library_reaches ? (rashomon_library_reaches(library, address, bytes), 0) : 0))

/* At file scope: these variables with static storage belong together, and what a thread does with them is to be one operation, in
 * a program that `rashomon cc --deep` compiles. `set` is a name, such as log; a variable may be called as in the report. */
#define RASHOMON_CORRELATED(set, ...) RASHOMON_CORRELATED_AT(__LINE__, set, __VA_ARGS__)
#define RASHOMON_CORRELATED_AT(line, set, ...) RASHOMON_CORRELATED_IN(line, set, __VA_ARGS__)
#define RASHOMON_CORRELATED_IN(line, set, ...) \
    static const char rashomon_set_##line[] __attribute__((used, section("rashomon_sets"))) = #set ": " #__VA_ARGS__

#endif
