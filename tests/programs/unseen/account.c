// The Account program (Figure 4.6): the main thread asks a library whether the others are alive, and joins nobody.
// race: 5 8
// ordered: 4 16
// ordered: 7 17
// ordered: 5 19
// ordered: 8 19
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct worker;
struct worker *start(void *(*routine)(void *), void *argument);
int is_alive(struct worker *worker);
void nap(void);

#ifdef LIBRARY
#include <unistd.h>
struct worker {
    pthread_t thread;
    void *(*routine)(void *);
    void *argument;
    int alive;
};
static void *run(void *argument) {
    struct worker *worker = argument;
    worker->routine(worker->argument);
    __atomic_store_n(&worker->alive, 0, __ATOMIC_RELEASE);
    return 0;
}
struct worker *start(void *(*routine)(void *), void *argument) {
    struct worker *worker = malloc(sizeof *worker);
    *worker = (struct worker){0, routine, argument, 1};
    pthread_create(&worker->thread, 0, run, worker);
    pthread_detach(worker->thread);
    return worker;
}
int is_alive(struct worker *worker) {
    return __atomic_load_n(&worker->alive, __ATOMIC_ACQUIRE);
}
void nap(void) {
    usleep(1000);
}
#else
struct account {
    int balance;
};
int total;

static void *deposit_one(void *argument) {
    struct account *account = argument;
    account->balance += 100; // @4
    total += 100; // @5
    return 0;
}

static void *deposit_two(void *argument) {
    struct account *account = argument;
    account->balance += 200; // @7
    total += 200; // @8
    return 0;
}

int main(void) {
    struct account *accounts[2];
    struct worker *workers[2];
    for (int at = 0; at < 2; at++) {
        accounts[at] = malloc(sizeof **accounts);
        accounts[at]->balance = 0;
    }
    workers[0] = start(deposit_one, accounts[0]);
    workers[1] = start(deposit_two, accounts[1]);
    for (int at = 0; at < 2; at++) {
        if (is_alive(workers[at])) {
            at = -1;
            nap();
        }
    }
    int sum = accounts[0]->balance; // @16
    sum += accounts[1]->balance; // @17
    return sum == total ? 0 : 1; // @19
}
#endif
