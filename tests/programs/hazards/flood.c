// 200 MB on standard output.
// Shows: more output than anyone may keep in memory.
// True:  two threads write 100 blocks of 1 MiB each under a lock.
// expect: none
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, BLOCKS = 100 };
static char block[BLOCK];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused) {
    for (int i = 0; i < BLOCKS; i++) {
        pthread_mutex_lock(&m);
        for (ssize_t done = 0; done < BLOCK;) {
            ssize_t put = write(1, block + done, BLOCK - (size_t)done);
            if (put < 0)
                _exit(2);
            done += put;
        }
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    memset(block, 'x', sizeof block);
    for (int i = 79; i < BLOCK; i += 80)
        block[i] = '\n';
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
