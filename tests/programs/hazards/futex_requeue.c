// Waiters moved from one futex to another.
// Shows: FUTEX_CMP_REQUEUE, a comparison that fails, and waits that time out, through syscall().
// True:  neither word changes, so each waiter waits until main has moved it and wakes it; `moved` is atomic. A kernel may wake a
//        moved waiter by itself, which then waits on the first word again: it is moved once more.
// expect: none
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3 };

static atomic_int first, second, moved;

static long futex(atomic_int *word, int operation, int value, const void *time_or_count, atomic_int *other, int compared) {
    return syscall(SYS_futex, word, operation, value, time_or_count, other, compared);
}

static void *wait_on_first(void *unused) {
    while (futex(&first, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) != 0)
        if (errno != EINTR)
            return (void *)1;
    return atomic_load(&moved) >= THREADS ? NULL : (void *)2;
}

static long move_all(const void *all) {
    return futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 0, all, &second, 0);
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, wait_on_first, NULL);
    const void *all = (void *)(long)THREADS;
    if (futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 0, all, &second, 1) != -1 || errno != EAGAIN)
        return 1;
    while (atomic_load(&moved) < THREADS) {
        long more = move_all(all);
        if (more < 0)
            return 2;
        atomic_fetch_add(&moved, (int)more);
        sched_yield();
    }
    for (long woken = 0; woken < THREADS; move_all(all)) {
        long more = futex(&second, FUTEX_WAKE_PRIVATE, THREADS, NULL, NULL, 0);
        woken += more;
        if (more < 0 || woken > THREADS)
            return 3;
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (result != NULL)
            return 5;
    }
    struct timespec soon = {0, 3000000};
    if (futex(&first, FUTEX_WAIT_PRIVATE, 0, &soon, NULL, 0) != -1 || errno != ETIMEDOUT)
        return 6;
    if (futex(&first, FUTEX_WAIT_PRIVATE, 1, &soon, NULL, 0) != -1 || errno != EAGAIN)
        return 7;
    return 0;
}
