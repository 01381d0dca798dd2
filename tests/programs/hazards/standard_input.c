// Standard input read by a thread.
// Shows: input that is not a regular file, shared through stdio by two threads.
// True:  lines are read under a lock; their lengths add up.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static size_t bytes;

static void *work(void *unused) {
    char line[64];
    for (;;) {
        pthread_mutex_lock(&m);
        char *got = fgets(line, sizeof line, stdin);
        if (got != NULL)
            bytes += strlen(line);
        pthread_mutex_unlock(&m);
        if (got == NULL)
            return NULL;
    }
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return bytes == 19 ? 0 : 1;
}
