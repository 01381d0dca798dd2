// Spinning on a volatile variable.
// Shows: a loop that only preemption between accesses ends; volatile orders nothing.
// True:  the flag's write meets the loop's read; the data is read by a thread that has seen the flag, so that pair never
//        stands side by side, but nothing orders it.
// expect: race 14 21 co-enabled
// expect: race 13 23 unordered
#include <pthread.h>

static volatile int flag;
static int data;

static void *publish(void *unused) {
    data = 42;
    flag = 1;
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, publish, NULL);
    while (!flag) {
    }
    int seen = data;
    pthread_join(thread, NULL);
    return seen == 42 ? 0 : 1;
}
