// exec in place of this program.
// Shows: a process whose image is replaced while a second thread waits.
// True:  the new image ends with 0.
// expect: none
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return 0;
    pthread_t thread;
    pthread_mutex_lock(&m);
    pthread_create(&thread, NULL, work, NULL);
    execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    return 1;
}
