// A race in a program that another one starts.
// Shows: fork and exec of this very program, which then races; nothing happens in between.
// True:  both processes join their threads; only the second has two at a time.
// expect: race 12 22 co-enabled
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int shared;

static void *write_it(void *unused) {
    shared = 1;
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t thread;
    pthread_create(&thread, NULL, write_it, NULL);
    if (count == 1)
        pthread_join(thread, NULL);
    else {
        shared = 2;
        pthread_join(thread, NULL);
        return 6;
    }
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", arguments[0], "race", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 6 ? 0 : 1;
}
