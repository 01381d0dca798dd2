// crashes: a worker walks a list that nobody has made
// story: is global first (8 bytes) at worker (null_list.c:17)
#include <pthread.h>
#include <stdio.h>

struct item {
    long weight;
    struct item *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct item *first;
static long sum;

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    struct item *item = first;
    do {
        sum += item->weight;
        item = item->next;
    } while (item);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    printf("%ld\n", sum);
    return 0;
}
