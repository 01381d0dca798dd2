// Processes with threads of their own, each with a race; the parent waits for them.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int counter;

static void *count(void *unused) {
    counter++;
    return NULL;
}

static void race(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, count, NULL);
    counter++;
    pthread_join(thread, NULL);
}

int main(void) {
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            race();
            _exit(0);
        }
    }
    race();
    while (wait(NULL) > 0) {
    }
    return 0;
}
