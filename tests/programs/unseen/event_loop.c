// Callbacks are posted to an event loop of the library, which runs in a thread of its own.
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct loop;
struct loop *loop_new(void);
void loop_post(struct loop *loop, void (*callback)(void *), void *argument);
void loop_run(struct loop *loop);

#ifdef LIBRARY
struct loop {
    int filled;
    void (*callback)(void *);
    void *argument;
};
struct loop *loop_new(void) {
    return calloc(1, sizeof(struct loop));
}
void loop_post(struct loop *loop, void (*callback)(void *), void *argument) {
    loop->callback = callback;
    loop->argument = argument;
    __atomic_store_n(&loop->filled, 1, __ATOMIC_RELEASE);
}
void loop_run(struct loop *loop) {
    while (!__atomic_load_n(&loop->filled, __ATOMIC_ACQUIRE)) sched_yield();
    loop->callback(loop->argument);
}
#else
static struct loop *loop;
int data, other;

static void add_one(void *argument) {
    *(int *)argument += 1; // @2
}

static void *first(void *unused) {
    data = 1; // @1
    loop_post(loop, add_one, &data);
    other = 1; // @3
    return unused;
}

static void *second(void *unused) {
    other = 2; // @4
    loop_run(loop);
    return unused;
}

int main(void) {
    pthread_t one, other;
    loop = loop_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
