// What the kinds of dependences order, used correctly; with RACY, what they do not order.
#include <omp.h>
#include <stdio.h>

int a, b, c, sum;

#if !defined __clang__ && __GNUC__ < 13
// What newer compilers call the runtime with.
#define inoutset in
#define omp_all_memory *(char *)0
#define BEHIND_SET inout
#else
#define BEHIND_SET in
#endif

static void sets(void) {
    int joined[2];
#pragma omp task depend(out : a) shared(joined)
    joined[0] = joined[1] = 1;
#pragma omp task depend(inoutset : a) shared(joined)
    joined[0] += 2;
#pragma omp task depend(inoutset : a) shared(joined)
#ifdef RACY
    joined[0] += 4;
#else
    joined[1] += 4;
#endif
#pragma omp task depend(BEHIND_SET : a) shared(joined)
    sum += joined[0] + joined[1];
#pragma omp taskwait
}

static void all_memory(void) {
#pragma omp task depend(out : b)
    b = 1;
#pragma omp task depend(in : c)
    c = 2;
#pragma omp task depend(inout : omp_all_memory)
    {
        b += c;
        c = b;
    }
#pragma omp task depend(inout : b)
    sum += b;
#pragma omp taskwait
    sum += c;
}

// Who creates an undeferred task, and holds a lock meanwhile, executes only what that comes behind.
static void undeferred(omp_lock_t *lock) {
    int first = 0, second = 0, extra = 0;
    omp_set_lock(lock);
    for (int i = 0; i < 2; i++)
#pragma omp task shared(extra)
    {
        omp_set_lock(lock);
        extra += 50;
        omp_unset_lock(lock);
    }
#pragma omp task depend(out : a) shared(first)
    first = 1;
#pragma omp task depend(inout : a) shared(first, second)
    second = first + 1;
#pragma omp task depend(in : a) if (0) shared(second)
    sum += second;
    omp_unset_lock(lock);
#pragma omp taskwait
    sum += extra;
}

int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        sets();
        all_memory();
        undeferred(&lock);
    }
    printf("%d\n", sum);
    return 0;
}
