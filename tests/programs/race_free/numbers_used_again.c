// Descriptors whose numbers were used before, made by calls that the runtime does not see.
// Shows: a number is no file: what the kernel gave out anew after a close is another one.
// True:  nothing. Each thread closes what it opened, and uses nothing else.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *seen(void *unused) {
    for (int i = 0; i < 2; i++) {
        int file = open("/dev/null", O_RDWR);
        if (write(file, "a", 1) != 1) abort();
        close(file);
    }
    return unused;
}

static void *unseen(void *unused) {
    int files[] = {memfd_create("b", 0), posix_openpt(O_RDWR | O_NOCTTY), (int)syscall(SYS_memfd_create, "c", 0)};
    for (int i = 0; i < 3; i++) {
        if (files[i] < 0 || write(files[i], "b", 1) != 1) abort();
        close(files[i]);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, seen, NULL);
    pthread_create(&threads[1], NULL, unseen, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
