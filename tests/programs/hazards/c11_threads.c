// C11 threads.
// Shows: thrd_create, mtx_lock, cnd_wait, call_once and tss_create, which do not go through the pthread names.
// True:  the count is used with the mutex held.
// expect: none
#include <stddef.h>
#include <threads.h>

static mtx_t m;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static int running = 3, counter, initialised;

static void initialise(void) {
    initialised++;
}

static void at_end(void *argument) {
    mtx_lock(&m);
    counter += *(int *)argument;
    if (--running == 0)
        cnd_signal(&changed);
    mtx_unlock(&m);
}

static int work(void *argument) {
    call_once(&once, initialise);
    tss_set(key, argument);
    if (*(int *)argument == 2)
        thrd_exit(2);
    thrd_yield();
    return *(int *)argument;
}

int main(void) {
    thrd_t threads[3];
    int numbers[3] = {1, 2, 3}, results = 0;
    mtx_init(&m, mtx_plain);
    cnd_init(&changed);
    tss_create(&key, at_end);
    for (int i = 0; i < 3; i++)
        if (thrd_create(&threads[i], work, &numbers[i]) != thrd_success)
            return 2;
    mtx_lock(&m);
    while (running > 0)
        cnd_wait(&changed, &m);
    mtx_unlock(&m);
    for (int i = 0; i < 3; i++) {
        int result;
        thrd_join(threads[i], &result);
        results += result;
    }
    return counter == 6 && results == 6 && initialised == 1 ? 0 : 1;
}
