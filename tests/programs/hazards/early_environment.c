// Code that runs before main.
// Shows: instrumented functions, locks and the environment in .preinit_array and in a constructor.
// True:  libc is not yet initialised when .preinit_array runs: `environ` may still be empty there, the arguments never are.
// expect: none
#include <pthread.h>
#include <stdlib.h>

static int preinit_arguments, constructor_sees_path;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void before_constructors(int argc, char **argv, char **environment) {
    pthread_mutex_lock(&m);
    preinit_arguments = argc > 0 && argv[0] != NULL && environment != NULL;
    pthread_mutex_unlock(&m);
}

__attribute__((section(".preinit_array"), used)) static void (*entry)(int, char **, char **) = before_constructors;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    constructor_sees_path = getenv("PATH") != NULL;
    pthread_mutex_unlock(&m);
    return NULL;
}

__attribute__((constructor)) static void before_main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
}

int main(void) {
    return preinit_arguments && constructor_sees_path ? 0 : 1;
}
