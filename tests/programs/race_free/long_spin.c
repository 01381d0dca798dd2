// A loop that looks for what nobody will do, but not for ever: its rounds are counted where nobody sees it.
// Shows: looks that repeat themselves while the thread's state does not.
// True:  it ends by itself. To call it endless would be false.
// expect: none
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <pthread.h>

static atomic_int never;

static void *look(void *unused) {
    for (long round = 0; round < 20000 && !atomic_load(&never); round++)
        sched_yield();
    return unused;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, look, NULL);
    pthread_create(&two, NULL, look, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
