// A block so large that the system takes it back when it is freed.
// Shows: a crash in every run: nothing is mapped there any more.
// True:  main allocates the block, the thread frees it, main reads it.
// expect: failure crashed
// expect: use-after-free
// tells: at the address was heap block of 1000000 bytes allocated at main (freed_mapping.c:24), 500 bytes into it
// tells: it was freed before by thread 0 at end (freed_mapping.c:18)
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *block;

static void *end(void *unused) {
    pthread_mutex_lock(&lock);
    char *mine = block;
    pthread_mutex_unlock(&lock);
    free(mine);
    return unused;
}

int main(void) {
    pthread_t thread;
    block = malloc(1000000);
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    return block[500];
}
