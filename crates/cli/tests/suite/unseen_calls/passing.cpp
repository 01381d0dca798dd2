// What passes through a call into a library without instrumentation: arguments and results of every class, exceptions, jumps,
// ends of threads, processes that are made. Each function says by its result what came to it.
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef _Complex long double Complex;

struct Large {
    long words[40];
};
struct Mixed {
    double real;
    long whole;
};
struct Thrown {
    int value;
};
extern "C" {
long add_many(long a, long b, long c, long d, long e, long f, long g, long h, long i, int j);
double add_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i);
double add_varying(int count, ...);
long double half(long double of);
Large fill(long seed);
long sum_large(Large large, long more);
Mixed mix(double real, long whole);
Complex turn(Complex of);
__m128 twice(__m128 of);
void throw_it(int value);
void call_it(void (*callback)(int), int value);
long recurse(long (*callback)(long), long depth);
pid_t make_process(void);
void end_thread(void *result);
int library_errno(void);
void *start_of_library(void *argument);
}
__attribute__((target("avx2"))) __m256d twice_wide(__m256d of);
__attribute__((target("avx512f"))) __m512d twice_widest(__m512d of);

#ifdef LIBRARY
long add_many(long a, long b, long c, long d, long e, long f, long g, long h, long i, int j) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}
double add_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}
double add_varying(int count, ...) {
    va_list rest;
    va_start(rest, count);
    double sum = 0;
    for (int at = 0; at < count; at++) sum += va_arg(rest, double) + va_arg(rest, int);
    va_end(rest);
    return sum;
}
long double half(long double of) { return of / 2; }
Large fill(long seed) {
    Large large;
    for (long at = 0; at < 40; at++) large.words[at] = seed + at;
    return large;
}
long sum_large(Large large, long more) {
    for (long word : large.words) more += word;
    return more;
}
Mixed mix(double real, long whole) { return {real + 1, whole + 1}; }
Complex turn(Complex of) {
    Complex turned;
    __real__ turned = __imag__ of;
    __imag__ turned = __real__ of;
    return turned;
}
__m128 twice(__m128 of) { return of + of; }
__attribute__((target("avx2"))) __m256d twice_wide(__m256d of) { return of + of; }
__attribute__((target("avx512f"))) __m512d twice_widest(__m512d of) { return of + of; }
void throw_it(int value) { throw Thrown{value}; }
void call_it(void (*callback)(int), int value) { callback(value); }
long recurse(long (*callback)(long), long depth) { return callback(depth) + 1; }
pid_t make_process(void) { return fork(); }
void end_thread(void *result) { pthread_exit(result); }
int library_errno(void) { return access("/does/not/exist", F_OK); }
void *start_of_library(void *argument) { return static_cast<char *>(argument) + 1; }
#else
#include <cerrno>

static int failed;
static void expect(bool holds, const char *what) {
    if (!holds) {
        std::printf("%s\n", what);
        failed = 1;
    }
}
#define EXPECT(holds) expect(holds, #holds)

static jmp_buf place;
static void jump(int value) { std::longjmp(place, value); }
static void rethrow(int value) { throw_it(value); }
static long down(long depth) { return depth == 0 ? 0 : recurse(down, depth - 1); }
static void *ends(void *argument) {
    end_thread(argument);
    return nullptr;
}

__attribute__((target("avx2"))) static bool passes_wide() {
    __m256d wide = twice_wide(_mm256_set_pd(4, 3, 2, 1));
    double values[4];
    std::memcpy(values, &wide, sizeof values);
    return values[0] == 2 && values[1] == 4 && values[2] == 6 && values[3] == 8;
}

__attribute__((target("avx512f"))) static bool passes_widest() {
    __m512d wide = twice_widest(_mm512_set_pd(8, 7, 6, 5, 4, 3, 2, 1));
    double values[8];
    std::memcpy(values, &wide, sizeof values);
    for (int at = 0; at < 8; at++)
        if (values[at] != 2 * (at + 1)) return false;
    return true;
}

static void *values(void *) {
    EXPECT(add_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 385);
    EXPECT(add_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9) == 285);
    EXPECT(add_varying(6, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6) == 39);
    EXPECT(half(3.0L) == 1.5L);
    Large large = fill(7);
    EXPECT(large.words[0] == 7 && large.words[39] == 46);
    EXPECT(sum_large(large, 1) == 40 * 7 + 780 + 1);
    Mixed mixed = mix(1.5, 2);
    EXPECT(mixed.real == 2.5 && mixed.whole == 3);
    Complex given;
    __real__ given = 1.0L;
    __imag__ given = 2.0L;
    Complex turned = turn(given);
    EXPECT(__real__ turned == 2.0L && __imag__ turned == 1.0L);
    __m128 narrow = twice(_mm_set_ps(4, 3, 2, 1));
    EXPECT(narrow[0] == 2 && narrow[3] == 8);
    if (__builtin_cpu_supports("avx2")) EXPECT(passes_wide());
    if (__builtin_cpu_supports("avx512f")) EXPECT(passes_widest());
    return nullptr;
}

static void *ways_out(void *) {
    try {
        throw_it(3);
        EXPECT(false);
    } catch (const Thrown &thrown) {
        EXPECT(thrown.value == 3);
    }
    try {
        call_it(rethrow, 4);
        EXPECT(false);
    } catch (const Thrown &thrown) {
        EXPECT(thrown.value == 4);
    }
    volatile int times = 0;
    int value = setjmp(place);
    times = times + 1;
    if (value == 0) call_it(jump, 5);
    EXPECT(value == 5 && times == 2);
    EXPECT(down(50) == 50);
    errno = 0;
    EXPECT(library_errno() == -1 && errno == ENOENT);
    return nullptr;
}

int main() {
    values(nullptr);
    ways_out(nullptr);
    pthread_t threads[4];
    void *results[4];
    char word[] = "word";
    pthread_create(&threads[0], nullptr, values, nullptr);
    pthread_create(&threads[1], nullptr, ends, word);
    pthread_create(&threads[2], nullptr, start_of_library, word);
    pthread_join(threads[0], nullptr);
    pthread_create(&threads[3], nullptr, ways_out, nullptr);
    for (int at = 1; at < 4; at++) pthread_join(threads[at], &results[at]);
    EXPECT(results[1] == word && results[2] == word + 1);
    pid_t child = make_process();
    if (child == 0) {
        values(nullptr);
        ways_out(nullptr);
        std::fflush(stdout);
        _exit(failed ? 8 : 9);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    return failed;
}
#endif
