// Data handed over through queues, semaphores and locks of the kernel.
// Shows: message queues of POSIX and of System V, sets of semaphores, locks of open files.
// True:  whoever takes the second time was let go by what the other thread did after its own access.
// expect: none
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

enum { POSIX, POSIX_TIMED, SYSTEM_V, ADDED, SET, ZERO, FLOCK, OPEN_FILE, CLOSED, CASES };

static int data[CASES];
static mqd_t queue;
static int messages, semaphores, file[2], closed[2];

struct message {
    long kind;
    char text;
};

static void change(int number, int by) {
    struct sembuf operation = {number, by, 0};
    semop(semaphores, &operation, 1);
}

static void change_lock(int descriptor, int command, int kind) {
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_len = 1};
    fcntl(descriptor, command, &lock);
}

static void give(int way) {
    struct message message = {1, 'a'};
    switch (way) {
    case POSIX: case POSIX_TIMED: mq_send(queue, "a", 1, 0); break;
    case SYSTEM_V: msgsnd(messages, &message, 1, 0); break;
    case ADDED: change(0, 1); break;
    case SET: semctl(semaphores, 1, SETVAL, 1); break;
    case ZERO: change(2, -1); break;
    case FLOCK: flock(file[0], LOCK_UN); break;
    case OPEN_FILE: change_lock(file[0], F_OFD_SETLK, F_UNLCK); break;
    case CLOSED: close(closed[0]); break;
    }
}

static void take(int way) {
    struct message message;
    struct timespec never = {time(NULL) + 1000, 0};
    char text;
    switch (way) {
    case POSIX: mq_receive(queue, &text, 1, NULL); break;
    case POSIX_TIMED: mq_timedreceive(queue, &text, 1, NULL, &never); break;
    case SYSTEM_V: msgrcv(messages, &message, 1, 0, 0); break;
    case ADDED: change(0, -1); break;
    case SET: change(1, -1); break;
    case ZERO: change(2, 0); break;
    case FLOCK: flock(file[1], LOCK_EX); break;
    case OPEN_FILE: change_lock(file[1], F_OFD_SETLKW, F_WRLCK); break;
    case CLOSED: flock(closed[1], LOCK_EX); break;
    }
}

static void *first(void *way) {
    data[(long)way] = 1;
    give((long)way);
    return NULL;
}

static void *second(void *way) {
    take((long)way);
    data[(long)way] += 1;
    return NULL;
}

int main(void) {
    char name[] = "/tmp/kernel_queues_XXXXXX", path[] = "/kernel_queues_XXXXXX";
    file[0] = mkstemp(name);
    file[1] = open(name, O_RDWR);
    closed[0] = open(name, O_RDWR);
    closed[1] = open(name, O_RDWR);
    // The same six characters.
    for (int i = 0; i < 6; i++)
        path[15 + i] = name[19 + i];
    unlink(name);
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 1};
    queue = mq_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    if (queue == (mqd_t)-1 || file[1] < 0 || closed[1] < 0)
        return 2;
    mq_unlink(path);
    messages = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    semaphores = semget(IPC_PRIVATE, 3, 0600 | IPC_CREAT);
    semctl(semaphores, 2, SETVAL, 1);
    int sum = 0;
    for (long way = 0; way < CASES; way++) {
        pthread_t threads[2];
        if (way == FLOCK)
            flock(file[0], LOCK_EX);
        if (way == OPEN_FILE) {
            flock(file[1], LOCK_UN);
            change_lock(file[0], F_OFD_SETLK, F_WRLCK);
        }
        if (way == CLOSED)
            flock(closed[0], LOCK_EX);
        pthread_create(&threads[0], NULL, second, (void *)way);
        pthread_create(&threads[1], NULL, first, (void *)way);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        sum += data[way];
    }
    msgctl(messages, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    return sum == 2 * CASES ? 0 : 1;
}
