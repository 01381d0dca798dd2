// A callback that was registered with the library is called when another thread says so.
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void on_done(void (*callback)(void *), void *argument);
int fire(void);

#ifdef LIBRARY
static void (*registered)(void *);
static void *registered_argument;
void on_done(void (*callback)(void *), void *argument) {
    registered_argument = argument;
    __atomic_store_n(&registered, callback, __ATOMIC_RELEASE);
}
int fire(void) {
    void (*callback)(void *) = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    if (callback) callback(registered_argument);
    return callback != 0;
}
#else
int *data;

static void look(void *argument) {
    *(int *)argument += 1; // @2
}

static void *first(void *unused) {
    *data = 1; // @1
    on_done(look, data);
    return unused;
}

static void *second(void *unused) {
    while (!fire()) sched_yield();
    return unused;
}

int main(void) {
    pthread_t one, other;
    data = malloc(sizeof *data);
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
