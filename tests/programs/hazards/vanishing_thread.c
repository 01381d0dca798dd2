// A thread that leaves by system call, without a word to libc.
// Shows: that the others go on although the thread which may run is gone, and nothing of it ran at its end.
// True:  the thread shares nothing; nobody joins it.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *leave(void *unused) {
    pthread_detach(pthread_self());
    __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
    return NULL;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave, NULL) != 0)
        return 1;
    sched_yield();
    usleep(1000);
    return 0;
}
