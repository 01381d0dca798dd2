// Cancellation of a thread that blocks in the kernel.
// Shows: a read that ends by forced unwinding.
// True:  nobody writes into the pipe.
// expect: none
#include <pthread.h>
#include <unistd.h>

static int ends[2];

static void *work(void *unused) {
    char byte;
    return read(ends[0], &byte, 1) == 1 ? NULL : (void *)1;
}

int main(void) {
    if (pipe(ends) != 0)
        return 2;
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED ? 0 : 1;
}
