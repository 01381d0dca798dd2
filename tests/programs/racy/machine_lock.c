// A virtual machine tells of its heap and its locks (LLVM's __tsan_java_*), and asks how often a thread holds a lock, as where it
// waits. Its collector moves the object, and the lock with it.
// Shows: a race on a field of the object. The machine ends with 1 where it is told another number than it has to be.
// True:  one thread has given the lock up when it writes.
// expect: race 28 45 co-enabled
#include <pthread.h>

void __tsan_java_init(unsigned long heap, unsigned long bytes);
int __tsan_java_fini(void);
void __tsan_java_alloc(unsigned long object, unsigned long bytes);
void __tsan_java_free(unsigned long object, unsigned long bytes);
void __tsan_java_move(unsigned long from, unsigned long to, unsigned long bytes);
void __tsan_java_mutex_lock(unsigned long lock);
void __tsan_java_mutex_unlock(unsigned long lock);
void __tsan_java_mutex_lock_rec(unsigned long lock, int times);
int __tsan_java_mutex_unlock_rec(unsigned long lock);

enum { BYTES = 32, LOCK = 8 };

static long heap[512];
static unsigned long object;
static int wrong;

static void *waits(void *unused) {
    __tsan_java_mutex_lock(object + LOCK);
    __tsan_java_mutex_lock_rec(object + LOCK, 2);
    wrong |= __tsan_java_mutex_unlock_rec(object + LOCK) != 3;
    *(long *)object = 1;
    __tsan_java_mutex_lock_rec(object + LOCK, 3);
    wrong |= __tsan_java_mutex_unlock_rec(object + LOCK) != 3;
    return unused;
}

int main(void) {
    unsigned long begin = (unsigned long)heap;
    __tsan_java_init(begin, sizeof heap);
    __tsan_java_alloc(begin, BYTES);
    __tsan_java_mutex_lock_rec(begin + LOCK, 2);
    object = begin + 1024;
    __tsan_java_move(begin, object, BYTES);
    wrong = __tsan_java_mutex_unlock_rec(object + LOCK) != 2;
    pthread_t thread;
    pthread_create(&thread, NULL, waits, NULL);
    __tsan_java_mutex_lock(object + LOCK);
    *(long *)object = 2;
    __tsan_java_mutex_unlock(object + LOCK);
    pthread_join(thread, NULL);
    __tsan_java_free(object, BYTES);
    return __tsan_java_fini() != 0 || wrong;
}
