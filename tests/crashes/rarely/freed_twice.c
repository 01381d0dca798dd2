// crashes: whoever of two comes last frees the buffer, and both may think that they do
// story: it was freed before by
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int users = 2;
static char *buffer;

static void done(void) {
    atomic_fetch_sub(&users, 1);
    if (atomic_load(&users) == 0) {
        free(buffer);
    }
}

static void *user(void *unused) {
    done();
    return unused;
}

int main(void) {
    pthread_t thread;
    buffer = malloc(4000);
    pthread_create(&thread, NULL, user, NULL);
    done();
    pthread_join(thread, NULL);
    return 0;
}
