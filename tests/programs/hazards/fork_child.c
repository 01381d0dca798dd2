// fork in a program with threads.
// Shows: a child that uses mutexes and ends, while the parent goes on.
// True:  the fork is made with the lock held, so the child's copy of the data is whole; the child has one thread.
// expect: none
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void count(int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
}

static void *work(void *unused) {
    count(50);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_mutex_lock(&m);
    int before = counter;
    pid_t child = fork();
    pthread_mutex_unlock(&m);
    if (child == 0) {
        count(10);
        _exit(counter == before + 10 ? 7 : 1);
    }
    count(50);
    pthread_join(thread, NULL);
    int status = 0;
    waitpid(child, &status, 0);
    return counter == 100 && WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 1;
}
