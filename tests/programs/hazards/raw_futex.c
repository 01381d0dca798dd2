// futex through syscall().
// Shows: blocking and waking that go past the pthread functions.
// True:  the waiter leaves its loop after an acquire load of the value that was stored with release.
// expect: none
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int word;
static int data;

static void *wake(void *unused) {
    data = 42;
    atomic_store_explicit(&word, 1, memory_order_release);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, wake, NULL);
    while (atomic_load_explicit(&word, memory_order_acquire) == 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    int seen = data;
    pthread_join(thread, NULL);
    return seen == 42 ? 0 : 1;
}
