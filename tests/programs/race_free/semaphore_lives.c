// Semaphores that follow one another at one address: by sem_init again, and by opening another name.
// Shows: posts to the one that lived there before are no permits of the next; a sem_init that fails begins nothing.
// True:  what is read behind each wait was written before the only post that the wait can take.
// expect: none
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t *done;
static int result;

static void *work(void *unused) {
    result++;
    sem_post(done);
    return NULL;
}

static void round_of(sem_t *semaphore) {
    pthread_t thread;
    done = semaphore;
    pthread_create(&thread, NULL, work, NULL);
    sem_wait(done);
    result++;
    pthread_join(thread, NULL);
}

static sem_t *open_new(const char *purpose) {
    char name[48];
    snprintf(name, sizeof name, "/lives-%s-%010d", purpose, (int)getpid());
    sem_t *semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    sem_unlink(name);
    return semaphore;
}

int main(void) {
    sem_t own;
    for (int round = 0; round < 2; round++) {
        sem_init(&own, 0, 0);
        if (sem_init(&own, 0, (unsigned)INT_MAX + 1u) == 0)
            return 1;
        round_of(&own);
        sem_post(&own);
        sem_post(&own);
        sem_destroy(&own);
    }
    for (int round = 0; round < 2; round++) {
        sem_t *named = open_new(round == 0 ? "a" : "b");
        if (named == SEM_FAILED)
            return 1;
        round_of(named);
        sem_post(named);
        sem_post(named);
        sem_close(named);
    }
    return result == 8 ? 0 : 1;
}
