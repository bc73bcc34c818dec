/* The unbiased SKCE as a plain loop over pairs, one thread, one exponential at a time.
 *
 * Terms that belong to one case are computed once, as anyone would; nothing else is clever. Rows are summed
 * before they are added to the total, which keeps the rounding error small.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Normals with means mu and standard deviations sigma: exp(-W_2) times exp(-(y - y')^2 / 2). NaN without memory. */
double normal_skce(int64_t n, const double *mu, const double *sigma, const double *y)
{
    double *narrow = malloc((size_t)n * sizeof *narrow); /* 1 / (1 + sigma^2) */
    double *root = malloc((size_t)n * sizeof *root);     /* its square root */
    double total = NAN;
    if (narrow && root) {
        for (int64_t i = 0; i < n; i++) {
            narrow[i] = 1.0 / (1.0 + sigma[i] * sigma[i]);
            root[i] = sqrt(narrow[i]);
        }
        total = 0.0;
        for (int64_t i = 0; i < n; i++) {
            double row = 0.0;
            for (int64_t j = i + 1; j < n; j++) {
                double mean = mu[i] - mu[j], deviation = sigma[i] - sigma[j];
                double left = mu[i] - y[j], right = y[i] - mu[j], target = y[i] - y[j];
                double both = 1.0 / (1.0 + sigma[i] * sigma[i] + sigma[j] * sigma[j]);
                double pairing = sqrt(both) * exp(-0.5 * mean * mean * both)
                               - root[i] * exp(-0.5 * left * left * narrow[i])
                               - root[j] * exp(-0.5 * right * right * narrow[j])
                               + exp(-0.5 * target * target);
                row += exp(-sqrt(mean * mean + deviation * deviation)) * pairing;
            }
            total += row;
        }
        total /= 0.5 * (double)n * (double)(n - 1);
    }
    free(narrow);
    free(root);
    return total;
}

/* Class probabilities p (n x classes, by rows): exp(-TV / scale) times [y = y']. */
double class_skce(int64_t n, int64_t classes, const double *p, const int64_t *label, double scale)
{
    double total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double *a = p + i * classes;
        double row = 0.0;
        for (int64_t j = i + 1; j < n; j++) {
            const double *b = p + j * classes;
            double distance = 0.0, product = 0.0;
            for (int64_t c = 0; c < classes; c++) {
                distance += fabs(a[c] - b[c]);
                product += a[c] * b[c];
            }
            double pairing = product - a[label[j]] - b[label[i]] + (label[i] == label[j] ? 1.0 : 0.0);
            row += exp(-0.5 * distance / scale) * pairing;
        }
        total += row;
    }
    return total / (0.5 * (double)n * (double)(n - 1));
}
