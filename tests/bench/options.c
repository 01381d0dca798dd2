// Computation on private data: prices of European options by the formula of Black and Scholes, the normal distribution by the
// polynomial of Abramowitz and Stegun (26.2.17). Threads share nothing but the arrays, each a band of them.
// Usage: options [OPTIONS [ROUNDS [THREADS]]]
// Check: call - put = spot - strike·exp(-rate·time) for every option.
// Race-free: a thread writes the results of its own band; the inputs are written before the threads start.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct option {
    double spot, strike, rate, volatility, time;
};

static size_t count = 60000, rounds = 40, threads = 4;
static struct option *options;
static double *call_prices, *put_prices;

static double normal(double x) {
    static const double weights[] = {0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429};
    double size = fabs(x), t = 1 / (1 + 0.2316419 * size), sum = 0;
    for (int i = 4; i >= 0; i--)
        sum = (sum + weights[i]) * t;
    double tail = 0.39894228040143267794 * exp(-0.5 * size * size) * sum;
    return x < 0 ? tail : 1 - tail;
}

static void evaluate(const struct option *option, double *call, double *put) {
    double spread = option->volatility * sqrt(option->time);
    double d1 = (log(option->spot / option->strike) +
                 (option->rate + option->volatility * option->volatility / 2) * option->time) / spread;
    double d2 = d1 - spread, discounted = option->strike * exp(-option->rate * option->time);
    *call = option->spot * normal(d1) - discounted * normal(d2);
    *put = discounted * normal(-d2) - option->spot * normal(-d1);
}

static void *run(void *argument) {
    size_t band = (size_t)argument;
    size_t first = count * band / threads, end = count * (band + 1) / threads;
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = first; i < end; i++)
            evaluate(&options[i], &call_prices[i], &put_prices[i]);
    return NULL;
}

int main(int argument_count, char **arguments) {
    if (argument_count > 1)
        count = strtoul(arguments[1], NULL, 10);
    if (argument_count > 2)
        rounds = strtoul(arguments[2], NULL, 10);
    if (argument_count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (count == 0 || count > 50000000 || rounds == 0 || threads == 0 || threads > MOST_THREADS)
        return 2;
    options = malloc(count * sizeof *options);
    call_prices = malloc(count * sizeof *call_prices);
    put_prices = malloc(count * sizeof *put_prices);
    if (options == NULL || call_prices == NULL || put_prices == NULL)
        return 2;
    for (size_t i = 0; i < count; i++)
        options[i] = (struct option){.spot = 20 + (double)(i * 7 % 101),
                                     .strike = 20 + (double)(i * 11 % 97),
                                     .rate = 0.01 + (double)(i % 9) / 100,
                                     .volatility = 0.1 + (double)(i % 53) / 100,
                                     .time = 0.25 + (double)(i % 17) / 8};
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    double sum = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        const struct option *option = &options[i];
        sum += call_prices[i];
        double strike_now = option->strike * exp(-option->rate * option->time);
        error = fmax(error, fabs(call_prices[i] - put_prices[i] - option->spot + strike_now));
    }
    int right = error < 1e-9;
    printf("options: %zu with %zu threads, sum of calls %.6f: %s\n", count, threads, sum, right ? "right" : "WRONG");
    free(options), free(call_prices), free(put_prices);
    return !right;
}
