// A signal sent to a thread that waits.
// Shows: pthread_kill, a handler that writes a sig_atomic_t of its own thread, and an interrupted sem_wait.
// True:  the flag is written and read by one thread; main's post ends the second wait.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static sem_t ready, go;
static volatile sig_atomic_t caught;

static void handle(int number) {
    caught = 1;
}

static void *work(void *unused) {
    sem_post(&ready);
    while (!caught)
        if (sem_wait(&go) == -1 && errno != EINTR)
            return (void *)1;
    sem_post(&ready);
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&ready, 0, 0);
    sem_init(&go, 0, 0);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    sem_wait(&ready);
    pthread_kill(thread, SIGUSR1);
    sem_post(&go);
    sem_wait(&ready);
    pthread_join(thread, &result);
    return result == NULL && caught ? 0 : 1;
}
