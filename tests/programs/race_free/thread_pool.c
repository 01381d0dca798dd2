// A pool of threads.
// Shows: heap objects that wander from the submitter to a worker and back.
// True:  a task is used by main before it is queued, by one worker until it is marked done, and by main again after that.
// expect: none
#include <pthread.h>
#include <stdlib.h>

struct task {
    struct task *next;
    int input, output;
};

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_arrived = PTHREAD_COND_INITIALIZER;
static pthread_cond_t work_done = PTHREAD_COND_INITIALIZER;
static struct task *queue, *finished;
static int done, closing;

static void *serve(void *unused) {
    pthread_mutex_lock(&m);
    for (;;) {
        while (queue == NULL && !closing)
            pthread_cond_wait(&work_arrived, &m);
        if (queue == NULL)
            break;
        struct task *task = queue;
        queue = task->next;
        pthread_mutex_unlock(&m);
        task->output = task->input * task->input;
        pthread_mutex_lock(&m);
        task->next = finished;
        finished = task;
        done++;
        pthread_cond_signal(&work_done);
    }
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    enum { WORKERS = 3, TASKS = 20 };
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, serve, NULL);
    for (int i = 1; i <= TASKS; i++) {
        struct task *task = malloc(sizeof *task);
        task->input = i;
        pthread_mutex_lock(&m);
        task->next = queue;
        queue = task;
        pthread_cond_signal(&work_arrived);
        pthread_mutex_unlock(&m);
    }
    pthread_mutex_lock(&m);
    while (done < TASKS)
        pthread_cond_wait(&work_done, &m);
    closing = 1;
    pthread_cond_broadcast(&work_arrived);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    long sum = 0;
    while (finished) {
        struct task *task = finished;
        finished = task->next;
        sum += task->output;
        free(task);
    }
    return sum == TASKS * (TASKS + 1) * (2 * TASKS + 1) / 6 ? 0 : 1;
}
