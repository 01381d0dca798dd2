// crashes: main gives the mapping back before it lets the worker use it
// story: it was unmapped before by the main thread
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *table;

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    table[7] += 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    table = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, worker, NULL);
    munmap(table, 1 << 16);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
