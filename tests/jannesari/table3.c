/* Tests 14-21 of Table 3 (Jannesari 2014), after its Figs. 2 and 13 to 16; TEST says which. Each operation is made by two
 * threads, both of which main creates. */
#include <math.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;

#define LOCKED(lock, what) (pthread_mutex_lock(lock), what, pthread_mutex_unlock(lock))

#if TEST == 14 || TEST == 15
float x, y;

static __attribute__((noinline)) void lock_m(void) {
#if TEST == 15
    pthread_mutex_lock(&m);
#endif
}

static __attribute__((noinline)) void unlock_m(void) {
#if TEST == 15
    pthread_mutex_unlock(&m);
#endif
}

static void work(void) {
    lock_m();
    float a = x, b = y;
    unlock_m();
    float max = a > b ? a : b;
    lock_m();
    x = x / max;
    y = y / max;
    unlock_m();
}

static void begin(void) { x = 3, y = 4; }

#elif TEST == 16 || TEST == 19
float a, b;

static __attribute__((noinline)) void normalize(void) {
    pthread_mutex_lock(&m);
    float length = sqrtf(a * a + b * b);
    a = a / length;
    b = b / length;
    pthread_mutex_unlock(&m);
}

static __attribute__((noinline)) void swap(void) {
    float old = a;
    a = b;
    b = old;
}

static void work(void) {
    normalize();
#if TEST == 19
    LOCKED(&m, swap());
#endif
    normalize();
}

static void begin(void) { a = 3, b = 4; }

#elif TEST == 17
static long content, length;

static __attribute__((noinline)) long hash(long before, const char *text) {
    while (*text) before = before * 31 + *text++;
    return before;
}

static __attribute__((noinline)) long more(long before, const char *text) {
    while (*text++) before++;
    return before;
}

static char text[8];

static void work(void) {
    LOCKED(&m, content = hash(content, text));
    LOCKED(&n, length = more(length, text));
}

static void begin(void) { text[0] = 'a', content = length = 0; }

#elif TEST == 18
static char buffer[64];
static size_t used;

static __attribute__((noinline)) size_t size(const char *text) {
    size_t count = 0;
    while (text[count]) count++;
    return count;
}

static __attribute__((noinline)) void append(const char *text) {
    size_t count = size(text);
    if (count + used >= sizeof buffer) used = 0;
    for (size_t at = 0; at < count; at++) buffer[used + at] = text[at];
    used += count;
}

static void work(void) { append("ab"); }

static void begin(void) { used = 0; }

#elif TEST == 20
static long a, b;

static __attribute__((noinline)) void each(void) {
    LOCKED(&m, a++);
    LOCKED(&n, b++);
}

static void work(void) {
    each();
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&n);
    long old = a;
    a = b;
    b = old;
    pthread_mutex_unlock(&n);
    pthread_mutex_unlock(&m);
    each();
}

static void begin(void) { a = b = 0; }

#elif TEST == 21
struct node {
    struct node *next;
    int a, b;
};
static struct node nodes[4], *head;

static void work(void) {
    pthread_mutex_lock(&m);
    struct node *first = head;
    head = first->next;
    first->a = 1;
    first->b = 2;
    pthread_mutex_unlock(&m);
}

static void begin(void) {
    for (int number = 0; number < 3; number++) nodes[number].next = &nodes[number + 1];
    head = nodes;
}
#endif

static void *task(void *unused) {
    work();
    return unused;
}

int main(void) {
    pthread_t one, other;
    begin();
    pthread_create(&one, NULL, task, NULL);
    pthread_create(&other, NULL, task, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
