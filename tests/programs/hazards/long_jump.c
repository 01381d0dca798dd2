// setjmp and longjmp in threads.
// Shows: functions that are entered and never left; the call stack must be cut back.
// True:  each thread jumps within its own stack; the count is kept under a lock.
// expect: none
#include <pthread.h>
#include <setjmp.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int jumps;

static void descend(jmp_buf *target, int depth) {
    if (depth < 0)
        return;
    if (depth == 0)
        longjmp(*target, 1);
    descend(target, depth - 1);
    pthread_mutex_lock(&m);
    jumps = -1000;
    pthread_mutex_unlock(&m);
}

static void *work(void *unused) {
    for (volatile int i = 0; i < 500; i++) {
        jmp_buf target;
        if (setjmp(target) == 0)
            descend(&target, 10);
        pthread_mutex_lock(&m);
        jumps++;
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return jumps == 1000 ? 0 : 1;
}
