// What is written after the message was sent.
// Shows: hand-over through the kernel orders what was before it, and nothing behind it.
// True:  one unordered pair for each way.
// expect: race 41 54 co-enabled
// expect: race 44 57 co-enabled
// expect: race 47 60 co-enabled
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

static int by_queue, by_semaphore, by_signal;
static mqd_t queue;
static int semaphores;
static pthread_t taker;

static void change(int by) {
    struct sembuf operation = {0, by, 0};
    semop(semaphores, &operation, 1);
}

static void take_signal(void) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigwait(&set, &signal);
}

static void *first(void *unused) {
    mq_send(queue, "a", 1, 0);


    by_queue = 1;

    change(1);
    by_semaphore = 1;

    pthread_kill(taker, SIGUSR1);
    by_signal = 1;
    return unused;
}

static void *second(void *unused) {
    char text;
    mq_receive(queue, &text, 1, NULL);
    by_queue += 1;

    change(-1);
    by_semaphore += 1;

    take_signal();
    by_signal += 1;
    return unused;
}

int main(void) {
    char name[] = "/tmp/after_the_message_XXXXXX", path[] = "/after_the_message_XXXXXX";
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    close(mkstemp(name));
    for (int i = 0; i < 6; i++)
        path[19 + i] = name[23 + i];
    unlink(name);
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 1};
    queue = mq_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    if (queue == (mqd_t)-1)
        return 2;
    mq_unlink(path);
    semaphores = semget(IPC_PRIVATE, 1, 0600 | IPC_CREAT);
    pthread_t other;
    pthread_create(&taker, NULL, second, NULL);
    pthread_create(&other, NULL, first, NULL);
    pthread_join(other, NULL);
    pthread_join(taker, NULL);
    semctl(semaphores, 0, IPC_RMID);
    return 0;
}
