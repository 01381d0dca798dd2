// Signals that end waits, or do not.
// Shows: EINTR from read and poll, a read that SA_RESTART continues, pause, sigsuspend, sigwaitinfo, sigtimedwait and SIGCHLD.
// True:  `caught` is atomic; SIGALRM and SIGCHLD are blocked in every thread but main; a signal that might come too early is
//        sent again.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];
static sem_t ready, finish;
static atomic_int caught;

static void handle(int number) {
    atomic_fetch_add(&caught, 1);
}

static void *read_one(void *unused) {
    char byte;
    sem_post(&ready);
    ssize_t length = read(ends[0], &byte, 1);
    return (void *)(length < 0 ? -(long)errno : (long)length);
}

static void *poll_one(void *unused) {
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    sem_post(&ready);
    int count = poll(&one, 1, -1);
    return (void *)(count < 0 ? -(long)errno : (long)count);
}

static void *stay(void *unused) {
    while (sem_wait(&finish) != 0)
        ;
    return NULL;
}

static void handle_with(int number, int flags) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

static long interrupted(void *(*work)(void *)) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    sem_wait(&ready);
    do {
        pthread_kill(thread, SIGUSR1);
        usleep(5000);
    } while (pthread_tryjoin_np(thread, &result) != 0);
    return (long)result;
}

static long restarted(void) {
    pthread_t thread;
    void *result;
    int before = atomic_load(&caught);
    pthread_create(&thread, NULL, read_one, NULL);
    sem_wait(&ready);
    pthread_kill(thread, SIGUSR1);
    while (atomic_load(&caught) == before)
        usleep(1000);
    if (write(ends[1], "x", 1) != 1)
        return 0;
    pthread_join(thread, &result);
    return (long)result;
}

static int waits_for_signals(void) {
    sigset_t both, alarm_only, old;
    sigemptyset(&both);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGCHLD);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    struct timespec none = {0, 0}, soon = {0, 1000000};

    pthread_t thread;
    pthread_sigmask(SIG_BLOCK, &both, &old);
    pthread_create(&thread, NULL, stay, NULL);
    handle_with(SIGALRM, 0);
    handle_with(SIGCHLD, 0);

    int before = atomic_load(&caught);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    ualarm(20000, 20000);
    if (pause() != -1 || errno != EINTR || atomic_load(&caught) == before)
        return 1;
    pthread_sigmask(SIG_BLOCK, &both, NULL);
    ualarm(0, 0);
    sigtimedwait(&alarm_only, NULL, &none);

    before = atomic_load(&caught);
    ualarm(20000, 0);
    if (sigsuspend(&old) != -1 || errno != EINTR || atomic_load(&caught) != before + 1)
        return 2;
    ualarm(20000, 0);
    if (sigwaitinfo(&alarm_only, NULL) != SIGALRM || atomic_load(&caught) != before + 1)
        return 3;
    if (sigtimedwait(&alarm_only, NULL, &soon) != -1 || errno != EAGAIN)
        return 4;

    pid_t child = fork();
    if (child == 0)
        _exit(3);
    while (atomic_load(&caught) != before + 2)
        sigsuspend(&old);
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
        return 5;
    sem_post(&finish);
    pthread_join(thread, NULL);
    return 0;
}

int main(void) {
    if (pipe(ends) != 0)
        return 10;
    sem_init(&ready, 0, 0);
    sem_init(&finish, 0, 0);
    handle_with(SIGUSR1, 0);
    if (interrupted(read_one) != -EINTR)
        return 11;
    handle_with(SIGUSR1, SA_RESTART);
    if (restarted() != 1)
        return 12;
    if (interrupted(poll_one) != -EINTR)
        return 13;
    return waits_for_signals();
}
