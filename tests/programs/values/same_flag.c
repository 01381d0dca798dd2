// Two threads set a flag to the same value: who sees it set need not have seen the one that wrote data before.
// With TWIN: they set it to different values, and only one of these lets the reader go on.
// race: 1 2
#include <pthread.h>

#ifdef TWIN
enum { OTHER = 2 };
#else
enum { OTHER = 1 };
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int flag;
int data;

static void set(int value) {
    pthread_mutex_lock(&lock);
    flag = value;
    pthread_mutex_unlock(&lock);
}

static void *one(void *unused) {
    set(OTHER);
    return unused;
}

static void *two(void *unused) {
    data = 1; // @1
    set(1);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = flag;
    pthread_mutex_unlock(&lock);
    if (seen == 1) data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const routines[])(void *) = {one, two, reader};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
