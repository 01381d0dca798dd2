/* Not safe to be called by two threads at once. */
static long total;
long tally(long amount) {
    total += amount;
    return total;
}
