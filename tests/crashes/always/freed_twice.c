// crashes: a worker gives its buffer back itself, and once more with the job it belongs to
// story: it was freed before by
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct job {
    char *buffer;
};

static void end(struct job *job) {
    free(job->buffer);
}

static void *worker(void *argument) {
    struct job *job = argument;
    memset(job->buffer, 1, 64);
    free(job->buffer);
    end(job);
    return NULL;
}

int main(void) {
    pthread_t thread;
    struct job job = {malloc(64)};
    pthread_create(&thread, NULL, worker, &job);
    pthread_join(thread, NULL);
    return 0;
}
