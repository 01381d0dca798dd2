// _exit, quick_exit or the system call, while threads run.
// Shows: these ends wait as well.
// True:  both change the counter with nothing between them.
// expect: race 14 14 co-enabled
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int counter;

static void *count(void *unused) {
    counter++;
    return NULL;
}

int main(int arguments, char **argument) {
    pthread_t one, two;
    pthread_create(&one, NULL, count, NULL);
    pthread_create(&two, NULL, count, NULL);
    switch (arguments > 1 ? argument[1][0] : 's') {
    case 'q':
        quick_exit(4);
    case 'u':
        _exit(4);
    default:
        syscall(SYS_exit_group, 4);
    }
}
