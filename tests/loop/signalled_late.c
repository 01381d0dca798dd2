// bug: the answer is signalled when the lock is free again: who waits for it may have seen it, and freed what is signalled
// shows: lifetime-race use-of-destroyed
#include <pthread.h>
#include <stdlib.h>

struct request {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int is_answered;
};

static void *answer(void *argument) {
    struct request *request = argument;
    pthread_mutex_lock(&request->lock);
    request->is_answered = 1;
#ifdef FIXED
    pthread_cond_signal(&request->answered);
#endif
    pthread_mutex_unlock(&request->lock);
#ifndef FIXED
    pthread_cond_signal(&request->answered);
#endif
    return NULL;
}

int main(void) {
    struct request *request = calloc(1, sizeof *request);
    pthread_t thread;
    pthread_mutex_init(&request->lock, NULL);
    pthread_cond_init(&request->answered, NULL);
    pthread_create(&thread, NULL, answer, request);
    pthread_mutex_lock(&request->lock);
    while (!request->is_answered) {
        pthread_cond_wait(&request->answered, &request->lock);
    }
    pthread_mutex_unlock(&request->lock);
    pthread_cond_destroy(&request->answered);
    pthread_mutex_destroy(&request->lock);
    free(request);
    pthread_join(thread, NULL);
    return 0;
}
